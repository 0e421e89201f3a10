"""Constants of one body never affect another: random trees, with one link class per body and with very few classes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.laws.test_rolled_classes import arguments, close, made

from bellcrank import zoo
from bellcrank.build.graphs import graph
from bellcrank.dynamics.recursion import link_classes


@pytest.mark.parametrize("most", [1, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_random_trees_equal_straight_line_code(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_classes, "MERGE_ABOVE_CLASSES", most)
    tree = zoo.random_tree(seed, 16, kinds=["revolute", "prismatic"], special=(0.0, 0.3, 0.9, 1.0)[seed])
    rolled = made(tree, "rnea", "inverse_dynamics")
    at = arguments(tree, "inverse_dynamics")
    want = graph(tree, "inverse_dynamics", "rnea").evaluate(**at)["inverse_dynamics"]
    close(rolled.evaluate(**at)["inverse_dynamics"], want)
    assert sum(rolled.counts) == len(tree.tree.links)


def test_two_mechanisms_have_separate_tables() -> None:
    """Build two mechanisms in turn and evaluate them in the opposite order."""
    trees = [zoo.chain(9, twist="general", seed=seed) for seed in (1, 2)]
    both = [made(tree, "rnea", "gravity_torque") for tree in trees]
    for tree, rolled in reversed(list(zip(trees, both, strict=True))):
        at = arguments(tree, "gravity_torque")
        close(
            rolled.evaluate(**at)["gravity_torque"],
            graph(tree, "gravity_torque", "rnea").evaluate(**at)["gravity_torque"],
        )
    assert any(not np.array_equal(a, b) for a, b in zip(both[0].tables, both[1].tables, strict=True))
