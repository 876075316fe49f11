# Creates small ONNX models for tests, and runs models in ONNX Runtime.
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def info(name, element_type=TensorProto.FLOAT, shape=None):
    """Returns the declaration of a tensor."""
    return helper.make_tensor_value_info(name, element_type, shape)


def node(op, inputs, outputs, **attributes):
    """Returns a node with the name of its first output. Names of tensors are separated by spaces."""
    return helper.make_node(op, inputs.split(), outputs.split(), **{"name": outputs.split()[0], **attributes})


def constant(name, values, dtype=None):
    """Returns a constant. Without `dtype`, arrays keep their type and Python's numbers become f32; f64 becomes f32."""
    if dtype is None:
        dtype = getattr(values, "dtype", np.float32)
        dtype = np.float32 if dtype == np.float64 else dtype
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def subgraph(nodes, inputs, outputs, constants=(), name="subgraph"):
    """Returns a graph: a branch, the body of a loop, or the graph of a model.

    Inputs and outputs are (name, shape) of f32, (name, type, shape), or declarations. `constants` is a dict of arrays
    by name, or a list of tensors.
    """
    if isinstance(constants, dict):
        constants = [numpy_helper.from_array(np.asarray(values), key) for key, values in constants.items()]

    def declared(item):
        if isinstance(item, onnx.ValueInfoProto):
            return item
        return info(item[0], TensorProto.FLOAT, item[1]) if len(item) == 2 else info(*item)

    return helper.make_graph(list(nodes), name, [*map(declared, inputs)], [*map(declared, outputs)], list(constants))


def make_model(nodes, inputs, outputs, constants=(), opset=17, functions=(), domains=(), ir_version=8):
    """Returns a model of the arguments of `subgraph`. `domains` are imported in addition to ONNX's."""
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    graph = subgraph(nodes, inputs, outputs, constants, "test")
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, functions=list(functions))


def save(path, *arguments, **options):
    """Writes a model of the arguments of `make_model`, and returns the path."""
    onnx.save(make_model(*arguments, **options), path)
    return path


def session_of(model, *, is_optimized=True, **settings):
    """Returns a session of a model, its bytes or its file. Without optimizations, ONNX Runtime rounds as the model says;
    other settings are those of its SessionOptions."""
    options = onnxruntime.SessionOptions()
    if not is_optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for name, value in settings.items():
        setattr(options, name, value)
    if isinstance(model, onnx.ModelProto):
        model = model.SerializeToString()
    elif not isinstance(model, bytes):
        model = str(model)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_onnx(model, feeds, **options):
    """Returns every output by name; the options are those of `session_of`."""
    session = session_of(model, **options)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))
