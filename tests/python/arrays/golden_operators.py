# Reads the operators' golden data for tests in Python: results of PyTorch and TensorFlow.
from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
from typing import Any

import ml_dtypes
import numpy as np
from graft._definitions import DEFINITIONS, Definition

FOLDER = pathlib.Path(os.environ.get("GRAFT_GOLDEN_DIR", pathlib.Path(__file__).parents[2] / "golden")) / "ops"
NUMPY_TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}
NUMPY_TYPES |= {"i32": np.int32, "i64": np.int64}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    dtype: str
    inputs: list[np.ndarray]
    attributes: dict[str, Any]
    expected: np.ndarray  # of the first output
    expected_more: list[np.ndarray]  # of the next outputs that have golden values
    absolute: float = 0  # the error of f32 arithmetic where terms of a sum cancel


def _case(definition: Definition, entry: dict[str, Any], arrays: Any) -> Case:
    x = arrays[entry["x"]].astype(NUMPY_TYPES[entry["dtype"]]).reshape(entry["shape"])
    attributes = dict(entry["attributes"])
    more = (arrays[name] for name in entry.get("more", ()))
    inputs = [x, *(a if a.dtype.kind == "i" else a.astype(x.dtype) for a in more)]
    hidden = set(attributes) - {info.name for info in definition.attributes}
    if definition.has_data_sizes:  # numbers that are inputs or attributes
        for i, port in enumerate(definition.inputs[len(inputs) :], len(inputs)):
            inputs.append(np.array(attributes.pop(port.name), NUMPY_TYPES[definition.allowed_dtypes(i)]))
    elif hidden:  # InstanceNorm has an input of this name: both weights are passed as inputs
        assert hidden == {"bias"}, hidden
        channels = x.shape[1]
        inputs.append(np.asarray(attributes.pop("scales", [1.0] * channels), np.float32))
        inputs.append(np.asarray(attributes.pop("bias"), np.float32))
    expected = arrays[entry.get("y_f32", entry["y"])]
    expected_more = [arrays[name] for name in entry.get("more_y", ())]
    return Case(entry["name"], entry["dtype"], inputs, attributes, expected, expected_more, entry.get("absolute", 0))


@functools.cache
def cases(function: str) -> list[Case]:
    entries = json.loads((FOLDER / f"{function}.json").read_text())["cases"]
    with np.load(FOLDER / f"{function}.npz") as arrays:
        return [_case(DEFINITIONS[function], entry, arrays) for entry in entries]


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32).astype(NUMPY_TYPES[dtype]).astype(np.float64)


def assert_close(outputs: np.ndarray | tuple[np.ndarray, ...], case: Case, relative: float) -> None:
    """Checks that each output rounds like a number within this relative error, and the case's absolute one, of the
    exact result. Integers must agree exactly, as no golden value of i8 lies near a tie."""
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    for found, expected in zip(outputs, [case.expected, *case.expected_more]):
        found64 = np.asarray(found).astype(np.float64)
        exact = expected.astype(np.float64)
        assert found64.shape == exact.shape
        if np.asarray(found).dtype.kind == "i":
            good = found64 == exact
        else:
            slack = np.where(np.isfinite(exact), np.abs(exact) * relative + case.absolute, 0)
            low, high = rounded(exact - slack, case.dtype), rounded(exact + slack, case.dtype)
            good = ((found64 >= low) & (found64 <= high)) | (np.isnan(found64) & np.isnan(exact))
        assert good.all(), f"{case.name}: found {found64[~good][:3]}, expected {exact[~good][:3]}"
