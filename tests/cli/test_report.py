"""report, and release --report: the file, its forms, and what is not written."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import duckdb
import pytest

from qblock.cli.app import run

SPEC = """\
version: 1
release: patients
source: {url: "duckdb:///patients.duckdb", table: main.patients}
entity: patient_id
attributes:
  patient_id: identifying
  age: {role: quasi_identifier, hierarchy: {ranges: [10, 20, 40]}}
  sex: {role: quasi_identifier, hierarchy: suppress}
  diagnosis: sensitive
privacy:
  - k_anonymity: {k: 4}
publish: {url: "duckdb:///published.duckdb", schema: main, view: patients}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with duckdb.connect(str(tmp_path / "patients.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE patients AS SELECT 'secret' || i AS patient_id, 20 + (i * 7) % 50 AS age, "
            "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, "
            "['flu', 'cold', 'asthma'][i % 3 + 1] AS diagnosis FROM range(1, 241) AS n(i)"
        )
    (tmp_path / "release.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_report_in_each_form(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["release", "release.yaml", "--quiet"]) == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    capsys.readouterr()
    assert run(["report", "release.yaml", "-o", "report.html"]) == 0
    said = capsys.readouterr().out
    assert said == "Report of version 1 of patients in report.html: all guarantees hold\n"
    page = (folder / "report.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert len(page.encode()) < 500_000
    assert "secret" not in page
    assert str(folder) not in page
    assert run(["report", "release.yaml", "--output", "report.md"]) == 0
    assert run(["report", "release.yaml", "--output", "other.txt", "--format", "md"]) == 0
    capsys.readouterr()
    assert run(["report", "release.yaml", "--format", "md"]) == 0
    printed = capsys.readouterr().out
    texts = [printed, (folder / "report.md").read_text("utf-8"), (folder / "other.txt").read_text("utf-8")]
    assert len({text[: text.rindex("Made on")] for text in texts}) == 1
    assert printed.startswith("# patients, version 1\n")
    assert run(["report", "release.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert run(["report", "release.yaml", "--output", "report.json"]) == 0
    written = json.loads((folder / "report.json").read_text("utf-8"))
    assert found["published"] == written["published"]
    assert found["published"]["rows"] == 240
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_a_report_in_the_order_of_a_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["release", "release.yaml", "--quiet"]) == 0
    (folder / "patients.duckdb").unlink()
    capsys.readouterr()
    assert run(["report", "release.yaml", "--for", "wp29", "--format", "md"]) == 0
    printed = capsys.readouterr().out
    assert "\n## Opinion 05/2014 (WP216)\n" in printed
    assert "\n## Verdict\n" not in printed
    assert "secret" not in printed
    assert run(["report", "release.yaml", "--for", "wp29", "-o", "wp29.html"]) == 0
    said = "Report of version 1 of patients in wp29.html: all guarantees hold; 7 of 10 sections answered, 3 open\n"
    assert capsys.readouterr().out == said
    assert run(["report", "release.yaml", "--for", "wp29", "--json"]) == 0
    framework = json.loads(capsys.readouterr().out)["framework"]
    assert framework["name"] == "wp29"
    assert {section["answered"] for section in framework["sections"]} == {"figure", "gap"}


def test_a_declared_threshold_is_said_in_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["release", "release.yaml", "--quiet"]) == 0
    for threshold, said in (("1", "the threshold is met"), ("0.0001", "THE THRESHOLD IS NOT MET")):
        (folder / "release.yaml").write_text(SPEC + f"report: {{threshold: {threshold}}}\n")
        capsys.readouterr()
        assert run(["report", "release.yaml", "-o", "report.html"]) == 0
        line = "Report of version 1 of patients in report.html: all guarantees hold"
        assert capsys.readouterr().out == f"{line}, {said}\n"


def test_a_population_that_is_too_small_is_bad_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["release", "release.yaml", "--quiet"]) == 0
    (folder / "release.yaml").write_text(SPEC + "report: {population: {size: 239}}\n")
    assert run(["report", "release.yaml", "-o", "report.html"]) == 2
    said = "".join(capsys.readouterr().err.splitlines())
    assert "release.yaml:13: report.population.size: 239 people are fewer than the 240 of the table" in said
    assert not (folder / "report.html").exists()


def test_what_cannot_be_written_is_said_before_anything_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "sub").mkdir()
    wrong = {
        ("-o", "release.yaml"): "is the spec, which would be lost",
        ("-o", "patients.duckdb"): "which would be lost",
        ("-o", "none/report.html"): "there is no folder none; make it",
        ("-o", "sub"): "it is a folder; name a file",
        ("-o", "r.html", "--format", "pdf"): "--format pdf: no such form; valid: html, json, md",
        ("--format", "pdf"): "no such form",
        ("-o", "r.html", "--json"): "give one of them",
        ("-o", "r.html", "--prior", "table"): "add --internal",
        ("-o", "r.html", "--for", "emma"): "did you mean ema? valid: ema, hipaa, wp29, sp800-188, iso27559, tehdas",
        ("-o", "r.html", "--for", "ema", "--candidate"): "a report for ema is about what is published",
        (
            "-o",
            "r.html",
            "--version",
            "1",
        ): "is always of the version that they see. Add --internal",
        ("-o", "r.html", "--version", "1", "--candidate"): "give one of them",
        (): "name it with -o report.html",
    }
    for options, message in wrong.items():
        assert run(["report", "release.yaml", *options]) == 2
        assert message in capsys.readouterr().err
    assert run(["report", "release.yaml", "-o", "r.html"]) == 3
    assert "no version of release patients is published" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["patients.duckdb", "release.yaml", "sub"]


def test_the_job_writes_the_report_of_what_it_has_published(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["release", "release.yaml", "--quiet", "--report", "none/report.html"]) == 2
    assert "there is no folder none" in capsys.readouterr().err
    assert not (folder / "published.duckdb").exists()
    assert run(["release", "release.yaml", "--quiet", "--dry-run", "--report", "report.html"]) == 2
    assert run(["release", "release.yaml", "--quiet", "--report", "report.json"]) == 0
    assert json.loads((folder / "report.json").read_text("utf-8"))["published"]["version"] == 1
    assert run(["release", "release.yaml", "--quiet", "--force", "--report", "report.json"]) == 0
    assert json.loads((folder / "report.json").read_text("utf-8"))["published"]["version"] == 2
    # Nothing has changed: the report is that of the version that is there.
    (folder / "report.json").unlink()
    assert run(["release", "release.yaml", "--quiet", "--report", "report.json"]) == 0
    assert (folder / "report.json").exists()


def test_a_report_that_fails_changes_nothing_else(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def full(file: Path, other: Path) -> None:
        if other.name == "report.html":
            raise OSError(28, "No space left on device")
        replace(file, other)

    (folder / "report.html").write_text("the last one")
    monkeypatch.setattr(os, "replace", full)
    assert run(["release", "release.yaml", "--quiet", "--report", "report.html"]) == 0
    said = capsys.readouterr()
    assert "Published version 1" in said.out
    assert "there is no report: report.html: cannot be written: No space left on device; what was there" in said.err
    assert (folder / "report.html").read_text() == "the last one"
    assert run(["report", "release.yaml", "-o", "report.html"]) == 1
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_what_is_for_those_who_run_the_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "release.yaml", "--candidate", "-o", "candidate.html", "--quiet"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("Report of release patients before its first version in candidate.html\n", "")
    assert not (folder / "published.duckdb").exists()
    assert run(["report", "release.yaml", "--internal", "-o", "internal.html", "--quiet"]) == 3
    assert run(["release", "release.yaml", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["report", "release.yaml", "--internal", "-o", "internal.html", "--quiet"]) == 0
    assert "all guarantees hold" in capsys.readouterr().out
    page = (folder / "internal.html").read_text("utf-8")
    assert 'class="lattice"' in page
    assert "secret1" not in page
    assert run(["report", "release.yaml", "--internal", "--version", "7", "-o", "r.html", "--quiet"]) == 2
    assert "version 7 of release patients is not kept; kept: 1" in capsys.readouterr().err
    assert run(["report", "release.yaml", "--internal", "--version", "1", "-o", "r.html", "--quiet"]) == 0
    assert "Version 1 is the one that readers see." in (folder / "r.html").read_text("utf-8")
    capsys.readouterr()
    assert run(["report", "release.yaml", "--internal", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)["internal"]
    assert found["lattice"]["total"] == 10
    assert [one["state"] for one in found["runs"]] == ["published"]


def test_a_report_that_is_not_for_readers_is_for_its_owner_alone(folder: Path) -> None:
    assert run(["release", "release.yaml", "--quiet"]) == 0
    names = {"readers.html": [], "candidate.html": ["--candidate"], "internal.json": ["--internal"]}
    umask = os.umask(0o022)
    try:
        for name, options in names.items():
            (folder / name).write_text("the one before", "utf-8")
            (folder / name).chmod(0o666)
            assert run(["report", "release.yaml", *options, "-o", name, "--quiet"]) == 0
    finally:
        os.umask(umask)
    modes = {name: oct(stat.S_IMODE((folder / name).stat().st_mode)) for name in names}
    assert modes == {"readers.html": "0o644", "candidate.html": "0o600", "internal.json": "0o600"}
