"""The GPU through CuPy: whether there is one, PTX loaded onto it, arrays that lie there already."""

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

LARGE, TOO_LARGE = 2**20, 2**30  # bytes from and below which a result goes to memory that stays where it is
CUDA_DEVICES = (2, 13)  # in DLPack's numbering: memory of a GPU, and memory that it shares


class NoDeviceError(InputError):
    """There is no GPU, or nothing to reach it with."""


class DeviceError(BellcrankError, RuntimeError):
    """The GPU could not do what was asked."""


class DeviceMemoryError(DeviceError):
    """Its memory does not hold what was asked."""


@cache
def cupy() -> Any:
    """CuPy, with a GPU behind it."""
    try:
        found = importlib.import_module("cupy")
    except ImportError as error:
        raise NoDeviceError(
            f'target="cuda" needs CuPy, which cannot be imported ({error}). Install it: '
            'pip install "bellcrank[cuda]" (or the cupy-cudaNNx of your CUDA).'
        ) from None
    try:
        count = int(found.cuda.runtime.getDeviceCount())
    except Exception as error:
        raise NoDeviceError(f'target="cuda" needs an NVIDIA GPU, and CuPy finds none ({error}).') from None
    if not count:
        raise NoDeviceError('target="cuda" needs an NVIDIA GPU, and this computer has none.')
    return found


def missing() -> str:
    """Why there is no GPU to compute on; empty where there is one."""
    try:
        cupy()
    except NoDeviceError as error:
        return str(error)
    return ""


def out_of_memory() -> type[Exception]:
    """What CuPy raises where memory is not enough."""
    found: type[Exception] = cupy().cuda.memory.OutOfMemoryError
    return found


def forget() -> None:
    """Gives back what CuPy keeps for the next allocation: a larger one may fit then."""
    cupy().get_default_memory_pool().free_all_blocks()


def machine_code(ptx: str) -> bytes:
    """What the driver makes of a text for this GPU: for a large kernel that takes seconds, so it is kept on disk."""
    cp = cupy()
    gpu, driver = cp.cuda.Device().compute_capability, cp.cuda.runtime.driverGetVersion()
    kept = f"{store.key('cubin', ptx, str(gpu), str(driver))}.cubin"
    code = store.load(kept)
    if code is None:
        link = importlib.import_module("cupy.cuda.function").LinkState()
        link.add_ptr_data(ptx.encode(), "bellcrank.ptx")
        code = bytes(link.complete())
        store.save(kept, code)
    return code


def _loaded(code: bytes, name: str, kind: str = "cubin") -> Any:
    """A kernel of machine code, or of PTX; CuPy takes it from a file."""
    handle, path = tempfile.mkstemp(suffix=f".{kind}")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(code)
        return cupy().RawModule(path=path).get_function(name)
    finally:
        os.unlink(path)


@cache
def driver_launch() -> Any:
    """The driver's own cuLaunchKernel."""
    found = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
    found.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    return found


