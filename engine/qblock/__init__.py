"""qblock: an SQL-backed anonymization engine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qblock.api import (
        Anonymized,
        Attack,
        Audited,
        Guarantee,
        Profiled,
        ProfiledColumn,
        Reached,
        anonymize,
        audit,
        profile,
    )
    from qblock.errors import Busy, InputError, ParameterError, QblockError, Refused

__version__ = "0.1.0"

_HOMES = {
    "qblock.api": (
        *("Anonymized", "Attack", "Audited", "Guarantee", "Profiled", "ProfiledColumn", "Reached"),
        *("anonymize", "audit", "profile"),
    ),
    "qblock.errors": ("Busy", "InputError", "ParameterError", "QblockError", "Refused"),
}
_PUBLIC = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Anonymized",
    "Attack",
    "Audited",
    "Busy",
    "Guarantee",
    "InputError",
    "ParameterError",
    "Profiled",
    "ProfiledColumn",
    "QblockError",
    "Reached",
    "Refused",
    "__version__",
    "anonymize",
    "audit",
    "profile",
]


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used: the drivers and numpy behind it take a second or two."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
