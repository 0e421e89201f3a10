"""Arguments of a kernel: bound to inputs, checked, converted and laid out in rows, with errors that explain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.buffers import check_memory, empty_buffer, poisoned
from bellcrank.emit.target import Shape, Signature
from bellcrank.errors import InputError, unknown
from bellcrank.nodes.node import Node
from bellcrank.parameters import Parameters

Array = np.ndarray[Any, Any]
SYMBOL_FREE_SEQUENCES = (str, bytes, bytearray, memoryview)  # sequences that hold no symbols


class Arguments:
    """Base class of callables with a signature and free parameters, which may be omitted or given by name."""

    signature: Signature
    parameters: Parameters

    def _bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        s = self.signature
        usage = f"{s.name}({', '.join(s.inputs)})"
        named = {key: x for key, x in named.items() if x is not None}  # None counts as omitted
        if len(args) > len(s.inputs):
            raise InputError(f"{usage} takes {len(s.inputs)} arrays; got {len(args)}.")
        values = dict(zip(s.inputs, args, strict=False))
        for name, value in self._with_free_parameters(usage, values, named).items():
            if name not in s.inputs:
                raise InputError(f"{usage}: {unknown('input', name, [*s.inputs, 'out'])}")
            if name in values:
                raise InputError(f'{usage}: "{name}" is given twice.')
            values[name] = value
        missing = [name for name in s.inputs if name not in values]
        if missing:
            raise InputError(f"{usage}: missing {', '.join(missing)}.")
        return values

    def _with_free_parameters(
        self, usage: str, values: Mapping[str, Any], named: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the named arguments, with the free parameters as input p; nominal values by default."""
        if "parameters" not in named:
            nominal = bool(self.parameters) and "p" not in values and "p" not in named
            return {**named, "p": self.parameters.nominal} if nominal else named
        if not self.parameters:
            raise InputError(
                f"{usage}: parameters is given, but there are no free parameters: bellcrank.parameter(name, value) or "
                "mechanism.free(name) creates one."
            )
        named_inputs = {key: x for key, x in named.items() if key != "parameters"}
        if "p" in values or "p" in named_inputs:
            raise InputError(f'{usage}: give "p" or "parameters", not both.')
        return named_inputs | {"p": self.parameters.vector(named["parameters"], self.signature.name)}

    def _checked_array(self, name: str, value: Any) -> Array:
        try:
            array = np.asanyarray(value)
        except ValueError as error:
            raise InputError(f'{self.signature.name}: input "{name}" is not an array: {error}.') from error
        if np.ma.is_masked(array):
            raise InputError(
                f'{self.signature.name}: input "{name}" has masked entries; expected a number in each entry.'
            )
        array = np.asarray(array)
        self._check_fit(name, array)
        return array.astype(self.signature.dtype, copy=False)

    def _check_fit(self, name: str, array: Any) -> None:
        """Check the dtype and the shape of an array of NumPy or of the GPU."""
        shape = self.signature.inputs[name]
        if array.dtype.kind not in "fiub":
            raise InputError(f'{self.signature.name}: input "{name}" has dtype {array.dtype}; expected real numbers.')
        expected = f"(..., {', '.join(map(str, shape))})" if shape else "(...)"
        if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
            raise InputError(f'{self.signature.name}: input "{name}" has shape {array.shape}; expected {expected}.')

    def _batch_shape(self, arrays: Mapping[str, Array]) -> Shape:
        heads = {name: a.shape[: a.ndim - len(self.signature.inputs[name])] for name, a in arrays.items()}
        try:
            return np.broadcast_shapes(*heads.values())
        except ValueError:
            shown = ", ".join(f"{name} {head}" for name, head in heads.items())
            raise InputError(f"{self.signature.name}: leading axes do not broadcast: {shown}.") from None

    def _contiguous_rows(self, array: Array, shape: Shape, batch: Shape, rows: int) -> tuple[Array, int]:
        """Return an array whose rows are contiguous, and its row stride in bytes (0 repeats one row for all)."""
        size = math.prod(shape)
        if array.ndim == len(shape):
            return np.ascontiguousarray(array), 0 if batch else size * array.itemsize
        if array.shape[: len(batch)] != batch or array.ndim != len(batch) + len(shape):
            array = np.broadcast_to(array, (*batch, *shape))
        if len(batch) == len(shape) == 1 and array.strides[1] == array.itemsize and array.strides[0] > 0:
            return array, array.strides[0]  # columns of a wider table need no copy
        flat = np.ascontiguousarray(array).reshape(rows, size)
        return flat, size * array.itemsize

    def _result_arrays(self, batch: Shape, out: Array | None, inputs: Sequence[Array]) -> list[Array]:
        shapes = [(*batch, *shape) for shape in self.signature.outputs.values()]
        dtype = np.dtype(self.signature.dtype)
        self._check_memory(batch, inputs)
        if out is not None:
            if len(shapes) > 1:
                raise InputError(f"{self.signature.name} returns {len(shapes)} arrays; out= takes one.")
            if (
                not isinstance(out, np.ndarray)
                or out.shape != shapes[0]
                or out.dtype != dtype
                or not out.flags.writeable
            ):
                got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
                reshaped = isinstance(out, np.ndarray) and out.size == math.prod(shapes[0]) and out.shape != shapes[0]
                hint = f" out.reshape({shapes[0]}) is the same memory in that shape." if reshaped else ""
                raise InputError(
                    f"{self.signature.name}: out must be a writable {dtype} array of shape {shapes[0]}; "
                    f"got {got}.{hint}"
                )
            if out.flags.c_contiguous and not any(np.may_share_memory(out, a) for a in inputs):
                return [poisoned(out)]
        return [empty_buffer(shape, dtype) for shape in shapes]

    def _check_memory(self, batch: Shape, inputs: Sequence[Array]) -> None:
        """Raise an InputError if results, and copies of inputs that broadcast, do not fit into memory."""
        rows, sizes = math.prod(batch), list(map(math.prod, self.signature.outputs.values()))
        for array, shape in zip(inputs, self.signature.inputs.values(), strict=True):
            if array.ndim > len(shape) and (array.shape[: len(batch)] != batch or not array.flags.c_contiguous):
                sizes.append(math.prod(shape))
        size = float(rows) * sum(sizes) * np.dtype(self.signature.dtype).itemsize
        check_memory(f"{self.signature.name} of {rows} states", size, "take a smaller batch")

    def _raise_nonfinite(self, arrays: Mapping[str, Array]) -> None:
        """Raise an InputError for the first value that is not finite; return if only a sum of them overflowed."""
        for name, array in arrays.items():
            bad = np.argwhere(~np.isfinite(array))
            if len(bad):
                index = tuple(int(i) for i in bad[0])
                column_names = self.signature.columns.get(name) if self.signature.columns else None
                column_label = f' ("{column_names[index[-1]]}")' if column_names else ""
                raise InputError(
                    f"{self.signature.name}: {name}[{', '.join(map(str, index))}]{column_label} is {array[index]}; "
                    f"expected finite numbers ({len(bad)} of {array.size} are not)."
                )


def contains_symbols(value: Any) -> bool:
    """Return True if `value` contains symbols, as in functions that are being traced."""
    if isinstance(value, Node):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(map(contains_symbols, value.flat))
    try:
        return (
            isinstance(value, Sequence)
            and not isinstance(value, SYMBOL_FREE_SEQUENCES)
            and any(map(contains_symbols, value))
        )
    except RecursionError:  # a list that contains itself holds neither symbols nor numbers
        return False
