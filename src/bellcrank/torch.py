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
from bellcrank.build.differentiable_function import (
    DifferentiableFunction,
    differentiable_function,
    leading_shapes,
    named_arguments,
)
from bellcrank.errors import InputError, brief
from bellcrank.lazy_import import optional_import

if TYPE_CHECKING:
    from bellcrank.emit.cuda.gpu_kernel import CudaKernel
    from bellcrank.emit.cuda.rolled_kernels import StateKernel

torch = optional_import("torch", "torch", "bellcrank.torch")
forward_ad = optional_import("torch.autograd.forward_ad", "torch", "bellcrank.torch")

_numbers = itertools.count()
# PyTorch keeps operators for ever, so they must live as long.
_operators: dict[int, tuple[Any, DifferentiableFunction]] = {}


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
    function, signature = differentiable_function(kernel), kernel.signature
    names, dtype = list(signature.inputs), getattr(torch, signature.dtype)
    several, call_directly = len(signature.outputs) > 1, _direct_call(kernel, function)

    def call(*args: Any, **named: Any) -> Any:
        plain = not named and len(args) == len(names) and _is_plain(args, dtype)
        if plain and (results := call_directly(args)) is not None:
            return results
        arguments = named_arguments(kernel, args, named)
        device = next((a.device for a in arguments.values() if isinstance(a, torch.Tensor)), None)
        tensors = [_tensor(f'{signature.name}: input "{name}"', x, dtype, device) for name, x in arguments.items()]
        tensors = _broadcast(signature, tensors)
        if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(a).tangent is not None for a in tensors):
            raise InputError(f"{signature.name}: forward mode is not supported; use backward(), or kernel.jvp.")
        results = operator(function)(*tensors)
        return dict(zip(signature.outputs, results, strict=True)) if several else results

    call.__name__, call.__doc__ = signature.name, signature.doc or signature.name
    return call


def _direct_call(kernel: Any, function: DifferentiableFunction) -> Callable[[Sequence[Any]], Any]:
    """Return a function of plain tensors that bypasses the operator; it returns None for devices without a kernel."""
    signature, run, on_cpu = kernel.signature, kernel.__call__, kernel.target == "cpu"
    several = len(signature.outputs) > 1

    def directly(args: Sequence[Any]) -> Any:
        if on_cpu and args[0].is_cpu:
            outputs = run(*[a.numpy() for a in args])
            return {k: torch.as_tensor(x) for k, x in outputs.items()} if several else torch.as_tensor(outputs)
        if args[0].is_cuda:
            results = _on_gpu(function.for_target("cuda"), _broadcast(signature, args))
            return dict(zip(signature.outputs, results, strict=True)) if several else results[0]
        return None

    return directly


def _is_plain(args: Sequence[Any], dtype: Any) -> bool:
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


