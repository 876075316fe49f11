#!/usr/bin/env python3
# Writes the type stubs of graft.ops and graft.torch from the operators' definitions: tools/generate_stubs.py [--check]
"""Needs a build: the definitions come from its library."""

from __future__ import annotations

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "build" / "python"))

from graft._definitions import DEFINITIONS, FIXED_SIZE_DEFINITIONS, docstring, signature  # noqa: E402

HEADER = "# Written by tools/generate_stubs.py from the operators' definitions.\n"

OPS = """import os
import types
from collections.abc import Sequence
from typing import Literal, TypeVar

Array = TypeVar("Array")  # numpy.ndarray, torch.Tensor or cupy.ndarray; all of a call are of one kind

def load_operators(library: str | os.PathLike[str]) -> types.SimpleNamespace: ...
"""

TORCH = """import os
import types
from collections.abc import Sequence
from typing import Any, Literal

import torch

def load_operators(library: str | os.PathLike[str]) -> types.SimpleNamespace: ...
def onnx_translations() -> dict[Any, Any]: ...
def add_functions(model: Any) -> Any: ...
def export(
    module: torch.nn.Module, args: tuple[Any, ...], path: str | os.PathLike[str], *, dynamo: bool = True, **options: Any
) -> None: ...
"""


def function(definition, array: str, more: list[str]) -> str:
    parameters = "".join(f"    {each},\n" for each in split(signature(definition, array, more)))
    text = docstring(definition, "").rstrip().replace("\\", "\\\\").replace("\n", "\n    ")
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    count = len(definition.outputs)
    result = array if count == 1 else f"tuple[{', '.join([array] * count)}]"
    return f'def {definition.function}(\n{parameters}) -> {result}:\n    """{lines}\n    """\n'


def split(parameters: str) -> list[str]:
    """Splits parameters at the commas outside of brackets and strings."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(parameters):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(parameters[begin:i].strip())
            begin = i + 1
    return [*parts, parameters[begin:].strip()]


def stubs() -> dict[pathlib.Path, str]:
    ops = "\n".join(function(each, "Array", ["out: Array | None = None"]) for each in DEFINITIONS.values())
    torch = "\n".join(function(each, "torch.Tensor", []) for each in FIXED_SIZE_DEFINITIONS.values())
    package = ROOT / "python" / "graft"
    return {
        package / "ops" / "__init__.pyi": HEADER + OPS + ops,
        package / "torch" / "__init__.pyi": HEADER + TORCH + torch,
    }


def main() -> int:
    stale = [path for path, text in stubs().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: make docs writes it", file=sys.stderr)
        return 1 if stale else 0
    for path, text in stubs().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
