"""What an editor shows of each key of a spec: a sentence and examples, by the section that the key is in."""

from __future__ import annotations

from typing import Any

Told = tuple[str, tuple[Any, ...]]
FINEST: Told = (
    "The width of the cells that values are read as; nothing finer is counted or published.",
    (1, 0.5),
)
LABELS: Told = (
    "How ranges of whole numbers are written: 15-19, or [15, 20), as those of other numbers are.",
    ("half_open",),
)
MAX: Told = ("The highest level that may be published; no highest where it is left out.", (2,))

SECTIONS: dict[str, dict[str, Told]] = {
    "Spec": {
        "version": ("The format of the file.", (1,)),
        "release": ("The name of the release: letters, digits and _, at most 40.", ("inpatients",)),
        "source": (
            "Where the rows come from.",
            ({"url": "${WAREHOUSE_URL}", "table": "clinic.inpatient"}, {"file": "people.parquet"}),
        ),
        "attributes": (
            "The columns by name, each with its role; a column that is not named is not published.",
            ({"patient_id": "identifying", "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [5, 10]}}},),
        ),
        "entity": ("The column that says who a row is about.", ("patient_id",)),
        "count": ("Whether models count rows or the people whom the rows are about.", ("rows", "entities")),
        "privacy": (
            "Privacy models; all must hold.",
            ([{"k_anonymity": {"k": 5}}, {"t_closeness": {"t": 0.3, "sensitive": "diagnosis"}}],),
        ),
        "suppression_limit": (
            "How many rows may be left out: a fraction of the rows below 1, or a number of rows from 1.",
            (0, 0.02, 50),
        ),
        "search": ("How a node is found and chosen.", ({"choose_by": "loss"},)),
        "publish": ("Where readers find the view.", ({"schema": "published", "readers": ["analyst"]},)),
        "private": (
            "Of Spark alone: where ledger and private copies are.",
            ({"url": "duckdb:///qblock/ledger.duckdb", "path": "/data/private"},),
        ),
        "versions": ("How versions are checked together, and kept.", ({"keep": 5, "stale_after": "8d"},)),
    },
    "Source": {
        "url": ("The SQLAlchemy URL of the database; secrets come from the environment.", ("${WAREHOUSE_URL}",)),
        "table": ("The table or view.", ("clinic.inpatient",)),
        "file": (
            "Parquet or CSV files instead of a table: a path relative to the spec, or a pattern of several.",
            ("people.parquet", "parts/*.csv"),
        ),
        "types": ("The types of CSV columns that are not text.", ({"age": "integer", "seen": "date"},)),
    },
    "Attribute": {
        "role": (
            "What the column is: identifying is never published, a quasi_identifier is generalized, sensitive is what "
            "must not be found out, insensitive is published as it is.",
            ("quasi_identifier", "sensitive"),
        ),
        "hierarchy": (
            "How values of a quasi-identifier get coarser, level by level up to *.",
            ("suppress", {"ranges": [5, 10, 20]}, {"digits": 5}, {"file": "hierarchies/age.csv"}),
        ),
        "nulls": (
            "What NULL is: refused, * at every level (quasi-identifier), or a value (sensitive).",
            ("refuse", "top"),
        ),
        "uncovered": (
            "What becomes of values that the hierarchy lacks: refused, published as *, or their rows wait.",
            ("refuse", "top", "quarantine"),
        ),
        "taxonomy": ("Groups of sensitive values, as a hierarchy.", ({"file": "hierarchies/condition.csv"},)),
        "order": ("The order of sensitive values, for distances.", ("ascending", ["low", "middle", "high"])),
        "domain": ("The sensitive values that there are.", ("observed", ["low", "middle", "high"])),
    },
    "Digits": {
        "digits": ("The length of the codes; each level masks one character more.", (5,)),
        "from": ("The end at which masking begins.", ("right", "left")),
        "max": MAX,
    },
    "Ranges": {
        "ranges": ("The width of the ranges at each level; each is a multiple of the one before.", ([5, 10, 20],)),
        "start": ("Where a range begins.", (0,)),
        "from": ("Bottom coding: what lies below the first range from here on is one open label, <15.", (15,)),
        "to": ("Top coding: what lies from the last range up to here on is one open label, >=90.", (90,)),
        "labels": LABELS,
        "finest": FINEST,
        "max": MAX,
    },
    "Edges": {
        "edges": ("Where ranges begin: below the first, and from the last on, labels are open.", ([0, 1, 5, 10],)),
        "labels": LABELS,
        "finest": FINEST,
        "max": MAX,
    },
    "Dates": {
        "dates": ("The calendar unit of each level, finer first.", (["month", "year"], ["week", "iso_year"])),
        "finest": ("The unit that values are read as; nothing finer is counted or published.", ("day", "month")),
        "max": MAX,
    },
    "Cuts": {
        "cuts": (
            "Cells between declared bounds, twice as wide at each level.",
            ({"min_width": 5, "low": 0, "high": 120},),
        ),
        "labels": LABELS,
        "max": MAX,
    },
    "Cutting": {
        "start": ("Where a cut lies; `low` unless given.", (0, "2000-01-01")),
        "min_width": ("The width of the cells of level 1; of dates, days.", (5, 30)),
        "low": ("The lower bound, which is inside.", (0, "2000-01-01")),
        "high": ("The upper bound, which is inside.", (120, "2030-12-31")),
    },
    "CsvFile": {
        "file": ("A CSV file with a header, one row for each value, leaf first.", ("hierarchies/age.csv",)),
        "layout": ("As other tools write it: semicolons, and no header.", ("semicolons",)),
        "max": MAX,
    },
    "DimensionTable": {
        "table": ("A table of the warehouse with one row for each value.", ("dimensions.region",)),
        "levels": ("Its columns, leaf first.", (["town", "county", "country"],)),
        "max": MAX,
    },
    "Search": {
        "recoding": ("One level for all rows, or labels of its own for every block.", ("multidimensional",)),
        "strategy": ("How the lattice is searched; all find the same minimal nodes.", ("chains", "incognito")),
        "choose_from": ("Minimal nodes, or nodes chosen by block sizes alone and then checked.", ("sizes",)),
        "choose_by": ("The metric by which one node is chosen.", ("discernibility", "loss")),
        "workload": (
            "The queries of query_error: how many are drawn, or a list.",
            ({"queries": 500, "seed": 1}, [{"age": {"from": 20, "to": 29}, "gender": ["Female"]}]),
        ),
        "weights": ("What quasi-identifiers count in loss, precision and non_uniform_entropy.", ({"age": 3},)),
        "node": (
            "A node that is checked and not searched for; of a recoding map the version that has it.",
            ({"age": 2, "gender": 0}, [2, 0], {"version": 1}),
        ),
        "answer": ("Every minimal node, or the one to choose alone, which may be faster.", ("best",)),
        "within": ("The time after which the best that was come to is taken.", ("60s", "5m")),
        "roll_up": ("Where nodes are counted once the rows are coded.", ("auto", "local")),
        "memory_limit": ("How much memory counting may take.", ("512MB", "4GB")),
    },
    "workload": {
        "queries": ("How many queries are drawn.", (200,)),
        "seed": ("Another seed draws other queries.", (0,)),
        "attributes": ("How many quasi-identifiers a query is about.", (2,)),
        "selectivity": ("The share of evenly spread rows that answer a query.", (0.05,)),
        "from": ("The least value, included.", (20, "2000-01-01")),
        "to": ("The greatest value, included.", (29, "2000-12-31")),
    },
    "Publish": {
        "url": ("Of DuckDB alone, and needed there: the release file.", ("duckdb:///published.duckdb",)),
        "schema": ("The schema of the view.", ("published",)),
        "view": ("The name of the view; the release's name unless given.", ("inpatients",)),
        "readers": ("Roles of PostgreSQL that may read the view.", (["analyst"],)),
        "ranges": (
            "How bounds of numbers and dates stand beside labels: two columns each, one of a range type, or none.",
            ("columns", "native", "text"),
        ),
        "names": (
            "Other names for helper views and for the columns of bounds and of people, by their own.",
            ({"levels": "stays_labels", "age_low": "age_from"},),
        ),
        "people": ("Whether it is published how many people each block has, with `count: entities`.", (True, False)),
        "lock_timeout": ("Seconds that readers may have to wait behind a publication.", (1,)),
        "storage_version": (
            "Of DuckDB alone: the oldest version of DuckDB that has to read the release file.",
            ("v1.5.0", "v1.2.0"),
        ),
        "path": ("Of Spark alone: where the published tables are stored.", ("/data/published",)),
        "readers_checked": (
            "Of Spark alone: who saw to it that readers reach publish.path and not private.path.",
            ("by operator",),
        ),
    },
    "Private": {
        "url": (
            "The database of the ledger: a file ledger.duckdb, or PostgreSQL.",
            ("duckdb:///qblock/ledger.duckdb",),
        ),
        "path": ("Where the cluster stores what nobody but the job may read.", ("/data/private",)),
    },
    "Versions": {
        "joint": ("How versions are checked together; none where nobody keeps an older one.", ("episodes", "none")),
        "audience": ("Other releases that the same readers may hold.", (["outpatients"],)),
        "on_refusal": (
            "What a run does where changes would not pass beside earlier versions.",
            ("hold_back", "refuse"),
        ),
        "cohort": ("How many newcomers of a block are shown together.", ("auto", 20)),
        "skip": ("How often a batch of newcomers is set aside unseen, where models need it.", (0.01,)),
        "row_counts": ("Whether it may be known how many rows somebody has in a block.", ("unknown", "known")),
        "max_lag": ("The share of the rows beyond which a release is lagging.", (0.05,)),
        "max_wait": ("The time beyond which a release is lagging.", ("8w",)),
        "keep": ("How many versions are kept for rollback.", (3,)),
        "stale_after": ("The age at which the release counts as stale.", ("36h", "8d")),
        "confirm": ("The digest of a source that may be published though very many people went or came.", ("0" * 64,)),
    },
    "prior": {
        "values": ("The weight of each sensitive value.", ({"flu": 3, "cancer": 1},)),
        "from_table": ("A table whose rows are the prior.", ("census.people",)),
        "column": ("Its column of sensitive values.", ("diagnosis",)),
        "where": ("The rows that count, by equal values.", ({"year": 2025},)),
    },
    "population": {"table": ("A table of the whole population, with the quasi-identifiers.", ("census.people",))},
    "predicates": {
        "table": ("A table of statements that the attacker may believe.", ("clinic.guards",)),
        "entity": ("Its column that says who it is about.", ("patient_id",)),
        "value": ("Its column of sensitive values.", ("diagnosis",)),
        "group": ("Its column that groups values into one statement.", ("statement",)),
    },
}
"""Sections by the name of their class, or of the key whose value they are."""

PARAMETERS: dict[str, str] = {
    "k": "how many people look the same",
    "l": "how diverse the sensitive values of people who look the same are",
    "c": "how frequent the most frequent value may be, as a multiple of the rarer ones together",
    "c1": "how frequent the most frequent value may be, as a multiple of the rarer ones together",
    "c2": "how frequent the protected values may be, in percent",
    "allowed": "sensitive values that may be found out",
    "protected": "sensitive values that must stay rare",
    "epsilon": "how much may be learned: in epsilon_privacy a factor, in epsilon_m_anonymity how close is similar",
    "m": "how many values there are for each that lies close",
    "relative": "whether closeness is a share of the value",
    "delta": "how close values are similar, or how far a block may differ from the table",
    "reading": "which of two readings of the paper is meant",
    "t": "how far sensitive values of people who look the same may be from those of the table",
    "distance": "how far two distributions are apart",
    "bandwidth": "of the kernel of the distance kernel_js",
    "n": "how many people a group to compare with has at least",
    "variant": "which form of the definition is meant",
    "adversary": "the class of the attacker",
    "stubbornness": "how much weight the attacker gives to what they believed before",
    "at_most": "whether attackers of less stubbornness count too",
    "prior": "what the attacker believes before",
    "known": "of how many other people the attacker knows the values",
    "predicates": "which statements about somebody must not be believed much more than before",
    "alpha": "the share that a sensitive value may have among people who look the same",
    "values": "the sensitive values that this is about",
    "beta": "how much more frequent a value may be than in the table",
    "absent": "what a value is that people who look the same do not have",
    "population": "the table of the whole population",
    "min": "the least probability of being in the table",
    "max": "the greatest probability of being in the table",
}
"""Parameters of the models: what each is, in a few words."""
