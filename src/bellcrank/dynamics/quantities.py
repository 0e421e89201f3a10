"""The table of quantities: what can be asked of a mechanism, and what each needs to know."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature

from bellcrank.errors import InputError, unknown
from bellcrank.model.results import ForwardDerivatives, InverseDerivatives
from bellcrank.model.tree import Tree

# What arguments mean, and what those are that may be left out.
ARGUMENTS = {
    "q": "positions (..., nq)",
    "v": "velocities (..., nv)",
    "a": "accelerations (..., nv)",
    "tau": "forces and moments of the joints (..., nv)",
    "dv": "how far along each velocity (..., nv)",
    "q0": "positions to start from (..., nq)",
    "q1": "positions to arrive at (..., nq)",
    "frame": "a body, a joint or a link, by its name in mechanism.frames",
    "reference": '"aligned": at the origin of the frame, in world axes; "local": there, in the axes of the frame; '
    '"world": at the origin of the world, in world axes',
    "p": "the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out",
    "wrenches": '{"frame": [force, moment]}, forces from outside, in world axes at the origin of the frame',
    "actuated": "the joints that are driven, by name, where the mechanism has loops",
    "parameters": 'free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal',
    "out": "an array that takes the result",
}
REFERENCES = ("aligned", "local", "world")
INPUTS = ("q", "v", "a", "tau", "dv", "q0", "q1")  # of those, what a quantity may be a function of
POSITIONS = ("q", "q0", "q1")  # of those, what has nq elements and moves along v
DEFAULTS = {"reference": "aligned", "p": None, "wrenches": None, "actuated": (), "parameters": None, "out": None}
BATCHES = (
    "Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians."
)
MORE = 'bc.kernel(mechanism, "{name}", ...) gives other methods, float32, threads, a GPU.'


@dataclass(frozen=True)
class Quantity:
    name: str
    inputs: tuple[str, ...]  # names; their shapes are given by `shape_of`
    what: str
    shape: str = ""  # of the result, in words
    option: str = ""  # "frame": needs one; "frames": takes wrenches on any
    referred: bool = False  # of a frame: as it is seen from one of REFERENCES
    regrouped: bool = True  # may be computed from regrouped bodies (see model/tree.py)
    inverts: bool = False  # needs M^-1, on the way at least: dynamics/immobility.py sees to it that there is one
    through: str = ""  # the quantity that a method must give for this one (closure/layer.py does the rest)
    driven: bool = False  # of a mechanism with loops it asks which joints are driven
    symmetric: bool = False  # a matrix that may be asked for packed: what is above its diagonal and on it
    differentiates: str = ""  # the quantity whose derivatives it is, with respect to each input
    result: type[ForwardDerivatives] | type[InverseDerivatives] | None = None  # names of what lies along its first axis

    @property
    def arguments(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of a call: in their order, and by name only."""
        first = (*self.inputs, "frame") if self.option == "frame" else (*self.inputs, "p")
        seen = ("reference",) if self.referred else ()
        named = {"frame": ("p",), "frames": ("wrenches",)}.get(self.option, ())
        return first, (*seen, *named, *(("actuated",) if self.driven else ()), "parameters", "out")

    def signature(self, without: Collection[str] = ()) -> Signature:
        """(q, v, tau, p=None, *, wrenches=None, parameters=None, out=None), without what a mechanism has no use for."""
        return Signature(
            [
                Parameter(x, kind, default=DEFAULTS.get(x, Parameter.empty))
                for kind, names in zip((Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY), self.arguments)
                for x in names
                if x not in without
            ]
        )

    def help(self, without: Collection[str] = (), more: Sequence[str] = ()) -> str:
        """What help() says of it, and more lines at its end."""
        shape = f": {self.shape}" if self.shape else ""
        arguments = [f"{x}: {ARGUMENTS[x]}" for names in self.arguments for x in names if x not in without]
        lines = [f"{self.what[0].upper()}{self.what[1:]}{shape}.", "", *arguments, "", BATCHES, *more]
        return "\n".join([*lines, MORE.format(name=self.name)])


