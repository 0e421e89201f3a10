"""Kernels as JAX functions: jit, vmap, jvp and grad of any order, on the CPU and on the GPU.

JAX must be installed by the user.

    from bellcrank.jax import wrap

    dynamics = wrap(bc.kernel(arm, "forward_dynamics"))           (q, v, tau) -> a; any leading axes, which broadcast
    jax.jit(jax.vmap(jax.grad(lambda q: dynamics(q, v, tau).sum())))(q)

A kernel is a target of XLA's foreign function interface (emit/cpu/xla.py, emit/cuda/xla.py), and its derivatives are
kernels, too: those of Graph.jvp and Graph.vjp, compiled when JAX first uses them. The kernel runs where JAX has its
arrays, for any target of the given kernel: it is compiled for each platform of XLA.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from bellcrank.build.differentiable import Function, function_of
from bellcrank.emit.cpu.xla import Handler
from bellcrank.errors import InputError, brief
from bellcrank.extras import extra

jax = extra("jax", "jax", "bellcrank.jax")
core = extra("jax.extend.core", "jax", "bellcrank.jax")
ad, batching, mlir = (extra(f"jax.interpreters.{part}", "jax", "bellcrank.jax") for part in ("ad", "batching", "mlir"))

_numbers = itertools.count()
_targets: dict[
    int, tuple[str, Any, Function]
] = {}  # XLA keeps the addresses for ever, so the handlers must live as long


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
    function, signature = function_of(kernel), kernel.signature
    names, dtype = list(signature.inputs), np.dtype(signature.dtype)
    nominal = {"p": kernel.parameters.nominal} if kernel.parameters and "p" in names else {}

    def call(*args: Any, **named: Any) -> Any:
        if dtype == np.float64 and not jax.config.jax_enable_x64:
            raise InputError(
                f"{signature.name} is in float64, which is disabled in JAX: call "
                'jax.config.update("jax_enable_x64", True), or use a kernel with dtype="float32".'
            )
        given = {**nominal, **dict(zip(names, args, strict=False)), **named}
        if len(args) > len(names) or set(given) != set(names):
            raise InputError(f"{signature.name} takes {', '.join(names)}; got {len(args)} arrays and {list(named)}.")
        arrays = _fitting(
            signature, [_array(f'{signature.name}: input "{name}"', given[name], dtype) for name in names]
        )
        found = call_p.bind(*arrays, function=function)
        return found[0] if len(found) == 1 else dict(zip(signature.outputs, found, strict=True))

    call.__name__, call.__doc__ = signature.name, signature.doc or signature.name
    return call


def _array(what: str, x: Any, dtype: Any) -> Any:
    try:
        found = jax.numpy.asarray(x)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is {brief(x)}; expected an array of real numbers.") from None
    if jax.numpy.iscomplexobj(found):  # the imaginary part would be dropped
        raise InputError(f"{what} is complex; expected an array of real numbers.")
    return found.astype(dtype)


def _fitting(signature: Any, arrays: Sequence[Any]) -> list[Any]:
    """Check the shapes and broadcast the leading axes."""
    shapes = list(signature.inputs.values())
    for (name, shape), a in zip(signature.inputs.items(), arrays, strict=True):
        if a.ndim < len(shape) or a.shape[a.ndim - len(shape) :] != shape:
            expected = f"(..., {', '.join(map(str, shape))})" if shape else "(...)"
            raise InputError(f'{signature.name}: input "{name}" has shape {a.shape}; expected {expected}.')
    heads = [a.shape[: a.ndim - len(shape)] for a, shape in zip(arrays, shapes, strict=True)]
    try:
        lead = np.broadcast_shapes(*heads)
    except ValueError:
        shown = ", ".join(f"{name} {head}" for name, head in zip(signature.inputs, heads, strict=True))
        raise InputError(f"{signature.name}: leading axes do not broadcast: {shown}.") from None
    return [jax.numpy.broadcast_to(a, (*lead, *shape)) for a, shape in zip(arrays, shapes, strict=True)]


def _target(function: Function) -> str:
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
    from bellcrank.emit.cuda.xla import GpuHandler

    return GpuHandler(kernel), "CUDA"


def _run(function: Function, *args: Any) -> Any:
    """Call a kernel through XLA's foreign function interface."""
    shapes, target = _shapes(function, args), _target(function)
    rows = math.prod(shapes[0].shape[: len(shapes[0].shape) - len(function.outputs[0])])
    room = _targets[id(function)][1].scratch(rows) if rows else 0
    own = [jax.ShapeDtypeStruct((room,), args[0].dtype)] if room else []
    return jax.ffi.ffi_call(target, [*shapes, *own])(*args)[: len(shapes)]


