"""Count which pairs of features the cases of a run have covered, and say so in the summary of the tests."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from crossing.allowed import allowed
from crossing.pairwise import Case, Dimension, Pair, all_pairs, covering, pairs_of

FLOOR = 0.95  # of all pairs that are allowed, by all cases together


def planned(dimensions: Mapping[str, Dimension]) -> tuple[list[Case], float]:
    """Return the cases of a suite, those that cover most first, and what share of the allowed pairs they cover."""
    cases, every = covering(dimensions, allowed), all_pairs(dimensions, allowed)
    covered = set[Pair]().union(*map(pairs_of, cases)) if cases else set()
    return cases, len(covered & every) / len(every)


def note(folder: Path, suite: str, case: Sequence[tuple[str, str]]) -> None:
    """Write down that a case has held its laws; several processes may do so at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{suite}-{os.getpid()}.jsonl").open("a") as stream:
        stream.write(json.dumps(case) + "\n")


def report(folder: Path, suites: Mapping[str, Mapping[str, Dimension]]) -> list[str]:
    """Return a line for each suite of which something was run."""
    lines = []
    for suite, dimensions in suites.items():
        held = [json.loads(line) for file in folder.glob(f"{suite}-*.jsonl") for line in file.read_text().splitlines()]
        if not held:
            continue
        every = all_pairs(dimensions, allowed)
        covered = set[Pair]().union(*(pairs_of([(d, v) for d, v in case]) for case in held)) & every
        lines.append(
            f"{suite}: {len(held)} cases held all laws; {len(covered)} of {len(every)} allowed pairs of features, "
            f"{100 * len(covered) / len(every):.1f} %"
        )
    return lines
