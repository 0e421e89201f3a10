"""A cart with a pole: the plant of tests of steppers."""

from __future__ import annotations

from typing import Any

import bellcrank as bc


def cart_pole() -> bc.Mechanism:
    b = bc.Builder("cart_pole")
    b.body("cart", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.body("pole", mass=0.1, com=(0, 0, 0.5), inertia=(0.01, 0.01, 0.001))
    b.joint("slide", "prismatic", "ground", "cart", axis=(1, 0, 0))
    b.joint("hinge", "revolute", "cart", "pole", axis=(0, 1, 0))
    return b.build()


def plant(**more: Any) -> bc.System:
    """Return a cart that one input pushes."""
    return bc.system(cart_pole(), control=lambda t, q, v, x, u: {"slide": 10.0 * u["push"]}, inputs=["push"], **more)
