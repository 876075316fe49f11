# A network that has RmsNorm in standard ONNX operators, as an exporter writes it.
"""network.py FILE.onnx writes the network."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

SHAPES = {"x": [2, 16, 64]}


def expected(x):
    """What the network computes."""
    return -x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-3)


def network():
    constants = [
        onnx.numpy_helper.from_array(np.float32(1e-3), "epsilon"),
        onnx.numpy_helper.from_array(np.float32(2), "two"),
    ]
    nodes = [
        helper.make_node("Pow", ["x", "two"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["mean"], axes=[-1], keepdims=1),
        helper.make_node("Add", ["mean", "epsilon"], ["sum"]),
        helper.make_node("Sqrt", ["sum"], ["root"]),
        helper.make_node("Div", ["x", "root"], ["normal"]),
        helper.make_node("Neg", ["normal"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPES["x"]) for name in "xy")
    graph = helper.make_graph(nodes, "network", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    onnx.save(network(), sys.argv[1])
