"""The spec of a table that somebody else generalized: its labels are values, and nothing is known of how they arose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qblock.spec.load import spec_of
from qblock.spec.model import Spec


def table_as_it_stands(
    url: str,
    table: str,
    quasi_identifiers: Sequence[str],
    sensitives: Sequence[str],
    *,
    taxonomies: Mapping[str, Mapping[str, str]] | None = None,
    path: str | Path = "command line",
) -> Spec:
    """A spec under which each quasi-identifier is shown or hidden, and NULL is a value of its own.

    taxonomies: `file` and `layout` by sensitive attribute; path: what messages call the spec, in whose folder relative
    files are. Raises InputError where one of them is not valid.
    """
    attributes: dict[str, Any] = {
        name: {"role": "quasi_identifier", "hierarchy": "suppress", "nulls": "top"} for name in quasi_identifiers
    }
    attributes |= {name: {"role": "sensitive", "nulls": "value"} for name in sensitives}
    for name, taxonomy in (taxonomies or {}).items():
        attributes[name]["taxonomy"] = dict(taxonomy)
    document = {
        "version": 1,
        "release": "audit",
        "source": {"url": url, "table": table},
        "attributes": attributes,
        "privacy": [{"k_anonymity": {"k": 1}}],
    }
    return spec_of(document, path)
