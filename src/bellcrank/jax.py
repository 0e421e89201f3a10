"""Kernels as JAX functions: jit, vmap, jvp and grad of any order, on the CPU and on the GPU.

JAX must be installed by the user.

    from bellcrank.jax import wrap

    dynamics = wrap(bc.kernel(arm, "forward_dynamics"))           (q, v, tau) -> a; any leading axes, which broadcast
    jax.jit(jax.vmap(jax.grad(lambda q: dynamics(q, v, tau).sum())))(q)

A kernel is a target of XLA's foreign function interface (emit/cpu/xla.py, emit/cuda/xla_gpu.py), and its derivatives
are kernels, too: those of Graph.jvp and Graph.vjp, compiled when JAX first uses them. The kernel runs where JAX has its
arrays, for any target of the given kernel: it is compiled for each platform of XLA.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from bellcrank.build.differentiable_function import (
    DifferentiableFunction,
    differentiable_function,
    leading_shapes,
    named_arguments,
)
from bellcrank.emit.cpu.xla import Handler
from bellcrank.errors import InputError, brief
from bellcrank.lazy_import import optional_import

jax = optional_import("jax", "jax", "bellcrank.jax")
core = optional_import("jax.extend.core", "jax", "bellcrank.jax")
ad, batching, mlir = (
    optional_import(f"jax.interpreters.{part}", "jax", "bellcrank.jax") for part in ("ad", "batching", "mlir")
)

_numbers = itertools.count()
# XLA keeps the addresses for ever, so the handlers must live as long.
_targets: dict[int, tuple[str, Any, DifferentiableFunction]] = {}


def wrap(kernel: Any) -> Callable[..., Any]:
    """Return a kernel as a function of JAX arrays.

    Arguments are given by position or by name, with any leading axes, which broadcast. The free parameters p may be
    left out.

    Parameters
    ----------
    kernel : Kernel
        The compiled kernel.

    Returns
    -------
    callable
        Returns an array, or a dict of arrays if the kernel has several outputs, in the kernel's type of numbers:
        float64 needs jax.config.update("jax_enable_x64", True), a kernel with dtype="float32" does not.
    """
    function, signature = differentiable_function(kernel), kernel.signature
    dtype = np.dtype(signature.dtype)

    def call(*args: Any, **named: Any) -> Any:
        if dtype == np.float64 and not jax.config.jax_enable_x64:
            raise InputError(
                f"{signature.name} is in float64, which is disabled in JAX: call "
                'jax.config.update("jax_enable_x64", True), or use a kernel with dtype="float32".'
            )
        arguments = named_arguments(kernel, args, named)
        arrays = [_array(f'{signature.name}: input "{name}"', x, dtype) for name, x in arguments.items()]
        arrays = _broadcast(signature, arrays)
        results = call_p.bind(*arrays, function=function)
        return results[0] if len(results) == 1 else dict(zip(signature.outputs, results, strict=True))

    call.__name__, call.__doc__ = signature.name, signature.doc or signature.name
    return call


def _array(what: str, x: Any, dtype: Any) -> Any:
    try:
        array = jax.numpy.asarray(x)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is {brief(x)}; expected an array of real numbers.") from None
    if jax.numpy.iscomplexobj(array):  # the imaginary part would be dropped
        raise InputError(f"{what} is complex; expected an array of real numbers.")
    return array.astype(dtype)


def _broadcast(signature: Any, arrays: Sequence[Any]) -> list[Any]:
    """Check the shapes and broadcast the leading axes."""
    lead, _ = leading_shapes(signature, arrays, np.broadcast_shapes)
    pairs = zip(arrays, signature.inputs.values(), strict=True)
    return [jax.numpy.broadcast_to(a, (*lead, *shape)) for a, shape in pairs]


def _target(function: DifferentiableFunction) -> str:
    """Return the name under which a kernel is registered with XLA; register it if necessary."""
    if id(function) not in _targets:
        name = f"bellcrank_{next(_numbers)}"
        handler, platform = _handler(function.kernel)
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler.function), platform=platform)
        _targets[id(function)] = name, handler, function
    return _targets[id(function)][0]


def _handler(kernel: Any) -> tuple[Any, str]:
    """Return the XLA handler of a kernel and XLA's name of the platform."""
    if kernel.target == "cpu":
        return Handler(kernel.signature, kernel.whole()), "cpu"
    from bellcrank.emit.cuda.xla_gpu import GpuHandler

    return GpuHandler(kernel), "CUDA"


