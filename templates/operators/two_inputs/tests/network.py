# A network that has GatedTanh in standard ONNX operators, as an exporter writes it.
"""network.py FILE.onnx writes the network."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

SHAPES = {"x": [2, 8, 100], "gate": [2, 8, 100]}


def expected(x, gate):
    """What the network computes."""
    return -np.tanh(x) / (1 + np.exp(-gate))


def network():
    nodes = [
        helper.make_node("Tanh", ["x"], ["value"]),
        helper.make_node("Sigmoid", ["gate"], ["share"]),
        helper.make_node("Mul", ["value", "share"], ["gated"]),
        helper.make_node("Neg", ["gated"], ["y"]),
    ]
    x, gate, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPES["x"]) for name in ("x", "gate", "y"))
    graph = helper.make_graph(nodes, "network", [x, gate], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    onnx.save(network(), sys.argv[1])
