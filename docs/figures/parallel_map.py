"""Draw docs/figures/parallel_map.svg: the best method for the mass matrix of chains, by bodies and processors."""

from __future__ import annotations

from pathlib import Path

from bellcrank import zoo
from bellcrank.build.schedule_map import winner_map
from bellcrank.dynamics.quantities import Request
from bellcrank.view.winner_map import svg

BODIES, PROCESSORS = (2, 4, 8, 16), (1, 4, 16, 36, 64, 136)

if __name__ == "__main__":
    cells = winner_map(lambda n: zoo.load(f"chain:{n}"), Request("mass_matrix"), BODIES, PROCESSORS)
    texts = {(c.bodies, c.processors): (c.winner.name, f"{c.schedule.makespan:g} steps") for c in cells}
    title = "chain: mass matrix on fully connected processors, messages free"
    Path(__file__).with_suffix(".svg").write_text(svg(title, texts), encoding="utf-8")
