select age, count(*) as people
from {{ source('published', 'stays') }}
group by age
