"""Equalities of a MuJoCo model as loops that hold exactly; MuJoCo's own are compliant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bellcrank.errors import ReadError
from bellcrank.formats.mjcf_model import ElementNames, rotation
from bellcrank.formats.urdf_loops import coupling
from bellcrank.model.parts import EQUATIONS, Array, Frame, Loop, ReportLine, matrix, triple

CONNECT, WELD, JOINT = 0, 1, 2  # of mjtEq
SITE = 6  # of mjtObj


class EqualityLoops:
    """Loops, the frames where they meet, joints that are held still with their values, and lines of the report."""

    def __init__(self, model: Any, names: ElementNames, offset: Array, kinds: Mapping[str, str], used: bool) -> None:
        """Convert the equalities of a compiled model.

        Parameters
        ----------
        model
            Compiled MuJoCo model.
        names
            Names of its elements.
        offset
            Origin of each body's frame in MuJoCo's body frame, (nbody, 3), m.
        kinds
            Joint types by name.
        used
            Equalities are not disabled by a flag.
        """
        self.m, self.names, self.offset, self.kinds = model, names, offset, kinds
        self.lines: list[ReportLine] = []
        self.frames: list[Frame] = []
        self.held_joints: dict[str, float] = {}
        self.loops = list(self._loops(used))

    def _loops(self, used: bool) -> Iterator[Loop]:
        for i, name in enumerate(self.names.equality):
            where, kind = f'equality "{name}"', self.m.eq_type[i]
            if not used:
                self.lines.append(ReportLine(where, "not used: a flag disables equalities", "note"))
            elif not self.m.eq_active0[i]:
                self.lines.append(ReportLine(where, "not active: not used", "note"))
            elif kind in (CONNECT, WELD):
                yield self._closure(where, name, i)
            elif kind == JOINT:
                yield from self._coupling(where, name, i)
            else:
                self.lines.append(ReportLine(where, "not used: only connect, weld and joint are", "warning"))

    def _closure(self, where: str, name: str, i: int) -> Loop:
        m, data, ids = self.m, self.m.eq_data[i], (self.m.eq_obj1id[i], self.m.eq_obj2id[i])
        held = m.eq_type[i] == WELD and data[10] > 0.0  # torquescale 0 constrains the point only
        if m.eq_objtype[i] == SITE:
            places = [(m.site_bodyid[k], m.site_pos[k], rotation(m.site_quat[k])) for k in ids]
        elif m.eq_type[i] == CONNECT:
            places = [(ids[0], data[0:3], np.eye(3)), (ids[1], data[3:6], np.eye(3))]
        else:
            places = [(ids[0], data[3:6], rotation(data[6:10])), (ids[1], data[0:3], np.eye(3))]
        ends = [self.names.frames.add_unique(f"{name}.{letter}") for letter in "ab"]
        for end, (body, point, R) in zip(ends, places, strict=True):
            self.frames.append(Frame(end, self.names.body[body], matrix(R), triple(point - self.offset[body])))
        kind = "fixed" if held else "spherical"
        self.lines.append(ReportLine(where, f"closes a loop, {kind}: {EQUATIONS[kind]} equations, held exactly"))
        return Loop(name, kind, ends[0], ends[1])

    def _coupling(self, where: str, name: str, i: int) -> Iterator[Loop]:
        """Convert joint1 = c0 + c1 joint2 + ..., both relative to their values in the file."""
        c0, c1, *more = (float(x) for x in self.m.eq_data[i][:5])
        first = self.names.joint[self.m.eq_obj1id[i]]
        if self.m.eq_obj2id[i] < 0 or (c1 == 0.0 and not any(more)):
            self.held_joints[first] = c0
            self.lines.append(ReportLine(where, f'holds joint "{first}" at {c0:g}'))
            return
        second = self.names.joint[self.m.eq_obj2id[i]]
        if any(more):
            raise ReadError(
                f'{where} couples "{first}" to "{second}" by a polynomial {[c0, c1, *more]}; expected a straight line '
                "(polycoef with two numbers and zeros)."
            )
        self.lines.append(ReportLine(where, f"{first} = {c1:g} * {second} + {c0:g}: kept, held exactly"))
        yield coupling(name, {joint: self.kinds[joint] for joint in (second, first)}, c1, c0)
