"""Every backend equals `evaluate`, and `evaluate` equals the method on floats, for random trees of all joints.

Compiling is slow, so these examples are few; `targets/` tests the operations one by one.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build.graphs import graph
from bellcrank.model import Mechanism
from trees import ALL, close, random_tree, trees

some_tree = trees(armature=st.booleans(), passive=st.booleans())
QUANTITIES = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "kinetic_energy", "integrate")


@settings(max_examples=12, deadline=None)
@given(some_tree, st.sampled_from(QUANTITIES), st.sampled_from([1, 2, 7, 8, 9, 30]))
def test_machine_code_equals_evaluate(m: Mechanism, quantity: str, rows: int) -> None:
    k = bc.kernel(m, quantity)
    q, v, tau = m.random(1, (rows,))
    known = {"q": q, "v": v, "tau": tau, "a": tau, "dv": v}
    inputs = {name: known[name] for name in k.signature.inputs}
    expected = k.graph.evaluate(**inputs)[quantity]
    close(k(*inputs.values()), expected, 1e-11)
    close(k(*(x[0] for x in inputs.values())), expected[0], 1e-11)
    single = bc.kernel(m, quantity, dtype="float32")
    assert np.abs(single(*inputs.values()) - expected).max() <= 1e-2 * np.abs(expected).max()  # M^-1 amplifies 1e-7


@pytest.mark.skipif(shutil.which("cc") is None and shutil.which("gcc") is None, reason="no C compiler here")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_c_equals_evaluate(seed: int, tmp_path: Path) -> None:
    from targets.test_c99 import agree

    rng = np.random.default_rng(seed)
    m = random_tree(seed, [str(k) for k in rng.choice(ALL, 4)], [int(p) for p in rng.integers(0, 9, 4)], armature=True)
    q, v, tau = m.random(seed)
    agree(graph(m, "forward_dynamics"), tmp_path, {"q": q, "v": v, "tau": tau})
