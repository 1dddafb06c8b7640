"""A first version that was refused for its values is not tried again, unless something else is asked.

Shown later with one person more, the others would be known to be what was refused; and a version without them would
tell that they were (docs/steady-job.md sections 2 and 5).
"""

from __future__ import annotations

import json

import sqlalchemy as sa

from qblock.ledger.events import canonical
from qblock.spec import Spec, spec_digest
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.lag.memory import REFUSED, save_state

REMEMBERED = (
    "The next run does not try again while the spec asks the same, whoever is in the source by then: repeating it "
    "could reveal values to anyone who saw this refusal. Change what the spec asks (models, node, attributes), or use "
    "--force if nobody outside knows of it"
)
NOT_AGAIN = (
    "the first version of release {release} was refused, and the spec asks the same: repeating it could reveal values "
    "to anyone who saw the refusal; nothing is published. Change what the spec asks (models, node, attributes), or use "
    "--force if nobody outside knows of it"
)
AGAIN = (
    "a first version was refused before, and people of it are tried again: this may reveal their values to anyone who "
    "saw that refusal"
)


def depends_on_values(spec: Spec) -> bool:
    """Whether a version can be refused for the sensitive values of its people. Of people with several rows it can for
    one that everybody in a block holds, whatever the models are."""
    if spec.bundles and spec.sensitives:
        return True
    return any(model.about.steady != "sizes" for requirement in spec.privacy for model in requirement.models)


def refused_before(crosswalk: Crosswalk, spec: Spec) -> bool | None:
    """Whether a first version was refused under the same spec (True) or another one; None where none was."""
    t = crosswalk.tables.steady
    text = crosswalk.own.scalar(sa.select(t.c.state).where(t.c.release == spec.release))
    state = {} if text is None else json.loads(text)
    return spec_digest(spec) == state["spec"] if state.get("form") == REFUSED else None


def remember(crosswalk: Crosswalk, spec: Spec) -> None:
    """Remember that the first version was refused."""
    save_state(crosswalk, spec.release, canonical({"form": REFUSED, "spec": spec_digest(spec)}))
