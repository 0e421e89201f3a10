"""Table of quantities: what can be computed for a mechanism, with inputs, shapes and properties."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.model.tree import Tree

Array = np.ndarray[Any, Any]


class ForwardDerivatives(NamedTuple):
    """Derivatives of accelerations, (..., nv, nv) each: by q (along the velocities), by v, by tau."""

    dq: Array
    dv: Array
    dtau: Array


class InverseDerivatives(NamedTuple):
    """Derivatives of forces, (..., nv, nv) each: by q (along the velocities), by v, by a."""

    dq: Array
    dv: Array
    da: Array


# Type and description of each argument.
PARAMETERS = {
    "q": ("array_like, shape (..., nq)", "Joint positions, rad or m, and quaternions (x, y, z, w)."),
    "v": ("array_like, shape (..., nv)", "Joint velocities, rad/s or m/s."),
    "a": ("array_like, shape (..., nv)", "Joint accelerations, rad/s^2 or m/s^2."),
    "tau": ("array_like, shape (..., nv)", "Joint forces, N m or N."),
    "dv": ("array_like, shape (..., nv)", "Displacement along each velocity, rad or m."),
    "q0": ("array_like, shape (..., nq)", "Initial joint positions, rad or m, and quaternions (x, y, z, w)."),
    "q1": ("array_like, shape (..., nq)", "Final joint positions, rad or m, and quaternions (x, y, z, w)."),
    "frame": ("str", "A body, a joint or a link, by its name in mechanism.frames."),
    "reference": (
        '{"aligned", "local", "world"}, optional',
        '"aligned": at the origin of the frame, in world axes; "local": at the origin of the frame, in its own axes; '
        '"world": at the origin of the world, in world axes.',
    ),
    "p": (
        "array_like, shape (..., len(mechanism.parameters)), optional",
        "Free parameters of the mechanism; nominal values if omitted.",
    ),
    "wrenches": (
        "mapping of str to array_like, shape (..., 6), optional",
        "External wrenches by frame: [force, moment] in world axes at the origin of the frame, N and N m.",
    ),
    "actuated": ("sequence of str, optional", "Names of the actuated joints, if the mechanism has loops."),
    "parameters": (
        "mapping of str to array_like, optional",
        'Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.',
    ),
    "out": ("ndarray, optional", "Array that receives the result."),
}

# Summary, and description of the result with units and frames.
RESULTS = {
    "forward_dynamics": ("Return the joint accelerations under joint forces.", "Accelerations, rad/s^2 or m/s^2."),
    "inverse_dynamics": ("Return the joint forces for joint accelerations.", "Joint forces, N m or N."),
    "forward_dynamics_derivatives": (
        "Return the derivatives of forward_dynamics.",
        "dq: d a / dq, along the velocities; dv: d a / dv; dtau: d a / dtau. Each has the shape (..., nv, nv).",
    ),
    "inverse_dynamics_derivatives": (
        "Return the derivatives of inverse_dynamics.",
        "dq: d tau / dq, along the velocities; dv: d tau / dv; da: d tau / da. Each has the shape (..., nv, nv).",
    ),
    "mass_matrix": ("Return the joint-space inertia matrix M.", "Symmetric, kg m^2, kg m or kg."),
    "inverse_mass_matrix": (
        "Return the inverse of the mass matrix, M^-1.",
        "Symmetric; takes forces to accelerations.",
    ),
    "mass_matrix_factors": (
        "Return the factors of the mass matrix, M = U D U^T.",
        "U above the diagonal, whose own diagonal is 1, and D on the diagonal.",
    ),
    "bias": (
        "Return the Coriolis, centrifugal and gravity forces.",
        "Joint forces, N m or N, with M a + bias = tau + passive_torque.",
    ),
    "gravity_torque": ("Return the joint forces that balance gravity.", "Joint forces, N m or N: bias at rest."),
    "coriolis_torque": ("Return the Coriolis and centrifugal forces.", "Joint forces, N m or N: bias without gravity."),
    "coriolis_matrix": (
        "Return the Coriolis matrix of Christoffel's symbols.",
        "C with C v = coriolis_torque and C + C^T = dM/dt.",
    ),
    "reactions": (
        "Return the wrench that each joint transmits to its body.",
        "[force, moment] in world axes, moments about the origin of the body's frame, N and N m; bodies in the order "
        "of mechanism.bodies.",
    ),
    "multipliers": (
        "Return the Lagrange multipliers of the joint constraints.",
        "The constraint forces joint by joint, 6 less the number of its axes for each, N or N m.",
    ),
    "closure": ("Return the residual of each loop equation.", "Zero where all loops are closed, m or rad."),
    "closure_jacobian": ("Return the constraint Jacobian of the loops.", "C with d closure / dt = C v."),
    "closure_bias": (
        "Return the second time derivative of closure at zero acceleration.",
        "(dC/dt) v, where C is closure_jacobian.",
    ),
    "loop_forces": (
        "Return the wrench that each loop joint transmits to its second body.",
        "[force, moment] at the frame b of the loop, in world axes, N and N m; loops in the order of mechanism.loops.",
    ),
    "passive_torque": (
        "Return the joint forces of damping, friction and springs.",
        "Joint forces, N m or N.",
    ),
    "kinetic_energy": ("Return the kinetic energy.", "J, including rotor inertia (armature)."),
    "potential_energy": (
        "Return the potential energy of gravity and springs.",
        "J; zero with all mass at the world's origin and springs at rest.",
    ),
    "pose": (
        "Return the pose of a frame in the world.",
        "Homogeneous matrix that takes coordinates in the frame to the world, with lengths in m.",
    ),
    "velocity": (
        "Return the velocity of a frame.",
        "[linear, angular], m/s and rad/s, at the point and in the axes that reference selects.",
    ),
    "jacobian": (
        "Return the Jacobian of a frame.",
        "d velocity / d v, linear rows first, at the point and in the axes that reference selects.",
    ),
    "poses": (
        "Return the poses of all bodies in the world.",
        "Homogeneous matrices in the order of mechanism.bodies, with lengths in m.",
    ),
    "acceleration": (
        "Return the acceleration of a frame, without gravity.",
        "[linear, angular], m/s^2 and rad/s^2, at the point and in the axes that reference selects.",
    ),
    "spatial_acceleration": (
        "Return the spatial acceleration of a frame.",
        "acceleration less angular x linear velocity: [linear, angular], m/s^2 and rad/s^2, at the point and in the "
        "axes that reference selects.",
    ),
    "jacobian_rate": (
        "Return the time derivative of the Jacobian of a frame.",
        "d jacobian / dt, linear rows first, at the point and in the axes that reference selects.",
    ),
    "com": ("Return the centre of mass of all moving bodies.", "In world axes, m."),
    "com_velocity": ("Return the velocity of the centre of mass.", "In world axes, m/s."),
    "com_acceleration": ("Return the acceleration of the centre of mass, without gravity.", "In world axes, m/s^2."),
    "com_jacobian": ("Return the Jacobian of the centre of mass.", "d com_velocity / d v, in world axes."),
    "momentum": (
        "Return the linear momentum, and the angular momentum about the centre of mass.",
        "[linear, angular] in world axes, kg m/s and kg m^2/s.",
    ),
    "momentum_rate": ("Return the time derivative of the momentum.", "[linear, angular] in world axes, N and N m."),
    "momentum_matrix": (
        "Return the centroidal momentum matrix.",
        "A with momentum = A v, in world axes.",
    ),
    "momentum_matrix_rate": (
        "Return the time derivative of the centroidal momentum matrix.",
        "d momentum_matrix / dt, in world axes.",
    ),
    "rate": ("Return dq/dt.", "rad/s, m/s, and rates of quaternions."),
    "integrate": (
        "Return positions moved by a displacement, on their manifold.",
        "Positions, rad or m, with unit quaternions.",
    ),
    "difference": (
        "Return the displacement between positions, the inverse of integrate.",
        "dv with integrate(q0, dv) = q1, rad or m; for quaternions the shorter way round.",
    ),
}
REFERENCES = ("aligned", "local", "world")
INPUTS = ("q", "v", "a", "tau", "dv", "q0", "q1")  # arguments that a quantity may be a function of
POSITIONS = ("q", "q0", "q1")  # inputs with nq elements, which move along v
ARGUMENT_DEFAULTS = {
    "reference": "aligned",
    "p": None,
    "wrenches": None,
    "actuated": (),
    "parameters": None,
    "out": None,
}
BATCH_HINT = (
    "Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians."
)
HELP_WIDTH = 112  # columns of a help text, which is indented by 8 in model/quantities.pyi
KERNEL_HINT = 'bc.kernel(mechanism, "{name}", ...) offers other methods, float32, threads and GPUs.'


@dataclass(frozen=True)
class Quantity:
    """One quantity: its inputs, the shape of its result, and the properties that decide how it can be computed."""

    name: str
    inputs: tuple[str, ...]  # names; their shapes are given by `shape_of`
    what: str
    shape: str = ""  # shape of the result, for help texts
    option: str = ""  # "frame": needs a frame; "frames": takes wrenches on any frames
    referred: bool = False  # the motion of a frame, expressed with respect to one of REFERENCES
    regrouped: bool = True  # may be computed from regrouped bodies (see model/tree.py)
    inverts: bool = False  # needs M^-1, at least as an intermediate result: dynamics/singular_mass.py ensures it exists
    through: str = ""  # the quantity that a method must compute for this one (loops/loop_layer.py does the rest)
    driven: bool = False  # for a mechanism with loops, the actuated joints must be given
    symmetric: bool = False  # a matrix that may be requested packed: its diagonal and the elements right of it
    differentiates: str = ""  # the quantity of which this is the derivatives, with respect to each input
    # Named tuple of the slices along the first axis.
    result: type[ForwardDerivatives] | type[InverseDerivatives] | None = None

    @property
    def arguments(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the positional arguments in order, and those of the keyword-only arguments."""
        first = (*self.inputs, "frame") if self.option == "frame" else (*self.inputs, "p")
        seen = ("reference",) if self.referred else ()
        named = {"frame": ("p",), "frames": ("wrenches",)}.get(self.option, ())
        return first, (*seen, *named, *(("actuated",) if self.driven else ()), "parameters", "out")

    def signature(self, without: Collection[str] = ()) -> Signature:
        """Return the signature of the quantity's function, without the arguments named in `without`.

        For example (q, v, tau, p=None, *, wrenches=None, parameters=None, out=None).
        """
        return Signature(
            [
                Parameter(x, kind, default=ARGUMENT_DEFAULTS.get(x, Parameter.empty))
                for kind, names in zip((Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY), self.arguments)
                for x in names
                if x not in without
            ]
        )

    def help(self, without: Collection[str] = (), more: Sequence[str] = ()) -> str:
        """Return the help text in NumPy layout.

        Parameters
        ----------
        without
            Names of arguments to leave out.
        more
            Lines for the end of the notes.

        Returns
        -------
        str
            Summary, parameters, result and notes.
        """
        what = f"{self.what[:1].upper()}{self.what[1:]}."
        summary, description = RESULTS.get(self.name, (what, what))
        lines = [summary, "", "Parameters", "----------"]
        for name in (x for names in self.arguments for x in names if x not in without):
            kind, meaning = PARAMETERS[name]
            lines += [f"{name} : {kind}", *_wrapped(meaning, "    ")]
        array = f"ndarray, shape {self.shape}" if self.shape else "ndarray"
        lines += ["", "Returns", "-------", self.result.__name__ if self.result else array]
        lines += [*_wrapped(description, "    "), "", "Notes", "-----"]
        return "\n".join([*lines, *_wrapped(f"{BATCH_HINT} {KERNEL_HINT.format(name=self.name)}"), *more])


