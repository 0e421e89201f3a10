"""LLVM IR for actions (graph/program.py) of many runs: several ticks of each run without returning to Python.

    i64 @step(i64 from, i64 to, ptr told, ptr u, ptr y, ptr ws)     act on blocks of lanes; 1 if any run goes on
    void @see(i64 from, i64 to, ptr told, ptr u, ptr y, ptr ws)     begin new runs, and observe
    i64 @odd(i64 n, ptr u)                                          1 if any of these numbers is not finite

The memory of a block of lanes is its c followed by its p, one quantity after the other; blocks are contiguous. The
inputs u and the observations y are rows, one for each run, as users hold them. `told` is an array of 8-byte words with
the names in SHARED_WORDS. If the last block has more lanes than there are runs left, its rows are staged in the
workspace (the places called "corner").

`entry` returns a small separate module for one shape of u and y, which Python calls without entering Python code.
"""

from __future__ import annotations

from math import prod

from bellcrank.emit.cpu.python_entry import definition
from bellcrank.emit.llvm import lanes as copied
from bellcrank.emit.llvm import sincos
from bellcrank.emit.llvm.lanes import Writer
from bellcrank.emit.llvm.scheduling import TILE_COLUMNS, tiles
from bellcrank.emit.llvm.subroutines import COPY_FUNCTION, sign_bits, tick_routines
from bellcrank.graph.program import Action
from bellcrank.quoting import comment

# Words of eight bytes that both modules share.
SHARED_WORDS = ("runs", "ticks", "blocks", "reward", "end", "final", "ws", "step", "odd", "alive", "busy", "first")
WORD_OFFSETS = {name: 8 * k for k, name in enumerate(SHARED_WORDS)}
BUSY, ODD, ENDED = 1, 2, 3  # status of `one` when it did not act
GIL_RELEASE_RUNS = 64  # runs; from this number on the GIL is released during the call


def source(action: Action, lanes: int, trig_width: int, dtype: str = "float64") -> tuple[str, int]:
    """Return the module for all runs of `action`, and the slots of the workspace that it needs.

    Parameters
    ----------
    action
        The action to generate code for.
    lanes
        Runs in a block.
    trig_width
        Lanes of one vector of @sincos.
    dtype
        Floating-point type.
    """
    w, program = Writer(lanes, dtype), action.program
    routines = tick_routines(program, lanes, trig_width, dtype, action.graphs)
    layout = _WorkspaceLayout(action, routines.slots)
    parts = [
        f"; {comment(program.tick.name)}: {action.layout.size} numbers of a run, {lanes} lanes of {dtype}",
        sincos.definition(trig_width, dtype),
        routines.text,
        _row_functions(action, w),
        _act_function(action, layout, w),
        _observe_function(action, layout, w),
        _block_loop("step", action, layout, w),
        _block_loop("see", action, layout, w),
        COPY_FUNCTION,
        ODD_FUNCTION,
        "@writable = global i64 0 ; llvmlite's memory manager aborts on a module that has nothing to write to",
    ]
    return "\n".join(parts), layout.size


class _WorkspaceLayout:
    """Offsets in the workspace, in slots; routines come first, because they have the widest vectors."""

    def __init__(self, action: Action, slots: int) -> None:
        n, size = action.layout.size, action.program.size
        self.size = slots
        corner = {"u.corner": action.nu, "y.corner": action.row, "final.corner": action.row}
        corner |= {"reward.corner": 1, "end.corner": 1}
        widths = {"s": size, "spare": size, "c2": n, "u": action.nu, "row": action.row, "reward": 1, "end": 1, **corner}
        self.offsets: dict[str, int] = {}
        for name, width in widths.items():
            self.offsets[name] = self.size
            self.size += width

    def addresses(self, w: Writer, *names: str) -> str:
        return "".join(
            f"  %{name}.own = getelementptr i8, ptr %ws, i64 {self.offsets[name] * w.align}\n" for name in names
        )


