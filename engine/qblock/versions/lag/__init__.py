"""The steady job on the crosswalk: versions lag behind the source in batches that pass (docs/steady-job.md).

Within a run of a release with `versions.on_refusal: hold_back`, once a version is published:

    kept = memory.load(crosswalk, release)             the layout, and what is remembered; None: `begin`
    changes = differences.of(crosswalk, source, ...)   newcomers, leavers and changed values, by one scan
    turn = policy.run(...)                             which batches close (`batching`), judged as J1 judges cells
    memory.save(crosswalk, ...)                        in a transaction of its own: a verdict outlasts the run
    relation.Shown(...)                                what stands for the source: people as they will be shown

The version is then made, checked and published like any other, from that relation.
"""
