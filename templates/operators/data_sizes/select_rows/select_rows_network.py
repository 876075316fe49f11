# A network that contains SelectRows as standard ONNX operators, as an exporter writes it.
"""select_rows_network.py FILE.onnx writes the network."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPES = {"x": [100, 6], "score": [100]}
THRESHOLD = 0.25


def expected(x, score):
    """Computes the network in NumPy: the rows with a score above the threshold, negated."""
    return -x[score > THRESHOLD]


def model_of(nodes):
    """Returns a model of the nodes, which compute `rows`, and one node after them."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in SHAPES.items()]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["count", 6])
    threshold = numpy_helper.from_array(np.array(THRESHOLD, np.float32), "threshold")
    nodes = [*nodes, helper.make_node("Neg", ["rows"], ["y"])]
    graph = helper.make_graph(nodes, "network", inputs, [y], [threshold])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("graft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def network():
    return model_of(
        [
            helper.make_node("Greater", ["score", "threshold"], ["selected"]),
            helper.make_node("Compress", ["x", "selected"], ["rows"], axis=0),
        ]
    )


def with_operator():
    """Returns the network with the operator itself, to which `graft convert` converts `network`."""
    return model_of([helper.make_node("SelectRows", ["x", "score"], ["rows"], domain="graft", threshold=THRESHOLD)])


if __name__ == "__main__":
    onnx.save(network(), sys.argv[1])
