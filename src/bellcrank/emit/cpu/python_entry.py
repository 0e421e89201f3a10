"""Python entry of a kernel: a builtin function emitted as LLVM IR next to the kernel, without a C compiler.

Through ctypes, a call costs microseconds. A builtin of METH_FASTCALL | METH_KEYWORDS is only a C function

    PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)

and `definition` writes that function as `@call`. It inspects the arguments, allocates the result (or takes the array
given as `out=`), runs the kernel and returns. Every unusual call (another type or dtype, a strided view, a wrong shape,
another keyword, an `out` that overlaps an input, a value that is not finite) is passed on unchanged to `self`: the
Python function that converts, explains and raises. So `@call` never reports an error in its arguments, and its
strictness costs speed but never a correct result.

The module around it defines the kernel. Both functions return 0, or another number for a bad input; strides are bytes
from row to row.

    define i64 @one(ptr in0, ptr in1, ..., ptr out)
    define i64 @many(i64 n, ptr in0, i64 stride0, ptr in1, i64 stride1, ..., ptr out, i64 out_stride)

The memory layout of arguments and functions is in machine_code.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from bellcrank.emit.cpu.machine_code import (
    ADDRESS_TABLE,
    ARRAY_FIELDS,
    PLAIN_ARRAY_FLAGS,
    PYTHON_FUNCTIONS,
    WRITEABLE_FLAG,
)

_FIELD_INDEX = {name: (i, kind) for i, (name, kind, _) in enumerate(ARRAY_FIELDS)}
AXES_LIMIT = 8  # leading axes; arrays with more go to the fallback
RELEASE_ROWS = 64  # rows from which a batch is long enough to release the GIL


def definition(inputs: Sequence[tuple[int, ...]], output: tuple[int, ...], dtype: str, rows_limit: int) -> str:
    """Return the IR text of `@call` and what it needs, for a module that defines `@one` and `@many`.

    Parameters
    ----------
    inputs
        Shapes of the inputs (at least one) for one state.
    output
        Shape of the output for one state.
    dtype
        Floating-point type.
    rows_limit
        Batches of more rows go to the fallback.
    """
    dims = ", ".join(f"i64 {n}" for n in output)
    return "\n".join(
        [
            "%py.array = type { " + ", ".join(kind for _, kind, _ in ARRAY_FIELDS) + " }",
            f"@py = global [{len(ADDRESS_TABLE)} x ptr] zeroinitializer",
            f"@py.shape = private constant [{len(output)} x i64] [{dims}]",
            *(f"declare {result} @{name}({parameters})" for name, (result, parameters) in PYTHON_FUNCTIONS.items()),
            *(_axes_function(shape, dtype) for shape in dict.fromkeys([*inputs, output])),
            _call_function(inputs, output, dtype, rows_limit),
        ]
    )


def _load_field(value: str, array: str, field: str) -> str:
    index, kind = _FIELD_INDEX[field]
    return f"""\
  {value}.at = getelementptr %py.array, ptr {array}, i64 0, i32 {index}
  {value} = load {kind}, ptr {value}.at
"""


def _load_element(value: str, kind: str, base: str, index: int | str) -> str:
    return f"""\
  {value}.at = getelementptr {kind}, ptr {base}, i64 {index}
  {value} = load {kind}, ptr {value}.at
"""


def _load_table_entry(value: str, name: str) -> str:
    return _load_element(value, "ptr", "@py", ADDRESS_TABLE.index(name))


def _conjunction(value: str, tests: Sequence[str]) -> str:
    """Return text that sets `value` to the conjunction of the i1 `tests`."""
    sums = [f"{value}.{i}" for i in range(len(tests) - 1)] + [value]
    pairs = zip(sums, ["true", *sums], tests)
    return "".join(f"  {total} = and i1 {previous}, {test}\n" for total, previous, test in pairs)


def _axes_name(shape: tuple[int, ...]) -> str:
    return "@py.axes." + ("x".join(map(str, shape)) or "scalar")


def _axes_function(shape: tuple[int, ...], dtype: str) -> str:
    """Return a function that counts the axes of an object before `shape`; -1 if it is not a plain array of it."""
    trailing = "".join(
        f"""\
  %own.{i}.i = add i64 %axes, {i}
{_load_element(f"%own.{i}", "i64", "%dims", f"%own.{i}.i")}\
  %own.{i}.fits = icmp eq i64 %own.{i}, {n}
"""
        for i, n in enumerate(shape)
    )
    return f"""
