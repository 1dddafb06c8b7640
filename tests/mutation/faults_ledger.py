"""Faults in the evidence: chain, pointer, stamps, locks and the folder that they are in."""

from __future__ import annotations

from mutation.mutation import Mutation

CHAIN = "tests/ledger/test_ledger_chain.py"

LEDGER: tuple[Mutation, ...] = (
    Mutation(
        "chain: the digest is of the event alone",
        "ledger/events.py",
        '[_present(row, {"release", "number"}) for row in guarantees],',
        "[],",
        tests=(f"{CHAIN}::test_every_altered_column_is_found", f"{CHAIN}::test_guarantees_added_to_an_event_are_found"),
    ),
    Mutation(
        "chain: events need not follow each other",
        "ledger/reader.py",
        '            elif row["previous_digest"] != previous:',
        '            elif row["previous_digest"] is None and previous is not None:',
        tests=(f"{CHAIN}::test_a_replaced_row_breaks_the_chain",),
    ),
    Mutation(
        "chain: the first events may be missing",
        "ledger/reader.py",
        "            if number != expected:\n",
        "            if number != expected and previous is not None:\n",
        tests=(f"{CHAIN}::test_a_missing_row_is_found",),
    ),
    Mutation(
        "chain: a cut tail",
        "ledger/reader.py",
        "if expected_head is not None and expected_head not in digests:",
        "if expected_head is not None and not digests:",
        tests=(f"{CHAIN}::test_a_cut_tail_is_found_with_the_head_that_was_printed",),
    ),
    Mutation(
        "chain: a release that was moved has the events of its newest name",
        "ledger/chain.py",
        "    own = query.where(table.c.release == release, ~moved.exists())\n",
        "    own = query.where(table.c.release == release)\n",
        tests=("tests/release/test_move.py::test_a_moved_release_goes_on_with_its_evidence",),
    ),
    Mutation(
        "pointer: any version that was published will do",
        "ledger/reader.py",
        "        if pointer == published:\n",
        '        if pointer in [event["version"] for event in self._events(release)]:\n',
        tests=(f"{CHAIN}::test_a_moved_pointer_is_found",),
    ),
    Mutation(
        "reader: what the pointer contradicts is not read again",
        "ledger/reader.py",
        "            del self._kept[release]\n",
        "",
        tests=(f"{CHAIN}::test_a_reader_for_a_moment_reads_again_what_the_pointer_contradicts",),
    ),
    Mutation(
        "stamp: a version is known by its number",
        "ledger/stamps.py",
        "        if (version, stamp) in self.begun and not staged:",
        "        if version in {number for number, _ in self.begun} and not staged:",
        tests=("tests/release/test_stamps.py::test_a_version_of_the_same_number_and_another_stamp_is_unknown",),
    ),
    Mutation(
        "lock: a file of its name is there",
        "ledger/stores/files.py",
        "if not path.exists() or not os.path.samestat(path.stat(), os.fstat(file.fileno())):",
        "if not path.exists():",
        tests=("tests/ledger/test_lock.py::test_a_removed_lock_file_is_noticed",),
    ),
    Mutation(
        "lock: runs that hold it by another key are not looked for",
        "ledger/stores/postgresql_locks.py",
        "        if self.rival(key, shared=shared) is not None:\n            self._leave(",
        "        if not self._taken:\n            self._leave(",
        tests=("tests/ledger/test_lock.py::test_a_login_without_rights_holds_up_no_run",),
    ),
    Mutation(
        "folder: the group may enter",
        "ledger/store.py",
        "stat.S_IMODE(folder.stat().st_mode) & 0o077",
        "stat.S_IMODE(folder.stat().st_mode) & 0o007",
        tests=("tests/ledger/test_private.py",),
    ),
    Mutation(
        "event: a text is a count",
        "ledger/events.py",
        "    return value is None or isinstance(value, int)",
        "    return value is None or isinstance(value, int | str)",
        tests=("tests/ledger/test_ledger.py::test_values_of_the_source_do_not_get_in",),
    ),
)
