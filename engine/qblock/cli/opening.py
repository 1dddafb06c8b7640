"""The release that a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qblock.api import Release


def load_release(spec: str) -> Release:
    """The release of a spec, whose errors may name values: whoever runs the command may see the data.

    Raises InputError for a spec with errors.
    """
    from qblock.api import Release

    return Release(spec, name_values=True)
