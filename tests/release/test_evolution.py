"""What an earlier program has published is run, verified and rolled back by this one, on both engines."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from alembic import command
from alembic.config import Config

from qblock.ledger import events
from qblock.ledger.events import canonical
from qblock.ledger.history import history
from qblock.ledger.parameters import newest, parameter_json, parameters_text
from qblock.ledger.place import SCHEMA
from qblock.ledger.reader import ledger_reader
from qblock.ledger.stores import place_of
from qblock.ledger.writer import ledger_transaction
from qblock.models import Model, asked
from qblock.release import run
from qblock.release.plan import plan
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.resources import migrations_directory
from qblock.spec import spec_digest
from release.jobs import Job

pytestmark = pytest.mark.either_engine

PRIVACY = [
    {"k_anonymity": {"k": 3}},
    {"t_closeness": {"t": 0.9}},
    {"pd_recursive_cl_diversity": {"c": 9, "l": 2, "allowed": ["flu"]}},
    {"npd_recursive_cl_diversity": {"c1": 9, "c2": 0, "l": 2}},
]


def format_0(models: Sequence[Model]) -> str:
    """Parameters as the ledger had them before formats had numbers."""
    return canonical({name: parameter_json(value) for name, value in asked(models[0]).items()})


def publish_as_before(job: Job) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "spec_digest", lambda spec: spec_digest(spec, 0))
        patch.setattr(events, "parameters_text", format_0)
        job.run()


@pytest.fixture
def earlier(job: Job) -> Job:
    """Version 1 of a release, published by the program before formats had numbers."""
    publish_as_before(job.set(privacy=PRIVACY))
    with ledger_reader(place_of(job.spec)) as reader:
        (current,) = [e for e in reader.history("people") if e.state == "published"]
        kept = [row["parameters"] for row in reader._rows("people").guarantees[current.number]]
    assert current.spec_digest == spec_digest(job.spec, 0) != spec_digest(job.spec)
    assert all("format" not in text for text in kept)
    assert '"bandwidth":null' in "".join(kept)
    return job


def test_an_upgrade_publishes_nothing_again(earlier: Job) -> None:
    assert (earlier.run().status, earlier.run().version) == ("unchanged", 1)


def test_an_upgrade_does_not_stop_verification(earlier: Job) -> None:
    found = verify(earlier.spec)
    assert found.problems == []
    assert found.not_recomputed == []


def test_an_upgrade_does_not_stop_a_rollback(earlier: Job) -> None:
    assert earlier.run(force=True).version == 2
    found = rollback(earlier.spec, 1)
    assert (found.status, found.version) == ("rolled_back", 1)
    assert verify(earlier.spec).problems == []
    assert rollback(earlier.spec, 1).status == "unchanged"


def test_the_room_is_followed_across_an_upgrade(earlier: Job) -> None:
    earlier.run(force=True)
    trend = history(earlier.spec)["headroom_trend"]
    second = [row for row in trend if row["version"] == 2]
    assert len(second) == len(trend) // 2 >= len(PRIVACY)
    assert all(row["headroom_change"] == 0 for row in second if row["headroom"] is not None)


def test_another_spec_is_still_another_one(earlier: Job) -> None:
    asked = [{"k_anonymity": {"k": 2}}, *PRIVACY[1:]]
    assert verify(earlier.set(privacy=asked).spec).not_recomputed != []


def test_parameters_in_any_format_are_the_same_ones(earlier: Job) -> None:
    for requirement in earlier.spec.privacy:
        name, text = requirement.model.name, parameters_text(requirement.models)
        assert newest(name, format_0(requirement.models)) == text
        assert newest(name, text) == text
        assert json.loads(text)["format"] == 1
    # Nothing is guessed about what a later program has written, or another one.
    for unknown in ('{"format":7,"k":3}', "no JSON", '"a text"', "[1,2]"):
        assert newest("k_anonymity", unknown) == unknown
    assert newest("a_later_model", '{"k":3}') == '{"k":3}'


@pytest.mark.parametrize("revision", ["0001", "0004", "0006"])
def test_a_ledger_of_an_older_schema_is_planned_for_and_upgraded(job: Job, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations_directory()).replace("%", "%%"))
    with ledger_transaction(place_of(job.spec)) as connection:
        if job.engine == "postgresql":
            connection.exec_driver_sql(f"CREATE SCHEMA {SCHEMA}")
            connection.exec_driver_sql(f"SET LOCAL search_path = {SCHEMA}")
        config.attributes["connection"] = connection
        config.attributes["schema"] = SCHEMA if job.engine == "postgresql" else None
        command.upgrade(config, revision)
    assert f"from revision {revision}" in plan(job.spec).steps[1].describe()
    assert (job.run().status, job.run().status) == ("published", "unchanged")
