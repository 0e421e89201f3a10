"""What decides the graphs of a plant besides the plant itself: functions of the user's as they are now, what was
registered, and constants of the package.

A System never changes, but its functions may: a global number that a control reads, a list in its closure, a method of
an object. Whoever keeps what was traced from a plant keeps it together with this.
"""

from __future__ import annotations

from typing import Any

from bellcrank import stairs
from bellcrank.content_digest import ContentDigest, UnidentifiedError
from bellcrank.emit.constants import changed_constants
from bellcrank.model import Mechanism
from bellcrank.parameters.free import Free
from bellcrank.sim.systems import System


def ambient(plant: Mechanism | System) -> tuple[Any, ...]:
    """Return a key that is equal as long as the same plant gives the same graphs.

    The key of a plant with functions that cannot be identified is equal to no other: it is traced each time.
    """
    functions: Any = ""
    if isinstance(plant, System):
        digest = ContentDigest(instead={Free: lambda x: x.digest}, without={System: ("mechanism",)})
        try:
            functions = digest.of(plant)
        except UnidentifiedError:
            functions = object()
    return stairs.forgotten(), changed_constants(), functions
