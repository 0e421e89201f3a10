"""Sines and cosines in C, four angles at a time.

A C library computes one angle per call, and such calls take half of a step. The angles are passed one by one, because
a vector load from elements that were just written stalls.

The method and the polynomials are those of emit/llvm/sincos.py. C guarantees no fused multiply-add, so pi/2 is split
into parts so short that k times one of them is exact: 33 bits of 53, where k has 17 (13 of 24 in single precision,
where k has 11). The last part is rounded, by less than 2**-102 (2**-39). All other errors stay below 1.6 ulp, as there.
Quarter turns are a rotation by numbers that are 0, 1 or -1: compilers vectorise that, but turn a selection into
branches. Where a processor rounds down without a call, quadrants are counted in floating point: gcc halves vectors that
mix with integers. Angles that are too large, infinite ones and NaN get their values from libm, in a function that is
not inlined, because otherwise registers would be saved around libm calls for all angles.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from bellcrank.emit.llvm.scheduling import ancestors, trig_groups
from bellcrank.emit.llvm.sincos import PRECISIONS
from bellcrank.graph import Node

GROUP_SIZE = 4
STACK_NUMBERS, STACK_BYTES = 24, 192  # stack bound of the two functions: numbers, and additional bytes
FOUR_ANGLE_LOOP = "no loops except over four angles"


class ArgumentReduction(NamedTuple):
    """Parameters of the argument reduction."""

    quarters: int  # maximum number of quarter turns
    bits: int  # bits of a part of pi/2
    leading: int  # fractional bits at the end of the first part


ARGUMENT_REDUCTIONS = {"float64": ArgumentReduction(1 << 16, 33, 32), "float32": ArgumentReduction(1 << 11, 13, 12)}

TEMPLATE = """/* Sines and cosines of four angles, which may be large, infinite or NaN. */
#if defined(__GNUC__)
__attribute__((noinline, cold))
#endif
static void {far}({real} a, {real} b, {real} c, {real} d, {real} *restrict sine, {real} *restrict cosine)
{{
    const {real} angle[4] = {{a, b, c, d}};
    int i;
    for (i = 0; i < 4; ++i) {{
        sine[i] = sin{f}(angle[i]);
        cosine[i] = cos{f}(angle[i]);
    }}
}}

