"""Versions of a release that changes: what each may show beside those before it (releases.md sections 1 to 7).

    later       what a spec alone says of the versions after the first one
    policy/     one of three policies for a run: `Independent`, `Exact`, `Batched`; the jobs call nothing else in a run
    batching/   the rules of `Batched`, pure: which batches are proposed, and which pass
    pending/    `Batched` on the crosswalk: the state shown, how the source differs from it, what a run decides
    gate        J1 and J1-linked: whether all that an audience was ever shown satisfies the models
    explanation, bounds    why versions together were refused: reports that never pass what the gate refuses
    admission, turnover    the source as it is let in; how many went and came
    withdrawals, people    who leaves, and with whom; who is set apart, named or missing, by digests
    recorded, episodes, crosswalk    the versions in the crosswalk, what was shown of a person, and the database

Every version in the crosswalk counts as readable, for good, whether it is retired or not. One that was recorded and
never shown must be taken out by `discard`, under the lock, before the next check.
"""
