"""Versions of releases checked together, for tables that change (releases.md sections 1 to 7).

Within a run of the job, with the release's lock held:

    prepare(place)                                    before the snapshot: tables and the secret of the digests
    admission = Admission(spec, place)                frozen quasi-identifiers; people set apart are left out
    with open_task(spec, relation=admission) as task:
        chosen = ...                                  a node, and what of it is suppressed
        with open_crosswalk(place, task.source.session) as crosswalk:
            proposed = candidate(crosswalk, task, chosen, version)
            verdict = check(crosswalk, spec, references, proposed)      J1 and J1-linked; counts only
            # where it passed, before anything is staged
            record(crosswalk, proposed)
            freeze(crosswalk, task.source, proposed)
            # where it did not: reports
            explanation(crosswalk, spec, task.source.hierarchies, k, proposed).lines()
    ...
    unchanged(crosswalk, spec, verdict)               in the transaction that publishes

Every version in the crosswalk counts as readable, for good, whether it is retired or not. One that was recorded and
never shown must be taken out by `discard`, under the lock, before the next check.

Where `check` refuses, nothing is published (`versions.on_refusal: refuse`); with hold_back versions lag behind the
source, in batches that pass (`versions.lag`). People who withdraw: `withdraw`, then `batch` with `left` or `failed`, or
at once `whole_cells` and `take_out`. How many went and came since the run before: turnover.py. A new key of the
digests: `new_key`, while nothing else runs in the place.
"""