def _wrapped(text: str, margin: str = "") -> list[str]:
    return wrap(text, HELP_WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False)


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
        Quantity("gravity_torque", ("q",), "joint forces that balance gravity", "(..., nv)"),
        Quantity("coriolis_torque", ("q", "v"), "Coriolis and centrifugal forces", "(..., nv)"),
        Quantity("coriolis_matrix", ("q", "v"), "C with C v = coriolis_torque and C + C^T = dM/dt", "(..., nv, nv)"),
        Quantity(
            "reactions",
            ("q", "v", "tau"),
            "[force, moment] that each joint transmits to its body",
            "(..., bodies, 6)",
            option="frames",
            regrouped=False,
            inverts=True,
        ),
        Quantity(
            "multipliers",
            ("q", "v", "tau"),
            "Lagrange multipliers of the joint constraints: 6 less its axes, joint by joint",
            "(..., constraints)",
            option="frames",
            regrouped=False,
            inverts=True,
        ),
        Quantity("closure", ("q",), "residual of each loop equation", "(..., equations)"),
        Quantity("closure_jacobian", ("q",), "C with d closure / dt = C v", "(..., equations, nv)"),
        Quantity(
            "closure_bias", ("q", "v"), "second time derivative of closure at zero acceleration", "(..., equations)"
        ),
        Quantity(
            "loop_forces",
            ("q", "v", "tau"),
            "[force, moment] that each loop joint transmits to its second body",
            "(..., loops, 6)",
            option="frames",
            inverts=True,
            through="forward_dynamics",
        ),
        Quantity("passive_torque", ("q", "v"), "damping, friction and springs", "(..., nv)"),
        Quantity("kinetic_energy", ("q", "v"), "kinetic energy", "(...)"),
        Quantity("potential_energy", ("q",), "potential energy of gravity and springs", "(...)", regrouped=False),
        Quantity("pose", ("q",), "pose of a frame in the world, as a matrix", "(..., 4, 4)", option="frame"),
        Quantity(
            "velocity",
            ("q", "v"),
            "[linear, angular] velocity of a frame, in world axes unless reference selects others",
            "(..., 6)",
            option="frame",
            referred=True,
        ),
        Quantity("jacobian", ("q",), "d velocity / d v of a frame", "(..., 6, nv)", option="frame", referred=True),
        Quantity("poses", ("q",), "pose of every body in the world, as matrices", "(..., bodies, 4, 4)"),
        Quantity(
            "acceleration",
            ("q", "v", "a"),
            "[linear, angular] acceleration of a frame without gravity, in world axes unless reference selects others",
            "(..., 6)",
            option="frame",
            referred=True,
        ),
        Quantity(
            "spatial_acceleration",
            ("q", "v", "a"),
            "spatial acceleration of a frame: acceleration less angular x linear velocity",
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
        Quantity("difference", ("q0", "q1"), "the dv that leads from q0 to q1: the inverse of integrate", "(..., nv)"),
    )
}
SHIPPED = dict(QUANTITIES)  # the table without registered quantities


