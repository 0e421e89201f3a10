"""Draw the graph of the forward dynamics of a chain of two bodies: python docs/figures/graph_example.py"""

from __future__ import annotations

from pathlib import Path

import bellcrank as bc


def main() -> None:
    graph = bc.kernel(bc.zoo.load("chain:2"), "forward_dynamics", method="crba").graph
    path = Path(__file__).with_suffix(".svg")
    path.write_text(graph.svg(), encoding="utf-8")
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
