"""One large mechanism on an emulated GPU: every thread of every phase, one after the other."""

from __future__ import annotations

import ctypes
import re
import types
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import zoo
from bellcrank.build.segmented_recursion import segmented_graph
from bellcrank.dynamics import shape_of
from bellcrank.emit.cuda import rolled_kernels, waves
from bellcrank.emit.cuda.team import work
from bellcrank.emit.cuda.thread_code import BARRIER, Units
from bellcrank.emit.cuda.waves import BLOCK_BARRIER, GRID_BARRIER, GRID_BARRIER_TEXT, NO_BARRIER, ThreadWaves, wave_text
from bellcrank.errors import InputError
from bellcrank.graph.waves import elide_copies, forwarding_offsets
from bellcrank.graph.waves import waves as waves_of
from emulated import OutOfMemoryError
from emulated_blocks import Blocks


class Played(Blocks):
    """A bellcrank.emit.cuda.device.DeviceFunction that runs wave by wave, the blocks of each one after the other.

    All threads meet before each wave. Threads of a team run in turns (emulated_blocks.py); others are independent.
    """

    def __init__(self, text: str, name: str, threads: int, shared: int) -> None:
        self.teams = text.count("nounwind convergent {") - 1  # except the barrier
        text = re.sub(r"  call void @(everybody|over)\(.*\n", "", text.replace(GRID_BARRIER_TEXT, ""))
        super().__init__(text.replace(f'"nvvm.maxntid"="{threads}"', ""), name, threads, shared)

    def __call__(self, rows: int, *arguments: Any) -> None:
        *arrays, plan, begin, end, blocks, meeting = arguments
        assert rows == blocks * self.threads
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, plan)]
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), *[ctypes.c_int32] * 3, ctypes.c_void_p)
        kernel = call(self._address)
        for row in range(begin, end):

            def work(row: int = row) -> None:
                kernel(*pointers, row, row + 1, int(blocks), meeting.ctypes.data)

            for block in reversed(range(blocks)):
                self._memory[:] = 0xFF
                if plan[row, 1] < self.teams:
                    self._block(block, work)
                    continue
                for k in reversed(range(self.threads)):
                    self._place[:] = k, block
                    work()


class Stream:
    """A stream that does everything at once."""

    def __init__(self, non_blocking: bool = False) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def synchronize(self) -> None:
        pass


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    here = types.SimpleNamespace(synchronize=lambda: None, attributes={"MultiProcessorCount": 2})
    cuda = types.SimpleNamespace(Stream=Stream, Device=lambda: here, get_current_stream=lambda: here)
    cuda.memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    names = ("zeros", "empty", "asarray", "broadcast_to", "ascontiguousarray", "may_share_memory")
    made = types.SimpleNamespace(**{name: getattr(np, name) for name in names}, asnumpy=np.array, cuda=cuda)
    for module in ("rolled_kernels", "gpu_kernel", "device"):
        monkeypatch.setattr(f"bellcrank.emit.cuda.{module}.cupy", lambda: made)
    monkeypatch.setattr("bellcrank.emit.cuda.gpu_kernel.free_bytes", lambda: 10**9)
    monkeypatch.setattr(rolled_kernels, "DeviceFunction", Played)
    monkeypatch.setattr(waves, "ptx", lambda text: text)
    monkeypatch.setattr("bellcrank.emit.cuda.device.unavailable_reason", lambda: "")


