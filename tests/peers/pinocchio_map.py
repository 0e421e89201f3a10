"""A mechanism in Pinocchio: Pinocchio's results in our order and conventions.

Pinocchio has its own order of joints and represents continuous angles as (cos, sin). Half of its algorithms refuse
mimic joints, so they are free joints there, and the coupling v_theirs = G v_ours is computed here. Its CRBA is wrong if
joints were not added depth-first: M is computed from columns of its inverse dynamics instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pinocchio as pin

from bellcrank.model import Mechanism
from bellcrank.model.joints import KINDS

Array = np.ndarray[Any, Any]
REFERENCES = {"aligned": pin.LOCAL_WORLD_ALIGNED, "local": pin.LOCAL, "world": pin.WORLD}


class Peer:
    def __init__(self, model: Any, mechanism: Mechanism) -> None:
        self.model, self.data, self.mechanism = model, model.createData(), mechanism
        self.G = np.zeros((model.nv, mechanism.nv))
        for j, link in zip(mechanism.joints, mechanism.tree.links):
            theirs = model.joints[model.getJointId(j.name)]
            self.G[range(theirs.idx_v, theirs.idx_v + theirs.nv), link.v_index] = j.mimic.multiplier if j.mimic else 1.0
        assert np.linalg.matrix_rank(self.G) == mechanism.nv
        assert self.G.any(axis=1).all()

    def at(self, q: Array, v: Array) -> Peer:
        """Set the state of all following results."""
        self.q, self.v = self.positions(q), self.G @ v
        return self

    def positions(self, q: Array) -> Array:
        """Convert our positions to Pinocchio's."""
        found = pin.neutral(self.model)
        for j, link in zip(self.mechanism.joints, self.mechanism.tree.links):
            theirs, x = self.model.joints[self.model.getJointId(j.name)], link.coordinates(q)
            if theirs.nq == KINDS[j.kind].nq + 1:  # an angle as a point on the circle; it is the last coordinate
                x = [*x[:-1], np.cos(x[-1]), np.sin(x[-1])]
            found[theirs.idx_q : theirs.idx_q + theirs.nq] = x
        return found

    def difference(self, q1: Array) -> Array:
        """Convert a difference. Pinocchio's mimic joints depend on those that they follow, so any of them suffices."""
        return np.linalg.lstsq(self.G, pin.difference(self.model, self.q, self.positions(q1)), rcond=None)[0]

    def inverse_dynamics(self, a: Array) -> Array:
        return self.G.T @ pin.rnea(self.model, self.data, self.q, self.v, self.G @ a)

    def bias(self) -> Array:
        return self.G.T @ pin.nonLinearEffects(self.model, self.data, self.q, self.v)

    def gravity_torque(self) -> Array:
        return self.G.T @ pin.computeGeneralizedGravity(self.model, self.data, self.q)

    def mass_matrix(self) -> Array:
        bias = self.bias()
        return np.transpose([self.inverse_dynamics(e) - bias for e in np.eye(self.mechanism.nv)])

    def forward_dynamics(self, tau: Array) -> Array:
        if self.model.nv != self.mechanism.nv:
            return np.linalg.solve(self.mass_matrix(), tau - self.bias())
        return self.G.T @ pin.aba(self.model, self.data, self.q, self.v, self.G @ tau)

    def inverse_dynamics_derivatives(self, a: Array) -> list[Array]:
        """Return d tau / dq along the velocities, and d tau / dv."""
        dq, dv, _ = pin.computeRNEADerivatives(self.model, self.data, self.q, self.v, self.G @ a)
        return [self.G.T @ np.asarray(D) @ self.G for D in (dq, dv)]

    def forward_dynamics_derivatives(self, tau: Array) -> list[Array]:
        """Return derivatives of the accelerations for dq (along the velocities), dv and dtau, without mimic joints."""
        dq, dv, dtau = pin.computeABADerivatives(self.model, self.data, self.q, self.v, self.G @ tau)
        whole = np.triu(dtau) + np.triu(dtau, 1).T  # Pinocchio's may be the upper triangle alone
        return [self.G.T @ np.asarray(D) @ self.G for D in (dq, dv, whole)]

    def reactions(self, a: Array, wrenches: Mapping[str, Array] | None = None) -> Array:
        """Return [force, moment] of every joint, from the forces that its inverse dynamics transmits."""
        pushed = pin.StdVec_Force([pin.Force.Zero() for _ in self.model.joints])
        pin.framesForwardKinematics(self.model, self.data, self.q)
        for frame, w in (wrenches or {}).items():
            f = self.model.frames[self._id(frame)]
            aligned = pin.SE3(self.data.oMf[self._id(frame)].rotation.T, np.zeros(3))  # world axes, seen in the frame
            pushed[f.parentJoint] += f.placement.act(aligned.act(pin.Force(w)))
        pin.rnea(self.model, self.data, self.q, self.v, self.G @ a, pushed)
        rows = []
        for j in self.mechanism.joints:
            i = self.model.getJointId(j.name)
            rows.append(pin.SE3(self.data.oMi[i].rotation, np.zeros(3)).act(self.data.f[i]).vector)
        return np.array(rows)

    def kinetic_energy(self) -> float:
        return float(pin.computeKineticEnergy(self.model, self.data, self.q, self.v))

    def potential_energy(self) -> float:
        return float(pin.computePotentialEnergy(self.model, self.data, self.q))

    def coriolis_matrix(self) -> Array:
        return self.G.T @ pin.computeCoriolisMatrix(self.model, self.data, self.q, self.v) @ self.G

    def com(self) -> Array:
        return pin.centerOfMass(self.model, self.data, self.q).copy()

    def com_jacobian(self) -> Array:
        return pin.jacobianCenterOfMass(self.model, self.data, self.q).reshape(3, -1) @ self.G

    def com_motion(self, a: Array) -> tuple[Array, Array]:
        """Return velocity and acceleration of the centre of mass."""
        pin.centerOfMass(self.model, self.data, self.q, self.v, self.G @ a)
        return self.data.vcom[0].copy(), self.data.acom[0].copy()

    def momentum_matrices(self) -> tuple[Array, Array]:
        """Return the centroidal momentum matrix and its rate."""
        pin.computeCentroidalMapTimeVariation(self.model, self.data, self.q, self.v)
        return self.data.Ag.reshape(6, -1) @ self.G, self.data.dAg.reshape(6, -1) @ self.G

    def momentum_rate(self, a: Array) -> Array:
        pin.computeCentroidalMomentumTimeVariation(self.model, self.data, self.q, self.v, self.G @ a)
        return self.data.dhg.vector.copy()

    def momentum(self) -> Array:
        return pin.computeCentroidalMomentum(self.model, self.data, self.q, self.v).vector.copy()

    def frames(self) -> list[str]:
        """Return the links by name."""
        return [f.name for f in self.model.frames if f.type == pin.FrameType.BODY]

    def pose(self, frame: str) -> Array:
        pin.framesForwardKinematics(self.model, self.data, self.q)
        return self.data.oMf[self._id(frame)].homogeneous.copy()

    def velocity(self, frame: str, reference: str = "aligned") -> Array:
        pin.forwardKinematics(self.model, self.data, self.q, self.v)
        return pin.getFrameVelocity(self.model, self.data, self._id(frame), REFERENCES[reference]).vector.copy()

    def jacobian(self, frame: str, reference: str = "aligned") -> Array:
        J = pin.computeFrameJacobian(self.model, self.data, self.q, self._id(frame), REFERENCES[reference])
        return J.reshape(6, -1) @ self.G  # one column comes as a vector

    def acceleration(self, a: Array, frame: str, reference: str) -> Array:
        pin.forwardKinematics(self.model, self.data, self.q, self.v, self.G @ a)
        found = pin.getFrameClassicalAcceleration(self.model, self.data, self._id(frame), REFERENCES[reference])
        return found.vector.copy()

    def spatial_acceleration(self, a: Array, frame: str, reference: str) -> Array:
        pin.forwardKinematics(self.model, self.data, self.q, self.v, self.G @ a)
        return pin.getFrameAcceleration(self.model, self.data, self._id(frame), REFERENCES[reference]).vector.copy()

    def jacobian_rate(self, frame: str, reference: str) -> Array:
        pin.computeJointJacobiansTimeVariation(self.model, self.data, self.q, self.v)
        pin.updateFramePlacements(self.model, self.data)
        dJ = pin.getFrameJacobianTimeVariation(self.model, self.data, self._id(frame), REFERENCES[reference])
        return dJ.reshape(6, -1) @ self.G

    def _id(self, frame: str) -> int:
        return self.model.getFrameId(frame, pin.FrameType.BODY)
