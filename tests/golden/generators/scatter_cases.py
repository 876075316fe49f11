# scatter_cases.py - shared parts of the golden generators of operators that scatter updates with a reduction.
import onnxruntime
import torch
from golden_cases import random_values
from onnx import helper


def scatter(operator):
    """Returns the function that computes ONNX's operator of this name in ONNX Runtime."""

    def run(x, attributes, indices, updates):
        x = x.to(torch.int64 if updates.dtype == torch.int64 else torch.float64)
        arrays = {"x": x.numpy(), "indices": indices.numpy(), "updates": updates.to(x.dtype).numpy()}
        node = helper.make_node(operator, list(arrays), ["y"], **attributes)
        values = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in arrays.items()
        ]
        output = helper.make_tensor_value_info("y", values[0].type.tensor_type.elem_type, x.shape)
        graph = helper.make_graph([node], "scatter", values, [output])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # reduces the updates of one slice in their order
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return torch.from_numpy(session.run(None, arrays)[0])

    return run


def numbers(name, shape, dtype, reduction):
    """Returns values that every type represents, and whose sums and products are exact in float32."""
    if reduction == "mul":
        return torch.round(random_values(name, shape)).sign() * torch.exp2(
            torch.round(random_values(name + " e", shape))
        )
    return torch.round(4 * random_values(name, shape)) / (1 if dtype == "i64" else 4)
