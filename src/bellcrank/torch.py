"""Kernels as PyTorch operators, on the CPU and on the GPU: gradients of any order, vmap and torch.compile.

PyTorch must be installed by the user.

    from bellcrank.torch import wrap

    dynamics = wrap(bc.kernel(arm, "forward_dynamics"))           (q, v, tau) -> a; any leading axes, which broadcast
    dynamics(q, v, tau).sum().backward()

A kernel is a torch.library.custom_op, and its gradient is another one: the kernel of Graph.vjp, compiled on first use.
Tensors are read and written in place; their device determines where the kernel runs, for any target of the given
kernel; on a GPU it runs in PyTorch's current stream.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from bellcrank.buffers import poisoned
from bellcrank.build.differentiable import Function, function_of
from bellcrank.errors import InputError, brief
from bellcrank.extras import extra

if TYPE_CHECKING:
    from bellcrank.emit.cuda.kernel import CudaKernel
    from bellcrank.emit.cuda.state_kernel import StateKernel

torch = extra("torch", "torch", "bellcrank.torch")
forward_ad = extra("torch.autograd.forward_ad", "torch", "bellcrank.torch")

_numbers = itertools.count()
_operators: dict[int, tuple[Any, Function]] = {}  # PyTorch keeps operators for ever, so they must live as long


def wrap(kernel: Any) -> Callable[..., Any]:
    """Return a kernel as a function of tensors.

    Arguments are given by position or by name, with any leading axes, which broadcast. Tensors of another type of
    numbers are converted to that of the kernel. The free parameters p may be left out.

    Parameters
    ----------
    kernel : Kernel
        The compiled kernel.

    Returns
    -------
    callable
        Returns a tensor, or a dict of tensors if the kernel has several outputs.
    """
    function, signature = function_of(kernel), kernel.signature
    names, dtype = list(signature.inputs), getattr(torch, signature.dtype)
    nominal = {"p": kernel.parameters.nominal} if kernel.parameters and "p" in names else {}

    several, directly = len(signature.outputs) > 1, _past_the_operator(kernel, function)

    def call(*args: Any, **named: Any) -> Any:
        if not named and len(args) == len(names) and _plain(args, dtype) and (found := directly(args)) is not None:
            return found
        given = {**nominal, **dict(zip(names, args, strict=False)), **named}
        if len(args) > len(names) or set(given) != set(names):
            raise InputError(f"{signature.name} takes {', '.join(names)}; got {len(args)} arrays and {list(named)}.")
        place = next((a.device for a in given.values() if isinstance(a, torch.Tensor)), None)
        tensors = _fitting(
            signature, [_tensor(f'{signature.name}: input "{name}"', given[name], dtype, place) for name in names]
        )
        if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(a).tangent is not None for a in tensors):
            raise InputError(f"{signature.name}: forward mode is not supported; use backward(), or kernel.jvp.")
        found = operator(function)(*tensors)
        return dict(zip(signature.outputs, found, strict=True)) if several else found

    call.__name__, call.__doc__ = signature.name, signature.doc or signature.name
    return call


def _past_the_operator(kernel: Any, function: Function) -> Callable[[Sequence[Any]], Any]:
    """Return a function of plain tensors that bypasses the operator; it returns None for devices without a kernel."""
    signature, run, on_cpu = kernel.signature, kernel.__call__, kernel.target == "cpu"
    several = len(signature.outputs) > 1

    def directly(args: Sequence[Any]) -> Any:
        if on_cpu and args[0].is_cpu:
            found = run(*[a.numpy() for a in args])
            return {k: torch.as_tensor(x) for k, x in found.items()} if several else torch.as_tensor(found)
        if args[0].is_cuda:
            results = _on_gpu(function.on("cuda"), _fitting(signature, args))
            return dict(zip(signature.outputs, results, strict=True)) if several else results[0]
        return None

    return directly


def _plain(args: Sequence[Any], dtype: Any) -> bool:
    """Return true if these are plain tensors on one device and no PyTorch feature intercepts the call.

    Such features are gradients, transforms, the compiler and dispatch modes. Without them the operator would only add
    the cost of the dispatcher.
    """
    if torch.compiler.is_compiling() or forward_ad._current_level >= 0:
        return False
    if torch._C._functorch.peek_interpreter_stack() is not None or torch._C._len_torch_dispatch_stack():
        return False
    for a in args:
        if type(a) is not torch.Tensor or a.dtype is not dtype or a.requires_grad or a.is_neg():
            return False
        if a.device != args[0].device:
            return False
    return True


def _tensor(what: str, x: Any, dtype: Any, place: Any) -> Any:
    """Convert to a tensor, on the device of the other tensors."""
    try:
        found = x if isinstance(x, torch.Tensor) else torch.as_tensor(x, device=place)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{what} is {brief(x)}; expected a tensor of real numbers.") from None
    if found.is_complex():  # .to() would drop the imaginary part
        raise InputError(f"{what} is complex; expected a tensor of real numbers.")
    return found.to(dtype)


def _fitting(signature: Any, tensors: Sequence[Any]) -> list[Any]:
    """Check devices and shapes, and broadcast the leading axes."""
    shapes, place = list(signature.inputs.values()), tensors[0].device
    if place.type not in ("cpu", "cuda"):
        raise InputError(
            f'{signature.name}: input "{next(iter(signature.inputs))}" is on {place}; expected cpu or cuda.'
        )
    for (name, shape), a in zip(signature.inputs.items(), tensors, strict=True):
        if a.device != place:
            raise InputError(
                f'{signature.name}: input "{name}" is on {a.device}, but others are on {place}: call a.to("{place}").'
            )
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
    """Return the PyTorch operator of `function`: one tensor per input, all with the same leading axes."""
    if id(function) not in _operators:
        _operators[id(function)] = _made(function), function
    return _operators[id(function)][0]


def _on_gpu(function: Function, tensors: Sequence[Any]) -> list[Any]:
    """Run a kernel in PyTorch's current stream, after the work queued there and before any later work."""
    first = tensors[0]
    lead = first.shape[: first.ndim - len(function.inputs[0])]
    dense, kernel = [a.contiguous() for a in tensors], cast("CudaKernel | StateKernel", function.kernel)
    how = {"dtype": first.dtype, "device": first.device}
    results = [poisoned(torch.empty((*lead, *shape), **how)) for shape in function.outputs]
    if lead.numel():
        with torch.cuda.device(first.device):
            stream = torch.cuda.current_stream().cuda_stream
            kernel.filled(stream, lead.numel(), [a.data_ptr() for a in (*dense, *results)])
    return results


