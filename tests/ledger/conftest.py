"""Ledgers and jobs on each engine."""

from __future__ import annotations

from release.conftest import (  # noqa: F401
    copy_job,
    crossing,
    empty_ledger,
    job,
    job_templates,
    ledger,
    make_job,
    place,
    released,
    start,
)
