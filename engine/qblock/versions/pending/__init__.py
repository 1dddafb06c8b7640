"""The steady job on the crosswalk: versions lag behind the source in batches that pass (docs/steady-job.md).

Within a run of a release with `versions.on_refusal: hold_back`, once a version is published:

    state = read_state(crosswalk, release)            what is kept; None: `begin_state`, with the first version
    decision = decide(crosswalk, source, ...)         the differences, by one scan, and which batches close (`batching`)
    keep(crosswalk, release, decision)                in a transaction of its own: a verdict outlasts the run
    ShownState(...)                                   what stands for the source: people as they will be shown

The version is then made, checked and published like any other, from that relation.
"""
