"""One large mechanism on a GPU that this processor plays: every thread of every phase, one after the other."""

from __future__ import annotations

import ctypes
import types
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import zoo
from bellcrank.build.segmented import segmented
from bellcrank.dynamics import shape_of
from bellcrank.emit.cpu.library import Library
from bellcrank.emit.cuda import wave_kernel, waves
from bellcrank.emit.cuda.waves import THREADS, ThreadWaves, waved
from bellcrank.errors import InputError
from bellcrank.graph.slim import passes, slim
from bellcrank.graph.waves import waves as waves_of
from emulated import machine_code, played


class Played:
    """What bellcrank.emit.cuda.device.Function is. Within a launch of one block the threads wait where a phase begins:
    so the phases are gone through one by one, and the threads of each in any order.
    """

    num_regs = local_size_bytes = 0

    def __init__(self, text: str, name: str, threads: int, shared: int) -> None:
        text = text.replace("  call void @llvm.nvvm.barrier0()\n", "").replace(f'"nvvm.maxntid"="{threads}"', "")
        self.library = Library(machine_code(played(text)))
        self.address = self.library.address(name)
        self.place = (ctypes.c_int32 * 2).from_address(self.library.address("place"))
        self.kernel = self

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
        *arrays, first, last, threads = arguments
        assert int(threads) == grid[0] * block[0]
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays), *[ctypes.c_int32] * 3)(self.address)
        pointers = [a.ctypes.data for a in arrays]
        for row in range(int(first), int(last)):
            for k in reversed(range(int(threads))):
                self.place[0], self.place[1] = k % block[0], k // block[0]
                call(*pointers, row, row + 1, int(threads))


class Stream:
    """Does everything at once, and records it where it is asked to."""

    def __init__(self, non_blocking: bool = False) -> None:
        self.engine: Any = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def begin_capture(self) -> None:
        pass

    def end_capture(self) -> Any:
        return types.SimpleNamespace(launch=lambda stream: self.engine.launch())


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    here = types.SimpleNamespace(synchronize=lambda: None)
    cuda = types.SimpleNamespace(Stream=Stream, Device=lambda: here, get_current_stream=lambda: here)
    names = ("zeros", "empty", "asarray", "broadcast_to")
    made = types.SimpleNamespace(**{name: getattr(np, name) for name in names}, asnumpy=np.array, cuda=cuda)
    monkeypatch.setattr(wave_kernel, "cupy", lambda: made)
    monkeypatch.setattr(wave_kernel, "Function", Played)
    monkeypatch.setattr(waves, "ptx", lambda text: text)
    monkeypatch.setattr("bellcrank.emit.cuda.device.missing", lambda: "")
    begin = wave_kernel.Engine.__init__

    def started(self: Any, *args: Any) -> None:
        begin(self, *args)
        self.stream.engine = self

    monkeypatch.setattr(wave_kernel.Engine, "__init__", started)


@pytest.mark.usefixtures("gpu")
def test_the_whole_gpu_for_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """More segments than a block has threads, so that some phases are launched alone and others follow each other."""
    monkeypatch.setattr("bellcrank.emit.cuda.target.SEGMENT", 2)
    m = zoo.chain(300)
    k = bc.kernel(m, "forward_dynamics", method="dca", target="cuda")
    q, v, tau = m.random(0, (2,))
    expected = bc.kernel(m, "forward_dynamics", method="aba")(q, v, tau)
    found = k(q, v, tau)
    assert np.abs(found - expected).max() < 1e-10 * np.abs(expected).max()
    np.testing.assert_array_equal(k(q[1], v[1], tau[1]), found[1])
    blocks = {blocks for _, _, blocks in k.engine.launches}
    assert blocks == {1, 2}
    with pytest.raises(InputError, match=r"v\[7\].* is nan"):
        k(q[0], np.where(np.arange(300) == 7, np.nan, v[0]), tau[0])
    with pytest.raises(InputError, match="out= is not"):
        k(q[0], v[0], tau[0], out=np.zeros(300))


def cut(n: int, shortest: int) -> Any:
    m = zoo.chain(n)
    return segmented("cut", m.tree, {x: shape_of(x, m.tree) for x in ("q", "v", "tau")}, None, shortest)


def test_ptx_is_made_without_a_gpu_and_comes_back_from_the_cache() -> None:
    made = waved(cut(30, 4))
    assert ".visible .entry phases" in made.ptx
    again = wave_kernel.unpacked(wave_kernel.packed(made))
    assert again.ptx == made.ptx
    assert again.launches == made.launches
    np.testing.assert_array_equal(again.whole, made.whole)
    np.testing.assert_array_equal(again.plan, made.plan)


def test_who_only_passes_on_is_looked_past() -> None:
    """Ports: what hangs on a join finds there what was meant for it, and the way to the ground is shorter."""
    r = cut(200, 4)
    thin = slim(r)
    ports = [k for k, cell in enumerate(r.cells) if cell.graph.name in ("near", "far")]
    assert [k for k, cell in enumerate(r.cells) if passes(cell) is not None] == ports
    assert not any(run.cells[0] in ports for run in thin.r.tree.runs)
    assert max(w.depth for w in waves_of(thin.r)) < 0.7 * max(w.depth for w in waves_of(r))
    for run in r.tree.runs:
        if run.cells[0] == ports[1]:  # far: beyond the three of w, and beyond a and g
            assert thin.further[r.tree.children[run.begin, 0]].tolist() == [0, 3, 0, 12]


def test_launches_grow_with_the_logarithm() -> None:
    few, many = (ThreadWaves(cut(n, 4)) for n in (1200, 2400))
    assert len(many.launches()) - len(few.launches()) <= 4 * 2  # a join more, in each channel
    for made in (few, many):
        rows, _ = made.plan()
        assert [first for first, _, _ in made.launches()][1:] == [last for _, last, _ in made.launches()][:-1]
        assert made.launches()[-1][1] == len(rows)
        widest = max(last - first for _, _, first, last in rows.tolist())
        assert max(blocks for _, _, blocks in made.launches()) == -(-widest // THREADS)
