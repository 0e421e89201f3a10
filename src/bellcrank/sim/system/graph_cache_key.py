"""Cache key of the graphs of a plant: its user functions as they are now, registered kinds, and package constants.

A System never changes, but its functions may: a global number that a control reads, a list in its closure, a method of
an object. A cache of graphs that were traced from a plant includes this key.
"""

from __future__ import annotations

from typing import Any

from bellcrank import compiled_quantity
from bellcrank.content_digest import ContentDigest, UnidentifiedError
from bellcrank.emit.constant_changes import changed_constants
from bellcrank.model import Mechanism
from bellcrank.parameters.free import Free
from bellcrank.sim.system.systems import System


def graph_cache_key(plant: Mechanism | System) -> tuple[Any, ...]:
    """Return a key that stays equal as long as `plant` gives the same graphs.

    A plant with functions that cannot be identified gets a key that equals no other: it is traced each time.
    """
    functions: Any = ""
    if isinstance(plant, System):
        digest = ContentDigest(instead={Free: lambda x: x.digest}, without={System: ("mechanism",)})
        try:
            functions = digest.digest(plant)
        except UnidentifiedError:
            functions = object()
    return compiled_quantity.discard_count(), changed_constants(), functions
