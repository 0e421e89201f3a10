"""A GPU emulated on the CPU: the same LLVM text, compiled for this processor, one thread after the other.

Features that only NVPTX has are replaced: block and thread numbers are variables, all memory is ordinary memory, and an
approximate reciprocal is one with few digits. Shared memory is filled with NaN before each thread, because a thread may
read only what it has written itself.
"""

from __future__ import annotations

import ctypes
import re
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.llvm.host import llvm, target_machine

Array = np.ndarray[Any, Any]
RESIDENT = 2  # blocks that run at once: with more work, each takes one group after the other
# Functions of NVPTX, as they appear in the text, and their replacements.
PLAYED = {
    "@llvm.nvvm.read.ptx.sreg.tid.x": ("@tid", ""),
    "@llvm.nvvm.read.ptx.sreg.ctaid.x": ("@ctaid", ""),
    "@llvm.nvvm.rcp.approx.ftz.d": (
        "@rcp",
        """define double @rcp(double %x) {
  %r = fdiv double 1.0, %x
  %i = bitcast double %r to i64
  %cut = and i64 %i, -4294967296
  %c = bitcast i64 %cut to double
  ret double %c
}
""",
    ),
    "@llvm.nvvm.div.full": (
        "@quotient",
        "define float @quotient(float %x, float %y) {\n  %q = fdiv float %x, %y\n  ret float %q\n}\n",
    ),
}

# A prefetch reads the memory and records its address.
FETCH = """@fetches = global i64 0
@places = global [65536 x i64] zeroinitializer
define void @fetch(ptr %p, i64 %o) {
  %at = getelementptr i8, ptr %p, i64 %o
  %x = load volatile i8, ptr %at
  %k = load i64, ptr @fetches
  %to = getelementptr i64, ptr @places, i64 %k
  %i = ptrtoint ptr %at to i64
  store i64 %i, ptr %to
  %next = add i64 %k, 1
  store i64 %next, ptr @fetches
  ret void
}
"""


def played(text: str) -> str:
    """Return the text for a GPU as text for this processor."""
    text = re.sub(r"^declare .*\n", "", text, flags=re.MULTILINE)
    for name, (other, definition) in PLAYED.items():
        if name in text:
            text = text.replace(f"{name}(", f"{other}(") + "\n" + definition
    text = re.sub(
        r'asm sideeffect "prefetch\.global\.L2 \[\$0\+(\d+)\];", "l"\((ptr addrspace\(1\) [^)]*)\)',
        r"@fetch(\2, i64 \1)",
        text,
    )
    text += FETCH if "@fetch(" in text else ""
    text = re.sub(r" addrspace\(\d\)|externally_initialized |ptx_kernel ", " ", text)
    for k, name in enumerate(("tid", "ctaid")):
        place = f"getelementptr (i32, ptr @place, i64 {k})"
        text += f"define i32 @{name}() {{\n  %x = load volatile i32, ptr {place}\n  ret i32 %x\n}}\n"
    if "nvvm." in re.sub(r'"nvvm\.\w+"', "", text):
        raise NotImplementedError("the text calls a function of NVPTX that nothing here plays")
    return text + "@place = global [2 x i32] zeroinitializer\n"


def machine_code(text: str) -> bytes:
    """Compile the text.

    Variables become registers first, as for the GPU, so that a value left undefined on a path is detected.
    """
    binding = llvm()
    module: Any = binding.parse_assembly(text)
    module.verify()
    machine = target_machine()
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options()))
    return bytes(machine.emit_object(module))


