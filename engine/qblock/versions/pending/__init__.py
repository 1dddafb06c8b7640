"""The steady job on the crosswalk: versions lag behind the source in batches that pass (docs/steady-job.md).

Within a run of a release with `versions.on_refusal: hold_back`, once a version is published:

    state = read_state(crosswalk, release)            what is kept; None: `begin_state`, with the first version
    decision = decide(crosswalk, source, ...)         the differences, by one scan, and which batches close (`batching`)
    keep(crosswalk, release, decision)                in a transaction of its own: a verdict outlasts the run
    ShownState(...)                                   what stands for the source: people as they will be shown

The version is then made, checked and published like any other, from that relation.

The shown state is block, joint cell, quasi-identifiers as first published, and value of each unit, in
crosswalk_shown, by keyed digest, whatever the source has now. Only the members of cells that a difference concerns
are read. A cohort is divided over the leaves of its people, in memory (`search/boxes/division.py`); its map is in
crosswalk_cohort, and kept with each version that shows it. A rest that reads `Europe (other 1)` in an earlier map
stands for the same values in this one, or reads by another number. States are counted apart from versions, since a
run may end before it publishes.

A unit is named by the person's digest and the place: for a block of the first version a hash of its labels, which
readers know; for a leaf a digest of person and leaf under the crosswalk's keys, so that nobody can try out leaves or
tell that two people have the same, and `ledger rekey` moves it. Of units that wait, or are out and in the source,
what they had when a run last looked is kept, to know whether a row may have moved.
"""
