"""What numbers say of closed loops in a state, between steps: whether it closes them, and by which graphs to go on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bellcrank.sim.dynamics import Dynamics

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that go by the same graphs."""

    by: Dynamics
    members: Array  # which of the runs they are
    bound: Array | None = None  # how large E of each may become before it asks for another partition


class Closure(ABC):
    """y is (runs, size) and parameters (runs, np), or without runs where one state is meant."""

    @abstractmethod
    def neutral(self) -> Array:
        """The configuration that a mechanism has where nobody says anything."""

    @abstractmethod
    def checked(self, y: Array, parameters: Array) -> Array:
        """A start, or an error where the mechanism cannot be so."""

    @abstractmethod
    def grouped(self, y: Array, parameters: Array) -> list[Group]:
        """Which of the runs go by which graphs from here."""

    @abstractmethod
    def common(self, y: Array, parameters: Array, independent: Sequence[str] = ()) -> Dynamics:
        """The graphs that suit all of these states at once, by these joints as independent coordinates if asked."""

    @abstractmethod
    def surveyed(self, y: Array, parameters: Array) -> tuple[Array, Array]:
        """Many states as starts, and which are singular and stay as they are; or an error where one cannot be."""

    @abstractmethod
    def polished(self, y: Array, parameters: Array) -> Array:
        """A row that graphs could not make good, by numbers, at leisure."""

    @abstractmethod
    def told(self, widest: float, switched: int) -> dict[str, Any]:
        """What the record's provenance says of loops."""

    @abstractmethod
    def why_open(self, y: Array, parameters: Array, t: float) -> str:
        """Why loops could not be closed in a step from here."""

    @abstractmethod
    def singular_ahead(self, y: Array, parameters: Array, h: float) -> bool:
        """Whether the next step ends on, or beside, a singular configuration."""

    @abstractmethod
    def near(self, y: Array, parameters: Array) -> str:
        """In words, how near to a singular configuration it is; nothing where it is not."""
