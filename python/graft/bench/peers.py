# The operators' maths in PyTorch: what each one is timed beside.
"""`peer(operator, attributes)` gives a function of the operator's inputs, or None where PyTorch has none.

An operator's folder has it in <op>_peer.py, as a function `peer` of the attributes. Where not every number will do for an
input, as for indices and for boxes, the file also has `inputs`, which makes the tensors of a case; where PyTorch is too
inexact in 16 bits to compare with, `exact`, which is like `peer`, but is not timed; and where some cases promise the same
bits in every run, `is_deterministic`, which says of a case whether PyTorch has to promise that too.
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
Function = Callable[..., torch.Tensor]

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8}
TYPES |= {"f8e4m3fn": torch.float8_e4m3fn, "i32": torch.int32, "i64": torch.int64}
QUANTIZED = ("i8", "f8e4m3fn")  # PyTorch computes nothing of the kind

# In a wheel, or else in the checkout and in an installation, which are alike.
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
    """Data, indices and updates: the indices are rows of the data, each as likely as another."""
    data, indices, updates = case["inputs"]
    torch.manual_seed(1)
    values = [torch.randn(desc["shape"], device="cuda").to(TYPES[desc["dtype"]]) for desc in (data, updates)]
    rows = torch.randint(data["shape"][0], indices["shape"], device="cuda", dtype=TYPES[indices["dtype"]])
    return [values[0], rows, values[1]]


def has_ordered_sums(case: dict[str, Any]) -> bool:
    """Of the scattering operators, whose other reductions are the same in any order."""
    attributes = case["attributes"]
    is_floating = TYPES[case["inputs"][0]["dtype"]].is_floating_point
    return bool(attributes["deterministic"]) and attributes["reduction"] == "add" and is_floating


def operator_folders() -> dict[str, str]:
    """From an operator's name, which its definition has too, to its folder."""
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
    sys.modules[spec.name] = module  # torch.compile looks up the modules of what it traces
    spec.loader.exec_module(module)
    return module


def peer(operator: str, attributes: Attributes) -> Function | None:
    file = peer_file(operator)
    return file.peer(attributes) if file else None


def exact(operator: str, attributes: Attributes) -> Function | None:
    """What results are compared with."""
    file = peer_file(operator)
    return getattr(file, "exact", file.peer)(attributes) if file else None


def is_deterministic(case: dict[str, Any]) -> bool:
    """Whether the operator promises the same bits in every run where PyTorch does so only if told."""
    answer = getattr(peer_file(case["operator"]), "is_deterministic", None)
    return bool(answer and answer(case))


def inputs_of(case: dict[str, Any]) -> list[torch.Tensor] | None:
    """On the GPU, as the operator's folder makes them; None where it leaves that to the benchmark."""
    make = getattr(peer_file(case["operator"]), "inputs", None)
    return make(case) if make else None
