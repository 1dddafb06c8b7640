"""Weekly runs of the job on a table of hospital stays: `python -m benchmarks.stays [--patients N] [--weeks W]`.

Patients have one stay or more. In each week the table grows by a hundredth, half of that by patients who are new and
half by those who are known, and of one row in a thousand the diagnosis is corrected. Prints what became of the runs,
how long new units waited, how far the view lagged, and the time of a run in units of one GROUP BY over the raw columns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import psycopg
import pyarrow as pa

from benchmarks.clock import summary
from benchmarks.units import one_group_by
from benchmarks.weeks import Source, report, weekly

SEED = 20_263
DIAGNOSES, REGIONS = 30, 40
GROWS, CORRECTED = 100, 1000
"""One in so many rows is added, and one in so many corrected, in a week."""
SPEC = """version: 1
release: stays
source: {{url: "{url}", table: {table}}}
entity: patient_id
count: entities
attributes:
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  birth: {{role: quasi_identifier, hierarchy: {{ranges: [10, 20]}}}}
  region: {{role: quasi_identifier, hierarchy: suppress}}
  diagnosis: {{role: sensitive}}
privacy:
  - k_anonymity: {{k: 10}}
  - distinct_l_diversity: {{l: 3, sensitive: diagnosis}}
search: {{node: {node}}}
publish: {publish}
"""


class Stays(Source):
    """The table in DuckDB or PostgreSQL."""

    def __init__(self, url: str, directory: Path) -> None:
        super().__init__(url, directory)
        self.table = "stays"

    def create(self, rows: pa.Table) -> None:
        columns = "stay_id bigint, patient_id bigint, sex varchar, birth integer, region integer, diagnosis varchar"
        if self.url.startswith("duckdb"):
            with self._file() as connection:
                connection.execute(f"CREATE OR REPLACE TABLE stays ({columns})")
        else:
            with psycopg.connect(self.url) as connection:
                connection.execute(f"DROP TABLE IF EXISTS stays; CREATE TABLE stays ({columns})")
        self.add(rows)

    def add(self, rows: pa.Table) -> None:
        if self.url.startswith("duckdb"):
            with self._file() as connection:
                connection.register("added", rows)
                connection.execute("INSERT INTO stays BY NAME SELECT * FROM added")
            return
        into = f"COPY stays ({', '.join(rows.column_names)}) FROM STDIN"
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor, cursor.copy(into) as copy:
            for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                copy.write_row(row)

    def change(self, added: pa.Table, corrected: pa.Table) -> None:  # type: ignore[override]
        """Add rows, and give some another diagnosis (by stay_id)."""
        self.add(added)
        if self.url.startswith("duckdb"):
            with self._file() as connection:
                connection.register("corrected", corrected)
                connection.execute(
                    "UPDATE stays SET diagnosis = corrected.diagnosis FROM corrected "
                    "WHERE corrected.stay_id = stays.stay_id"
                )
            return
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE corrected (stay_id bigint, diagnosis varchar)")
            rows = list(zip(*(column.to_pylist() for column in corrected.columns), strict=True))
            cursor.executemany("INSERT INTO corrected VALUES (%s, %s)", rows)
            cursor.execute(
                "UPDATE stays SET diagnosis = corrected.diagnosis FROM corrected "
                "WHERE corrected.stay_id = stays.stay_id"
            )

    def _file(self) -> duckdb.DuckDBPyConnection:
        return duckdb.connect(str(self.directory / self.url.removeprefix("duckdb:///")))


class Patients:
    """Who stays, and who stays in each week. Of the first ones each has one stay, and as many stays are of anybody."""

    def __init__(self, patients: int) -> None:
        self.random = np.random.default_rng(SEED)
        most = 4 * patients
        self.sex = self.random.integers(0, 2, most)
        self.birth = self.random.integers(1930, 2010, most)
        self.region = self.random.integers(0, REGIONS, most)
        self.patients = self.rows = 0
        shares = 1 / np.arange(1, DIAGNOSES + 1)
        self.shares = shares / shares.sum()
        self.first = self._stays(patients, patients)

    @property
    def size(self) -> int:
        """How many rows the source has."""
        return self.rows

    def week(self) -> tuple[pa.Table, pa.Table]:
        rows = self.rows
        corrected = self.random.choice(rows, rows // CORRECTED, replace=False)
        changes = pa.table({"stay_id": corrected, "diagnosis": self._diagnoses(len(corrected))})
        return self._stays(rows // GROWS // 2, rows // GROWS - rows // GROWS // 2), changes

    def _stays(self, new: int, known: int) -> pa.Table:
        who = np.arange(self.patients, self.patients + new)
        self.patients += new
        who = np.concatenate([who, self.random.integers(0, self.patients, known)])
        numbers = np.arange(self.rows, self.rows + len(who))
        self.rows += len(who)
        return pa.table(
            {
                "stay_id": numbers,
                "patient_id": who,
                "sex": np.where(self.sex[who] == 0, "f", "m"),
                "birth": self.birth[who],
                "region": self.region[who],
                "diagnosis": self._diagnoses(len(who)),
            }
        )

    def _diagnoses(self, n: int) -> list[str]:
        return [f"d{code:02}" for code in self.random.choice(DIAGNOSES, n, p=self.shares)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patients", type=int, default=100_000, help="who have twice as many stays")
    parser.add_argument("--weeks", type=int, default=52)
    parser.add_argument("--node", default="0,1,1", help="levels of sex, birth and region")
    parser.add_argument("--url", help="a PostgreSQL database to load and measure instead of DuckDB")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    node = [int(level) for level in arguments.node.split(",")]
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        source = Stays(arguments.url or "duckdb:///warehouse.duckdb", directory)
        patients = Patients(arguments.patients)
        source.create(patients.first)
        publish = "{schema: published, view: stays}" if arguments.url else "{url: 'duckdb:///p.duckdb', view: stays}"
        table = "public.stays" if arguments.url else "stays"
        source.table = table
        spec = directory / "release.yaml"
        spec.write_text(SPEC.format(url=source.url, table=table, node=node, publish=publish), "utf-8")
        unit = one_group_by(spec)
        stats = weekly(source, spec, patients, arguments.weeks)
    stats["times"] = {kind: summary(taken, unit) for kind, taken in stats["times"].items() if taken}
    stats |= {
        "engine": "postgresql" if arguments.url else "duckdb",
        "people": arguments.patients,
        "churn": 1 / GROWS,
        "node": node,
        "expected": None,
        "group by": dict(zip(("seconds", "cpu"), unit, strict=True)),
    }
    if arguments.json:
        print(json.dumps(stats, indent=2))
    else:
        report(stats)


if __name__ == "__main__":
    main()
