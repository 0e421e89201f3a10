"""The scripts in examples/ run, at small size."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("rounds", [2, 20])
def test_a_policy_learns(rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("gymnasium")
    module = example("swing_up", monkeypatch)
    monkeypatch.setattr(module, "RUNS", 16)
    monkeypatch.setattr(module, "HORIZON", 25)
    decide, costs = module.train(rounds=rounds)
    assert len(costs) == rounds
    assert min(costs[1:]) < costs[0] or rounds < 20
    assert 0.0 <= module.upright(decide, runs=8, seconds=0.4) <= 1.0
    module.plot(costs, str(tmp_path / "progress.png"))
    assert (tmp_path / "progress.png").stat().st_size > 1000


def test_an_arm_is_controlled_by_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    found = example("predictive_control", monkeypatch).controlled(seconds=1.0)
    assert found.missed[0] > 0.3  # m, at the start
    assert found.missed[-1] < 0.05
    assert found.slowest < 10 * found.period  # a loose bound, because the computer may be busy
