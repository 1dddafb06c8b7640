"""A worked example at the end of each command's --help. A test runs every line of them."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from typer.models import CommandInfo, TyperInfo

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("qblock demo people --rows 5000",),
    "init": ("qblock init patients.csv --entity patient_id --sensitive diagnosis --directory first",),
    "schema": ("qblock schema", "qblock schema --of release"),
    "hierarchy": ("qblock hierarchy check release.yaml",),
    "hierarchy build": ("qblock hierarchy build release.yaml --directory drafts",),
    "hierarchy check": ("qblock hierarchy check release.yaml",),
    "hierarchy load": ("qblock hierarchy load release.yaml",),
    "search": (
        "qblock search release.yaml --nodes minimal",
        "qblock search release.yaml --explain-sql --node age=2,sex=1",
    ),
    "audit": (
        "qblock audit release.yaml --node age=2,sex=1 --all",
        "qblock audit --url duckdb:///patients.duckdb --table main.patients \\\n    -q age -q sex -s diagnosis",
        "qblock audit release.yaml --node age=2,sex=1 --adversary bayes --prior table --rho1 0.1 --rho2 0.5",
    ),
    "compare": ("qblock compare release.yaml --csv nodes.csv", "qblock compare release.yaml --recoding both"),
    "grants": ("qblock grants release.yaml",),
    "plan": ("qblock plan release.yaml --churn 0.01",),
    "release": ("qblock release release.yaml --result result.json --log-format text",),
    "verify": ("qblock verify release.yaml",),
    "rollback": ("qblock rollback release.yaml 1 --plan", "qblock rollback release.yaml 1"),
    "report": ("qblock report release.yaml -o report.html",),
    "history": ("qblock history release.yaml",),
    "erase": ("qblock erase release.yaml p7 p12", "qblock erase release.yaml p7 p12 --now --plan"),
    "retire": ("qblock retire release.yaml",),
    "ledger": ("qblock ledger upgrade release.yaml",),
    "ledger upgrade": ("qblock ledger upgrade release.yaml",),
    "ledger rekey": ("qblock ledger rekey release.yaml",),
    "ledger retype": ("qblock ledger retype release.yaml",),
    "ledger move": ("qblock ledger move release.yaml --from patients_2025",),
}


def add_examples(app: typer.Typer) -> None:
    """Give each command its example. To be called when all are registered."""
    for name, given in _named(app):
        if name in EXAMPLES:
            given.epilog = epilog(EXAMPLES[name])


def epilog(lines: tuple[str, ...]) -> str:
    """An epilog of command lines, which are printed as they are written."""
    shown = "\n".join(f"  {line}" for line in "\n".join(lines).splitlines())
    return f"\b\nExample{'s' if len(lines) > 1 else ''}:\n{shown}"


def _named(app: typer.Typer, above: str = "") -> Iterator[tuple[str, CommandInfo | TyperInfo]]:
    for command in app.registered_commands:
        yield f"{above}{command.name}", command
    for group in app.registered_groups:
        yield f"{above}{group.name}", group
        if group.typer_instance is not None:
            yield from _named(group.typer_instance, f"{above}{group.name} ")
