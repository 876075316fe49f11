# Graft's operators as functions on arrays, generated from their definitions.
"""Graft's operators, each as a function on arrays: `graft.ops.l2_normalize(x, axes=[1])`.

NumPy arrays and PyTorch tensors on the CPU are computed by the reference kernels. CUDA tensors of PyTorch and arrays of
CuPy are computed by the CUDA kernels on the caller's current stream, without a copy and without waiting; the result and
the workspace are allocated by the caller's framework. Arrays are row-major and contiguous. bfloat16 in NumPy is
`ml_dtypes.bfloat16`; the scales of int8 are attributes. A variadic input is a list of tensors, and a shape input is a
list of integers. `graft.torch` has the same functions with gradients, torch.compile and ONNX export. `load_operators`
returns functions for the operators of your own library.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable, Sequence
from typing import Any

from graft import _operators
from graft._arrays import kind_of
from graft._definitions import DEFINITIONS, Definition, arranged, load_definitions, make_function, without_numbers

__all__ = [*DEFINITIONS, "load_operators"]


@functools.lru_cache(maxsize=1024)
def _plan(
    definition: Definition,
    values: tuple[Any, ...],
    dtypes: tuple[str, ...],
    shapes: tuple[tuple[int, ...], ...],
    shape_values: tuple[tuple[int, ...], ...],
    device: str,
) -> Any:
    """Returns a prepared call of the operator, graft._operators.Plan, for these attribute values, types and shapes;
    recent plans are cached. `device` is only a part of the cache key: a plan holds copies of weights from attributes,
    which are on one device."""
    return _operators.Plan(
        definition.name,
        definition.json(values),
        list(dtypes),
        list(shapes),
        len(definition.outputs),
        shape_values=list(shape_values),
    )


def _call(definition: Definition, inputs: Sequence[Any], values: Sequence[Any], out: Any) -> Any:
    function = definition.function
    given, numbers = without_numbers(definition, inputs)
    tensors, shape_values = arranged(definition, given)
    arrays = [tensor.value for tensor in tensors]
    kind = kind_of(arrays[0]) if arrays else None
    for name, _, array in tensors:
        if kind is None or kind_of(array) is not kind:
            allowed = "numpy.ndarray, torch.Tensor or cupy.ndarray" if kind is None else kind.name
            raise TypeError(f"{function}: input {name} is {type(array).__qualname__}; it must be {allowed}")
    device = kind.device(arrays[0])
    for name, port, array in tensors:
        if kind.dtype(array) not in definition.allowed_dtypes(port).split(", "):
            raise ValueError(
                f"{function}: input {name} is {kind.dtype(array)}; it must be "
                f"{definition.allowed_dtypes(port).replace(', ', ' or ')}"
            )
        if kind.device(array) != device:
            raise ValueError(
                f"{function}: input {name} is on {kind.device(array)}; it must be on {device}, the device of the first "
                "input"
            )
        if not kind.is_contiguous(array):
            raise ValueError(
                f"{function}: input {name} is not contiguous; make it contiguous with {kind.to_contiguous}"
            )
    dtypes = tuple(kind.dtype(array) for array in arrays)
    shapes = tuple(tuple(array.shape) for array in arrays)
    attributes = definition.convert((*values, *numbers))
    plan = _plan(definition, attributes, dtypes, shapes, tuple(shape_values), device)
    wanted = list(zip(definition.outputs, plan.output_dtypes, plan.output_shapes))
    if out is None:
        outputs = [kind.empty(dtype, shape, arrays[0]) for _, dtype, shape in wanted]
    else:
        outputs = list(out) if isinstance(out, (tuple, list)) else [out]
        _check_outputs(function, kind, device, outputs, wanted, arrays)
    kind.run(plan, [kind.address(array) for array in (*arrays, *outputs)], [*arrays, *outputs])
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _check_outputs(
    function: str, kind: Any, device: str, outputs: list[Any], wanted: list[Any], inputs: list[Any]
) -> None:
    if len(outputs) != len(wanted):
        raise ValueError(f"{function}: out has {len(outputs)} arrays; it must have {len(wanted)}")
    for array, (port, dtype, shape) in zip(outputs, wanted):
        if kind_of(array) is not kind:
            raise TypeError(f"{function}: out for {port.name} is {type(array).__qualname__}; it must be {kind.name}")
        found = (kind.dtype(array), tuple(array.shape), kind.device(array))
        if found != (dtype, shape, device):
            raise ValueError(
                f"{function}: out for {port.name} is {found[0]} {found[1]} on {found[2]}; it must be {dtype} {shape} "
                f"on {device}"
            )
        if not kind.is_contiguous(array) or not kind.is_writable(array):
            raise ValueError(f"{function}: out for {port.name} is not contiguous or not writable; it must be both")
        begin, end = kind.address(array), kind.address(array) + array.nbytes
        for other in inputs:
            if begin < kind.address(other) + other.nbytes and kind.address(other) < end:
                raise ValueError(f"{function}: out for {port.name} overlaps an input; it must have its own memory")


def _make(definition: Definition) -> Callable[..., Any]:
    inputs = "".join(f"{port.name}, " for port in definition.inputs)
    values = "".join(f"{info.name}, " for info in definition.attributes)
    scope = {"_call": functools.partial(_call, definition)}
    doc = "The result is written to `out`, an array of its type and shape that shares no memory with an input."
    return make_function(definition, "out=None", [f"return _call(({inputs}), ({values}), out)"], scope, __name__, doc)


for _definition in DEFINITIONS.values():
    globals()[_definition.function] = _make(_definition)


def load_operators(library: str | os.PathLike[str]) -> types.SimpleNamespace:
    """Returns the operators of a library of your own (`graft new`) as functions:
    `load_operators("libmy_ops.so").snake(x)`.

    A function has the name of its operator's folder. The library's code runs in this process, and stays loaded. Raises
    graft.Error for a file that is not such a library or was built with another version of Graft.
    """
    functions = {name: _make(each) for name, each in load_definitions(library).items()}
    return types.SimpleNamespace(**functions)
