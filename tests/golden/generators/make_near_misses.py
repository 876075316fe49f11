# make_near_misses.py - writes networks that look like one of Graft's operators and are not, for the fusion tests.
"""Writes tests/golden/near_misses/*.onnx and manifest.json.

Every near miss is a valid network (onnx.checker, ONNX Runtime) that an imprecise pattern would fuse wrongly. A few
controls of the same style must be fused: they show that a near miss stays unchanged for its own reason, not because its
style is unknown.

The script runs each network. A near miss must have another result than the operator that it resembles, on an input with
a row of zeros, a tiny row and a long row; where the numbers agree and another reason forbids the fusion, it is marked
same_values. A control must have the operator's own values.

The operators' folders list them, src/ops/<op>/<op>_near_misses.py:
  PREFIX, OPERATOR          the prefix of the files' names, and the resembled operator
  LOWERED                   only where TensorRT has the operator: the ONNX operator that replaces a control
  CONSTANTS                 initializers, by name, besides those in near_miss_cases.py
  MISSES                    near_miss_cases.Miss: miss(...), or same(...) where it has the operator's numbers
  CONTROLS                  (name, attributes, signature, nodes)
  INPUTS                    only where a network has further inputs: their values, by name
  resembled(x)              the operator's result, with the attributes that are closest to the misses

The manifest lists for near misses file, operator, reason, same_values, and words where they are explained; for controls
file, operator, attributes, and lowered.

Made with (Python 3.11): onnx==1.18.0 onnxruntime==1.22.1 numpy==2.1.3
Run: python tests/golden/generators/make_near_misses.py [--out tests/golden/near_misses]
"""

import argparse
import json
import pathlib
import re

import near_miss_cases
import numpy as np
import onnx
import onnx.parser
import onnxruntime
from operator_files import load_all

SIZES = {"N": 4, "M": 8, "H": 3, "W": 5}
# Values of inputs other than x and z.
INPUTS = {"p": 2.0, "e": 1e-12, "c": True}


def parse(constants, signature, body):
    if "x_first" in body:
        body = "z0 = Constant<value = int64[1] {0}>() x_first = Gather<axis=1>(x, z0) " + body
    used = ", ".join(text for name, text in constants.items() if re.search(rf"\b{name}\b(?!=)", body))
    text = f'<ir_version: 8, opset_import: ["" : 17]>\nnetwork {signature}\n<{used}>\n{{ {body} }}'
    model = onnx.parser.parse_model(text)
    for i, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{i}"
    return model


def example(value, inputs):
    """Returns input values: for x a row of zeros, a tiny row, a long one and an ordinary one in each batch."""
    kind = value.type.tensor_type
    shape = [d.dim_value or SIZES[d.dim_param] for d in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if value.name in ("x", "z"):
        data = np.random.default_rng(len(value.name) + ord(value.name[0])).standard_normal(shape) * 1.5
        if value.name == "x":
            if len(shape) == 2:
                data[0] = 0.0
            else:
                data[..., 0] = 0.0
                data[..., 1] *= 1e-4
                data[..., 2] *= 30.0
        return (data * 10).astype(dtype) if dtype == np.int32 else data.astype(dtype)
    if value.name == "a":
        return np.array([1] if dtype == np.int64 else 0.1, dtype)
    return np.array((INPUTS | inputs)[value.name], dtype)


def run(model, inputs):
    onnx.checker.check_model(model, full_check=True)
    feeds = {v.name: example(v, inputs) for v in model.graph.input}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return feeds["x"], session.run(["y"], feeds)[0]


def close(actual, expected):
    try:
        expected = np.broadcast_to(expected, actual.shape)
    except ValueError:
        return False
    return np.allclose(actual, expected, rtol=1e-4, atol=1e-6, equal_nan=True)


def write_operator(cases, out):
    """Returns the lines of the manifest: near misses and controls."""
    constants = near_miss_cases.CONSTANTS | cases.CONSTANTS
    inputs = getattr(cases, "INPUTS", {})
    lowered = {"lowered": cases.LOWERED} if hasattr(cases, "LOWERED") else {}

    def write(file, signature, body):
        model = parse(constants, signature, body)
        x, y = run(model, inputs)
        onnx.save(model, out / file)
        return any(close(y, other) for other in cases.resembled(x))

    misses, controls = [], []
    for miss in cases.MISSES:
        file = f"{cases.PREFIX}_{miss.name}.onnx"
        same = write(file, miss.signature, miss.nodes)
        assert same == miss.has_same_values, f"{file}: same values as {cases.OPERATOR}: {same}"
        words = {"words": miss.words} if miss.words else {}
        misses.append({"file": file, "operator": cases.OPERATOR, "reason": miss.reason, "same_values": same} | words)
    for name, attributes, signature, body in cases.CONTROLS:
        file = f"control_{name}.onnx"
        assert write(file, signature, body), f"{file} is not {cases.OPERATOR}"
        controls.append({"file": file, "operator": cases.OPERATOR, "attributes": attributes, "fusions": 1} | lowered)
    return misses, controls


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/golden/near_misses"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    misses, controls = [], []
    for cases in load_all("near_misses").values():
        more_misses, more_controls = write_operator(cases, out)
        misses += more_misses
        controls += more_controls

    def lines(entries):
        return ",\n".join("    " + json.dumps(entry) for entry in entries)

    (out / "manifest.json").write_text(
        f'{{\n  "made_by": "tests/golden/generators/make_near_misses.py",\n  "near_misses": [\n{lines(misses)}\n  ],\n'
        f'  "controls": [\n{lines(controls)}\n  ]\n}}\n'
    )
    print(f"{len(misses)} near misses, {len(controls)} controls")


if __name__ == "__main__":
    main()
