"""The page on which somebody chooses the role of each column: one file, with the spec as it is for these roles."""

from __future__ import annotations

from qblock.profiling.roles import ROLES, Roles
from qblock.report.render import TEMPLATES, page
from qblock.search.nodes import MOST_NODES
from qblock.version import __version__

MEANINGS = {
    "quasi_identifier": "others may know it",
    "sensitive": "nobody may learn it",
    "identifying": "never published",
    "left out": "not in this release",
}


def roles_page(roles: Roles) -> str:
    """The HTML of the page."""
    script = (TEMPLATES / "roles.js").read_text("utf-8")
    data = {**roles.to_json(), "most": MOST_NODES}
    return page("roles.html.j2", script, data=data, roles=ROLES, meanings=MEANINGS, program=__version__)