@pytest.mark.parametrize("n", [300, 600])
@pytest.mark.usefixtures("gpu")
def test_the_whole_gpu_for_a_state(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One state uses the whole GPU: more segments than a block has threads.

    Some phases use all blocks, and others only the first.
    """
    monkeypatch.setattr("bellcrank.emit.cuda.target.MIN_SEGMENT_BODIES", 2)
    m = zoo.chain(n)
    k = bc.kernel(m, "forward_dynamics", method="dca", target="cuda")
    q, v, tau = m.random(0, (2,))
    expected = bc.kernel(m, "forward_dynamics", method="aba")(q[1], v[1], tau[1])
    found = k(q[1:], v[1:], tau[1:])[0]
    assert np.abs(found - expected).max() < 1e-10 * np.abs(expected).max()
    assert k.engine.blocks == 2  # of all blocks that would have work


@pytest.mark.usefixtures("gpu")
def test_forces_on_frames_and_a_place_for_the_result() -> None:
    """Each set of frames of the forces has a kernel of its own, found by the same call; out= works."""
    m = zoo.chain(320)
    k = bc.kernel(m, "forward_dynamics", method="dca", target="cuda")
    q, v, tau = m.random(0, (2,))
    expected = bc.kernel(m, "forward_dynamics", method="aba")(q, v, tau)
    out = np.zeros((2, 320))
    assert k(q, v, tau, out=out) is out
    assert np.abs(out - expected).max() < 1e-10 * np.abs(expected).max()
    with pytest.raises(InputError, match='frame "nowhere"'):
        k(q, v, tau, wrenches={"nowhere": np.zeros(6)})


@pytest.mark.usefixtures("gpu")
def test_invalid_input_of_the_wave_kernel_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    m = zoo.chain(310)  # no other test divides this chain differently; otherwise its cached code would be found
    k = bc.kernel(m, "forward_dynamics", method="dca", target="cuda")
    monkeypatch.setattr(k.engine, "function", lambda rows, *arguments: arguments[-6].fill(np.nan))
    q, v, tau = m.random(0)
    with pytest.raises(InputError, match=r"v\[7\].* is nan"):
        k(q, np.where(np.arange(310) == 7, np.nan, v), tau)
    with pytest.raises(InputError, match="out must be"):
        k(q, v, tau, out=np.zeros(311))


def cut(n: int, shortest: int) -> Any:
    m = zoo.chain(n)
    return segmented_graph("cut", m.tree, {x: shape_of(x, m.tree) for x in ("q", "v", "tau")}, None, shortest)


def test_ptx_is_made_without_a_gpu_and_comes_back_from_the_cache() -> None:
    made = wave_text(cut(30, 4))
    assert ".visible .entry phases" in made.ptx
    again = rolled_kernels.unpack_wave_text(rolled_kernels.pack_wave_text(made))
    assert again.ptx == made.ptx
    assert (again.blocks, again.shared, again.room) == (made.blocks, made.shared, made.room)
    np.testing.assert_array_equal(again.whole, made.whole)
    np.testing.assert_array_equal(again.plan, made.plan)


def test_copies_in_joins_are_elided() -> None:
    """A join skips members that only pass values on: paths to the ground are shorter.

    What depends on a join finds its ports there.
    """
    r = cut(200, 4)
    thin = elide_copies(r)
    ports = [k for k, cell in enumerate(r.cells) if cell.graph.name in ("near", "far")]
    assert [k for k, cell in enumerate(r.cells) if forwarding_offsets(cell) is not None] == ports
    assert not any(run.cells[0] in ports for run in thin.r.tree.runs)
    assert max(w.depth for w in waves_of(thin.r)) < 0.7 * max(w.depth for w in waves_of(r))
    for run in r.tree.runs:
        if run.cells[0] == ports[1]:  # distant: not among the three of w, nor among a and g
            assert thin.offsets[r.tree.children[run.begin, 0]].tolist() == [0, 3, 0, 12]


def test_phases_grow_with_the_logarithm() -> None:
    few, many = (ThreadWaves(cut(n, 4)).plan() for n in (1200, 2400))
    assert 0 < sum(many[:, 0] > 0) - sum(few[:, 0] > 0) <= 4 * 2  # one more join in each channel
    for rows in (few, many):
        assert set(rows[:, 0]) == {NO_BARRIER, BLOCK_BARRIER, GRID_BARRIER}
        alone = rows[:, 4] == 1
        waited = rows[1:, 0] > 0
        np.testing.assert_array_equal((rows[1:, 0] == BLOCK_BARRIER)[waited], (alone[1:] & alone[:-1])[waited])


def test_a_join_is_shared_out_evenly() -> None:
    """The work of a join is divided evenly among the members.

    Every unit occurs once; a barrier separates every use from its source; no member has much more work than others.
    """
    made = ThreadWaves(cut(200, 4))
    (largest, *_) = sorted(made.teams.values(), key=lambda loop: -loop.shared)
    found, units = largest.plan.team, Units(largest.block.graph)
    done = [u for stream in found.streams for u in stream if u is not BARRIER and u.defines[0].op != "input"]
    assert sorted(u.serial for u in done) == sorted(u.serial for u in units.all)
    when: dict[int, tuple[int, int]] = {}
    for member, stream in enumerate(found.streams):
        met = 0
        for u in stream:
            met += u is BARRIER
            when |= dict.fromkeys((n.serial for n in u.defines if n.op != "input"), (member, met))
    for u in done:
        member, met = when[u.serial]
        for n in u.uses:
            if n.op != "input":
                other, before = when[n.serial]
                assert before < met or (other == member and before == met)
    sizes = [sum(work(u) for u in stream if u is not BARRIER) for stream in found.streams]
    assert max(sizes) < 1.5 * sum(sizes) / len(sizes)
