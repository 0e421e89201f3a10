"""Table of quantities: what can be computed for a mechanism, with inputs, shapes and properties."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.model.tree import Tree

if TYPE_CHECKING:
    from bellcrank.model.mechanism import Mechanism

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
    what: str  # summary, without a full stop
    shape: str = ""  # shape of the result, for help texts
    option: str = ""  # "frame": needs a frame; "frames": takes wrenches on any frames
    referred: bool = False  # the motion of a frame, expressed with respect to one of REFERENCES
    regrouped: bool = True  # may be computed from regrouped bodies (see model/tree.py)
    inverts: bool = False  # needs M^-1, at least as an intermediate result: dynamics/singular_mass.py ensures it exists
    through: str = ""  # the quantity that a method must compute for this one (loops/loop_layer.py does the rest)
    driven: bool = False  # for a mechanism with loops, the actuated joints must be given
    symmetric: bool = False  # a matrix that may be requested packed: its diagonal and the elements right of it
    differentiates: str = ""  # the quantity of which this is the derivatives, with respect to each input
    returns: str = ""  # description of the result, with units and frames; by default the summary
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
        kinds = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
        named = [(x, kind) for kind, names in zip(kinds, self.arguments) for x in names if x not in without]
        return Signature([Parameter(x, kind, default=ARGUMENT_DEFAULTS.get(x, Parameter.empty)) for x, kind in named])

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
        summary = f"{self.what[:1].upper()}{self.what[1:]}."
        lines = [summary, "", "Parameters", "----------"]
        for name in (x for names in self.arguments for x in names if x not in without):
            kind, meaning = PARAMETERS[name]
            lines += [f"{name} : {kind}", *_wrapped(meaning, "    ")]
        array = f"ndarray, shape {self.shape}" if self.shape else "ndarray"
        lines += ["", "Returns", "-------", self.result.__name__ if self.result else array]
        lines += [*_wrapped(self.returns or summary, "    "), "", "Notes", "-----"]
        return "\n".join([*lines, *_wrapped(f"{BATCH_HINT} {KERNEL_HINT.format(name=self.name)}"), *more])


def _wrapped(text: str, margin: str = "") -> list[str]:
    return wrap(text, HELP_WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False)


_ROWS = (
    Quantity(
        "forward_dynamics", ("q", "v", "tau"), "Return the joint accelerations under joint forces", "(..., nv)",
        returns="Accelerations, rad/s^2 or m/s^2.", option="frames", inverts=True,
    ),
    Quantity(
        "inverse_dynamics", ("q", "v", "a"), "Return the joint forces for joint accelerations", "(..., nv)",
        returns="Joint forces, N m or N.", option="frames", driven=True,
    ),
    Quantity(
        "forward_dynamics_derivatives", ("q", "v", "tau"), "Return the derivatives of forward_dynamics",
        "each (..., nv, nv)",
        returns="dq: d a / dq, along the velocities; dv: d a / dv; dtau: d a / dtau. Each has the shape (..., "
        "nv, nv).", option="frames", inverts=True, differentiates="forward_dynamics", result=ForwardDerivatives,
    ),
    Quantity(
        "inverse_dynamics_derivatives", ("q", "v", "a"), "Return the derivatives of inverse_dynamics",
        "each (..., nv, nv)",
        returns="dq: d tau / dq, along the velocities; dv: d tau / dv; da: d tau / da. Each has the shape (..., "
        "nv, nv).", option="frames", driven=True, differentiates="inverse_dynamics", result=InverseDerivatives,
    ),
    Quantity(
        "mass_matrix", ("q",), "Return the joint-space inertia matrix M", "(..., nv, nv)",
        returns="Symmetric, kg m^2, kg m or kg.", symmetric=True,
    ),
    Quantity(
        "inverse_mass_matrix", ("q",), "Return the inverse of the mass matrix, M^-1", "(..., nv, nv)",
        returns="Symmetric; takes forces to accelerations.", inverts=True, symmetric=True,
    ),
    Quantity(
        "mass_matrix_factors", ("q",), "Return the factors of the mass matrix, M = U D U^T", "(..., nv, nv)",
        returns="U above the diagonal, whose own diagonal is 1, and D on the diagonal.", inverts=True,
    ),
    Quantity(
        "bias", ("q", "v"), "Return the Coriolis, centrifugal and gravity forces", "(..., nv)",
        returns="Joint forces, N m or N, with M a + bias = tau + passive_torque.",
    ),
    Quantity(
        "gravity_torque", ("q",), "Return the joint forces that balance gravity", "(..., nv)",
        returns="Joint forces, N m or N: bias at rest.",
    ),
    Quantity(
        "coriolis_torque", ("q", "v"), "Return the Coriolis and centrifugal forces", "(..., nv)",
        returns="Joint forces, N m or N: bias without gravity.",
    ),
    Quantity(
        "coriolis_matrix", ("q", "v"), "Return the Coriolis matrix of Christoffel's symbols", "(..., nv, nv)",
        returns="C with C v = coriolis_torque and C + C^T = dM/dt.",
    ),
    Quantity(
        "reactions", ("q", "v", "tau"), "Return the wrench that each joint transmits to its body",
        "(..., bodies, 6)",
        returns="[force, moment] in world axes, moments about the origin of the body's frame, N and N m; bodies "
        "in the order of mechanism.bodies.", option="frames", regrouped=False, inverts=True,
    ),
    Quantity(
        "multipliers", ("q", "v", "tau"), "Return the Lagrange multipliers of the joint constraints",
        "(..., constraints)",
        returns="The constraint forces joint by joint, 6 less the number of its axes for each, N or N m.",
        option="frames", regrouped=False, inverts=True,
    ),
    Quantity(
        "closure", ("q",), "Return the residual of each loop equation", "(..., equations)",
        returns="Zero where all loops are closed, m or rad.",
    ),
    Quantity(
        "closure_jacobian", ("q",), "Return the constraint Jacobian of the loops", "(..., equations, nv)",
        returns="C with d closure / dt = C v.",
    ),
    Quantity(
        "closure_bias", ("q", "v"), "Return the second time derivative of closure at zero acceleration",
        "(..., equations)",
        returns="(dC/dt) v, where C is closure_jacobian.",
    ),
    Quantity(
        "loop_forces", ("q", "v", "tau"), "Return the wrench that each loop joint transmits to its second body",
        "(..., loops, 6)",
        returns="[force, moment] at the frame b of the loop, in world axes, N and N m; loops in the order of "
        "mechanism.loops.", option="frames", inverts=True, through="forward_dynamics",
    ),
    Quantity(
        "passive_torque", ("q", "v"), "Return the joint forces of damping, friction and springs", "(..., nv)",
        returns="Joint forces, N m or N.",
    ),
    Quantity(
        "kinetic_energy", ("q", "v"), "Return the kinetic energy", "(...)",
        returns="J, including rotor inertia (armature).",
    ),
    Quantity(
        "potential_energy", ("q",), "Return the potential energy of gravity and springs", "(...)",
        returns="J; zero with all mass at the world's origin and springs at rest.", regrouped=False,
    ),
    Quantity(
        "pose", ("q",), "Return the pose of a frame in the world", "(..., 4, 4)",
        returns="Homogeneous matrix that takes coordinates in the frame to the world, with lengths in m.",
        option="frame",
    ),
    Quantity(
        "velocity", ("q", "v"), "Return the velocity of a frame", "(..., 6)",
        returns="[linear, angular], m/s and rad/s, at the point and in the axes that reference selects.",
        option="frame", referred=True,
    ),
    Quantity(
        "jacobian", ("q",), "Return the Jacobian of a frame", "(..., 6, nv)",
        returns="d velocity / d v, linear rows first, at the point and in the axes that reference selects.",
        option="frame", referred=True,
    ),
    Quantity(
        "poses", ("q",), "Return the poses of all bodies in the world", "(..., bodies, 4, 4)",
        returns="Homogeneous matrices in the order of mechanism.bodies, with lengths in m.",
    ),
    Quantity(
        "acceleration", ("q", "v", "a"), "Return the acceleration of a frame, without gravity", "(..., 6)",
        returns="[linear, angular], m/s^2 and rad/s^2, at the point and in the axes that reference selects.",
        option="frame", referred=True,
    ),
    Quantity(
        "spatial_acceleration", ("q", "v", "a"), "Return the spatial acceleration of a frame", "(..., 6)",
        returns="acceleration less angular x linear velocity: [linear, angular], m/s^2 and rad/s^2, at the point"
        " and in the axes that reference selects.", option="frame", referred=True,
    ),
    Quantity(
        "jacobian_rate", ("q", "v"), "Return the time derivative of the Jacobian of a frame", "(..., 6, nv)",
        returns="d jacobian / dt, linear rows first, at the point and in the axes that reference selects.",
        option="frame", referred=True,
    ),
    Quantity(
        "com", ("q",), "Return the centre of mass of all moving bodies", "(..., 3)",
        returns="In world axes, m.", regrouped=False,
    ),
    Quantity(
        "com_velocity", ("q", "v"), "Return the velocity of the centre of mass", "(..., 3)",
        returns="In world axes, m/s.", regrouped=False,
    ),
    Quantity(
        "com_acceleration", ("q", "v", "a"), "Return the acceleration of the centre of mass, without gravity",
        "(..., 3)",
        returns="In world axes, m/s^2.", regrouped=False,
    ),
    Quantity(
        "com_jacobian", ("q",), "Return the Jacobian of the centre of mass", "(..., 3, nv)",
        returns="d com_velocity / d v, in world axes.", regrouped=False,
    ),
    Quantity(
        "momentum", ("q", "v"), "Return the linear momentum, and the angular momentum about the centre of mass",
        "(..., 6)",
        returns="[linear, angular] in world axes, kg m/s and kg m^2/s.", regrouped=False,
    ),
    Quantity(
        "momentum_rate", ("q", "v", "a"), "Return the time derivative of the momentum", "(..., 6)",
        returns="[linear, angular] in world axes, N and N m.", regrouped=False,
    ),
    Quantity(
        "momentum_matrix", ("q",), "Return the centroidal momentum matrix", "(..., 6, nv)",
        returns="A with momentum = A v, in world axes.", regrouped=False,
    ),
    Quantity(
        "momentum_matrix_rate", ("q", "v"), "Return the time derivative of the centroidal momentum matrix",
        "(..., 6, nv)",
        returns="d momentum_matrix / dt, in world axes.", regrouped=False,
    ),
    Quantity(
        "rate", ("q", "v"), "Return dq/dt", "(..., nq)",
        returns="rad/s, m/s, and rates of quaternions.",
    ),
    Quantity(
        "integrate", ("q", "dv"), "Return positions moved by a displacement, on their manifold", "(..., nq)",
        returns="Positions, rad or m, with unit quaternions.",
    ),
    Quantity(
        "difference", ("q0", "q1"), "Return the displacement between positions, the inverse of integrate",
        "(..., nv)",
        returns="dv with integrate(q0, dv) = q1, rad or m; for quaternions the shorter way round.",
    ),
)  # fmt: skip

QUANTITIES: dict[str, Quantity] = {row.name: row for row in _ROWS}
SHIPPED = dict(QUANTITIES)  # the table without registered quantities


@dataclass(frozen=True)
class Request:
    """A requested quantity: every option that decides the graph, and no others."""

    quantity: str
    method: str = "auto"
    frame: str = ""
    wrenches: tuple[str, ...] = ()
    actuated: tuple[str, ...] = ()  # actuated joints; the other joints of a mechanism with loops are passive
    packed: bool = False  # a symmetric matrix as its diagonal and the elements right of it, row by row
    reference: str = "aligned"  # point and axes in which the motion of the frame is expressed


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


def check_moving_body(mechanism: Mechanism) -> None:
    """Raise an InputError if `mechanism` has no moving body."""
    if not mechanism.bodies:
        raise InputError(f'mechanism "{mechanism.name}" has no moving body; there is nothing to compute.')


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