def quantity(name: str) -> Quantity:
    """Return the row of the table called `name`.

    Parameters
    ----------
    name
        Name of the quantity.

    Raises
    ------
    InputError
        If there is no such quantity; the message lists those that exist.
    """
    if name not in QUANTITIES:
        raise InputError(unknown("quantity", name, QUANTITIES))
    return QUANTITIES[name]


def class_function(name: str) -> Callable[..., Any]:
    """Return the function that stands for the quantity `name` on the class Mechanism: it calls that of its argument."""
    row = quantity(name)

    def call_quantity(self: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(self, name)(*arguments, **named)

    first = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    call_quantity.__name__, call_quantity.__qualname__, call_quantity.__doc__ = name, f"Mechanism.{name}", row.help()
    call_quantity.__signature__ = Signature([first, *row.signature().parameters.values()])  # type: ignore[attr-defined]
    return call_quantity


def shape_of(name: str, tree: Tree, frames: tuple[str, ...] = ()) -> tuple[int, ...]:
    """Return the shape of the input `name` for `tree`; a wrench has a row for each of `frames`."""
    shapes: Mapping[str, tuple[int, ...]] = {**dict.fromkeys(POSITIONS, (tree.nq,)), "wrench": (len(frames), 6)}
    return shapes.get(name, (tree.nv,))
