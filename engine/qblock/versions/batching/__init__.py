"""The rules of the steady job: which changes of a table the next version shows, and which wait (docs/steady-job.md).

Pure functions on what is shown, who is present and what is remembered; no database. In a run:

    rules = combine_rules([rules_for(models, ...), ...])  what may be done with the models of each sensitive attribute
    result = step(shown, present, memory, rules, passes, newcomers=..., coin=...)
    result.shown, result.memory, result.counts            the next version where result.published, what is remembered
                                                          privately, and counts for the private ledger alone

Batches are proposed (`proposals`), each by a rule of its own, and decided one after another (`step`). Everything is
decided by sizes, presence, blocks, how often values changed, counts that versions show already, and the verdicts on
batches decided before. What is decided must be remembered whether or not the run goes on.
"""