def _ffi_call(function: DifferentiableFunction, *args: Any) -> Any:
    """Call a kernel through XLA's foreign function interface."""
    shapes, target = _result_shapes(function, args), _target(function)
    rows = math.prod(shapes[0].shape[: len(shapes[0].shape) - len(function.output_shapes[0])])
    scratch_size = _targets[id(function)][1].scratch(rows) if rows else 0
    scratch = [jax.ShapeDtypeStruct((scratch_size,), args[0].dtype)] if scratch_size else []
    return jax.ffi.ffi_call(target, [*shapes, *scratch])(*args)[: len(shapes)]


def _result_shapes(function: DifferentiableFunction, args: Sequence[Any]) -> list[Any]:
    lead = args[0].shape[: args[0].ndim - len(function.input_shapes[0])]
    return [jax.ShapeDtypeStruct((*lead, *shape), args[0].dtype) for shape in function.output_shapes]


def _batching_rule(primitive: Any, args: Sequence[Any], dims: Sequence[Any], **how: Any) -> Any:
    """Evaluate with one more leading axis for all arguments."""
    pairs = list(zip(args, dims, strict=True))
    size = next(a.shape[d] for a, d in pairs if d is not None)
    moved = [
        jax.numpy.broadcast_to(a, (size, *a.shape)) if d is None else jax.numpy.moveaxis(a, d, 0) for a, d in pairs
    ]
    results = primitive.bind(*moved, **how)
    return results, [0] * len(results)


def _primitive(name: str, function_of_parameters: Callable[..., DifferentiableFunction]) -> Any:
    """Create a JAX primitive with parameters that determine a Function."""
    primitive = core.Primitive(name)
    primitive.multiple_results = True

    def lowered(*args: Any, target: str, **how: Any) -> Any:
        return _ffi_call(function_of_parameters(**how).for_target(target), *args)

    @cache
    def compiled(how: tuple[tuple[str, Any], ...]) -> Any:
        return jax.jit(partial(primitive.bind, **dict(how)))

    def alone(*args: Any, **how: Any) -> Any:
        return compiled(tuple(how.items()))(*args)

    def seen(*args: Any, **how: Any) -> Any:
        return [jax.core.ShapedArray(x.shape, x.dtype) for x in _result_shapes(function_of_parameters(**how), args)]

    primitive.def_impl(alone)
    primitive.def_abstract_eval(seen)
    for target in ("cpu", "cuda"):
        rule = mlir.lower_fun(partial(lowered, target=target), multiple_results=True)
        mlir.register_lowering(primitive, rule, platform=target)
    batching.primitive_batchers[primitive] = partial(_batching_rule, primitive)
    ad.primitive_jvps[primitive] = lambda primals, tangents, **parameters: _jvp_rule(
        primitive, function_of_parameters(**parameters), primals, tangents, parameters
    )
    return primitive


def _jvp_rule(primitive: Any, function: DifferentiableFunction, primals: Any, tangents: Any, parameters: Any) -> Any:
    """Return the results and their rates."""
    results = primitive.bind(*primals, **parameters)
    wrt = tuple(k for k, d in enumerate(tangents) if not isinstance(d, ad.Zero))
    moving = [tangents[k] for k in wrt]
    return results, tangent_p.bind(*primals, *moving, function=function, wrt=wrt)


def _transpose_rule(
    weights: Sequence[Any], *args: Any, function: DifferentiableFunction, wrt: tuple[int, ...]
) -> list[Any]:
    """Return the gradients with respect to the rates, in which a tangent is linear."""
    n = len(function.input_shapes)
    filled = [ad.instantiate_zeros(w) for w in weights]
    gradients = call_p.bind(*args[:n], *filled, function=function.cotangent(wrt))
    return [None] * n + list(gradients)


call_p = _primitive("bellcrank", lambda function: function)
tangent_p = _primitive("bellcrank_tangent", lambda function, wrt: function.tangent(wrt))
ad.primitive_transposes[tangent_p] = _transpose_rule
