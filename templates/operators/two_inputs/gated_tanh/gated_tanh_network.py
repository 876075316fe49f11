# A network that has GatedTanh in standard ONNX operators, as an exporter writes it.
"""gated_tanh_network.py FILE.onnx writes the network."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

SHAPES = {"x": [2, 8, 100], "gate": [2, 8, 100]}


def expected(x, gate):
    """What the network computes."""
    return -np.tanh(x) / (1 + np.exp(-gate))


def model_of(nodes):
    """The nodes, which compute `gated`, and one after them."""
    x, gate, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPES["x"]) for name in ("x", "gate", "y"))
    nodes = [*nodes, helper.make_node("Neg", ["gated"], ["y"])]
    graph = helper.make_graph(nodes, "network", [x, gate], [y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("graft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def network():
    return model_of(
        [
            helper.make_node("Tanh", ["x"], ["value"]),
            helper.make_node("Sigmoid", ["gate"], ["share"]),
            helper.make_node("Mul", ["value", "share"], ["gated"]),
        ]
    )


def with_operator():
    """The same network with the operator itself in it, which `graft convert` makes of the other."""
    return model_of([helper.make_node("GatedTanh", ["x", "gate"], ["gated"], domain="graft")])


if __name__ == "__main__":
    onnx.save(network(), sys.argv[1])
