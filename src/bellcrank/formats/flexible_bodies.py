"""Flexible bodies of the Builder: beams, and structures of any shape.

The finite-element modules are imported on first use, since most mechanisms are rigid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.argument_errors import explain_methods
from bellcrank.errors import ModelError, brief
from bellcrank.formats.builder_parts import BuilderParts
from bellcrank.formats.moving_constraints import Vector
from bellcrank.formats.number_checks import rotation_matrix, vector
from bellcrank.model.joints.modal import MODAL_PREFIX
from bellcrank.model.parts import ORIGIN, Array, Joint, Mimic, Number, triple

if TYPE_CHECKING:
    from bellcrank.structures.beam import Sections
    from bellcrank.structures.modes import Moments
    from bellcrank.structures.reduction import Reduction
    from bellcrank.structures.section import Material

# Ways in which a slice of a beam can deform: joint type, axis (0 x, 1 y, 2 z), and stiffness in a Profile.
BEAM_MOTIONS = {
    "stretch": ("prismatic", 0, "EA"),
    "shear_y": ("prismatic", 1, "GAy"),
    "shear_z": ("prismatic", 2, "GAz"),
    "twist": ("revolute", 0, "GJ"),
    "bend_y": ("revolute", 1, "EIy"),
    "bend_z": ("revolute", 2, "EIz"),
}


@explain_methods("beam", "flexible")
class FlexibleBodies(BuilderParts, ABC):
    """Mixin of the Builder for flexible bodies."""

    @abstractmethod
    def body(self, name: str, mass: Number | None = None, com: Vector = ORIGIN, inertia: Any = None) -> None:
        """Add a rigid body `name` with `mass`, `com` and `inertia` (Builder.body)."""

    def beam(
        self,
        name: str,
        *,
        length: float,
        section: Sections,
        material: Material | None = None,
        start: Vector = ORIGIN,
        axis: Vector = (1.0, 0.0, 0.0),
        side: Vector = (0.0, 1.0, 0.0),
        elements: int = 20,
        theory: str = "timoshenko",
        motions: Sequence[str] = tuple(BEAM_MOTIONS),
        nodes: Mapping[str, float] | None = None,
        sections: Mapping[str, float] | None = None,
        modes: int = 4,
        attached: bool = True,
        below: float = math.inf,
        damping: float = 0.0,
        rayleigh: tuple[float, float] = (0.0, 0.0),
        large: bool = False,
    ) -> Reduction | None:
        """Add a straight beam from `start` along `axis`.

        The beam is the body `name`, whose frame is at its start. Each node is a body NAME.NODE, to which other parts
        can be joined. A joint carries the body `name` like any other. Deflections must be small compared with the
        length, unless `large` is set.

        Parameters
        ----------
        name : str
            Name of the body.
        length : float
            Length, m.
        section, material
            As in Beam.
        start : array_like, shape (3,)
            Position of the start in the world at the zero configuration, m.
        axis, side : array_like, shape (3,)
            Direction of the beam, and of the section's y axis, in world axes.
        elements : int
            Number of finite elements.
        theory
            As in Beam.
        motions : sequence of str
            Ways to deform: some of stretch, shear_y, shear_z, twist, bend_y (about y) and bend_z.
        nodes : mapping of str to float, optional
            {node: part of the length}; by default {"end": 1.0}.
        sections : mapping of str to float, optional
            {name: part of the length}. Loads through these sections are columns of a record: run["NAME.SECTION.My"], N,
            Vy, Vz, T and Mz, and run["NAME.SECTION.stress"], the largest stress from axial force and bending.
        modes : int
            Number of the lowest modes with start and nodes held.
        attached : bool
            Also use the static shapes of loads at the nodes.
        below : float
            Keep only shapes with frequencies below this, Hz.
        damping : float
            Damping of each mode, as a part of critical.
        rayleigh : tuple of 2 floats
            (alpha, beta) for damping alpha M + beta K, in 1/s and s.
        large : bool
            Use a chain of rigid pieces on elastic joints instead of modes, for deflections of any size; damped by beta
            only.

        Returns
        -------
        Reduction or None
            Table of the modes; None for a large beam.

        Raises
        ------
        ModelError
            If an argument is invalid.
        """
        from bellcrank.formats import beam_bodies
        from bellcrank.structures.beam import Beam
        from bellcrank.structures.modes import beam_modes

        self._check_new("beam", name)
        beam = Beam(length, section, material, elements, theory)
        placed = beam_bodies.place_beam(name, beam, start, axis, side, motions, nodes)
        damping, alpha, beta = beam_bodies.checked_damping(f'beam "{name}"', damping, rayleigh)
        cuts = beam_bodies.checked_sections(f'beam "{name}"', sections, placed.nodes)
        if large:
            if alpha or damping:
                raise ModelError(
                    f'beam "{name}": rayleigh is {(alpha, beta)}, damping {damping:g}; a large beam is damped by beta, '
                    "the second of rayleigh, only."
                )
            earlier_bodies = set(self._bodies)
            pieces = beam_bodies.add_chain(self, placed, beta)
            bodies = [x for x in self._bodies if x not in earlier_bodies]
            self._outlines[name] = beam_bodies.chain_outline(placed, pieces, bodies, cuts)
            return None
        moments = beam_modes(beam, placed.motions, placed.nodes, modes, attached, below)
        self._add_modal_body(name, placed.R, placed.start, moments, damping, (alpha, beta), cuts)
        return moments.reduction

    def flexible(
        self,
        name: str,
        structure: Moments,
        point: Vector = ORIGIN,
        rotation: Any = None,
        damping: float = 0.0,
        rayleigh: tuple[float, float] = (0.0, 0.0),
        sections: Mapping[str, float] | None = None,
    ) -> None:
        """Add a flexible body of any shape, as bc.flexible(K, M, ...) makes it.

        The body `name` has a frame that moves with the first of its interfaces. Each interface is a body
        NAME.INTERFACE, to which other parts can be joined.

        Parameters
        ----------
        name : str
            Name of the body.
        structure : Moments
            The reduced structure.
        point : array_like, shape (3,)
            Origin of the structure's own coordinates, in the world at the zero configuration, m.
        rotation : array_like, shape (3, 3), optional
            Rotation from the structure's axes to the world's.
        damping, rayleigh, sections
            As of a beam; sections only if the structure is made of beams.

        Raises
        ------
        ModelError
            If an argument is invalid.
        """
        from bellcrank.formats import beam_bodies
        from bellcrank.structures.modes import Moments

        where = self._check_new("body", name)
        if not isinstance(structure, Moments):
            raise ModelError(f"{where}: {brief(structure)} is not a structure; bc.flexible(K, M, ...) makes one.")
        R = np.eye(3) if rotation is None else np.array(rotation_matrix(rotation, where), dtype=float)
        damping, alpha, beta = beam_bodies.checked_damping(where, damping, rayleigh)
        cuts = beam_bodies.checked_sections(where, sections, structure.nodes)
        start = np.array(vector(point, where, "point"), dtype=float)
        self._add_modal_body(name, R, start, structure, damping, (alpha, beta), cuts)

    def _add_modal_body(
        self, name: str, R: Array, start: Array, moments: Moments, damping: float, rayleigh: tuple[float, float],
        sections: Mapping[str, float],
    ) -> None:  # fmt: skip
        """Add a body with modes, and a massless body for each of its nodes, on joints with shared modal coordinates."""
        from bellcrank.formats import beam_bodies

        placed = beam_bodies.place_modal(name, R, start, moments, damping, rayleigh)
        modal, _ = placed
        c = moments.com
        I = moments.inertia - moments.mass * (c @ c * np.eye(3) - np.outer(c, c))
        self.body(name, moments.mass, start + R @ c, R @ I @ R.T)
        first = modal.nodes[0].joint
        for node, place in zip(modal.nodes, moments.places.values(), strict=True):
            self.body(node.joint)
            self._check_new("joint", node.joint)
            kind, point = f"{MODAL_PREFIX}{modal.modes}", triple(start + R @ place)
            mimic = None if node.joint == first else Mimic(first)
            self._joints[node.joint] = Joint(node.joint, kind, name, node.joint, point=point, mimic=mimic)
        self._modal_bodies[name] = placed
        outline = beam_bodies.modal_outline(name, moments, R, start, first, sections)
        if outline is not None:
            self._outlines[name] = outline
