"""What a release needs of others before it can run: rights in the database, or files."""

from __future__ import annotations

from typing import Any

from qblock.publish.targets import target_of
from qblock.spec import Spec


def grants(spec: Spec, *, job: str | None = None, officer: str | None = None) -> dict[str, Any]:
    """Every right that the job, the readers and an officer need, as docs/json.md describes it. Writes nothing.

    job: the login, where another one looks ahead for it. Raises InputError for roles where the engine has none and for
    an officer who is a reader, QblockError where the database cannot be reached.
    """
    target = target_of(spec)
    needs = target.needs(job, officer)
    return {
        "release": spec.release,
        "engine": needs.engine,
        "where": needs.where,
        "job": needs.login,
        "view": target.view,
        "sql": needs.script(spec.release),
        "grants": [right.to_json() for right in needs.rights],
        "files": [need.to_json() for need in needs.files],
        "notes": list(needs.notes),
    }
