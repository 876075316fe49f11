# A network that contains GatedTanh as standard ONNX operators, as an exporter writes it.
"""gated_tanh_network.py FILE.onnx writes the network."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

SHAPES = {"x": [2, 8, 100], "gate": [2, 8, 100]}
STEEPNESS = 1.5


def expected(x, gate):
    """Computes the network in NumPy."""
    return -np.tanh(x) / (1 + np.exp(-STEEPNESS * gate))


def model_of(nodes):
    """Returns a model of the nodes, which compute `gated`, and one node after them."""
    x, gate, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPES["x"]) for name in ("x", "gate", "y"))
    steepness = onnx.numpy_helper.from_array(np.float32(STEEPNESS), "steepness")
    nodes = [*nodes, helper.make_node("Neg", ["gated"], ["y"])]
    graph = helper.make_graph(nodes, "network", [x, gate], [y], [steepness])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("graft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def network():
    return model_of(
        [
            helper.make_node("Tanh", ["x"], ["value"]),
            helper.make_node("Mul", ["gate", "steepness"], ["steep"]),
            helper.make_node("Sigmoid", ["steep"], ["share"]),
            helper.make_node("Mul", ["value", "share"], ["gated"]),
        ]
    )


def with_operator():
    """Returns the network with the operator itself, to which `graft convert` converts `network`."""
    node = helper.make_node("GatedTanh", ["x", "gate"], ["gated"], domain="graft", steepness=STEEPNESS)
    return model_of([node])


if __name__ == "__main__":
    onnx.save(network(), sys.argv[1])
