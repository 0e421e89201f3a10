"""Every MuJoCo file of every installed package: accelerations equal MuJoCo's, except what the report warns of.

Constraints (loops, limits, contacts, dry friction) and actuators are omitted on both sides, because their models
differ. The end of the test's log has a line with the numbers of files found, compared and refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robot_files import mjcf_files, short

import bellcrank as bc
from bellcrank.dynamics import aba, crba, kinematics
from bellcrank.dynamics import singular_mass as movable
from bellcrank.errors import ModelError, ReadError
from bellcrank.formats.mjcf_model import ElementNames, body_frame_offsets
from bellcrank.model import Mechanism

mujoco = pytest.importorskip("mujoco")
from mujoco_map import FilePeer, smooth, take_out  # noqa: E402

FILES = mjcf_files()
LARGEST = 300  # coordinates; larger files take minutes in plain Python
Array = np.ndarray[Any, Any]
Record = Callable[[str, object], None]


@pytest.fixture(autouse=True)
def _no_log_file() -> Iterator[None]:
    """Handle MuJoCo's warnings, which it otherwise writes into a file of the current folder."""
    mujoco.set_mju_user_warning(lambda message: None)
    yield
    mujoco.set_mju_user_warning(None)


def test_model_files_are_found() -> None:
    assert len(FILES) >= 14  # the number of Gymnasium's files


@pytest.mark.parametrize("path", FILES, ids=short)
def test_accelerations(path: Path, record_property: Record) -> None:
    record_property("MJCF file", result(path))


def result(path: Path) -> str:
    """Compare a file, and return "compared" or why it cannot be."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        with pytest.raises(ReadError):
            bc.read(path)
        return "not compiled by MuJoCo"
    m = bc.read(path)
    if not m.nv:
        return "no joints"
    if m.nv > LARGEST:
        return f"more than {LARGEST} coordinates"
    left = take_out(model, m.report)
    if left:
        return f"refused: {left[0]}"
    smooth_m = smooth(m)
    q, v, tau = m.random(1)
    peer = FilePeer(model, smooth_m, q, v)
    if np.linalg.cond(peer.mass_matrix) > 1e14:
        with pytest.raises(ModelError, match="without moving any inertia"):
            movable.check_mass_matrix(smooth_m)
        return "singular mass matrix"
    poses(smooth_m, model, peer, q)
    expected, got = peer.accelerations(tau), accelerations(smooth_m, q, v, tau)
    assert np.abs(got - expected).max() <= 1e-8 * max(1.0, np.abs(expected).max())
    return "compared"


def poses(m: Mechanism, model: Any, peer: FilePeer, q: Array) -> None:
    """Compare poses of some bodies: our frames are at the last joint's anchor."""
    names, offset = ElementNames(model).body, body_frame_offsets(model)
    for i in range(1, model.nbody, 1 + model.nbody // 10):
        X, R = np.array(kinematics.pose(m.tree, q.tolist(), names[i]), float), peer.data.xmat[i].reshape(3, 3)
        size = max(1.0, np.abs(peer.data.xpos[i]).max())
        np.testing.assert_allclose(X[:3, :3], R, atol=1e-9)
        np.testing.assert_allclose(X[:3, 3], peer.data.xpos[i] + R @ offset[i], atol=1e-9 * size)


def accelerations(m: Mechanism, q: Array, v: Array, tau: Array) -> Array:
    """Accelerations by the method on plain floats, the source of the traced kernels."""
    method = crba if m.tree.coupled else aba
    return np.array([float(x) for x in method.forward_dynamics(m.tree, q.tolist(), v.tolist(), tau.tolist())])
