# The operators in torch.library: schemas, kernels, shapes and gradients, made from the definitions.
from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from graft import _operators
from graft._arrays import threads_for
from graft._definitions import FIXED_SIZE_DEFINITIONS, Definition, literal, make_function, parameters, trimmed
from graft.torch import _gradients

NAMESPACE = "graft"

_DTYPES = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3fn",
    torch.int8: "i8",
}
_SCHEMA_TYPES = {"float": "float", "int": "int", "string": "str", "floats": "float[]", "ints": "int[]"}
_MOST_PLANS = 4096


# PyTorch's Inductor has a parameter `kernel` of its own where it passes on the keywords of an operator.
_KEYWORDS = {"kernel": "kernel_size"}


def keyword(attribute: str) -> str:
    """The attribute's name in the schemas of torch.ops."""
    return _KEYWORDS.get(attribute, attribute)


def values_of(definition: Definition, keywords: Mapping[str, Any]) -> tuple[Any, ...]:
    """All attributes' values, in their order, where these keywords are given."""
    return tuple(keywords.get(keyword(info.name), info.default) for info in definition.attributes)


def _schema(definition: Definition) -> str:
    """Attributes are keywords with defaults, so that a call has only those that differ from them."""
    parts = [f"Tensor? {port.name}=None" if port.is_optional else f"Tensor {port.name}" for port in definition.inputs]
    parts.append("*")
    for info in definition.attributes:
        default = list(info.default) if isinstance(info.default, tuple) else info.default
        parts.append(
            f"{_SCHEMA_TYPES[info.type]} {keyword(info.name)}" + ("" if info.required else f"={literal(default)}")
        )
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


_VECTOR = 8  # channels of hwc8, which are stored together


_CHANNELS_LAST_TYPES = (torch.float16, torch.bfloat16, torch.float32)


@functools.cache
def _is_hopper(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_available() and torch.cuda.get_device_capability(device)[0] == 9


def _has_channels_last(tensor: torch.Tensor) -> bool:
    return not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)


@functools.lru_cache(maxsize=4096)
def _hwc8_ports(definition: Definition, values: tuple[Any, ...], dtype: str) -> tuple[bool, ...]:
    """Of all ports, whether they are hwc8 where the first input is; empty where the operator does not take that."""
    layouts = json.loads(_operators.layouts(definition.name, definition.json(values), dtype, "hwc8", 4))
    return tuple(layout == "hwc8" for layout in layouts or ())


def _channels_last_ports(
    definition: Definition, tensors: Sequence[torch.Tensor], values: tuple[Any, ...], shape: Sequence[Any]
) -> tuple[bool, ...]:
    """Of the inputs and the result, whether the kernels take them with their channels last; empty: all are row-major.

    As in PyTorch's own convolution, the weight may ask for it too.
    """
    x = tensors[0]
    # In f32 these are kernels in TF32 for Hopper; elsewhere only one that is slow takes them.
    if x.dim() != 4 or x.dtype not in _CHANNELS_LAST_TYPES or (x.dtype == torch.float32 and not _is_hopper(x.device)):
        return ()
    ports = _hwc8_ports(definition, values, _DTYPES[x.dtype])
    asked = [tensor for tensor, is_hwc8 in zip(tensors, ports) if is_hwc8]
    if not any(_has_channels_last(tensor) for tensor in asked):
        return ()
    # Other channels are copied to and from whole vectors, which is worth it on one side of a convolution.
    full = [x.shape[1] % _VECTOR == 0, shape[1] % _VECTOR == 0]
    if not (any(full) if len(asked) > 1 else all(full)):
        return ()
    return (*ports[: len(tensors)], *ports[len(definition.inputs) :])


class _Call:
    """A plan with what a run needs of it, asked once."""

    __slots__ = ("channels_last", "run_cpu", "run_cuda", "shape", "workspace")

    def __init__(self, plan: Any, channels_last: tuple[bool, ...] = ()) -> None:
        (self.shape,) = plan.output_shapes
        self.workspace = plan.workspace_bytes
        self.run_cuda = plan.run_cuda
        self.run_cpu = plan.run_cpu
        self.channels_last = channels_last