QUANTITIES: dict[str, Quantity] = {
    row.name: row
    for row in (
        Quantity(
            "forward_dynamics",
            ("q", "v", "tau"),
            "accelerations from forces",
            "(..., nv)",
            option="frames",
            inverts=True,
        ),
        Quantity(
            "inverse_dynamics", ("q", "v", "a"), "forces from accelerations", "(..., nv)", option="frames", driven=True
        ),
        Quantity(
            "forward_dynamics_derivatives",
            ("q", "v", "tau"),
            "d a / dq (along the velocities), d a / dv and d a / dtau, by name or in that order",
            "each (..., nv, nv)",
            option="frames",
            inverts=True,
            differentiates="forward_dynamics",
            result=ForwardDerivatives,
        ),
        Quantity(
            "inverse_dynamics_derivatives",
            ("q", "v", "a"),
            "d tau / dq (along the velocities), d tau / dv and d tau / da, by name or in that order",
            "each (..., nv, nv)",
            option="frames",
            driven=True,
            differentiates="inverse_dynamics",
            result=InverseDerivatives,
        ),
        Quantity("mass_matrix", ("q",), "joint-space inertia M", "(..., nv, nv)", symmetric=True),
        Quantity("inverse_mass_matrix", ("q",), "M^-1", "(..., nv, nv)", inverts=True, symmetric=True),
        Quantity(
            "mass_matrix_factors",
            ("q",),
            "U above the diagonal and D on it, M = U D U^T",
            "(..., nv, nv)",
            inverts=True,
        ),
        Quantity("bias", ("q", "v"), "Coriolis, centrifugal and gravity forces", "(..., nv)"),
        Quantity("gravity_torque", ("q",), "forces that hold it still", "(..., nv)"),
        Quantity("coriolis_torque", ("q", "v"), "Coriolis and centrifugal forces", "(..., nv)"),
        Quantity("coriolis_matrix", ("q", "v"), "C with C v = coriolis_torque and C + C^T = dM/dt", "(..., nv, nv)"),
        Quantity(
            "reactions",
            ("q", "v", "tau"),
            "[force, moment] that each joint passes on to its body",
            "(..., bodies, 6)",
            option="frames",
            regrouped=False,
            inverts=True,
        ),
        Quantity(
            "multipliers",
            ("q", "v", "tau"),
            "how much of each force that a joint bears: 6 less its axes, joint by joint",
            "(..., constraints)",
            option="frames",
            regrouped=False,
            inverts=True,
        ),
        Quantity("closure", ("q",), "by how much each equation that closes a loop is missed", "(..., equations)"),
        Quantity("closure_jacobian", ("q",), "C with d closure / dt = C v", "(..., equations, nv)"),
        Quantity(
            "closure_bias", ("q", "v"), "second derivative of closure while accelerations are zero", "(..., equations)"
        ),
        Quantity(
            "loop_forces",
            ("q", "v", "tau"),
            "[force, moment] that each loop passes on to its second body",
            "(..., loops, 6)",
            option="frames",
            inverts=True,
            through="forward_dynamics",
        ),
        Quantity("passive_torque", ("q", "v"), "damping, friction and springs", "(..., nv)"),
        Quantity("kinetic_energy", ("q", "v"), "energy of motion", "(...)"),
        Quantity("potential_energy", ("q",), "energy of height and of springs", "(...)", regrouped=False),
        Quantity("pose", ("q",), "a frame in the world, as a matrix", "(..., 4, 4)", option="frame"),
        Quantity(
            "velocity",
            ("q", "v"),
            "a frame's [linear, angular] velocity, in world axes or as reference says",
            "(..., 6)",
            option="frame",
            referred=True,
        ),
        Quantity("jacobian", ("q",), "d velocity / d v of a frame", "(..., 6, nv)", option="frame", referred=True),
        Quantity("poses", ("q",), "every body in the world, as matrices", "(..., bodies, 4, 4)"),
        Quantity(
            "acceleration",
            ("q", "v", "a"),
            "a frame's [linear, angular] acceleration without gravity, in world axes or as reference says",
            "(..., 6)",
            option="frame",
            referred=True,
        ),
        Quantity(
            "spatial_acceleration",
            ("q", "v", "a"),
            "acceleration less angular x linear velocity of a frame, as spatial vectors have it",
            "(..., 6)",
            option="frame",
            referred=True,
        ),
        Quantity(
            "jacobian_rate", ("q", "v"), "d jacobian / dt of a frame", "(..., 6, nv)", option="frame", referred=True
        ),
        Quantity("com", ("q",), "centre of mass", "(..., 3)", regrouped=False),
        Quantity("com_velocity", ("q", "v"), "velocity of the centre of mass", "(..., 3)", regrouped=False),
        Quantity(
            "com_acceleration",
            ("q", "v", "a"),
            "acceleration of the centre of mass, without gravity",
            "(..., 3)",
            regrouped=False,
        ),
        Quantity("com_jacobian", ("q",), "d com_velocity / d v", "(..., 3, nv)", regrouped=False),
        Quantity("momentum", ("q", "v"), "[linear, angular about the centre of mass]", "(..., 6)", regrouped=False),
        Quantity("momentum_rate", ("q", "v", "a"), "d momentum / dt", "(..., 6)", regrouped=False),
        Quantity("momentum_matrix", ("q",), "A with momentum = A v", "(..., 6, nv)", regrouped=False),
        Quantity("momentum_matrix_rate", ("q", "v"), "d momentum_matrix / dt", "(..., 6, nv)", regrouped=False),
        Quantity("rate", ("q", "v"), "dq/dt", "(..., nq)"),
        Quantity("integrate", ("q", "dv"), "q moved by dv, on its manifold", "(..., nq)"),
        Quantity("difference", ("q0", "q1"), "the dv that leads from q0 to q1: integrate undone", "(..., nv)"),
    )
}
SHIPPED = dict(QUANTITIES)  # what the table was before anybody added to it


def quantity(name: str) -> Quantity:
    if name not in QUANTITIES:
        raise InputError(unknown("quantity", name, QUANTITIES))
    return QUANTITIES[name]


def shape_of(name: str, tree: Tree, frames: tuple[str, ...] = ()) -> tuple[int, ...]:
    """Shape of an input by its name."""
    shapes: Mapping[str, tuple[int, ...]] = {**dict.fromkeys(POSITIONS, (tree.nq,)), "wrench": (len(frames), 6)}
    return shapes.get(name, (tree.nv,))