class Function:
    """A kernel of a PTX text, on the GPU."""

    def __init__(self, ptx: str, name: str, threads: int, shared: int, states: int = 0, whole: bool = False) -> None:
        """states: of a block, if they are not as many as its threads. whole: it has functions that call each other,
        which the driver compiles in one piece. What is linked, and can be kept on disk, is compiled function by
        function, and takes twice the registers.
        """
        try:
            self.kernel = _loaded(ptx.encode(), name, "ptx") if whole else _loaded(machine_code(ptx), name)
            self.registers, self.local = int(self.kernel.num_regs), int(self.kernel.local_size_bytes)
        except Exception as error:
            raise DeviceError(f"the GPU's driver did not accept generated PTX: {error}.") from error
        if shared > 48 * 1024:
            try:
                self.kernel.max_dynamic_shared_size_bytes = shared
            except Exception as error:
                raise DeviceError(
                    f"the kernel needs {shared} bytes of shared memory for a block, and this GPU has less ({error}): "
                    'large mechanisms are planned for an H100 or H200. Compute them with target="cpu".'
                ) from error
        self.threads, self.shared, self.states = threads, shared, states or threads

    @cached_property
    def address(self) -> int:
        """The driver's own handle of it."""
        return int(self.kernel.kernel.ptr)

    def start(self, stream: int, rows: int, numbers: Sequence[int]) -> None:
        """In somebody's stream. numbers: the arguments, addresses among them."""
        held = (ctypes.c_uint64 * len(numbers))(*numbers)
        first = ctypes.addressof(held)
        given = (ctypes.c_void_p * len(numbers))(*range(first, first + 8 * len(numbers), 8))
        grid = (-(-rows // self.states), 1, 1, self.threads, 1, 1)
        code = driver_launch()(self.address, *grid, self.shared, stream, given, None)
        if code:
            raise DeviceError(f"the GPU's driver refused to launch a kernel (CUDA error {code}).")

    def __call__(self, rows: int, *arguments: Any) -> None:
        self.kernel((-(-rows // self.states),), (self.threads,), arguments, shared_mem=self.shared)


def on_gpu(x: Any) -> bool:
    """Whether an array lies on a GPU; nothing is copied to find out."""
    if isinstance(x, np.ndarray | np.generic | list | tuple | float | int):
        return False
    try:
        return x.__cuda_array_interface__ is not None
    except Exception:  # PyTorch and JAX raise where their array is in ordinary memory
        pass
    try:
        return x.__dlpack_device__()[0] in CUDA_DEVICES
    except Exception:
        return False


def adopted(x: Any, name: str) -> Any:
    """An array of the GPU as CuPy's own, in the same memory; anything else is copied there.

    By DLPack where there is a choice: with it our stream waits for theirs. PyTorch's __cuda_array_interface__ says
    nothing of streams, and what is still being computed on another one would be read too early.
    """
    cp = cupy()
    try:
        if on_gpu(x) and not isinstance(x, cp.ndarray) and hasattr(type(x), "__dlpack__"):
            return cp.from_dlpack(x)
        return cp.asarray(x)
    except out_of_memory():
        raise
    except Exception as error:  # whatever their library raises: of a tensor that requires a gradient, say
        raise InputError(f"{name} is a {type(x).__name__} that CuPy cannot take as an array: {error}") from error


def fetched(x: Any) -> Any:
    """An array of the GPU as one of numpy. A large one goes to memory that stays where it is, which the GPU writes by
    itself, several times as fast; CuPy keeps such memory for the next when the array is gone.
    """
    cp = cupy()
    if not LARGE <= x.nbytes < TOO_LARGE:
        return cp.asnumpy(x)
    try:
        memory = cp.cuda.alloc_pinned_memory(x.nbytes)
    except Exception:  # whatever the driver says: a computer may allow little of it, and results must not be lost
        return cp.asnumpy(x)
    found = np.frombuffer(memory, x.dtype, x.size).reshape(x.shape)
    return cp.asnumpy(x, out=found)


def in_stream(stream: int) -> Any:
    """Within it, memory is somebody's whose stream this is, by its address."""
    with warnings.catch_warnings():  # the way that replaces it is not there in older ones
        warnings.simplefilter("ignore", DeprecationWarning)
        return cupy().cuda.ExternalStream(stream)


def address(x: Any) -> int:
    """Of an array of CuPy."""
    return int(x.data.ptr)


def total_bytes() -> int:
    """Memory of the device."""
    return int(cupy().cuda.runtime.memGetInfo()[1])


def free_bytes() -> int:
    """What an allocation may take: free memory of the device, and what CuPy keeps in its pool."""
    cp = cupy()
    return int(cp.cuda.runtime.memGetInfo()[0]) + int(cp.get_default_memory_pool().free_bytes())
