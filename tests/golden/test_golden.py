"""The generated text of three tiny mechanisms equals the golden files, so that a diff shows changes of the generator.

`BELLCRANK_UPDATE=1 python -m pytest tests/golden` rewrites the files; read the diff before you commit it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.emit.c import c99
from bellcrank.emit.cpu import kernel_module
from bellcrank.emit.llvm import sincos
from bellcrank.model import Mechanism
from bellcrank.version import __version__

HERE = Path(__file__).resolve().parent
UPDATE = bool(os.environ.get("BELLCRANK_UPDATE"))


def planar2r() -> Mechanism:
    """Return two rods of 1 m and 0.5 m in the vertical xy plane."""
    b = bc.Builder("planar2r", gravity=(0, -9.81, 0))
    b.body("upper", mass=2.0, com=(0.5, 0, 0), inertia=(0, 0.25, 0.25))
    b.body("lower", mass=1.0, com=(1.25, 0, 0), inertia=(0, 0.125, 0.125))
    b.joint("shoulder", "revolute", "ground", "upper")
    b.joint("elbow", "revolute", "upper", "lower", point=(1, 0, 0))
    return b.build()


def slider() -> Mechanism:
    """Return a bead that slides along a hinged rod, held by a spring."""
    b = bc.Builder("slider")
    b.body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.125, 0.125, 0))
    b.body("bead", mass=0.5, com=(0, 0, -1))
    b.joint("hinge", "revolute", "ground", "rod", axis=(0, 1, 0), damping=0.25)
    b.joint("slide", "prismatic", "rod", "bead", point=(0, 0, -1), axis=(0, 0, 1), stiffness=10.0)
    return b.build()


CASES: dict[str, tuple[Callable[[], Mechanism], str, str]] = {
    "pendulum": (bc.zoo.pendulum, "forward_dynamics", "aba"),
    "planar2r": (planar2r, "forward_dynamics", "crba"),
    "slider": (slider, "inverse_dynamics", "rnea"),
}


def generated(name: str) -> dict[str, str]:
    """Return text by file name, independent of this computer: the number of lanes is four for every processor."""
    make, quantity, method = CASES[name]
    g = graphs.graph(make(), quantity, method)
    ll = kernel_module.source(g, 4, "float64").replace(
        sincos.definition(4, "float64"), "; @sincos: see emit/llvm/sincos.py"
    )
    texts = {f"{name}.txt": str(g), f"{name}.ll": ll}
    for file, text in c99.source(g).items():
        texts[name + Path(file).suffix] = text.replace(__version__, "VERSION")
    texts[f"{name}.tex"] = bc.equations(make(), "latex").replace(__version__, "VERSION")
    return {file: text.rstrip() + "\n" for file, text in texts.items()}


@pytest.mark.parametrize("kind", [".txt", ".ll", ".h", ".c", ".tex"])
@pytest.mark.parametrize("name", CASES)
def test_text(name: str, kind: str) -> None:
    file = HERE / f"{name}{kind}"
    text = generated(name)[file.name]
    if UPDATE:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"{file.name} has changed; BELLCRANK_UPDATE=1 writes it anew"


def test_golden_text_computes_the_acceleration() -> None:
    """The statements of the golden text, evaluated, give a pendulum's acceleration: -g/l sin(q) + tau/(m l^2)."""
    head, *statements = (HERE / "pendulum.txt").read_text(encoding="utf-8").splitlines()
    assert head == "pendulum.forward_dynamics(q[1], v[1], tau[1])"
    for q, tau in ((0.3, 0.0), (-1.2, 2.5)):
        values: dict[str, Any] = {"q": [q], "v": [0.7], "tau": [tau], "forward_dynamics": [math.nan], "sin": math.sin}
        exec("\n".join(line.strip() for line in statements), {"__builtins__": {}}, values)
        assert values["forward_dynamics"][0] == pytest.approx(-9.81 * math.sin(q) + tau, rel=1e-15)
