# The operators in torch.library: schemas, kernels, shapes and gradients, generated from the definitions.
from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from graft import _operators
from graft._arrays import threads_for
from graft._definitions import (
    FIXED_SIZE_DEFINITIONS,
    Definition,
    Tensor,
    arranged,
    check_list,
    is_integer_array,
    literal,
    load_definitions,
    make_function,
    parameters,
    shape_values,
)
from graft.torch import _gradients

NAMESPACE = "graft"

_DTYPES = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3fn",
    torch.int8: "i8",
    torch.int32: "i32",
    torch.int64: "i64",
}
_TORCH_TYPES = {name: dtype for dtype, name in _DTYPES.items()}
_SCHEMA_TYPES = {"float": "float", "int": "int", "string": "str", "floats": "float[]", "ints": "int[]"}
_SCHEMA_PORTS = {
    "input": "Tensor {}",
    "optional_input": "Tensor? {}=None",
    "variadic_input": "Tensor[] {}",
    "shape_input": "SymInt[] {}",
}
_MOST_PLANS = 4096


# New names of attributes: PyTorch's Inductor passes the keywords of an operator to a function that has a parameter
# `kernel`.
_KEYWORDS = {"kernel": "kernel_size"}


@dataclasses.dataclass(frozen=True)
class Registered:
    """An operator of torch.ops."""

    definition: Definition
    namespace: str  # "graft", or the namespace of a user's library

    @property
    def name(self) -> str:
        return f"{self.namespace}::{self.definition.function}"

    @property
    def overload(self) -> Any:
        return getattr(getattr(torch.ops, self.namespace), self.definition.function).default

    @property
    def gradient(self) -> Callable[..., Any] | None:
        return _gradients.GRADIENTS.get(self.definition.function) if self.namespace == NAMESPACE else None

    @property
    def suffix(self) -> str:
        """The suffix of the names of the operator's generated functions in the globals of this module."""
        return f"{self.namespace}_{self.definition.function}"


def keyword(attribute: str) -> str:
    """Returns the attribute's name in the schemas of torch.ops."""
    return _KEYWORDS.get(attribute, attribute)


