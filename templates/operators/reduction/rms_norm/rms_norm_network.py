# A network that contains RmsNorm as standard ONNX operators, as an exporter writes it.
"""rms_norm_network.py FILE.onnx writes the network."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

SHAPES = {"x": [2, 16, 64]}
EPSILON = 1e-3


def expected(x):
    """Computes the network in NumPy."""
    return -x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON)


def model_of(nodes):
    """Returns a model of the nodes, which compute `normal`, and one node after them."""
    constants = [
        onnx.numpy_helper.from_array(np.float32(EPSILON), "epsilon"),
        onnx.numpy_helper.from_array(np.float32(2), "two"),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPES["x"]) for name in "xy")
    nodes = [*nodes, helper.make_node("Neg", ["normal"], ["y"])]
    graph = helper.make_graph(nodes, "network", [x], [y], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("graft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def network():
    return model_of(
        [
            helper.make_node("Pow", ["x", "two"], ["square"]),
            helper.make_node("ReduceMean", ["square"], ["mean"], axes=[-1], keepdims=1),
            helper.make_node("Add", ["mean", "epsilon"], ["sum"]),
            helper.make_node("Sqrt", ["sum"], ["root"]),
            helper.make_node("Div", ["x", "root"], ["normal"]),
        ]
    )


def with_operator():
    """Returns the network with the operator itself, to which `graft convert` converts `network`."""
    return model_of([helper.make_node("RmsNorm", ["x"], ["normal"], domain="graft", epsilon=EPSILON)])


if __name__ == "__main__":
    onnx.save(network(), sys.argv[1])
