"""Measurements of a C package on microcontrollers: code size, stack and instructions of a step, under QEMU.

QEMU is set to one nanosecond per instruction, and the board's timer then counts instructions. The stack is filled with
a pattern before a step and inspected afterwards, so that the share of libm is included.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.emit.c.package import Package
from bellcrank.errors import InputError
from bellcrank.exporting import compilers
from bellcrank.exporting.compilers import compiler_command, host_platform
from bellcrank.exporting.fmu import header_text, step_macros

GCC, SIZE, QEMU = "arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm"
# gcc options of a processor, and QEMU's board with it. An M4F has hardware for single precision, an M7 for both.
PROCESSORS = {
    "Cortex-M4F": (("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16"), "mps2-an386"),
    "Cortex-M7": (("-mcpu=cortex-m7", "-mfpu=fpv5-d16"), "mps2-an500"),
}
DEBIAN_INSTALL = "apt install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
FLAGS = ("-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror")
REPORT_STEPS, TIMEOUT_SECONDS = 11, 300  # steps of a report; timeout in seconds
HEX_DIGITS = 8  # digits of an integer


@dataclass(frozen=True, eq=False)
class Measurement:
    """Measurement on one processor: code and constants (bytes), stack (bytes), instructions of a step, final state."""

    processor: str
    code: int
    stack: int | None = None
    instructions: int | None = None
    status: int = 0
    state: np.ndarray[Any, Any] | None = None


def missing_tools() -> list[str]:
    """Return the names of the tools for an emulated run that are not installed."""
    return [name for name in (GCC, SIZE, QEMU) if shutil.which(name) is None]


def host_size(package: Package) -> Measurement:
    """Return the size of `package` compiled for this computer, without a run."""
    with tempfile.TemporaryDirectory(prefix="bellcrank-") as name:
        folder = _write_sources(package, Path(name))
        _run(folder, [*compiler_command(host_platform()), "-std=c99", "-O2", "-c", f"{package.name}.c", "-o", "it.o"])
        if shutil.which("size") is None:
            return Measurement("this computer", (folder / "it.o").stat().st_size)
        return Measurement("this computer", _size(folder, "size"))


def emulate(package: Package, processor: str, steps: int = REPORT_STEPS, inputs: Sequence[float] = ()) -> Measurement:
    """Run `package` on an emulated processor.

    Parameters
    ----------
    package
        C package of a machine that takes steps.
    processor
        Key of PROCESSORS.
    steps
        Number of steps, at least 2.
    inputs
        Values of the machine's inputs; their defaults if empty.
    """
    if missing := missing_tools():
        raise InputError(f"report: {', '.join(missing)} not found; on Debian: {DEBIAN_INSTALL}.")
    flags, board = PROCESSORS[processor]
    with tempfile.TemporaryDirectory(prefix="bellcrank-") as name:
        folder = _write_sources(package, Path(name))
        (folder / "model.h").write_text(model_header(package, steps, inputs), "utf-8")
        for source in ("cortex.c", "cortex.ld"):
            shutil.copy(compilers.SOURCES / source, folder)
        common = [GCC, *flags, "-mthumb", "-mfloat-abi=hard", *FLAGS]
        _run(folder, [*common, "-std=c99", "-c", f"{package.name}.c", "-o", "it.o"])
        _run(folder, [*common, "-std=gnu99", "-c", "cortex.c", "-o", "cortex.o"])
        link = ["-nostartfiles", "-T", "cortex.ld", "it.o", "cortex.o", "-lm", "-o", "it.elf"]
        _run(folder, [*common, *link])
        emulator = [QEMU, "-M", board, "-nographic", "-semihosting", "-icount", "shift=0", "-kernel", "it.elf"]
        status, instructions, stack, state = _run(folder, emulator).split()[-4:]
        numbers = np.frombuffer(bytes.fromhex(state), "<f8" if package.dtype == "float64" else "<f4")
        words = (instructions, stack, status)
        ran, used, exit_status = (int.from_bytes(bytes.fromhex(x[:HEX_DIGITS]), "little") for x in words)
        return Measurement(processor, _size(folder, SIZE), used, ran, exit_status, numbers)


def model_header(package: Package, steps: int, inputs: Sequence[float]) -> str:
    """Return model.h: sizes of `package`, run settings (`steps`, `inputs`) and its functions under cortex.c's names."""
    s = package.stepper
    if s is None:
        raise InputError("report: only a machine that takes steps can be measured; got functions.")
    values = list(inputs) or [m.value for m in s.inputs]
    number = package.routines[0].value
    sizes = {"N_S": len(s.state), "N_U": len(s.inputs), "N_P": len(s.parameters), "N_STEPS": max(2, steps)}
    begin = ", ".join([*({"s": "(s)", "u": "(u)", "p": "(p)"}[x] for x in s.begin.inputs), "(next)"])
    macros = {
        **sizes,
        "NUMBER": package.real,
        "MODEL_INPUTS": f"{{{', '.join([*map(number, values), number(0.0)])}}}",
        **step_macros(package),
        "MODEL_BEGIN(s, u, p, next)": f"{package.program_functions['begin']}({begin})",
    }
    return header_text(package, macros)


def _write_sources(package: Package, folder: Path) -> Path:
    for name, text in package.files.items():
        if name.endswith((".c", ".h")):
            (folder / name).write_text(text, "utf-8")
    return folder


def _size(folder: Path, tool: str) -> int:
    """Return the bytes of code and constants."""
    return int(_run(folder, [tool, "it.o"]).splitlines()[1].split()[0])


def _run(folder: Path, called: Sequence[str]) -> str:
    return compilers.run(called, folder, "report", TIMEOUT_SECONDS)