def _shapes(function: Function, args: Sequence[Any]) -> list[Any]:
    lead = args[0].shape[: args[0].ndim - len(function.inputs[0])]
    return [jax.ShapeDtypeStruct((*lead, *shape), args[0].dtype) for shape in function.outputs]


def _batched(primitive: Any, args: Sequence[Any], dims: Sequence[Any], **how: Any) -> Any:
    """Evaluate with one more leading axis for all arguments."""
    pairs = list(zip(args, dims, strict=True))
    size = next(a.shape[d] for a, d in pairs if d is not None)
    moved = [
        jax.numpy.broadcast_to(a, (size, *a.shape)) if d is None else jax.numpy.moveaxis(a, d, 0) for a, d in pairs
    ]
    found = primitive.bind(*moved, **how)
    return found, [0] * len(found)


def _primitive(name: str, meant: Callable[..., Function]) -> Any:
    """Create a JAX primitive with parameters that determine a Function."""
    made = core.Primitive(name)
    made.multiple_results = True

    def lowered(*args: Any, target: str, **how: Any) -> Any:
        return _run(meant(**how).on(target), *args)

    @cache
    def compiled(how: tuple[tuple[str, Any], ...]) -> Any:
        return jax.jit(partial(made.bind, **dict(how)))

    def alone(*args: Any, **how: Any) -> Any:
        return compiled(tuple(how.items()))(*args)

    def seen(*args: Any, **how: Any) -> Any:
        return [jax.core.ShapedArray(x.shape, x.dtype) for x in _shapes(meant(**how), args)]

    made.def_impl(alone)
    made.def_abstract_eval(seen)
    for target in ("cpu", "cuda"):
        rule = mlir.lower_fun(partial(lowered, target=target), multiple_results=True)
        mlir.register_lowering(made, rule, platform=target)
    batching.primitive_batchers[made] = partial(_batched, made)
    ad.primitive_jvps[made] = lambda primals, tangents, **how: _moved(made, meant(**how), primals, tangents, how)
    return made


def _moved(made: Any, function: Function, primals: Any, tangents: Any, how: Any) -> Any:
    """Return the results and their rates."""
    found = made.bind(*primals, **how)
    wrt = tuple(k for k, d in enumerate(tangents) if not isinstance(d, ad.Zero))
    moving = [tangents[k] for k in wrt]
    return found, tangent_p.bind(*primals, *moving, function=function, wrt=wrt)


def _turned(weights: Sequence[Any], *args: Any, function: Function, wrt: tuple[int, ...]) -> list[Any]:
    """Return the gradients with respect to the rates, in which a tangent is linear."""
    n = len(function.inputs)
    filled = [ad.instantiate_zeros(w) for w in weights]
    found = call_p.bind(*args[:n], *filled, function=function.cotangent(wrt))
    return [None] * n + list(found)


call_p = _primitive("bellcrank", lambda function: function)
tangent_p = _primitive("bellcrank_tangent", lambda function, wrt: function.tangent(wrt))
ad.primitive_transposes[tangent_p] = _turned
