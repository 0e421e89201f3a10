"""The dimensions that are crossed, with their values read from the tables of the package.

A new row of a table becomes a new value and is crossed with all others. `LEFT_OUT` names the rows that are not crossed,
with reasons.
"""

from __future__ import annotations

from bellcrank.actuators import ACTUATORS
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.loops.constraint_equations import CLOSURES
from bellcrank.dynamics.quantities import QUANTITIES
from bellcrank.emit.target import DTYPES
from bellcrank.exporting.export import EXPORT_FORMATS
from bellcrank.integrate import INTEGRATORS
from bellcrank.model.joints import KINDS
from bellcrank.record.formats import SUFFIXES
from bellcrank.sim.settings import FORMS
from crossing.files import SOURCES
from crossing.pairwise import Dimension
from crossing.parts import CONTROLS, EVENTS, elements
from crossing.thresholds import PATHS

NONE = ("none",)
TRAITS = (
    "mimic", "free numbers", "spring", "passive", "flexible", "force on a frame", "force everywhere", "motion",
    "outputs",
)  # fmt: skip
# Rows of tables that are not used as values here, with the reason.
LEFT_OUT = {
    ("target", "cuda"): "kernels of the GPU are played, quantity by quantity, in tests/targets/test_cuda_blocks.py",
    ("way", "export page"): "the page of a machine is drawn and driven by tests/pages/test_static_page.py",
}
# Uses of a system other than exports and files; laws.py defines what each must agree with.
USES = (
    "rows", "lanes", "threads", "gpu", "stepper", "linearize", "equilibrium", "gradient", "sensitivities", "half step",
    "energy", "schedule", "study", "summary", "count", "pickle",
)  # fmt: skip
EXPORTS = tuple(f"export {to}" for to in EXPORT_FORMATS)

MECHANISM = {
    "joint": Dimension(tuple(KINDS)),
    "closure": Dimension((*NONE, *CLOSURES), 2),
    "trait": Dimension((*NONE, *TRAITS[:5]), 2),
    "path": Dimension(tuple(PATHS)),
    "source": Dimension(SOURCES),
}
# Dimensions of a mechanism alone.
QUANTITY_SUITE = {
    **MECHANISM,
    "quantity": Dimension(tuple(QUANTITIES), 6),
    "method": Dimension(tuple(METHODS), 4),
    "dtype": Dimension(tuple(DTYPES)),
    "threads": Dimension(("1", "2")),
    "use": Dimension(("kernel", "schedule", "cores")),
    "layout": Dimension(("rows", "one", "fortran", "strided", "broadcast", "lists")),
}
# Dimensions of a system in motion.
SYSTEM_SUITE = {
    **MECHANISM,
    "trait": Dimension((*NONE, *TRAITS), 2),
    "element": Dimension((*NONE, *elements()), 4),
    "actuator": Dimension((*NONE, *ACTUATORS), 2),
    "control": Dimension(CONTROLS),
    "event": Dimension(tuple(EVENTS)),
    "integrator": Dimension(tuple(INTEGRATORS)),
    "steps": Dimension(("fixed", "chosen")),
    "form": Dimension(FORMS),
    "way": Dimension((*USES, *(x for x in EXPORTS if ("way", x) not in LEFT_OUT), *SUFFIXES), 4),
}
SUITES = {"systems": SYSTEM_SUITE, "quantities": QUANTITY_SUITE}
# Suites whose covered pairs are reported: the traced ones have the dimensions that change a graph.
REPORTED = SUITES | {
    "traced systems": {name: SYSTEM_SUITE[name] for name in (*MECHANISM, "element", "actuator", "control", "form")},
    "traced quantities": {name: QUANTITY_SUITE[name] for name in (*MECHANISM, "quantity", "method")},
}
