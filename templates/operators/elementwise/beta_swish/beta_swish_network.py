# A network that contains BetaSwish as standard ONNX operators, as an exporter writes it.
"""beta_swish_network.py FILE.onnx writes the network."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

SHAPES = {"x": [2, 8, 16, 16]}
BETA = 1.5


def expected(x):
    """Computes the network in NumPy."""
    return -x / (1 + np.exp(-BETA * x))


def model_of(nodes):
    """Returns a model of the nodes, which compute `activated`, and one node after them."""
    beta = onnx.numpy_helper.from_array(np.float32(BETA), "beta")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPES["x"]) for name in "xy")
    nodes = [*nodes, helper.make_node("Neg", ["activated"], ["y"])]
    graph = helper.make_graph(nodes, "network", [x], [y], [beta])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("graft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def network():
    return model_of(
        [
            helper.make_node("Mul", ["x", "beta"], ["steep"]),
            helper.make_node("Sigmoid", ["steep"], ["gate"]),
            helper.make_node("Mul", ["x", "gate"], ["activated"]),
        ]
    )


def with_operator():
    """Returns the network with the operator itself, to which `graft convert` converts `network`."""
    return model_of([helper.make_node("BetaSwish", ["x"], ["activated"], domain="graft", beta=BETA)])


if __name__ == "__main__":
    onnx.save(network(), sys.argv[1])
