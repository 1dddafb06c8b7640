"""The jobs of the tests of the release job."""

from __future__ import annotations

from release.jobs import first_runs, make_job  # noqa: F401
