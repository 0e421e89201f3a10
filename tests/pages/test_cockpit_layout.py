"""The cockpit's page has no overlapping elements at any size, light and dark, in its usual and rare states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import bellcrank as bc
from chromium import settled
from fake_drive import FakeDrive
from page_measures import boxes, contrasts

pytest.importorskip("starlette", reason="the extra cockpit is not installed")

from bellcrank.cockpit.machines import generic
from bellcrank.excavators import linkage_machine as linkage
from bellcrank.excavators import rotary_machine as excavator
from cockpit_page import opening, serving_machines

# A zoom of 200 % halves the pixels of the page in both directions.
SIZES = [(390, 844), (844, 390), (1024, 768), (1440, 900), (1440 // 2, 900 // 2), (1024 // 2, 768 // 2)]
# smallest, largest, and sizes where the layout changes
SIZES += [(320, 568), (360, 640), (568, 320), (900, 560), (901, 559), (2560, 1440)]
BLOCKS = (
    ".title, #groups > *, #help, #panel-toggle, #words > *, #coach, #panel, .pad, #dead-man, #timeline, #site, #sliders"
)
MACHINES = {"excavator": excavator.machine, "linkage": linkage.machine, "sliders": lambda: generic(bc.zoo.puma600())}
LONG = "The record of excavator cannot be written: there is no space left on the device. Make room and try again."
STATES = {
    "as it comes": """
        for (const id of ['notice', 'compiling', 'asked', 'timeline']) document.getElementById(id).hidden = true;
        document.body.classList.remove('replaying');
        document.querySelector('#tabs button').click();
        const open = innerWidth > 900 && innerHeight >= 560, toggle = document.getElementById('panel-toggle');
        if (document.body.classList.contains('with-panel') !== open) toggle.click()""",
    "the panel open or closed": "document.getElementById('panel-toggle').click()",
    "all that can be said": f"""
        for (const id of ['notice', 'compiling', 'asked']) document.getElementById(id).hidden = false;
        document.getElementById('notice').textContent = {LONG!r}""",
    "a replay": """document.getElementById('timeline').hidden = false; document.body.classList.add('replaying');
        document.getElementById('time-text').textContent = '123.45 / 600.0 s'""",
    "the other tabs": "document.querySelectorAll('#tabs button')[1].click()",
    "setup": "document.querySelectorAll('#tabs button')[2].click()",
}


@pytest.fixture(scope="module", params=MACHINES)
def page(request: Any, browser: Any) -> Iterator[Any]:
    """Return one page for all sizes: turning a phone does not reload the page either."""
    with serving_machines() as served, opening(browser) as opened:
        yield opened(served(MACHINES[request.param](), make=FakeDrive))


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_elements_do_not_overlap(page: Any, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    for state, script in STATES.items():
        page.evaluate(f"{{ {script} }}")
        settled(page)
        found = boxes(page, BLOCKS)
        assert found["problems"] == [], state
        assert found["blocks"] > 4
        assert found["words"] > 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read(page: Any, scheme: str) -> None:
    """Text has enough contrast; colours are the same at every size."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme=scheme)
    for state, script in STATES.items():
        page.evaluate(f"{{ {script} }}")
        settled(page)
        faint = {name: ratio for name, ratio in contrasts(page) if ratio < 4.5}
        assert faint == {}, state
