"""The tables of docs/gpu.md: python -m bench.gpu [dynamics] [simulation] [chosen] [call] [peers] [teams]
[derivatives] [gradients] [stepping] [flexible] [large] [large_briefly]
"""

from __future__ import annotations

import sys

from bench.gpu import (
    adaptive_runs,
    call,
    derivatives,
    dynamics,
    flexible,
    gradients,
    large,
    peers,
    simulation,
    stepping,
    teams,
)

PARTS = {
    "dynamics": dynamics.table, "simulation": simulation.table, "chosen": adaptive_runs.table, "call": call.table,
    "peers": peers.table, "teams": teams.table, "derivatives": derivatives.table,
    "gradients": gradients.table, "stepping": stepping.table, "flexible": flexible.table,
    "large": large.table, "large_briefly": large.briefly,
}  # fmt: skip

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
