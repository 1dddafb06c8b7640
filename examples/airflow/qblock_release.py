"""A weekly release as an Airflow DAG (Airflow 3): what a person must decide is not tried again."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk import dag, task

QBLOCK = os.environ.get("QBLOCK", "qblock")
SPEC = os.environ.get("QBLOCK_SPEC", "/etc/qblock/release.yaml")


@dag(
    schedule="15 3 * * 1",
    start_date=datetime(2026, 1, 5),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
)
def qblock_release():
    @task
    def release() -> dict:
        """The result of the job, for the tasks that come after."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "result.json"
            command = [QBLOCK, "release", SPEC, "--wait", "600", "--verbose", "--result", str(file)]
            status = subprocess.run(command, check=False).returncode
            result = json.loads(file.read_text("utf-8")) if file.exists() else {}
        if status == 0:
            return result
        reason = result.get("reason", f"exit status {status}")
        if status == 4:
            raise AirflowSkipException(f"another run is doing it: {reason}")
        if status in (2, 3):
            raise AirflowFailException(f"somebody must decide: {reason}")
        raise AirflowException(reason)

    @task
    def keeps_up(result: dict) -> None:
        """Fails where people wait longer than the spec allows. The version is published."""
        if result["status"] == "lagging":
            raise AirflowFailException("more people wait, or for longer, than versions.max_lag and max_wait allow")

    keeps_up(release())


qblock_release()
