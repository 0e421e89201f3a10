"""Small run-loop programs with every feature, and the loop of emit/cpu/run_loop.py written in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.emit.cpu.run_loop import DONE, FULL, PAUSE
from bellcrank.graph import Graph, Layout, Program, trace
from bellcrank.scalar import maximum, minimum, sin, where

Array = np.ndarray[Any, Any]
NAMES = ("t", "y", "z", "live", "due", "hit", "fresh", "input", "n", "last", "lines", "left")
AT = {name: k for k, name in enumerate(NAMES)}
LAYOUT = Layout(dict.fromkeys(NAMES, 1))
SHAPES = {"s": (len(NAMES),)}
FED = {**SHAPES, "u": (2,)}


def _read(s: Any) -> dict[str, Any]:
    return dict(zip(NAMES, s, strict=True))


def _tick(s: Any, u: Any = (0.0, 1.0)) -> dict[str, Any]:
    """A lane that is not live stays unchanged.

    A live one writes every third state and its last, and hits every fifth.
    """
    old = _read(s)
    n = old["n"] + 1.0
    third = sin(n * (2 * np.pi / 3)) ** 2 < 0.1
    fifth = sin(n * (np.pi / 5)) ** 2 < 0.01
    line = where(n > 4.0 * old["input"] + 3.0, minimum(old["input"] + 1.0, old["lines"]), old["input"])
    new = {
        "t": old["t"] + 0.1,
        "y": old["y"] + 0.1 * (old["z"] + u[0]),
        "z": old["z"] - 0.1 * sin(old["y"]) * u[1],
        "n": n,
        "live": where(n < old["last"], 1.0, 0.0),
        "due": where(third, 1.0, where(n < old["last"], 0.0, 1.0)),
        "hit": where(fifth, 1.0, 0.0),
        "input": line,
        "fresh": where(line > old["input"], 1.0, 0.0),
        "left": where(third, 3.0, where(n < old["last"], 0.0, 1.0)),
    }
    go = old["live"] > 0.0
    dead = {"due": 0.0, "hit": 0.0, "fresh": 0.0}
    return {"s": [where(go, new.get(k, old[k]), dead.get(k, old[k])) for k in NAMES]}


def _start(s: Any, u: Any = ()) -> dict[str, Any]:
    now = _read(s)
    return {"s": [now[k] if k != "z" else now["z"] + 0.5 for k in NAMES]}


def _observe(s: Any, u: Any = ()) -> dict[str, Any]:
    """Return as many rows as `left` contains."""
    now = _read(s)
    left = where(now["due"] > 0.0, maximum(now["left"] - 1.0, 0.0), now["left"])
    new = now | {"left": left, "due": where(now["due"] > 0.0, where(left > 0.0, 1.0, 0.0), 0.0)}
    return {"row": [now["t"], now["y"] * 2.0, now["left"]], "s": [new[k] for k in NAMES]}


def _locate(s: Any, u: Any = ()) -> dict[str, Any]:
    now = _read(s)
    hit = now["hit"] > 0.0
    new = now | {"y": where(hit, -now["y"], now["y"]), "hit": 0.0}
    return {"s": [new[k] for k in NAMES]}


def _renew(s: Any, u: Any) -> dict[str, Any]:
    now = _read(s)
    new = now | {"z": where(now["fresh"] > 0.0, u[0], now["z"]), "fresh": 0.0}
    return {"s": [new[k] for k in NAMES]}


def program(kind: str, called: str = "") -> Program:
    """Return the program. called: other names for its graphs."""
    shapes = SHAPES if kind == "plain" else FED
    graphs = {name: trace(called or name, f, shapes) for name, f in (("tick", _tick), ("start", _start))}
    if kind == "plain":
        return Program(LAYOUT, **graphs, row=3)
    more: dict[str, Any] = {}
    if kind in ("watched", "all"):
        more |= {
            "observe": trace(called or "observe", _observe, shapes),
            "locate": trace(called or "locate", _locate, shapes),
        }
    if kind == "all":
        more |= {"renew": trace(called or "renew", _renew, shapes)}
    return Program(LAYOUT, **graphs, row=3, **more)


class Spelled:
    """The loop of emit/cpu/run_loop.py in Python."""

    def __init__(self, p: Program, s: Array, inputs: Array) -> None:
        self.p, self.inputs, lanes = p, inputs, s.shape[1]
        self.u = inputs[:, 0].T
        self.s = self.of(p.start, s)["s"]
        self.rows: list[list[Array]] = [[] for _ in range(lanes)]

    def of(self, graph: Graph, s: Array) -> dict[str, Array]:
        given = {"s": s.T, "u": self.u.T}
        return {key: x.T for key, x in graph.evaluate(**{k: given[k] for k in graph.inputs}).items()}

    def run(self, ticks: int, capacity: int) -> int:
        p = self.p
        for _ in range(ticks):
            while (self.s[p.due] > 0).any():
                due = np.flatnonzero(self.s[p.due] > 0)
                if any(len(self.rows[lane]) >= capacity for lane in due):
                    return FULL
                seen = self.of(p.observe, self.s) if p.observe else {"row": self.s[: p.row], "s": self.s}
                for lane in due:
                    self.rows[lane].append(seen["row"][:, lane].copy())
                self.s = seen["s"]
                if not p.observe:
                    break
            if not (self.s[p.live] > 0).any():
                return DONE
            if p.nu:
                lines = self.s[p.input].astype(int)
                self.u = self.inputs[np.arange(len(lines)), lines].T
            if p.renew and (self.s[p.fresh] > 0).any():
                self.s = self.of(p.renew, self.s)["s"]
            self.s = self.of(p.tick, self.s)["s"]
            if p.locate and (self.s[p.hit] > 0).any():
                self.s = self.of(p.locate, self.s)["s"]
        return PAUSE


def begun(lanes: int, lasts: Sequence[int], seed: int = 0) -> tuple[Array, Array]:
    """Return states that end at different times, lane by lane (0: ended from the start), and tables of inputs."""
    rng = np.random.default_rng(seed)
    s = np.zeros((len(NAMES), lanes))
    s[AT["y"]], s[AT["z"]] = rng.normal(size=(2, lanes))
    s[AT["last"]] = [lasts[k % len(lasts)] for k in range(lanes)]
    s[AT["live"]] = s[AT["due"]] = s[AT["left"]] = s[AT["last"]] > 0
    s[AT["lines"]] = 3
    return s, rng.normal(size=(lanes, 4, 2))
