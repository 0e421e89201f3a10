"""Kernels inside PyTorch, on the CPU: operators with gradients of any order, vmap and torch.compile. PyTorch is the
user's own.

    from bellcrank.torch import wrap

    dynamics = wrap(bc.kernel(arm, "forward_dynamics"))           (q, v, tau) -> a; any leading axes, which broadcast
    dynamics(q, v, tau).sum().backward()

A kernel is a torch.library.custom_op, and its gradient is another one: the kernel of Graph.vjp, compiled when it is
first asked for. Tensors are read and written where they lie.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from bellcrank.build.differentiable import Function, function_of
from bellcrank.errors import InputError, brief
from bellcrank.extras import extra

torch = extra("torch", "torch", "bellcrank.torch")
forward_ad = extra("torch.autograd.forward_ad", "torch", "bellcrank.torch")

_numbers = itertools.count()
_operators: dict[int, tuple[Any, Function]] = {}  # PyTorch keeps them for ever, and so do we


def wrap(kernel: Any) -> Callable[..., Any]:
    """A kernel as a function of tensors: as many leading axes as wanted, which broadcast; by place or by name.

    Several results come as a mapping. The free numbers p may be left out. Tensors of another type of numbers are
    converted to the kernel's.
    """
    function, signature = function_of(kernel), kernel.signature
    names, dtype = list(signature.inputs), getattr(torch, signature.dtype)
    nominal = {"p": kernel.parameters.nominal} if kernel.parameters and "p" in names else {}

    several, run = len(signature.outputs) > 1, kernel.__call__

    def call(*args: Any, **named: Any) -> Any:
        if not named and len(args) == len(names) and _plain(args, dtype):
            found = run(*[a.numpy() for a in args])
            return {k: torch.as_tensor(x) for k, x in found.items()} if several else torch.as_tensor(found)
        given = {**nominal, **dict(zip(names, args, strict=False)), **named}
        if len(args) > len(names) or set(given) != set(names):
            raise InputError(f"{signature.name} takes {', '.join(names)}; got {len(args)} arrays and {list(named)}.")
        tensors = _fitting(
            signature, [_tensor(f'{signature.name}: input "{name}"', given[name], dtype) for name in names]
        )
        if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(a).tangent is not None for a in tensors):
            raise InputError(f"{signature.name}: forward mode does not go through; take backward(), or kernel.jvp.")
        found = operator(function)(*tensors)
        return dict(zip(signature.outputs, found, strict=True)) if several else found

    call.__name__, call.__doc__ = signature.name, signature.doc or signature.name
    return call


def _plain(args: Sequence[Any], dtype: Any) -> bool:
    """Whether these are numbers in memory and nothing else, and nobody in PyTorch watches: no gradient, no transform,
    no compiler, no mode. Then the operator would only cost its way through the dispatcher.
    """
    if torch.compiler.is_compiling() or forward_ad._current_level >= 0:
        return False
    if torch._C._functorch.peek_interpreter_stack() is not None or torch._C._len_torch_dispatch_stack():
        return False
    for a in args:
        if type(a) is not torch.Tensor or a.dtype is not dtype or not a.is_cpu or a.requires_grad or a.is_neg():
            return False
    return True


def _tensor(what: str, x: Any, dtype: Any) -> Any:
    try:
        found = torch.as_tensor(x)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{what} is {brief(x)}; expected a tensor of real numbers.") from None
    if found.is_complex():  # .to() would drop a half of it
        raise InputError(f"{what} is complex; expected a tensor of real numbers.")
    return found.to(dtype)


def _fitting(signature: Any, tensors: Sequence[Any]) -> list[Any]:
    """All on the CPU and with the same leading axes."""
    shapes = list(signature.inputs.values())
    for (name, shape), a in zip(signature.inputs.items(), tensors, strict=True):
        if a.device.type != "cpu":
            raise InputError(f'{signature.name}: input "{name}" is on {a.device}, and the kernel on the CPU: a.cpu().')
        if a.ndim < len(shape) or tuple(a.shape[a.ndim - len(shape) :]) != shape:
            expected = f"(..., {', '.join(map(str, shape))})" if shape else "(...)"
            raise InputError(f'{signature.name}: input "{name}" has shape {tuple(a.shape)}; expected {expected}.')
    heads = [tuple(a.shape[: a.ndim - len(shape)]) for a, shape in zip(tensors, shapes, strict=True)]
    if all(head == heads[0] for head in heads):
        return list(tensors)
    try:
        lead = torch.broadcast_shapes(*heads)
    except RuntimeError:
        shown = ", ".join(f"{name} {head}" for name, head in zip(signature.inputs, heads, strict=True))
        raise InputError(f"{signature.name}: leading axes do not broadcast: {shown}.") from None
    return [a.expand((*lead, *shape)) for a, shape in zip(tensors, shapes, strict=True)]


def operator(function: Function) -> Any:
    """The operator of a Function: as many tensors as it has inputs, all with the same leading axes."""
    if id(function) not in _operators:
        _operators[id(function)] = _made(function), function
    return _operators[id(function)][0]


def _made(function: Function) -> Any:
    several = len(function.outputs) > 1
    taken = ", ".join(f"Tensor a{k}" for k in range(len(function.inputs)))
    gives = f"({', '.join(['Tensor'] * len(function.outputs))})" if several else "Tensor"

    def run(*tensors: Any) -> Any:
        found = function.kernel(*(a.detach().numpy() for a in tensors))
        results = [torch.as_tensor(x) for x in (found.values() if several else [found])]
        return tuple(results) if several else results[0]

    def fake(*tensors: Any) -> Any:
        first = tensors[0]
        lead = first.shape[: first.ndim - len(function.inputs[0])]
        results = [first.new_empty((*lead, *shape)) for shape in function.outputs]
        return tuple(results) if several else results[0]

    def kept(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.results = [(x.shape, x.dtype) for x in (output if several else [output])]

    def backward(ctx: Any, *weights: Any) -> Any:
        wrt = tuple(k for k, needed in enumerate(ctx.needs_input_grad) if needed)
        filled = [
            torch.zeros(shape, dtype=dtype) if w is None else w
            for w, (shape, dtype) in zip(weights, ctx.results, strict=True)
        ]
        found = operator(function.cotangent(wrt))(*ctx.saved_tensors, *filled)
        gradients = dict(zip(wrt, found if len(wrt) > 1 else [found], strict=True))
        return tuple(gradients.get(k) for k in range(len(function.inputs)))

    def batched(info: Any, dims: Any, *tensors: Any) -> Any:
        """Another leading axis for all."""
        moved = [
            a.expand((info.batch_size, *a.shape)) if d is None else a.movedim(d, 0)
            for a, d in zip(tensors, dims, strict=True)
        ]
        return made(*moved), (0,) * len(function.outputs) if several else 0

    name = f"bellcrank::kernel{next(_numbers)}"
    made = torch.library.custom_op(name, run, mutates_args=(), schema=f"({taken}) -> {gives}")
    made.register_fake(fake)
    made.register_autograd(backward, setup_context=kept)
    made.register_vmap(batched)
    return made
