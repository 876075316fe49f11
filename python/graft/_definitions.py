"""The operators' definitions, as the library with the kernels lists them, and the Python functions generated from them:
names, defaults, checks and docstrings for graft.ops, graft.torch and their stubs."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import operator
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from graft import _operators
from graft.errors import Error

MOST_SHAPE_VALUES = 8  # GRAFT_MAX_RANK of graft_c.h
# The description of each attribute type in messages.
_TYPES = {
    "float": "a number",
    "int": "an integer",
    "string": "a string",
    "floats": "a sequence of numbers",
    "ints": "a sequence of integers",
}


@dataclasses.dataclass(frozen=True)
class Attribute:
    name: str
    type: str  # float, int, string, floats, ints
    default: Any  # None where the attribute is required
    choices: tuple[str, ...]
    range: str
    doc: str

    @property
    def required(self) -> bool:
        return self.default is None

    def convert(self, function: str, value: Any) -> Any:
        """Returns the value converted to the type of the attribute; a list becomes a tuple. Raises TypeError naming the
        attribute for a value that cannot be converted."""
        try:
            return _CONVERSIONS[self.type](value)
        except TypeError:
            allowed = " or ".join(self.choices) or _TYPES[self.type]
            raise TypeError(f"{function}: attribute {self.name} is {value!r}; it must be {allowed}") from None


@dataclasses.dataclass(frozen=True)
class Port:
    name: str
    kind: str  # input, optional_input, variadic_input, shape_input, output, size_output
    shape: str
    doc: str

    @property
    def is_output(self) -> bool:
        return self.kind in ("output", "size_output")

    @property
    def is_size(self) -> bool:
        """Whether the output contains the number of valid elements of the operator's other outputs."""
        return self.kind == "size_output"

    @property
    def is_optional(self) -> bool:
        return self.kind == "optional_input"

    @property
    def is_variadic(self) -> bool:
        """Whether the input is a list of tensors."""
        return self.kind == "variadic_input"

    @property
    def is_shape(self) -> bool:
        """Whether the input is a list of integers from which the sizes of outputs are computed."""
        return self.kind == "shape_input"


class Tensor(NamedTuple):
    """An input tensor of a kernel."""

    name: str  # the name of the port; x_1, x_2 and so on for the tensors of a variadic port
    port: int
    value: Any


