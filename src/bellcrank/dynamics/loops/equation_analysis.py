"""What the loops do to a mechanism: which equations are redundant, and what mobility is left.

The rank of C is decided once, by the gap in its singular values in many assembled configurations (rank_decision.py);
everything that follows uses that decision. Rows that are always a combination of others are named, and which of them
depend on each other (rank.py); the mobility is what the rank leaves, and beside it stands Gruebler's count, which knows
nothing of geometry.

Files have 1.5708 where a quarter of a turn is meant. Taken at their word, axes that are parallel but for the last digit
hold a linkage fast. So where small singular values stand apart from all others, the mechanism is tried without what
they hold: if its loops then stay closed to within that much wherever it moves, they count as zero, and how far the
loops stay open is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics.loops.accuracy import PROMISED, Accuracy, doubtful, measured
from bellcrank.dynamics.loops.assembly import (
    ALLOWED,
    EXACT,
    ROUGH,
    SPREAD,
    assembled,
    closes,
    missed,
    open_ends,
    searched,
)
from bellcrank.dynamics.loops.blocks import pseudo_inverse, redundancy
from bellcrank.dynamics.loops.conditioning import with_usual_pivots
from bellcrank.dynamics.loops.numbers import Array, closed, moved
from bellcrank.dynamics.loops.rank import Group, Rank
from bellcrank.dynamics.loops.rank_decision import CLEAR, BlockRank, decided, total
from bellcrank.dynamics.loops.rows import families, names
from bellcrank.dynamics.loops.scaling import Scales, scales
from bellcrank.errors import ModelError, warn
from bellcrank.model import Mechanism
from bellcrank.model.parts import EQUATIONS
from bellcrank.model.tree import Tree
from bellcrank.text import table

WALKERS, STEPS = 4, 3
DOUBTFUL_WALKERS = 6  # where it is not clear what holds
FAR_WALKERS, FAR_STEPS = 24, 16  # where it matters how far a mechanism gets
EXACT_NOISE = 3e-11  # where all numbers are exact, singular values that should be zero are smaller
NOTHING = 1e-10  # an equation whose row is smaller than this, against its natural size, is rounding alone
OPEN_SAID = 1e-8  # what loops stay open by, against their size, if it is more
SLACK_MARGIN = 10.0  # between configurations that were seen and others, of how far loops stay open
HOLDS = 100.0  # times what they may be open by, loops open where something was left out that holds them
# Where nothing closes at first: how many times as many configurations are tried, as far as so many numbers allow.
MOST_TRIES, MOST_NUMBERS = 20, 5e6
# Elements of the projection onto what is redundant that tie two rows; more where rounding, divided by the smallest
# singular value that counts, is more.
TIED, MOST_TIED, TIED_MARGIN = 1e-6, 0.1, 30.0
PATTERN = 1e-13  # elements of C, in natural sizes, that are not rounding


NO_SCALES = Scales(np.ones(0), np.ones(0))
LISTED_LOOPS = 4  # of those named in a warning


@dataclass(frozen=True, eq=False)
class Analysis:
    names: tuple[str, ...]  # of all equations
    kept: tuple[int, ...]  # as many as are independent, and are so in most configurations
    trivial: tuple[int, ...]  # those that hold whatever the mechanism does
    rank: Rank  # all but the trivial ones, and which of them depend on each other
    pattern: Array  # (rank.rows, nv): where C is not always zero
    nv: int
    samples: Array  # assembled configurations, the first of them where it started
    more: int = 0  # freedoms that the mechanism has there, beyond those that it has elsewhere: it starts singular
    rough: float = 0.0  # singular values below this count as zero: 0 where the numbers are exact
    slack: float = 0.0  # what the loops may stay open by, against their size, because their equations contradict
    hold: float = 0.0  # where nothing can move: the smallest singular value, which holds it
    blocks: tuple[BlockRank, ...] = ()  # the decision about the rank, for loops that share coordinates
    scales: Scales = NO_SCALES  # natural sizes of equations and coordinates
    inexact: str = ""  # what a person should know where accelerations lose digits (accuracy.py)
    told: bool = False  # it began where somebody said, so that the mechanism alone does not decide it

    @property
    def redundant(self) -> tuple[str, ...]:
        """Names of the equations that follow from the others."""
        out = set(self.kept) | set(self.trivial)
        return tuple(name for k, name in enumerate(self.names) if k not in out)

    @property
    def mobility(self) -> int:
        return self.nv - len(self.kept)

    @property
    def gruebler(self) -> int:
        """Freedoms of the tree less all equations: what counting alone says."""
        return self.nv - len(self.names)

    @property
    def gap(self) -> tuple[float, float]:
        """The smallest singular value of C that counts and the largest that does not, where they are closest.

        C is in natural sizes, and all of its singular values are about 1 or smaller. A value that does not count is
        not smaller than rounding makes it.
        """
        counting = [x for x in self.blocks if x.rank]
        if not counting:
            return 1.0, max((x.rest for x in self.blocks), default=0.0)
        worst = min(counting, key=lambda x: x.ratio)
        return worst.signal, worst.rest

    @property
    def gap_in_words(self) -> str:
        counts, rest = self.gap
        return f"singular values of C: {counts:.1e} and larger count, {rest:.1e} and smaller are zero"

    @property
    def cut(self) -> float:
        """Singular values of C below this are zero, wherever it is."""
        return min((x.cut for x in self.blocks if x.rank), default=0.0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of where it starts, and of the whole."""
        singular = f"it starts where it is singular, with {self.more} more: the motion from there is not determined"
        return (singular, *self.doubts) if self.more else self.doubts

    @property
    def doubts(self) -> tuple[str, ...]:
        """Whether the mechanism is what was meant."""
        found = []
        if self.rough and self.slack > OPEN_SAID:
            found.append(
                f"numbers are not exact: the loops stay open by up to {self.slack / SLACK_MARGIN:.1e} of their size as "
                f"it moves, because singular values of C up to {self._dropped:.1e} count as zero. Axes that are "
                "parallel, or lengths that fit, but for the last digits are taken as meant so; write them with all "
                "digits to have it closed"
            )
        found += self.untrusted
        if self.nv and not self.mobility:
            found.append(
                "it cannot move: the loops leave no freedom. If it should, look at what is nearly parallel, or nearly "
                f"fits (the weakest hold is {self.hold:.1e} of the strongest)"
            )
        return tuple(found)

    @property
    def untrusted(self) -> list[str]:
        """Where results may be wrong: no clear rank, or accelerations that lose digits."""
        return [*self.unclear, *([self.inexact] if self.inexact else [])]

    @property
    def unclear(self) -> list[str]:
        """Loops without a clear gap in their singular values."""
        return [self._unclear(x) for x in self.blocks if x.ratio < CLEAR]

    @property
    def _dropped(self) -> float:
        return max((x.rest for x in self.blocks), default=0.0)

    def _unclear(self, block: BlockRank) -> str:
        values = ", ".join(f"{x:.1e}" for x in block.around)
        return (
            f'it is not clear how many of the equations of loop "{self.names[block.rows[0]].partition(":")[0]}" and of '
            f"what moves with it are independent: {block.rank} are taken to be, but the singular values of C there are "
            f"..., {values}, with no gap between those that count and those that do not. Give lengths and axes with "
            "all digits if equations are meant to be redundant, or move what only nearly fits if they are not"
        )

    def __str__(self) -> str:
        state = dict.fromkeys(self.kept, "kept") | dict.fromkeys(self.trivial, "holds by itself")
        rows = [(name, state.get(k, "redundant: follows from the others")) for k, name in enumerate(self.names)]
        equations = f"{len(self.kept)} of {len(self.names)} equations"
        head = f"mobility {self.mobility} (Gruebler counts {self.gruebler}), {equations}"
        head += f"\n{self.gap_in_words}" if self.blocks else ""
        return "\n".join([head, *self.warnings, table(("equation", ""), rows)])


