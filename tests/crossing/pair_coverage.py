"""Count the feature pairs that the cases of a test run have covered, and report them in the test summary."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from crossing.allowed import allowed
from crossing.pairwise import Case, Dimension, Pair, all_pairs, covering, pairs_of

FLOOR = 0.95  # minimum share of all allowed pairs that all cases together must cover


def planned(dimensions: Mapping[str, Dimension]) -> tuple[list[Case], float]:
    """Return the cases of a suite, those with the highest coverage first, and their share of the allowed pairs."""
    cases, every = covering(dimensions, allowed), all_pairs(dimensions, allowed)
    covered = set[Pair]().union(*map(pairs_of, cases)) if cases else set()
    return cases, len(covered & every) / len(every)


def note(folder: Path, suite: str, case: Sequence[tuple[str, str]]) -> None:
    """Record that a case has passed its laws; several processes may do so at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{suite}-{os.getpid()}.jsonl").open("a") as stream:
        stream.write(json.dumps(case) + "\n")


def report(folder: Path, suites: Mapping[str, Mapping[str, Dimension]]) -> list[str]:
    """Return one line for each suite that was at least partly run."""
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
