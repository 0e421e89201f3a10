"""Blocks of a GPU emulated on the CPU: threads that meet at barriers, where emulated.py has only independent threads.

Every GPU thread is a thread of this process, but only one runs at a time: it runs until it reaches a barrier or ends,
then the next one runs, first to last or last to first. If one thread reads what another writes between the same two
barriers, the two orders give different results. Shared memory starts as NaN, so one of these results is wrong.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np

import emulated
from emulated import fake_cupy

MEETING = """@meeting = global ptr null
define void @meet() {
  %f = load volatile ptr, ptr @meeting
  call void %f()
  ret void
}
"""
ASKED_ANEW = 'asm sideeffect "mov.u32 $0, %tid.x;", "=r"()'


class Blocks(emulated.Function):
    """A bellcrank.emit.cuda.device.DeviceFunction made of LLVM text instead of PTX."""

    backwards = False

    def __init__(self, text: str, name: str, threads: int, shared: int, states: int = 0) -> None:
        """Compile the text, which may call @llvm.nvvm.barrier0."""
        text = text.replace("@llvm.nvvm.barrier0(", "@meet(").replace(ASKED_ANEW, "@tid()")
        text = text.replace("declare void @meet()\n", "")
        super().__init__(f"{text}\n{MEETING}", name, threads, shared)
        self.states, self.meetings = states or threads, 0
        self._meet = ctypes.CFUNCTYPE(None)(self._met)  # must live as long as the code
        where = ctypes.c_void_p.from_address(self._library.address("meeting"))
        where.value = ctypes.cast(self._meet, ctypes.c_void_p).value

    def __call__(self, rows: int, *arguments: Any) -> None:
        kinds = {np.dtype("int64"): ctypes.c_int64, np.dtype("uint32"): ctypes.c_uint32}
        given = [
            ctypes.c_void_p(a.__array_interface__["data"][0]) if isinstance(a, np.ndarray) else kinds[a.dtype](int(a))
            for a in arguments
        ]
        call = ctypes.CFUNCTYPE(None, *(type(a) for a in given))(self._address)
        for block in range(-(-rows // self.states)):
            self._memory[:] = 0xFF  # NaN in either precision
            self._block(block, lambda: call(*given))

    def _block(self, block: int, work: Any) -> None:
        self._back = threading.Semaphore(0)  # the running thread returns control with it
        turns = [threading.Semaphore(0) for _ in range(self.threads)]
        ended = [False] * self.threads
        self._turn = threading.local()

        def thread(k: int) -> None:
            self._turn.mine = turns[k]
            turns[k].acquire()
            work()
            ended[k] = True
            self._back.release()

        players = [threading.Thread(target=thread, args=(k,), daemon=True) for k in range(self.threads)]
        for player in players:
            player.start()
        self.meetings = -1
        while not all(ended):
            assert not any(ended), "some have ended, and others wait for them at a barrier"
            for k in reversed(range(self.threads)) if self.backwards else range(self.threads):
                self._place[:] = k, block
                turns[k].release()
                self._back.acquire()
            self.meetings += 1
        for player in players:
            player.join()

    def _met(self) -> None:
        self._back.release()
        self._turn.mine.acquire()


class OnGpu(np.ndarray[Any, Any]):
    """An array that claims to be in GPU memory."""


def on_gpu(x: Any) -> bool:
    return isinstance(x, OnGpu)


def adopted(x: Any, name: str) -> Any:
    return x if on_gpu(x) else np.array(x)


def kernels_here(monkeypatch: Any) -> Any:
    """Make CudaKernel compute on this processor; return the replacement of CuPy."""
    found = fake_cupy()
    found.empty = lambda *shape: np.empty(*shape).view(OnGpu)
    found.may_share_memory = np.may_share_memory
    found.asnumpy = np.array
    monkeypatch.setattr("bellcrank.emit.cuda.device.cupy", lambda: found)
    monkeypatch.setattr("bellcrank.emit.cuda.gpu_kernel.cupy", lambda: found)
    monkeypatch.setattr("bellcrank.emit.cuda.gpu_kernel.DeviceFunction", Blocks)
    for name, x in {"cupy": lambda: found, "on_gpu": on_gpu, "to_cupy": adopted, "free_bytes": lambda: 10**9}.items():
        monkeypatch.setattr(f"bellcrank.emit.cuda.gpu_kernel.{name}", x)
    monkeypatch.setattr("bellcrank.emit.cuda.batch_kernel.ptx", lambda text: text)
    return found
