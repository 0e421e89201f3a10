"""XLA handler of a GPU kernel: the handler of emit/cpu/xla.py, which launches the kernel on XLA's stream.

Buffers are dense and row-major, so the kernel reads and writes whole rows, through tiles where it can. The launch is
the driver's own function, and nothing blocks. A kernel that needs a workspace gets it from XLA, as an additional result
that is never read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod

from bellcrank.emit.cpu.xla import BUFFER_OFFSETS, XlaHandler, buffers, handler, load_field
from bellcrank.emit.cuda.device import DeviceFunction, driver_launch
from bellcrank.emit.cuda.gpu_kernel import CudaKernel
from bellcrank.emit.cuda.lane_code import LANES
from bellcrank.emit.cuda.rolled_kernels import StateKernel
from bellcrank.emit.target import Shape

API_OFFSETS = {
    "error": 48,
    "stream": 80,
}  # offsets in XLA_FFI_Api of the functions that create an error and get the stream
INTERNAL_ERROR = 13  # XLA_FFI_Error_Code
REFUSED_MESSAGE = "the GPU's driver refused to launch a kernel of bellcrank"


def source(inputs: Sequence[Shape], outputs: Sequence[Shape], parts: Sequence[DeviceFunction], most: int = 0) -> str:
    """Return the module: @handler; @launch for the address of cuLaunchKernel; and @part0, ... for its functions.

    Parameters
    ----------
    inputs
        Shapes of the inputs.
    outputs
        Shapes of the outputs.
    parts
        Functions to launch in sequence.
    most
        Maximum number of blocks of a kernel with a workspace; 0 without one.
    """
    arrays = buffers(inputs, outputs)
    numbers = "".join(
        f"""  %{prefix}{k}.row = alloca i32
  store i32 {prod(shape)}, ptr %{prefix}{k}.row
  %{prefix}{k}.place = alloca ptr
  store ptr %{prefix}{k}.data, ptr %{prefix}{k}.place
"""
        for prefix, k, shape in arrays
    )
    argument_pointers = ["%rows", *(x for w, k, _ in arrays for x in (f"%{w}{k}.place", f"%{w}{k}.row", "%column"))]
    argument_pointers += ["%workspace.place", "%blocks.place"] if most else []
    list_ = "".join(
        f"  %given{i} = getelementptr ptr, ptr %given, i64 {i}\n  store ptr {x}, ptr %given{i}\n"
        for i, x in enumerate(argument_pointers)
    )
    work = f"""  %rows = alloca i64
  store i64 %n, ptr %rows
  %column = alloca i32
  store i32 1, ptr %column
{numbers}{_workspace(len(outputs), most) if most else ""}  %given = alloca [{len(argument_pointers)} x ptr]
{list_}  %told = alloca {{ i64, ptr, ptr, ptr }}
  store {{ i64, ptr, ptr, ptr }} {{ i64 32, ptr null, ptr null, ptr null }}, ptr %told
  %told.context = getelementptr i8, ptr %told, i64 16
  store ptr %context, ptr %told.context
{load_field("tell.stream", "ptr", "%api", API_OFFSETS["stream"])}  %unknown = call ptr %tell.stream(ptr %told)
  %known = icmp eq ptr %unknown, null
  br i1 %known, label %start, label %stop
stop:
  ret ptr %unknown
start:
{load_field("stream", "ptr", "%told", 24)}  %launch = load ptr, ptr @launch
  br label %launch0
{"".join(_launch(k, part, len(parts), most) for k, part in enumerate(parts))}refused:
  %why = alloca {{ i64, ptr, ptr, i32 }}
  store {{ i64, ptr, ptr, i32 }} {{ i64 28, ptr null, ptr @why, i32 {INTERNAL_ERROR} }}, ptr %why
{load_field("make.error", "ptr", "%api", API_OFFSETS["error"])}  %error = call ptr %make.error(ptr %why)
  ret ptr %error
"""
    slots = "".join(f"@part{k} = global ptr null\n" for k in range(len(parts)))
    text = f'@why = private constant [{len(REFUSED_MESSAGE) + 1} x i8] c"{REFUSED_MESSAGE}\\00"\n'
    return f"@launch = global ptr null\n{slots}{text}{handler(inputs, outputs, work)}"


def _workspace(place: int, most: int) -> str:
    """Return the code that reads the last result, and the number of blocks for it (as `balanced_blocks`)."""
    return f"""  %workspace.at = getelementptr ptr, ptr %rets, i64 {place}
  %workspace = load ptr, ptr %workspace.at
{load_field("workspace.data", "ptr", "%workspace", BUFFER_OFFSETS["data"])}  %workspace.place = alloca ptr
  store ptr %workspace.data, ptr %workspace.place
  %groups.up = add i64 %n, {LANES - 1}
  %groups = udiv i64 %groups.up, {LANES}
  %rounds.up = add i64 %groups, {most - 1}
  %rounds = udiv i64 %rounds.up, {most}
  %even.more = add i64 %groups, %rounds
  %even.up = sub i64 %even.more, 1
  %blocks = udiv i64 %even.up, %rounds
  %blocks.place = alloca i64
  store i64 %blocks, ptr %blocks.place
"""


def _launch(k: int, part: DeviceFunction, count: int, most: int) -> str:
    """Return the launch of one part, followed by the next."""
    after = f"launch{k + 1}" if k + 1 < count else "nothing"
    blocks = f"""  %up{k} = add i64 %n, {part.states - 1}
  %blocks{k}.wide = udiv i64 %up{k}, {part.states}
  %blocks{k} = trunc i64 %blocks{k}.wide to i32
"""
    if most:
        blocks = f"  %blocks{k} = trunc i64 %blocks to i32\n"
    return f"""launch{k}:
  %part{k} = load ptr, ptr @part{k}
{blocks}  %code{k} = call i32 %launch(ptr %part{k}, i32 %blocks{k}, i32 1, i32 1, i32 {part.threads}, i32 1, i32 1, \
i32 {part.shared}, ptr %stream, ptr %given, ptr null)
  %good{k} = icmp eq i32 %code{k}, 0
  br i1 %good{k}, label %{after}, label %refused
"""


class GpuHandler(XlaHandler):
    """XLA handler of a GPU kernel."""

    def __init__(self, kernel: CudaKernel | StateKernel) -> None:
        """Compile the handler of `kernel` and connect it to the functions that it launches."""
        shapes = list(kernel.signature.inputs.values()), list(kernel.signature.outputs.values())
        self.parts, self.scratch = kernel.in_rows, kernel.scratch
        pointers = {f"part{k}": part.address for k, part in enumerate(self.parts)}
        pointers["launch"] = ctypes.cast(driver_launch(), ctypes.c_void_p).value or 0
        super().__init__(source(*shapes, self.parts, kernel.most), pointers)
