"""Digging and lifting forces of the excavator: by hand from its geometry sheet, and by the whole mechanism."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from bellcrank.cli import app
from bellcrank.excavators.geometry import CYLINDERS, JOINTS
from bellcrank.excavators.tool_forces import (
    HYDRAULIC_FRACTION,
    IDLER_HALF_DISTANCE,
    TIPPING_FRACTION,
    TRACK_GAUGE,
    ToolForces,
)
from bellcrank.zoo import data

MADE = ToolForces()


def test_the_bucket_force_by_hand() -> None:
    """At the reference pose: lever arms from the pins' positions, as on a drawing, without derivatives."""
    found = MADE.best("bucket")
    g = data("excavator_linkage")
    stick, bucket = g["stick"], g["bucket"]
    pin = np.array([stick["length"], 0.0])  # all in the stick's axes
    turn = found.angles[3]
    ear = pin + np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]) @ bucket["link"]
    lever, a, b = np.array(stick["lever_pin"]), g["lever"]["length"], g["link"]["length"]
    # The knee is the intersection of two circles on the far side of the line from lever to ear.
    gap = np.linalg.norm(ear - lever)
    along = (ear - lever) / gap
    x = (a * a - b * b + gap * gap) / (2 * gap)
    knee = lever + x * along + math.sqrt(a * a - x * x) * np.array([-along[1], along[0]])

    def arm(p: np.ndarray, q: np.ndarray, about: np.ndarray) -> float:
        """Lever arm of a force along the line through p and q."""
        d = (q - p) / np.linalg.norm(q - p)
        r = p - about
        return abs(float(r[0] * d[1] - r[1] * d[0]))

    push = 35e6 * math.pi / 4 * 0.120**2  # bore at the pump's pressure
    in_link = push * arm(np.array(stick["bucket_cylinder"]), knee, lever) / arm(knee, ear, lever)
    by_hand = in_link * arm(knee, ear, pin) / bucket["length"]
    assert found.limits["bucket cylinder"] == pytest.approx(by_hand, rel=1e-9)  # the requirement is 0.5 %
    assert 90e3 < by_hand < 180e3  # typical of machines of this class


@pytest.mark.parametrize("what", ["bucket", "stick"])
def test_the_limits_by_the_whole_mechanism(what: str) -> None:
    """A force on the teeth maps to each cylinder through twelve bodies and four loops, by virtual work."""
    found = MADE.best(what)
    tip, pin = MADE._plane_points(found.angles)["tip"], MADE._plane_points(found.angles)[what]
    r = math.dist(tip, pin)
    push = np.array([-(tip[1] - pin[1]) / r, 0.0, (tip[0] - pin[0]) / r, 0.0, 0.0, 0.0])
    q = MADE._closed_configuration(found.angles)
    still = np.zeros(MADE.mechanism.nv)
    given = {"actuated": list(JOINTS)}
    loaded, bare = (
        np.asarray(MADE.mechanism.inverse_dynamics(q, still, still, wrenches={"tip": w}, **given))
        for w in (push, 0 * push)
    )
    for name, joint in zip(CYLINDERS, JOINTS[1:], strict=True):
        needed = float((loaded - bare)[MADE.mechanism.columns[1].index(joint)])
        area = MADE.cylinders[name].areas[0 if needed > 0 else 1]
        pressure = MADE.pressure if name == what else MADE.relief
        word = f"{name} cylinder" if name == what else f"{name} held by relief"
        assert found.limits[word] == pytest.approx(pressure * area / abs(needed), rel=1e-6)
    assert found.newtons == min(found.limits.values())


def test_tipping_load_balances_the_restoring_moment() -> None:
    """Over the side: the moment of the load about the track is 75 % of the machine's restoring moment."""
    for lift in MADE.lifts(radii=(6.0,), heights=(1.5,)):
        assert lift.binds == "tipping"
        edge = IDLER_HALF_DISTANCE if lift.side == "front" else TRACK_GAUGE / 2
        theta = MADE._lifting_pose(6.0, 1.5)
        assert theta is not None
        mass, x = MADE.weight(theta)
        assert lift.kilograms / TIPPING_FRACTION * (6.0 - edge) == pytest.approx(mass * (edge - x))
    assert MADE._lifting_pose(12.0, 1.0) is None  # out of reach
    assert 0 < HYDRAULIC_FRACTION < 1


def test_command_names_the_active_limit() -> None:
    shown = CliRunner().invoke(app, ["loads", "excavator_linkage"])
    assert shown.exit_code == 0, shown.output
    for word in ("bucket", "stick", "front", "side", "kg", "tipping", "held by relief"):
        assert word in shown.output
    found = json.loads(CliRunner().invoke(app, ["loads", "excavator_linkage", "--json"]).output)
    assert {f["what"] for f in found["forces"]} == {"bucket", "stick"}
    assert len(found["lifts"]) > 20
    refused = CliRunner().invoke(app, ["loads", "puma600"])
    assert refused.exit_code == 2