def analysis(mechanism: Mechanism, near: Array | None = None) -> Analysis:
    """What the loops do to this mechanism; worked out once, where it is closed near the zero configuration.

    near: a configuration to begin at, where nothing is found near zero that closes. Free numbers have their nominal
    values.
    """
    kept: dict[str, Analysis] = mechanism.__dict__
    if "_closure" in kept:
        return kept["_closure"]
    plain = mechanism.at() if mechanism.parameters else mechanism
    if near is None:
        found = kept.setdefault("_closure", analysed(plain.tree, plain.neutral()))
        return _warned(mechanism, found)
    try:
        return analysis(mechanism)
    except ModelError:
        kept["_closure"] = replace(analysed(plain.tree, near), told=True)
        return _warned(mechanism, kept["_closure"])


def _warned(mechanism: Mechanism, found: Analysis) -> Analysis:
    for doubt in found.untrusted:
        warn(f'"{mechanism.name}": {doubt}.')
    return found


def analysed(tree: Tree, start: Array) -> Analysis:
    """From a configuration that the mechanism may start from, or the nearest that closes the loops."""
    what = names(tree)
    samples, blocks, by, rough = _decided(tree, *_closed_from(tree, start, what))
    at = closed(tree, samples)
    C = by.applied(at.C)
    rank, size = total(blocks), np.abs(C).max(axis=(0, 2), initial=0.0)
    noise = np.zeros(len(what))
    for block in blocks:
        noise[block.rows] = block.rest
    trivial = {int(k) for k in np.flatnonzero(size < np.maximum(NOTHING, 3.0 * noise))}
    trivial |= {int(k) for block in blocks if not block.rank for k in block.rows}  # rounding alone would hold it
    regular = np.sum([(block.values > block.cut).sum(axis=1) for block in blocks] or [np.zeros(len(samples))], axis=0)
    usual = C[regular >= rank] if (regular >= rank).any() else C
    rows, groups = _groups(usual, blocks, trivial)
    loops = [k for k, loop in enumerate(tree.loops) for _ in range(EQUATIONS[loop.kind])]
    sizes = _row_sizes(tree, np.linalg.norm(at.C * by.columns, axis=2).mean(axis=0), rows, groups)
    found = Rank(tuple(rows), groups, sizes, tuple(loops[k] for k in rows), tuple(float(x) for x in by.columns))
    pattern = np.abs(C[:, rows]).max(axis=0, initial=0.0) > PATTERN
    fit = regular >= rank
    slack = SLACK_MARGIN * float(np.abs(at.value * by.rows).max(initial=0.0))
    found, loss = with_usual_pivots(tree, found, pattern, samples[fit], at.C[fit][:, rows])
    # Numbers that are not exact are reported as such, and limit the accuracy in a way that everybody expects.
    accuracy = Accuracy()
    if not (rough and slack > OPEN_SAID) and doubtful(tree, found, loss, _contradiction(blocks), samples[fit]):
        found, accuracy = measured(tree, found, samples[fit], rough)
    return Analysis(
        tuple(what),
        _kept(usual, blocks, trivial),
        tuple(sorted(trivial)),
        found,
        pattern,
        tree.nv,
        samples,
        max(0, rank - int(regular[0])),
        rough,
        slack,
        min((float(block.signal) for block in blocks if block.rank), default=0.0),
        tuple(blocks),
        by,
        "" if accuracy.sufficient else _inexact(tree, what, found, pattern, accuracy),
    )


