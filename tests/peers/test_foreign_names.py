"""Names of other programs on the pages for their users exist in those programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PAGES = Path(__file__).parents[2] / "docs/coming-from"


def foreign(page: str) -> set[str]:
    """Words with a capital or an underscore in the code of the left column, without keyword arguments."""
    rows = [line.split("|")[1] for line in (PAGES / page).read_text("utf-8").splitlines() if line.startswith("| `")]
    code = " ".join(code for row in rows for code in re.findall(r"`([^`]+)`", row))
    return {w for w in re.findall(r"\b[A-Za-z]\w+\b(?!\s*=)", code) if re.search(r"[A-Z_]", w)}


def somewhere(places: list[Any]) -> Iterator[str]:
    for place in places:
        yield from dir(place)


def test_exudyn() -> None:
    exu = pytest.importorskip("exudyn")
    import exudyn.utilities as utilities

    container = exu.SystemContainer()
    places = [
        exu,
        utilities,
        container,
        container.AddSystem(),
        exu.SimulationSettings().timeIntegration.generalizedAlpha,
    ]
    found = foreign("exudyn.md")
    assert len(found) > 15
    assert found - set(somewhere(places)) == {"SC", "simulationSettings"}  # names of variables


def test_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    places = [mujoco, mujoco.MjModel, mujoco.MjData]
    found = foreign("mujoco.md")
    assert len(found) > 10
    assert found - set(somewhere(places)) == {"Jp", "Jr"}  # names of arrays
