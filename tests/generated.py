"""Generator of package files from tables, for readers, editors and type checkers.

`BELLCRANK_UPDATE=1 python -m pytest tests/unit/test_public_api.py` regenerates them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import indent

import bellcrank
from bellcrank.dynamics.quantities import ARGUMENT_DEFAULTS, SHIPPED, Quantity

PACKAGE = Path(bellcrank.__file__).resolve().parent
WIDTH = 120
TYPES = {
    "frame": "str",
    "reference": "str",
    "p": "ArrayLike | None",
    "wrenches": "Mapping[str, ArrayLike] | None",
    "actuated": "Sequence[str]",
    "parameters": "Mapping[str, ArrayLike] | None",
    "out": "Array | None",
}

QUANTITIES = '''"""Types and texts of all quantities. Written from dynamics/quantities.py by tests/generated.py."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bellcrank.dynamics.quantities import ForwardDerivatives, InverseDerivatives

Array = np.ndarray[Any, Any]
NAMES: list[str]

class Quantities:
'''

FACE = '''"""The public names with their types. Written from the table in __init__.py by tests/generated.py."""

from typing import Any, overload

'''

# Overloads: the result depends on the argument `seconds`.
DRIVE = """

@overload
def drive(mechanism: Mechanism | System, rate: float = ..., seconds: None = ..., **settings: Any) -> Drive: ...
@overload
def drive(mechanism: Mechanism | System, rate: float, seconds: float, **settings: Any) -> Record: ...
@overload
def drive(mechanism: Mechanism | System, rate: float = ..., *, seconds: float, **settings: Any) -> Record: ...
"""


def quantities() -> str:
    """Return the text of model/quantities.pyi."""
    return _formatted(QUANTITIES + "\n".join(map(_method, SHIPPED.values())), "quantities.pyi")


def _method(q: Quantity) -> str:
    first, named = q.arguments
    arguments = ", ".join(["self", *map(_typed, first), "*", *map(_typed, named)])
    result = q.result.__name__ if q.result else "Array"
    return indent(f"def {q.name}({arguments}) -> {result}:\n" + indent(f'"""{q.help()}\n"""\n', "    "), "    ")


def _typed(name: str) -> str:
    default = f" = {ARGUMENT_DEFAULTS[name]!r}" if name in ARGUMENT_DEFAULTS else ""
    return f"{name}: {TYPES.get(name, 'ArrayLike')}{default}"


def face() -> str:
    """Return the text of __init__.pyi."""
    lines = []
    for module, names in bellcrank._PUBLIC_NAMES.items():
        kept = ", ".join(f"{name} as {name}" for name in names if name != "drive")
        lines.append(f"from bellcrank{module and '.'}{module} import {kept}")
    return _formatted(FACE + "\n".join(lines) + DRIVE, "__init__.pyi")


def _formatted(text: str, name: str) -> str:
    for how in (("check", "--fix", "--select", "I"), ("format",)):
        command = [sys.executable, "-m", "ruff", *how, "--quiet", "--stdin-filename", str(PACKAGE / name), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text


FILES = {PACKAGE / "model/quantities.pyi": quantities, PACKAGE / "__init__.pyi": face}