def _graph_call(action: Action, name: str, **places: str) -> str:
    """Return a call of one of the graphs; `places` gives the addresses of arguments and results."""
    graph = action.graphs[name]
    addresses = {"c": "%c", "p": "%p", "u": "%u.own"} | places
    results = [places[f"to_{key}"] for key in graph.outputs]
    arguments = ", ".join(f"ptr {a}" for a in ("%ws", *(addresses[key] for key in graph.inputs), *results))
    return f"  call void @{name}({arguments})\n"


def _row_functions(action: Action, w: Writer) -> str:
    """Return functions that transpose rows of inputs into lanes, and lanes of observations into rows."""
    inward, outward = Writer(w.lanes, w.dtype), Writer(w.lanes, w.dtype)
    for tile in tiles("u", action.nu):
        for c, x in enumerate(copied.load_tile(inward, tile, "%rows", str(action.nu * w.bytes))):
            inward.store(x, inward.at("%lanes", (tile.start + c) * w.align))
    for tile in tiles("row", action.row, (2 * TILE_COLUMNS, TILE_COLUMNS)):
        copied.store_tile(
            outward, tile, "%rows", str(action.row * w.bytes), copied.load_tile(outward, tile, "%lanes", "")
        )
    return f"""define internal void @rows_in(ptr noalias %rows, ptr noalias %lanes) nounwind {{
{copied.indented(inward.lines)}  ret void
}}
define internal void @rows_out(ptr noalias %lanes, ptr noalias %rows) nounwind {{
{copied.indented(outward.lines)}  ret void
}}"""


def _put_rows(to: str) -> str:
    return f"  call void @rows_out(ptr %row.own, ptr {to})\n"


def _copy_results(w: Writer, count: int, mark: str) -> str:
    """Return text that copies results from the workspace to the memory that outlives the call."""
    text = ""
    for k in range(count):
        x, offset = f"%{mark}.{k}", k * w.align
        text += f"""  {x}.from = getelementptr i8, ptr %c2.own, i64 {offset}
  {x} = load {w.type}, ptr {x}.from, align {w.align}
  {x}.to = getelementptr i8, ptr %c, i64 {offset}
  store {w.type} {x}, ptr {x}.to, align {w.align}
"""
    return text


def _act_function(action: Action, layout: _WorkspaceLayout, w: Writer) -> str:
    size = action.layout.size
    restart_text = "  br label %done\n"
    if action.restarts:
        restart_text = f"""{sign_bits(w, "new", "%c", action.layout.place("new"))}\
  br i1 %new, label %again, label %done
again:
{_put_rows("%final")}{_graph_call(action, "begin", to_c="%c2.own")}{_copy_results(w, size, "begun")}\
{_graph_call(action, "look", to_row="%row.own")}{_put_rows("%y")}  br label %done
"""
    inputs = "  call void @rows_in(ptr %u, ptr %u.own)\n" if action.nu else ""
    ended = f"bitcast {w.mask} %is.on to i{w.lanes}" if w.lanes > 1 else "or i1 %is.on, false"
    close = _graph_call(
        action, "close", s="%here", to_c="%c2.own", to_row="%row.own", to_reward="%reward.own", to_end="%end.own"
    )
    return f"""define internal i1 @act(
  i64 %ticks, ptr noalias %c, ptr %u, ptr %y, ptr %reward, ptr %end, ptr %final, ptr noalias %ws
) nounwind {{
begin:
  %p = getelementptr i8, ptr %c, i64 {size * w.align}
{layout.addresses(w, "s", "spare", "c2", "u", "row", "reward", "end")}{inputs}\
{_graph_call(action, "open", to_s="%s.own")}\
  %here = call ptr @go(i64 %ticks, ptr %s.own, ptr %spare.own, ptr %p, ptr %u.own, ptr %ws)
{close}{_copy_results(w, action.changing, "closed")}{_put_rows("%y")}\
  %reward.x = load {w.type}, ptr %reward.own, align {w.align}
  store {w.type} %reward.x, ptr %reward, align {w.bytes}
  %end.x = load {w.type}, ptr %end.own, align {w.align}
  store {w.type} %end.x, ptr %end, align {w.bytes}
{restart_text}done:
  %is.on = fcmp ole {w.type} %end.x, {w.immediate(0.0)}
  %on.bits = {ended}
  %on = icmp ne i{w.lanes} %on.bits, 0
  ret i1 {"true" if action.restarts else "%on"}
}}"""