def _contradiction(blocks: Sequence[BlockRank]) -> float:
    """The largest singular value that counts as zero and is more than rounding, against the smallest that counts."""
    return max((x.rest / min(x.signal, 1.0) for x in blocks if x.rank and x.rest > x.floor), default=0.0)


def _inexact(tree: Tree, what: Sequence[str], rank: Rank, pattern: Array, accuracy: Accuracy) -> str:
    """Which coordinate and loops lose digits, how many, and what to do."""
    joint = next(x.joint.name for x in tree.links if accuracy.coordinate in x.v_index)
    using = [
        what[k].partition(":")[0] for k, uses in zip(rank.rows, pattern[:, accuracy.coordinate], strict=True) if uses
    ]
    loops = list(dict.fromkeys(using or [what[k].partition(":")[0] for k in rank.rows]))
    listed = ", ".join(f'"{x}"' for x in loops[:LISTED_LOOPS]) + (", ..." if len(loops) > LISTED_LOOPS else "")
    size = f"about {accuracy.error:.0e}" if np.isfinite(accuracy.error) else "more than they are"
    return (
        f"accelerations and the forces of loops are not exact: rounding changes them by {size} (relative to the "
        f'largest, expected at most {PROMISED:.0e}), most of all at joint "{joint}", which is in the loops {listed}. '
        "Sizes or masses that differ by many orders of magnitude cost that many digits, above all where something "
        "small carries something large. Leave out small parts of large machines or hold them fast, or give redundant "
        "equations with all digits; else use only as many digits as that leaves"
    )