class Function:
    """A bellcrank.emit.cuda.device.DeviceFunction made of LLVM text instead of PTX."""

    registers = local = 0

    def __init__(
        self, text: str, name: str, threads: int, shared: int, states: int = 0, single_piece: bool = False
    ) -> None:
        self.threads, self.shared = threads, shared
        size = max(shared, 16)
        held = f"@shared = global [{size} x i8] zeroinitializer, align 16\n"
        text = held + re.sub(r"@shared = .*\n", "", played(text))
        self._library = Library(machine_code(text))
        self._address = self._library.address(name)
        at, place = self._library.address("shared"), self._library.address("place")
        self._memory = np.frombuffer((ctypes.c_uint8 * size).from_address(at), np.uint8)
        self._place = np.frombuffer((ctypes.c_int32 * 2).from_address(place), np.int32)

    @property
    def fetched(self) -> list[int]:
        """Return the prefetched addresses in the order of the requests."""
        count = ctypes.c_int64.from_address(self._library.address("fetches")).value
        return list((ctypes.c_int64 * count).from_address(self._library.address("places")))

    def __call__(self, rows: int, *arguments: Any) -> None:
        kinds = {np.dtype("int64"): ctypes.c_int64, np.dtype("uint32"): ctypes.c_uint32}
        given = [
            ctypes.c_void_p(a.__array_interface__["data"][0]) if isinstance(a, np.ndarray) else kinds[a.dtype](int(a))
            for a in arguments
        ]
        self._played(rows, given)

    def launch(self, stream: int, rows: int, numbers: Sequence[int]) -> None:
        """Run the kernel with arguments as a driver takes them: as many bytes of each as the kernel reads."""
        self._played(rows, [ctypes.c_uint64(x) for x in numbers])

    def _played(self, rows: int, given: Sequence[Any]) -> None:
        call = ctypes.CFUNCTYPE(None, *(type(a) for a in given))(self._address)
        for block in reversed(range(-(-rows // self.threads))):
            for thread in reversed(range(self.threads)):
                if block * self.threads + thread < rows + 2:  # two threads beyond the last row, which must do nothing
                    self._memory[:] = 0xFF  # NaN in either precision
                    self._place[:] = thread, block
                    call(*given)


def fake_cupy() -> Any:
    """Return the part of CuPy that simulations use."""
    names = ("zeros", "empty", "empty_like", "where", "int64", "broadcast_to", "ascontiguousarray", "moveaxis")
    made = {name: getattr(np, name) for name in names}
    memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    cuda = types.SimpleNamespace(memory=memory, alloc_pinned_memory=bytearray)
    pool = types.SimpleNamespace(free_all_blocks=lambda: None)
    made |= {"asarray": np.array, "asnumpy": _copied, "cuda": cuda, "get_default_memory_pool": lambda: pool}
    return types.SimpleNamespace(ndarray=np.ndarray, **made)


class OutOfMemoryError(MemoryError):
    """CuPy's error of the same name."""


def _copied(x: Array, out: Array | None = None) -> Array:
    """Copy from the GPU into an array of the same kind that is contiguous, or into a new one."""
    if out is None:
        return np.array(x)
    assert out.flags.c_contiguous
    assert out.dtype == x.dtype
    assert out.shape == x.shape
    out[...] = x
    return out


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make target="cuda" this processor. Call the fixture with a number of bytes to set the memory of the device."""

    def memory(size: int) -> None:
        for module in ("sim.run.gpu_runs", "sim.run.adjoint_sweeps", "emit.cuda.rolled_kernels"):
            monkeypatch.setattr(f"bellcrank.{module}.free_bytes", lambda: size)

    memory(10**9)
    found = fake_cupy()
    for module in ("sim.run.gpu_runs", "sim.run.adjoint_sweeps", "emit.cuda.device", "emit.cuda.rolled_kernels"):
        monkeypatch.setattr(f"bellcrank.{module}.cupy", lambda: found)
    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.resident_blocks", lambda registers: RESIDENT)
    monkeypatch.setattr("bellcrank.sim.run.gpu_runs.DeviceFunction", Function)
    monkeypatch.setattr("bellcrank.sim.settings.unavailable_reason", lambda: "")
    monkeypatch.setattr("bellcrank.emit.cuda.run_kernel.ptx", lambda text, promote=False: text)
    return memory
