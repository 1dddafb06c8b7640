"""The page on which somebody chooses what to publish: one file, with the nodes and the program that compares them."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from markupsafe import Markup

from qblock.printable import printable_json
from qblock.report.render import TEMPLATES, environment
from qblock.search.explorer import Options
from qblock.version import __version__

ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
"""What could end the element that holds the data, as JSON writes it within its texts."""


def explorer_page(options: Options) -> str:
    """The HTML of the page."""
    data = options.to_json()
    script = (TEMPLATES / "explorer.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = environment().get_template("explorer.html.j2")
    page = template.render(
        data=data,
        notes=_notes(options),
        embedded=Markup(embedded(data)),
        script=Markup(script),
        digest=digest,
        program=__version__,
    )
    return page + "\n"


def embedded(data: dict[str, Any]) -> str:
    """JSON that stays within its element, whatever a name holds."""
    text = printable_json(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    for character, escape in ESCAPED.items():
        text = text.replace(character, escape)
    return text


def _notes(options: Options) -> list[str]:
    """Where the page chooses otherwise than a search of the spec, and what its choice tells."""
    spec = options.task.spec
    notes = ["Here no row is suppressed."]
    if spec.suppression_limit:
        notes = ["Here no row is suppressed. Your suppression_limit may let a search take more detail."]
    if spec.search.recoding == "multidimensional":
        notes.append("Here each column has one level. Your spec asks for a map, which keeps more detail.")
    if spec.search.choose_from == "sizes":
        notes.append("Your spec chooses by group sizes alone. This page looks at sensitive values, too.")
    if spec.search.within is not None:
        notes.append("Your spec ends a search after some time. This page has every choice.")
    if options.barred:
        notes.append(
            f"{len(options.barred):,} choices fail whatever you ask: everybody in a group shares a value, or a group "
            "is smaller than search.box of your spec."
        )
    notes.append("The level of detail itself can hint at sensitive values to someone who knows how you choose.")
    return notes