Decision = tuple[Array, list[BlockRank], Scales, float]  # configurations, ranks, natural sizes, and how roughly


def _decided(tree: Tree, q: Array, rough: float) -> Decision:
    """The rank by its clearest gap, and the configurations that it was seen in."""
    first = _looked_at(tree, q, rough)
    samples, blocks, by, _ = first
    if rough or all(x.rest <= max(EXACT_NOISE, 10.0 * x.floor) for x in blocks):
        return first
    # Some singular values are small and stand apart. If they hold nothing, loops hardly open where they are left out.
    without = max(x.rest for x in blocks if x.rest > max(EXACT_NOISE, 10.0 * x.floor))
    cut = min(ROUGH, max(x.cut for x in blocks if x.rest >= without))
    other = _looked_at(tree, q, cut, walkers=DOUBTFUL_WALKERS)
    opened = missed(tree, other[0], closed(tree, other[0]).value).max()
    moved_on = len(other[0]) > 1 + DOUBTFUL_WALKERS * STEPS // 2
    if total(other[1]) == total(blocks) and moved_on and opened < HOLDS * without:
        return other
    return samples, [x.strict(EXACT_NOISE) for x in blocks], by, 0.0


def _looked_at(tree: Tree, q: Array, rough: float, walkers: int = WALKERS) -> Decision:
    samples = _walked(tree, q, rough, walkers)
    C = closed(tree, samples).C
    by = scales(tree, C)
    return samples, decided(by.applied(C)), by, rough


def _closed_from(tree: Tree, start: Array, what: list[str]) -> tuple[Array, float]:
    """The nearest configuration that closes the loops, and how roughly."""
    room = tree.nv * max(1, len(what)) * len(SPREAD)
    for tries in (1, max(1, min(MOST_TRIES, int(MOST_NUMBERS / room)))):
        q, residual, good = searched(tree, start, tries=tries)
        if good:
            return q, 0.0
        near, _, good = searched(tree, start, rough=ROUGH, tries=tries)
        if good:
            # Found by another way, it may well be exact.
            again, left = assembled(tree, near)
            return (again, 0.0) if closes(tree, again, left) else (near, ROUGH)
    size = scales(tree, closed(tree, q).C).rows
    raise ModelError(
        f"the loops cannot be closed: in the best of {1 + tries * len(SPREAD)} attempts "
        f"{open_ends(what, residual, size)}. "
        "Look at points, axes and lengths of these loops; if they do fit, say near which configuration: "
        "assemble(q_guess) finds it, and it is remembered."
    )


def reached(tree: Tree, of: Analysis) -> Array:
    """Many configurations that the mechanism can reach from where the analysis began, far ones among them: each walks
    on in much the direction that it had.
    """
    return _walked(tree, of.samples[0], of.rough, FAR_WALKERS, FAR_STEPS, straight=2.0)


def _walked(
    tree: Tree, q: Array, rough: float, walkers: int = WALKERS, steps: int = STEPS, straight: float = 0.0
) -> Array:
    """q, and configurations that the mechanism can reach from there: random moves that C allows, and back onto the
    loops. straight: how much of the move before is in the next one.
    """
    rng = np.random.default_rng(0)
    found, now = [q[None]], np.repeat(q[None], walkers, axis=0)
    way = np.zeros((walkers, tree.nv))
    for _ in range(steps):
        C = closed(tree, now).C
        by = scales(tree, C)
        # in natural sizes: a slide of a watch and one of a crane move by as much of what they can
        move = _allowed(by.applied(C), rng.normal(size=(walkers, tree.nv)) + straight * way, rough)
        way = move / np.maximum(np.sqrt(np.mean(move**2, axis=1, keepdims=True)), 1e-300)
        longest = np.maximum(np.abs(move).max(axis=1, initial=0.0, keepdims=True), 1e-300)
        move *= by.columns * rng.uniform(0.2, 0.6, size=(walkers, 1)) / longest
        new, residual = assembled(tree, moved(tree, now, move), rough=rough, aimed_at=EXACT)
        good = closes(tree, new, residual, rough)
        now, way = np.where(good[:, None], new, now), np.where(good[:, None], way, 0.0)
        found.append(now[good])
    return np.concatenate(found)


