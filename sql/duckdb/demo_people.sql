-- Purpose: makes the demo's source table; text is plain VARCHAR rather than the ENUM that a dictionary column becomes
-- Inputs: the relation `generated`, registered on the connection: the people of the demo
-- Output: none; table main.people
CREATE TABLE people AS
SELECT
    person_id,
    age,
    CAST(gender AS VARCHAR) AS gender,
    CAST(marital_status AS VARCHAR) AS marital_status,
    CAST(education AS VARCHAR) AS education,
    CAST(country AS VARCHAR) AS country,
    CAST(work_class AS VARCHAR) AS work_class,
    CAST(occupation AS VARCHAR) AS occupation,
    CAST(salary_class AS VARCHAR) AS salary_class,
    hours
FROM generated
