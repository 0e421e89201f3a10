"""The rows of the package's tables, read independently: features.py must have them as values."""

from __future__ import annotations

import inspect

from bellcrank import forces
from bellcrank.actuators import ACTUATORS
from bellcrank.build.compilation import TARGETS
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.loops.constraint_equations import CLOSURES
from bellcrank.dynamics.quantities import QUANTITIES
from bellcrank.emit.target import DTYPES
from bellcrank.exporting.export import EXPORT_FORMATS
from bellcrank.forces import Element
from bellcrank.integrate import INTEGRATORS
from bellcrank.model.joints import KINDS
from bellcrank.record.formats import SUFFIXES
from bellcrank.sim.program.events import ACTIONS
from bellcrank.sim.settings import FORMS
from crossing.parts import ABSTRACT, contacts


def rows() -> dict[str, list[str]]:
    """Return the names of all rows by the dimension that must contain them."""
    kinds = [x for name in forces.__all__ if inspect.isclass(x := getattr(forces, name)) and issubclass(x, Element)]
    elements = [x.__name__ for x in kinds if x not in (*ABSTRACT, forces.Contact)]
    return {
        "joint": list(KINDS),
        "closure": list(CLOSURES),
        "element": [*elements, *contacts()],
        "actuator": list(ACTUATORS),
        "event": list(ACTIONS),
        "integrator": list(INTEGRATORS),
        "form": list(FORMS),
        "method": list(METHODS),
        "quantity": list(QUANTITIES),
        "dtype": list(DTYPES),
        "target": [x for x in TARGETS if x != "cpu"],
        "way": [*(f"export {to}" for to in EXPORT_FORMATS), *SUFFIXES],
    }
