"""The page on which somebody chooses the role of each column: one file, with the spec as it is for these roles."""

from __future__ import annotations

from qblock.profiling.roles import ROLES, Roles
from qblock.report.render import page, scripts
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
    data = {**roles.to_json(), "most": MOST_NODES}
    return page(
        "roles.html.j2", scripts("roles.js", "copy.js"), data=data, roles=ROLES, meanings=MEANINGS, program=__version__
    )
