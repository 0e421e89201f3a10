"""URDF files of installed packages other than example-robot-data (test_pinocchio_robots.py), against Pinocchio."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from robot_files import short, urdf_files

import bellcrank as bc
from bellcrank.dynamics import crba, rnea

pin = pytest.importorskip("pinocchio")
from pinocchio_map import Peer  # noqa: E402

FILES = [path for path in urdf_files() if "example-robot-data" not in path.parts]


@pytest.mark.parametrize("path", FILES, ids=short)
def test_dynamics(path: Path, record_property: Callable[[str, object], None]) -> None:
    record_property("URDF file", result(path))


def result(path: Path) -> str:
    """Compare a file, and return "compared" or why it cannot be."""
    try:
        model = pin.buildModelFromUrdf(str(path))
    except ValueError:
        with pytest.raises(bc.BellcrankError):
            bc.read(path)
        return "not read by Pinocchio"
    m = bc.read(path, right_angles=0.0).frictionless()
    if not m.nv:
        return "no joints"
    peer = Peer(model, m)
    Q, V, A = m.random(1)
    q, v, a = Q.tolist(), V.tolist(), A.tolist()
    peer.at(Q, V)
    for got, expected in (
        (crba.mass_matrix(m.tree, q), peer.mass_matrix()),
        (rnea.inverse_dynamics(m.tree, q, v, a), peer.inverse_dynamics(A)),
    ):
        got = np.asarray(got, float)
        assert np.abs(got - expected).max() <= 1e-10 * np.abs(expected).max() + 1e-12
    return "compared"
