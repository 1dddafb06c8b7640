"""Every wrong input ends with the exit status of the design, and a message that names the cause and the remedy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

pytestmark = pytest.mark.either_engine

QUASI: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": "suppress"}
PEOPLE = {"zip": ["101", "102", "111", None], "sex": ["m", "m", "f", "f"], "ill": ["flu", "cold", "flu", "cold"]}
COMMANDS = (["search"], ["audit", "--json"], ["hierarchy", "check"])
Ran = Any


def each(qblock: Callable[..., Ran], file: Path) -> Iterator[Ran]:
    """What each command that reads a source says of a spec."""
    for command in COMMANDS:
        yield qblock(*command, file)


def check(ran: Ran, status: int, *said: str) -> None:
    assert (ran.status, ran.out) == (status, "")
    assert ran.err.startswith("qblock: ")
    for part in said:
        assert re.search(part, ran.err), ran.err


def file_of(spec: Callable[..., Path], url: str, zip_: Any = None, **more: Any) -> Path:
    attributes = {"zip": zip_ or {**QUASI, "nulls": "top"}, "sex": QUASI, "ill": "sensitive"}
    return spec(url, "people", attributes | more.pop("attributes", {}), **more)


LINE = r"release\.yaml:\d+: "


def test_a_value_missing_in_a_hierarchy(warehouse, qblock, spec, tmp_path: Path) -> None:
    (tmp_path / "zip.csv").write_text("zip,any\n101,*\n111,*\n", encoding="utf-8")
    file = file_of(spec, warehouse("people", PEOPLE), {**QUASI, "hierarchy": {"file": "zip.csv"}, "nulls": "top"})
    for command, ran in zip(COMMANDS, each(qblock, file), strict=True):
        named = "" if command[0] == "audit" else r": '102' \(1 row\)"
        check(ran, 2, LINE + rf"1 value of column zip \(1 row\) is missing in its hierarchy{named}; add")


def test_a_hierarchy_that_is_not_nested(warehouse, qblock, spec, tmp_path: Path) -> None:
    lines = "zip,area,land\n101,1,x\n102,1,y\n111,2,x\n"
    (tmp_path / "zip.csv").write_text(lines, encoding="utf-8")
    for ran in each(qblock, file_of(spec, warehouse("people", PEOPLE), {**QUASI, "hierarchy": {"file": "zip.csv"}})):
        check(ran, 2, r"zip\.csv:3: label .* of area is under .* on line 2 and under .* here", "a label has one parent")


def test_a_duplicate_leaf(warehouse, qblock, spec, tmp_path: Path) -> None:
    (tmp_path / "zip.csv").write_text("zip,any\n101,*\n102,*\n101,*\n", encoding="utf-8")
    for ran in each(qblock, file_of(spec, warehouse("people", PEOPLE), {**QUASI, "hierarchy": {"file": "zip.csv"}})):
        check(ran, 2, r"zip\.csv:4: duplicate leaf .*, first on line 2; remove one")


def test_nulls_without_a_rule(warehouse, qblock, spec) -> None:
    for ran in each(qblock, file_of(spec, warehouse("people", PEOPLE), QUASI)):
        check(ran, 2, LINE + "column zip is NULL in 1 row; write `nulls: top")
    url = warehouse("sick", {"zip": ["1"], "ill": [None]}, {"ill": "VARCHAR"})
    for ran in each(qblock, spec(url, "sick", {"zip": QUASI, "ill": "sensitive"})):
        check(ran, 2, LINE + "column ill is NULL in 1 row; write `nulls: value")


def test_an_unknown_column(warehouse, qblock, spec) -> None:
    for ran in each(
        qblock, file_of(spec, warehouse("people", PEOPLE), attributes={"gendre": "identifying", "sxe": QUASI})
    ):
        check(ran, 2, LINE + "the source people has no column 'gendre'", LINE + ".* no column 'sxe'; did you mean sex")


def test_a_column_with_two_roles(warehouse, qblock, spec) -> None:
    file = file_of(spec, warehouse("people", PEOPLE))
    file.write_text(
        file.read_text("utf-8").replace("  ill: sensitive\n", "  ill: sensitive\n  sex: sensitive\n"), "utf-8"
    )
    for ran in each(qblock, file):
        check(
            ran, 2, LINE + r"attributes\.sex: column sex has two roles \(quasi_identifier on line \d+, sensitive here\)"
        )


def test_an_unknown_model_or_parameter(warehouse, qblock, spec) -> None:
    url = warehouse("people", PEOPLE)
    for asked, said in (
        ({"k_anonimity": {"k": 2}}, "k_anonimity is not a model; did you mean k_anonymity"),
        ({"k_anonymity": {"kk": 2}}, "kk is not a parameter of k_anonymity"),
        ({"k_anonymity": {"k": 0}}, "k = 0 is out of range; valid: an integer k >= 1"),
        ({"k_anonymity": {"k": 1.5}}, "1.5 is not a whole number"),
        ({"t_closeness": {"t": 2}}, "t = 2 is out of range; valid: "),
        ({"entropy_l_diversity": {"l": 0.5}}, r"l = 1/2 is out of range; valid: "),
        ({"distinct_l_diversity": {"l": 2, "sensitive": "sex"}}, "sensitive: 'sex' is not a sensitive attribute"),
    ):
        for ran in each(qblock, file_of(spec, url, privacy=[asked])):
            check(ran, 2, LINE + r"privacy\[0\]", said)


def test_a_model_that_the_attribute_does_not_admit(warehouse, qblock, spec) -> None:
    url = warehouse("people", PEOPLE)
    for asked, said in (
        (
            {"t_closeness": {"t": 0.5, "distance": "ordered"}},
            "t_closeness needs of the sensitive attribute ill an ord",
        ),
        ({"delta_l_diversity": {"delta": 1, "l": 2}}, "delta_l_diversity needs of the sensitive attribute ill numbers"),
        (
            {"t_closeness": {"t": 0.5, "distance": "hierarchical"}},
            "hierarchical needs a taxonomy of ill; add",
        ),
        ({"nt_closeness": {"n": 5, "t": 0.1}}, "n = 5 is out of range; valid: 1 <= n <= N = 4"),
        ({"k_map": {"k": 2, "population": "nowhere"}}, "table nowhere does not exist"),
    ):
        file = file_of(spec, url, privacy=[asked])
        for command in (["search"], ["search", "--json"], ["audit"]):
            check(qblock(*command, file), 2, said)


def test_k_larger_than_the_table_and_other_policies_that_nothing_satisfies(warehouse, qblock, spec) -> None:
    url = warehouse("people", PEOPLE)
    for asked in ({"k_anonymity": {"k": 5}}, {"distinct_l_diversity": {"l": 3}}, {"frequency_l_diversity": {"l": 2.5}}):
        ran = qblock("search", file_of(spec, url, privacy=[asked]))
        assert ran.status == 3
        assert "no node satisfies the spec" in ran.err
        assert "Ask for less" in ran.err


def test_an_empty_table(warehouse, qblock, spec) -> None:
    url = warehouse("people", {name: [] for name in PEOPLE}, dict.fromkeys(PEOPLE, "VARCHAR"))
    for ran in each(qblock, file_of(spec, url)):
        check(ran, 3, "the source people is empty: there is nothing to release")


def test_an_unset_environment_variable(warehouse, qblock, spec, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_of(spec, warehouse("people", PEOPLE))
    monkeypatch.delenv("URL")
    for ran in each(qblock, file):
        check(ran, 2, LINE + r"source\.url: the environment variable URL is not set; set it")


def test_a_spec_that_is_not_there(qblock, tmp_path: Path) -> None:
    for ran in each(qblock, tmp_path / "absent.yaml"):
        check(ran, 2, r"absent\.yaml: cannot be read: No such file or directory")
    for ran in each(qblock, tmp_path):
        check(ran, 2, "cannot be read: it is a folder; name a file")


def test_a_database_that_cannot_be_reached(qblock, spec, tmp_path: Path) -> None:
    for url in (
        f"duckdb:///{tmp_path / 'absent.duckdb'}",
        "postgresql://somebody:s3cret@127.0.0.1:1/none",
        "postgresql://somebody:s3cret@no.such.host.invalid/none",
    ):
        for ran in each(qblock, file_of(spec, url)):
            check(ran, 1, "database not reachable: ")
            assert "s3cret" not in ran.err
    assert not (tmp_path / "absent.duckdb").exists()


def test_a_database_of_no_known_kind(qblock, spec, tmp_path: Path) -> None:
    for url in ("mysql://somebody:s3cret@host/db", "duckdb://", "duckdb:///:memory:", "sqlite:///x"):
        for ran in each(qblock, file_of(spec, url)):
            check(ran, 2, r"duckdb:///")
            assert "s3cret" not in ran.err
    (tmp_path / "text.duckdb").write_text("no database " * 1000, encoding="utf-8")
    for ran in each(qblock, file_of(spec, f"duckdb:///{tmp_path / 'text.duckdb'}")):
        check(ran, 2, "not a valid DuckDB database file")
    directory = file_of(spec, f"duckdb:///{tmp_path}")
    for ran in each(qblock, directory):
        assert ran.status in (1, 2)
        assert str(tmp_path) in ran.err


def test_a_login_that_is_refused(postgresql_url: str, qblock, spec) -> None:
    nobody = sa.make_url(postgresql_url).set(username="qblock_nobody", password="s3cret")
    for ran in each(qblock, file_of(spec, nobody.render_as_string(hide_password=False))):
        check(ran, 1, "database not reachable: .*qblock_nobody")
        assert "s3cret" not in ran.err
    gone = sa.make_url(postgresql_url).set(database="qblock_gone").render_as_string(hide_password=False)
    for ran in each(qblock, file_of(spec, gone)):
        check(ran, 1, "database not reachable: .*/qblock_gone: there is no database of that name")


HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


def test_another_process_holds_the_duckdb_file(qblock, spec, tmp_path: Path) -> None:
    file = tmp_path / "warehouse.duckdb"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for ran in each(qblock, file_of(spec, f"duckdb:///{file}")):
            check(
                ran,
                4,
                "another process holds the DuckDB file: ",
                f"PID {holder.pid}",
                "wait until it has closed the file",
            )
        holder.kill()


def test_a_command_line_that_is_wrong(qblock) -> None:
    for arguments, said in (
        (["serach"], "No such command 'serach'"),
        (["search"], "Missing argument 'SPEC'"),
        (["search", "x", "--nodez"], "No such option: --nodez"),
        (["hierarchy", "check"], "Missing argument 'SPEC'"),
        (["audit"], "say what to audit: a SPEC, or --url, --table, --quasi-identifier and --sensitive"),
        (["audit", "x.yaml", "--url", "duckdb:///x"], "say what to audit"),
        (["audit", "--url", "duckdb:///x"], "--url needs --table and at least one --quasi-identifier"),
        (["init"], "Missing argument 'URL|FILE'"),
    ):
        ran = qblock(*arguments)
        assert (ran.status, ran.out) == (2, ""), arguments
        assert said in ran.err
    for arguments in (["--help"], ["search", "--help"], ["--version"], ["hierarchy", "-h"]):
        ran = qblock(*arguments)
        assert (ran.status, ran.err) == (0, "")
        assert ran.out


def test_faults_of_the_program_are_no_traceback(qblock, spec, warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_of(spec, warehouse("people", PEOPLE))

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a row: secret")

    monkeypatch.setattr("qblock.search.run.run_search", broken)
    ran = qblock("search", file)
    check(ran, 1, r"internal error \(ZeroDivisionError\); --debug prints the traceback on a terminal")
    assert "secret" not in ran.err


def test_the_command_itself(spec, warehouse) -> None:
    """The same as a process of its own: status and streams."""
    file = file_of(spec, warehouse("people", PEOPLE), privacy=[{"k_anonymity": {"k": 9}}])
    command = [sys.executable, "-W", "error", "-c", "from qblock.cli import main; main()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for arguments, status in ((["search", str(file), "--json"], 3), (["search"], 2), (["schema"], 0)):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, timeout=120)
        assert done.returncode == status, done.stderr
        assert done.stdout.startswith("{") == (status != 2)
        assert ("qblock: no node satisfies" in done.stderr) == (status == 3)
        assert "Traceback" not in done.stderr
