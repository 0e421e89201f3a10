"""Analysis of the loop equations: redundant constraints and mobility.

The rank of the constraint Jacobian C is decided once, by the gap in its singular values in many assembled
configurations (constraint_values.py); everything that follows uses that decision. Rows that are always a combination of
others are named, and the groups of dependent rows (rank.py); the mobility follows from the rank, and Gruebler's count,
which does not consider geometry, is given for comparison.

Files have 1.5708 where a quarter of a turn is meant. Taken literally, axes that are parallel except for the last digit
lock a linkage. So if small singular values are clearly separated from all others, the mechanism is tried without the
constraints that they represent: if its loops then stay closed within that tolerance wherever it moves, these singular
values count as zero, and the remaining gap of the loops is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics.loops.acceleration_accuracy import (
    MAX_RELATIVE_ERROR,
    Accuracy,
    may_lose_digits,
    measure_accuracy,
    with_usual_pivots,
)
from bellcrank.dynamics.loops.assembly import (
    EXACT_RESIDUAL,
    MOTION_TOLERANCE,
    ROUGH_TOLERANCE,
    SEARCH_DISTANCES,
    assemble_batch,
    describe_residual,
    is_assembled,
    relative_residual,
    search_assembly,
)
from bellcrank.dynamics.loops.constraint_equations import equation_families, equation_names, rows_by_loop
from bellcrank.dynamics.loops.constraint_values import (
    CLEAR_GAP_RATIO,
    Array,
    BlockRank,
    Scales,
    decide_ranks,
    displace,
    evaluate_constraints,
    independent_blocks,
    natural_scales,
    pseudo_inverse,
    redundancy,
    total_rank,
)
from bellcrank.dynamics.loops.rank import LoopRank, RedundancyGroup
from bellcrank.dynamics.quantities import check_moving_body
from bellcrank.errors import ModelError
from bellcrank.model import Mechanism
from bellcrank.model.mechanism import warn_once
from bellcrank.model.tree import Tree
from bellcrank.text_table import table

WALKERS, STEPS = 4, 3
DOUBTFUL_WALKERS = 6  # if it is not clear which constraints are real
FAR_WALKERS, FAR_STEPS = 24, 16  # for configurations far from the start
EXACT_NOISE = 3e-11  # with exact numbers, singular values that should be zero are smaller than this
NEGLIGIBLE_ROW = 1e-10  # an equation whose row is smaller than this, relative to its natural size, is rounding
REPORTED_GAP = 1e-8  # gaps of loops larger than this, relative to their size, are reported
SLACK_MARGIN = 10.0  # margin of the largest gap seen, for configurations that were not examined
HOLDING_FACTOR = 100.0  # loops that open by more than this multiple of the singular values left out were held by them
# If nothing closes at first: factor for the number of configurations tried, and limit of their numbers.
MAX_TRIES, MAX_TRIED_NUMBERS = 20, 5e6
# Elements of the projection onto redundant combinations that tie two rows: default, largest, and multiple of rounding
# divided by the smallest singular value that counts.
TIE_TOLERANCE, MAX_TIE_TOLERANCE, TIE_MARGIN = 1e-6, 0.1, 30.0
PATTERN_TOLERANCE = 1e-13  # elements of C, in natural sizes, that are not rounding


NO_SCALES = Scales(np.ones(0), np.ones(0))
LISTED_LOOPS = 4  # most loops named in a warning


@dataclass(frozen=True, eq=False)
class Analysis:
    """Result of the analysis: names, rank and redundancy of the loop equations, and warnings."""

    names: tuple[str, ...]  # names of all equations
    kept: tuple[int, ...]  # equations that are independent in most configurations, as many as the rank
    identically_satisfied: tuple[int, ...]  # equations that hold identically
    rank: LoopRank  # all nontrivial equations, and the groups of dependent ones
    pattern: Array  # (rank.rows, nv): true where C is not always zero
    nv: int
    samples: Array  # assembled configurations, the start first
    more: int = 0  # additional degrees of freedom at the start, if that is singular
    zero_threshold: float = 0.0  # singular values below this count as zero: 0 for exact numbers
    # Largest gap of the loops, relative to their size, because their equations contradict.
    contradiction_gap: float = 0.0
    blocking_singular_value: float = 0.0  # the smallest that counts; it holds a mechanism that cannot move
    blocks: tuple[BlockRank, ...] = ()  # rank decision for each set of loops that share coordinates
    scales: Scales = NO_SCALES  # natural sizes of equations and coordinates
    inexact: str = ""  # warning about accelerations that lose digits (acceleration_accuracy.py)
    # It began at a given configuration, so that the mechanism alone does not determine it.
    from_given_configuration: bool = False

    @property
    def redundant(self) -> tuple[str, ...]:
        """Return the names of the equations that follow from the others."""
        out = set(self.kept) | set(self.identically_satisfied)
        return tuple(name for k, name in enumerate(self.names) if k not in out)

    @property
    def mobility(self) -> int:
        """Return the number of degrees of freedom."""
        return self.nv - len(self.kept)

    @property
    def gruebler(self) -> int:
        """Return Gruebler's count: degrees of freedom of the tree less all equations."""
        return self.nv - len(self.names)

    @property
    def gap(self) -> tuple[float, float]:
        """Return the smallest singular value of C that counts and the largest that does not, where they are closest.

        C is in natural sizes, and all of its singular values are about 1 or smaller. A value that does not count is at
        least as large as rounding makes it.
        """
        counting = [x for x in self.blocks if x.rank]
        if not counting:
            return 1.0, max((x.rest for x in self.blocks), default=0.0)
        worst = min(counting, key=lambda x: x.ratio)
        return worst.signal, worst.rest

    @property
    def gap_in_words(self) -> str:
        """Describe the gap in one sentence."""
        counts, rest = self.gap
        return f"singular values of C: {counts:.1e} and larger count, {rest:.1e} and smaller are zero"

    @property
    def cut(self) -> float:
        """Return the limit below which singular values of C are zero, in any configuration."""
        return min((x.cut for x in self.blocks if x.rank), default=0.0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return all warnings: a singular start, and doubts about the mechanism."""
        singular = f"the start is singular, with {self.more} more: the motion from there is not determined"
        return (singular, *self.doubts) if self.more else self.doubts

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return reasons why the mechanism may not be modelled as intended."""
        reasons = []
        if self.zero_threshold and self.contradiction_gap > REPORTED_GAP:
            dropped = max((x.rest for x in self.blocks), default=0.0)
            reasons.append(
                "numbers are not exact: the loops stay open by up to "
                f"{self.contradiction_gap / SLACK_MARGIN:.1e} of their size as "
                f"it moves, because singular values of C up to {dropped:.1e} count as zero. Axes that are "
                "parallel, or lengths that fit, except for the last digits are assumed to be exactly so; give them "
                "with all digits to close the loops"
            )
        reasons += [self._rank_warning(x) for x in self.blocks if x.ratio < CLEAR_GAP_RATIO]  # no clear gap
        reasons += [self.inexact] if self.inexact else []
        if self.nv and not self.mobility:
            reasons.append(
                "it cannot move: the loops leave no freedom. If it should, check axes that are nearly parallel and "
                "lengths that nearly fit (the weakest constraint is "
                f"{self.blocking_singular_value:.1e} of the strongest)"
            )
        return tuple(reasons)

    def _rank_warning(self, block: BlockRank) -> str:
        values = ", ".join(f"{x:.1e}" for x in block.around)
        return (
            f'it is not clear how many of the equations of loop "{self.names[block.rows[0]].partition(":")[0]}" and of '
            f"the loops connected to it are independent: {block.rank} are assumed, but the singular values of C there "
            f"are ..., {values}, with no gap between those that count and those that do not. Give lengths and axes "
            "with all digits if equations are meant to be redundant, or change dimensions that nearly fit if they are "
            "not"
        )

    def __str__(self) -> str:
        state = dict.fromkeys(self.kept, "kept") | dict.fromkeys(self.identically_satisfied, "holds identically")
        rows = [(name, state.get(k, "redundant: follows from the others")) for k, name in enumerate(self.names)]
        equations = f"{len(self.kept)} of {len(self.names)} equations"
        head = f"mobility {self.mobility} (Gruebler counts {self.gruebler}), {equations}"
        head += f"\n{self.gap_in_words}" if self.blocks else ""
        return "\n".join([head, *self.warnings, table(("equation", ""), rows)])


def analysis(mechanism: Mechanism, near: Array | None = None) -> Analysis:
    """Return the analysis of a mechanism's loops; computed once, near the zero configuration if the loops close there.

    Free parameters have their nominal values. Doubts about the mechanism are issued as warnings, once for each object.

    Parameters
    ----------
    mechanism
        Mechanism with loops.
    near
        Configuration to begin at if no assembly is found near zero.
    """
    cache: dict[str, Analysis] = mechanism.__dict__
    if "_closure" not in cache:
        check_moving_body(mechanism)
        plain = mechanism.at() if mechanism.parameters else mechanism
        try:
            cache.setdefault("_closure", analyse_tree(plain.tree, plain.neutral()))
        except ModelError:
            if near is None:
                raise
            cache["_closure"] = replace(analyse_tree(plain.tree, near), from_given_configuration=True)
    warn_once(mechanism, cache["_closure"].doubts)
    return cache["_closure"]


def analyse_tree(tree: Tree, start: Array) -> Analysis:
    """Analyse the loops of a tree.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    start
        Configuration near which the search for an assembly begins.
    """
    row_names = equation_names(tree)
    samples, blocks, natural, rough = _decide_rank(tree, *_first_assembly(tree, start, row_names))
    values = evaluate_constraints(tree, samples)
    C = natural.scaled(values.C)
    rank, size = total_rank(blocks), np.abs(C).max(axis=(0, 2), initial=0.0)
    noise = np.zeros(len(row_names))
    for block in blocks:
        noise[block.rows] = block.rest
    trivial = {int(k) for k in np.flatnonzero(size < np.maximum(NEGLIGIBLE_ROW, 3.0 * noise))}
    trivial |= {int(k) for block in blocks if not block.rank for k in block.rows}  # only rounding would constrain it
    regular = np.sum([(block.values > block.cut).sum(axis=1) for block in blocks] or [np.zeros(len(samples))], axis=0)
    usual = C[regular >= rank] if (regular >= rank).any() else C
    rows, groups = _redundancy_groups(usual, blocks, trivial)
    loops = [k for k, (_, loop_rows) in enumerate(rows_by_loop(tree)) for _ in loop_rows]
    sizes = _row_sizes(tree, np.linalg.norm(values.C * natural.columns, axis=2).mean(axis=0), rows, groups)
    loop_rank = LoopRank(
        tuple(rows), groups, sizes, tuple(loops[k] for k in rows), tuple(float(x) for x in natural.columns)
    )
    pattern = np.abs(C[:, rows]).max(axis=0, initial=0.0) > PATTERN_TOLERANCE
    fit = regular >= rank
    slack = SLACK_MARGIN * float(np.abs(values.value * natural.rows).max(initial=0.0))
    loop_rank, loss = with_usual_pivots(tree, loop_rank, pattern, samples[fit], values.C[fit][:, rows])
    # Numbers that are not exact are reported as such, and limit the accuracy in the expected way.
    accuracy = Accuracy()
    if not (rough and slack > REPORTED_GAP) and may_lose_digits(
        tree, loop_rank, loss, _contradiction(blocks), samples[fit]
    ):
        loop_rank, accuracy = measure_accuracy(tree, loop_rank, samples[fit], rough)
    return Analysis(
        tuple(row_names),
        _independent_rows(usual, blocks, trivial),
        tuple(sorted(trivial)),
        loop_rank,
        pattern,
        tree.nv,
        samples,
        max(0, rank - int(regular[0])),
        rough,
        slack,
        min((float(block.signal) for block in blocks if block.rank), default=0.0),
        tuple(blocks),
        natural,
        "" if accuracy.sufficient else _inexact(tree, row_names, loop_rank, pattern, accuracy),
    )


def _contradiction(blocks: Sequence[BlockRank]) -> float:
    """Return the largest singular value that counts as zero but exceeds rounding, relative to the smallest counted."""
    return max((x.rest / min(x.signal, 1.0) for x in blocks if x.rank and x.rest > x.floor), default=0.0)


def _inexact(tree: Tree, row_names: Sequence[str], rank: LoopRank, pattern: Array, accuracy: Accuracy) -> str:
    """Describe which coordinate and loops lose digits, how many, and what to do."""
    joint = next(x.joint.name for x in tree.links if accuracy.coordinate in x.v_index)
    using = [
        row_names[k].partition(":")[0]
        for k, uses in zip(rank.rows, pattern[:, accuracy.coordinate], strict=True)
        if uses
    ]
    loops = list(dict.fromkeys(using or [row_names[k].partition(":")[0] for k in rank.rows]))
    listed = ", ".join(f'"{x}"' for x in loops[:LISTED_LOOPS]) + (", ..." if len(loops) > LISTED_LOOPS else "")
    size = f"about {accuracy.error:.0e}" if np.isfinite(accuracy.error) else "more than their size"
    return (
        f"accelerations and the forces of loops are not exact: rounding changes them by {size} (relative to the "
        f'largest, expected at most {MAX_RELATIVE_ERROR:.0e}), most of all at joint "{joint}", which is in the loops '
        f"{listed}. Sizes or masses that differ by many orders of magnitude cost that many digits, especially if a "
        "small part carries a large one. Remove or fix small parts of large machines, or give redundant equations "
        "with all digits; otherwise rely only on the remaining digits"
    )


Decision = tuple[Array, list[BlockRank], Scales, float]  # configurations, ranks, natural sizes, and tolerance


def _decide_rank(tree: Tree, q: Array, rough: float) -> Decision:
    """Decide the rank by its clearest gap, and return it with the configurations that were examined."""
    first = _examine(tree, q, rough)
    samples, blocks, natural, _ = first
    if rough or all(x.rest <= max(EXACT_NOISE, 10.0 * x.floor) for x in blocks):
        return first
    # Some singular values are small and isolated. If they constrain nothing, loops hardly open without them.
    without = max(x.rest for x in blocks if x.rest > max(EXACT_NOISE, 10.0 * x.floor))
    cut = min(ROUGH_TOLERANCE, max(x.cut for x in blocks if x.rest >= without))
    other = _examine(tree, q, cut, walkers=DOUBTFUL_WALKERS)
    opened = relative_residual(tree, other[0], evaluate_constraints(tree, other[0]).value).max()
    moved_on = len(other[0]) > 1 + DOUBTFUL_WALKERS * STEPS // 2
    if total_rank(other[1]) == total_rank(blocks) and moved_on and opened < HOLDING_FACTOR * without:
        return other
    return samples, [x.strict(EXACT_NOISE) for x in blocks], natural, 0.0


def _examine(tree: Tree, q: Array, rough: float, walkers: int = WALKERS) -> Decision:
    samples = _random_walks(tree, q, rough, walkers)
    C = evaluate_constraints(tree, samples).C
    scales = natural_scales(tree, C)
    return samples, decide_ranks(scales.scaled(C)), scales, rough


def _first_assembly(tree: Tree, start: Array, row_names: list[str]) -> tuple[Array, float]:
    """Return the nearest configuration that closes the loops, and the tolerance that it needs."""
    room = tree.nv * max(1, len(row_names)) * len(SEARCH_DISTANCES)
    for tries in (1, max(1, min(MAX_TRIES, int(MAX_TRIED_NUMBERS / room)))):
        q, residual, assembled_well = search_assembly(tree, start, tries=tries)
        if assembled_well:
            return q, 0.0
        near, _, assembled_well = search_assembly(tree, start, rough=ROUGH_TOLERANCE, tries=tries)
        if assembled_well:
            # An assembly that was found with a tolerance may still be exact.
            again, left = assemble_batch(tree, near)
            return (again, 0.0) if is_assembled(tree, again, left) else (near, ROUGH_TOLERANCE)
    size = natural_scales(tree, evaluate_constraints(tree, q).C).rows
    raise ModelError(
        f"the loops cannot be closed: in the best of {1 + tries * len(SEARCH_DISTANCES)} attempts "
        f"{describe_residual(row_names, residual, size)}. "
        "Check points, axes and lengths of these loops; if they do fit, give a configuration near an assembly: "
        "assemble(q_guess) finds it and stores it in the mechanism."
    )


def reachable_configurations(tree: Tree, analysis: Analysis) -> Array:
    """Return many configurations that the mechanism can reach from the start of the analysis, some of them distant.

    Each random walk continues mostly in its previous direction.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    analysis
        Analysis of its loops.
    """
    return _random_walks(tree, analysis.samples[0], analysis.zero_threshold, FAR_WALKERS, FAR_STEPS, straight=2.0)


def _random_walks(
    tree: Tree, q: Array, rough: float, walkers: int = WALKERS, steps: int = STEPS, straight: float = 0.0
) -> Array:
    """Return q, and configurations that random walks reach from there.

    Each step is a random move that C allows, and a correction back onto the loops. straight: weight of the previous
    move in the next one.
    """
    rng = np.random.default_rng(0)
    configurations, current = [q[None]], np.repeat(q[None], walkers, axis=0)
    directions = np.zeros((walkers, tree.nv))
    for _ in range(steps):
        C = evaluate_constraints(tree, current).C
        scales = natural_scales(tree, C)
        # In natural sizes, the slide of a watch and that of a crane move by the same fraction of their range.
        move = _allowed_motion(scales.scaled(C), rng.normal(size=(walkers, tree.nv)) + straight * directions, rough)
        directions = move / np.maximum(np.sqrt(np.mean(move**2, axis=1, keepdims=True)), 1e-300)
        longest = np.maximum(np.abs(move).max(axis=1, initial=0.0, keepdims=True), 1e-300)
        move *= scales.columns * rng.uniform(0.2, 0.6, size=(walkers, 1)) / longest
        new, residual = assemble_batch(tree, displace(tree, current, move), rough=rough, aimed_at=EXACT_RESIDUAL)
        assembled_mask = is_assembled(tree, new, residual, rough)
        current = np.where(assembled_mask[:, None], new, current)
        directions = np.where(assembled_mask[:, None], directions, 0.0)
        configurations.append(current[assembled_mask])
    return np.concatenate(configurations)


def _allowed_motion(C: Array, v: Array, rough: float) -> Array:
    """Return the part of v with C v = 0."""
    P = pseudo_inverse(C, rough or MOTION_TOLERANCE)
    return np.asarray(v - np.einsum("...km,...m->...k", P, np.einsum("...mk,...k->...m", C, v)))


TiedRows = tuple[tuple[int, ...], int]  # places of rows that depend on each other, and their rank


def _redundancy_groups(
    C: Array, blocks: Sequence[BlockRank], trivial: set[int]
) -> tuple[list[int], tuple[RedundancyGroup, ...]]:
    """Return the nontrivial rows, and the groups of rows that depend on each other somewhere.

    A group without any independent equation is rounding, and would lock motions that should be free: its rows are added
    to the trivial ones.
    """
    tied = [x for block in blocks for x in _tied_rows(C, block, trivial)]
    trivial |= {k for members, rank in tied if not rank for k in members}
    rows = [k for k in range(C.shape[1]) if k not in trivial]
    place = {k: i for i, k in enumerate(rows)}
    tied = [x for block in blocks for x in _tied_rows(C, block, trivial)]
    groups = [RedundancyGroup(tuple(place[k] for k in members), rank) for members, rank in tied]
    return rows, tuple(sorted((g for g in groups if g.rank < len(g.places)), key=lambda g: g.places))


def _tied_rows(C: Array, block: BlockRank, trivial: set[int]) -> list[TiedRows]:
    """Return the rows of a block that depend on each other somewhere, and the rank of each such set."""
    rows = np.array([k for k in block.rows if k not in trivial], int)
    if block.rank >= len(rows):
        return []
    P = redundancy(C[:, rows[:, None], block.columns], block.rank)
    loose = np.clip(TIE_MARGIN * block.rest / min(block.signal, 1.0), TIE_TOLERANCE, MAX_TIE_TOLERANCE)
    groups = []
    for places in _connected_sets(np.abs(P).max(axis=0) > loose):
        followers = round(float(np.median([np.trace(x[np.ix_(places, places)]) for x in P])))
        groups.append((tuple(int(rows[k]) for k in places), len(places) - followers))
    return groups


def _row_sizes(tree: Tree, sizes: Array, rows: list[int], groups: Sequence[RedundancyGroup]) -> tuple[float, ...]:
    """Return the usual size of each row, the same for rows of one group, loop and unit."""
    scale = np.where(sizes[rows] > 0.0, sizes[rows], 1.0)
    for family, _ in equation_families(tree):
        alike = [k for g in groups for k in g.places if rows[k] in family]
        if alike:
            scale[alike] = scale[alike].mean()
    return tuple(float(x) for x in scale)


def _connected_sets(tied: Array) -> Iterator[tuple[int, ...]]:
    """Yield sets of places that are tied to each other, directly or through others.

    Places that are not even tied to themselves are left out.
    """
    places = np.flatnonzero(np.diag(tied))
    for rows, _ in independent_blocks(tied[np.ix_(places, places)].astype(float)):
        yield tuple(int(k) for k in places[rows])


def _independent_rows(C: Array, blocks: Sequence[BlockRank], trivial: set[int]) -> tuple[int, ...]:
    """Return independent rows, as many as the rank, which are regular in these configurations."""
    independent = []
    for block in blocks:
        rows = np.array([k for k in block.rows if k not in trivial], int)
        independent += [
            int(rows[k]) for k in _select_independent(C[:, rows[:, None], block.columns], min(block.rank, len(rows)))
        ]
    return tuple(sorted(independent))


def _select_independent(C: Array, rank: int) -> list[int]:
    """Select independent rows one by one: each time the row whose smallest independent part is largest.

    Ties go to the first.
    """
    norm = np.linalg.norm(C, axis=2, keepdims=True)
    remainder = C / np.where(norm > 0.0, norm, 1.0)
    selected: list[int] = []
    for _ in range(rank):
        new: Any = np.quantile(np.linalg.norm(remainder, axis=2), 0.25, axis=0)
        new[selected] = -1.0
        k = int(np.flatnonzero(new > new.max() * (1 - 1e-6))[0])
        selected.append(k)
        row = remainder[:, k]
        unit = row / np.maximum(np.linalg.norm(row, axis=1, keepdims=True), 1e-300)
        remainder = remainder - np.einsum("smk,sk->sm", remainder, unit)[..., None] * unit[:, None]
    return selected
