"""Releases whose hierarchies are files as other tools write them."""

from __future__ import annotations

import pytest

from qblock.cli.app import run
from qblock.report import read_report
from qblock.source.in_words import node_in_words
from release.jobs import MakeJob


def test_a_release_is_the_same_whatever_the_layout_of_its_files(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    ages = [23, 27, 29, 31, 34, 38] * 2
    attributes = {"age": {"role": "quasi_identifier", "hierarchy": {"file": "age.csv"}}, "disease": "sensitive"}
    given = {"attributes": attributes, "privacy": [{"k_anonymity": {"k": 4}}], "versions": {"joint": "none"}}
    job = make_job({"age": ages, "disease": ["flu", "heart"] * 6}, {"age": "INTEGER"}, **given)
    rows = [f"{age},{age // 10}0-{age // 10}9,*" for age in sorted(set(ages))]
    (job.folder / "age.csv").write_text("\n".join(["age,age_1,age_2", *rows, ""]))
    first = job.run()
    directory = job.folder / "other"
    assert run(["hierarchy", "build", str(job.write()), "--directory", str(directory), "--layout", "semicolons"]) == 0
    assert (directory / "age.csv").read_text() == "\n".join([row.replace(",", ";") for row in rows] + [""])
    job.settings["attributes"]["age"]["hierarchy"] = {"file": "other/age.csv", "layout": "semicolons"}
    again = job.run(force=True)
    assert (again.digest, again.node) == (first.digest, first.node)
    assert node_in_words(job.spec, {"age": 1}) == (("age", "at level 1"),)
    assert run(["hierarchy", "build", str(job.write()), "--layout", "tabs", "--directory", str(directory)]) == 2
    assert "--layout tabs: no such layout; valid: header, semicolons" in capsys.readouterr().err


def test_a_taxonomy_in_that_layout_is_read_by_the_report(make_job: MakeJob) -> None:
    disease = {"role": "sensitive", "taxonomy": {"file": "disease.csv", "layout": "semicolons"}}
    attributes = {"age": {"role": "quasi_identifier", "hierarchy": "suppress"}, "disease": disease}
    given = {"attributes": attributes, "privacy": [{"k_anonymity": {"k": 2}}], "versions": {"joint": "none"}}
    job = make_job({"age": [1, 2] * 4, "disease": ["flu", "heart"] * 4}, {"age": "INTEGER"}, **given)
    (job.folder / "disease.csv").write_text("flu;short;*\nheart;long;*\n")
    job.run()
    assert "similarity" in {one.attack for one in read_report(job.spec).shown.attacks}
