# The operators in torch.library: schemas, kernels, shapes and gradients, made from the definitions.
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import torch

from graft import _operators
from graft._arrays import threads_for
from graft._definitions import DEFINITIONS, Definition, make_function, trimmed
from graft.torch import _gradients

NAMESPACE = "graft"

_DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int8: "i8"}
_SCHEMA_TYPES = {"float": "float", "int": "int", "string": "str", "floats": "float[]", "ints": "int[]"}
_MOST_PLANS = 4096


def _schema(definition: Definition) -> str:
    parts = [f"Tensor{'? ' if port.is_optional else ' '}{port.name}" for port in definition.inputs]
    parts += [f"{_SCHEMA_TYPES[info.type]} {info.name}" for info in definition.attributes]
    return f"{definition.function}({', '.join(parts)}) -> {', '.join('Tensor' for _ in definition.outputs)}"


def _checked_dtypes(definition: Definition, tensors: Sequence[torch.Tensor]) -> list[str]:
    dtypes = []
    for i, (port, tensor) in enumerate(zip(definition.inputs, tensors)):
        found = _DTYPES.get(tensor.dtype) or str(tensor.dtype).removeprefix("torch.")
        if found not in definition.allowed_dtypes(i).split(", "):
            raise ValueError(
                f"{definition.function}: input {port.name} is {found}; allowed: {definition.allowed_dtypes(i)}"
            )
        if tensor.device != tensors[0].device:
            raise ValueError(
                f"{definition.function}: input {port.name} is on {tensor.device}; allowed: {tensors[0].device}, as the first"
            )
        dtypes.append(found)
    return dtypes


def _plan_arguments(
    definition: Definition, tensors: Sequence[torch.Tensor], values: tuple[Any, ...]
) -> tuple[Any, ...]:
    dtypes = _checked_dtypes(definition, tensors)
    shapes = [tuple(tensor.shape) for tensor in tensors]
    return definition.name, definition.json(values), dtypes, shapes, len(definition.outputs)


class _Call:
    """A plan with what a run needs of it, asked once."""

    __slots__ = ("run_cpu", "run_cuda", "shape", "workspace")

    def __init__(self, plan: Any) -> None:
        (self.shape,) = plan.output_shapes
        self.workspace = plan.workspace_bytes
        self.run_cuda = plan.run_cuda
        self.run_cpu = plan.run_cpu


def _new_call(
    calls: dict[Any, _Call], key: Any, definition: Definition, inputs: Sequence[Any], values: Sequence[Any]
) -> _Call:
    values = definition.convert(values)
    call = _Call(_operators.Plan(*_plan_arguments(definition, trimmed(definition, inputs), values)))
    if len(calls) >= _MOST_PLANS:
        calls.clear()  # shapes that change with every call must not fill the memory
    calls[key] = call
    return call


# PyTorch's own functions of these take longer than a kernel's launch, for what they check first.
_current_device = getattr(torch._C, "_cuda_getDevice", None)
_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_allocate = getattr(torch._C, "_cuda_cudaCachingAllocator_raw_alloc", None)
_free = getattr(torch._C, "_cuda_cudaCachingAllocator_raw_delete", None)


