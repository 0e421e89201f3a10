"""GPU access through CuPy: device discovery, loading of PTX, arrays that are already in GPU memory."""

from __future__ import annotations

import ctypes
import importlib
import os
import tempfile
import warnings
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from bellcrank.emit import cache as store
from bellcrank.errors import BellcrankError, InputError

# bytes: results from PINNED_BYTES to below MAX_PINNED_BYTES are copied to pinned memory.
PINNED_BYTES, MAX_PINNED_BYTES = 2**20, 2**30
CUDA_DEVICES = (2, 13)  # DLPack device types: CUDA memory and CUDA managed memory


class NoDeviceError(InputError):
    """No usable GPU: CuPy or an NVIDIA GPU is missing."""


class DeviceError(BellcrankError, RuntimeError):
    """The GPU could not carry out an operation."""


class DeviceMemoryError(DeviceError):
    """GPU memory is too small for the operation."""


@cache
def cupy() -> Any:
    """Return the module CuPy, checked to have a GPU."""
    try:
        module = importlib.import_module("cupy")
    except ImportError as error:
        raise NoDeviceError(
            f'target="cuda" needs CuPy, which cannot be imported ({error}). Install it: '
            'pip install "bellcrank[cuda]" (or the cupy-cudaNNx of your CUDA).'
        ) from None
    try:
        count = int(module.cuda.runtime.getDeviceCount())
    except Exception as error:
        raise NoDeviceError(f'target="cuda" needs an NVIDIA GPU, and CuPy finds none ({error}).') from None
    if not count:
        raise NoDeviceError('target="cuda" needs an NVIDIA GPU, and this computer has none.')
    return module


def unavailable_reason() -> str:
    """Return why no GPU is usable; empty where one is."""
    try:
        cupy()
    except NoDeviceError as error:
        return str(error)
    return ""


def out_of_memory_error() -> type[Exception]:
    """Return the exception class that CuPy raises when GPU memory is exhausted."""
    error: type[Exception] = cupy().cuda.memory.OutOfMemoryError
    return error


def release_pool() -> None:
    """Release the blocks that CuPy's memory pool keeps for reuse: a larger allocation may fit then."""
    cupy().get_default_memory_pool().free_all_blocks()


def machine_code(ptx: str) -> bytes:
    """Return the machine code (cubin) of a `ptx` text for this GPU, from the disk cache if possible.

    For a large kernel the driver needs seconds for the translation.
    """
    cp = cupy()
    gpu, driver = cp.cuda.Device().compute_capability, cp.cuda.runtime.driverGetVersion()
    cache_file = f"{store.key('cubin', ptx, str(gpu), str(driver))}.cubin"
    code = store.load(cache_file)
    if code is None:
        link = importlib.import_module("cupy.cuda.function").LinkState()
        link.add_ptr_data(ptx.encode(), "bellcrank.ptx")
        code = bytes(link.complete())
        store.save(cache_file, code)
    return code


def _load_kernel(code: bytes, name: str, kind: str = "cubin") -> Any:
    """Load a kernel from machine code or PTX; CuPy reads it from a file."""
    handle, path = tempfile.mkstemp(suffix=f".{kind}")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(code)
        return cupy().RawModule(path=path).get_function(name)
    finally:
        os.unlink(path)


@cache
def driver_launch() -> Any:
    """Return the driver's cuLaunchKernel."""
    launch = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
    launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    return launch


