"""LLVM IR of a GPU thread: its constants, its arithmetic, and the translation to PTX.

An instruction can have a location in constant memory as an operand. A double written as a literal takes two
instructions that move its halves into registers each time, unless its lower half is zero. (Where registers are scarce,
the assembler loads such operands early and spills other values for them: then literals are used after all.)

Arithmetic is the table of emit/llvm/llvm_printer.py, and what has no GPU instruction. Double-precision division uses an
approximate reciprocal (20 bits), two Newton steps and one correction of the quotient: the last bit may be wrong. Where
that yields NaN, because the divisor is zero, infinite or tiny, the plain approximation gives the right zero or
infinity. Single precision has an instruction with an error of at most two units in the last place.

Sine and cosine are those of emit/llvm/sincos.py except for the rounding to a quadrant: adding 1.5 * 2**52 leaves k mod
4 in the lowest bits for any |k| < 2**51. The first part of pi/2 is still subtracted exactly, so the angle may be large:
up to 1e12 rad in double precision, up to 1e5 rad in single precision. Beyond that, results are meaningless.

The other functions are rare in mechanics; they are evaluated by short series, accurate to a few units in the last
place.

PTX comes from the NVPTX backend inside llvmlite; CUDA is not needed for this.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from bellcrank.emit.llvm.host import llvm, other_machine, verified_module
from bellcrank.emit.llvm.lanes import Writer
from bellcrank.emit.llvm.llvm_printer import IR_TEMPLATES
from bellcrank.emit.llvm.sincos import PRECISIONS

TRIPLE = "nvptx64-nvidia-cuda"
OLDEST_ARCHITECTURE = "sm_75"  # the oldest GPU that current CUDA supports; the driver translates for newer ones
ROUNDING_SHIFT = {"float64": 1.5 * 2.0**52, "float32": 1.5 * 2.0**23}
MANTISSA_BITS = {"float64": 52, "float32": 23}
# ln 2 as a sum of two parts; products of the first part with an exponent are exact
LN2 = {"float64": (0.6931471803691238, 1.9082149292705877e-10), "float32": (0.693145751953125, 1.428606765330187e-06)}
SERIES_TERMS = {"float64": {"exp": 13, "log": 11, "atan": 22}, "float32": {"exp": 7, "log": 4, "atan": 9}}


class ThreadWriter(Writer):
    """Writer for one thread, which collects constants."""

    def __init__(self, dtype: str, scarce: bool = False) -> None:
        super().__init__(1, dtype)
        self.literals_only = scarce or dtype == "float32"
        self.constant_indices: dict[str, int] = {}  # bits -> index in constant memory

    def constant(self, x: float) -> str:
        """Return the operand for the constant `x`."""
        return self.constant_bits(self._bits(x))

    def constant_bits(self, bits: str) -> str:
        """Return the operand for a constant given by its `bits`, as LLVM writes them."""
        if self.literals_only or bits.endswith("00000000"):
            return bits
        place = self.constant_indices.setdefault(bits, len(self.constant_indices)) * self.bytes
        return self.let(
            f"load double, ptr addrspace(4) getelementptr (i8, ptr addrspace(4) @numbers, i64 {place})", "c"
        )

    def definition(self) -> str:
        """Return the definition of the constant memory.

        It is "externally_initialized", so that LLVM does not fold the constants.
        """
        if not self.constant_indices:
            return ""
        values = ", ".join(f"double {bits}" for bits in self.constant_indices)
        array_type = f"[{len(self.constant_indices)} x double]"
        return f"@numbers = addrspace(4) externally_initialized constant {array_type} [{values}]\n"


def ptx(text: str, promote: bool = False) -> str:
    """Return the PTX of the LLVM IR `text`; with `promote`, variables (alloca) become registers."""
    machine = other_machine(TRIPLE, cpu=OLDEST_ARCHITECTURE, features="+ptx70")
    module = verified_module(f'target triple = "{TRIPLE}"\n{text}')
    if promote:
        passes = llvm().create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.run(module, llvm().create_pass_builder(machine, llvm().create_pipeline_tuning_options()))
    return str(machine.emit_assembly(module))


def disable_unrolling(text: str) -> str:
    """Return the PTX `text` with `nounroll` pragmas on its loops.

    The assembler would unroll them without gain, since it cannot prove that one iteration does not write what the next
    one reads, and a thread would use half as many registers again.
    """
    lines = text.split("\n")
    label_lines = {line.split(":")[0]: k for k, line in enumerate(lines) if line.startswith("$L__BB")}
    jumps = ((k, re.search(r"bra(?:\.uni)?\s+(\$L__BB\w+);", line)) for k, line in enumerate(lines))
    loop_labels = {match[1] for k, match in jumps if match is not None and label_lines[match[1]] < k}
    return "\n".join(f'{x}\n\t.pragma "nounroll";' if x.split(":")[0] in loop_labels else x for x in lines)


class Arithmetic:
    """Emitter of arithmetic operations and elementary functions for one thread."""

    def __init__(self, w: Writer) -> None:
        self.w, self.t, self.bits = w, w.type, 8 * w.bytes

    def constant(self, x: float) -> str:
        """Return the operand for the constant `x`."""
        return self.w.constant(x)

    def constant_bits(self, bits: str) -> str:
        """Return the operand for a constant given by its `bits`, from constant memory if the writer has one."""
        return self.w.constant_bits(bits) if isinstance(self.w, ThreadWriter) else bits

    def op(self, name: str, *args: str) -> str:
        """Emit the operation `name` on the operands `args` and return its value."""
        special = getattr(self, f"_{name}", None)
        if special is not None:
            return str(special(*args))
        return self.w.let(IR_TEMPLATES[name].format(*args, t=self.t, m=self.w.mangled, b="i1"), "v")

    def where(self, condition: str, yes: str, no: str) -> str:
        """Emit a select: the value `yes` if `condition` holds, otherwise `no`."""
        return self.op("where", condition, yes, no)

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """Emit a polynomial in `x` by Horner's rule; `coefficients` are ordered from the lowest degree."""
        value = self.constant(coefficients[-1])
        for c in coefficients[-2::-1]:
            value = self.w.fma(value, x, self.constant(c))
        return value

    # -- division

    def _div(self, a: str, b: str) -> str:
        if self.w.dtype == "float32":
            return self.w.let(f"call float @llvm.nvvm.div.full(float {a}, float {b})", "v")
        less = self.op("neg", b)
        one = self.constant(1.0)
        first = self.w.let(f"call double @llvm.nvvm.rcp.approx.ftz.d(double {b})", "v")
        r = first
        for _ in range(2):
            r = self.w.fma(r, self.w.fma(less, r, one), r)
        q = self.op("mul", a, r)
        q = self.w.fma(r, self.w.fma(less, q, a), q)
        fails = self.w.let(f"fcmp uno double {q}, {q}")
        return self.where(fails, self.op("mul", a, first), q)

    # -- sine and cosine

    def sincos(self, x: str) -> tuple[str, str]:
        """Emit the sine and cosine of the angle `x` (rad) and return both values."""
        w, form, integer_type = self.w, PRECISIONS[self.w.dtype], f"i{self.bits}"
        shift = self.constant(ROUNDING_SHIFT[w.dtype])
        shifted = self.w.fma(x, self.constant_bits(form.two_over_pi), shift)
        less, r = self.op("neg", self.op("sub", shifted, shift)), x
        for part in form.pi_over_2:
            r = self.w.fma(less, self.constant_bits(part), r)
        z = self.op("mul", r, r)

        def horner(coefficients: Sequence[str]) -> str:
            value = self.constant_bits(coefficients[-1])
            for c in coefficients[-2::-1]:
                value = self.w.fma(value, z, self.constant_bits(c))
            return value

        s = self.w.fma(self.op("neg", self.op("mul", r, z)), horner(form.sine), r)
        c = self.w.fma(self.w.fma(horner(form.cosine), z, self.constant(-0.5)), z, self.constant(1.0))
        low = w.let(f"bitcast {self.t} {shifted} to {integer_type}")
        quadrant = w.let(f"trunc i64 {low} to i32") if self.bits == 64 else low
        odd = w.let(f"icmp ne i32 {w.let(f'and i32 {quadrant}, 1')}, 0")
        swapped = self.where(odd, c, s), self.where(odd, s, c)
        results = []
        for value, turned in zip(swapped, (quadrant, w.let(f"add i32 {quadrant}, 1")), strict=True):
            negative = w.let(f"icmp ne i32 {w.let(f'and i32 {turned}, 2')}, 0")
            results.append(self.where(negative, self.op("neg", value), value))
        return results[0], results[1]

    # -- rare functions

    def _tan(self, x: str) -> str:
        s, c = self.sincos(x)
        return self._div(s, c)

    def _exp(self, x: str) -> str:
        """Emit 2**k e**r with |r| <= ln(2)/2.

        The power is applied in two halves, so that neither overflows before the result does.
        """
        w, dtype, integer_type = self.w, self.w.dtype, f"i{self.bits}"
        high, low = LN2[dtype]
        limit = 750.0 if dtype == "float64" else 105.0  # beyond this the result is 0 or infinite
        clipped = self.op("minimum", self.op("maximum", x, self.constant(-limit)), self.constant(limit))
        shift = self.constant(ROUNDING_SHIFT[dtype])
        k = self.op("sub", self.w.fma(clipped, self.constant(1.0 / math.log(2.0)), shift), shift)
        less = self.op("neg", k)
        r = self.w.fma(less, self.constant(low), self.w.fma(less, self.constant(high), clipped))
        value = self.polynomial(r, [1.0 / math.factorial(n) for n in range(SERIES_TERMS[dtype]["exp"] + 1)])
        n = w.let(f"fptosi {self.t} {k} to {integer_type}")
        half = w.let(f"ashr {integer_type} {n}, 1")
        for part in (half, w.let(f"sub {integer_type} {n}, {half}")):
            value = self.op("mul", value, self._power_of_two(part))
        return value

    def _power_of_two(self, n: str) -> str:
        w, integer_type = self.w, f"i{self.bits}"
        bias = 1023 if self.bits == 64 else 127
        biased = w.let(f"shl {integer_type} {w.let(f'add {integer_type} {n}, {bias}')}, {MANTISSA_BITS[w.dtype]}")
        return w.let(f"bitcast {integer_type} {biased} to {self.t}")

    def _log(self, x: str) -> str:
        """Emit k ln(2) + 2 artanh((m - 1)/(m + 1)) with x = 2**k m and m within a factor of sqrt(2) of 1."""
        w, dtype, integer_type = self.w, self.w.dtype, f"i{self.bits}"
        bias, mantissa = (1023, 52) if self.bits == 64 else (127, 23)
        tiny = w.let(f"fcmp olt {self.t} {x}, {self.constant(2.0 ** (1 - bias))}")
        scaled = self.where(tiny, self.op("mul", x, self.constant(2.0 ** (mantissa + 2))), x)
        i = w.let(f"bitcast {self.t} {scaled} to {integer_type}")
        # subtract the bits of sqrt(1/2), so that the exponent changes where m would exceed sqrt(2)
        root = 0x3FE6A09E667F3BCD if self.bits == 64 else 0x3F3504F3
        k = w.let(f"ashr {integer_type} {w.let(f'sub {integer_type} {i}, {root}')}, {mantissa}")
        m = w.let(
            f"bitcast {integer_type} "
            f"{w.let(f'sub {integer_type} {i}, ' + w.let(f'shl {integer_type} {k}, {mantissa}'))} to {self.t}"
        )
        exponent = w.let(f"sitofp {integer_type} {k} to {self.t}")
        less = self.where(tiny, self.constant(mantissa + 2.0), self.constant(0.0))
        exponent = self.op("sub", exponent, less)
        one = self.constant(1.0)
        s = self._div(self.op("sub", m, one), self.op("add", m, one))
        z = self.op("mul", s, s)
        series = self.polynomial(z, [2.0 / (2 * n + 1) for n in range(SERIES_TERMS[dtype]["log"] + 1)])
        high, low = LN2[dtype]
        value = self.w.fma(
            exponent, self.constant(high), self.w.fma(exponent, self.constant(low), self.op("mul", s, series))
        )
        infinite = self.constant(math.inf)
        value = self.where(w.let(f"fcmp oeq {self.t} {x}, {infinite}"), infinite, value)
        value = self.where(w.let(f"fcmp oeq {self.t} {x}, {self.constant(0.0)}"), self.constant(-math.inf), value)
        bad = w.let(f"fcmp ult {self.t} {x}, {self.constant(0.0)}")
        return self.where(bad, self.w._bits(math.nan), value)

    def _tanh(self, x: str) -> str:
        """Emit 1 - 2/(e**2a + 1) with a = |x|; near zero a quotient of expm1 series, which avoids cancellation."""
        w = self.w
        a = self.op("abs", x)
        large = self._exp(self.op("add", a, a))
        far = self.op(
            "sub", self.constant(1.0), self._div(self.constant(2.0), self.op("add", large, self.constant(1.0)))
        )
        # tanh a = E / (E + 2), E = expm1(2a) by its series for 2a < 1/2
        b = self.op("add", a, a)
        count = 15 if self.bits == 64 else 8
        E = self.op("mul", b, self.polynomial(b, [1.0 / math.factorial(n + 1) for n in range(count)]))
        near = self._div(E, self.op("add", E, self.constant(2.0)))
        size = self.where(w.let(f"fcmp olt {self.t} {a}, {self.constant(0.25)}"), near, far)
        return w.let(f"call {self.t} @llvm.copysign.{w.mangled}({self.t} {size}, {self.t} {x})", "v")

    def _atan2(self, y: str, x: str) -> str:
        """Emit arctan of the smaller over the larger argument, reduced about pi/8, then mapped to its octant."""
        w, dtype = self.w, self.w.dtype
        ay, ax = self.op("abs", y), self.op("abs", x)
        steep = w.let(f"fcmp ogt {self.t} {ay}, {ax}")
        small, large = self.where(steep, ax, ay), self.where(steep, ay, ax)
        wide = w.let(f"fcmp ogt {self.t} {small}, {self.op('mul', large, self.constant(math.tan(math.pi / 8)))}")
        both = w.let(f"fcmp oeq {self.t} {small}, {self.constant(math.inf)}")
        wide = w.let(f"or i1 {wide}, {both}")
        top = self.where(wide, self.op("sub", small, large), small)
        bottom = self.where(wide, self.op("add", small, large), large)
        zero = w.let(f"fcmp oeq {self.t} {large}, {self.constant(0.0)}")
        t = self._div(top, self.where(zero, self.constant(1.0), bottom))
        t = self.where(both, self.constant(0.0), t)
        z = self.op("mul", t, t)
        series = self.polynomial(z, [(-1.0) ** n / (2 * n + 1) for n in range(SERIES_TERMS[dtype]["atan"] + 1)])
        angle = self.op("mul", t, series)
        angle = self.where(wide, self.op("add", angle, self.constant(math.pi / 4)), angle)
        angle = self.where(steep, self.op("sub", self.constant(math.pi / 2), angle), angle)
        sign = w.let(f"call {self.t} @llvm.copysign.{w.mangled}({self.t} {self.constant(1.0)}, {self.t} {x})")
        behind = w.let(f"fcmp olt {self.t} {sign}, {self.constant(0.0)}")
        angle = self.where(behind, self.op("sub", self.constant(math.pi), angle), angle)
        return w.let(f"call {self.t} @llvm.copysign.{w.mangled}({self.t} {angle}, {self.t} {y})", "v")

    def _asin(self, x: str) -> str:
        return self._atan2(x, self._leg(x))

    def _acos(self, x: str) -> str:
        return self._atan2(self._leg(x), x)

    def _leg(self, x: str) -> str:
        one = self.constant(1.0)
        return self.op("sqrt", self.op("mul", self.op("sub", one, x), self.op("add", one, x)))
