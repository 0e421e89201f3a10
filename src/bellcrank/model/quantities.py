"""What can be asked of a mechanism, as methods of it.

Written from the table in dynamics/quantities.py by tests/generated.py: change that, and not this. On a mechanism each
name is the kernel itself (stairs.py); what is written here is for help(), editors and type checkers, and runs only
where a method is called on the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.model.results import ForwardDerivatives, InverseDerivatives
from bellcrank.stairs import compiled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Array = np.ndarray[Any, Any]


class Quantities:
    @compiled
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
        """Accelerations from forces: (..., nv).

        q: positions (..., nq)
        v: velocities (..., nv)
        tau: forces and moments of the joints (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        wrenches: {"frame": [force, moment]}, forces from outside, in world axes at the origin of the frame
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "forward_dynamics", ...) gives other methods, float32, threads, a GPU.
        """
        return self.forward_dynamics(q, v, tau, p=p, wrenches=wrenches, parameters=parameters, out=out)

    @compiled
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
        """Forces from accelerations: (..., nv).

        q: positions (..., nq)
        v: velocities (..., nv)
        a: accelerations (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        wrenches: {"frame": [force, moment]}, forces from outside, in world axes at the origin of the frame
        actuated: the joints that are driven, by name, where the mechanism has loops
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "inverse_dynamics", ...) gives other methods, float32, threads, a GPU.
        """
        return self.inverse_dynamics(q, v, a, p=p, wrenches=wrenches, actuated=actuated, parameters=parameters, out=out)

    @compiled
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
        """D a / dq (along the velocities), d a / dv and d a / dtau, by name or in that order: each (..., nv, nv).

        q: positions (..., nq)
        v: velocities (..., nv)
        tau: forces and moments of the joints (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        wrenches: {"frame": [force, moment]}, forces from outside, in world axes at the origin of the frame
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "forward_dynamics_derivatives", ...) gives other methods, float32, threads, a GPU.
        """
        return self.forward_dynamics_derivatives(q, v, tau, p=p, wrenches=wrenches, parameters=parameters, out=out)

    @compiled
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
        """D tau / dq (along the velocities), d tau / dv and d tau / da, by name or in that order: each (..., nv, nv).

        q: positions (..., nq)
        v: velocities (..., nv)
        a: accelerations (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        wrenches: {"frame": [force, moment]}, forces from outside, in world axes at the origin of the frame
        actuated: the joints that are driven, by name, where the mechanism has loops
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "inverse_dynamics_derivatives", ...) gives other methods, float32, threads, a GPU.
        """
        return self.inverse_dynamics_derivatives(
            q, v, a, p=p, wrenches=wrenches, actuated=actuated, parameters=parameters, out=out
        )

    @compiled
    def mass_matrix(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Joint-space inertia M: (..., nv, nv).

        q: positions (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "mass_matrix", ...) gives other methods, float32, threads, a GPU.
        """
        return self.mass_matrix(q, p=p, parameters=parameters, out=out)

    @compiled
    def inverse_mass_matrix(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """M^-1: (..., nv, nv).

        q: positions (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "inverse_mass_matrix", ...) gives other methods, float32, threads, a GPU.
        """
        return self.inverse_mass_matrix(q, p=p, parameters=parameters, out=out)

    @compiled
    def mass_matrix_factors(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """U above the diagonal and D on it, M = U D U^T: (..., nv, nv).

        q: positions (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "mass_matrix_factors", ...) gives other methods, float32, threads, a GPU.
        """
        return self.mass_matrix_factors(q, p=p, parameters=parameters, out=out)

    @compiled
    def bias(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Coriolis, centrifugal and gravity forces: (..., nv).

        q: positions (..., nq)
        v: velocities (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "bias", ...) gives other methods, float32, threads, a GPU.
        """
        return self.bias(q, v, p=p, parameters=parameters, out=out)

    @compiled
    def gravity_torque(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Forces that hold it still: (..., nv).

        q: positions (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "gravity_torque", ...) gives other methods, float32, threads, a GPU.
        """
        return self.gravity_torque(q, p=p, parameters=parameters, out=out)

    @compiled
    def coriolis_torque(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Coriolis and centrifugal forces: (..., nv).

        q: positions (..., nq)
        v: velocities (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "coriolis_torque", ...) gives other methods, float32, threads, a GPU.
        """
        return self.coriolis_torque(q, v, p=p, parameters=parameters, out=out)

    @compiled
    def coriolis_matrix(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """C with C v = coriolis_torque and C + C^T = dM/dt: (..., nv, nv).

        q: positions (..., nq)
        v: velocities (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "coriolis_matrix", ...) gives other methods, float32, threads, a GPU.
        """
        return self.coriolis_matrix(q, v, p=p, parameters=parameters, out=out)

    @compiled
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
        """[force, moment] that each joint passes on to its body: (..., bodies, 6).

        q: positions (..., nq)
        v: velocities (..., nv)
        tau: forces and moments of the joints (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        wrenches: {"frame": [force, moment]}, forces from outside, in world axes at the origin of the frame
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "reactions", ...) gives other methods, float32, threads, a GPU.
        """
        return self.reactions(q, v, tau, p=p, wrenches=wrenches, parameters=parameters, out=out)

    @compiled
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
        """How much of each force that a joint bears: 6 less its axes, joint by joint: (..., constraints).

        q: positions (..., nq)
        v: velocities (..., nv)
        tau: forces and moments of the joints (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        wrenches: {"frame": [force, moment]}, forces from outside, in world axes at the origin of the frame
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "multipliers", ...) gives other methods, float32, threads, a GPU.
        """
        return self.multipliers(q, v, tau, p=p, wrenches=wrenches, parameters=parameters, out=out)

    @compiled
    def closure(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """By how much each equation that closes a loop is missed: (..., equations).

        q: positions (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "closure", ...) gives other methods, float32, threads, a GPU.
        """
        return self.closure(q, p=p, parameters=parameters, out=out)

    @compiled
    def closure_jacobian(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """C with d closure / dt = C v: (..., equations, nv).

        q: positions (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "closure_jacobian", ...) gives other methods, float32, threads, a GPU.
        """
        return self.closure_jacobian(q, p=p, parameters=parameters, out=out)

    @compiled
    def closure_bias(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Second derivative of closure while accelerations are zero: (..., equations).

        q: positions (..., nq)
        v: velocities (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "closure_bias", ...) gives other methods, float32, threads, a GPU.
        """
        return self.closure_bias(q, v, p=p, parameters=parameters, out=out)

    @compiled
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
        """[force, moment] that each loop passes on to its second body: (..., loops, 6).

        q: positions (..., nq)
        v: velocities (..., nv)
        tau: forces and moments of the joints (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        wrenches: {"frame": [force, moment]}, forces from outside, in world axes at the origin of the frame
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "loop_forces", ...) gives other methods, float32, threads, a GPU.
        """
        return self.loop_forces(q, v, tau, p=p, wrenches=wrenches, parameters=parameters, out=out)

    @compiled
    def passive_torque(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Damping, friction and springs: (..., nv).

        q: positions (..., nq)
        v: velocities (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "passive_torque", ...) gives other methods, float32, threads, a GPU.
        """
        return self.passive_torque(q, v, p=p, parameters=parameters, out=out)

    @compiled
    def kinetic_energy(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Energy of motion: (...).

        q: positions (..., nq)
        v: velocities (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "kinetic_energy", ...) gives other methods, float32, threads, a GPU.
        """
        return self.kinetic_energy(q, v, p=p, parameters=parameters, out=out)

    @compiled
    def potential_energy(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Energy of height and of springs: (...).

        q: positions (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "potential_energy", ...) gives other methods, float32, threads, a GPU.
        """
        return self.potential_energy(q, p=p, parameters=parameters, out=out)

    @compiled
    def pose(
        self,
        q: ArrayLike,
        frame: str,
        *,
        p: ArrayLike | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """A frame in the world, as a matrix: (..., 4, 4).

        q: positions (..., nq)
        frame: a body, a joint or a link, by its name in mechanism.frames
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "pose", ...) gives other methods, float32, threads, a GPU.
        """
        return self.pose(q, frame, p=p, parameters=parameters, out=out)

    @compiled
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
        """A frame's [linear, angular] velocity, in world axes or as reference says: (..., 6).

        q: positions (..., nq)
        v: velocities (..., nv)
        frame: a body, a joint or a link, by its name in mechanism.frames
        reference: "aligned": at the origin of the frame, in world axes; "local": there, in the axes of the frame;
          "world": at the origin of the world, in world axes
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "velocity", ...) gives other methods, float32, threads, a GPU.
        """
        return self.velocity(q, v, frame, reference=reference, p=p, parameters=parameters, out=out)

    @compiled
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
        """D velocity / d v of a frame: (..., 6, nv).

        q: positions (..., nq)
        frame: a body, a joint or a link, by its name in mechanism.frames
        reference: "aligned": at the origin of the frame, in world axes; "local": there, in the axes of the frame;
          "world": at the origin of the world, in world axes
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "jacobian", ...) gives other methods, float32, threads, a GPU.
        """
        return self.jacobian(q, frame, reference=reference, p=p, parameters=parameters, out=out)

    @compiled
    def poses(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Every body in the world, as matrices: (..., bodies, 4, 4).

        q: positions (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "poses", ...) gives other methods, float32, threads, a GPU.
        """
        return self.poses(q, p=p, parameters=parameters, out=out)

    @compiled
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
        """A frame's [linear, angular] acceleration without gravity, in world axes or as reference says: (..., 6).

        q: positions (..., nq)
        v: velocities (..., nv)
        a: accelerations (..., nv)
        frame: a body, a joint or a link, by its name in mechanism.frames
        reference: "aligned": at the origin of the frame, in world axes; "local": there, in the axes of the frame;
          "world": at the origin of the world, in world axes
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "acceleration", ...) gives other methods, float32, threads, a GPU.
        """
        return self.acceleration(q, v, a, frame, reference=reference, p=p, parameters=parameters, out=out)

    @compiled
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
        """Acceleration less angular x linear velocity of a frame, as spatial vectors have it: (..., 6).

        q: positions (..., nq)
        v: velocities (..., nv)
        a: accelerations (..., nv)
        frame: a body, a joint or a link, by its name in mechanism.frames
        reference: "aligned": at the origin of the frame, in world axes; "local": there, in the axes of the frame;
          "world": at the origin of the world, in world axes
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "spatial_acceleration", ...) gives other methods, float32, threads, a GPU.
        """
        return self.spatial_acceleration(q, v, a, frame, reference=reference, p=p, parameters=parameters, out=out)

    @compiled
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
        """D jacobian / dt of a frame: (..., 6, nv).

        q: positions (..., nq)
        v: velocities (..., nv)
        frame: a body, a joint or a link, by its name in mechanism.frames
        reference: "aligned": at the origin of the frame, in world axes; "local": there, in the axes of the frame;
          "world": at the origin of the world, in world axes
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "jacobian_rate", ...) gives other methods, float32, threads, a GPU.
        """
        return self.jacobian_rate(q, v, frame, reference=reference, p=p, parameters=parameters, out=out)

    @compiled
    def com(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Centre of mass: (..., 3).

        q: positions (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "com", ...) gives other methods, float32, threads, a GPU.
        """
        return self.com(q, p=p, parameters=parameters, out=out)

    @compiled
    def com_velocity(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Velocity of the centre of mass: (..., 3).

        q: positions (..., nq)
        v: velocities (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "com_velocity", ...) gives other methods, float32, threads, a GPU.
        """
        return self.com_velocity(q, v, p=p, parameters=parameters, out=out)

    @compiled
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
        """Acceleration of the centre of mass, without gravity: (..., 3).

        q: positions (..., nq)
        v: velocities (..., nv)
        a: accelerations (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "com_acceleration", ...) gives other methods, float32, threads, a GPU.
        """
        return self.com_acceleration(q, v, a, p=p, parameters=parameters, out=out)

    @compiled
    def com_jacobian(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """D com_velocity / d v: (..., 3, nv).

        q: positions (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "com_jacobian", ...) gives other methods, float32, threads, a GPU.
        """
        return self.com_jacobian(q, p=p, parameters=parameters, out=out)

    @compiled
    def momentum(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """[linear, angular about the centre of mass]: (..., 6).

        q: positions (..., nq)
        v: velocities (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "momentum", ...) gives other methods, float32, threads, a GPU.
        """
        return self.momentum(q, v, p=p, parameters=parameters, out=out)

    @compiled
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
        """D momentum / dt: (..., 6).

        q: positions (..., nq)
        v: velocities (..., nv)
        a: accelerations (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "momentum_rate", ...) gives other methods, float32, threads, a GPU.
        """
        return self.momentum_rate(q, v, a, p=p, parameters=parameters, out=out)

    @compiled
    def momentum_matrix(
        self,
        q: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """A with momentum = A v: (..., 6, nv).

        q: positions (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "momentum_matrix", ...) gives other methods, float32, threads, a GPU.
        """
        return self.momentum_matrix(q, p=p, parameters=parameters, out=out)

    @compiled
    def momentum_matrix_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """D momentum_matrix / dt: (..., 6, nv).

        q: positions (..., nq)
        v: velocities (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "momentum_matrix_rate", ...) gives other methods, float32, threads, a GPU.
        """
        return self.momentum_matrix_rate(q, v, p=p, parameters=parameters, out=out)

    @compiled
    def rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Dq/dt: (..., nq).

        q: positions (..., nq)
        v: velocities (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "rate", ...) gives other methods, float32, threads, a GPU.
        """
        return self.rate(q, v, p=p, parameters=parameters, out=out)

    @compiled
    def integrate(
        self,
        q: ArrayLike,
        dv: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Q moved by dv, on its manifold: (..., nq).

        q: positions (..., nq)
        dv: how far along each velocity (..., nv)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "integrate", ...) gives other methods, float32, threads, a GPU.
        """
        return self.integrate(q, dv, p=p, parameters=parameters, out=out)

    @compiled
    def difference(
        self,
        q0: ArrayLike,
        q1: ArrayLike,
        p: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        out: Array | None = None,
    ) -> Array:
        """The dv that leads from q0 to q1: integrate undone: (..., nv).

        q0: positions to start from (..., nq)
        q1: positions to arrive at (..., nq)
        p: the mechanism's free numbers as an array (..., len(mechanism.parameters)); nominal ones where it is left out
        parameters: free numbers by name instead of p, {"boom.mass": 1900.0}; the others are nominal
        out: an array that takes the result

        Arrays may have any leading axes (...), which broadcast: a batch of states in one call. SI units and radians.
        bc.kernel(mechanism, "difference", ...) gives other methods, float32, threads, a GPU.
        """
        return self.difference(q0, q1, p=p, parameters=parameters, out=out)
