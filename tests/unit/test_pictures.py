"""SVG pictures of schedules and graphs: well formed, complete, escaped, and legible."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from itertools import combinations
from xml.etree.ElementTree import Element

import pytest
from defusedxml import ElementTree

import bellcrank as bc
from bellcrank import zoo
from bellcrank.build import graphs
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace
from bellcrank.scheduling import Schedule, Tasks, machine, schedule
from bellcrank.view import graph_picture as picture
from bellcrank.view.schedule_picture import ticks
from bellcrank.view.self_contained_page import DARK_COLOURS, LIGHT_COLOURS, THEME, step_colours

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</script><img src=x onerror="alert(1)">{{DATA}} & \x1b[2J \x00 "quoted"'


@pytest.fixture(scope="module")
def s() -> Schedule:
    return bc.schedule(zoo.excavator(), machine="triangle", kind="t800", method="crba")


def renamed(s: Schedule, name: str) -> Schedule:
    made = tuple(replace(task, name=name) for task in s.tasks)
    return replace(s, tasks=Tasks(name, s.tasks.level, made))


def embedded(page: str) -> object:
    found = re.findall(r'<script type="application/json" id="schedule">(.*?)</script>', page, re.DOTALL)
    assert len(found) == 1
    return json.loads(found[0])


def drawn(text: str, tag: str, look: str) -> list[Element]:
    return [e for e in ElementTree.fromstring(text).iter(SVG + tag) if look in e.get("class", "").split()]


# -- schedules


def test_the_page_holds_exactly_the_json(s: Schedule) -> None:
    assert embedded(s.html()) == json.loads(s.json())


def test_page_needs_no_other_files(s: Schedule) -> None:
    page = s.html()
    assert "default-src 'none'" in page
    assert "{{" not in page.replace("${{", "")
    addresses = re.findall(r"https?://[^\s\"'<]+", page)
    assert addresses == []
    assert re.findall(r"<(?:script|link|img|iframe)[^>]*\b(?:src|href)=\"(?!data:)", page) == []


def test_names_are_only_names(s: Schedule) -> None:
    bad = renamed(s, HOSTILE)
    page = bad.html()
    assert page.count("</script>") == s.html().count("</script>")
    assert "<img" not in page
    assert embedded(page) == json.loads(bad.json())
    ElementTree.fromstring(bad.svg())
    assert "<img" not in bad.svg()


def test_a_notebook_shows_the_page_in_a_frame(s: Schedule) -> None:
    frame = re.fullmatch(r'<iframe title="[^"]*" sandbox="allow-scripts" srcdoc="([^"]*)" style="[^"]*"></iframe>',
                         s._repr_html_())  # fmt: skip
    assert frame is not None
    assert unescape(frame[1]) == s.html()


def test_every_task_and_message_is_drawn(s: Schedule) -> None:
    text = s.svg()
    boxes = drawn(text, "rect", "box") + drawn(text, "rect", "critical")
    assert len(boxes) == len(s.tasks)
    assert len(drawn(text, "rect", "critical")) == len(s.critical)
    assert len(drawn(text, "path", "message")) == len(s.messages) > 0
    hints = {e.findtext(SVG + "title", "").split(",")[0] for e in boxes}
    assert hints == {task.name for task in s.tasks}
    right = max(float(e.get("x", "")) + float(e.get("width", "")) for e in boxes)
    assert right == pytest.approx(1200 - 24, abs=0.02)


@pytest.mark.parametrize("on", ["single", "bus:3", "hypercube:2", "triangle:12"])
@pytest.mark.parametrize("level", ["cluster", "node"])
def test_any_schedule_has_a_picture(on: str, level: str) -> None:
    made = schedule(graphs.graph(zoo.planar3r(), "forward_dynamics", "aba"), machine(on, "t800"), level)
    ElementTree.fromstring(made.svg())
    assert embedded(made.html()) == json.loads(made.json())


def test_a_schedule_of_nothing() -> None:
    g = trace("nothing", lambda x: {"y": [1.0]}, {"x": (1,)})
    made = bc.schedule(g, machine="complete:2")
    ElementTree.fromstring(made.svg())
    assert embedded(made.html()) == json.loads(made.json())
    ElementTree.fromstring(g.svg())


def test_steps_have_their_colours(s: Schedule) -> None:
    steps = step_colours(task.step for task in s.tasks)
    assert set(steps) >= {"A", "f", "Ic", "F", "L", "a"}
    nodes = bc.schedule(zoo.excavator(), method="crba", level="node")
    assert {task.step for task in nodes.tasks} == set(steps)
    assert len(LIGHT_COLOURS) == len(DARK_COLOURS) == len(set(LIGHT_COLOURS)) == len(set(DARK_COLOURS))


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_ground(dark: bool) -> None:
    def light(colour: str) -> float:
        parts = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    def contrast(a: str, b: str) -> float:
        low, high = sorted((light(a), light(b)))
        return (high + 0.05) / (low + 0.05)

    theme = {key: pair[dark] for key, pair in THEME.items()}
    for ground in (
        *(DARK_COLOURS if dark else LIGHT_COLOURS),
        theme["paper"],
        theme["raised"],
    ):
        assert contrast(theme["ink"], ground) > 4.5
    for text in ("soft", "critical", "accent"):
        assert contrast(theme[text], theme["paper"]) > 4.5


def test_ticks_are_round() -> None:
    assert ticks(249) == [0, 50, 100, 150, 200]
    assert ticks(1.0) == pytest.approx([0.1 * k for k in range(11)])
    assert ticks(0.0) == [0.0]


# -- bc.schedule


def test_schedule_of_a_mechanism_and_of_a_graph() -> None:
    arm = zoo.excavator()
    g = graphs.graph(arm, "mass_matrix", "crba")
    by_name = bc.schedule(arm, "mass_matrix", "complete:3", method="crba")
    three = machine("complete:3")
    assert by_name.json() == bc.schedule(arm, "mass_matrix", three, method="crba").json()
    assert by_name.json() == bc.schedule(g, machine="complete:3").json() == schedule(g, three, "auto").json()
    assert bc.schedule(g, machine="triangle").machine.processors == 14
    assert bc.schedule(arm, "pose", frame="bucket").tasks.name == "excavator.pose"
    assert isinstance(by_name, bc.Schedule)


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"machine": "mehs:2,2"}, "mesh"),
        ({"machine": 3}, "expected a name"),
        ({"kind": "x"}, "t800"),
        ({"level": "x"}, "node"),
    ],
)
def test_schedule_of_bad_arguments(more: dict[str, object], word: str) -> None:
    with pytest.raises(InputError, match=word):
        bc.schedule(zoo.pendulum(), **more)  # type: ignore[arg-type]


# -- graphs


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graphs.graph(zoo.excavator(), "mass_matrix", "crba")


def test_every_node_and_edge_of_a_graph_is_drawn(graph: Graph) -> None:
    text = graph.svg()
    results = graph.outputs["mass_matrix"].size
    constants = [x for x in graph.outputs["mass_matrix"].flat if isinstance(x, float)]
    assert len(constants) == 1
    assert "mass_matrix[3,3] = 386" in text
    boxes = [e for e in drawn(text, "rect", "rule") + drawn(text, "rect", "critical") if e.get("height") == "24"]
    assert len(boxes) == len(graph.nodes) + results
    edges = sum(len({a.serial for a in node.operands}) for node in graph.nodes)
    assert len(drawn(text, "path", "message")) == edges + results - len(constants)
    assert len(drawn(text, "path", "critical")) == len(graph.critical_path())  # one more for the output


def test_boxes_of_a_graph_do_not_overlap(graph: Graph) -> None:
    text = graph.svg()
    boxes = [
        [float(e.get(key, "")) for key in ("x", "y", "width", "height")]
        for e in drawn(text, "rect", "rule") + drawn(text, "rect", "critical")
    ]
    for (ax, ay, aw, ah), (bx, by, bw, bh) in combinations(boxes, 2):
        assert ax + aw <= bx or bx + bw <= ax or ay + ah <= by or by + bh <= ay


def test_a_small_graph_reads_from_left_to_right() -> None:
    text = graphs.graph(zoo.pendulum(), "forward_dynamics").svg()
    words = [e.text for e in ElementTree.fromstring(text).iter(SVG + "text")]
    for word in ("q[0]", "tau[0]", "sin", "9.81 ×", "−", "forward_dynamics[0]", "tau - C"):
        assert word in words
    place = {e.text: float(e.get("x", "")) for e in ElementTree.fromstring(text).iter(SVG + "text")}
    assert place["q[0]"] < place["sin"] < place["9.81 ×"] < place["−"] < place["forward_dynamics[0]"]


def test_a_large_graph_is_refused() -> None:
    with pytest.raises(InputError, match=f"more than {picture.MAX_NODES} is unreadable"):
        graphs.graph(zoo.puma600(), "forward_dynamics", "crba").svg()
