"""XLA entry of a kernel: the handler of its foreign function interface as LLVM IR, without a C++ compiler.

    XLA_FFI_Error *handler(XLA_FFI_CallFrame *)

The structs are those of xla/ffi/api/c_api.h, a C interface that only grows at its ends. Queried for its version, the
handler returns the caller's, because the fields that it reads exist in all versions. Arguments and results are dense
buffers with the same leading axes; the kernel's own @many does the work. On a GPU it is launched (emit/cuda/xla.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod

from bellcrank.emit.cpu.host import Library, compiled
from bellcrank.emit.target import Shape, Signature

EXECUTE, METADATA = 3, 1  # XLA_FFI_ExecutionStage, XLA_FFI_Extension_Type
# Offsets in bytes, on 64-bit computers.
FRAME = {"extension": 8, "api": 16, "context": 24, "stage": 32, "args": 72, "rets": 112}
BUFFER = {"data": 24, "rank": 32, "dims": 40}
EXTENSION = {"type": 8, "metadata": 24}
VERSION = {"api": 32, "metadata": 24}  # in XLA_FFI_Api and in XLA_FFI_Metadata: major, followed by minor


def handler(inputs: Sequence[Shape], outputs: Sequence[Shape], work: str) -> str:
    """Return @handler.

    Parameters
    ----------
    inputs
        Shapes of the inputs for one state.
    outputs
        Shapes of the outputs for one state.
    work
        Text that processes %n states, whose numbers lie at %args0.data, ..., %rets0.data, ..., with %api and %context
        of the caller; its last line returns.
    """
    loads = "".join(
        f"""  %{which}{k}.at = getelementptr ptr, ptr %{which}, i64 {k}
  %{which}{k} = load ptr, ptr %{which}{k}.at
{load(f"{which}{k}.data", "ptr", f"%{which}{k}", BUFFER["data"])}"""
        for which, k, _ in buffers(inputs, outputs)
    )
    return f"""define ptr @handler(ptr %frame) nounwind {{
begin:
{load("api", "ptr", "%frame", FRAME["api"])}{load("context", "ptr", "%frame", FRAME["context"])}\
{load("extension", "ptr", "%frame", FRAME["extension"])}  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %call, label %ask
ask:
{load("type", "i32", "%extension", EXTENSION["type"])}  %is.metadata = icmp eq i32 %type, {METADATA}
  br i1 %is.metadata, label %tell, label %call
tell:
{load("metadata", "ptr", "%extension", EXTENSION["metadata"])}{load("version", "i64", "%api", VERSION["api"])}\
  %version.to = getelementptr i8, ptr %metadata, i64 {VERSION["metadata"]}
  store i64 %version, ptr %version.to, align 4
  ret ptr null
call:
{load("stage", "i32", "%frame", FRAME["stage"])}  %execute = icmp eq i32 %stage, {EXECUTE}
  br i1 %execute, label %read, label %nothing
read:
{load("args", "ptr", "%frame", FRAME["args"])}{load("rets", "ptr", "%frame", FRAME["rets"])}{loads}\
{load("rank", "i64", "%rets0", BUFFER["rank"])}{load("dims", "ptr", "%rets0", BUFFER["dims"])}\
  %leading = sub i64 %rank, {len(outputs[0])}
  br label %count
count:
  %axis = phi i64 [0, %read], [%axis.next, %more]
  %n = phi i64 [1, %read], [%n.next, %more]
  %left = icmp slt i64 %axis, %leading
  br i1 %left, label %more, label %run
more:
  %dim.at = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim.at
  %n.next = mul i64 %n, %dim
  %axis.next = add i64 %axis, 1
  br label %count
run:
  %some = icmp ne i64 %n, 0
  br i1 %some, label %go, label %nothing
go:
{work}nothing:
  ret ptr null
}}"""


def buffers(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> list[tuple[str, int, Shape]]:
    """Return (prefix, index, shape of one state) of each buffer, for the shapes of `inputs` and `outputs`."""
    return [
        *(("args", k, shape) for k, shape in enumerate(inputs)),
        *(("rets", k, shape) for k, shape in enumerate(outputs)),
    ]


def source(inputs: Sequence[Shape], outputs: Sequence[Shape], size: int) -> str:
    """Return the module with @handler, and @many for the address of the kernel's own function.

    Parameters
    ----------
    inputs
        Shapes of the inputs for one state.
    outputs
        Shapes of the outputs for one state.
    size
        Bytes of a number.
    """
    arrays = buffers(inputs, outputs)
    given = ", ".join(f"ptr %{which}{k}.data, i64 {size * prod(shape)}" for which, k, shape in arrays)
    work = f"""  %f = load ptr, ptr @many
  %odd = call i64 %f(i64 %n, {given}) ; what is not finite goes through as it is
  ret ptr null
"""
    return f"@many = global ptr null\n{handler(inputs, outputs, work)}"


def load(name: str, kind: str, base: str, offset: int) -> str:
    """Return text that loads a field.

    Parameters
    ----------
    name
        Name of the value.
    kind
        IR type of the field.
    base
        Address of the struct.
    offset
        Offset of the field in bytes.
    """
    return f"""  %{name}.in = getelementptr i8, ptr {base}, i64 {offset}
  %{name} = load {kind}, ptr %{name}.in, align 4
"""


class Handler:
    """XLA handler of a kernel, valid as long as this object lives."""

    def __init__(self, signature: Signature, kernel: Library) -> None:
        """Compile the handler for `signature` and connect it to the code of `kernel`."""
        text = source(list(signature.inputs.values()), list(signature.outputs.values()), int(signature.dtype[-2:]) // 8)
        self.library, self._kernel = Library(compiled(text)[0]), kernel
        ctypes.c_void_p.from_address(self.library.address("many")).value = kernel.address("many")

    def scratch(self, rows: int) -> int:
        """Return the numbers of a workspace for `rows` states, which XLA allocates as one more result."""
        return 0

    @property
    def function(self) -> object:
        """Function pointer for jax.ffi.pycapsule."""
        return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self.library.address("handler"))
