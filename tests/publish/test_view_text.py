"""Whether a view is the one that was made does not depend on how a server writes its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from release.jobs import Job

from qblock.publish.targets.postgresql_view import View
from qblock.release.verify import verify

pytestmark = [
    pytest.mark.every_postgresql(alone=True),
    pytest.mark.usefixtures("postgresql_version"),
    pytest.mark.handed_on,
]


@pytest.fixture
def engine_name() -> str:
    """A DuckDB file has the text of its views in it."""
    return "postgresql"


def on_the_server(job: Job) -> None:
    job.change(f'ALTER DATABASE "{sa.make_url(job.url).database}" SET quote_all_identifiers = on')


def of_the_login(job: Job) -> None:
    job.change(
        "ALTER ROLE CURRENT_USER IN DATABASE CURRENT_DATABASE SET quote_all_identifiers = on".replace(
            "CURRENT_DATABASE", f'"{sa.make_url(job.url).database}"'
        )
    )


@pytest.mark.parametrize("turn_on", [on_the_server, of_the_login])
def test_settings_of_the_server_republish_nothing(job: Job, turn_on: Callable[[Job], None]) -> None:
    job.begin()
    turn_on(job)
    assert job.query("SHOW quote_all_identifiers") == [("on",)]
    assert (job.run().status, verify(job.spec).problems) == ("unchanged", ())
    assert job.run(force=True).version == 2
    job.change(f'ALTER DATABASE "{sa.make_url(job.url).database}" RESET ALL')
    job.change(f'ALTER ROLE CURRENT_USER IN DATABASE "{sa.make_url(job.url).database}" RESET ALL')
    assert (job.run().status, verify(job.spec).problems) == ("unchanged", ())


def test_a_view_that_an_earlier_program_made_under_another_setting_is_known(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sessions had the setting of the server, which wrote the text of the view by it."""
    sign = View.sign

    def signed(self: View, connection: sa.Connection, *given: Any) -> None:
        connection.exec_driver_sql("SET LOCAL quote_all_identifiers = on")
        sign(self, connection, *given)
        connection.exec_driver_sql("SET LOCAL quote_all_identifiers = off")

    with monkeypatch.context() as before:
        before.setattr(View, "sign", signed)
        assert job.run().version == 1
    assert (job.run().status, verify(job.spec).problems) == ("unchanged", ())


def signed_elsewhere(job: Job) -> None:
    """As another version of the server would have written the view's text, for the digest in its comment."""
    job.change(f"UPDATE qblock.view SET digest = '{'0' * 64}'")


def test_a_view_that_another_server_version_wrote_otherwise_is_known(job: Job) -> None:
    job.run()
    signed_elsewhere(job)
    oid = job.query("SELECT oid, xmin FROM pg_class WHERE oid = 'published.people'::regclass")
    assert (job.run().status, verify(job.spec).problems) == ("unchanged", ())
    assert job.run(force=True).version == 2
    assert job.query("SELECT oid, xmin FROM pg_class WHERE oid = 'published.people'::regclass") == oid


@pytest.mark.parametrize(
    "altered",
    [
        "CREATE OR REPLACE VIEW published.people AS SELECT zip, age, age_low, age_high, disease, ward "
        "FROM qblock.data_people",
        "ALTER VIEW published.people RESET (security_barrier)",
        "ALTER VIEW published.people SET (security_invoker = true)",
        "ALTER VIEW published.people RENAME COLUMN ward TO place",
    ],
)
def test_an_altered_view_is_found_whatever_its_comment_says(job: Job, altered: str) -> None:
    job.begin()
    signed_elsewhere(job)
    job.change(altered)
    assert verify(job.spec).problems != ()
    assert job.run().version == 2
    assert (len(job.published()), verify(job.spec).problems) == (12, ())
