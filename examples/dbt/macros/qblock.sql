{# A helper view of a release: `{{ qblock_helper(source('published', 'stays'), 'columns') }}` is published.stays_columns.
   With `publish.names` a helper view has the name that the spec gives it: name it as a source instead. #}
{% macro qblock_helper(view, helper) %}
    {{- return(api.Relation.create(database=view.database, schema=view.schema, identifier=view.identifier ~ '_' ~ helper)) -}}
{% endmacro %}


{# Fails with a row for each guarantee that does not hold, where there is none at all, and where the version that readers
   see is older than `max_age_days`. #}
{% test qblock_guarantees(model, max_age_days=none) %}
select model, sensitive, asked, 'does not hold' as problem
from {{ qblock_helper(model, 'guarantees') }}
where holds is not true
union all
select '', '', '', 'no guarantee'
from (select count(*) as guarantees from {{ qblock_helper(model, 'guarantees') }}) as counted
where guarantees = 0
{% if max_age_days is not none %}
{% set oldest = run_started_at - modules.datetime.timedelta(days=max_age_days) %}
union all
select '', '', '', 'older than {{ max_age_days }} days'
from {{ qblock_helper(model, 'version') }}
where published_at < timestamp '{{ oldest.strftime("%Y-%m-%d %H:%M:%S") }}'
{% endif %}
{% endtest %}