/* Sines and cosines of four angles. */
static void {name}({real} a, {real} b, {real} c, {real} d, {real} *restrict sine, {real} *restrict cosine)
{{
    if (fabs{f}(a) + fabs{f}(b) + fabs{f}(c) + fabs{f}(d) < {limit}) {{
        const {real} angle[4] = {{a, b, c, d}};
        int i;
        for (i = 0; i < 4; ++i) {{
            const {real} x = angle[i];
#if defined(__SSE4_1__) || defined(__AVX__) || defined(__aarch64__)
            const {real} n = floor{f}(x * {two_over_pi} + {half});
            const {real} m = n - {four} * floor{f}(n * {quarter});
#else
            const int k = (int)(x * {two_over_pi} + {shift}) - {most};
            const {real} n = ({real})k;
            const {real} m = ({real})(k & 3);
#endif
            const {real} r = ((x - n * {first}) - n * {second}) - n * {third};
            const {real} z = r * r;
            const {real} zz = z * z;
            const {real} p = {sine};
            const {real} q = {cosine};
            const {real} s = r - r * z * p;
            const {real} t = ({one} - z * {half}) + zz * q;
            const {real} u = fabs{f}(m - {two}) - {one};
            const {real} v = {one} - fabs{f}(m - {one});
            sine[i] = s * u + t * v;
            cosine[i] = t * u - s * v;
        }}
    }} else {{
        {far}(a, b, c, d, sine, cosine);
    }}
}}
"""


def sincos_functions(name: str, far: str, dtype: str) -> str:
    """Return the C functions `name` for normal and `far` for large angles, in the type `dtype`."""
    form, (most, _, _) = PRECISIONS[dtype], ARGUMENT_REDUCTIONS[dtype]
    first, second, third = (literal(x, dtype) for x in half_pi_parts(dtype))
    return TEMPLATE.format(
        name=name, far=far, real=form.scalar, f=suffix(dtype), most=most, shift=literal(most + 0.5, dtype),
        limit=literal(float(int(1.57 * most)), dtype), two_over_pi=literal(double_from_bits(form.two_over_pi), dtype),
        first=first, second=second, third=third, one=literal(1.0, dtype), two=literal(2.0, dtype),
        four=literal(4.0, dtype), half=literal(0.5, dtype), quarter=literal(0.25, dtype),
        sine=polynomial(form.sine, dtype), cosine=polynomial(form.cosine, dtype),
    )  # fmt: skip


def sincos_statements(name: str, f: str, w: str, count: int, first_indices: tuple[int, int, int], i: str) -> list[str]:
    """Return statements for an array of angles; those left over after groups of four use libm.

    Parameters
    ----------
    name
        Function for four angles.
    f
        Suffix of libm's functions.
    w
        Array with angles, sines and cosines.
    count
        Number of angles.
    first_indices
        First indices of angles, sines and cosines.
    i
        Loop variable.
    """
    fours, (angle, sine, cosine) = count - count % GROUP_SIZE, first_indices
    given = ", ".join(f"{w}[{angle + j} + {i}]" for j in range(GROUP_SIZE))
    call = f"    {name}({given}, {w} + {sine} + {i}, {w} + {cosine} + {i});"
    lines = [f"for (int {i} = 0; {i} < {fours}; {i} += {GROUP_SIZE}) {{", call, "}"] if fours else []
    for k in range(fours, count):
        lines += [f"{w}[{start + k}] = {op}{f}({w}[{angle + k}]);" for op, start in (("sin", sine), ("cos", cosine))]
    return lines


def half_pi_parts(dtype: str) -> tuple[float, float, float]:
    """Return pi/2 in three parts for `dtype`: two that leave room for k, and the rest."""
    _, bits, leading = ARGUMENT_REDUCTIONS[dtype]
    left, leading_parts = sum(Fraction(double_from_bits(x)) for x in PRECISIONS["float64"].pi_over_2), list[float]()
    for end in (leading, leading + bits):
        part = Fraction(int(left * 2**end), 2**end)
        left -= part
        leading_parts.append(float(part))
    return leading_parts[0], leading_parts[1], float(left)


def polynomial(coefficients: Sequence[str], dtype: str) -> str:
    """Return the polynomial with `coefficients`, in z and zz = z * z, as an expression in the type `dtype`.

    Pairs are evaluated first, which shortens the dependency chain compared with Horner's rule.
    """
    numbers = [literal(double_from_bits(x), dtype) for x in coefficients]
    *pairs, text = [f"({a} + z * {b})" for a, b in zip(numbers[::2], numbers[1::2], strict=False)]
    if len(numbers) % 2:
        pairs, text = [*pairs, text], numbers[-1]
    for pair in reversed(pairs):
        text = f"({pair} + zz * {text})"
    return text[1:-1]


def double_from_bits(bits: str) -> float:
    """Return the number with the `bits` of a double; LLVM writes single precision like that, too."""
    return float(struct.unpack(">d", bytes.fromhex(bits.removeprefix("0x")))[0])


def suffix(dtype: str) -> str:
    """Return the suffix of constants and functions for `dtype`."""
    return "f" if dtype == "float32" else ""


def literal(x: float, dtype: str) -> str:
    """Return the literal of `x` in the type `dtype`."""
    return f"{np.dtype(dtype).type(x)!s}{suffix(dtype)}"


def group_angles(nodes: Sequence[Node]) -> tuple[list[Node], list[list[Node]]]:
    """Return `nodes` in an order in which sines and cosines computed together are adjacent, and these groups.

    A single angle forms no group.
    """
    groups = [g for g in trig_groups(nodes) if len({n.args[0].serial for n in g}) > 1]
    done, ordered = set[int](), list[Node]()
    for group in groups:
        needed = ancestors([n.args[0] for n in group])
        needed |= {n.serial for n in nodes if n.op == "result" and n.args[0].serial in needed}  # with their call
        early = [n for n in nodes if n.serial in needed and n.serial not in done]
        ordered += [*early, *group]
        done |= {n.serial for n in (*early, *group)}
    return [*ordered, *(n for n in nodes if n.serial not in done)], groups
