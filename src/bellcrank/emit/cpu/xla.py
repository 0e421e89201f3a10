"""XLA entry of a kernel: the handler of its foreign function interface as LLVM IR, without a C++ compiler.

    XLA_FFI_Error *handler(XLA_FFI_CallFrame *)

The structs are those of xla/ffi/api/c_api.h, a C interface that only grows at its ends. Queried for its version, the
handler returns the caller's, because the fields that it reads exist in all versions. Arguments and results are dense
buffers with the same leading axes; the kernel's own @many does the work. On a GPU it is launched
(emit/cuda/xla_gpu.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from math import prod

from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.llvm.host import compile_cached
from bellcrank.emit.target import Shape, Signature

EXECUTE, METADATA = 3, 1  # XLA_FFI_ExecutionStage, XLA_FFI_Extension_Type
# Offsets in bytes, on 64-bit computers.
FRAME_OFFSETS = {"extension": 8, "api": 16, "context": 24, "stage": 32, "args": 72, "rets": 112}
BUFFER_OFFSETS = {"data": 24, "rank": 32, "dims": 40}
EXTENSION_OFFSETS = {"type": 8, "metadata": 24}
VERSION_OFFSETS = {"api": 32, "metadata": 24}  # in XLA_FFI_Api and in XLA_FFI_Metadata: major, followed by minor


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
        f"""  %{kind}{k}.at = getelementptr ptr, ptr %{kind}, i64 {k}
  %{kind}{k} = load ptr, ptr %{kind}{k}.at
{load_field(f"{kind}{k}.data", "ptr", f"%{kind}{k}", BUFFER_OFFSETS["data"])}"""
        for kind, k, _ in buffers(inputs, outputs)
    )
    return f"""define ptr @handler(ptr %frame) nounwind {{
begin:
{load_field("api", "ptr", "%frame", FRAME_OFFSETS["api"])}\
{load_field("context", "ptr", "%frame", FRAME_OFFSETS["context"])}\
{load_field("extension", "ptr", "%frame", FRAME_OFFSETS["extension"])}  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %call, label %ask
ask:
{load_field("type", "i32", "%extension", EXTENSION_OFFSETS["type"])}  %is.metadata = icmp eq i32 %type, {METADATA}
  br i1 %is.metadata, label %tell, label %call
tell:
{load_field("metadata", "ptr", "%extension", EXTENSION_OFFSETS["metadata"])}\
{load_field("version", "i64", "%api", VERSION_OFFSETS["api"])}\
  %version.to = getelementptr i8, ptr %metadata, i64 {VERSION_OFFSETS["metadata"]}
  store i64 %version, ptr %version.to, align 4
  ret ptr null
call:
{load_field("stage", "i32", "%frame", FRAME_OFFSETS["stage"])}  %execute = icmp eq i32 %stage, {EXECUTE}
  br i1 %execute, label %read, label %nothing
read:
{load_field("args", "ptr", "%frame", FRAME_OFFSETS["args"])}\
{load_field("rets", "ptr", "%frame", FRAME_OFFSETS["rets"])}{loads}\
{load_field("rank", "i64", "%rets0", BUFFER_OFFSETS["rank"])}\
{load_field("dims", "ptr", "%rets0", BUFFER_OFFSETS["dims"])}\
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
    arguments = ", ".join(f"ptr %{kind}{k}.data, i64 {size * prod(shape)}" for kind, k, shape in arrays)
    work = f"""  %f = load ptr, ptr @many
  %odd = call i64 %f(i64 %n, {arguments}) ; what is not finite goes through as it is
  ret ptr null
"""
    return f"@many = global ptr null\n{handler(inputs, outputs, work)}"


def load_field(name: str, kind: str, base: str, offset: int) -> str:
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


class XlaHandler:
    """Compiled handler, valid as long as this object lives."""

    def __init__(self, text: str, pointers: Mapping[str, int]) -> None:
        """Compile the module `text`, and set its global `pointers`."""
        self.library = Library(compile_cached(text)[0])
        for name, address in pointers.items():
            self.library.set_pointer(name, address)

    @property
    def function(self) -> object:
        """Function pointer for jax.ffi.pycapsule."""
        return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self.library.address("handler"))


class Handler(XlaHandler):
    """XLA handler of a kernel on the CPU."""

    def __init__(self, signature: Signature, kernel: Library) -> None:
        """Compile the handler for `signature` and connect it to the code of `kernel`."""
        text = source(list(signature.inputs.values()), list(signature.outputs.values()), int(signature.dtype[-2:]) // 8)
        super().__init__(text, {"many": kernel.address("many")})
        self._kernel = kernel

    def scratch(self, rows: int) -> int:
        """Return the numbers of a workspace for `rows` states, which XLA allocates as one more result."""
        return 0