def _observe_function(action: Action, layout: _WorkspaceLayout, w: Writer) -> str:
    return f"""define internal i1 @seen(
  i64 %ticks, ptr noalias %c, ptr %u, ptr %y, ptr %reward, ptr %end, ptr %final, ptr noalias %ws
) nounwind {{
  %p = getelementptr i8, ptr %c, i64 {action.layout.size * w.align}
{layout.addresses(w, "c2", "row")}{sign_bits(w, "new", "%c", action.layout.place("new"))}\
  br i1 %new, label %again, label %look
again:
{_graph_call(action, "begin", to_c="%c2.own")}{_copy_results(w, action.layout.size, "begun")}  br label %look
look:
{_graph_call(action, "look", to_row="%row.own")}{_put_rows("%y")}  ret i1 true
}}"""


def _load_word(name: str, kind: str = "i64") -> str:
    return f"""  %{name}.word = getelementptr i8, ptr %told, i64 {WORD_OFFSETS[name]}
  %{name}.told = load {kind}, ptr %{name}.word, align 8
"""


def _block_loop(name: str, action: Action, layout: _WorkspaceLayout, w: Writer) -> str:
    """Return the loop over blocks; a last block that is not full is staged in the workspace."""
    act, lanes, acts = "act" if name == "step" else "seen", w.lanes, name == "step"
    widths = {"u": action.nu, "y": action.row, "reward": 1, "end": 1, "final": action.row if action.restarts else 0}
    arrays = {"u": "%u", "y": "%y", "reward": "%reward.told", "end": "%end.told", "final": "%final.told"}
    pointers = ""
    for key, array in arrays.items():
        pointers += f"""  %{key}.o = mul i64 %k, {widths[key] * lanes * w.bytes}
  %{key}.k = getelementptr i8, ptr {array}, i64 %{key}.o
"""
    number_counts = {key: f"  %{key}.n = mul i64 %rest, {widths[key]}\n" for key in arrays}
    copy_in = number_counts["u"] + "  call void @copy(ptr %u.corner.own, ptr %u.k, i64 %u.n)\n" if acts else ""
    copy_out = "".join(
        f"{number_counts[key]}  call void @copy(ptr %{key}.k, ptr %{key}.corner.own, i64 %{key}.n)\n"
        for key in (("y", "reward", "end", "final") if acts else ("y",))
    )
    block_arguments = ", ".join(f"ptr %{key}.k" for key in arrays)
    corner_arguments = ", ".join(f"ptr %{key}.corner.own" for key in arrays)
    return f"""define i64 @{name}(i64 %from, i64 %to, ptr %told, ptr %u, ptr %y, ptr %ws) nounwind {{
begin:
{_load_word("runs")}{_load_word("ticks")}\
{"".join(_load_word(key, "ptr") for key in ("first", "reward", "end", "final"))}\
{layout.addresses(w, *(f"{key}.corner" for key in arrays))}  %some = icmp ult i64 %from, %to
  br i1 %some, label %block, label %return
block:
  %k = phi i64 [%from, %begin], [%k.next, %on]
  %any = phi i1 [false, %begin], [%any.next, %on]
  %c.o = mul i64 %k, {(action.layout.size + action.free) * w.align}
  %c = getelementptr i8, ptr %first.told, i64 %c.o
{pointers}  %before = mul i64 %k, {lanes}
  %rest = sub i64 %runs.told, %before
  %is.whole = icmp uge i64 %rest, {lanes}
  br i1 %is.whole, label %whole, label %part
whole:
  %whole.on = call i1 @{act}(i64 %ticks.told, ptr %c, {block_arguments}, ptr %ws)
  br label %on
part:
{copy_in}  %part.on = call i1 @{act}(i64 %ticks.told, ptr %c, {corner_arguments}, ptr %ws)
{copy_out}  br label %on
on:
  %is.on = phi i1 [%whole.on, %whole], [%part.on, %part]
  %any.next = or i1 %any, %is.on
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %to
  br i1 %more, label %block, label %return
return:
  %found = phi i1 [false, %begin], [%any.next, %on]
  %result = zext i1 %found to i64
  ret i64 %result
}}"""


