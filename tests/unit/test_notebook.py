"""Rich display in notebooks: every public object shows itself once, without external resources, with any names."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.view import mechanism_picture

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Balanced(HTMLParser):
    """An HTML parser that checks that every element is closed, and keeps texts and addresses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text, self.frames, self.addresses = "", [], []  # type: ignore[var-annotated]
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.frames += [given["srcdoc"]] if "srcdoc" in given else []
        self.addresses += [given[name] for name in ("src", "href") if name in given]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(thing: Any) -> Balanced:
    others = ("_repr_svg_", "_repr_png_", "_repr_mimebundle_", "_ipython_display_")
    assert not any(hasattr(thing, name) for name in others)  # one kind of display, not two
    found = Balanced(thing._repr_html_())
    assert found.addresses == []
    return found


ARM = bc.zoo.planar3r()


@pytest.mark.parametrize("name", ["pendulum", "excavator_linkage", "stewart", "random_tree:5"])
def test_a_mechanism_is_a_table_and_a_picture(name: str) -> None:
    m = bc.zoo.load(name)
    found = shown(m)
    assert str(m).splitlines()[0] in found.text
    # An explicit style: Jupyter's style of pre has proportional letters and breaks lines.
    assert '<pre style="font-family:monospace;font-size:.88em;white-space:pre;' in m._repr_html_()
    picture = ET.fromstring(re.search(r"<svg.*?</svg>", m._repr_html_(), re.DOTALL)[0])  # type: ignore[index]
    assert len(picture) >= len(m.bodies)
    numbers = [float(x) for e in picture for x in re.findall(r"-?\d+\.\d", e.get("points", ""))]
    assert all(-50 < x < mechanism_picture.WIDTH + 50 for x in numbers)


def test_nearest_body_is_drawn_last() -> None:
    """The nearer of two boxes in line with the camera is drawn last."""
    b = bc.Builder("two")
    eye = mechanism_picture._view_rotation(np.array([0.0, 0.0, 1.0]))[2]
    for name, far in (("near", 2.0), ("far", -2.0)):
        b.body(name, mass=1.0, com=tuple(far * eye), inertia=(0.1, 0.1, 0.1))
        b.joint(f"to {name}", "spherical", "ground", name, point=tuple(far * eye))
    m = b.build()
    fills = re.findall(r'<polygon points="[^"]+" fill="(#\w+)"', mechanism_picture.svg(m, m.neutral()))
    near, far = (mechanism_picture.LIGHT_COLOURS[i] for i in (0, 1))
    assert [x for x in fills if x in (near, far)][-1] == near


def test_a_graph_and_its_counts() -> None:
    small = bc.kernel(bc.zoo.pendulum(), "forward_dynamics", method="crba").graph
    large = bc.kernel(bc.zoo.puma600(), "mass_matrix", method="crba").graph
    assert "<svg" in small._repr_html_()
    assert "more lines" in shown(large).text
    count = large.count()
    assert str(count.arithmetic) in shown(count).text
    assert str(count.arithmetic) in shown(large).text


def test_a_record_is_its_page_in_a_frame() -> None:
    run = bc.simulate(ARM, seconds=0.1, every=0.01, method="crba")
    (page,) = shown(run).frames
    assert page == run.html()
    assert "allow-same-origin" not in run._repr_html_()


def test_poles_of_a_linearised_system() -> None:
    lin = bc.linearize(ARM)
    found = lin._repr_html_()
    shown(lin)
    assert found.count('stroke-width="2"') == 6
    assert ("#d6293c" in found) == bool((np.linalg.eigvals(lin.A).real > 0).any())
    many = bc.linearize(ARM, at={"joint1.q": np.linspace(0, 1, 3)})
    assert "3 points" in shown(many).text
    step = bc.linearize(ARM, step=1e-3)
    assert "<circle" in step._repr_html_()


def test_a_schedule_is_its_page() -> None:
    (page,) = shown(bc.schedule(bc.zoo.pendulum(), "forward_dynamics", machine="complete:2", method="crba")).frames
    assert "<script" in page


def test_names_stay_text() -> None:
    b = bc.Builder('<script>alert("x")</script>')
    b.body('"><img src=x onerror=y>', mass=1.0, com=(0, 0, -1))
    b.joint("a&b</pre>", "revolute", "ground", '"><img src=x onerror=y>', axis=(0, 1, 0))
    m = b.build()
    for thing in (m, bc.simulate(m, seconds=0.01, method="crba"), bc.linearize(m)):
        text = thing._repr_html_()
        shown(thing)
        outside = re.sub(r'srcdoc="[^"]*"', "", text)
        assert "<script" not in outside
        assert "<img" not in outside