def _backward(function: Function, ctx: Any, weights: Sequence[Any]) -> Any:
    """Return the gradients of the inputs that need one; a result without a weight has weight zero."""
    wrt = tuple(k for k, needed in enumerate(ctx.needs_input_grad) if needed)
    filled = [
        torch.zeros(shape, dtype=dtype, device=place) if w is None else w
        for w, (shape, dtype, place) in zip(weights, ctx.results, strict=True)
    ]
    found = operator(function.cotangent(wrt))(*ctx.saved_tensors, *filled)
    gradients = dict(zip(wrt, found if len(wrt) > 1 else [found], strict=True))
    return tuple(gradients.get(k) for k in range(len(function.inputs)))


def _made(function: Function) -> Any:
    several = len(function.outputs) > 1
    taken = ", ".join(f"Tensor a{k}" for k in range(len(function.inputs)))
    gives = f"({', '.join(['Tensor'] * len(function.outputs))})" if several else "Tensor"

    def run(*tensors: Any) -> Any:
        if tensors[0].is_cuda:
            results = _on_gpu(function.on("cuda"), tensors)
        else:
            found = function.on("cpu").kernel(*(a.detach().numpy() for a in tensors))
            results = [torch.as_tensor(x) for x in (found.values() if several else [found])]
        return tuple(results) if several else results[0]

    def fake(*tensors: Any) -> Any:
        first = tensors[0]
        lead = first.shape[: first.ndim - len(function.inputs[0])]
        results = [first.new_empty((*lead, *shape)) for shape in function.outputs]
        return tuple(results) if several else results[0]

    def kept(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.results = [(x.shape, x.dtype, x.device) for x in (output if several else [output])]

    def batched(info: Any, dims: Any, *tensors: Any) -> Any:
        """Evaluate with one more leading axis for all arguments."""
        moved = [
            a.expand((info.batch_size, *a.shape)) if d is None else a.movedim(d, 0)
            for a, d in zip(tensors, dims, strict=True)
        ]
        return made(*moved), (0,) * len(function.outputs) if several else 0

    name = f"bellcrank::kernel{next(_numbers)}"
    made = torch.library.custom_op(name, run, mutates_args=(), schema=f"({taken}) -> {gives}")
    made.register_fake(fake)
    made.register_autograd(lambda ctx, *weights: _backward(function, ctx, weights), setup_context=kept)
    made.register_vmap(batched)
    return made
