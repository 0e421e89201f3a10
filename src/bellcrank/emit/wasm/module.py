"""Program or functions as a WebAssembly module.

    begin(s, spare, p, u, ws), run(ticks, s, spare, ...)       as in emit/cpu/run_loop.py, for one run
    name(ws, in..., out...)                                     for every other graph

Arrays are contiguous numbers; pointers are offsets in the memory, and the caller's own memory begins at `heap`. Nothing
is fused, since WebAssembly has no fused multiply-add: results equal those of the kernel up to rounding. Sines and
cosines are provided by the loader (JavaScript's Math).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bellcrank.emit.cpu import run_loop
from bellcrank.emit.llvm.host import compile_for_other
from bellcrank.emit.llvm.lanes import Writer, library_declarations
from bellcrank.emit.llvm.subroutines import routines
from bellcrank.emit.wasm.linker import LinkedModule, link
from bellcrank.graph import Graph, Program

# Items in a function: values in locals need no memory traffic. For the excavator with its linkage, 3000 instead would
# give 70 kB more code (577), and a step of 58 us in Node instead of 52.
ITEMS_PER_FUNCTION = 8000
TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+bulk-memory,+nontrapping-fptoint,+simd128,+sign-ext"  # supported by every browser since 2023
SINCOS = """
declare double @sin(double)
declare double @cos(double)
define internal void @sincos(ptr noalias %x, ptr noalias %s, ptr noalias %c, i64 %count) nounwind {
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %x.at = getelementptr double, ptr %x, i64 %i
  %s.at = getelementptr double, ptr %s, i64 %i
  %c.at = getelementptr double, ptr %c, i64 %i
  %angle = load double, ptr %x.at, align 8
  %sine = call double @sin(double %angle)
  %cosine = call double @cos(double %angle)
  store double %sine, ptr %s.at, align 8
  store double %cosine, ptr %c.at, align 8
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def wasm_module(program: Program | None, graphs: Mapping[str, Graph], heap: int) -> LinkedModule:
    """Return the module of a program, of functions, or of both.

    Parameters
    ----------
    program
        Program with its begin and run functions, if any.
    graphs
        Graphs by exported name.
    heap
        Bytes for the caller's arrays and the workspace.
    """
    if program is not None:
        code = run_loop.run_functions(program, 1, 1, "float64", graphs, ITEMS_PER_FUNCTION)
    else:
        code = routines(graphs, 1, 1, "float64", ITEMS_PER_FUNCTION)
        code = replace(code, text="\n".join([*library_declarations(Writer(1, "float64")), code.text]))
    loops = {"begin": "begin", "run": "run"} if program is not None else {}
    llvm_text = (SINCOS + code.text).replace("@llvm.fma.", "@llvm.fmuladd.")
    exports = loops | {name: code.names[name] for name in graphs}
    object_code = compile_for_other(llvm_text, TRIPLE, cpu="generic", features=FEATURES, reloc="static")
    return replace(link(object_code, exports, heap + 8 * code.slots), slots=code.slots)