# A number is not finite if all bits of its exponent are set.
ODD_FUNCTION = """define i64 @odd(i64 %n, ptr %u) nounwind {
begin:
  %some = icmp ne i64 %n, 0
  br i1 %some, label %one, label %end
one:
  %k = phi i64 [0, %begin], [%k.next, %one]
  %so.far = phi i1 [false, %begin], [%now, %one]
  %at = getelementptr i64, ptr %u, i64 %k
  %x = load i64, ptr %at, align 8
  %bits = and i64 %x, 9218868437227405312
  %is = icmp eq i64 %bits, 9218868437227405312
  %now = or i1 %so.far, %is
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %n
  br i1 %more, label %one, label %end
end:
  %found = phi i1 [false, %begin], [%now, %one]
  %result = zext i1 %found to i64
  ret i64 %result
}"""


def entry(inputs: tuple[int, ...], outputs: tuple[int, ...], runs: int) -> str:
    """Return the module that Python calls; `one` does one action of all runs, or returns why it did not.

    Parameters
    ----------
    inputs
        Shape of u.
    outputs
        Shape of y.
    runs
        Number of runs; decides whether the GIL is released during the call.
    """
    release = ("  %thread = call ptr @PyEval_SaveThread()\n", "  call void @PyEval_RestoreThread(ptr %thread)\n")
    saved, restored = release if runs >= GIL_RELEASE_RUNS else ("", "")
    return f"""{definition([inputs], outputs, "float64", 0)}
@told = global [{len(SHARED_WORDS)} x i64] zeroinitializer, align 8
define i64 @many(i64 %n, ptr %u, i64 %u.stride, ptr %y, i64 %y.stride) {{
  ret i64 1
}}
define i64 @one(ptr %u, ptr %y) {{
begin:
  %told = getelementptr i8, ptr @told, i64 0
  %busy.at = getelementptr i8, ptr @told, i64 {WORD_OFFSETS["busy"]}
  %pair = cmpxchg ptr %busy.at, i64 0, i64 1 acq_rel monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %look, label %refuse
refuse:
  ret i64 {BUSY}
look:
{_load_word("alive")}{_load_word("blocks")}\
{_load_word("ws", "ptr")}{_load_word("step", "ptr")}{_load_word("odd", "ptr")}\
  %is.odd = call i64 %odd.told(i64 {prod(inputs)}, ptr %u)
  %even = icmp eq i64 %is.odd, 0
  br i1 %even, label %live, label %leave
live:
  %alive = icmp ne i64 %alive.told, 0
  br i1 %alive, label %go, label %leave
go:
{saved}  %on = call i64 %step.told(i64 0, i64 %blocks.told, ptr %told, ptr %u, ptr %y, ptr %ws.told)
{restored}  store i64 %on, ptr %alive.word, align 8
  br label %leave
leave:
  %why = phi i64 [{ODD}, %look], [{ENDED}, %live], [0, %go]
  store atomic i64 0, ptr %busy.at release, align 8
  ret i64 %why
}}"""
