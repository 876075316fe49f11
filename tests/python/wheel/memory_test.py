"""Tests that inputs and outputs of 256 MiB are not copied. Each call runs in a process of its own, whose peak
resident size is measured."""

import pathlib
import subprocess
import sys

import onnx
import pytest
from onnx import TensorProto, helper

MIB = 1 << 20
ARRAY = 256
# The memory of a call itself, in MiB: compiled kernels, threads, allocators.
SLACK = 96
START = """
import resource
import sys
import graft
import numpy as np

small = graft.load(sys.argv[3])
graft.verify(small, small)  # all libraries are loaded
network = graft.load(sys.argv[1])
x = np.arange(1 << 26, dtype=np.float32).reshape(-1, int(sys.argv[2]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
"""
END = """
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def growth(folder: pathlib.Path, call: str, shape: list[object], row: int, *operators: str) -> int:
    """Returns the growth of the peak resident size in MiB during the call, with an array `x` in rows of this length."""
    names = ["x", *(f"inner{i}" for i in range(1, len(operators))), "y"]
    nodes = [helper.make_node(op, [names[i]], [names[i + 1]]) for i, op in enumerate(operators)]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name, sizes in [("x", shape), ("y", None)]
    )
    graph = helper.make_graph(nodes, "network", [x], [y])
    small = helper.make_graph(nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8])], [y])
    for name, each in (("m", graph), ("small", small)):
        model = helper.make_model(each, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, folder / f"{name}.onnx")
    done = subprocess.run(
        [sys.executable, "-c", START + call + END, folder / "m.onnx", str(row), folder / "small.onnx"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("engine", ["openvino", "auto"])
def test_what_a_session_copies(tmp_path: pathlib.Path, engine: str) -> None:
    """The caller's array is sent to the engine's process without a copy, and the output uses the memory of the received
    message. The output of OpenVINO's first run is kept until a second run has confirmed it.
    """
    call = f"""
y = graft.Session(network, engine="{engine}").run(x)["y"]
assert y.base is not None and y.flags.writeable
np.testing.assert_array_equal(y[0, -5:], -x[0, -5:])
"""
    grown = growth(tmp_path, call, [1, 1 << 26], 1 << 26, "Neg")
    assert ARRAY - 8 <= grown < 2 * ARRAY + SLACK


def test_verify_copies_no_data(tmp_path: pathlib.Path) -> None:
    """A fixed batch reads a part of the array at a time, so that the engine needs little memory for a run."""
    call = 'assert graft.verify(network, network, data={"x": x}).same'
    assert growth(tmp_path, call, [1, "n"], 1 << 20, "ReduceMax") < SLACK


@pytest.mark.parametrize("precision", ["f16", "int8"])
def test_quantize_copies_no_data(tmp_path: pathlib.Path, precision: str) -> None:
    call = f'graft.quantize(network, data=x, precision="{precision}")'
    assert growth(tmp_path, call, [1, "n"], 1 << 20, "Relu", "ReduceMax") < SLACK
