"""qblock: an SQL-backed anonymization engine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from qblock.version import __version__

if TYPE_CHECKING:
    from qblock.api import (
        Anonymized,
        Attacked,
        Audited,
        BeliefChange,
        Beliefs,
        Candidate,
        Checked,
        Compared,
        ComparedRecodings,
        Disclosures,
        DryRun,
        Ended,
        Entity,
        Erased,
        Estimate,
        EstimatedGroup,
        Grants,
        Guarantee,
        HierarchyFiles,
        HierarchyTables,
        History,
        Ledger,
        Planned,
        Profiled,
        ProfiledColumn,
        Proposed,
        ProposedColumn,
        Published,
        Reached,
        Rekeyed,
        Release,
        Report,
        Retyped,
        Searched,
        Sharing,
        Upgraded,
        Verified,
        anonymize,
        audit,
        profile,
        propose_spec,
    )
    from qblock.errors import Busy, InputError, ParameterError, QblockError, Refused

_ERRORS = ("Busy", "InputError", "ParameterError", "QblockError", "Refused")

__all__ = [
    "Anonymized",
    "Attacked",
    "Audited",
    "BeliefChange",
    "Beliefs",
    "Busy",
    "Candidate",
    "Checked",
    "Compared",
    "ComparedRecodings",
    "Disclosures",
    "DryRun",
    "Ended",
    "Entity",
    "Erased",
    "Estimate",
    "EstimatedGroup",
    "Grants",
    "Guarantee",
    "HierarchyFiles",
    "HierarchyTables",
    "History",
    "InputError",
    "Ledger",
    "ParameterError",
    "Planned",
    "Profiled",
    "ProfiledColumn",
    "Proposed",
    "ProposedColumn",
    "Published",
    "QblockError",
    "Reached",
    "Refused",
    "Rekeyed",
    "Release",
    "Report",
    "Retyped",
    "Searched",
    "Sharing",
    "Upgraded",
    "Verified",
    "__version__",
    "anonymize",
    "audit",
    "profile",
    "propose_spec",
]


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used: the drivers and numpy behind it take a second or two."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("qblock.errors" if name in _ERRORS else "qblock.api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
