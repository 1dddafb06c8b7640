"""The steady job's policy: which changes of a table the next version shows, and which wait (docs/steady-job.md).

Pure functions on what is shown, who is present and what is remembered; no database. In a run:

    rules = together([rules_for(models, ...), ...])       what may be done with the models of each sensitive attribute
    passes = judge(models, references)                    the models on the joint cells that a batch would make
    begun = first_version(present, memory, passes)        once; or what is published already: shown state and Memory()
    result = step(shown, present, memory, rules, passes, cohort=..., coin=...)
    result.shown, result.memory, result.counts            the next version where result.published, what is remembered
                                                          privately, and counts for the private ledger alone

Everything is decided by sizes, presence, blocks, how often values changed, counts that versions show already, and the
verdicts on batches decided before. What is found must be remembered whether or not the run goes on.
"""

from qblock.versions.steady.coin import Coin, no_coin, private_coin
from qblock.versions.steady.judge import judge
from qblock.versions.steady.rules import Rules, rules_for, together
from qblock.versions.steady.state import Batch, Cell, Counts, Group, Kind, Memory, Pending, Person, Trial, Unit
from qblock.versions.steady.step import Step, first_version, standing, step

__all__ = [
    "Batch",
    "Cell",
    "Coin",
    "Counts",
    "Group",
    "Kind",
    "Memory",
    "Pending",
    "Person",
    "Rules",
    "Step",
    "Trial",
    "Unit",
    "first_version",
    "judge",
    "no_coin",
    "private_coin",
    "rules_for",
    "standing",
    "step",
    "together",
]
