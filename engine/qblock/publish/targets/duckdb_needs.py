"""What a release on DuckDB needs of the file system: files have no rights of their own, and no roles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qblock.errors import InputError
from qblock.ledger.place import Place
from qblock.spec import Spec
from qblock.warehouse.rights import FileNeed, Needs
from qblock.warehouse.source_files import found_files

WHOLE = "whoever can read a DuckDB file reads everything in it, and DuckDB has no GRANT: the file system decides"
OFFICER = (
    "an officer reads the ledger as the user that the job runs as, or is given what `qblock history SPEC` prints: the "
    "private folder is closed to everybody else, since the crosswalk is there, too"
)


def needs(spec: Spec, place: Place, source: Path, file: Path, job: str | None, officer: str | None) -> Needs:
    """The files and folders of a release. source, file: those of the source and of the release.

    Raises InputError for a role, and for a source that names no file.
    """
    for option, role in (("--job", job), ("--officer", officer)):
        if role is not None:
            raise InputError(f"{option} {role}: DuckDB has no roles; leave it out. {OFFICER}")
    return Needs(
        "duckdb", str(file.parent), None, files=tuple(_files(spec, place, source, file)), notes=(WHOLE, OFFICER)
    )


def _files(spec: Spec, place: Place, source: Path, file: Path) -> Iterator[FileNeed]:
    sources = [source]
    if spec.source.file is not None:
        sources = found_files(spec.source.file, spec.directory, spec.at("source", "file"))
    if spec.path.is_file():
        yield FileNeed("job", "read", spec.path, "the spec")
    for name, attribute in spec.attributes.items():
        for kind in ("hierarchy", "taxonomy"):
            form = getattr(attribute, kind)
            stated = spec.file(form) if form is not None and not isinstance(form, str | tuple) else None
            if stated is not None:
                yield FileNeed("job", "read", stated, f"the {kind} of {name}")
    for path in sources:
        yield FileNeed("job", "read", path, "the source")
    yield FileNeed("job", "write", place.folder, "ledger, crosswalk and versions; made with mode 0700, and kept so")
    yield FileNeed("job", "write", file.parent, "a version is copied there and renamed into its place")
    yield FileNeed("reader", "read", file, "the release")
    yield FileNeed("reader", "none", place.folder, "ledger, crosswalk and versions")
    for path in sources:
        yield FileNeed("reader", "none", path, "the source")
