"""Jobs on each engine, whose releases are reported."""

from __future__ import annotations

from publish.conftest import roles  # noqa: F401
from release.conftest import (  # noqa: F401
    copy_job,
    crossing,
    empty_ledger,
    first_runs,
    job,
    job_templates,
    ledger,
    make_job,
    place,
    released,
    start,
)
