"""Wrong input and faults, each done to a job that has published version 1: what is done, and how the next run ends.

`python -m tests.faults.table` prints what each of them said and left behind; test_wrong.py holds it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from release.jobs import ATTRIBUTES, Job

from qblock.ledger.stores import store_of

ENGINES = ("duckdb", "postgresql")
NEW = "INSERT INTO people VALUES ('new', '13053', 33, 'flu', 'A')"


@dataclass(frozen=True)
class Wrong:
    """do: what is done to the job; may give the text that stands in the spec file instead, or the path of another one.

    during: holds while the job runs. options: of the command line.
    """

    what: str
    status: int
    says: str
    do: Callable[[Job], object] = lambda _: None
    engines: Sequence[str] = ENGINES
    during: Callable[[Job], Any] | None = None
    options: tuple[str, ...] = ()
    text: str | None = None


def with_(**settings: Any) -> Callable[[Job], object]:
    return lambda job: job.set(**settings)


def attribute(**changes: Any) -> Callable[[Job], object]:
    return with_(attributes=ATTRIBUTES | changes)


def privacy(*models: dict[str, Any]) -> Callable[[Job], object]:
    return with_(privacy=list(models))


def without(key: str) -> Callable[[Job], object]:
    return lambda job: job.settings.pop(key)


def publish(**changes: Any) -> Callable[[Job], object]:
    return lambda job: job.set(publish=job.settings["publish"] | changes)


def change(*statements: str) -> Callable[[Job], object]:
    def do(job: Job) -> None:
        for statement in statements:
            job.change(statement)

    return do


def zips(text: str | bytes) -> Callable[[Job], object]:
    """A hierarchy of zip in a file of this content."""

    def do(job: Job) -> None:
        (job.folder / "zip.csv").write_bytes(text.encode() if isinstance(text, str) else text)
        job.set(attributes=ATTRIBUTES | {"zip": {"role": "quasi_identifier", "hierarchy": {"file": "zip.csv"}}})

    return do


def both(*steps: Callable[[Job], object]) -> Callable[[Job], object]:
    def do(job: Job) -> None:
        for step in steps:
            step(job)

    return do


def source(**changes: Any) -> Callable[[Job], object]:
    return lambda job: job.set(source=job.settings["source"] | changes)


ZIPS = "zip,area\n13053,1\n13068,1\n14853,2\n14850,2\n"
ENTITY = with_(entity="name")
FREE = with_(versions={"joint": "none"})


@contextmanager
def locked(job: Job) -> Iterator[None]:
    """Another run of the release, in a thread of its own."""
    entered, leave = threading.Event(), threading.Event()
    spec = job.spec

    def hold() -> None:
        with store_of(spec).lock(spec.release):
            entered.set()
            leave.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait(60)
    try:
        yield
    finally:
        leave.set()
        holder.join()


def not_a_database(job: Job) -> None:
    (job.folder / "other.duckdb").write_text("this is no database")
    source(url=f"duckdb:///{job.folder}/other.duckdb")(job)
    # A release of its own: another source under the name of this one is refused before it is opened.
    job.set(release="other", publish=job.settings["publish"] | {"url": f"duckdb:///{job.folder}/other_release.duckdb"})


def newer_ledger(job: Job) -> None:
    statement = "UPDATE {}alembic_version SET version_num = '9999'"
    if job.engine == "postgresql":
        job.change(statement.format("qblock."))
        return
    with closing(sqlite3.connect(str(store_of(job.spec).file), isolation_level=None)) as connection:
        connection.execute(statement.format(""))


def altered_event(job: Job) -> None:
    statement = "UPDATE {}event SET rows_published = 11 WHERE state = 'published'"
    if job.engine == "postgresql":
        job.change(statement.format("qblock."))
        return
    with closing(sqlite3.connect(str(store_of(job.spec).file), isolation_level=None)) as connection:
        connection.execute(statement.format(""))


def in_the_source(job: Job) -> None:
    publish(url=job.settings["source"]["url"])(job)


def view_taken(job: Job) -> None:
    job.change("CREATE VIEW published.mine AS SELECT 1 AS one")
    publish(view="mine")(job)


def folder_open(job: Job) -> None:
    (job.folder / "qblock").chmod(0o755)


def folder_shut(job: Job) -> None:
    publish(url=f"duckdb:///{job.folder}/absent/release.duckdb")(job)


def audience(job: Job) -> None:
    job.set(entity="name", release="again", versions={"audience": ["people"]})
    publish(view="again", **({"url": f"duckdb:///{job.folder}/again.duckdb"} if job.engine == "duckdb" else {}))(job)


UNREACHABLE = "postgresql://clerk:s3cret@127.0.0.1:1/none"

CASES = [
    # The spec as a file.
    Wrong("the spec is absent", 2, "cannot be read", text="(absent)"),
    Wrong("the spec is empty", 2, "is empty|expected|mapping", text=""),
    Wrong("the spec is a list", 2, "mapping", text="- 1\n"),
    Wrong("the spec is no YAML", 2, r"spec\.yaml:\d+", text="release: [1,\n"),
    Wrong("a key twice", 2, r"release.*(twice|again|duplicate)", text="version: 1\nrelease: a\nrelease: b\n"),
    Wrong("an unknown key", 2, "did you mean privacy", with_(privcy=1)),
    Wrong("no release name", 2, "release", without("release")),
    Wrong("no privacy", 2, "privacy", without("privacy")),
    Wrong("an empty list of models", 2, "privacy", with_(privacy=[])),
    Wrong("another version of the spec", 2, "version", with_(version=2)),
    Wrong("a release name that is none", 2, "release", with_(release="a b;c")),
    Wrong("an environment variable that is not set", 2, "variable NO_SUCH is not set", source(url="${NO_SUCH}")),
    # Columns and roles.
    Wrong("an unknown role", 2, "quasi_identifier", attribute(zip="quasi")),
    Wrong("an unknown column", 2, "no column 'zipp'; did you mean zip", attribute(zipp="insensitive")),
    Wrong("no quasi-identifier", 2, "quasi_identifier", with_(attributes={"disease": "sensitive"})),
    Wrong("no sensitive attribute for a model that has one", 2, "sensitive", attribute(disease="insensitive")),
    Wrong("an unknown builder", 2, "hierarchy", attribute(zip={"role": "quasi_identifier", "hierarchy": "sort"})),
    Wrong("no digits", 2, "digits", attribute(zip={"role": "quasi_identifier", "hierarchy": {"digits": 0}})),
    Wrong(
        "ranges that do not nest",
        2,
        "ranges",
        attribute(age={"role": "quasi_identifier", "hierarchy": {"ranges": [4, 6]}}),
    ),
    Wrong(
        "dates of a number", 2, "date", attribute(age={"role": "quasi_identifier", "hierarchy": {"dates": ["month"]}})
    ),
    Wrong(
        "a hierarchy of a sensitive attribute",
        2,
        "taxonomy|hierarchy",
        attribute(disease={"role": "sensitive", "hierarchy": "suppress"}),
    ),
    # Hierarchies.
    Wrong(
        "a hierarchy file that is absent", 2, r"zip\.csv", both(zips(""), lambda job: (job.folder / "zip.csv").unlink())
    ),
    Wrong("an empty hierarchy file", 2, r"zip\.csv", zips("")),
    Wrong("a value missing in a hierarchy", 2, "1 value of column zip .* missing in its hierarchy", zips(ZIPS[:-8])),
    Wrong(
        "a hierarchy that is not nested",
        2,
        r"zip\.csv:3: label \(not shown\) .* one parent",
        zips("zip,a,b\n13053,1,x\n13068,1,y\n"),
    ),
    Wrong(
        "a duplicate leaf", 2, r"zip\.csv:6: duplicate leaf \(not shown\), first on line 2", zips(ZIPS + "13053,1\n")
    ),
    Wrong("a line with too few values", 2, r"zip\.csv:6", zips(ZIPS + "14851\n")),
    Wrong("a hierarchy file that is not UTF-8", 2, r"zip\.csv.*UTF-8", zips(b"zip,area\n\xff\xfe,1\n")),
    Wrong(
        "a dimension table that is absent",
        2,
        "table zipps does not exist",
        attribute(zip={"role": "quasi_identifier", "hierarchy": {"table": "zipps", "levels": ["zip", "area"]}}),
    ),
    Wrong(
        "a dimension table without that column",
        2,
        "has no column 'area'",
        attribute(zip={"role": "quasi_identifier", "hierarchy": {"table": "people", "levels": ["zip", "area"]}}),
    ),
    # The data.
    Wrong(
        "NULL in a quasi-identifier",
        2,
        "column zip is NULL in 1 row; write `nulls: top`",
        both(FREE, change(NEW.replace("'13053'", "NULL"))),
    ),
    Wrong(
        "NULL in a sensitive column",
        2,
        "column disease is NULL in 1 row; write `nulls: value`",
        both(FREE, change(NEW.replace("'flu'", "NULL"))),
    ),
    Wrong(
        "a sensitive value outside the domain",
        2,
        "missing in its taxonomy or domain",
        attribute(disease={"role": "sensitive", "domain": ["flu", "heart"]}),
    ),
    Wrong("an empty table", 3, "is empty: there is nothing to release", change("DELETE FROM people")),
    Wrong("a table that is gone", 2, "table people does not exist", change("DROP TABLE people")),
    Wrong("a column that is gone", 2, "no column 'ward'", change("ALTER TABLE people DROP COLUMN ward")),
    Wrong("a column of another type", 2, "age", change("ALTER TABLE people ALTER COLUMN age TYPE VARCHAR")),
    Wrong(
        "a column published as is that singles out rows",
        3,
        "nearly single out rows",
        both(FREE, attribute(name="insensitive")),
    ),
    Wrong(
        "an entity that is NULL",
        2,
        "column name is NULL in 1 row",
        both(ENTITY, FREE, change(NEW.replace("'new'", "NULL"))),
    ),
    Wrong("an entity in two rows", 2, "count: entities", both(ENTITY, FREE, change(NEW, NEW))),
    Wrong("an entity column that is absent", 2, "no column 'nmae'", both(FREE, with_(entity="nmae"))),
    # Models.
    Wrong(
        "an unknown model",
        2,
        "k_anonimity is not a model; did you mean k_anonymity",
        privacy({"k_anonimity": {"k": 2}}),
    ),
    Wrong("an unknown parameter", 2, "kk is not a parameter of k_anonymity", privacy({"k_anonymity": {"kk": 2}})),
    Wrong("k = 0", 2, "k = 0 is out of range", privacy({"k_anonymity": {"k": 0}})),
    Wrong("k = 2.5", 2, "not a whole number", privacy({"k_anonymity": {"k": 2.5}})),
    Wrong("entropy l below 1", 2, "out of range", privacy({"entropy_l_diversity": {"l": 0.5}})),
    Wrong("t above 1", 2, "t = 2 is out of range", privacy({"t_closeness": {"t": 2}})),
    Wrong(
        "n above the table",
        2,
        r"n = 50 is out of range; valid: 1 <= n <= N",
        privacy({"nt_closeness": {"n": 50, "t": 0.2}}),
    ),
    Wrong(
        "the ordered distance without an order",
        2,
        "needs of the sensitive attribute disease an ord",
        privacy({"t_closeness": {"t": 0.2, "distance": "ordered"}}),
    ),
    Wrong(
        "the hierarchical distance without a taxonomy",
        2,
        "taxonomy",
        privacy({"t_closeness": {"t": 0.2, "distance": "hierarchical"}}),
    ),
    Wrong(
        "a population that is absent",
        2,
        "table register does not exist",
        privacy({"k_map": {"k": 2, "population": "register"}}),
    ),
    Wrong(
        "a population without the rows of the source",
        2,
        "population",
        both(
            change("CREATE TABLE register AS SELECT * FROM people WHERE age < 30"),
            privacy({"k_map": {"k": 2, "population": "register"}}),
        ),
    ),
    Wrong(
        "a model for a column that is not sensitive",
        2,
        "is not a sensitive attribute",
        privacy({"distinct_l_diversity": {"l": 2, "sensitive": "ward"}}),
    ),
    Wrong(
        "a prior for a value that is not there",
        2,
        "not in the domain",
        privacy({"epsilon_privacy": {"epsilon": 9, "adversary": "III", "prior": {"values": {"gout": 1}}}}),
    ),
    # What nothing satisfies.
    Wrong("k above the table", 3, "the most general node satisfies k 12", privacy({"k_anonymity": {"k": 500}})),
    Wrong("more values than there are", 3, "no node satisfies", privacy({"distinct_l_diversity": {"l": 9}})),
    Wrong("a pinned node that fails", 3, r"pinned node \[0, 0\] fails", with_(search={"node": [0, 0]})),
    Wrong(
        "a pinned node outside the lattice", 2, r"node \[9, 0\] is not in the lattice", with_(search={"node": [9, 0]})
    ),
    Wrong("a pinned node without a level", 2, "one per quasi_identifier|levels", with_(search={"node": {"zip": 1}})),
    Wrong("a suppression limit of 1.5", 2, "suppression_limit", with_(suppression_limit=1.5)),
    Wrong("an unknown strategy", 2, "chains", with_(search={"strategy": "fast"})),
    # Where it is published.
    Wrong("the target is the source's file", 2, "release", in_the_source, ("duckdb",)),
    Wrong("no file of its own", 2, "file of its own", lambda job: job.settings["publish"].pop("url"), ("duckdb",)),
    Wrong("a folder that is not there", 2, "absent|folder", folder_shut, ("duckdb",)),
    Wrong("the private schema as target", 2, "private schema", publish(schema="qblock"), ("postgresql",)),
    Wrong(
        "a reader that does not exist", 2, "no role 'nobody_here'", publish(readers=["nobody_here"]), ("postgresql",)
    ),
    Wrong("a name that is taken", 2, "already exists, a view", view_taken, ("postgresql",)),
    Wrong("a name that is too long", 2, "63", publish(view="v" * 64), ("postgresql",)),
    Wrong(
        "everybody may read the source",
        3,
        r"everybody \(PUBLIC\) has SELECT",
        both(change("GRANT SELECT ON people TO PUBLIC", NEW), FREE),
        ("postgresql",),
    ),
    # Versions.
    Wrong("changed data, and nobody said who a row is about", 3, "cannot be checked together", change(NEW)),
    Wrong(
        "earlier versions without a crosswalk",
        3,
        "has no crosswalk",
        both(with_(entity="name", versions={"on_refusal": "refuse"}), change(NEW)),
    ),
    Wrong("newcomers that wait for fewer than a block has", 2, "cohort", both(ENTITY, with_(versions={"cohort": 1}))),
    Wrong("an audience that cannot be checked with", 3, "of release people, which versions.audience names", audience),
    # Faults outside.
    Wrong(
        "a database that cannot be reached",
        1,
        "cannot|refused|connect",
        lambda job: job.set(
            source={"url": UNREACHABLE, "table": "people"}, publish={"schema": "published", "view": "people"}
        ),
    ),
    Wrong("a file that is no database", 2, "not a valid DuckDB database|database", not_a_database, ("duckdb",)),
    Wrong("a ledger of a newer program", 1, "newer|9999", newer_ledger),
    Wrong("a private folder that others may enter", 1, "chmod 700", folder_open, ("duckdb",)),
    Wrong("another run of the release", 4, "another run|holds", during=locked),
    Wrong("an unknown log format", 2, "valid: text, json", options=("--log-format", "xml")),
    Wrong("a hook that is no program", 2, "no program of that name", options=("--hook", "/no/such/program")),
    Wrong("a result file in no folder", 2, "--result", options=("--result", "/no/such/folder/result.json")),
]
