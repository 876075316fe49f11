# The operators' peers: functions of PyTorch that compute the same, whose time is compared with the operator's.
"""`peer(operator, attributes)` returns a function of the operator's inputs, or None where PyTorch has none.

The file <op>_peer.py in an operator's folder has the functions of one operator:

`peer(attributes)` returns the function that is timed. It returns a tensor, or a tuple of tensors for several outputs.

`inputs(case)`, optional, returns the input tensors of a case whose inputs cannot be arbitrary, such as indices or
boxes.

`exact(attributes)`, optional, returns the function whose results are compared, where PyTorch is too inexact in 16 bits.

`is_deterministic(case)`, optional, returns whether PyTorch has to compute the same bits in every run of the case,
because the operator does.
"""

from __future__ import annotations

import functools
import importlib.util
import pathlib
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F

Attributes = dict[str, Any]
Function = Callable[..., "torch.Tensor | tuple[torch.Tensor, ...]"]

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8}
TYPES |= {"f8e4m3fn": torch.float8_e4m3fn, "i32": torch.int32, "i64": torch.int64}
QUANTIZED = ("i8", "f8e4m3fn")  # types in which PyTorch has no such operators

# The folder of the operators in a wheel, or else in the checkout or an installation, which have the same layout.
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
IN_WHEEL = PACKAGE / "share" / "graft" / "src" / "ops"
OPERATORS = IN_WHEEL if IN_WHEEL.is_dir() else PACKAGE.parents[1] / "src" / "ops"


def activation(a: Attributes) -> Callable[[torch.Tensor], torch.Tensor] | None:
    return {
        "none": lambda x: x,
        "relu": torch.relu,
        "relu6": F.relu6,
        "leaky_relu": lambda x: F.leaky_relu(x, a["alpha"]),
    }.get(a["activation"])


def scattered_rows(case: dict[str, Any]) -> list[torch.Tensor]:
    """Returns data, indices and updates for a case of a scattering operator. The data and updates are random, and the
    indices are random rows of the data."""
    data, indices, updates = case["inputs"]
    torch.manual_seed(1)
    values = [torch.randn(desc["shape"], device="cuda").to(TYPES[desc["dtype"]]) for desc in (data, updates)]
    rows = torch.randint(data["shape"][0], indices["shape"], device="cuda", dtype=TYPES[indices["dtype"]])
    return [values[0], rows, values[1]]


def has_ordered_sums(case: dict[str, Any]) -> bool:
    """Returns whether a case of a scattering operator adds floating-point values in a fixed order. The other reductions
    give the same bits in any order."""
    attributes = case["attributes"]
    is_floating = TYPES[case["inputs"][0]["dtype"]].is_floating_point
    return bool(attributes["deterministic"]) and attributes["reduction"] == "add" and is_floating


def operator_folders() -> dict[str, str]:
    """Returns the folder of each operator by the name in its definition."""
    lines = (OPERATORS / "ops.inc").read_text()
    pairs = re.findall(r"^GRAFT_OPERATOR\((\w+), *(?:\w+::)*(\w+)\)$", lines, re.MULTILINE)
    return {name: folder for folder, name in pairs}


@functools.cache
def peer_file(operator: str) -> ModuleType | None:
    folder = operator_folders().get(operator)
    path = OPERATORS / str(folder) / f"{folder}_peer.py"
    if folder is None or not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location(f"graft.bench.peer_of_{folder}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # torch.compile looks up the module of each function that it traces
    spec.loader.exec_module(module)
    return module


def peer(operator: str, attributes: Attributes) -> Function | None:
    file = peer_file(operator)
    return file.peer(attributes) if file else None


def exact(operator: str, attributes: Attributes) -> Function | None:
    """Returns the PyTorch function whose results are compared with the operator's results, or None where PyTorch has
    none."""
    file = peer_file(operator)
    return getattr(file, "exact", file.peer)(attributes) if file else None


def is_deterministic(case: dict[str, Any]) -> bool:
    """Returns whether PyTorch has to run the case with torch.use_deterministic_algorithms, because the operator
    computes the same bits in every run."""
    answer = getattr(peer_file(case["operator"]), "is_deterministic", None)
    return bool(answer and answer(case))


def inputs_of(case: dict[str, Any]) -> list[torch.Tensor] | None:
    """Returns the input tensors on the GPU that `inputs` of the operator's peer file makes, or None where the file has
    no such function and random inputs are used."""
    make = getattr(peer_file(case["operator"]), "inputs", None)
    return make(case) if make else None
