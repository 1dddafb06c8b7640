"""The table of wrong input and faults: what was done, exit status, message, and what was left behind, as Markdown.

    python -m tests.faults.table [--engine duckdb]

Each is done to a job that has published version 1. Exit status 1 if one of them ended otherwise than it should, or left
anything but version 1 for readers, or a value of the source in its message.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engines import create_table, database, start_server
from release.jobs import PEOPLE, Job, new_job

from faults.test_wrong import SECRETS, arguments
from faults.wrong import CASES, ENGINES, Wrong
from qblock.cli.app import run
from qblock.ledger.history import history


def outcome(job: Job, wrong: Wrong) -> tuple[int, str, str]:
    """Exit status, message, and what is left behind."""
    before, settings = job.published(), copy.deepcopy(job.settings)
    files = {path.name for path in job.folder.rglob("*")}
    wrong.do(job)
    given = arguments(job, wrong)
    files |= {path.name for path in job.folder.rglob("*")}
    said = io.StringIO()
    during = wrong.during(job) if wrong.during else contextlib.nullcontext()
    with during, contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = run(given)
    job.settings = settings
    left = ["version 1 published" if job.published() == before else "ANOTHER VERSION"]
    try:
        left += [f"ledger: {event['state']}" for event in history(job.spec)["events"][3:]]
    except Exception as error:
        left.append(f"ledger: {type(error).__name__}")
    more = {path.name for path in job.folder.rglob("*")} - files
    left += [f"{len(more)} files" if more else "no file"]
    return status, said.getvalue().removeprefix("qblock: ").strip(), ", ".join(left)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, help="only this one")
    chosen = parser.parse_args().engine
    server = start_server() if chosen != "duckdb" else ""
    wrong_ends = number = 0
    print("| | engine | what was done | exit | message | left behind |\n|---|---|---|---|---|---|")
    for wrong in CASES:
        for engine in (e for e in wrong.engines if chosen in (None, e)):
            number += 1
            with tempfile.TemporaryDirectory(prefix="qblock-wrong-") as folder, contextlib.ExitStack() as stack:
                url = f"duckdb:///{folder}/warehouse.duckdb"
                if engine == "postgresql":
                    url = stack.enter_context(database(server))
                create_table(url, "people", PEOPLE)
                job = new_job(engine, Path(folder), url)
                job.run()
                status, message, left = outcome(job, wrong)
                message = message.replace(folder, ".").replace("|", r"\|").replace("\n", " ")
            fine = status == wrong.status and re.search(wrong.says, message) and "ANOTHER" not in left
            fine = fine and not any(secret in message for secret in SECRETS)
            wrong_ends += not fine
            print(f"| {number} | {engine} | {wrong.what} | {status} | {message} | {left} |", flush=True)
    print(f"\n{number} runs, {wrong_ends} of them otherwise than they should be")
    return 1 if wrong_ends else 0


if __name__ == "__main__":
    sys.exit(main())
