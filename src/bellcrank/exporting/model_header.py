"""model.h, which connects the code of a machine with the C sources of this package."""

from __future__ import annotations

from collections.abc import Mapping

from bellcrank.emit.c.package import Package


def step_macros(package: Package) -> dict[str, object]:
    """Return the macros that call the two functions of `package` for its start and its steps."""
    arguments = ", ".join(f"({x})" for x in package.struct_parameters)
    functions = ("rest", "advance")
    return {f"MODEL_{word.upper()}(s, u, p)": f"{package.name}_{word}({arguments})" for word in functions}


def header_text(package: Package, macros: Mapping[str, object]) -> str:
    """Return a header that includes that of `package` and defines `macros`."""
    lines = [f"#define {word} {text}".rstrip() for word, text in macros.items()]
    return "\n".join([f'#include "{package.name}.h"\n', *lines, ""])
