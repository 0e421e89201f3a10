"""Conversion of coordinates between a mechanism's order and Pinocchio's.

Pinocchio sorts the joints on one body by name, whereas a mechanism keeps the order of the file. It stores the angle of
a "continuous" joint (and the last coordinate of a planar one) as cosine and sine, and by default its mimic joints have
coordinates of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError, brief
from bellcrank.model.joints import KINDS
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.parts import Array
from bellcrank.scalar import array_argument

PLAIN_FORM, COSINE_FORM, SINE_FORM = 0, 1, 2


@dataclass(frozen=True, eq=False)
class PinocchioOrder:
    """Index arrays between Pinocchio's coordinates and the mechanism's, with functions that convert arrays.

    q : (model.nq,) index in the mechanism's q. Both numbers of a continuous joint have the index of its angle.
    v : (model.nv,) index in the mechanism's v. A mimic joint has the index of its master.

    The functions take one state or a batch, (..., n), and return new arrays.
    """

    q: Array
    v: Array
    form: Array  # (model.nq,) PLAIN_FORM, COSINE_FORM or SINE_FORM
    multiplier: Array  # (model.nq,) of a mimic joint, 1 elsewhere
    offset: Array  # (model.nq,)
    v_multiplier: Array  # (model.nv,)
    own_q: Array  # (nq,) index in Pinocchio's q of each of the mechanism's; for an angle that of its cosine
    own_v: Array  # (nv,) index in Pinocchio's v
    mechanism: Mechanism

    called: ClassVar[str] = "pinocchio_order"

    def q_to_pinocchio(self, q: Any) -> Array:
        """Convert positions to Pinocchio's.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Positions of the mechanism, rad or m.

        Returns
        -------
        ndarray, shape (..., model.nq)
            Pinocchio's positions.
        """
        x = self._checked_array(q, len(self.own_q), "q")[..., self.q] * self.multiplier + self.offset
        return np.where(self.form == PLAIN_FORM, x, np.where(self.form == COSINE_FORM, np.cos(x), np.sin(x)))

    def q_from_pinocchio(self, q: Any) -> Array:
        """Convert positions from Pinocchio's.

        Parameters
        ----------
        q : array_like, shape (..., model.nq)
            Pinocchio's positions.

        Returns
        -------
        ndarray, shape (..., nq)
            Positions of the mechanism; angles of continuous joints are between -pi and pi.
        """
        x = self._checked_array(q, len(self.q), "q")
        positions: Array = x[..., self.own_q].copy()
        angles = np.flatnonzero(self.form[self.own_q] == COSINE_FORM)
        cosine_indices = self.own_q[angles]
        positions[..., angles] = np.arctan2(x[..., cosine_indices + 1], x[..., cosine_indices])
        return positions

    def v_to_pinocchio(self, v: Any) -> Array:
        """Convert velocities, or accelerations, to Pinocchio's.

        Parameters
        ----------
        v : array_like, shape (..., nv)
            Velocities or accelerations of the mechanism.

        Returns
        -------
        ndarray, shape (..., model.nv)
            Pinocchio's velocities or accelerations.
        """
        velocities: Array = self._checked_array(v, len(self.own_v), "v")[..., self.v] * self.v_multiplier
        return velocities

    def v_from_pinocchio(self, v: Any) -> Array:
        """Convert velocities, or accelerations, from Pinocchio's.

        Parameters
        ----------
        v : array_like, shape (..., model.nv)
            Pinocchio's velocities or accelerations.

        Returns
        -------
        ndarray, shape (..., nv)
            Velocities or accelerations of the mechanism.
        """
        velocities: Array = self._checked_array(v, len(self.v), "v")[..., self.own_v].copy()
        return velocities

    def tau_to_pinocchio(self, tau: Any) -> Array:
        """Convert joint forces to Pinocchio's.

        Parameters
        ----------
        tau : array_like, shape (..., nv)
            Joint forces of the mechanism, N m or N.

        Returns
        -------
        ndarray, shape (..., model.nv)
            Pinocchio's joint forces; zero for mimic joints.
        """
        x = self._checked_array(tau, len(self.own_v), "tau")
        forces = np.zeros((*x.shape[:-1], len(self.v)))
        forces[..., self.own_v] = x
        return forces

    def tau_from_pinocchio(self, tau: Any) -> Array:
        """Convert joint forces from Pinocchio's.

        Parameters
        ----------
        tau : array_like, shape (..., model.nv)
            Pinocchio's joint forces, N m or N.

        Returns
        -------
        ndarray, shape (..., nv)
            Joint forces of the mechanism; those of mimic joints act on their masters.
        """
        x = self._checked_array(tau, len(self.v), "tau") * self.v_multiplier
        forces = np.zeros((*x.shape[:-1], len(self.own_v)))
        for k, column in enumerate(self.v):
            forces[..., column] += x[..., k]
        return forces

    def _checked_array(self, x: Any, size: int, name: str) -> Array:
        array = array_argument(f"{self.called}: {name}", x, f"an array of {size} numbers")
        if not array.ndim or array.shape[-1] != size:
            raise InputError(f"{self.called}: {name} has the shape {array.shape}; expected (..., {size}).")
        return array


@explain_argument_errors
def pinocchio_order(mechanism: Mechanism, model: Any) -> PinocchioOrder:
    """Return the map between the coordinates of a mechanism and of a pinocchio.Model of the same URDF file.

    Joints are matched by name, and a floating base by its type. The model may be read with or without `mimic=True`, and
    may come from `pin.buildReducedModel` if the mechanism was read with `lock=` of the same joints.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    model : pinocchio.Model
        Pinocchio's model.

    Returns
    -------
    PinocchioOrder
        Index arrays and conversion functions.

    Raises
    ------
    InputError
        If the joints of the two differ.
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"pinocchio_order: mechanism is {brief(mechanism)}; expected a Mechanism.")
    missing = [x for x in ("names", "joints", "nq", "nv") if not hasattr(model, x)]
    if missing:
        raise InputError(f"pinocchio_order: model is {brief(model)}; expected a pinocchio.Model.")
    theirs = {name: model.joints[i] for i, name in enumerate(model.names) if i and model.joints[i].nq}
    matched = _match_joints(mechanism, theirs)
    q_rows, v_rows = np.zeros((4, model.nq)), np.zeros((2, model.nv))
    own_q, own_v = np.zeros(mechanism.nq, int), np.zeros(mechanism.nv, int)
    for j, link in zip(mechanism.joints, mechanism.tree.links):
        if j.name not in matched:
            continue  # a mimic joint in both
        its = matched[j.name]
        scale, offset = (1.0, 0.0) if j.mimic is None else (float(j.mimic.multiplier), float(j.mimic.offset))
        forms = _coordinate_forms(j.name, j.kind, int(its.nq))
        columns = [*link.q_index, *link.q_index[-1:]] if len(forms) > len(link.q_index) else link.q_index
        q_rows[:, its.idx_q : its.idx_q + its.nq] = [columns, forms, [scale] * its.nq, [offset] * its.nq]
        v_rows[:, its.idx_v : its.idx_v + its.nv] = [link.v_index, [scale] * its.nv]
        if j.mimic is None:
            own_q[list(link.q_index)] = its.idx_q + np.arange(len(link.q_index))
            own_v[list(link.v_index)] = its.idx_v + np.arange(len(link.v_index))
    return PinocchioOrder(
        q=q_rows[0].astype(int),
        v=v_rows[0].astype(int),
        form=q_rows[1].astype(int),
        multiplier=q_rows[2],
        offset=q_rows[3],
        v_multiplier=v_rows[1],
        own_q=own_q,
        own_v=own_v,
        mechanism=mechanism,
    )