class DeviceFunction:
    """A kernel of a PTX text, loaded onto the GPU."""

    def __init__(
        self, ptx: str, name: str, threads: int, shared: int, states: int = 0, single_piece: bool = False
    ) -> None:
        """Load the kernel `name`.

        states: states of a block, if not as many as its threads. single_piece: the PTX has functions that call each
        other, and the driver compiles it in one piece. PTX that is linked, and can be cached on disk, is compiled
        function by function and then uses twice the registers.
        """
        try:
            self.kernel = (
                _load_kernel(ptx.encode(), name, "ptx") if single_piece else _load_kernel(machine_code(ptx), name)
            )
            self.registers, self.local = int(self.kernel.num_regs), int(self.kernel.local_size_bytes)
        except Exception as error:
            raise DeviceError(f"the GPU driver rejected the generated PTX: {error}.") from error
        if shared > 48 * 1024:
            try:
                self.kernel.max_dynamic_shared_size_bytes = shared
            except Exception as error:
                raise DeviceError(
                    f"the kernel needs {shared} bytes of shared memory per block, and this GPU has less ({error}). "
                    'Kernels of large mechanisms are planned for an H100 or H200; use target="cpu" instead.'
                ) from error
        self.threads, self.shared, self.states = threads, shared, states or threads

    @cached_property
    def address(self) -> int:
        """Handle of the kernel in the driver."""
        return int(self.kernel.kernel.ptr)

    def launch(self, stream: int, rows: int, numbers: Sequence[int]) -> None:
        """Launch the kernel in a stream of the caller.

        Parameters
        ----------
        stream
            Address of the CUDA stream.
        rows
            Number of states.
        numbers
            Arguments of the kernel as integers, addresses among them.
        """
        values = (ctypes.c_uint64 * len(numbers))(*numbers)
        first = ctypes.addressof(values)
        argument_pointers = (ctypes.c_void_p * len(numbers))(*range(first, first + 8 * len(numbers), 8))
        grid = (-(-rows // self.states), 1, 1, self.threads, 1, 1)
        code = driver_launch()(self.address, *grid, self.shared, stream, argument_pointers, None)
        if code:
            raise DeviceError(f"the GPU driver refused to launch a kernel (CUDA error {code}).")

    def __call__(self, rows: int, *arguments: Any) -> None:
        """Launch the kernel for `rows` states in CuPy's current stream, with `arguments` (arrays and numpy scalars)."""
        self.kernel((-(-rows // self.states),), (self.threads,), arguments, shared_mem=self.shared)


def on_gpu(x: Any) -> bool:
    """Return whether the array `x` is in GPU memory, without copying anything."""
    if isinstance(x, np.ndarray | np.generic | list | tuple | float | int):
        return False
    try:
        return x.__cuda_array_interface__ is not None
    except Exception:  # PyTorch and JAX raise if their array is in host memory
        pass
    try:
        return x.__dlpack_device__()[0] in CUDA_DEVICES
    except Exception:
        return False


def to_cupy(x: Any, name: str) -> Any:
    """Return `x` as a CuPy array: a GPU array shares its memory, anything else is copied to the GPU.

    DLPack is preferred: with it CuPy's stream waits for the producer's stream. PyTorch's __cuda_array_interface__
    carries no stream, and data still being computed on another stream would be read too early.

    Parameters
    ----------
    x
        Array of any library.
    name
        Description of the array for error messages.
    """
    cp = cupy()
    try:
        if on_gpu(x) and not isinstance(x, cp.ndarray) and hasattr(type(x), "__dlpack__"):
            return cp.from_dlpack(x)
        return cp.asarray(x)
    except out_of_memory_error():
        raise
    except Exception as error:  # any exception of the other library, for example for a tensor that requires a gradient
        raise InputError(f"{name} is a {type(x).__name__} that CuPy cannot convert to an array: {error}") from error


def to_numpy(x: Any) -> Any:
    """Return the GPU array `x` as a numpy array.

    A large one goes to pinned memory, which the GPU writes by DMA, several times as fast; CuPy reuses such memory when
    the array is gone.
    """
    cp = cupy()
    if not PINNED_BYTES <= x.nbytes < MAX_PINNED_BYTES:
        return cp.asnumpy(x)
    try:
        memory = cp.cuda.alloc_pinned_memory(x.nbytes)
    except Exception:  # pinned memory may be limited on a computer; results must not be lost
        return cp.asnumpy(x)
    result = np.frombuffer(memory, x.dtype, x.size).reshape(x.shape)
    return cp.asnumpy(x, out=result)


def stream_context(stream: int) -> Any:
    """Return a context in which CuPy allocates memory and computes on the CUDA stream with the address `stream`."""
    with warnings.catch_warnings():  # older versions of CuPy do not have the replacement of ExternalStream
        warnings.simplefilter("ignore", DeprecationWarning)
        return cupy().cuda.ExternalStream(stream)


def array_address(x: Any) -> int:
    """Return the address of the CuPy array `x`."""
    return int(x.data.ptr)


def total_bytes() -> int:
    """Return the bytes of memory of the device."""
    return int(cupy().cuda.runtime.memGetInfo()[1])


def free_bytes() -> int:
    """Return the bytes that an allocation may take: free device memory plus what CuPy keeps in its pool."""
    cp = cupy()
    return int(cp.cuda.runtime.memGetInfo()[0]) + int(cp.get_default_memory_pool().free_bytes())
