"""Graph to a kernel for a batch, one thread per state.

    many(i64 n, ptr array, i32 row, i32 column, ...)     n states; strides in elements, inputs first, then outputs

Tiled, it expects columns side by side in memory (a column stride of 1); see access.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bellcrank.emit.cuda.access import Strided, Tiled
from bellcrank.emit.cuda.body import Body
from bellcrank.emit.cuda.choice import SHARED, Plan, chosen, cost, plan
from bellcrank.emit.cuda.few import live, order
from bellcrank.emit.cuda.loads import DISTANCE, ahead
from bellcrank.emit.cuda.numbers import ThreadWriter
from bellcrank.emit.cuda.park import Parking
from bellcrank.emit.cuda.ptx import ptx
from bellcrank.emit.cuda.units import Unit, Units
from bellcrank.emit.writer import Writer
from bellcrank.graph import Graph, Node

THREADS = 128  # of a block
TILE = 40 * 1024  # bytes of a tile; a larger array is left where it is
HEAD = """@shared = external addrspace(3) global [0 x i8], align 16
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier0()
"""


@dataclass(frozen=True, eq=False)
class Straight:
    """A kernel's text, and what it will need."""

    graph: Graph
    dtype: str = "float64"
    tiled: bool = False
    distance: int = DISTANCE
    blocks: int = 0  # on a multiprocessor at once; 0: chosen
    threads: int = THREADS

    @property
    def words(self) -> int:
        return 2 if self.dtype == "float64" else 1

    @cached_property
    def units(self) -> Units:
        return Units(self.graph)

    @cached_property
    def sequence(self) -> Sequence[Unit]:
        return ahead(order(self.units), self.distance)

    @cached_property
    def live(self) -> int:
        """The most values alive at once."""
        return max(live(self.sequence), default=0)

    @cached_property
    def plan(self) -> Plan:
        if self.blocks:
            return plan(self.sequence, self.words, self.threads, self.blocks)
        return chosen(self.sequence, self.words, self.threads)

    @property
    def cost(self) -> float:
        """Predicted, in units that compare methods with each other."""
        return cost(self.sequence, self.plan, self.threads)

    @property
    def parking(self) -> Parking:
        return self.plan.parking

    @cached_property
    def arrays(self) -> dict[str, Strided | Tiled]:
        """Inputs and outputs, and how they are reached."""
        sizes = {f"in_{name}": math.prod(shape) for name, shape in self.graph.inputs.items()}
        sizes |= {f"out_{name}": array.size for name, array in self.graph.outputs.items()}
        found: dict[str, Strided | Tiled] = {}
        start = self.parking.slots * self.threads
        for name, size in sizes.items():
            found[name] = Strided(name)
            if self.tiled and size > 1 and (size | 1) * self.threads * 4 * self.words <= TILE:
                found[name] = tile = Tiled(name, size, self.threads, start, name.startswith("out_"))
                start += tile.elements
        return found

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        tiles = sum(a.elements for a in self.arrays.values() if isinstance(a, Tiled))
        return (self.parking.slots * self.threads + tiles) * 4 * self.words

    @cached_property
    def text(self) -> str:
        """LLVM IR."""
        w, arrays = ThreadWriter(self.dtype, scarce=self.plan.blocks < 3), self.arrays
        stores: dict[int, list[tuple[str, int]]] = {}
        for name, array in self.graph.outputs.items():
            for k, x in enumerate(array.flat):
                if isinstance(x, Node):
                    stores.setdefault(x.serial, []).append((f"out_{name}", k))

        def read(node: Node) -> str:
            array = arrays[f"in_{node.args[0]}"]
            # volatile, or all of a tile would be read at once into registers
            word = "load volatile" if isinstance(array, Tiled) else "load"
            return w.let(f"{word} {w.type}, {array.address(w, node.args[1])}", "x")

        def put(name: str, k: int, value: str) -> None:
            w.do(f"store {w.type} {value}, {arrays[name].address(w, k)}")

        def write(node: Node, value: str) -> None:
            for name, k in stores.get(node.serial, ()):
                put(name, k, value)

        for a in arrays.values():
            a.enter(w)
        if self.tiled:
            w.do("call void @llvm.nvvm.barrier0()")
        body = Body(self.units, w, read, write, self.threads)
        body.spelled(self.parking.steps)
        for name, array in self.graph.outputs.items():
            for k, x in enumerate(array.flat):
                if not isinstance(x, Node) or x.op == "input":
                    put(f"out_{name}", k, body.value(x))
        if self.tiled:
            w.do("call void @llvm.nvvm.barrier0()")
        for a in arrays.values():
            a.leave(w)
        return HEAD + w.definition() + self._around(w)

    @property
    def _bounds(self) -> str:
        return f'"nvvm.maxntid"="{self.threads}" "nvvm.minctasm"="{self.plan.blocks}"'

    def _around(self, w: Writer) -> str:
        """Threads beyond the last row have nothing to do; in a tiled block they help, and repeat the last row."""
        parameters = "".join(
            f", ptr addrspace(1) noalias %{a}, i32 %{a}.row, i32 %{a}.column" for a in self.arrays
        )  # fmt: skip
        lines = "".join(f"  {line}\n" for line in w.lines)
        return f"""define ptx_kernel void @many(i64 %n{parameters}) nounwind {self._bounds} {{
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %tid.wide = zext i32 %tid to i64
  %block.wide = zext i32 %block to i64
  %before = mul i64 %block.wide, {self.threads}
  %here = add i64 %before, %tid.wide
  %last = sub i64 %n, 1
  %mine = icmp ult i64 %here, %n
  %row = select i1 %mine, i64 %here, i64 %last
  %parked = getelementptr {w.type}, ptr addrspace(3) @shared, i32 %tid
  br i1 {"true" if self.tiled else "%mine"}, label %go, label %done
go:
{lines}  br label %done
done:
  ret void
}}"""

    @cached_property
    def ptx(self) -> str:
        return ptx(self.text)


def texts(graph: Graph, dtype: str) -> dict[str, dict[str, Any]]:
    """PTX for each way in which a batch may lie in memory, with what is to be known to start it.

    Tiles that leave room for fewer blocks on a multiprocessor cost more than they bring.
    """
    found = {}
    for layout in ("strided", "tiled"):
        made = Straight(graph, dtype, layout == "tiled")
        if not made.tiled or (made.shared + 1024) * made.plan.blocks <= SHARED:
            found[layout] = {
                "ptx": made.ptx, "threads": made.threads, "shared": made.shared,
                "registers": made.plan.registers, "live": made.live, "blocks": made.plan.blocks,
            }  # fmt: skip
    return found
