"""The files that a release lives on."""

from __future__ import annotations

from collections.abc import Iterator

from qblock.files import OwnFile
from qblock.ledger.stores import has_place, place_of
from qblock.spec import Spec
from qblock.warehouse.connect import parse_url
from qblock.warehouse.engines import database_file, engine_of
from qblock.warehouse.source_files import found_files


def own_files(spec: Spec) -> Iterator[OwnFile]:
    """Those of a spec: itself, source, release file, hierarchies, private folder."""
    yield OwnFile(spec.path, "the spec")
    place = place_of(spec) if has_place(spec) else None
    if place is not None and place.file is not None:
        yield OwnFile(place.folder, "in the private folder of qblock", folder=True)
    for url, what in ((spec.source.url, "the source"), (spec.publish.url, "the release file")):
        if url is None or not engine_of(parse_url(url.url)).is_file:
            continue
        file = database_file(parse_url(url.url), spec.directory)
        yield OwnFile(file, what)
        yield OwnFile(file.with_name(f"{file.name}.wal"), f"what DuckDB writes for {what}")
    if spec.source.file is not None:
        for file in found_files(spec.source.file, spec.directory, spec.at("source", "file")):
            yield OwnFile(file, "the source")
    for name, attribute in spec.attributes.items():
        for kind in ("hierarchy", "taxonomy"):
            source = getattr(attribute, kind)
            stated = spec.file(source) if source is not None and not isinstance(source, str | tuple) else None
            if stated is not None:
                yield OwnFile(stated, f"the {kind} of {name}")
