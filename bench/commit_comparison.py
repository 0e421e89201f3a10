"""`python -m bench.commit_comparison COMMIT [GROUP ...]`: compare this tree with an earlier one on one computer.

Each tree runs its own `python -m bench`, with its own package, ROUNDS times; of every row that both have our best time
counts. A row that is slower by more than SLACK is marked, and the command then fails. Peers are not timed: their times
are irrelevant here, and compiling their loops for an earlier tree takes ten minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 3
SLACK = 1.05  # factor
# `python -m bench` with peers that take no time to measure, and without a comparison with them.
ALONE = """
import runpy
from types import SimpleNamespace
from bench import baseline, loops, peers, simulation
nothing = SimpleNamespace(ns=1.0, ns_min=1.0)
baseline.missing, baseline.available = lambda: "no peers", lambda: False
baseline.pinocchio_python_ns = peers.mujoco_run = lambda *given, **named: nothing
loops.check = simulation.check = lambda *given: None
loops.pinocchio_runs = lambda *given, **named: [nothing]
loops.rows = lambda: (loops.compared(name, must) for name, must in loops.PROMISED.items())
runpy.run_module("bench", run_name="__main__", alter_sys=True)
"""


def figures(tree: Path, groups: list[str], to: Path) -> dict[str, tuple[float, str]]:
    """Return our figures of a tree's bench: (number, unit) by row."""
    environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
    command = [sys.executable, "-c", ALONE, *groups, "--json", str(to)]
    # exit status 1 means a promise was missed
    subprocess.run(command, cwd=tree, env=environment, check=False, stdout=subprocess.DEVNULL)
    return {row["work"]: (row["ours"], row["unit"]) for row in json.loads(to.read_text())}


def best(rounds: list[dict[str, tuple[float, str]]]) -> dict[str, tuple[float, str]]:
    return {work: min(found[work] for found in rounds if work in found) for work in rounds[0]}


def main(commit: str, *groups: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        old, to = Path(folder, "tree"), Path(folder, "figures.json")
        subprocess.run(["git", "worktree", "add", "--detach", str(old), commit], cwd=ROOT, check=True)
        try:
            pairs = [[figures(tree, [*groups], to) for tree in (old, ROOT)] for _ in range(ROUNDS)]
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(old)], cwd=ROOT, check=True)
    before, now = (best([pair[k] for pair in pairs]) for k in (0, 1))
    slower = 0
    for work, (ours, unit) in now.items():
        if work not in before:
            print(f"{'new':>8}  {ours:12.4g} {unit:4} {work}")
            continue
        if unit == "%":  # a small part of some other row, and mostly noise
            print(f"{before[work][0]:7.2g}%  {ours:12.4g} {unit:4} {work}")
            continue
        times = ours / before[work][0]
        slower += times > SLACK
        print(f"{times:7.2f}x  {ours:12.4g} {unit:4} {work}{'   SLOWER' * (times > SLACK)}")
    print(f"{slower} of {len(now)} rows more than {100 * (SLACK - 1):.0f} % slower than at {commit}")
    return 1 if slower else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