def _keep(calls: dict[Any, _Call], key: Any, call: _Call) -> _Call:
    if len(calls) >= _MOST_PLANS:
        calls.clear()  # shapes that change with every call must not fill the memory
    calls[key] = call
    return call


def _new_call(
    calls: dict[Any, _Call], key: Any, definition: Definition, inputs: Sequence[Any], values: Sequence[Any]
) -> _Call:
    values = definition.convert(values)
    return _keep(calls, key, _Call(_operators.Plan(*_plan_arguments(definition, trimmed(definition, inputs), values))))


def _new_strided_call(definition: Definition, tensors: Sequence[torch.Tensor], values: Sequence[Any]) -> _Call:
    values = definition.convert(values)
    arguments = _plan_arguments(definition, tensors, values)
    plan = _operators.Plan(*arguments)
    ports = _channels_last_ports(definition, tensors, values, plan.output_shapes[0])
    if ports and tensors[0].is_cuda:
        plan = _operators.Plan(*arguments, ["hwc8" if is_hwc8 else "linear" for is_hwc8 in ports])
    return _Call(plan, ports)


def _whole_vectors(tensor: torch.Tensor) -> torch.Tensor:
    """N,H,W,C with room for whole vectors of channels; what pads may be anything."""
    n, c, h, w = tensor.shape
    padded = tensor.new_empty((n, h, w, -(-c // _VECTOR) * _VECTOR))
    padded.narrow(3, 0, c).copy_(tensor.permute(0, 2, 3, 1))
    return padded


def _as_hwc8(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.shape[1] % _VECTOR != 0:
        return _whole_vectors(tensor)
    tensor = tensor.contiguous(memory_format=torch.channels_last)
    # Its vectors are loaded whole.
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone(memory_format=torch.channels_last)


def _strided(definition: Definition, device: str, calls: dict[Any, _Call]) -> Callable[..., torch.Tensor]:
    """The kernel where not all inputs are row-major: with channels last if it has that, otherwise of copies."""

    def run(call: _Call, tensors: Sequence[torch.Tensor], y: torch.Tensor) -> None:
        addresses = [*[tensor.data_ptr() for tensor in tensors], y.data_ptr()]
        if device == "CPU":
            call.run_cpu(addresses, threads_for(max(y.numel(), tensors[0].numel())))
            return
        index = y.get_device()
        stream = _current_stream(index)
        if index != _current_device():
            with torch.cuda.device(index):
                _run_cuda(call, addresses, stream)
        else:
            _run_cuda(call, addresses, stream)

    def strided(inputs: Sequence[Any], values: Sequence[Any]) -> torch.Tensor:
        tensors = trimmed(definition, inputs)
        key = (
            *[(tensor.dtype, tensor.shape, tensor.stride()) for tensor in tensors],
            tensors[0].get_device(),
            *[tuple(value) if isinstance(value, list) else value for value in values],
        )
        call = calls.get(key) or _keep(calls, key, _new_strided_call(definition, tensors, values))
        x = tensors[0]
        if not call.channels_last:
            y = x.new_empty(call.shape)
            run(call, [tensor.contiguous() for tensor in tensors], y)
            return y
        y = torch.empty(call.shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
        if device == "CPU":  # its kernels are row-major; the result lies as on a GPU
            contiguous = x.new_empty(call.shape)
            run(call, [tensor.contiguous() for tensor in tensors], contiguous)
            return y.copy_(contiguous)
        given = [_as_hwc8(t) if is_hwc8 else t.contiguous() for t, is_hwc8 in zip(tensors, call.channels_last)]
        if call.shape[1] % _VECTOR == 0:
            run(call, given, y)
            return y
        n, c, h, w = call.shape
        padded = x.new_empty((n, h, w, -(-c // _VECTOR) * _VECTOR))
        run(call, given, padded)
        return y.copy_(padded.narrow(3, 0, c).permute(0, 3, 1, 2))

    return strided


# PyTorch's own functions of these take longer than a kernel's launch, for what they check first.
_current_device = getattr(torch._C, "_cuda_getDevice", None)
_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_allocate = getattr(torch._C, "_cuda_cudaCachingAllocator_raw_alloc", None)
_free = getattr(torch._C, "_cuda_cudaCachingAllocator_raw_delete", None)


def _refuse_forward_mode(name: str) -> None:
    raise NotImplementedError(
        f"graft::{name} has no forward-mode derivative (torch.func.jvp, jacfwd, hessian). Use reverse mode: torch.func.vjp, "
        "grad, or backward()"
    )


def _kernel(definition: Definition, device: str) -> Callable[..., Any]:
    """One level of straight-line code: the calls of a small kernel cost more than the kernel."""
    inputs = [port.name for port in definition.inputs]
    optional = {port.name for port in definition.inputs if port.is_optional}
    values = [keyword(info.name) for info in definition.attributes]
    lists = {keyword(info.name) for info in definition.attributes if info.type in ("floats", "ints")}
    x = inputs[0]
    lines = [
        f"def kernel({parameters(definition, names=_KEYWORDS)}):",
        # PyTorch would take the tangent of the result for zero.
        f"    if _forward_mode._current_level >= 0: _refuse_forward_mode({definition.function!r})",
    ]
    arguments = f"({', '.join(inputs)},), ({', '.join(values)},)"
    key = []
    for name in inputs:
        if name in optional:
            lines.append(f"    if {name} is not None and not {name}.is_contiguous(): return strided({arguments})")
            key.append(f"None if {name} is None else ({name}.dtype, {name}.shape)")
        else:
            lines.append(f"    if not {name}.is_contiguous(): return strided({arguments})")
            key += [f"{name}.dtype", f"{name}.shape"]
    # Copies of weights that attributes give belong to one device.
    key += [f"{x}.get_device()", *(f"tuple({name})" if name in lists else name for name in values)]
    lines.append(f"    key = ({', '.join(key)})")
    lines.append("    call = calls.get(key)")
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
    calls: dict[Any, _Call] = {}
    scope = {
        "torch": torch,
        "threads_for": threads_for,
        "calls": calls,
        "strided": _strided(definition, device, calls),
        "definition": definition,
        "_new_call": _new_call,
        "_run_cuda": _run_cuda,
        "_forward_mode": torch.autograd.forward_ad,
        "_refuse_forward_mode": _refuse_forward_mode,
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


def _symbolic_shape(definition: Definition, tensors: Sequence[torch.Tensor], values: tuple[Any, ...]) -> list[Any]:
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
    (shape,) = json.loads(_operators.infer_symbolic(definition.name, definition.json(values), shapes))
    return [evaluate(size) for size in shape]


def _fake(definition: Definition) -> Callable[..., Any]:
    def fake(*inputs: Any, **attributes: Any) -> torch.Tensor:
        tensors = trimmed(definition, inputs)
        values = definition.convert(values_of(definition, attributes))
        if all(isinstance(size, int) for tensor in tensors for size in tensor.shape):
            plan = _operators.Plan(*_plan_arguments(definition, tensors, values))
            (shape,) = plan.output_shapes
        else:
            shape = _symbolic_shape(definition, tensors, values)
        x = tensors[0]
        is_last = _channels_last_ports(definition, tensors, values, shape)
        memory_format = torch.channels_last if is_last else torch.contiguous_format
        return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=memory_format)

    return fake


def _refuse_vmap(definition: Definition) -> Callable[..., Any]:
    def refuse(info: Any, in_dims: Any, *inputs: Any, **attributes: Any) -> Any:
        raise NotImplementedError(
            f"graft::{definition.function} has no rule for torch.vmap: its first axis is the batch. Call it on the whole batch, "
            "with the mapped axis flattened into the first, x.flatten(0, 1); or once for each element"
        )

    return refuse


def _found_gradients(definition: Definition, ctx: Any, grad: torch.Tensor, given: Sequence[str]) -> tuple[Any, ...]:
    """Of the inputs that were given, by what the context has saved."""
    gradient = _gradients.GRADIENTS.get(definition.function)
    if gradient is None:
        raise NotImplementedError(f"graft::{definition.function} has no gradient")
    names = [port.name for port in definition.inputs]
    tensors = {**dict.fromkeys(names), **dict(zip(given, ctx.saved_tensors))}
    needed = {**dict.fromkeys(names, False), **dict(zip(given, ctx.needs_input_grad))}
    found = gradient(grad, tensors, ctx.values, needed)
    return tuple(found.get(name) for name in given)


def _transformed(definition: Definition) -> Callable[..., Any]:
    """The operator for the transforms of torch.func, which do not take the gradient of torch.library.

    Its context has the inputs before the attributes, as the function for torch.library has them.
    """
    count = len(definition.inputs)
    names = [port.name for port in definition.inputs]

    class Transformed(torch.autograd.Function):
        @staticmethod
        def forward(*arguments: Any) -> Any:
            attributes = {info.name: value for info, value in zip(definition.attributes, arguments[count:])}
            # Of the transform within, or of none.
            return FUNCTIONS[definition.function](*arguments[:count], **attributes)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
            ctx.save_for_backward(*inputs[:count])
            ctx.values = {info.name: value for info, value in zip(definition.attributes, inputs[count:])}

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
            return (*_found_gradients(definition, ctx, grad, names), *[None] * len(definition.attributes))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> None:
            _refuse_forward_mode(definition.function)

        vmap = staticmethod(_refuse_vmap(definition))

    def call(*arguments: Any) -> Any:
        return Transformed.apply(*arguments)

    return call


def _register_gradient(definition: Definition, library: Any) -> None:
    names = [port.name for port in definition.inputs]

    def setup_context(
        ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: torch.Tensor
    ) -> None:
        ctx.save_for_backward(*inputs)
        values = values_of(definition, keyword_only_inputs)
        ctx.values = {info.name: value for info, value in zip(definition.attributes, values)}

    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        # PyTorch hands over what the call gave: optional inputs at the end may be missing.
        return _found_gradients(definition, ctx, grad, names[: len(ctx.saved_tensors)])

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
    arguments = ", ".join([*inputs, *(f"{keyword(info.name)}={info.name}" for info in definition.attributes)])
    x = inputs[0]
    values = "".join(f", {info.name}" for info in definition.attributes)
    lines = [
        "if not _is_compiling() and _has_transforms():",
        f"    return _transformed_{name}({', '.join(inputs)}{values})",
    ]
    if _operators.has_cuda():
        needs = " or ".join(
            f"({port.name} is not None and {port.name}.requires_grad)"
            if port.is_optional
            else f"{port.name}.requires_grad"
            for port in definition.inputs
        )
        lines += [
            f"if (not _is_compiling() and type({x}) in _PLAIN and {x}.is_cuda and _tracing_state() is None",
            "        and not _dispatch_modes() and not _function_modes()",
            f"        and not (_is_grad_enabled() and ({needs}))):",
            f"    return _cuda_{name}({arguments})",
        ]
    given = ", ".join(f"{keyword(info.name)!r}: {info.name}" for info in definition.attributes)
    return [*lines, f"return _operator_{name}({', '.join(inputs)}, **_given({{{given}}}, _defaults_{name}))"]


def _given(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The values that are not the defaults; compiled code passes on all that it is given."""
    return {
        name: value
        for name, value in values.items()
        if name not in defaults or (tuple(value) if isinstance(value, list) else value) != defaults[name]
    }


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
    globals()[f"_defaults_{name}"] = {keyword(i.name): i.default for i in definition.attributes if not i.required}
    globals()[f"_transformed_{name}"] = _transformed(definition)
    globals()[f"_operator_{name}"] = getattr(torch.ops.graft, name).default
    gradient = _gradients.GRADIENTS.get(name)
    doc = "Gradients: " + (gradient.__doc__ if gradient else "none.")
    return make_function(definition, "", _body(definition), globals(), "graft.torch", doc)


_LIBRARY = torch.library.Library(NAMESPACE, "DEF")
FUNCTIONS: dict[str, Any] = {
    name: _register(definition, _LIBRARY) for name, definition in FIXED_SIZE_DEFINITIONS.items()
}
