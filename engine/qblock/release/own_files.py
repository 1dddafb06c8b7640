"""The files that a release lives on, which nothing else may be written to."""

from __future__ import annotations

from collections.abc import Iterator

from qblock.engines.engine import database_file
from qblock.engines.registry import engine_of, parse_url
from qblock.engines.source_files import found_files
from qblock.files import OwnFile
from qblock.ledger.stores import has_store, store_of
from qblock.spec import Spec


def own_files(spec: Spec) -> Iterator[OwnFile]:
    """Spec, source, release file, hierarchies, private folder."""
    yield OwnFile(spec.path, "the spec")
    store = store_of(spec) if has_store(spec) else None
    if store is not None and store.file is not None:
        yield OwnFile(store.folder, "in the private folder of qblock", folder=True)
    yield from _databases(spec)
    if spec.source.file is not None:
        for file in found_files(spec.source.file, spec.directory, spec.at("source", "file")):
            yield OwnFile(file, "the source")
    for name, attribute in spec.attributes.items():
        for kind in ("hierarchy", "taxonomy"):
            source = getattr(attribute, kind)
            stated = spec.file(source) if source is not None and not isinstance(source, str | tuple) else None
            if stated is not None:
                yield OwnFile(stated, f"the {kind} of {name}")


def _databases(spec: Spec) -> Iterator[OwnFile]:
    """Those of source and release, where they are files, with what DuckDB writes beside each."""
    for url, what in ((spec.source.url, "the source"), (spec.publish.url, "the release file")):
        if url is None or not engine_of(parse_url(url.url)).is_file:
            continue
        file = database_file(parse_url(url.url), spec.directory)
        yield OwnFile(file, what)
        yield OwnFile(file.with_name(f"{file.name}.wal"), f"what DuckDB writes for {what}")
