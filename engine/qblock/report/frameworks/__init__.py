"""Reports in the order of documents on anonymisation: each a table of sections, in a module of its own."""

from __future__ import annotations

from qblock.errors import InputError, choices
from qblock.report.frameworks.ema import EMA
from qblock.report.frameworks.hipaa import HIPAA
from qblock.report.frameworks.iso27559 import ISO27559
from qblock.report.frameworks.sections import Facts as Facts
from qblock.report.frameworks.sections import Framework
from qblock.report.frameworks.sp800_188 import SP800_188
from qblock.report.frameworks.tehdas import TEHDAS
from qblock.report.frameworks.wp29 import WP29

FRAMEWORKS = {framework.name: framework for framework in (EMA, HIPAA, WP29, SP800_188, ISO27559, TEHDAS)}


def framework_of(name: str) -> Framework:
    """The framework of this name. Raises InputError for another."""
    if name not in FRAMEWORKS:
        raise InputError(f"no report is in the order of {name}; {choices(FRAMEWORKS, name)}")
    return FRAMEWORKS[name]
