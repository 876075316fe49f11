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


def _plan(definition: Definition, tensors: Sequence[torch.Tensor], values: Sequence[Any]) -> Any:
    shapes = [tuple(tensor.shape) for tensor in tensors]
    text = definition.json([tuple(value) if isinstance(value, list) else value for value in values])
    return _operators.Plan(definition.name, text, _checked_dtypes(definition, tensors), shapes, len(definition.outputs))


class _Call:
    """A plan with what a run needs of it, asked once."""

    __slots__ = ("run_cpu", "run_cuda", "shape", "workspace")

    def __init__(self, plan: Any) -> None:
        (self.shape,) = plan.output_shapes
        self.workspace = plan.workspace_bytes
        self.run_cuda = plan.run_cuda
        self.run_cpu = plan.run_cpu


def _new_call(calls: dict[Any, _Call], key: Any, definition: Definition, inputs: Sequence[Any], values: Sequence[Any]) -> _Call:
    call = _Call(_plan(definition, trimmed(definition, inputs), values))
    if len(calls) >= _MOST_PLANS:
        calls.clear()  # shapes that change with every call must not fill the memory
    calls[key] = call
    return call


_current_device = torch._C._cuda_getDevice if hasattr(torch._C, "_cuda_getDevice") else None
_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def _run_cuda(call: _Call, tensors: Sequence[Any]) -> torch.Tensor:
    first = tensors[0]
    index = first.get_device()
    if index != _current_device():
        with torch.cuda.device(index):
            return _run_cuda(call, tensors)
    y = first.new_empty(call.shape)
    addresses = [tensor.data_ptr() for tensor in tensors]
    addresses.append(y.data_ptr())
    if call.workspace:
        # Back in the allocator as this returns; it is handed out again in the order of the stream.
        workspace = torch.empty(call.workspace, dtype=torch.uint8, device=first.device)
        call.run_cuda(addresses, workspace.data_ptr(), _current_stream(index))
    else:
        call.run_cuda(addresses, 0, _current_stream(index))
    return y


def _run_cpu(call: _Call, tensors: Sequence[Any]) -> torch.Tensor:
    y = tensors[0].new_empty(call.shape)
    addresses = [tensor.data_ptr() for tensor in tensors]
    addresses.append(y.data_ptr())
    call.run_cpu(addresses, threads_for(max(y.numel(), tensors[0].numel())))
    return y


def _kernel(definition: Definition, run: Callable[..., Any]) -> Callable[..., Any]:
    """Straight-line code: at these times every level of calls counts."""
    inputs = [port.name for port in definition.inputs]
    optional = [port.name for port in definition.inputs if port.is_optional]
    values = [info.name for info in definition.attributes]
    lists = [info.name for info in definition.attributes if info.type in ("floats", "ints")]
    lines = [f"def kernel({', '.join(inputs + values)}):"]
    key = []
    for name in inputs:
        contiguous = f"{name} = {name} if {name}.is_contiguous() else {name}.contiguous()"
        if name in optional:
            lines.append(f"    if {name} is not None: {contiguous}")
            key.append(f"None if {name} is None else ({name}.dtype, {name}.shape)")
        else:
            lines.append(f"    {contiguous}")
            key += [f"{name}.dtype", f"{name}.shape"]
    key += [f"tuple({name})" if name in lists else name for name in values]
    key.append(f"{inputs[0]}.get_device()")  # copies of weights that attributes give belong to one device
    lines.append(f"    key = ({', '.join(key)})")
    lines.append("    call = calls.get(key)")
    lines.append(f"    if call is None: call = new_call(calls, key, definition, ({', '.join(inputs)},), ({', '.join(values)},))")
    if optional:
        required = [name for name in inputs if name not in optional]
        lines.append(f"    tensors = [{', '.join(required)}]")
        lines += [f"    if {name} is not None: tensors.append({name})" for name in optional]
    else:
        lines.append(f"    tensors = ({', '.join(inputs)},)")
    lines.append("    return run(call, tensors)")
    scope = {"calls": {}, "new_call": _new_call, "definition": definition, "run": run}
    exec("\n".join(lines), scope)  # noqa: S102
    return scope["kernel"]


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
    text = definition.json([tuple(value) if isinstance(value, list) else value for value in values])
    (shape,) = json.loads(_operators.infer_symbolic(definition.name, text, shapes))
    return [evaluate(size) for size in shape]


def _fake(definition: Definition) -> Callable[..., Any]:
    def fake(*arguments: Any) -> torch.Tensor:
        count = len(definition.inputs)
        tensors = trimmed(definition, arguments[:count])
        values = arguments[count:]
        if all(isinstance(size, int) for tensor in tensors for size in tensor.shape):
            (shape,) = _plan(definition, tensors, values).output_shapes
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


def _register(definition: Definition, library: Any) -> Any:
    name = definition.function
    library.define(_schema(definition), tags=(torch.Tag.pt2_compliant_tag,))
    library.impl(name, _kernel(definition, _run_cpu), "CPU")
    if _operators.has_cuda():
        library.impl(name, _kernel(definition, _run_cuda), "CUDA")
    torch.library.register_fake(f"graft::{name}", _fake(definition), lib=library)
    torch.library.register_vmap(f"graft::{name}", _refuse_vmap(definition), lib=library)
    _register_gradient(definition, library)
    inputs = ", ".join(port.name for port in definition.inputs)
    values = ", ".join(info.name for info in definition.attributes)
    names = {"_operator": getattr(torch.ops.graft, name).default, "__name__": "graft.torch"}
    gradient = _gradients.GRADIENTS.get(name)
    doc = "Gradients: " + (gradient.__doc__ if gradient else "none.")
    return make_function(definition, "", f"return _operator({inputs}, {values})", names, doc)


_LIBRARY = torch.library.Library(NAMESPACE, "DEF")
FUNCTIONS: dict[str, Any] = {name: _register(definition, _LIBRARY) for name, definition in DEFINITIONS.items()}