def _match_joints(m: Mechanism, theirs: dict[str, Any]) -> dict[str, Any]:
    """Return the joints of the model by the mechanism's names for them."""
    ours = {j.name: j for j in m.joints}
    matched = {name: theirs[name] for name in ours if name in theirs}
    matched |= _match_base(m, theirs, matched)
    used = [id(its) for its in matched.values()]
    only_mechanism = [j.name for j in m.joints if j.name not in matched and j.mimic is None]
    only_model = [name for name, its in theirs.items() if id(its) not in used]
    if only_mechanism or only_model:
        owners = {"mechanism": only_mechanism, "model": only_model}
        only = [f"only the {owner} has {_name_list(names)}" for owner, names in owners.items() if names]
        raise InputError(
            f'pinocchio_order of "{m.name}": {", and ".join(only)}. Read both from the same file, with the same base, '
            "and lock the same joints in both (bc.read(lock=...), pin.buildReducedModel)."
        )
    return matched


def _match_base(m: Mechanism, theirs: dict[str, Any], matched: dict[str, Any]) -> dict[str, Any]:
    """Return the floating base where it has another name in the model."""
    ours = [j.name for j in m.joints if j.kind == "floating" and j.name not in matched]
    other = [its for name, its in theirs.items() if name not in matched and its.nq == KINDS["floating"].nq]
    return {ours[0]: other[0]} if len(ours) == len(other) == 1 else {}


def _name_list(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names[:8]) + (", ..." if len(names) > 8 else "")


def _coordinate_forms(name: str, kind: str, nq: int) -> list[int]:
    """Return the form of each of Pinocchio's coordinates of a joint."""
    own_nq = KINDS[kind].nq
    if nq == own_nq:
        return [PLAIN_FORM] * own_nq
    if nq == own_nq + 1 and kind in ("revolute", "planar"):
        return [PLAIN_FORM] * (own_nq - 1) + [COSINE_FORM, SINE_FORM]
    raise InputError(f'pinocchio_order: joint "{name}" ({kind}) has {own_nq} coordinates, and {nq} in Pinocchio.')
