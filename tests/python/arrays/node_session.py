# Sessions of ONNX Runtime for models of one node, for the tests on random problems.
import numpy as np
import onnxruntime
from onnx import helper


def node_session(operator, names, inputs, outputs, opset, domain="", **attributes):
    """Returns a session with one thread. `names` are the node's inputs, "" for an absent one; `inputs` and `outputs` are
    the shapes by name, None for an unknown one, or pairs of the type and the shape where it is not f32."""

    def values(tensors):
        typed = {name: each if isinstance(each, tuple) else (np.float32, each) for name, each in tensors.items()}
        return [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
            for name, (dtype, shape) in typed.items()
        ]

    node = helper.make_node(operator, names, list(outputs), domain=domain, **attributes)
    graph = helper.make_graph([node], operator, values(inputs), values(outputs))
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # updates of one element are applied in their order
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