def _allowed(C: Array, v: Array, rough: float) -> Array:
    """The part of v with C v = 0."""
    P = pseudo_inverse(C, rough or ALLOWED)
    return np.asarray(v - np.einsum("...km,...m->...k", P, np.einsum("...mk,...k->...m", C, v)))


Tied = tuple[tuple[int, ...], int]  # places of rows that depend on each other, and how many of them are independent


def _groups(C: Array, blocks: Sequence[BlockRank], trivial: set[int]) -> tuple[list[int], tuple[Group, ...]]:
    """The rows that say something, and which of them depend on each other somewhere.

    A group without any independent equation is rounding alone, and would hold what is meant to move: its rows are added
    to the trivial ones.
    """
    tied = [x for block in blocks for x in _tied(C, block, trivial)]
    trivial |= {k for members, rank in tied if not rank for k in members}
    rows = [k for k in range(C.shape[1]) if k not in trivial]
    place = {k: at for at, k in enumerate(rows)}
    tied = [x for block in blocks for x in _tied(C, block, trivial)]
    groups = [Group(tuple(place[k] for k in members), rank) for members, rank in tied]
    return rows, tuple(sorted((g for g in groups if g.rank < len(g.places)), key=lambda g: g.places))


def _tied(C: Array, block: BlockRank, trivial: set[int]) -> list[Tied]:
    """The rows of a block that depend on each other somewhere, and the rank of each such set."""
    rows = np.array([k for k in block.rows if k not in trivial], int)
    if block.rank >= len(rows):
        return []
    P = redundancy(C[:, rows[:, None], block.columns], block.rank)
    loose = np.clip(TIED_MARGIN * block.rest / min(block.signal, 1.0), TIED, MOST_TIED)
    found = []
    for places in _together(np.abs(P).max(axis=0) > loose):
        followers = round(float(np.median([np.trace(x[np.ix_(places, places)]) for x in P])))
        found.append((tuple(int(rows[k]) for k in places), len(places) - followers))
    return found


def _row_sizes(tree: Tree, sizes: Array, rows: list[int], groups: Sequence[Group]) -> tuple[float, ...]:
    """How large rows usually are, alike in a group where they are of one loop and of one unit."""
    scale = np.where(sizes[rows] > 0.0, sizes[rows], 1.0)
    for family, _ in families(tree):
        alike = [k for g in groups for k in g.places if rows[k] in family]
        if alike:
            scale[alike] = scale[alike].mean()
    return tuple(float(x) for x in scale)


def _together(tied: Array) -> Iterator[tuple[int, ...]]:
    """Places that are tied to each other, directly or through others; those tied to nothing, not even to themselves,
    are left out.
    """
    left = [k for k in range(len(tied)) if tied[k, k]]
    while left:
        mine = {left[0]}
        while (more := {int(j) for k in mine for j in np.flatnonzero(tied[k]) if j in left} | mine) != mine:
            mine = more
        left = [k for k in left if k not in mine]
        yield tuple(sorted(mine))


def _kept(C: Array, blocks: Sequence[BlockRank], trivial: set[int]) -> tuple[int, ...]:
    """As many rows as are independent, none of which is singular in these configurations."""
    found = []
    for block in blocks:
        rows = np.array([k for k in block.rows if k not in trivial], int)
        found += [int(rows[k]) for k in _independent(C[:, rows[:, None], block.columns], min(block.rank, len(rows)))]
    return tuple(sorted(found))


def _independent(C: Array, rank: int) -> list[int]:
    """Rows that are independent, one after the other: the next is the one of which most is new where least of it is.

    Ties go to the first.
    """
    norm = np.linalg.norm(C, axis=2, keepdims=True)
    rest = C / np.where(norm > 0.0, norm, 1.0)
    kept: list[int] = []
    for _ in range(rank):
        new: Any = np.quantile(np.linalg.norm(rest, axis=2), 0.25, axis=0)
        new[kept] = -1.0
        k = int(np.flatnonzero(new > new.max() * (1 - 1e-6))[0])
        kept.append(k)
        row = rest[:, k]
        unit = row / np.maximum(np.linalg.norm(row, axis=1, keepdims=True), 1e-300)
        rest = rest - np.einsum("smk,sk->sm", rest, unit)[..., None] * unit[:, None]
    return kept