def _kernel(definition: Definition, device: str) -> Callable[..., Any]:
    """One level of straight-line code: the calls of a small kernel cost more than the kernel."""
    inputs = [port.name for port in definition.inputs]
    optional = {port.name for port in definition.inputs if port.is_optional}
    values = [info.name for info in definition.attributes]
    lists = {info.name for info in definition.attributes if info.type in ("floats", "ints")}
    x = inputs[0]
    lines = [f"def kernel({', '.join(inputs + values)}):"]
    key = []
    for name in inputs:
        if name in optional:
            lines.append(f"    if {name} is not None and not {name}.is_contiguous(): {name} = {name}.contiguous()")
            key.append(f"None if {name} is None else ({name}.dtype, {name}.shape)")
        else:
            lines.append(f"    if not {name}.is_contiguous(): {name} = {name}.contiguous()")
            key += [f"{name}.dtype", f"{name}.shape"]
    # Copies of weights that attributes give belong to one device.
    key += [f"{x}.get_device()", *(f"tuple({name})" if name in lists else name for name in values)]
    lines.append(f"    key = ({', '.join(key)})")
    lines.append("    call = calls.get(key)")
    arguments = f"({', '.join(inputs)},), ({', '.join(values)},)"
    lines.append(f"    if call is None: call = _new_call(calls, key, definition, {arguments})")
    lines.append(f"    y = {x}.new_empty(call.shape)")
    if optional:
        required = [name for name in inputs if name not in optional]
        lines.append(f"    addresses = [{', '.join(f'{name}.data_ptr()' for name in required)}]")
        lines += [
            f"    if {name} is not None: addresses.append({name}.data_ptr())" for name in inputs if name in optional
        ]
        lines.append("    addresses.append(y.data_ptr())")
    else:
        lines.append(f"    addresses = ({', '.join(f'{name}.data_ptr()' for name in inputs)}, y.data_ptr())")
    if device == "CPU":
        lines.append(f"    call.run_cpu(addresses, threads_for(max(y.numel(), {x}.numel())))")
        lines.append("    return y")
    else:
        lines += [
            f"    index = {x}.get_device()",
            "    stream = _current_stream(index)",
            "    if index != _current_device():",
            "        with torch.cuda.device(index): _run_cuda(call, addresses, stream)",
            "    elif call.workspace:",
            "        _run_cuda(call, addresses, stream)",
            "    else:",
            "        call.run_cuda(addresses, 0, stream)",
            "    return y",
        ]
    local: dict[str, Any] = {}
    scope = {
        "torch": torch,
        "threads_for": threads_for,
        "calls": {},
        "definition": definition,
        "_new_call": _new_call,
        "_run_cuda": _run_cuda,
        "_current_device": _current_device,
        "_current_stream": _current_stream,
    }
    exec("\n".join(lines), scope, local)  # noqa: S102
    return local["kernel"]


def _run_cuda(call: _Call, addresses: Sequence[int], stream: int) -> None:
    # Handed out again in the order of the stream; in a capture it comes from the graph's own pool.
    workspace = _allocate(call.workspace, stream) if call.workspace else 0
    try:
        call.run_cuda(addresses, workspace, stream)
    finally:
        if workspace:
            _free(workspace)


_EXPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "min": torch.sym_min,
    "max": torch.sym_max,
    "floor_divide": lambda a, b: a // b,
    "ceil_divide": lambda a, b: -(-a // b),
    # A comparison becomes a guard of the compiled code.
    "equal": lambda a, b: 1 if a == b else 0,
    "less": lambda a, b: 1 if a < b else 0,
}


def _symbolic_shape(definition: Definition, tensors: Sequence[torch.Tensor], values: Sequence[Any]) -> list[Any]:
    _checked_dtypes(definition, tensors)
    symbols: dict[str, Any] = {}

    def named(size: Any) -> Any:
        if isinstance(size, int):
            return size
        name = f"s{len(symbols)}"
        symbols[name] = size
        return name

    def evaluate(size: Any) -> Any:
        if isinstance(size, list):
            return _EXPRESSIONS[size[0]](evaluate(size[1]), evaluate(size[2]))
        return symbols[size] if isinstance(size, str) else size

    shapes = json.dumps([[named(size) for size in tensor.shape] for tensor in tensors])
    text = definition.json(definition.convert(values))
    (shape,) = json.loads(_operators.infer_symbolic(definition.name, text, shapes))
    return [evaluate(size) for size in shape]


