"""Faults in what is copied out of a server: rows that are lost, entities, and more than the memory limit."""

from __future__ import annotations

from mutation.mutation import Mutation

PULL = "tests/warehouse/test_pull.py"
LOCAL = "tests/source/test_local.py"

ROLLED_UP: tuple[Mutation, ...] = (
    Mutation(
        "pull: the last pages are left out",
        "engines/postgresql/adapter.py",
        "AND ctid < format('(%s,0)', page + {pages})::tid)",
        "AND ctid < format('(%s,0)', least(page + {pages}, {number}) - 1)::tid)",
        tests=(f"{PULL}::test_every_row_once",),
    ),
    Mutation(
        "pull: a word that is unknown is left out",
        "engines/postgresql/adapter.py",
        "            if len({len(column) for column in piece.values()}) > 1:\n",
        "            if False:\n",
        tests=(f"{PULL}::test_a_null_is_not_left_out",),
    ),
    Mutation(
        "pull: a rest below a part is left out",
        "engines/queries.py",
        "    if count:\n        yield",
        "    if count >= values:\n        yield",
        tests=(f"{PULL}::test_every_row_once",),
    ),
    Mutation(
        "local: every row is an entity",
        "engines/queries.py",
        "sa.func.dense_rank()",
        "sa.func.row_number()",
        tests=(f"{LOCAL}::test_people_are_told_apart_as_the_column_does",),
    ),
    Mutation(
        "local: what identifies entities is copied",
        "source/open.py",
        "    if sets.entities:\n",
        "    if False:\n",
        tests=(f"{LOCAL}::test_what_identifies_people_stays", f"{LOCAL}::test_the_answer_is_the_same"),
    ),
    Mutation(
        "local: lost rows are not counted",
        "source/open.py",
        "    if rows != sets.rows:\n",
        "    if rows > sets.rows:\n",
        tests=(f"{LOCAL}::test_a_row_that_is_lost_is_noticed",),
    ),
    Mutation(
        "local: entities take no room",
        "source/open.py",
        "BYTES * (words + entities) * SHARE",
        "BYTES * words * SHARE",
        tests=(f"{LOCAL}::test_limits",),
    ),
    Mutation(
        "local: the rows of a server are brought, however few",
        "source/open.py",
        "rows * nodes >= LEAST_COUNTED",
        "True",
        tests=(f"{LOCAL}::test_where_it_does_not_pay_the_table_stays",),
    ),
    Mutation(
        "roll_up: a pinned node copies the table",
        "search/run.py",
        "    if not settled or all_nodes:\n",
        "    if True:\n",
        tests=(f"{LOCAL}::test_one_node_is_counted_where_the_table_is",),
    ),
    Mutation(
        "roll_up: rows leave the server where they may not",
        "search/run.py",
        'if embedded or search.roll_up == "warehouse":',
        "if embedded:",
        tests=(f"{LOCAL}::test_comparisons_and_populations",),
    ),
    Mutation(
        "digest: where nodes are counted is another spec",
        "spec/digest.py",
        '"answer", "roll_up", "memory_limit"),',
        '"answer", "memory_limit"),',
        tests=("tests/spec/test_spec_digest.py::test_what_cannot_change_the_publication_takes_no_part",),
    ),
)
