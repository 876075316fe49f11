"""The options --shapes and --profile: their syntax, and the optimization profiles for a parsed network.
`x=1x3x8x8..4x3x64x64..8x3x128x128` is min..opt..max; `x=1x3x8x8` is the same shape for all three."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from graft.engine.events import EngineError
from graft.engine.names import named

SYNTAX = "NAME=MIN..OPT..MAX, for example x=1x3x224x224..4x3x224x224..8x3x224x224, or NAME=SHAPE"
SYNTAX_IN_PYTHON = "{NAME: (MIN, OPT, MAX)}, for example {'x': ([1, 3, 224, 224], [4, 3, 224, 224], [8, 3, 224, 224])}"


def is_keyword() -> bool:
    """Returns whether the caller of the driver is a Python function with the argument `shapes`, instead of a command
    line with --shapes."""
    return named("--shapes").isidentifier()


@dataclass(frozen=True)
class ShapeRange:
    """The sizes (or, for a shape tensor, the values) that one input may take."""

    name: str
    minimum: tuple[int, ...]
    optimum: tuple[int, ...]
    maximum: tuple[int, ...]

    def text(self) -> str:
        return "..".join(map(dims_text, (self.minimum, self.optimum, self.maximum)))


@dataclass(frozen=True)
class NetworkInput:
    """An input of the parsed network, with the facts that a profile needs; -1 is a dynamic dimension."""

    name: str
    shape: tuple[int, ...]
    dimension_names: tuple[str, ...]
    is_shape_tensor: bool = False

    @property
    def is_dynamic(self) -> bool:
        return any(size < 0 for size in self.shape)

    def text(self) -> str:
        """Returns the shape as `nx3xhxw`, with the model's names for dynamic dimensions and `?` where there is no
        name."""
        names = self.dimension_names or ("",) * len(self.shape)
        return "x".join(str(s) if s >= 0 else (n or "?") for s, n in zip(self.shape, names, strict=True))


def dims_text(dims: Iterable[int | str]) -> str:
    return "x".join(map(str, dims))


def parse_dims(text: str, whole: str) -> tuple[int, ...]:
    try:
        dims = tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise EngineError(
            "shapes", f"{named('--shapes')} {whole}: {text!r} is not a list of sizes joined by x", f"Write {SYNTAX}"
        ) from None
    if any(not 0 <= size < 2**31 for size in dims):
        raise EngineError(
            "shapes", f"{named('--shapes')} {whole}: a size in {text!r} is outside 0..2147483647", f"Write {SYNTAX}"
        )
    return dims


def parse_shape_range(text: str) -> ShapeRange:
    # A name may contain colons; the option --input has a colon in place of the equals sign.
    name, separator, value = text.rpartition("=" if "=" in text else ":")
    parts = value.split("..")
    if not separator or not name or len(parts) not in (1, 3):
        raise EngineError(
            "shapes", f"{named('--shapes')} {text}: expected one shape, or three joined by ..", f"Write {SYNTAX}"
        )
    dims = [parse_dims(part, text) for part in parts] * (3 if len(parts) == 1 else 1)
    return ShapeRange(name, *dims)


def parse_shape_ranges(texts: Iterable[str]) -> dict[str, ShapeRange]:
    ranges: dict[str, ShapeRange] = {}
    for text in texts:
        found = parse_shape_range(text)
        if found.name in ranges:
            raise EngineError(
                "shapes", f"{named('--shapes')} names input {found.name!r} twice", "Specify one range for each input"
            )
        ranges[found.name] = found
    return ranges


def example_range(network_input: NetworkInput) -> ShapeRange:
    """Returns a range to show in messages: 1, 4 and 8 for the batch and for the values of a shape tensor, and 1, 224
    and 512 for other dynamic sizes."""
    if network_input.is_shape_tensor:
        count = math.prod(network_input.shape)
        return ShapeRange(network_input.name, *((value,) * count for value in (1, 4, 8)))

    def sizes(batch: int, other: int) -> tuple[int, ...]:
        return tuple(
            size if size >= 0 else (batch if axis == 0 else other) for axis, size in enumerate(network_input.shape)
        )

    return ShapeRange(network_input.name, sizes(1, 1), sizes(4, 224), sizes(8, 512))


def example_flag(network_input: NetworkInput) -> str:
    """Returns the option --shapes with the range of `example_range`, as the user writes it."""
    example = example_range(network_input)
    return flag_text(example.name, (example.minimum, example.optimum, example.maximum))


def missing_flag(network_input: NetworkInput) -> str:
    """Returns the option of `example_flag`, with the words MIN, OPT and MAX in place of the values of a shape tensor:
    valid values depend on the layer that reads them."""
    if not network_input.is_shape_tensor:
        return example_flag(network_input)
    count = math.prod(network_input.shape)
    return flag_text(network_input.name, [[word] * count for word in ("MIN", "OPT", "MAX")])


def suggested_ranges(
    inputs: list[NetworkInput], given: dict[str, ShapeRange], suggested: dict[str, dict[str, str]]
) -> dict[str, ShapeRange]:
    """Returns ranges for the inputs that need one and have none: the suggested sizes or values, or `example_range`
    where nothing is suggested."""
    ranges = {}
    for each in inputs:
        if each.name in given or not (each.is_dynamic or each.is_shape_tensor):
            continue
        text = suggested.get(each.name, {}).get("values" if each.is_shape_tensor else "sizes", "")
        ranges[each.name] = parse_shape_range(f"{each.name}={text}") if text else example_range(each)
    return ranges


def flag_text(name: str, parts: Iterable[Iterable[int | str]]) -> str:
    """Returns the option for the range of the input `name` as the user writes it, on the command line or in Python.
    `parts` are the minimum, the optimum and the maximum."""
    if is_keyword():
        ranges = ", ".join(f"[{', '.join(map(str, part))}]" for part in parts)
        return f"{named('--shapes')}={{{name!r}: ({ranges})}}"
    return f"{named('--shapes')} {name}={'..'.join(map(dims_text, parts))}"


def check_range(network_input: NetworkInput, found: ShapeRange) -> None:
    """Raises EngineError for a range that contradicts the model, or whose minimum, optimum and maximum are not in
    order."""
    name = network_input.name
    dims = (found.minimum, found.optimum, found.maximum)
    for word, candidate in zip(("minimum", "optimum", "maximum"), dims, strict=True):
        if len(candidate) != len(network_input.shape):
            raise EngineError(
                "shapes",
                f"{named('--shapes')} {name}={found.text()}: the {word} has {len(candidate)} dimensions, but the "
                f"model's input has {len(network_input.shape)}: {network_input.text()}",
                f"For example {example_flag(network_input)}",
            )
        for axis, (given, declared) in enumerate(zip(candidate, network_input.shape, strict=True)):
            if declared >= 0 and given != declared:
                raise EngineError(
                    "shapes",
                    f"{named('--shapes')} {name}={found.text()}: the {word} has {given} at dimension {axis}, "
                    f"which the model fixes at {declared}: {network_input.text()}",
                    f"For example {example_flag(network_input)}",
                )
    check_order(found)


def check_order(found: ShapeRange) -> None:
    for axis, (low, middle, high) in enumerate(zip(found.minimum, found.optimum, found.maximum, strict=True)):
        if not low <= middle <= high:
            raise EngineError(
                "shapes",
                f"{named('--shapes')} {found.name}={found.text()}: dimension {axis} is not in order: {low}, {middle}, {high}",
                "Use minimum <= optimum <= maximum in every dimension",
            )


def missing_ranges(missing: list[NetworkInput]) -> EngineError:
    """Returns the error for inputs without a range: inputs with dynamic dimensions, and shape tensors, from whose
    values TensorRT computes sizes."""
    with_sizes = "; ".join(f"{i.name} is {i.text()}" for i in missing if not i.is_shape_tensor)
    with_values = ", ".join(i.name for i in missing if i.is_shape_tensor)
    said = []
    if with_sizes:
        said.append(f"the model has inputs of dynamic shape without {named('--shapes')}: {with_sizes}")
    if with_values:
        said.append(
            f"sizes depend on the values of {with_values}, which is not a constant, and {named('--shapes')} has no "
            "range of its values"
        )
    return EngineError(
        "shapes",
        "; ".join(said),
        f"Specify minimum, optimum and maximum, for example {' '.join(map(missing_flag, missing))}\n"
        f"By default {'graft.inspect' if is_keyword() else 'the command inspect'} tries several ranges and reports "
        "which of them build",
        inputs=[i.name for i in missing],
        values=bool(with_values),
    )


def parse_profile(text: str) -> dict[str, ShapeRange]:
    """Parses ranges of several inputs that are joined by commas. Only a comma after a digit separates ranges, so a name
    may contain other commas."""
    return parse_shape_ranges(re.split(r"(?<=\d),", text))


def optimization_profiles(
    inputs: list[NetworkInput], shapes: list[str], profiles: list[str]
) -> list[dict[str, ShapeRange]]:
    """Returns the ranges of each profile: the ranges of --shapes, which are in all profiles, and the ranges of one
    --profile. Empty where the network needs no profile. Raises EngineError for missing or contradicting ranges."""
    common = parse_shape_ranges(shapes)
    if not profiles:
        ranges = profile_ranges(inputs, common)
        return [ranges] if ranges else []
    found = []
    for text in profiles:
        try:
            found.append(profile_ranges(inputs, common | parse_profile(text)))
        except EngineError as error:
            raise EngineError(
                error.kind, f"{named('--profile')} {text}: {error.message}", error.next_step, **error.facts
            ) from None
    if not all(found):
        raise EngineError(
            "shapes", f"{named('--profile')}: the model has no dynamic input", f"Omit {named('--profile')}"
        )
    return found


def profile_ranges(inputs: list[NetworkInput], given: dict[str, ShapeRange]) -> dict[str, ShapeRange]:
    """Returns the given ranges of inputs that need one, after a check against the model. Empty where the network needs
    no profile. Raises EngineError for an unknown input, and for a missing or contradicting range."""
    known = {network_input.name: network_input for network_input in inputs}
    for name in given:
        if name not in known:
            raise EngineError(
                "shapes",
                f"{named('--shapes')} names input {name!r}, which the model does not have; its inputs are: "
                + (", ".join(sorted(known)) or "none"),
                f"Write {SYNTAX_IN_PYTHON if is_keyword() else SYNTAX}",
            )
    missing = [i for i in inputs if (i.is_dynamic or i.is_shape_tensor) and i.name not in given]
    if missing:
        raise missing_ranges(missing)
    for name, found in given.items():
        if known[name].is_shape_tensor:
            check_order(found)
        else:
            check_range(known[name], found)
    return {name: found for name, found in given.items() if known[name].is_dynamic or known[name].is_shape_tensor}
