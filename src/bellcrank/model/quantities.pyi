"""Types and texts of all quantities. Written from dynamics/quantities.py by tests/generated.py."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bellcrank.dynamics.quantities import ForwardDerivatives, InverseDerivatives

Array = np.ndarray[Any, Any]
NAMES: list[str]

class Quantities:
    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        p: ArrayLike | None = None,
        *,
        wrenches: Mapping[str, ArrayLike] | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the joint accelerations under joint forces.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        tau : array_like, shape (..., nv)
            Joint forces, N m or N.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        wrenches : mapping of str to array_like, shape (..., 6), optional
            External wrenches by frame: [force, moment] in world axes at the origin of the frame, N and N m.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nv)
            Accelerations, rad/s^2 or m/s^2.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "forward_dynamics", ...) offers other methods, float32, threads and GPUs.
        """

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        p: ArrayLike | None = None,
        *,
        wrenches: Mapping[str, ArrayLike] | None = None,
        actuated: Sequence[str] = (),
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the joint forces for joint accelerations.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        a : array_like, shape (..., nv)
            Joint accelerations, rad/s^2 or m/s^2.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        wrenches : mapping of str to array_like, shape (..., 6), optional
            External wrenches by frame: [force, moment] in world axes at the origin of the frame, N and N m.
        actuated : sequence of str, optional
            Names of the actuated joints, if the mechanism has loops.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nv)
            Joint forces, N m or N.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "inverse_dynamics", ...) offers other methods, float32, threads and GPUs.
        """

    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        p: ArrayLike | None = None,
        *,
        wrenches: Mapping[str, ArrayLike] | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> ForwardDerivatives:
        """Return the derivatives of forward_dynamics.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        tau : array_like, shape (..., nv)
            Joint forces, N m or N.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        wrenches : mapping of str to array_like, shape (..., 6), optional
            External wrenches by frame: [force, moment] in world axes at the origin of the frame, N and N m.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ForwardDerivatives
            dq: d a / dq, along the velocities; dv: d a / dv; dtau: d a / dtau. Each has the shape (..., nv, nv).

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "forward_dynamics_derivatives", ...) offers other methods, float32, threads and GPUs.
        """

    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        p: ArrayLike | None = None,
        *,
        wrenches: Mapping[str, ArrayLike] | None = None,
        actuated: Sequence[str] = (),
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> InverseDerivatives:
        """Return the derivatives of inverse_dynamics.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        a : array_like, shape (..., nv)
            Joint accelerations, rad/s^2 or m/s^2.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        wrenches : mapping of str to array_like, shape (..., 6), optional
            External wrenches by frame: [force, moment] in world axes at the origin of the frame, N and N m.
        actuated : sequence of str, optional
            Names of the actuated joints, if the mechanism has loops.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        InverseDerivatives
            dq: d tau / dq, along the velocities; dv: d tau / dv; da: d tau / da. Each has the shape (..., nv, nv).

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "inverse_dynamics_derivatives", ...) offers other methods, float32, threads and GPUs.
        """

    def mass_matrix(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the joint-space inertia matrix M.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nv, nv)
            Symmetric, kg m^2, kg m or kg.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "mass_matrix", ...) offers other methods, float32, threads and GPUs.
        """

    def inverse_mass_matrix(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the inverse of the mass matrix, M^-1.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nv, nv)
            Symmetric; takes forces to accelerations.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "inverse_mass_matrix", ...) offers other methods, float32, threads and GPUs.
        """

    def mass_matrix_factors(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the factors of the mass matrix, M = U D U^T.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nv, nv)
            U above the diagonal, whose own diagonal is 1, and D on the diagonal.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "mass_matrix_factors", ...) offers other methods, float32, threads and GPUs.
        """

    def bias(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the Coriolis, centrifugal and gravity forces.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nv)
            Joint forces, N m or N, with M a + bias = tau + passive_torque.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "bias", ...) offers other methods, float32, threads and GPUs.
        """

    def gravity_torque(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the joint forces that balance gravity.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nv)
            Joint forces, N m or N: bias at rest.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "gravity_torque", ...) offers other methods, float32, threads and GPUs.
        """

    def coriolis_torque(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the Coriolis and centrifugal forces.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nv)
            Joint forces, N m or N: bias without gravity.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "coriolis_torque", ...) offers other methods, float32, threads and GPUs.
        """

    def coriolis_matrix(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the Coriolis matrix of Christoffel's symbols.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nv, nv)
            C with C v = coriolis_torque and C + C^T = dM/dt.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "coriolis_matrix", ...) offers other methods, float32, threads and GPUs.
        """

    def reactions(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        p: ArrayLike | None = None,
        *,
        wrenches: Mapping[str, ArrayLike] | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the wrench that each joint transmits to its body.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        tau : array_like, shape (..., nv)
            Joint forces, N m or N.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        wrenches : mapping of str to array_like, shape (..., 6), optional
            External wrenches by frame: [force, moment] in world axes at the origin of the frame, N and N m.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., bodies, 6)
            [force, moment] in world axes, moments about the origin of the body's frame, N and N m; bodies in the order
            of mechanism.bodies.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "reactions", ...) offers other methods, float32, threads and GPUs.
        """

    def multipliers(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        p: ArrayLike | None = None,
        *,
        wrenches: Mapping[str, ArrayLike] | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the Lagrange multipliers of the joint constraints.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        tau : array_like, shape (..., nv)
            Joint forces, N m or N.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        wrenches : mapping of str to array_like, shape (..., 6), optional
            External wrenches by frame: [force, moment] in world axes at the origin of the frame, N and N m.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., constraints)
            The constraint forces joint by joint, 6 less the number of its axes for each, N or N m.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "multipliers", ...) offers other methods, float32, threads and GPUs.
        """

    def closure(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the residual of each loop equation.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., equations)
            Zero where all loops are closed, m or rad.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "closure", ...) offers other methods, float32, threads and GPUs.
        """

    def closure_jacobian(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the constraint Jacobian of the loops.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., equations, nv)
            C with d closure / dt = C v.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "closure_jacobian", ...) offers other methods, float32, threads and GPUs.
        """

    def closure_bias(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the second time derivative of closure at zero acceleration.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., equations)
            (dC/dt) v, where C is closure_jacobian.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "closure_bias", ...) offers other methods, float32, threads and GPUs.
        """

    def loop_forces(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        p: ArrayLike | None = None,
        *,
        wrenches: Mapping[str, ArrayLike] | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the wrench that each loop joint transmits to its second body.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        tau : array_like, shape (..., nv)
            Joint forces, N m or N.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        wrenches : mapping of str to array_like, shape (..., 6), optional
            External wrenches by frame: [force, moment] in world axes at the origin of the frame, N and N m.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., loops, 6)
            [force, moment] at the frame b of the loop, in world axes, N and N m; loops in the order of mechanism.loops.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "loop_forces", ...) offers other methods, float32, threads and GPUs.
        """

    def passive_torque(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the joint forces of damping, friction and springs.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nv)
            Joint forces, N m or N.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "passive_torque", ...) offers other methods, float32, threads and GPUs.
        """

    def kinetic_energy(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the kinetic energy.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (...)
            J, including rotor inertia (armature).

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "kinetic_energy", ...) offers other methods, float32, threads and GPUs.
        """

    def potential_energy(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the potential energy of gravity and springs.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (...)
            J; zero with all mass at the world's origin and springs at rest.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "potential_energy", ...) offers other methods, float32, threads and GPUs.
        """

    def pose(
        self,
        q: ArrayLike,
        frame: str,
        *,
        p: ArrayLike | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the pose of a frame in the world.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        frame : str
            A body, a joint or a link, by its name in mechanism.frames.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 4, 4)
            Homogeneous matrix that takes coordinates in the frame to the world, with lengths in m.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "pose", ...) offers other methods, float32, threads and GPUs.
        """

    def velocity(
        self,
        q: ArrayLike,
        v: ArrayLike,
        frame: str,
        *,
        reference: str = "aligned",
        p: ArrayLike | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the velocity of a frame.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        frame : str
            A body, a joint or a link, by its name in mechanism.frames.
        reference : {"aligned", "local", "world"}, optional
            "aligned": at the origin of the frame, in world axes; "local": at the origin of the frame, in its own axes;
            "world": at the origin of the world, in world axes.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 6)
            [linear, angular], m/s and rad/s, at the point and in the axes that reference selects.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "velocity", ...) offers other methods, float32, threads and GPUs.
        """

    def jacobian(
        self,
        q: ArrayLike,
        frame: str,
        *,
        reference: str = "aligned",
        p: ArrayLike | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the Jacobian of a frame.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        frame : str
            A body, a joint or a link, by its name in mechanism.frames.
        reference : {"aligned", "local", "world"}, optional
            "aligned": at the origin of the frame, in world axes; "local": at the origin of the frame, in its own axes;
            "world": at the origin of the world, in world axes.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 6, nv)
            d velocity / d v, linear rows first, at the point and in the axes that reference selects.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "jacobian", ...) offers other methods, float32, threads and GPUs.
        """

    def poses(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the poses of all bodies in the world.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., bodies, 4, 4)
            Homogeneous matrices in the order of mechanism.bodies, with lengths in m.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "poses", ...) offers other methods, float32, threads and GPUs.
        """

    def acceleration(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        frame: str,
        *,
        reference: str = "aligned",
        p: ArrayLike | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the acceleration of a frame, without gravity.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        a : array_like, shape (..., nv)
            Joint accelerations, rad/s^2 or m/s^2.
        frame : str
            A body, a joint or a link, by its name in mechanism.frames.
        reference : {"aligned", "local", "world"}, optional
            "aligned": at the origin of the frame, in world axes; "local": at the origin of the frame, in its own axes;
            "world": at the origin of the world, in world axes.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 6)
            [linear, angular], m/s^2 and rad/s^2, at the point and in the axes that reference selects.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "acceleration", ...) offers other methods, float32, threads and GPUs.
        """

    def spatial_acceleration(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        frame: str,
        *,
        reference: str = "aligned",
        p: ArrayLike | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the spatial acceleration of a frame.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        a : array_like, shape (..., nv)
            Joint accelerations, rad/s^2 or m/s^2.
        frame : str
            A body, a joint or a link, by its name in mechanism.frames.
        reference : {"aligned", "local", "world"}, optional
            "aligned": at the origin of the frame, in world axes; "local": at the origin of the frame, in its own axes;
            "world": at the origin of the world, in world axes.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 6)
            acceleration less angular x linear velocity: [linear, angular], m/s^2 and rad/s^2, at the point and in the
            axes that reference selects.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "spatial_acceleration", ...) offers other methods, float32, threads and GPUs.
        """

    def jacobian_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        frame: str,
        *,
        reference: str = "aligned",
        p: ArrayLike | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the time derivative of the Jacobian of a frame.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        frame : str
            A body, a joint or a link, by its name in mechanism.frames.
        reference : {"aligned", "local", "world"}, optional
            "aligned": at the origin of the frame, in world axes; "local": at the origin of the frame, in its own axes;
            "world": at the origin of the world, in world axes.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 6, nv)
            d jacobian / dt, linear rows first, at the point and in the axes that reference selects.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "jacobian_rate", ...) offers other methods, float32, threads and GPUs.
        """

    def com(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the centre of mass of all moving bodies.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 3)
            In world axes, m.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "com", ...) offers other methods, float32, threads and GPUs.
        """

    def com_velocity(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the velocity of the centre of mass.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 3)
            In world axes, m/s.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "com_velocity", ...) offers other methods, float32, threads and GPUs.
        """

    def com_acceleration(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the acceleration of the centre of mass, without gravity.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        a : array_like, shape (..., nv)
            Joint accelerations, rad/s^2 or m/s^2.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 3)
            In world axes, m/s^2.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "com_acceleration", ...) offers other methods, float32, threads and GPUs.
        """

    def com_jacobian(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the Jacobian of the centre of mass.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 3, nv)
            d com_velocity / d v, in world axes.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "com_jacobian", ...) offers other methods, float32, threads and GPUs.
        """

    def momentum(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the linear momentum, and the angular momentum about the centre of mass.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 6)
            [linear, angular] in world axes, kg m/s and kg m^2/s.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "momentum", ...) offers other methods, float32, threads and GPUs.
        """

    def momentum_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the time derivative of the momentum.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        a : array_like, shape (..., nv)
            Joint accelerations, rad/s^2 or m/s^2.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 6)
            [linear, angular] in world axes, N and N m.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "momentum_rate", ...) offers other methods, float32, threads and GPUs.
        """

    def momentum_matrix(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the centroidal momentum matrix.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 6, nv)
            A with momentum = A v, in world axes.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "momentum_matrix", ...) offers other methods, float32, threads and GPUs.
        """

    def momentum_matrix_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the time derivative of the centroidal momentum matrix.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., 6, nv)
            d momentum_matrix / dt, in world axes.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "momentum_matrix_rate", ...) offers other methods, float32, threads and GPUs.
        """

    def rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return dq/dt.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        v : array_like, shape (..., nv)
            Joint velocities, rad/s or m/s.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nq)
            rad/s, m/s, and rates of quaternions.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "rate", ...) offers other methods, float32, threads and GPUs.
        """

    def integrate(
        self,
        q: ArrayLike,
        dv: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return positions moved by a displacement, on their manifold.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions, rad or m, and quaternions (x, y, z, w).
        dv : array_like, shape (..., nv)
            Displacement along each velocity, rad or m.
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nq)
            Positions, rad or m, with unit quaternions.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "integrate", ...) offers other methods, float32, threads and GPUs.
        """

    def difference(
        self,
        q0: ArrayLike,
        q1: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the displacement between positions, the inverse of integrate.

        Parameters
        ----------
        q0 : array_like, shape (..., nq)
            Initial joint positions, rad or m, and quaternions (x, y, z, w).
        q1 : array_like, shape (..., nq)
            Final joint positions, rad or m, and quaternions (x, y, z, w).
        p : array_like, shape (..., len(mechanism.parameters)), optional
            Free parameters of the mechanism; nominal values if omitted.
        parameters : mapping of str to array_like, optional
            Free parameters by name instead of p, as in {"boom.mass": 1900.0}; the others are nominal.
        out : ndarray, optional
            Array that receives the result.

        Returns
        -------
        ndarray, shape (..., nv)
            dv with integrate(q0, dv) = q1, rad or m; for quaternions the shorter way round.

        Notes
        -----
        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "difference", ...) offers other methods, float32, threads and GPUs.
        """
