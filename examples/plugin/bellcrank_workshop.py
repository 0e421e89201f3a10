"""Example plug-in: once installed, its parts are available in bellcrank by name."""

from dataclasses import dataclass

import bellcrank as bc
from bellcrank.actuators.actuator import Actuator, limited
from bellcrank.dynamics import crba
from bellcrank.integrate.runge_kutta import explicit
from bellcrank.integrate.tableaus import Tableau
from bellcrank.model.kind import FORCES, TURN_Z, Kind, shift_z, turn_z
from bellcrank.spatial.moves import Transform

HEUN = explicit("heun", 2, Tableau(a=((), (1.0,)), b=(0.5, 0.5), c=(0.0, 1.0)), "K. Heun, 1900")


class Geared(Kind):
    """A hinge behind a gear of 10: its coordinate is the motor's angle."""
    name, nq, nv, coordinates = "geared", 1, 1, ("motor angle",)
    def transform(self, q): return Transform([*shift_z(self.distance0), turn_z(0.1 * q[0], self.angle0)])
    def subspace(self, q): return [TURN_Z * 0.1]
    def forces(self, q): return [FORCES[2] * 10.0], [f for i, f in enumerate(FORCES) if i != 2]


class WithRotors:
    """Rotors of 0.1 kg m^2 on every axis."""
    def mass_matrix(tree, q):
        M = crba.mass_matrix(tree, q)
        return [[M[i][j] + (0.1 if i == j else 0.0) for j in range(tree.nv)] for i in range(tree.nv)]


@dataclass(frozen=True)
class Winch(Actuator):
    """Pulls, and cannot push."""
    most: float = 1e3
    def __call__(self, t, q, v, x, command): return bc.maximum(limited(command, self.most), 0.0), []


def rods(data, source):
    """A file of lengths in metres, one a line, as a chain of rods of 1 kg/m."""
    b, x, parent = bc.Builder(source), 0.0, "ground"
    for k, length in enumerate(map(float, data.decode().split()), 1):
        b.body(f"rod{k}", mass=length, com=(x + length / 2, 0, 0), inertia=(1e-4, length**3 / 12, length**3 / 12))
        b.joint(f"pin{k}", "revolute", parent, f"rod{k}", point=(x, 0, 0), axis=(0, 0, 1))
        x, parent = x + length, f"rod{k}"
    return b.build()


def geared_arm():
    b = bc.Builder("geared_arm")
    b.body("bar", mass=2.0, com=(0.5, 0, 0), inertia=(0.01, 0.2, 0.2))
    b.joint("shoulder", "geared", "ground", "bar", axis=(0, 1, 0))
    return b.build()


def machine():
    from bellcrank.cockpit.machines import generic
    return generic(bc.zoo.planar3r())
