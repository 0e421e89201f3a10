"""excavator_linkage as a person drives it: cylinders, bucket linkage and soil, by the two sticks of Wong's machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from bellcrank.cockpit.ground import Tool
from bellcrank.cockpit.machines import Lever, Machine, Pilot, Plot
from bellcrank.dynamics import kinematics
from bellcrank.excavators.linkage.digging_cycle import CYCLE
from bellcrank.excavators.linkage.geometry import JOINTS, Linkage
from bellcrank.excavators.linkage.hydraulics import parts, resting
from bellcrank.excavators.linkage.mechanism import excavator_flexible
from bellcrank.excavators.linkage.modes import FUNCTIONS, RATES, SPEEDS
from bellcrank.excavators.pilots import Experiment, Sticks, Tour
from bellcrank.excavators.sticks import MODES, PATTERNS, WORDS
from bellcrank.model.mechanism import Mechanism
from bellcrank.scalar import Scalar
from bellcrank.sim.systems import system

DEG = 180.0 / math.pi
CAPACITY = 1.0  # m3, of the bucket


def flexible() -> Machine:
    """The same with a boom and a stick that bend. `tip.sag`: how far the teeth are below what the joints say."""
    bends = excavator_flexible()
    marks = {"tip.sag": lambda t, q, v, x, u: _sag(bends, q)}
    return machine(bends, marks, (Plot("Sag", "mm", ("tip.sag",), 1e3),))


def _sag(bends: Mechanism, q: Any) -> Scalar:
    """A body's frame stands where its joint says, whatever the body does beyond it."""
    linkage = Linkage.of_zoo()
    return linkage.arm.forward(linkage.angles(q))[2] - kinematics.pose(bends.tree, list(q), "tip")[2][3]


def machine(
    mechanism: Mechanism | None = None, more: Mapping[str, Any] | None = None, plots: tuple[Plot, ...] = ()
) -> Machine:
    """mechanism: that, or another with the same joints; more: outputs beside the teeth's place, and their plots."""
    found = parts(mechanism)
    linkage = found["control"].linkage

    def tip(k: int) -> Callable[..., Scalar]:
        return lambda t, q, v, x, u: linkage.arm.forward(linkage.angles(q))[k]

    made = system(**found, outputs={"tip.radius": tip(0), "tip.height": tip(2), **(more or {})})
    names = made.inputs[:4]
    levers = [Lever(name, "", -max(a, b), max(a, b)) for name, a, b in zip(names, RATES, SPEEDS, strict=True)]
    joints = [made.mechanism.columns[0].index(n) for n in FUNCTIONS]
    hands = Sticks(linkage.arm, joints, linkage.start, SPEEDS, RATES[0])

    def by_sticks(program: Pilot) -> Pilot:
        """The control's own cycle, which digs in one place for ever, stays off."""
        return lambda shot: [*program(shot), 0.0]

    tip_at = made.mechanism.frame("tip").point
    turn = math.atan2(tip_at[2], tip_at[0])  # the mouth looks from the teeth's line to the side of the stick

    angles = (JOINTS[0], "boom", "stick", "bucket")
    states = [s.name for s in made.states]
    return Machine(
        made,
        (*levers, Lever("resolved", "", 0.0, 1.0, None), Lever("autopilot", "", 0.0, 1.0)),
        (
            Plot("Joint angles", "deg", tuple(f"{j}.q" for j in angles), DEG),
            Plot("Joint rates", "deg/s", tuple(f"{j}.v" for j in angles), DEG),
            Plot("Pressures", "bar", tuple(s for s in states if s.rpartition(".")[2].startswith("p_")), 1e-5),
            Plot("Spools", "", tuple(s for s in states if s.rpartition(".")[2] == "spool")),
            Plot("Teeth", "m", ("tip.radius", "tip.height")),
            Plot("Cylinders", "m", tuple(f"{j}.q" for j in JOINTS[1:])),
            *plots,
        ),
        tuple(resting(made.mechanism).tolist()) if mechanism else None,
        patterns=PATTERNS,
        mode="resolved",
        modes=MODES,
        words=WORDS,
        spans={"JOINT": dict(zip(names, RATES, strict=True)), "RESOLVED": dict(zip(names, SPEEDS, strict=True))},
        look="linkage",
        ground=0.0,
        trace=("bucket", tuple(tip_at)),
        tool=Tool((0.0, 1.0, 0.0), (math.sin(turn), 0.0, -math.cos(turn)), linkage.given["bucket"]["width"], CAPACITY),
        pilots={
            "dig": lambda: by_sticks(Tour(hands, tuple(move.place for move in CYCLE))),
            "resolved": lambda: by_sticks(Experiment(hands)),
        },
        integrator="rodas4",  # oil in the cylinders is stiff: implicit, so that no stop or stone is too hard
    )