def _tensor(what: str, x: Any, dtype: Any, device: Any) -> Any:
    """Convert to a tensor, on the device of the other tensors."""
    try:
        tensor = x if isinstance(x, torch.Tensor) else torch.as_tensor(x, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{what} is {brief(x)}; expected a tensor of real numbers.") from None
    if tensor.is_complex():  # .to() would drop the imaginary part
        raise InputError(f"{what} is complex; expected a tensor of real numbers.")
    return tensor.to(dtype)


def _broadcast(signature: Any, tensors: Sequence[Any]) -> list[Any]:
    """Check devices and shapes, and broadcast the leading axes."""
    names, device = list(signature.inputs), tensors[0].device
    if device.type not in ("cpu", "cuda"):
        raise InputError(f'{signature.name}: input "{names[0]}" is on {device}; expected cpu or cuda.')
    for name, a in zip(names, tensors, strict=True):
        if a.device != device:
            raise InputError(
                f'{signature.name}: input "{name}" is on {a.device}, but others are on {device}: call a.to("{device}").'
            )
    lead, heads = leading_shapes(signature, tensors, torch.broadcast_shapes)
    if all(head == lead for head in heads):
        return list(tensors)
    return [a.expand((*lead, *shape)) for a, shape in zip(tensors, signature.inputs.values(), strict=True)]


def operator(function: DifferentiableFunction) -> Any:
    """Return the PyTorch operator of `function`: one tensor per input, all with the same leading axes."""
    if id(function) not in _operators:
        _operators[id(function)] = _create_operator(function), function
    return _operators[id(function)][0]


def _on_gpu(function: DifferentiableFunction, tensors: Sequence[Any]) -> list[Any]:
    """Run a kernel in PyTorch's current stream, after the work queued there and before any later work."""
    first = tensors[0]
    lead = first.shape[: first.ndim - len(function.input_shapes[0])]
    dense, kernel = [a.contiguous() for a in tensors], cast("CudaKernel | StateKernel", function.kernel)
    how = {"dtype": first.dtype, "device": first.device}
    results = [poisoned(torch.empty((*lead, *shape), **how)) for shape in function.output_shapes]
    if lead.numel():
        with torch.cuda.device(first.device):
            stream = torch.cuda.current_stream().cuda_stream
            kernel.filled(stream, lead.numel(), [a.data_ptr() for a in (*dense, *results)])
    return results


def _backward(function: DifferentiableFunction, ctx: Any, weights: Sequence[Any]) -> Any:
    """Return the gradients of the inputs that need one; a result without a weight has weight zero."""
    wrt = tuple(k for k, needed in enumerate(ctx.needs_input_grad) if needed)
    filled = [
        torch.zeros(shape, dtype=dtype, device=place) if w is None else w
        for w, (shape, dtype, place) in zip(weights, ctx.results, strict=True)
    ]
    gradients_wrt = operator(function.cotangent(wrt))(*ctx.saved_tensors, *filled)
    gradients = dict(zip(wrt, gradients_wrt if len(wrt) > 1 else [gradients_wrt], strict=True))
    return tuple(gradients.get(k) for k in range(len(function.input_shapes)))


def _create_operator(function: DifferentiableFunction) -> Any:
    several = len(function.output_shapes) > 1
    schema_inputs = ", ".join(f"Tensor a{k}" for k in range(len(function.input_shapes)))
    schema_outputs = f"({', '.join(['Tensor'] * len(function.output_shapes))})" if several else "Tensor"

    def run(*tensors: Any) -> Any:
        if tensors[0].is_cuda:
            results = _on_gpu(function.for_target("cuda"), tensors)
        else:
            outputs = function.for_target("cpu").kernel(*(a.detach().numpy() for a in tensors))
            results = [torch.as_tensor(x) for x in (outputs.values() if several else [outputs])]
        return tuple(results) if several else results[0]

    def fake(*tensors: Any) -> Any:
        first = tensors[0]
        lead = first.shape[: first.ndim - len(function.input_shapes[0])]
        results = [first.new_empty((*lead, *shape)) for shape in function.output_shapes]
        return tuple(results) if several else results[0]

    def save_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.results = [(x.shape, x.dtype, x.device) for x in (output if several else [output])]

    def batched(info: Any, dims: Any, *tensors: Any) -> Any:
        """Evaluate with one more leading axis for all arguments."""
        pairs = zip(tensors, dims, strict=True)
        expanded = [a.expand((info.batch_size, *a.shape)) if d is None else a.movedim(d, 0) for a, d in pairs]
        return operator_op(*expanded), (0,) * len(function.output_shapes) if several else 0

    name = f"bellcrank::kernel{next(_numbers)}"
    operator_op = torch.library.custom_op(name, run, mutates_args=(), schema=f"({schema_inputs}) -> {schema_outputs}")
    operator_op.register_fake(fake)
    operator_op.register_autograd(lambda ctx, *weights: _backward(function, ctx, weights), setup_context=save_context)
    operator_op.register_vmap(batched)
    return operator_op
