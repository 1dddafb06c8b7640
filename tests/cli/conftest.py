"""Fixtures of the commands that publish."""

from __future__ import annotations

from release.jobs import job, make_job  # noqa: F401