@dataclasses.dataclass(frozen=True)
class Definition:
    function: str  # in snake case
    name: str  # in ONNX and TensorRT
    doc: str
    source: str
    attributes: tuple[Attribute, ...]
    """The attributes that are keyword arguments."""
    numbers: tuple[Attribute, ...]
    """The attributes that have the name of an input. A number that is passed for this input becomes the attribute's
    value."""
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    rows: tuple[tuple[str, ...], ...]
    """The combinations of types that the ports may have."""

    @property
    def has_data_sizes(self) -> bool:
        """Whether sizes of the outputs depend on the data."""
        return any(port.is_size for port in self.outputs)

    @property
    def is_plain(self) -> bool:
        """Whether each input is a single tensor: none is variadic or a shape input."""
        return not any(port.is_variadic or port.is_shape for port in self.inputs)

    def output_dtypes(self, dtypes: Sequence[str], ports: Sequence[int]) -> list[str]:
        """Returns the output types for input tensors of the types `dtypes`; `ports[i]` is the index of the port of
        tensor i. Raises ValueError for types that the operator does not support together."""
        for row in self.rows:
            if all(row[port] == dtype for port, dtype in zip(ports, dtypes)):
                return list(row[len(self.inputs) :])
        found = ", ".join(f"{self.inputs[port].name} {dtype}" for port, dtype in zip(ports, dtypes))
        rows = "; ".join(" ".join(row[: len(self.inputs)]) for row in self.rows)
        raise ValueError(f"{self.function} does not support the types {found}; the supported combinations are {rows}")

    def convert(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the values of all attributes, converted to their types; `values` are in the order of `attributes` and
        `numbers`. Raises TypeError naming the attribute for a value that cannot be converted."""
        attributes = (*self.attributes, *self.numbers)
        return tuple(info.convert(self.function, value) for info, value in zip(attributes, values))

    def json(self, values: Sequence[Any]) -> str:
        """Returns attribute values as the JSON object that the C++ extension expects. `values` have the types and the
        order in which `convert` returns them."""
        return _json_of(self, tuple(values))

    def input_name(self, index: int) -> str:
        """Returns the name of a node's input; x_1, x_2 and so on for the tensors of a variadic port."""
        last = len(self.inputs) - 1
        port = self.inputs[min(index, last)]
        return f"{port.name}_{index - last + 1}" if port.is_variadic else port.name

    def allowed_dtypes(self, port: int) -> str:
        return ", ".join(dict.fromkeys(row[port] for row in self.rows))


def _number(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError
    number = float(value)
    if math.isnan(number):  # no attribute may be NaN, and JSON cannot represent it
        raise TypeError
    return number


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _each(convert: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda values: tuple(convert(value) for value in values)


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "float": _number,
    "int": operator.index,
    "string": _text,
    "floats": _each(_number),
    "ints": _each(operator.index),
}


def _in_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_in_json(each) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"  # JSON cannot represent infinities
    return value


@functools.lru_cache(maxsize=4096)
def _json_of(definition: Definition, values: tuple[Any, ...]) -> str:
    attributes = (*definition.attributes, *definition.numbers)
    named = {info.name: _in_json(value) for info, value in zip(attributes, values)}
    return json.dumps(named)


def _shortest(value: Any) -> Any:
    """Returns a float with the fewest decimal digits that still round to the same 32-bit float. Elements of lists are
    converted too, and lists become tuples; other values are unchanged."""
    if isinstance(value, list):
        return tuple(_shortest(each) for each in value)
    if not isinstance(value, float):
        return value
    stored = struct.pack("f", value)
    for digits in range(1, 10):
        rounded = float(f"{value:.{digits}g}")
        if struct.pack("f", rounded) == stored:
            return rounded
    return value


def _definition(entry: Mapping[str, Any]) -> Definition:
    ports = [Port(**port) for port in entry["ports"]]
    names = {port.name for port in ports}
    attributes = [
        Attribute(**{**info, "default": _shortest(info["default"]), "choices": tuple(info["choices"])})
        for info in entry["attributes"]
    ]
    keywords = [info for info in attributes if info.name not in names]
    return Definition(
        function=entry["function"],
        name=entry["name"],
        doc=entry["doc"],
        source=entry["source"],
        attributes=tuple(sorted(keywords, key=lambda info: not info.required)),
        numbers=tuple(info for info in attributes if info.name in names and info.type in ("float", "int")),
        inputs=tuple(port for port in ports if not port.is_output),
        outputs=tuple(port for port in ports if port.is_output),
        rows=tuple(tuple(row) for row in entry["rows"]),
    )


def _definitions(text: str) -> dict[str, Definition]:
    return {entry["function"]: _definition(entry) for entry in json.loads(text)}


DEFINITIONS: dict[str, Definition] = _definitions(_operators.definitions())


@functools.cache
def _load(path: str) -> dict[str, Definition]:
    try:
        return _definitions(_operators.load(path))
    except ValueError as error:
        raise Error(str(error)) from None


def load_definitions(library: str | os.PathLike[str]) -> dict[str, Definition]:
    """Returns the definitions of a user's library of operators, by the name of their function. The library is opened
    once. Raises graft.Error for a file that is not such a library."""
    path = os.fspath(library)
    return _load(os.path.realpath(path) if os.path.exists(path) else path)


# The operators for PyTorch, which needs the sizes of outputs before an operator runs.
FIXED_SIZE_DEFINITIONS = {name: each for name, each in DEFINITIONS.items() if not each.has_data_sizes}

_ANNOTATIONS = {
    "float": "float",
    "int": "int",
    "string": "str",
    "floats": "Sequence[float]",
    "ints": "Sequence[int]",
}


def signature(definition: Definition, array: str, more: Sequence[str] = ()) -> str:
    """Returns the parameters of the operator's Python function with type annotations, such as `x: Array, *, alpha:
    float = 0.01`. Tensors, of the type named `array`, are positional; attributes and the parameters `more` are
    keyword-only."""
    numbers = {info.name: f" | {_ANNOTATIONS[info.type]}" for info in definition.numbers}
    kinds = {"variadic_input": f"Sequence[{array}]", "shape_input": f"Sequence[int] | {array}"}
    parts = [
        f"{port.name}: {kinds.get(port.kind, array)}{numbers.get(port.name, '')}"
        + (" | None = None" if port.is_optional else "")
        for port in definition.inputs
    ]
    if definition.attributes or more:
        parts.append("*")
    for info in definition.attributes:
        type_of = _ANNOTATIONS[info.type]
        if info.choices:
            type_of = f"Literal[{', '.join(json.dumps(choice) for choice in info.choices)}]"
        parts.append(f"{info.name}: {type_of}" + ("" if info.required else f" = {literal(info.default)}"))
    return ", ".join([*parts, *more])


def literal(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def docstring(definition: Definition, more: str) -> str:
    def described(name: str, doc: str, allowed: str) -> str:
        return f"    {name}: {doc}" + (f" ({allowed})" if allowed else "")

    types = ["; ".join(" ".join(f"{p.name} {t}" for p, t in zip(ports, row)) for row in definition.rows)
             for ports in [(*definition.inputs, *definition.outputs)]]  # fmt: skip
    kinds = {"variadic_input": "a list: ", "shape_input": "integers: "}
    lines = [definition.doc, "", "Tensors:"]
    lines += [described(port.name, kinds.get(port.kind, "") + port.doc, port.shape) for port in definition.inputs]
    lines += ["", "Attributes:"]
    lines += [described(info.name, info.doc, ", ".join(info.choices) or info.range) for info in definition.attributes]
    lines += ["", f"Returns {', '.join(f'{p.name} ({p.shape}): {p.doc}' for p in definition.outputs)}"]
    if definition.has_data_sizes:
        sizes = ", ".join(port.name for port in definition.outputs if port.is_size)
        lines += ["", f"The other arrays are allocated for the largest {sizes}: their valid elements come first."]
    lines += ["", f"Types: {types[0]}", "", f"Source: {definition.source}", "", more]
    return "\n".join(lines)


def parameters(definition: Definition, more: str = "", names: Mapping[str, str] | None = None) -> str:
    """Returns the parameters of the operator's Python function, such as `x, scale=None, *, alpha=0.01`. Tensors are
    positional; attributes and the text `more`, further parameters, are keyword-only. `names` maps attributes to other
    names."""
    parts = [port.name + ("=None" if port.is_optional else "") for port in definition.inputs]
    if definition.attributes or more:
        parts.append("*")
    for info in definition.attributes:
        parts.append((names or {}).get(info.name, info.name) + ("" if info.required else f"={literal(info.default)}"))
    return ", ".join([*parts, more] if more else parts)


def make_function(
    definition: Definition,
    more_parameters: str,
    body: Sequence[str],
    module: dict[str, Any],
    public_module: str,
    doc: str,
) -> Any:
    """Returns a Python function with the operator's parameters, so that Python refuses an unknown keyword.

    `more_parameters` is the text of further keyword-only parameters. The body of the function is the lines of `body`,
    which run with the globals of `module`. Its `__module__` is `public_module`. Its docstring is generated from the
    definition and ends with `doc`.
    """
    local: dict[str, Any] = {}
    lines = "".join(f"    {line}\n" for line in body)
    exec(f"def {definition.function}({parameters(definition, more_parameters)}):\n{lines}", module, local)  # noqa: S102
    function = local[definition.function]
    function.__doc__ = docstring(definition, doc)
    function.__module__ = public_module
    return function


def without_numbers(definition: Definition, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Returns the inputs, with None in place of numbers, and the values of the attributes `definition.numbers`: a
    number that is passed for an input is the value of the attribute with the name of this input."""
    given = {port.name: value for port, value in zip(definition.inputs, inputs)}
    values: list[Any] = []
    for info in definition.numbers:
        is_number = isinstance(given[info.name], (int, float))
        values.append(given[info.name] if is_number else info.default)
        if is_number:
            given[info.name] = None
    return list(given.values()), values


def is_integer_array(value: Any) -> bool:
    return hasattr(value, "tolist") and hasattr(value, "shape")


def shape_values(function: str, name: str, value: Any) -> tuple[Any, ...]:
    """Returns the integers of a shape input; in a compiled program they may be symbols. Raises TypeError or ValueError
    naming the input for other values."""
    allowed = (
        "it must be a list of integers, or an integer array with one axis on the CPU, because the values must be "
        "known before the kernel runs"
    )
    if is_integer_array(value):
        dtype = str(value.dtype).removeprefix("torch.")
        device = str(getattr(value, "device", "cpu"))
        if dtype not in ("int32", "int64") or len(value.shape) != 1 or device != "cpu":
            raise TypeError(f"{function}: input {name} is {dtype} {tuple(value.shape)} on {device}; {allowed}")
        value = value.tolist()
    if not hasattr(value, "__iter__"):
        raise TypeError(f"{function}: input {name} is {type(value).__qualname__}; {allowed}")
    found = tuple(value)
    if len(found) > MOST_SHAPE_VALUES:
        raise ValueError(f"{function}: input {name} has {len(found)} values; it must have at most {MOST_SHAPE_VALUES}")
    try:
        return tuple(each if hasattr(each, "node") else operator.index(each) for each in found)
    except TypeError:
        raise TypeError(f"{function}: input {name} is {value!r}; {allowed}") from None


def arranged(definition: Definition, inputs: Sequence[Any]) -> tuple[list[Tensor], list[tuple[Any, ...]]]:
    """Returns the input tensors in the order of the kernel's inputs, and the values of each shape input. Raises
    TypeError or ValueError naming an invalid input."""
    given = trimmed(definition, inputs)
    tensors: list[Tensor] = []
    values: list[tuple[Any, ...]] = []
    for i, (port, value) in enumerate(zip(definition.inputs, given)):
        if port.is_shape:
            values.append(shape_values(definition.function, port.name, value))
        elif port.is_variadic:
            check_list(definition.function, port.name, value)
            tensors += [Tensor(f"{port.name}_{count}", i, each) for count, each in enumerate(value, 1)]
        else:
            tensors.append(Tensor(port.name, i, value))
    return tensors, values


def check_list(function: str, name: str, value: Any) -> None:
    if not isinstance(value, (list, tuple)):
        raise TypeError(
            f"{function}: input {name} is {type(value).__qualname__}; it must be a list of at least one tensor"
        )
    if not value:
        raise ValueError(f"{function}: input {name} is an empty list; it must have at least one tensor")


def trimmed(definition: Definition, inputs: Sequence[Any]) -> list[Any]:
    """Returns the inputs without the missing optional inputs at the end. Raises ValueError where an input is missing
    before a given one."""
    given = list(inputs)
    while given and given[-1] is None:
        given.pop()
    for port, value in zip(definition.inputs, given):
        if value is None:
            last = definition.inputs[len(given) - 1].name
            raise ValueError(f"{definition.function}: input {port.name} is missing: pass it, or omit {last} too")
    return given
