"""Sine and cosine of whole vectors, as LLVM IR that needs only fused multiply-add.

The method is Cody and Waite's (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980): subtract
the nearest multiple k of pi/2, evaluate a polynomial for the sine and one for the cosine of the remainder, then swap
and negate by the quadrant, k mod 4. Every constant here was derived for this module with mpmath at 300 bits, as
follows.

Rounding. Adding 2**52 + 2**16 (2**23 + 2**16 in single precision) to x * 2/pi leaves k + 2**16 in the low bits of the
sum's mantissa. The higher bits are those of 2**52 exactly when -2**16 <= k < 2**16, which covers |x| < 102942. So the
bitwise or of the differing bits shows, once per call and not once per vector, that some lane was out of range, infinite
or NaN. Those lanes, and only those, then get their values from the C library.

Reduction. pi/2 is split into three parts, truncated so that all are positive (which keeps sin(-0.0) at -0.0):
    double: 53 bits (to 2**-52), 53 bits (to 2**-106), 53 bits; the remainder is below 2**-159
    single: 24 bits (to 2**-23), 24 bits (to 2**-47), 24 bits; the remainder is below 2**-71
r1 = x - k * part 1 is exact: it is below 1 and, for k != 0, a multiple of 2**-53 (2**-24). The other two are subtracted
with one rounding each, relative to the difference. Of all x in range, the double nearest to a multiple of pi/2 is
2**-60.5 away from it and the nearest single 2**-27.8, while part 3 subtracts less than 2**-90 (2**-30), so no further
cancellation occurs. r is right to an ulp of its own, and to half an ulp unless it is tiny.

Polynomials. Weighted Remez fits on |r| <= pi/4 (plus 0.005 in single precision, where the rounded 2/pi can miss the
nearest k by that much), each coefficient rounded in turn and the rest fitted again:
    sin r = r - r**3 P(r**2), relative error 2**-57.9 with 6 coefficients (double), 2**-27.8 with 3 (single)
    cos r = 1 - r**2/2 + r**4 Q(r**2), absolute error 2**-64.2 with 6, 2**-33.1 with 3
All errors together stay below 1.6 ulp, mostly from the roundings of r and, in cosines, of r**2; the largest error seen
in ten million angles is 1.47. (Carrying the rounding error of r along would make it 0.9, and a mass matrix 3 % slower.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellcrank.emit.llvm.lanes import Writer


class Precision(NamedTuple):
    """Constants of a floating-point type; IR writes single precision constants, too, as the bits of the double."""

    scalar: str
    bits: int
    functions: tuple[str, str]
    two_over_pi: str
    shift: str  # 2**52 + 2**16 or 2**23 + 2**16
    unshifted: int  # the bits of 2**52 or 2**23 in this precision
    pi_over_2: tuple[str, str, str]
    sine: tuple[str, ...]  # P above, lowest order first
    cosine: tuple[str, ...]  # Q above


PRECISIONS = {
    "float64": Precision(
        scalar="double",
        bits=64,
        functions=("sin", "cos"),
        two_over_pi="0x3FE45F306DC9C883",
        shift="0x4330000000010000",
        unshifted=0x4330000000000000,
        pi_over_2=("0x3FF921FB54442D18", "0x3C91A62633145C06", "0x394C1CD129024E08"),
        sine=(
            "0x3FC5555555555548",
            "0xBF8111111110F730",
            "0x3F2A01A019BE9217",
            "0xBEC71DE35552B59E",
            "0x3E5AE5E4B83F3EFB",
            "0xBDE5D8B559CDAEAA",
        ),
        cosine=(
            "0x3FA555555555554C",
            "0xBF56C16C16C1521F",
            "0x3EFA01A019CBF629",
            "0xBE927E4F812B6680",
            "0x3E21EE9F1528A3C0",
            "0xBDA8FB130F6C3515",
        ),
    ),
    "float32": Precision(
        scalar="float",
        bits=32,
        functions=("sinf", "cosf"),
        two_over_pi="0x3FE45F3060000000",
        shift="0x4160200000000000",
        unshifted=0x4B000000,
        pi_over_2=("0x3FF921FB40000000", "0x3E74442D00000000", "0x3CF8469880000000"),
        sine=("0x3FC5555440000000", "0xBF81106C60000000", "0x3F2991C260000000"),
        cosine=("0x3FA55554A0000000", "0xBF56C0C1A0000000", "0x3EF99E0EE0000000"),
    ),
}


def emit_sincos(w: Writer, angle: str) -> tuple[str, str, str]:
    """Emit sine and cosine of the vector `angle` by `w`; return both as integers, and the bits for `out_of_range`."""
    precision = PRECISIONS[w.dtype]
    vector, integers, bits = w.type, f"<{w.lanes} x i{precision.bits}>", precision.bits

    def number(constant: str) -> str:
        return w.literal(precision.scalar, constant)

    def integer(constant: int) -> str:
        return w.literal(f"i{bits}", str(constant))

    def fma(a: str, b: str, c: str) -> str:
        return w.let(f"call {vector} @llvm.fma.{w.mangled}({vector} {a}, {vector} {b}, {vector} {c})")

    def polynomial(coefficients: tuple[str, ...]) -> str:
        """Evaluate by Horner's rule in z, the shortest code; other vectors hide the latency of the chain."""
        value = number(coefficients[-1])
        for constant in coefficients[-2::-1]:
            value = fma(value, z, number(constant))
        return value

    shifted = fma(angle, number(precision.two_over_pi), number(precision.shift))
    k = w.let(f"fsub {vector} {shifted}, {number(precision.shift)}")
    quadrant = w.let(f"bitcast {vector} {shifted} to {integers}")
    stray = w.let(f"xor {integers} {quadrant}, {integer(precision.unshifted)}")
    negated_k, r = w.let(f"fneg {vector} {k}"), angle
    for part in precision.pi_over_2:
        r = fma(negated_k, number(part), r)
    z = w.let(f"fmul {vector} {r}, {r}")

    # sin = r - r^3 P, with the sign of r even if r is zero
    cube = w.let(f"fmul {vector} {r}, {z}")
    raw_sine = fma(w.let(f"fneg {vector} {cube}"), polynomial(precision.sine), r)
    s = w.let(f"call {vector} @llvm.copysign.{w.mangled}({vector} {raw_sine}, {vector} {r})")
    # cos = 1 + z (z Q - 1/2)
    c = fma(fma(polynomial(precision.cosine), z, number("-0.5")), z, number("1.0"))

    # odd quadrants swap; bit 1 is the sign of sin, and adding 1 to the quadrant makes it that of cos
    bit = w.let(f"and {integers} {quadrant}, {integer(1)}")
    odd = w.let(f"icmp ne {integers} {bit}, zeroinitializer")
    top = w.let(f"shl {integers} {quadrant}, splat (i{bits} {bits - 2})")
    results = []
    for yes, no in ((c, s), (s, c)):
        size = w.let(f"select {w.mask} {odd}, {vector} {yes}, {vector} {no}")
        sign = w.let(f"and {integers} {top}, {integer(1 << (bits - 1))}")
        results.append(w.let(f"xor {integers} {w.let(f'bitcast {vector} {size} to {integers}')}, {sign}"))
        top = w.let(f"add {integers} {top}, {integer(1 << (bits - 2))}")
    return results[0], results[1], stray