def _fake(definition: Definition) -> Callable[..., Any]:
    def fake(*arguments: Any) -> torch.Tensor:
        count = len(definition.inputs)
        tensors = trimmed(definition, arguments[:count])
        values = arguments[count:]
        if all(isinstance(size, int) for tensor in tensors for size in tensor.shape):
            plan = _operators.Plan(*_plan_arguments(definition, tensors, definition.convert(values)))
            (shape,) = plan.output_shapes
        else:
            shape = _symbolic_shape(definition, tensors, values)
        return tensors[0].new_empty(shape)

    return fake


def _refuse_vmap(definition: Definition) -> Callable[..., Any]:
    def refuse(info: Any, in_dims: Any, *arguments: Any) -> Any:
        raise NotImplementedError(
            f"graft::{definition.function} has no vmap rule: its first axis is the batch; reshape the mapped axis into it"
        )

    return refuse


def _register_gradient(definition: Definition, library: Any) -> None:
    gradient = _gradients.GRADIENTS.get(definition.function)
    count = len(definition.inputs)
    names = [port.name for port in definition.inputs]

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs[:count])
        ctx.values = {info.name: value for info, value in zip(definition.attributes, inputs[count:])}

    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        if gradient is None:
            raise NotImplementedError(f"graft::{definition.function} has no gradient")
        tensors = dict(zip(names, ctx.saved_tensors))
        found = gradient(grad, tensors, ctx.values, dict(zip(names, ctx.needs_input_grad)))
        return (*(found.get(name) for name in names), *(None for _ in definition.attributes))

    torch.library.register_autograd(f"graft::{definition.function}", backward, setup_context=setup_context, lib=library)


_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
_is_compiling = torch.compiler.is_compiling
_tracing_state = torch._C._get_tracing_state
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_has_transforms = torch._C._are_functorch_transforms_active
_is_grad_enabled = torch.is_grad_enabled


def _body(definition: Definition) -> list[str]:
    """Through PyTorch's dispatcher, unless nobody listens to it: then the kernel is called at once, in half of the time."""
    name = definition.function
    inputs = [port.name for port in definition.inputs]
    arguments = ", ".join([*inputs, *(info.name for info in definition.attributes)])
    x = inputs[0]
    lines = []
    if _operators.has_cuda():
        needs = " or ".join(
            f"({port.name} is not None and {port.name}.requires_grad)"
            if port.is_optional
            else f"{port.name}.requires_grad"
            for port in definition.inputs
        )
        lines += [
            f"if (not _is_compiling() and type({x}) in _PLAIN and {x}.is_cuda and _tracing_state() is None",
            "        and not _dispatch_modes() and not _function_modes() and not _has_transforms()",
            f"        and not (_is_grad_enabled() and ({needs}))):",
            f"    return _cuda_{name}({arguments})",
        ]
    return [*lines, f"return _operator_{name}({arguments})"]


def _register(definition: Definition, library: Any) -> Any:
    name = definition.function
    library.define(_schema(definition), tags=(torch.Tag.pt2_compliant_tag,))
    library.impl(name, _kernel(definition, "CPU"), "CPU")
    if _operators.has_cuda():
        kernel = globals()[f"_cuda_{name}"] = _kernel(definition, "CUDA")
        library.impl(name, kernel, "CUDA")
    torch.library.register_fake(f"graft::{name}", _fake(definition), lib=library)
    torch.library.register_vmap(f"graft::{name}", _refuse_vmap(definition), lib=library)
    _register_gradient(definition, library)
    # In this module's globals, each under a name of its own: torch.compile looks them up there.
    globals()[f"_operator_{name}"] = getattr(torch.ops.graft, name).default
    gradient = _gradients.GRADIENTS.get(name)
    doc = "Gradients: " + (gradient.__doc__ if gradient else "none.")
    return make_function(definition, "", _body(definition), globals(), "graft.torch", doc)


_LIBRARY = torch.library.Library(NAMESPACE, "DEF")
FUNCTIONS: dict[str, Any] = {name: _register(definition, _LIBRARY) for name, definition in DEFINITIONS.items()}
