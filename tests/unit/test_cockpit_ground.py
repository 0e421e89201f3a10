"""The displayed ground: volume is conserved, nothing changes at rest, and the autopilot always digs soil."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank.cockpit.machines import Machine
from bellcrank.cockpit.session import Session
from bellcrank.excavators import linkage_machine as linkage
from bellcrank.excavators import rotary_machine as excavator
from bellcrank.ground.field import CELL_SIZE, HALF_WIDTH, Ground, Patch, Tool
from fake_drive import FakeDrive
from trees import few

TOOL = Tool((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), 1.2, 0.8)
LEVEL = -1.0
PLACES = st.tuples(st.floats(-12, 12), st.floats(-12, 12), st.floats(-2.5, 1.5))


def missing(g: Ground) -> float:
    """Return the volume in m3 that was removed from the heights."""
    return -float(g.heights.sum()) * CELL_SIZE * CELL_SIZE


def moved(g: Ground, t: float, a: Any, b: Any, mouth: float, turn: float = 0.0, looks: int = 15) -> float:
    """Move the tool from a to b in so many observations; return the time at the end."""
    across = (-math.sin(turn), math.cos(turn), 0.0)
    for k in range(looks):
        t += 1 / 60
        p = np.asarray(a) + (np.asarray(b) - a) * (k / (looks - 1))
        g.work(t, p, across, mouth, p)
    return t


@few(12)
@given(
    places=st.lists(PLACES, min_size=2, max_size=8),
    mouths=st.lists(st.floats(-1, 1), min_size=8, max_size=8),
    turn=st.floats(-4, 4),
)
def test_nothing_is_won_or_lost(places: list[Any], mouths: list[float], turn: float) -> None:
    g, t, poured, load = Ground(TOOL, LEVEL), 0.0, 0.0, 0.0
    for a, b, mouth in zip(places, places[1:], mouths, strict=False):
        before = g.dug
        t = moved(g, t, a, b, mouth, turn)
        poured += load + (g.dug - before) - g.load
        load = g.load
        assert 0.0 <= g.load <= TOOL.capacity + 1e-12
        assert missing(g) == pytest.approx(g.load, abs=1e-9)
    assert g.dug == pytest.approx(poured + g.load, abs=1e-9)
    assert g.dug <= poured + TOOL.capacity + 1e-9  # never more than one bucket that was not poured out


@few(12)
@given(start=PLACES, end=PLACES, mouth=st.floats(0.45, 1))
def test_one_pass_is_one_bucket_at_most_and_rest_changes_nothing(start: Any, end: Any, mouth: float) -> None:
    g = Ground(TOOL, LEVEL)
    t = 0.0
    for _ in range(2):  # back and forth, as deep as possible
        t = moved(g, t, start, end, mouth)
        t = moved(g, t, end, start, mouth)
    assert g.dug <= TOOL.capacity + 1e-9
    g.take_changes()
    g.settle()
    g.take_changes()
    before, dug = g.heights.copy(), g.dug
    for k in range(60):  # one second with vibrations of a millimetre
        g.work(t + k / 60, np.asarray(start) + 1e-3 * math.sin(k), (0.0, 1.0, 0.0), mouth, start)
    np.testing.assert_array_equal(g.heights, before)
    assert g.dug == dug
    assert g.take_changes() is None


def test_a_hole_and_a_heap() -> None:
    g = Ground(TOOL, LEVEL)
    t = moved(g, 0.0, (7, 0, LEVEL - 0.4), (5, 0, LEVEL - 0.4), 0.0)
    assert g.heights.min() == pytest.approx(-0.4, abs=0.05)
    assert g.load > 0.4
    t = moved(g, t, (5, 0, LEVEL - 0.4), (5, 0, 1.0), 1.0)
    t = moved(g, t, (5, 0, 1.0), (0, 5, 1.0), 1.0, looks=40)
    held = g.load
    t = moved(g, t, (0, 5, 1.0), (0, 5.1, 1.0), -1.0, looks=120)
    assert g.load == 0.0
    assert held > 0.4
    i, j = round(HALF_WIDTH / CELL_SIZE), round((5 + HALF_WIDTH) / CELL_SIZE)
    assert g.heights[j, i] > 0.1


def test_a_bucket_empties_onto_its_own_heap() -> None:
    """A bucket empties onto its own heap, even if it is held so low that the heap reaches the teeth."""
    g = Ground(TOOL, LEVEL)
    t = moved(g, 0.0, (7, 0, LEVEL - 0.4), (4, 0, LEVEL - 0.4), 0.0)
    moved(g, t, (4, 3, LEVEL + 0.2), (4, 3.05, LEVEL + 0.2), -1.0, looks=120)
    assert g.load == 0.0


def test_a_replay_has_the_ground_of_its_time() -> None:
    """Applying all reported changes to the initial ground gives the ground at the end, and at any earlier time."""
    g, shown, seen = Ground(TOOL, LEVEL), np.zeros(0), []
    t = 0.0
    for k in range(3):
        for a, b, mouth in (((7, k, LEVEL - 0.4), (5, k, LEVEL - 0.4), 0.5), ((5, k, 1.0), (5, -3, 1.0), -1.0)):
            for leg in range(4):
                t = moved(g, t, a, np.asarray(a) + (np.asarray(b) - a) * (leg + 1) / 4, mouth, looks=8)
                g.take_changes()
                shown = _laid(g.history(-1.0, math.inf))
                seen.append((t, shown))
                np.testing.assert_allclose(shown, g.heights, atol=1e-4)
    for t, then in seen:
        np.testing.assert_array_equal(g.history(t, math.inf)[0], then)  # in one call
        np.testing.assert_array_equal(_laid(g.history(min(0.5, t), t)), then)  # or step by step
    whole = Patch(0, 0, 0).merged_with(g.full_state())
    assert whole.whole
    assert {k: g.heights.flat[k] for k in whole.cells} == pytest.approx(whole.cells, abs=1e-4)


def _laid(found: tuple[Any, list[Patch]]) -> Any:
    heights, patches = found
    for patch in patches:
        for cell, height in patch.cells.items():
            heights.flat[cell] = height
    return heights


@pytest.mark.parametrize("machine", [excavator.machine, linkage.machine], ids=["excavator", "linkage"])
def test_the_autopilot_digs_ground_every_time(machine: Any) -> None:
    """The autopilot digs soil in every cycle, all around the machine and further.

    The teeth follow the levers exactly; the dynamics of the machine are left out.
    """
    m: Machine = machine()
    assert m.tool is not None
    tour = _tour(m)
    g, t, hands = Ground(m.tool, m.ground or 0.0), 0.0, tour.hands
    at, fullest, loads = list(tour.places[-1]), 0.0, list[float]()
    step = 0.1
    while len(loads) < 27:
        was = tour.index
        shot = SimpleNamespace(t=t, y=at)
        object.__setattr__(hands, "place", lambda shot: tuple(shot.y))
        radius, arc, height, bucket, *_ = tour(shot)
        for i, rate in enumerate((radius, arc / max(at[0], 1.0), height, bucket)):
            at[i] += rate * step
        t += step
        swing = at[1]
        tip = (at[0] * math.cos(swing), at[0] * math.sin(swing), at[2])
        # The opening of the bucket is perpendicular to the line from pin to teeth, to which the bucket's angle refers.
        g.work(t, tip, (-math.sin(swing), math.cos(swing), 0.0), -math.cos(at[3]), (0.9 * tip[0], 0.9 * tip[1], at[2]))
        g.take_changes()
        fullest = max(fullest, g.load)
        if tour.index == 0 and was != 0:
            loads.append(fullest / m.tool.capacity)
            fullest = g.load
    assert min(loads) > 0.4, loads


def _tour(m: Machine) -> Any:
    made: Any = m.pilots["dig"]()
    return made if hasattr(made, "places") else made.program


def test_session_digs_restores_and_reports_the_ground() -> None:
    session = Session(excavator.machine(), FakeDrive)
    assert session.dig().whole  # type: ignore[union-attr]
    assert session.dig() is None  # nothing moves
    arm = session.machine.pilots["dig"]().hands.arm  # type: ignore[attr-defined]
    for k in range(40):
        session.drive.y[:4] = arm.inverse((6.5 - 0.04 * k, 0.0, -1.35, -2.2))  # type: ignore[attr-defined]
        session.dig()
    assert session.ground is not None
    assert session.ground.dug > 0.2
    assert len(session.replay(0, 10)) > 4 * session.ground.heights.size
    session.reset()
    assert session.dig().whole  # type: ignore[union-attr]
    assert (session.ground.dug, float(np.abs(session.ground.heights).max())) == (0.0, 0.0)