def out_of_range(w: Writer, strays: str) -> str:
    """Emit by `w` a test that is true if any lane was out of range; `strays`: the or of the bits from `emit_sincos`."""
    bits = PRECISIONS[w.dtype].bits
    integers = f"<{w.lanes} x i{bits}>"
    high = w.let(f"and {integers} {strays}, splat (i{bits} {-(1 << 17)})")
    reduced_bits = w.let(f"call i{bits} @llvm.vector.reduce.or.v{w.lanes}i{bits}({integers} {high})")
    return w.let(f"icmp ne i{bits} {reduced_bits}, 0")


def definition(lanes: int, dtype: str) -> str:
    """Return IR that defines @sincos(ptr x, ptr s, ptr c, i64 count) for `count` vectors.

    The arrays are contiguous, aligned to the vector, and do not overlap. The text declares the C library's sin and cos
    (sinf and cosf), so the rest of the module must not. Intrinsics are declared implicitly by the parser.

    Parameters
    ----------
    lanes
        Lanes of a vector.
    dtype
        Floating-point type.
    """
    precision = PRECISIONS[dtype]
    scalar, bits = precision.scalar, precision.bits
    sin, cos = precision.functions
    # A single scalar is computed as two lanes, because selects between scalars would compile to branches.
    width = max(lanes, 2)
    memory, vector, integers = f"<{lanes} x {scalar}>", f"<{width} x {scalar}>", f"<{width} x i{bits}>"
    align = lanes * bits // 8
    w = Writer(width, dtype)
    sine, cosine, stray = emit_sincos(w, "%angle")
    body, w.lines = w.lines, []
    is_far, check = out_of_range(w, "%strays.next"), w.lines

    def text(lines: Sequence[str]) -> str:
        return "".join(f"  {line}\n" for line in lines)

    def store(value: str, pointer: str) -> str:
        if lanes == width:
            return f"  store {integers} {value}, ptr {pointer}, align {align}"
        return f"""  {value}.first = extractelement {integers} {value}, i64 0
  store i{bits} {value}.first, ptr {pointer}, align {align}"""

    if lanes == width:
        load = f"  %angle = load {vector}, ptr %x.at, align {align}"
    else:
        load = f"""  %angle.first = load {scalar}, ptr %x.at, align {align}
  %angle = insertelement {vector} zeroinitializer, {scalar} %angle.first, i64 0"""
    return f"""
declare {scalar} @{sin}({scalar})
declare {scalar} @{cos}({scalar})

define internal void @sincos(ptr noalias %x, ptr noalias %s, ptr noalias %c, i64 %count) nounwind {{
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %strays = phi {integers} [ zeroinitializer, %entry ], [ %strays.next, %loop ]
  %x.at = getelementptr {memory}, ptr %x, i64 %i
  %s.at = getelementptr {memory}, ptr %s, i64 %i
  %c.at = getelementptr {memory}, ptr %c, i64 %i
{load}
{text(body)}  %strays.next = or {integers} %strays, {stray}
{store(sine, "%s.at")}
{store(cosine, "%c.at")}
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %count
  br i1 %more, label %loop, label %check

check:
{text(check)}  br i1 {is_far}, label %redo, label %done

redo:
  %scalars = mul i64 %count, {lanes}
  tail call void @sincos.far(ptr %x, ptr %s, ptr %c, i64 %scalars)
  br label %done

done:
  ret void
}}

; A function of its own, so that the calls do not make @sincos save registers. It asks of each lane what @sincos asked
; of all, so that no lane's result depends on its neighbours.
define internal void @sincos.far(ptr noalias %x, ptr noalias %s, ptr noalias %c, i64 %count) cold noinline nounwind {{
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %x.at = getelementptr {scalar}, ptr %x, i64 %i
  %angle = load {scalar}, ptr %x.at
  %shifted = call {scalar} @llvm.fma.f{bits}(\
{scalar} %angle, {scalar} {precision.two_over_pi}, {scalar} {precision.shift})
  %quadrant = bitcast {scalar} %shifted to i{bits}
  %stray = xor i{bits} %quadrant, {precision.unshifted}
  %far = icmp uge i{bits} %stray, {1 << 17}
  br i1 %far, label %redo, label %next

redo:
  %sine = call {scalar} @{sin}({scalar} %angle)
  %cosine = call {scalar} @{cos}({scalar} %angle)
  %s.at = getelementptr {scalar}, ptr %s, i64 %i
  %c.at = getelementptr {scalar}, ptr %c, i64 %i
  store {scalar} %sine, ptr %s.at
  store {scalar} %cosine, ptr %c.at
  br label %next

next:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %count
  br i1 %more, label %loop, label %done

done:
  ret void
}}
"""
