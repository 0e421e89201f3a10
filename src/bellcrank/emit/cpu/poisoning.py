"""Poisoned memory for machine code that allocates by itself (bellcrank.buffers).

Generated code calls three external functions to get memory that it writes: `malloc` for workspaces, NumPy's
PyArray_NewFromDescr for results, and Py_IncRef for the array that a caller passes as `out=`. If buffers are poisoned,
wrappers that also fill the memory with NaN replace these functions. The generated code is the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.buffers import POISON_BYTE
from bellcrank.emit.cpu.machine_code import ARRAY_FIELDS

STACK_BYTES = 131_072  # filled below a call: twice the largest workspace on the stack


class Poisoning:
    """Functions that fill memory with NaN; compiled with LLVM's `binding` for a target `machine`.

    `originals` has the addresses of "malloc", "Py_IncRef" and "PyArray_NewFromDescr".
    """

    def __init__(self, binding: Any, machine: Any, originals: dict[str, int]) -> None:
        self._engine = binding.create_mcjit_compiler(
            binding.parse_assembly(_module_text(originals)), machine, use_lmm=True
        )
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return the address of the function that replaces the original called `name`."""
        function_address: int = self._engine.get_function_address(f"poisoned_{name}")
        return function_address

    @cached_property
    def stain(self) -> Callable[[], None]:
        """Function that fills the stack which the next call will use."""
        return ctypes.CFUNCTYPE(None)(self._engine.get_function_address("stain"))


def _module_text(originals: dict[str, int]) -> str:
    original = {name: f"inttoptr (i64 {address} to ptr)" for name, address in originals.items()}
    return f"""{_FILL_FUNCTION}
define ptr @poisoned_malloc(i64 %n) nounwind {{
  %p = call ptr {original["malloc"]}(i64 %n)
  %none = icmp eq ptr %p, null
  br i1 %none, label %end, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %p, i8 {_SIGNED_POISON_BYTE}, i64 %n, i1 false)
  br label %end
end:
  ret ptr %p
}}
define void @poisoned_Py_IncRef(ptr %object) nounwind {{
  call void @fill(ptr %object)
  call void {original["Py_IncRef"]}(ptr %object)
  ret void
}}
define ptr @poisoned_PyArray_NewFromDescr(
  ptr %type, ptr %descr, i32 %nd, ptr %dims, ptr %strides, ptr %data, i32 %flags, ptr %base
) nounwind {{
  %made = call ptr {original["PyArray_NewFromDescr"]}(
    ptr %type, ptr %descr, i32 %nd, ptr %dims, ptr %strides, ptr %data, i32 %flags, ptr %base
  )
  %none = icmp eq ptr %made, null
  br i1 %none, label %end, label %fill
fill:
  call void @fill(ptr %made)
  call void @stain()
  br label %end
end:
  ret ptr %made
}}
define void @stain() noinline nounwind {{
  %below = alloca [{STACK_BYTES} x i8], align 64
  call void @llvm.memset.p0.i64(ptr %below, i8 {_SIGNED_POISON_BYTE}, i64 {STACK_BYTES}, i1 true)
  ret void
}}
"""


def _load_field(name: str) -> str:
    """Return text that loads a field of the array %object."""
    names = [field for field, _, _ in ARRAY_FIELDS]
    kind = ARRAY_FIELDS[names.index(name)][1]
    return f"""  %{name}.at = getelementptr %array, ptr %object, i64 0, i32 {names.index(name)}
  %{name} = load {kind}, ptr %{name}.at"""


_SIGNED_POISON_BYTE = POISON_BYTE - 256  # as a signed number
# @fill(object): if it is an array of native floats, all elements become NaN.
_FILL_FUNCTION = f"""%array = type {{ {", ".join(kind for _, kind, _ in ARRAY_FIELDS)} }}
@writable = global i64 0
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal void @fill(ptr %object) nounwind {{
begin:
{_load_field("type")}
  %is.array = icmp eq ptr %type, inttoptr (i64 {id(np.ndarray)} to ptr)
  br i1 %is.array, label %look, label %end
look:
{_load_field("descr")}
{_load_field("nd")}
{_load_field("dims")}
{_load_field("data")}
  %is.double = icmp eq ptr %descr, inttoptr (i64 {id(np.dtype("float64"))} to ptr)
  %is.float = icmp eq ptr %descr, inttoptr (i64 {id(np.dtype("float32"))} to ptr)
  %four = select i1 %is.float, i64 4, i64 0
  %each = select i1 %is.double, i64 8, i64 %four
  br label %top
top:
  %k = phi i32 [0, %look], [%k.next, %axis]
  %bytes = phi i64 [%each, %look], [%bytes.next, %axis]
  %more = icmp slt i32 %k, %nd
  br i1 %more, label %axis, label %set
axis:
  %length.at = getelementptr i64, ptr %dims, i32 %k
  %length = load i64, ptr %length.at
  %bytes.next = mul i64 %bytes, %length
  %k.next = add i32 %k, 1
  br label %top
set:
  call void @llvm.memset.p0.i64(ptr %data, i8 {_SIGNED_POISON_BYTE}, i64 %bytes, i1 false)
  br label %end
end:
  ret void
}}"""
