"""The page of a study in headless Chromium: distributions and sensitivities are drawn, and a click replays a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bellcrank as bc
from chromium import opening, settled
from page_measures import contrasts

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

# The number of drawn pixels of the stage, from a copy that allows frequent reading.
INK = """(() => {
  const stage = document.getElementById("stage"), copy = document.createElement("canvas");
  Object.assign(copy, { width: stage.width, height: stage.height });
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(stage, 0, 0);
  return pen.getImageData(0, 0, copy.width, copy.height).data.filter((x, k) => k % 4 === 3 && x > 0).length;
})()"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=0.1)
    over = {"bob.mass": bc.uniform(0.5, 2.0), "hinge.q": bc.uniform(-1.0, 1.0)}
    asked: dict[str, Any] = {"seconds": 0.5, "step": 0.01, "summary": ["max(hinge.v)", "final(energy)"]}
    with distributed.LocalCluster(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as cluster:
        to = tmp_path_factory.mktemp("studies") / "pendulum"
        return bc.study(b.build(), over, 80, points="saltelli", to=to, cluster=cluster, **asked).report()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_draws_selects_and_replays(flat_browser: Any, report: Path, scheme: str) -> None:
    with opening(flat_browser) as opened:
        page = opened(report, 1000, 800, scheme)
        settled(page)
        assert page.locator("#scatter circle").count() == 80
        assert page.evaluate(INK) == 0
        page.locator("#scatter circle").nth(30).dispatch_event("click")
        page.wait_for_timeout(100)
        assert page.inner_text("#which").startswith("run 30")
        assert page.evaluate(INK) > 300  # a rod three pixels wide, not only the dot of its hinge
        before = page.inner_text("main, body")
        page.select_option("#result", "final(energy)")
        assert page.inner_text("main, body") != before
        assert min(ratio for _, ratio in contrasts(page)) >= 4.5