define internal i64 {_axes_name(shape)}(ptr %object) alwaysinline {{
{_load_field("%type", "%object", "type")}\
{_load_table_entry("%ndarray", "PyArray_Type")}\
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %array, label %other
array:
{_load_field("%descr", "%object", "descr")}\
{_load_table_entry("%native", dtype)}\
  %is.float = icmp eq ptr %descr, %native
{_load_field("%flags", "%object", "flags")}\
  %masked = and i32 %flags, {PLAIN_ARRAY_FLAGS}
  %is.plain = icmp eq i32 %masked, {PLAIN_ARRAY_FLAGS}
{_load_field("%nd", "%object", "nd")}\
  %nd.wide = sext i32 %nd to i64
  %axes = sub i64 %nd.wide, {len(shape)}
  %is.deep = icmp sge i64 %axes, 0
{_conjunction("%is.candidate", ["%is.float", "%is.plain", "%is.deep"])}\
  br i1 %is.candidate, label %shaped, label %other
shaped:
{_load_field("%dims", "%object", "dims")}\
{trailing}\
{_conjunction("%fits", [f"%own.{i}.fits" for i in range(len(shape))] or ["true"])}\
  %answer = select i1 %fits, i64 %axes, i64 -1
  ret i64 %answer
other:
  ret i64 -1
}}
"""


def _call_function(inputs: Sequence[tuple[int, ...]], output: tuple[int, ...], dtype: str, rows_limit: int) -> str:
    size = np.dtype(dtype).itemsize
    each = range(len(inputs))
    arguments = "".join(
        f"""\
{_load_element(f"%arg.{i}", "ptr", "%args", i)}\
  %axes.{i} = call i64 {_axes_name(inputs[i])}(ptr %arg.{i})
  %alike.{i} = icmp eq i64 %axes.{i}, %axes.0
"""
        for i in each
    )
    lengths = "".join(
        f"""\
{_load_element(f"%length.{i}", "i64", f"%dims.{i}", "%axis")}\
  %agrees.{i} = icmp eq i64 %length.{i}, %length.0
"""
        for i in each
    )
    trailing = "".join(
        f"""\
  %tail.{i}.i = add i64 %axes.0, {i}
  %tail.{i} = getelementptr i64, ptr %lead, i64 %tail.{i}.i
  store i64 {n}, ptr %tail.{i}
"""
        for i, n in enumerate(output)
    )
    state = ", ".join(f"ptr %data.{i}" for i in each)
    rows = ", ".join(f"ptr %data.{i}, i64 {size * prod(inputs[i])}" for i in each)
    overlaps = "".join(
        f"""\
  %end.{i}.n = mul i64 %n, {size * prod(inputs[i])}
  %end.{i} = getelementptr i8, ptr %data.{i}, i64 %end.{i}.n
  %before.{i} = icmp ule ptr %end.{i}, %given.data
  %after.{i} = icmp ule ptr %given.end, %data.{i}
  %apart.{i} = or i1 %before.{i}, %after.{i}
"""
        for i in each
    )
    # An output that can be 0-d is returned as a scalar, as by a ufunc; the caller's own array is returned unchanged.
    finish = "  ret ptr %out\n" if output else f"""\
  br i1 %asked, label %same, label %scalar
same:
  ret ptr %out
scalar:
{_load_table_entry("%return", "PyArray_Return")}\
  %final = tail call ptr %return(ptr %out)
  ret ptr %final
"""  # fmt: skip
    return f"""
