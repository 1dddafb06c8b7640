-- What is released: one row for each person.
select 'p' || i as person, 20 + i % 40 as age, ['flu', 'cold', 'asthma'][1 + i % 3] as disease
from range(400) as numbers(i)
