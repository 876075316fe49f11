# Writes ONNX files with Graft's nodes by onnx.helper.
"""write_onnx.py graft|drop-in FILE.onnx: InstanceNorm and LeakyReLU with Graft's names, or with older plugins' names."""

import sys

from onnx import TensorProto, helper, save

INPUT, OUTPUT = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, 32, 32]) for name in ("image", "result"))


def graft_names() -> list:
    """Returns nodes in Graft's domain; omitted attributes have their defaults."""
    return [
        helper.make_node("InstanceNorm", ["image"], ["normal"], domain="graft", epsilon=1e-3, scales=[1.0, 2.0, 3.0]),
        helper.make_node("LeakyReLU", ["normal"], ["result"], domain="graft", alpha=0.1),
    ]


def drop_in_names() -> list:
    """Returns nodes with the names of other plugins, in any domain; `plugin_version` is needed where it is not 1."""
    norm = {"epsilon": 1e-3, "scales": [1.0, 2.0, 3.0], "bias": [0.0, 0.0, 0.0], "relu": 0, "plugin_version": "3"}
    return [
        helper.make_node("InstanceNormalization_TRT", ["image"], ["normal"], domain="trt", **norm),
        helper.make_node("LReLU_TRT", ["normal"], ["result"], domain="trt", negSlope=0.1),
    ]


nodes = {"graft": graft_names, "drop-in": drop_in_names}[sys.argv[1]]()
opsets = [helper.make_opsetid("", 17), helper.make_opsetid(nodes[0].domain, 1)]
graph = helper.make_graph(nodes, "by_hand", [INPUT], [OUTPUT])
save(helper.make_model(graph, opset_imports=opsets, ir_version=8), sys.argv[2])
