"""Constraints of the Builder for rolling without slip, blades, gears, cams, surfaces and curves.

All positions and directions are in the world at the zero configuration, as everywhere in the Builder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_methods
from bellcrank.errors import ModelError, brief
from bellcrank.formats.builder_parts import BuilderParts
from bellcrank.formats.number_checks import number, vector
from bellcrank.model.function_text import evaluate_text, function_text
from bellcrank.model.parts import ORIGIN, Array, Frame, Loop, Number, Triple, matrix
from bellcrank.model.pose import axes_along
from bellcrank.parameters import nominal

UP: Triple = (0.0, 0.0, 1.0)
Vector = Sequence[Number] | Array
# Kinds of loops that have a method of their own instead of `close`.
BUILDER_METHODS = {
    "ball_on_plane": "rolling",
    "wheel_on_plane": "rolling",
    "knife_edge": "knife_edge",
    "point_on_surface": "on_surface",
    "point_on_curve": "on_curve",
    "combination": "combination",
    "cam": "cam",
}
MAX_TURN = 1e6  # rad: beyond this the sine of a growing angle has lost too many digits
JUMP_TOLERANCE = 1e-9  # of the size of a lift: a larger change after one turn is a jump


def _lift(law: str, angle: float) -> float:
    """Return the lift at an angle, or NaN if the law has no value there."""
    try:
        with np.errstate(all="ignore"):
            return float(evaluate_text(law, float(angle)))
    except (ValueError, ZeroDivisionError, OverflowError):
        return np.nan


@explain_methods("cam", "combination", "knife_edge", "on_curve", "on_surface", "rolling")
class MovingConstraints(BuilderParts):
    """Mixin of the Builder for these constraints."""

    def rolling(
        self,
        name: str,
        body: str,
        radius: Number,
        centre: Vector,
        *,
        axle: Vector | None = None,
        on: str = "ground",
        point: Vector = ORIGIN,
        normal: Vector = UP,
    ) -> None:
        """Make a ball or a thin wheel of the body roll without slip on a plane that `on` carries.

        It neither leaves the plane nor slides on it: one position equation and two velocity equations, so that it can
        reach any place with any orientation.

        Parameters
        ----------
        name : str
            Name of the loop.
        body : str
            Name of the body.
        radius : float
            Radius, m.
        centre : array_like, shape (3,)
            Centre of the ball or wheel, m.
        axle : array_like, shape (3,), optional
            Direction of a wheel's axle; without it, it is a ball.
        on : str
            Body that carries the plane.
        point, normal : array_like, shape (3,)
            A point of the plane, m, and its normal.

        Raises
        ------
        ModelError
            If an argument is invalid.
        """
        where = self._check_two_bodies(name, on, body)
        kind = "ball_on_plane" if axle is None else "wheel_on_plane"
        r = number(radius, where, "radius")
        if isinstance(r, int | float) and not r > 0.0:
            raise ModelError(f"{where}: radius is {r!r} m; expected a number above zero.")
        ends = (
            _frame(f"{name}.a", on, where, point, normal),
            _frame(f"{name}.b", body, where, centre, UP if axle is None else axle),
        )
        self._add_loop(where, Loop(name, kind, ends[0].name, ends[1].name, r), *ends)

    def knife_edge(
        self, name: str, body: str, point: Vector, along: Vector, *, on: str = "ground", normal: Vector = UP
    ) -> None:
        """Make a blade of the body move along itself and never across: a skate, a sledge's runner, a sail.

        This is a velocity constraint only; positions are not constrained.

        Parameters
        ----------
        name : str
            Name of the loop.
        body : str
            Name of the body.
        point : array_like, shape (3,)
            A point of the blade, m.
        along : array_like, shape (3,)
            Direction of the blade.
        on : str
            Body on which it glides.
        normal : array_like, shape (3,)
            Normal of the surface on which it glides.

        Raises
        ------
        ModelError
            If an argument is invalid.
        """
        where = self._check_two_bodies(name, on, body)
        ends = (_frame(f"{name}.a", on, where, point, normal), _frame(f"{name}.b", body, where, point, normal, along))
        self._add_loop(where, Loop(name, "knife_edge", ends[0].name, ends[1].name), *ends)

    def combination(self, name: str, joints: Sequence[str], weights: Sequence[Number], offset: Number = 0.0) -> None:
        """Keep a weighted sum of joint coordinates constant: gears on moving bodies, a differential.

            b.combination("differential", ("left", "right", "cage"), (1, 1, -2))

        Parameters
        ----------
        name : str
            Name of the loop.
        joints : sequence of str
            Names of the joints.
        weights : sequence of float
            Weight of each.
        offset : float
            Constant term.

        Raises
        ------
        ModelError
            If an argument is invalid.
        """
        where = self._check_new("loop", name)
        joints = _names(where, joints)
        numbers = tuple(number(w, where, "weights") for w in weights)
        constant = number(offset, where, "offset")
        self._add_loop(where, Loop(name, "combination", offset=constant, joints=joints, weights=numbers))

    def cam(
        self, name: str, joints: Sequence[str], lift: Callable[[Any], Any], *, turn: float | None = 2.0 * np.pi
    ) -> None:
        """Make the coordinate of a follower a function of a cam's coordinate.

        Parameters
        ----------
        name : str
            Name of the loop.
        joints : tuple of 2 str
            (cam, follower).
        lift : callable
            The follower's coordinate as a function of the cam's, or bc.interp of points.
        turn : float, optional
            Period after which the lift must repeat, rad; None for a cam that does not rotate fully.

        Raises
        ------
        ModelError
            If an argument is invalid, or the lift jumps after a turn.
        """
        where = self._check_new("loop", name)
        joints = _names(where, joints)
        if len(joints) != 2:
            raise ModelError(f"{where}: joints is {brief(joints)}; expected (cam, follower).")
        law = function_text(where, lift, 1)
        if turn is not None:
            self._check_periodic(where, law, turn)
        self._add_loop(where, Loop(name, "cam", joints=joints, law=law))

    def _check_periodic(self, where: str, law: str, turn: float) -> None:
        """Raise an error if the lift jumps after a turn."""
        turn = nominal(number(turn, where, "turn"))
        if not 0.0 < turn < MAX_TURN:
            raise ModelError(f"{where}: turn is {turn:g}; expected an angle above zero, or None.")
        angles = np.linspace(-0.5, 0.5, 17) * turn
        lifts, later = (np.array([_lift(law, a + k * turn) for a in angles]) for k in (0, 1))
        if not np.isfinite([lifts, later]).all():
            k = int(np.argmin(np.isfinite([*lifts, *later])))
            raise ModelError(
                f"{where}: the lift is not a number at {[*angles, *(angles + turn)][k]:.4g} rad; expected one at every "
                f"angle of a turn ({turn:.4g} rad). Give turn=None for a cam that does not go round."
            )
        jump = np.abs(later - lifts)
        if jump.max() > JUMP_TOLERANCE * max(1.0, np.abs(lifts).max()):
            k = int(np.argmax(jump))
            raise ModelError(
                f"{where}: the curve does not close: the lift is {lifts[k]:g} at {angles[k]:.4g} rad, and {later[k]:g} "
                f"one turn ({turn:.4g} rad) later. Make it periodic (of sin and cos, or of the angle modulo a turn: "
                "q - turn * floor(q / turn)), or give turn=None for a cam that does not go round."
            )

    def on_surface(
        self,
        name: str,
        body: str,
        point: Vector,
        surface: Callable[[Any, Any, Any], Any],
        *,
        on: str = "ground",
        origin: Vector = ORIGIN,
    ) -> None:
        """Keep a point of the body on the surface F(x, y, z) = 0 that `on` carries.

        Parameters
        ----------
        name : str
            Name of the loop.
        body : str
            Name of the body.
        point : array_like, shape (3,)
            The point, m.
        surface : callable
            F(x, y, z), with x, y, z from `origin` along the world's axes at the zero configuration.
        on : str
            Body that carries the surface.
        origin : array_like, shape (3,)
            Origin of x, y, z, m.

        Raises
        ------
        ModelError
            If an argument is invalid.
        """
        self._add_gliding(name, "point_on_surface", body, point, on, origin, [surface])

    def on_curve(
        self,
        name: str,
        body: str,
        point: Vector,
        curve: tuple[Callable[[Any, Any, Any], Any], Callable[[Any, Any, Any], Any]],
        *,
        on: str = "ground",
        origin: Vector = ORIGIN,
    ) -> None:
        """Keep a point of the body on a curve: a wire, a groove.

        Parameters
        ----------
        name : str
            Name of the loop.
        body : str
            Name of the body.
        point : array_like, shape (3,)
            The point, m.
        curve : tuple of 2 callables
            F and G; the curve is the intersection of the surfaces F(x, y, z) = 0 and G(x, y, z) = 0, with x, y,
            z from `origin` along the world's axes at the zero configuration.
        on : str
            Body that carries the curve.
        origin : array_like, shape (3,)
            Origin of x, y, z, m.

        Raises
        ------
        ModelError
            If an argument is invalid.
        """
        if not isinstance(curve, tuple | list) or len(curve) != 2:
            raise ModelError(f'loop "{name}": curve is {curve!r}; expected two functions of (x, y, z).')
        self._add_gliding(name, "point_on_curve", body, point, on, origin, list(curve))

    def _add_gliding(
        self, name: str, kind: str, body: str, point: Any, carrier: str, origin: Any, laws: list[Any]
    ) -> None:
        where = self._check_two_bodies(name, carrier, body)
        law = "|".join(function_text(where, f, 3) for f in laws)
        ends = (_frame(f"{name}.a", carrier, where, origin), _frame(f"{name}.b", body, where, point))
        self._add_loop(where, Loop(name, kind, ends[0].name, ends[1].name, law=law), *ends)

    def _check_two_bodies(self, name: str, carrier: str, body: str) -> str:
        where = self._check_new("loop", name, carrier, body)
        if carrier == body:
            raise ModelError(f'{where}: "{body}" cannot touch itself; `on` is another body, or the ground.')
        return where


def _names(where: str, joints: Any) -> tuple[str, ...]:
    if not isinstance(joints, tuple | list) or not all(isinstance(name, str) for name in joints):
        raise ModelError(f"{where}: joints is {brief(joints)}; expected names of joints, (name, ...).")
    return tuple(joints)


def _frame(name: str, body: str, where: str, point: Any, z: Any = UP, x: Any = (1.0, 0.0, 0.0)) -> Frame:
    axis, hint = (np.asarray(vector(direction, where, "direction"), float) for direction in (z, x))
    if not np.linalg.norm(axis) > 0.0:
        raise ModelError(f"{where}: a direction is {tuple(z)!r}; expected a vector that is not zero.")
    return Frame(name, body, matrix(axes_along(axis, hint)), vector(point, where, "point"))
