"""Parts that a Builder has collected, and checks of the names of new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellcrank.errors import ModelError, check_known
from bellcrank.model.outline import Outline
from bellcrank.model.parts import Body, Frame, Joint, Loop, Spring

if TYPE_CHECKING:
    from bellcrank.formats.beam_bodies import PlacedModal

GROUND = "ground"


class BuilderParts:
    """Parts by name, in the order of their addition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._bodies: dict[str, Body] = {}
        self._joints: dict[str, Joint] = {}
        self._frames: dict[str, Frame] = {}
        self._loops: dict[str, Loop] = {}
        self._springs: dict[str, Spring] = {}
        self._end_frames: dict[str, Frame] = {}  # frames of loops and springs
        self._modal_bodies: dict[str, PlacedModal] = {}
        self._outlines: dict[str, Outline] = {}

    def _check_new(self, what: str, name: str, *bodies: Any) -> str:
        """Check the name of a new part of the type `what`, and that its `bodies` exist; return its title for errors."""
        if not isinstance(name, str) or not name:
            raise ModelError(f'a {what} of mechanism "{self.name}" has the name {name!r}; expected a text.')
        motions = [*self._joints, *self._loops]
        taken: dict[str, list[str]] = {
            "body": [GROUND, *self._bodies],
            "joint": motions,
            "loop": motions,
            "frame": [*self._frames, *self._end_frames],
            "spring": [*self._springs],
        }
        if name in taken.get(what, ()):
            shared = ", those of joints and loops, too" if what in ("joint", "loop") else ""
            raise ModelError(
                f'{what} "{name}" exists already in mechanism "{self.name}"; names must differ{shared}. '
                "Rename one of them."
            )
        where = f'{what} "{name}"'
        for body in bodies:
            check_known("body", body, [GROUND, *self._bodies], where, ModelError, " Add it with body() first.")
        return where

    def _add_loop(self, where: str, loop: Loop, *ends: Frame) -> None:
        """Add a loop and the frames of its two ends."""
        self._add_end_frames(where, *ends)
        self._loops[loop.name] = loop

    def _add_end_frames(self, where: str, *ends: Frame) -> None:
        for f in ends:
            if f.name in self._frames or f.name in self._end_frames:
                raise ModelError(f'{where}: its end would be called "{f.name}", a frame that exists. Rename one.')
        self._end_frames |= {f.name: f for f in ends}
