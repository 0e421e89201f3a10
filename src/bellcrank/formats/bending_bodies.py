"""What the Builder knows of bodies that bend: beams, and structures of any shape.

Finite elements are loaded when there are some: most mechanisms are rigid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import ModelError, brief
from bellcrank.formats.numbers import rotation_matrix, vector
from bellcrank.misfits import explained_class
from bellcrank.model.joints.modal import PREFIX
from bellcrank.model.parts import Array, Body, Joint, Loop, Mimic, Number, Triple, triple

if TYPE_CHECKING:
    from bellcrank.formats.beams import Bent
    from bellcrank.model.outline import Outline
    from bellcrank.structures.beam import Sections
    from bellcrank.structures.modes import Moments
    from bellcrank.structures.reduction import Reduction
    from bellcrank.structures.section import Material

ORIGIN: Triple = (0.0, 0.0, 0.0)
Vector = Sequence[Number] | Array
# How a slice of a beam can deform: the joint for it, its axis of (x, y, z), and the stiffness in a Profile.
MOTIONS = {
    "stretch": ("prismatic", 0, "EA"),
    "shear_y": ("prismatic", 1, "GAy"),
    "shear_z": ("prismatic", 2, "GAz"),
    "twist": ("revolute", 0, "GJ"),
    "bend_y": ("revolute", 1, "EIy"),
    "bend_z": ("revolute", 2, "EIz"),
}


@explained_class("beam", "flexible")
class BendingBodies(ABC):
    """A part of the Builder."""

    _bodies: dict[str, Body]
    _joints: dict[str, Joint]
    _loops: dict[str, Loop]
    _bent: dict[str, Bent]
    _outlines: dict[str, Outline]

    @abstractmethod
    def _new(self, what: str, name: str, taken: Any) -> str: ...

    @abstractmethod
    def body(self, name: str, mass: Number | None = None, com: Vector = ORIGIN, inertia: Any = None) -> None: ...

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
        motions: Sequence[str] = tuple(MOTIONS),
        nodes: Mapping[str, float] | None = None,
        sections: Mapping[str, float] | None = None,
        modes: int = 4,
        attached: bool = True,
        below: float = math.inf,
        damping: float = 0.0,
        rayleigh: tuple[float, float] = (0.0, 0.0),
        large: bool = False,
    ) -> Reduction | None:
        """A straight beam from `start` along `axis`, in the world at the zero configuration: the body `name`, whose
        frame is that of its start, and a body NAME.NODE for each of `nodes`, {node: part of the length}, where other
        parts are joined to it (NAME.end unless told). A joint carries the body `name` as any other.

        section, material, theory: as in Beam; `side` is its y. motions: which of stretch, shear_y, shear_z, twist,
        bend_y (about y) and bend_z it has. rayleigh: (alpha, beta), damping alpha M + beta K, in 1/s and s.

        Deflections must be small against its length. It moves by its lowest `modes` with start and nodes held and,
        where `attached`, by the shapes of loads at the nodes; of all these, those with frequencies `below`, in Hz.
        damping: of each mode, as a part of critical. The result is a table of them.

        sections: {name: part of the length}. What passes through there are columns of a record: run["NAME.SECTION.My"],
        N, Vy, Vz, T and Mz, and run["NAME.SECTION.stress"], the largest of pull and bending.

        large: a chain of rigid pieces on elastic joints instead, for deflections of any size; damped by beta only.
        """
        from bellcrank.formats import beams, outlines
        from bellcrank.structures.beam import Beam
        from bellcrank.structures.modes import beam_modes

        self._new("beam", name, [])
        beam = Beam(length, section, material, elements, theory)
        placed = beams.placed(name, beam, start, axis, side, motions, nodes)
        damping, alpha, beta = beams.damped(f'beam "{name}"', damping, rayleigh)
        cuts = outlines.named(f'beam "{name}"', sections, placed.nodes)
        if large:
            if alpha or damping:
                raise ModelError(
                    f'beam "{name}": rayleigh is {(alpha, beta)}, damping {damping:g}; a large beam is damped by beta, '
                    "the second of rayleigh, only."
                )
            before = set(self._bodies)
            pieces = beams.chain(self, placed, beta)
            self._outlines[name] = outlines.of_chain(placed, pieces, [x for x in self._bodies if x not in before], cuts)
            return None
        found = beam_modes(beam, placed.motions, placed.nodes, modes, attached, below)
        self._bend(name, placed.R, placed.start, found, damping, (alpha, beta), cuts)
        return found.reduction

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
        """A body of any shape that bends, as bc.flexible(K, M, ...) makes it: the body `name`, whose frame moves with
        the first of its interfaces, and a body NAME.INTERFACE for each of them, where other parts are joined.

        point and rotation (3x3): of the origin of the structure's own coordinates, in the world at the zero
        configuration. damping, rayleigh: as of a beam; sections, too, where the structure is made of beams.
        """
        from bellcrank.formats import beams, outlines
        from bellcrank.structures.modes import Moments

        where = self._new("body", name, ["ground", *self._bodies])
        if not isinstance(structure, Moments):
            raise ModelError(f"{where}: {brief(structure)} is no structure; bc.flexible(K, M, ...) makes one.")
        R = np.eye(3) if rotation is None else np.array(rotation_matrix(rotation, where), dtype=float)
        damping, alpha, beta = beams.damped(where, damping, rayleigh)
        cuts = outlines.named(where, sections, structure.nodes)
        start = np.array(vector(point, where, "point"), dtype=float)
        self._bend(name, R, start, structure, damping, (alpha, beta), cuts)

    def _bend(
        self, name: str, R: Array, start: Array, found: Moments, damping: float, rayleigh: tuple[float, float],
        sections: Mapping[str, float],
    ) -> None:  # fmt: skip
        """A body with modes, and a body of no mass for each of its nodes, on joints that share their coordinates."""
        from bellcrank.formats import beams, outlines

        bent = beams.bent(name, R, start, found, damping, rayleigh)
        c = found.com
        I = found.inertia - found.mass * (c @ c * np.eye(3) - np.outer(c, c))
        self.body(name, found.mass, start + R @ c, R @ I @ R.T)
        first = bent.modal.nodes[0].joint
        for node, place in zip(bent.modal.nodes, found.places.values(), strict=True):
            self.body(node.joint)
            self._new("joint", node.joint, [*self._joints, *self._loops])
            kind, point = f"{PREFIX}{bent.modal.modes}", triple(start + R @ place)
            mimic = None if node.joint == first else Mimic(first)
            self._joints[node.joint] = Joint(node.joint, kind, name, node.joint, point=point, mimic=mimic)
        self._bent[name] = bent
        outline = outlines.of_modes(name, found, R, start, first, sections)
        if outline is not None:
            self._outlines[name] = outline