def values_of(definition: Definition, keywords: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the values of all attributes in the order of the definition: the value in `keywords`, or else the
    default."""
    return tuple(keywords.get(keyword(info.name), info.default) for info in definition.attributes)


def _schema(definition: Definition) -> str:
    """Returns the operator's schema for torch.library. Attributes are keywords with defaults, so that a recorded call
    has only the attributes that differ from their defaults."""
    parts = [_SCHEMA_PORTS[port.kind].format(port.name) for port in definition.inputs]
    if definition.attributes:
        parts.append("*")
    for info in definition.attributes:
        default = list(info.default) if isinstance(info.default, tuple) else info.default
        parts.append(
            f"{_SCHEMA_TYPES[info.type]} {keyword(info.name)}" + ("" if info.required else f"={literal(default)}")
        )
    results = ", ".join("Tensor" for _ in definition.outputs)
    return f"{definition.function}({', '.join(parts)}) -> {results if len(definition.outputs) == 1 else f'({results})'}"


def _checked_dtypes(definition: Definition, tensors: Sequence[Tensor]) -> list[str]:
    first = tensors[0].value
    dtypes = []
    for name, port, tensor in tensors:
        found = _DTYPES.get(tensor.dtype) or str(tensor.dtype).removeprefix("torch.")
        if found not in definition.allowed_dtypes(port).split(", "):
            raise ValueError(
                f"{definition.function}: input {name} is {found}; it must be "
                f"{definition.allowed_dtypes(port).replace(', ', ' or ')}"
            )
        if tensor.device != first.device:
            raise ValueError(
                f"{definition.function}: input {name} is on {tensor.device}; it must be on {first.device}, the device "
                "of the first input"
            )
        dtypes.append(found)
    return dtypes


def _plan(
    definition: Definition,
    tensors: Sequence[Tensor],
    sizes: Sequence[Any],
    values: tuple[Any, ...],
    layouts: Sequence[str] = (),
) -> Any:
    return _operators.Plan(
        definition.name,
        definition.json(values),
        _checked_dtypes(definition, tensors),
        [tuple(tensor.value.shape) for tensor in tensors],
        len(definition.outputs),
        list(layouts),
        shape_values=list(sizes),
    )


_VECTOR = 8  # channels of hwc8, which are stored together


_CHANNELS_LAST_TYPES = (torch.float16, torch.bfloat16, torch.float32)


@functools.cache
def _is_hopper(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_available() and torch.cuda.get_device_capability(device)[0] == 9


def _has_channels_last(tensor: torch.Tensor) -> bool:
    return not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)


@functools.lru_cache(maxsize=4096)
def _hwc8_ports(definition: Definition, values: tuple[Any, ...], dtype: str) -> tuple[bool, ...]:
    """Returns for each port whether its layout is hwc8 if the first input is hwc8. Returns an empty tuple where the
    operator does not support hwc8."""
    layouts = json.loads(_operators.layouts(definition.name, definition.json(values), dtype, "hwc8", 4))
    return tuple(layout == "hwc8" for layout in layouts or ())


def _channels_last_ports(
    definition: Definition, tensors: Sequence[torch.Tensor], values: tuple[Any, ...], shape: Sequence[Any]
) -> tuple[bool, ...]:
    """Returns for each input and the result whether the kernels use it with channels last; empty: all are row-major.

    As in PyTorch's own convolution, channels last is used where x or the weight has this memory format.
    """
    x = tensors[0]
    if not definition.is_plain or len(definition.outputs) > 1:
        return ()
    # In f32 the kernels for hwc8 are TF32 kernels for Hopper; on other GPUs only a slow kernel supports hwc8 in f32.
    if x.dim() != 4 or x.dtype not in _CHANNELS_LAST_TYPES or (x.dtype == torch.float32 and not _is_hopper(x.device)):
        return ()
    ports = _hwc8_ports(definition, values, _DTYPES[x.dtype])
    asked = [tensor for tensor, is_hwc8 in zip(tensors, ports) if is_hwc8]
    if not any(_has_channels_last(tensor) for tensor in asked):
        return ()
    # Channels that do not fill whole vectors are copied to and from padded memory. The copy pays off on one side of a
    # convolution, but not on both, and not in other operators.
    full = [x.shape[1] % _VECTOR == 0, shape[1] % _VECTOR == 0]
    if not (any(full) if len(asked) > 1 else all(full)):
        return ()
    return (*ports[: len(tensors)], *ports[len(definition.inputs) :])


class _Call:
    """The properties of a plan, read once so that a run does not have to ask the plan for them."""

    __slots__ = ("channels_last", "dtypes", "run_cpu", "run_cuda", "shapes", "workspace")

    def __init__(self, plan: Any, channels_last: tuple[bool, ...] = ()) -> None:
        self.shapes = plan.output_shapes
        self.dtypes = [_TORCH_TYPES[dtype] for dtype in plan.output_dtypes]
        self.workspace = plan.workspace_bytes
        self.run_cuda = plan.run_cuda
        self.run_cpu = plan.run_cpu
        self.channels_last = channels_last


def _keep(calls: dict[Any, _Call], key: Any, call: _Call) -> _Call:
    if len(calls) >= _MOST_PLANS:
        calls.clear()  # a program whose shapes change with every call must not fill the memory
    calls[key] = call
    return call


def _new_call(
    calls: dict[Any, _Call], key: Any, definition: Definition, inputs: Sequence[Any], values: Sequence[Any]
) -> _Call:
    return _keep(calls, key, _Call(_plan(definition, *arranged(definition, inputs), definition.convert(values))))


def _new_strided_call(
    definition: Definition, tensors: Sequence[Tensor], sizes: Sequence[Any], values: Sequence[Any]
) -> _Call:
    values = definition.convert(values)
    plan = _plan(definition, tensors, sizes, values)
    ports = _channels_last_ports(definition, [each.value for each in tensors], values, plan.output_shapes[0])
    if ports and tensors[0].value.is_cuda:
        plan = _plan(definition, tensors, sizes, values, ["hwc8" if is_hwc8 else "linear" for is_hwc8 in ports])
    return _Call(plan, ports)


def _whole_vectors(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy of the tensor as N,H,W,C with the channels padded to a multiple of 8; the padding is
    uninitialized."""
    n, c, h, w = tensor.shape
    padded = tensor.new_empty((n, h, w, -(-c // _VECTOR) * _VECTOR))
    padded.narrow(3, 0, c).copy_(tensor.permute(0, 2, 3, 1))
    return padded


def _as_hwc8(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.shape[1] % _VECTOR != 0:
        return _whole_vectors(tensor)
    tensor = tensor.contiguous(memory_format=torch.channels_last)
    # The kernels load vectors of 16 bytes, which have to be aligned.
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone(memory_format=torch.channels_last)


def _strided(definition: Definition, device: str, calls: dict[Any, _Call]) -> Callable[..., Any]:
    """Returns the function that runs the kernel where not all inputs are row-major: with channels last if the kernel
    supports it, otherwise on row-major copies. The function stores the plans that it creates in `calls`."""

    def run(call: _Call, tensors: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        addresses = [tensor.data_ptr() for tensor in (*tensors, *outputs)]
        if device == "CPU":
            call.run_cpu(addresses, threads_for(max(outputs[0].numel(), tensors[0].numel())))
            return
        index = outputs[0].get_device()
        stream = _current_stream(index)
        if index != _current_device():
            with torch.cuda.device(index):
                _run_cuda(call, addresses, stream)
        else:
            _run_cuda(call, addresses, stream)

    def strided(inputs: Sequence[Any], values: Sequence[Any]) -> Any:
        given, sizes = arranged(definition, inputs)
        tensors = [tensor.value for tensor in given]
        key = (
            *[(tensor.dtype, tensor.shape, tensor.stride()) for tensor in tensors],
            *sizes,
            tensors[0].get_device(),
            *[tuple(value) if isinstance(value, list) else value for value in values],
        )
        call = calls.get(key) or _keep(calls, key, _new_strided_call(definition, given, sizes, values))
        x = tensors[0]
        if not call.channels_last:
            outputs = [x.new_empty(shape, dtype=dtype) for shape, dtype in zip(call.shapes, call.dtypes)]
            run(call, [tensor.contiguous() for tensor in tensors], outputs)
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        (shape,) = call.shapes
        y = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
        if device == "CPU":  # the CPU kernels are row-major; the result has the memory format that it has on a GPU
            contiguous = x.new_empty(shape)
            run(call, [tensor.contiguous() for tensor in tensors], [contiguous])
            return y.copy_(contiguous)
        stored = [_as_hwc8(t) if is_hwc8 else t.contiguous() for t, is_hwc8 in zip(tensors, call.channels_last)]
        if shape[1] % _VECTOR == 0:
            run(call, stored, [y])
            return y
        n, c, h, w = shape
        padded = x.new_empty((n, h, w, -(-c // _VECTOR) * _VECTOR))
        run(call, stored, [padded])
        return y.copy_(padded.narrow(3, 0, c).permute(0, 3, 1, 2))

    return strided


# The checks in the public functions of torch.cuda take longer than the launch of a kernel.
_current_device = getattr(torch._C, "_cuda_getDevice", None)
_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_allocate = getattr(torch._C, "_cuda_cudaCachingAllocator_raw_alloc", None)
_free = getattr(torch._C, "_cuda_cudaCachingAllocator_raw_delete", None)


def _refuse_forward_mode(name: str) -> None:
    raise NotImplementedError(
        f"{name} has no forward-mode derivative (torch.func.jvp, jacfwd, hessian). Use reverse mode: torch.func.vjp, "
        "grad, or backward()"
    )


def _first(definition: Definition) -> str:
    """Returns the Python expression for the first input tensor in generated code."""
    port = definition.inputs[0]
    return f"{port.name}[0]" if port.is_variadic else port.name


def _has_type_of_first(definition: Definition, output: int) -> bool:
    return all(row[len(definition.inputs) + output] == row[0] for row in definition.rows)


def _kernel(registered: Registered, device: str) -> Callable[..., Any]:
    """Generates the function that torch.library calls on `device`, as straight-line code: calls of Python functions
    cost more than a small kernel."""
    definition = registered.definition
    values = [keyword(info.name) for info in definition.attributes]
    lists = {keyword(info.name) for info in definition.attributes if info.type in ("floats", "ints")}
    x = _first(definition)
    lines = [
        f"def kernel({parameters(definition, names=_KEYWORDS)}):",
        # Without this check PyTorch would assume that the tangent of the result is zero.
        f"    if _forward_mode._current_level >= 0: _refuse_forward_mode({registered.name!r})",
    ]
    arguments = f"({''.join(f'{port.name}, ' for port in definition.inputs)}), ({''.join(f'{v}, ' for v in values)})"
    key: list[str] = []
    required: list[str] = []  # addresses
    optional: list[str] = []
    for port in definition.inputs:
        name = port.name
        if port.is_shape:
            key.append(f"tuple({name})")
        elif port.is_variadic:
            lines.append(f"    for _each in {name}:")
            lines.append(f"        if not _each.is_contiguous(): return _strided({arguments})")
            key.append(f"*[(_each.dtype, _each.shape) for _each in {name}]")
            required.append(f"*[_each.data_ptr() for _each in {name}]")
        elif port.is_optional:
            lines.append(f"    if {name} is not None and not {name}.is_contiguous(): return _strided({arguments})")
            key.append(f"None if {name} is None else ({name}.dtype, {name}.shape)")
            optional.append(name)
        else:
            lines.append(f"    if not {name}.is_contiguous(): return _strided({arguments})")
            key += [f"{name}.dtype", f"{name}.shape"]
            required.append(f"{name}.data_ptr()")
    # A plan holds copies of weights from attributes, which are on one device.
    key += [f"{x}.get_device()", *(f"tuple({name})" if name in lists else name for name in values)]
    lines.append(f"    _key = ({', '.join(key)})")
    lines.append("    _call = _calls.get(_key)")
    lines.append(f"    if _call is None: _call = _new_call(_calls, _key, _definition, {arguments})")
    outputs = [f"_y{i}" for i in range(len(definition.outputs))]
    for i, y in enumerate(outputs):
        dtype = "" if _has_type_of_first(definition, i) else f", dtype=_call.dtypes[{i}]"
        lines.append(f"    {y} = {x}.new_empty(_call.shapes[{i}]{dtype})")
    written = [f"{y}.data_ptr()" for y in outputs]
    if optional:
        lines.append(f"    _addresses = [{', '.join(required)}]")
        lines += [f"    if {name} is not None: _addresses.append({name}.data_ptr())" for name in optional]
        lines.append(f"    _addresses += ({', '.join(written)},)")
    else:
        lines.append(f"    _addresses = ({', '.join([*required, *written])},)")
    if device == "CPU":
        lines.append(f"    _call.run_cpu(_addresses, _threads_for(max(_y0.numel(), {x}.numel())))")
    else:
        lines += [
            f"    _index = {x}.get_device()",
            "    _stream = _current_stream(_index)",
            "    if _index != _current_device():",
            "        with _cuda.device(_index): _run_cuda(_call, _addresses, _stream)",
            "    elif _call.workspace:",
            "        _run_cuda(_call, _addresses, _stream)",
            "    else:",
            "        _call.run_cuda(_addresses, 0, _stream)",
        ]
    lines.append(f"    return {', '.join(outputs)}")
    local: dict[str, Any] = {}
    calls: dict[Any, _Call] = {}
    scope = {
        "_calls": calls,
        "_cuda": torch.cuda,
        "_current_device": _current_device,
        "_current_stream": _current_stream,
        "_definition": definition,
        "_forward_mode": torch.autograd.forward_ad,
        "_new_call": _new_call,
        "_refuse_forward_mode": _refuse_forward_mode,
        "_run_cuda": _run_cuda,
        "_strided": _strided(definition, device, calls),
        "_threads_for": threads_for,
    }
    exec("\n".join(lines), scope, local)  # noqa: S102
    return local["kernel"]


def _run_cuda(call: _Call, addresses: Sequence[int], stream: int) -> None:
    # The allocator reuses the memory in the order of the stream; during a capture the memory comes from the graph's
    # pool.
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


def symbolic_shapes(
    definition: Definition, tensors: Sequence[Tensor], sizes: Sequence[Any], values: tuple[Any, ...]
) -> list[list[Any]]:
    """Returns the shapes of the outputs as expressions of the sizes of the tensors and of the values of shape
    inputs."""
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

    shapes = json.dumps([[named(size) for size in each] for each in (*(t.value.shape for t in tensors), *sizes)])
    found = json.loads(_operators.infer_symbolic(definition.name, definition.json(values), shapes))
    return [[evaluate(size) for size in shape] for shape in found]


def output_types(definition: Definition, tensors: Sequence[Tensor]) -> list[torch.dtype]:
    dtypes = definition.output_dtypes(_checked_dtypes(definition, tensors), [tensor.port for tensor in tensors])
    return [_TORCH_TYPES[dtype] for dtype in dtypes]


def _fake(definition: Definition) -> Callable[..., Any]:
    def fake(*inputs: Any, **attributes: Any) -> Any:
        tensors, sizes = arranged(definition, inputs)
        values = definition.convert(values_of(definition, attributes))
        if all(isinstance(size, int) for each in (*(t.value.shape for t in tensors), *sizes) for size in each):
            shapes = _plan(definition, tensors, sizes, values).output_shapes
        else:
            shapes = symbolic_shapes(definition, tensors, sizes, values)
        x = tensors[0].value
        is_last = _channels_last_ports(definition, [tensor.value for tensor in tensors], values, shapes[0])
        memory_format = torch.channels_last if is_last else torch.contiguous_format
        outputs = [
            torch.empty(shape, dtype=dtype, device=x.device, memory_format=memory_format)
            for shape, dtype in zip(shapes, output_types(definition, tensors))
        ]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    return fake


def _refuse_vmap(registered: Registered) -> Callable[..., Any]:
    def refuse(info: Any, in_dims: Any, *inputs: Any, **attributes: Any) -> Any:
        raise NotImplementedError(
            f"{registered.name} has no rule for torch.vmap: its first axis is the batch. Call it on the whole batch, "
            "with the mapped axis flattened into the first, x.flatten(0, 1); or once for each element"
        )

    return refuse


def _found_gradients(registered: Registered, ctx: Any, grad: torch.Tensor, given: Sequence[str]) -> tuple[Any, ...]:
    """Returns the gradients of the inputs named `given`, computed from the tensors and values that `ctx` has saved.
    Raises NotImplementedError where the operator has no gradient."""
    gradient = registered.gradient
    if gradient is None:
        raise NotImplementedError(f"{registered.name} has no gradient")
    names = [port.name for port in registered.definition.inputs]
    tensors = {**dict.fromkeys(names), **dict(zip(given, ctx.saved_tensors))}
    needed = {**dict.fromkeys(names, False), **dict(zip(given, ctx.needs_input_grad))}
    found = gradient(grad, tensors, ctx.values, needed)
    return tuple(found.get(name) for name in given)


def _flat(definition: Definition, inputs: Sequence[Any]) -> list[Any]:
    """Returns the inputs with each tensor of a list as an input of its own: autograd ignores tensors in lists."""
    flat: list[Any] = []
    for port, value in zip(definition.inputs, inputs):
        flat += value if port.is_variadic else [value]
    return flat


def _with_list(definition: Definition, flat: Sequence[Any]) -> list[Any]:
    """Reverses `_flat`: the tensors of a variadic input, which is the last input, become a list again."""
    before = len(definition.inputs) - definition.inputs[-1].is_variadic
    return [*flat[:before], list(flat[before:])] if definition.inputs[-1].is_variadic else list(flat)


def _transformed(registered: Registered) -> Callable[..., Any]:
    """Returns the operator for the transforms of torch.func, which ignore gradients of torch.library.

    The arguments of the autograd function are the inputs, then the attributes.
    """
    definition = registered.definition
    names = [port.name for port in definition.inputs]

    def divided(arguments: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        count = len(arguments) - len(definition.attributes)
        return arguments[:count], {info.name: value for info, value in zip(definition.attributes, arguments[count:])}

    class Transformed(torch.autograd.Function):
        @staticmethod
        def forward(*arguments: Any) -> Any:
            inputs, attributes = divided(arguments)
            # Calls the public function again, which dispatches to the next inner transform or, without one, to the
            # kernel.
            return _FUNCTIONS[registered](*_with_list(definition, inputs), **attributes)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            if registered.gradient is None:
                return
            given, ctx.values = divided(inputs)
            ctx.save_for_backward(*given)

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> tuple[Any, ...]:
            return (*_found_gradients(registered, ctx, grads[0], names), *[None] * len(definition.attributes))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> None:
            _refuse_forward_mode(registered.name)

        vmap = staticmethod(_refuse_vmap(registered))

    def call(inputs: Sequence[Any], values: Sequence[Any]) -> Any:
        return Transformed.apply(*_flat(definition, inputs), *values)

    return call


def _register_gradient(registered: Registered, library: Any) -> None:
    definition = registered.definition
    names = [port.name for port in definition.inputs]

    def setup_context(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any) -> None:
        if registered.gradient is None:
            return
        ctx.save_for_backward(*inputs)
        values = values_of(definition, keyword_only_inputs)
        ctx.values = {info.name: value for info, value in zip(definition.attributes, values)}

    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[Any, ...]:
        # PyTorch saves only the inputs that the call passed: optional inputs at the end may be missing.
        return _found_gradients(registered, ctx, grads[0], names[: len(ctx.saved_tensors)])

    torch.library.register_autograd(registered.name, backward, setup_context=setup_context, lib=library)


_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
_is_compiling = torch.compiler.is_compiling
_tracing_state = torch._C._get_tracing_state
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_has_transforms = torch._C._are_functorch_transforms_active
_is_grad_enabled = torch.is_grad_enabled


def _body(registered: Registered) -> list[str]:
    """Returns the lines of the body of the operator's public Python function. They call PyTorch's dispatcher; where no
    mode, transform, trace or gradient needs the dispatcher, they call the CUDA kernel directly, which takes half of the
    time."""
    definition = registered.definition
    suffix = registered.suffix
    inputs = [port.name for port in definition.inputs]
    arguments = ", ".join([*inputs, *(f"{keyword(info.name)}={info.name}" for info in definition.attributes)])
    values = "".join(f"{info.name}, " for info in definition.attributes)
    lines = []
    plain: list[str] = []
    needs: list[str] = []
    for port in definition.inputs:
        name = port.name
        if port.is_shape:
            lines.append(
                f"if _is_integer_array({name}): {name} = _shape_values({definition.function!r}, {name!r}, {name})"
            )
            # In a trace sizes are tensors, and PyTorch 2.11 refuses a list of tensors for SymInt[].
            lines.append(
                f"elif not _is_compiling() and _tracing_state() is not None: {name} = [int(_each) for _each in {name}]"
            )
        elif port.is_variadic:
            lines.append(f"_check_list({definition.function!r}, {name!r}, {name})")
            plain.append(f"all(type(_each) in _PLAIN for _each in {name})")
            needs.append(f"any(_each.requires_grad for _each in {name})")
        elif port.is_optional:
            needs.append(f"({name} is not None and {name}.requires_grad)")
        else:
            plain.append(f"type({name}) in _PLAIN")
            needs.append(f"{name}.requires_grad")
    lines += [
        "if not _is_compiling() and _has_transforms():",
        f"    return _transformed_{suffix}(({', '.join(inputs)},), ({values}))",
    ]
    if _operators.has_cuda():
        lines += [
            f"if (not _is_compiling() and {plain[0]} and {_first(definition)}.is_cuda and _tracing_state() is None",
            "        and not _dispatch_modes() and not _function_modes()",
            f"        and not (_is_grad_enabled() and ({' or '.join(needs)}))):",
            f"    return _cuda_{suffix}({arguments})",
        ]
    given = ", ".join(f"{keyword(info.name)!r}: {info.name}" for info in definition.attributes)
    return [*lines, f"return _operator_{suffix}({', '.join(inputs)}, **_given({{{given}}}, _defaults_{suffix}))"]


def _given(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Returns the values that differ from the defaults, so that compiled code passes only these values."""
    return {
        name: value
        for name, value in values.items()
        if name not in defaults or (tuple(value) if isinstance(value, list) else value) != defaults[name]
    }


# Functions that the lines of `_body` call. torch.compile looks names up in the globals of this module.
_is_integer_array = is_integer_array
_shape_values = shape_values
_check_list = check_list

_FUNCTIONS: dict[Registered, Any] = {}


def registered_operators() -> list[Registered]:
    """Returns Graft's operators, then the operators of libraries that were loaded."""
    return list(_FUNCTIONS)


def _register(definition: Definition, namespace: str, library: Any) -> Any:
    registered = Registered(definition, namespace)
    name, suffix = definition.function, registered.suffix
    library.define(_schema(definition), tags=(torch.Tag.pt2_compliant_tag,))
    library.impl(name, _kernel(registered, "CPU"), "CPU")
    if _operators.has_cuda():
        kernel = globals()[f"_cuda_{suffix}"] = _kernel(registered, "CUDA")
        library.impl(name, kernel, "CUDA")
    torch.library.register_fake(registered.name, _fake(definition), lib=library)
    torch.library.register_vmap(registered.name, _refuse_vmap(registered), lib=library)
    _register_gradient(registered, library)
    # The parts are in this module's globals, each under its own name, because torch.compile looks names up there.
    globals()[f"_defaults_{suffix}"] = {keyword(i.name): i.default for i in definition.attributes if not i.required}
    globals()[f"_transformed_{suffix}"] = _transformed(registered)
    globals()[f"_operator_{suffix}"] = registered.overload
    doc = (registered.gradient and registered.gradient.__doc__) or "The operator has no gradient."
    function = make_function(definition, "", _body(registered), globals(), f"{NAMESPACE}.torch", doc)
    return _FUNCTIONS.setdefault(registered, function)


_LIBRARY = torch.library.Library(NAMESPACE, "DEF")
FUNCTIONS: dict[str, Any] = {
    name: _register(definition, NAMESPACE, _LIBRARY) for name, definition in FIXED_SIZE_DEFINITIONS.items()
}


def no_such_function(place: str, name: str, definitions: Mapping[str, Definition]) -> AttributeError:
    """Returns the exception for a missing function `name` of `place`. If `definitions` has an operator of this name,
    the text has the reason: the sizes of its results depend on data."""
    if name in definitions:
        return AttributeError(
            f"{place} has no {name}: the size of its result depends on data, but PyTorch must know it before the "
            "call. The function of this name in graft.ops supports tensors too"
        )
    return AttributeError(f"{place} has no {name}")


class Operators(types.SimpleNamespace):
    """The functions of a user's library; a missing function raises AttributeError naming the library."""

    def __init__(self, library: str, definitions: Mapping[str, Definition], functions: Mapping[str, Any]) -> None:
        super().__init__(**functions)
        self._library = library
        self._definitions = definitions

    def __getattr__(self, name: str) -> Any:
        raise no_such_function(self.__dict__["_library"], name, self.__dict__["_definitions"])


# The functions of each loaded library, and the torch.library.Library that has to live as long as they do.
_LOADED: dict[str, tuple[Operators, Any]] = {}


def load_operators(library: str | os.PathLike[str]) -> Operators:
    """Returns the operators of a library of your own (`graft new`) as functions:
    `load_operators("libmy_ops.so").snake(x)`.

    The operators are in torch.ops too, in a namespace with the library's name: torch.ops.my_ops.snake. They have no
    gradients. Operators whose results have sizes that depend on data are only in graft.ops. Raises graft.Error for a
    file that is not such a library.
    """
    definitions = load_definitions(library)
    path = os.path.realpath(library)
    if path not in _LOADED:
        namespace = re.sub(r"\W", "_", os.path.basename(path).split(".")[0].removeprefix("lib"))
        fragment = torch.library.Library(namespace, "FRAGMENT")
        functions = {
            name: _register(each, namespace, fragment) for name, each in definitions.items() if not each.has_data_sizes
        }
        _LOADED[path] = (Operators(os.path.basename(path), definitions, functions), fragment)
    return _LOADED[path][0]
