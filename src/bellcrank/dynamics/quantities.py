"""The table of quantities: what can be asked of a mechanism, and what each needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bellcrank.errors import InputError, unknown
from bellcrank.model.tree import Tree

ARGUMENTS = {
    "q": "positions (..., nq)",
    "v": "velocities (..., nv)",
    "a": "accelerations (..., nv)",
    "tau": "forces and moments of the joints (..., nv)",
    "dv": "how far along each velocity (..., nv)",
}


@dataclass(frozen=True)
class Quantity:
    name: str
    inputs: tuple[str, ...]  # names; their shapes are given by `shape_of`
    what: str
    option: str = ""  # "frame": needs one; "frames": takes wrenches on any
    regrouped: bool = True  # may be computed from regrouped bodies (see model/regroup.py)
    inverts: bool = False  # needs M^-1, on the way at least: dynamics/immobility.py sees to it that there is one
    through: str = ""  # the quantity that a method must give for this one (closure/layer.py does the rest)
    driven: bool = False  # of a mechanism with loops it asks which joints are driven

    @property
    def help(self) -> str:
        """What help() says of it."""
        lines = [f"{self.what[0].upper()}{self.what[1:]}.", "", *(f"{name}: {ARGUMENTS[name]}" for name in self.inputs)]
        if self.option == "frames":
            lines.append(
                'wrenches={"frame": [force, moment]}: forces from outside, in world axes at the frame\'s origin'
            )
        if self.driven:
            lines.append("actuated=[joints]: which are driven, where the mechanism has loops")
        if self.option == "frame":
            lines.append('frame="NAME": of a body, a joint or a link, as in mechanism.frames')
        lines += ["parameters={name: value}: of the mechanism's free numbers", "out=: an array that takes the result"]
        return "\n".join(
            [*lines, "", "Arrays may have any leading axes, which broadcast: a batch of states in one call."]
        )


QUANTITIES: dict[str, Quantity] = {
    row.name: row
    for row in (
        Quantity("forward_dynamics", ("q", "v", "tau"), "accelerations from forces", option="frames", inverts=True),
        Quantity("inverse_dynamics", ("q", "v", "a"), "forces from accelerations", option="frames", driven=True),
        Quantity("mass_matrix", ("q",), "joint-space inertia, nv x nv"),
        Quantity("inverse_mass_matrix", ("q",), "M^-1, nv x nv", inverts=True),
        Quantity("mass_matrix_factors", ("q",), "U above the diagonal and D on it, M = U D U^T", inverts=True),
        Quantity("bias", ("q", "v"), "Coriolis, centrifugal and gravity forces"),
        Quantity("gravity_torque", ("q",), "forces that hold it still"),
        Quantity("coriolis_torque", ("q", "v"), "Coriolis and centrifugal forces"),
        Quantity(
            "reactions",
            ("q", "v", "tau"),
            "[force, moment] that each joint passes on to its body",
            option="frames",
            regrouped=False,
            inverts=True,
        ),
        Quantity(
            "multipliers",
            ("q", "v", "tau"),
            "how much of each force that a joint bears: 6 less its axes, joint by joint",
            option="frames",
            regrouped=False,
            inverts=True,
        ),
        Quantity("closure", ("q",), "by how much each equation that closes a loop is missed"),
        Quantity("closure_jacobian", ("q",), "C with d closure / dt = C v"),
        Quantity("closure_bias", ("q", "v"), "second derivative of closure while accelerations are zero"),
        Quantity(
            "loop_forces",
            ("q", "v", "tau"),
            "[force, moment] that each loop passes on to its second body",
            option="frames",
            inverts=True,
            through="forward_dynamics",
        ),
        Quantity("passive_torque", ("q", "v"), "damping, friction and springs"),
        Quantity("kinetic_energy", ("q", "v"), "energy of motion"),
        Quantity("potential_energy", ("q",), "energy of height and of springs", regrouped=False),
        Quantity("pose", ("q",), "a frame in the world, 4 x 4", option="frame"),
        Quantity("velocity", ("q", "v"), "a frame's [linear, angular] velocity in world axes", option="frame"),
        Quantity("jacobian", ("q",), "d velocity / d v, 6 x nv", option="frame"),
        Quantity("com", ("q",), "centre of mass", regrouped=False),
        Quantity("momentum", ("q", "v"), "[linear, angular about the centre of mass]", regrouped=False),
        Quantity("rate", ("q", "v"), "dq/dt"),
        Quantity("integrate", ("q", "dv"), "q moved by dv, on its manifold"),
    )
}
SHIPPED = dict(QUANTITIES)  # what the table was before anybody added to it


def quantity(name: str) -> Quantity:
    if name not in QUANTITIES:
        raise InputError(unknown("quantity", name, QUANTITIES))
    return QUANTITIES[name]


def shape_of(name: str, tree: Tree, frames: tuple[str, ...] = ()) -> tuple[int, ...]:
    """Shape of an input by its name."""
    shapes: Mapping[str, tuple[int, ...]] = {"q": (tree.nq,), "wrench": (len(frames), 6)}
    return shapes.get(name, (tree.nv,))
