"""DuckDB's errors in our own words."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path

import duckdb

from qblock.engines.faults import VIEW, of_client, original_of, said, while_reading
from qblock.errors import Busy, InputError, QblockError
from qblock.files import no_room

DUCKDB: tuple[tuple[type[Exception], str], ...] = (
    (duckdb.ConversionException, f"could not convert a value: {VIEW}"),
    (duckdb.OutOfRangeException, f"met a number out of its type's range: {VIEW}"),
    (duckdb.TypeMismatchException, f"could not convert a value: {VIEW}"),
    (duckdb.DataError, f"could not use a value: {VIEW}"),
    (duckdb.ConstraintException, "refused a row: it breaks a constraint of its table"),
    (duckdb.InvalidInputException, f"could not use a value: {VIEW}"),
    (duckdb.CatalogException, "found no table or function of a name that a statement or a view uses; correct the view"),
    (
        duckdb.BinderException,
        "refused a statement; a column or type in it is another one than a view expects; correct the view",
    ),
    (duckdb.PermissionException, "was refused access; check who has permission to read and write the file"),
    (duckdb.OutOfMemoryException, "has no memory left; raise search.memory_limit, or make room on the disk for spill"),
    (duckdb.HTTPException, "could not read a remote file"),
    (duckdb.IOException, "could not read or write a file: it is damaged, or its disk is; put it back from its backup"),
    (duckdb.ConnectionException, "has the file open in another way; close it first"),
    (duckdb.TransactionException, "could not end a transaction; run again"),
    (duckdb.NotImplementedException, "cannot do what a statement or a view asks for"),
    (duckdb.SerializationException, "could not read a file: it was written by another version, or is damaged"),
    (duckdb.InternalException, "met an internal fault"),
    (duckdb.FatalException, "met a fatal fault; the file may be damaged"),
)
_LOCKED = r'IO Error: Could not set lock on file "([^"]*)"'
_HOLDER = r"\(PID (\d+)\)"
_NO_DATABASE = r'IO Error: The file "([^"]*)" exists, but it is not a valid DuckDB database file'
_ABSENT = r'IO Error: Cannot open (?:database|file) "([^"]*)"'
_FULL = r'(?:file "([^"]*)"[^"]*)?(?:No space left on device|Disk quota exceeded)'
_ATTACHED = (
    r'(?:Binder|Resource In Use) Error: (?:Unique file handle conflict|database with name "[^"]*" already exists)'
)
_STORAGE = r"IO Error: .* version number (\d+), but we can only read versions between (\d+) and (\d+)\."
_DAMAGED = (
    r"(?:IO Error: )?Corrupt database file(: computed checksum \d+ does not match stored checksum \d+)?"
    r'|IO Error: Could not read enough bytes from file "([^"]*)"'
)
_REASON = "|".join(re.escape(os.strerror(code)) for code in errno.errorcode)
"""What the system says of a file that cannot be read or written, in constant words."""


def interrupted(error: BaseException) -> bool:
    """Whether a DuckDB error is its answer to Ctrl-C, or to a statement that was interrupted otherwise."""
    original = original_of(error)
    if isinstance(original, duckdb.InterruptException):
        return True
    # For a signal in the middle of a statement its client raises a plain RuntimeError because of what the signal's
    # handler has raised; a RuntimeError without that is a fault, as of a thread that could not be started.
    causes = (original.__cause__, original.__context__)
    return type(original) is RuntimeError and any(isinstance(cause, KeyboardInterrupt) for cause in causes)


def explain_duckdb(error: BaseException, reading: Sequence[str] = (), file: Path | None = None) -> QblockError:
    """The error to raise for one of DuckDB's: who holds the file (4), what is not a database (2), or a fault (1).

    file: the one that was opened.
    """
    original = original_of(error)
    if match := re.search(_FULL, str(original)):
        # Of the text nothing but the name of a file is repeated.
        return no_room(match[1] or "a file of DuckDB")
    if isinstance(original, duckdb.Error) and (fault := _of_file(str(original), file)):
        return fault
    where = while_reading(reading) or (f" of the database {file}" if file is not None else "")
    for class_, what in DUCKDB:
        if isinstance(original, class_):
            reason = re.search(_REASON, str(original)) if class_ is duckdb.IOException else None
            more = f"{type(original).__name__}: {reason[0]}" if reason else type(original).__name__
            return QblockError(f"DuckDB {said(what, f'{where} ({more})')}")
    if isinstance(original, duckdb.Error):
        return QblockError(f"DuckDB reported an error{where} ({type(original).__name__})")
    return of_client("DuckDB", original, where)


def _of_file(text: str, file: Path | None) -> QblockError | None:
    """What is known of a file by DuckDB's text. Nothing of it is repeated but names of files and numbers of storage."""
    if match := re.match(_LOCKED, text):
        holder = re.search(_HOLDER, text)
        by = f" (PID {holder[1]})" if holder else ""
        return Busy(f"another process holds the DuckDB file: {match[1]}{by}; wait until it has closed the file")
    if match := re.match(_NO_DATABASE, text):
        return InputError(f"{match[1]} is not a valid DuckDB database file; name another one")
    if match := re.match(_ABSENT, text):
        return QblockError(f"database not reachable: the DuckDB file {match[1]} cannot be opened")
    if re.match(_ATTACHED, text):
        return Busy("another process or thread holds the DuckDB file; wait until it has closed the file")
    if match := re.match(_STORAGE, text):
        if int(match[1]) < int(match[2]):
            return QblockError(
                f"{file or 'a file'} was written by an older DuckDB (storage {match[1]}) than the installed "
                f"{duckdb.__version__} can read. Export it with the DuckDB that wrote it, and import it with this one"
            )
        return QblockError(
            f"{file or 'a file'} was written by a newer DuckDB (storage {match[1]}) than the installed "
            f"{duckdb.__version__}, which reads storage up to {match[3]}. Upgrade it: pip install --upgrade duckdb"
        )
    if match := re.match(_DAMAGED, text):
        name = match[2] or file or "a file of DuckDB"
        return QblockError(f"{name} is damaged{match[1] or ''}; put it back from its backup")
    return None


def of_newer_duckdb(error: BaseException) -> bool:
    """Whether a file was written by a newer DuckDB than the installed one, which cannot tell what is in it."""
    match = re.match(_STORAGE, str(original_of(error)))
    return match is not None and int(match[1]) > int(match[3])