define ptr @call(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) uwtable {{
  %lead = alloca [{AXES_LIMIT + len(output)} x i64]
  %complete = icmp eq i64 %nargs, {len(inputs)}
  br i1 %complete, label %start, label %fallback
start:
  %positional = icmp eq ptr %kwnames, null
  br i1 %positional, label %look, label %keyword

keyword: ; one is known, `out`: a tuple of one interned string
{_load_element("%kwnames.count", "i64", "%kwnames", 2)}\
{_load_element("%kwnames.first", "ptr", "%kwnames", 3)}\
{_load_table_entry("%out.name", "out")}\
  %is.one = icmp eq i64 %kwnames.count, 1
  %is.out = icmp eq ptr %kwnames.first, %out.name
{_conjunction("%is.asked", ["%is.one", "%is.out"])}\
  br i1 %is.asked, label %asking, label %fallback
asking:
{_load_element("%target", "ptr", "%args", len(inputs))}\
  br label %look

look:
  %given = phi ptr [ null, %start ], [ %target, %asking ]
  %asked = icmp ne ptr %given, null
{arguments}\
  %few = icmp ule i64 %axes.0, {AXES_LIMIT} ; unsigned, so that -1 is too many
{_conjunction("%fit", ["%few", *(f"%alike.{i}" for i in each)])}\
  br i1 %fit, label %fitting, label %fallback

fitting:
{"".join(_load_field(f"%data.{i}", f"%arg.{i}", "data") for i in each)}\
{"".join(_load_field(f"%dims.{i}", f"%arg.{i}", "dims") for i in each)}\
  %single = icmp eq i64 %axes.0, 0
  br i1 %single, label %sized, label %leading

leading: ; compare, multiply and note the leading lengths
  %axis = phi i64 [ 0, %fitting ], [ %axis.next, %agreed ]
  %so.far = phi i64 [ 1, %fitting ], [ %product, %agreed ]
{lengths}\
{_conjunction("%agree", [f"%agrees.{i}" for i in each])}\
  br i1 %agree, label %agreed, label %fallback
agreed:
  %lead.at = getelementptr i64, ptr %lead, i64 %axis
  store i64 %length.0, ptr %lead.at
  %product = mul i64 %so.far, %length.0 ; cannot overflow, as the array exists
  %axis.next = add i64 %axis, 1
  %more = icmp ult i64 %axis.next, %axes.0
  br i1 %more, label %leading, label %counted
counted:
{trailing}\
  %some = icmp ne i64 %product, 0
  %within = icmp ule i64 %product, {rows_limit}
{_conjunction("%ours", ["%some", "%within"])}\
  br i1 %ours, label %sized, label %fallback

sized:
  %shape = phi ptr [ @py.shape, %fitting ], [ %lead, %counted ]
  %n = phi i64 [ 1, %fitting ], [ %product, %counted ]
  br i1 %asked, label %consider, label %allocate

consider: ; the caller's array: of the right shape, writable, and apart from every input
  %given.axes = call i64 {_axes_name(output)}(ptr %given)
  %given.alike = icmp eq i64 %given.axes, %axes.0
  br i1 %given.alike, label %inspect, label %fallback
inspect:
{_load_field("%given.flags", "%given", "flags")}\
{_load_field("%given.dims", "%given", "dims")}\
{_load_field("%given.data", "%given", "data")}\
  %given.masked = and i32 %given.flags, {WRITEABLE_FLAG}
  %given.writable = icmp ne i32 %given.masked, 0
  %given.n = mul i64 %n, {size * prod(output)}
  %given.end = getelementptr i8, ptr %given.data, i64 %given.n
{overlaps}\
{_conjunction("%given.good", ["%given.writable", *(f"%apart.{i}" for i in each)])}\
  br i1 %given.good, label %measure, label %fallback
measure:
  %given.axis = phi i64 [ 0, %inspect ], [ %given.next, %same.length ]
  %measured = icmp eq i64 %given.axis, %axes.0
  br i1 %measured, label %adopt, label %length
length:
{_load_element("%given.length", "i64", "%given.dims", "%given.axis")}\
{_load_element("%wanted", "i64", "%lead", "%given.axis")}\
  %given.agrees = icmp eq i64 %given.length, %wanted
  br i1 %given.agrees, label %same.length, label %fallback
same.length:
  %given.next = add i64 %given.axis, 1
  br label %measure
adopt:
  call void @Py_IncRef(ptr %given)
  br label %allocated

allocate: ; PyArray_NewFromDescr takes over a reference to the descr
  %depth = add i64 %axes.0, {len(output)}
  %nd = trunc i64 %depth to i32
{_load_table_entry("%type", "PyArray_Type")}\
{_load_table_entry("%descr", dtype)}\
{_load_table_entry("%new", "PyArray_NewFromDescr")}\
  call void @Py_IncRef(ptr %descr)
  %made = call ptr %new(ptr %type, ptr %descr, i32 %nd, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  %none = icmp eq ptr %made, null
  br i1 %none, label %failed, label %allocated
failed: ; out of memory, and the error is set
  ret ptr null
allocated:
  %out = phi ptr [ %made, %allocate ], [ %given, %adopt ]
{_load_field("%out.data", "%out", "data")}\
  br i1 %single, label %state, label %batch

state:
  %state.bad = call i64 @one({state}, ptr %out.data)
  br label %done

batch:
  %long = icmp uge i64 %n, {RELEASE_ROWS}
  br i1 %long, label %release, label %run
release:
  %saved = call ptr @PyEval_SaveThread()
  br label %run
run:
  %thread = phi ptr [ null, %batch ], [ %saved, %release ]
  %batch.bad = call i64 @many(i64 %n, {rows}, ptr %out.data, i64 {size * prod(output)})
  br i1 %long, label %acquire, label %done
acquire:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done

done:
  %bad = phi i64 [ %state.bad, %state ], [ %batch.bad, %run ], [ %batch.bad, %acquire ]
  %fine = icmp eq i64 %bad, 0
  br i1 %fine, label %finish, label %discard
finish:
{finish}\
discard:
  call void @Py_DecRef(ptr %out)
  br label %fallback

fallback:
  %answer = tail call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %answer
}}
"""
