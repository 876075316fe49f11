# A stand-in for TensorRT's Python: the part that run_canary.py uses, over ONNX Runtime, with faults that a test injects.
"""CANARY_FAULT is a JSON object:

operator, tensor: whose outputs are wrong: those of every such node, or this one. change: how (CHANGES).
while_inside: only while none of these tensors is an output, as where the nodes between are fused.
refuse: the parser refuses nodes of this operator. not_built_with: the builder refuses while this tensor is an output.
"""

import ctypes
import enum
import json
import os

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

__version__ = "10.0.stand-in"
FAULT = json.loads(os.environ.get("CANARY_FAULT", "{}"))
libraries = []


class DataType(enum.Enum):
    FLOAT = np.float32
    HALF = np.float16
    INT32 = np.int32
    INT64 = np.int64
    BOOL = np.bool_


class TensorIOMode(enum.Enum):
    INPUT = 1
    OUTPUT = 2


class TensorLocation(enum.Enum):
    DEVICE = 0
    HOST = 1


class NetworkDefinitionCreationFlag(enum.IntEnum):
    STRONGLY_TYPED = 1


class BuilderFlag(enum.IntEnum):
    TF32 = 7


class ILogger:
    class Severity(enum.IntEnum):
        INTERNAL_ERROR = 0
        ERROR = 1
        WARNING = 2
        INFO = 3
        VERBOSE = 4


class Registry:
    def load_library(self, path):
        return path if os.path.isfile(path) else None


def get_plugin_registry():
    return Registry()


class Tensor:
    def __init__(self, name, shape=()):
        self.name = name
        self.shape = shape


class Layer:
    def __init__(self, node):
        self.outputs = [Tensor(name) for name in node.output if name]
        self.num_outputs = len(self.outputs)

    def get_output(self, number):
        return self.outputs[number]


class Network:
    def __init__(self, flags):
        self.is_typed = flags == 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED
        self.marked = []

    def take(self, model):
        self.model = model
        self.layers = [Layer(node) for node in model.graph.node if node.op_type != "Constant"]
        self.num_layers = len(self.layers)
        weights = {each.name for each in model.graph.initializer}
        self.inputs = [
            Tensor(each.name, tuple(d.dim_value or -1 for d in each.type.tensor_type.shape.dim))
            for each in model.graph.input
            if each.name not in weights
        ]
        self.num_inputs = len(self.inputs)

    def get_layer(self, number):
        return self.layers[number]

    def get_input(self, number):
        return self.inputs[number]

    def mark_output(self, tensor):
        outputs = [each.name for each in self.model.graph.output]
        assert tensor.name not in [*outputs, *self.marked], "TensorRT refuses a second mark"
        self.marked.append(tensor.name)


class ParserError:
    def __init__(self, node):
        self.node = node

    def node_name(self):
        return self.node.name

    def node_operator(self):
        return self.node.op_type

    def desc(self):
        return "no importer registered for it"


class OnnxParser:
    def __init__(self, network, logger):
        self.network = network
        self.errors = []

    @property
    def num_errors(self):
        return len(self.errors)

    def get_error(self, number):
        return self.errors[number]

    def parse_from_file(self, path):
        model = onnx.load(path)
        self.errors = [ParserError(node) for node in model.graph.node if node.op_type == FAULT.get("refuse")]
        self.network.take(model)
        return not self.errors


class Profile(dict):
    def set_shape(self, name, lowest, usual, highest):
        self[name] = (lowest, usual, highest)


class Config:
    def __init__(self):
        self.tf32 = True  # the default of the full TensorRT
        self.profiles = []

    def set_flag(self, flag):
        self.tf32 = True

    def clear_flag(self, flag):
        self.tf32 = False

    def add_optimization_profile(self, profile):
        self.profiles.append(profile)


class Builder:
    def __init__(self, logger):
        self.logger = logger

    def create_network(self, flags):
        return Network(flags)

    def create_builder_config(self):
        return Config()

    def create_optimization_profile(self):
        return Profile()

    def build_serialized_network(self, network, config):
        assert network.is_typed, "the model's own types, where nothing else is asked for"
        if FAULT.get("not_built_with") in network.marked:
            self.logger.log(ILogger.Severity.ERROR, "could not find any implementation")
            return None
        dynamic = {each.name for each in network.inputs if -1 in each.shape}
        if dynamic - {name for profile in config.profiles for name in profile}:
            self.logger.log(ILogger.Severity.ERROR, "network has dynamic inputs, but no optimization profile")
            return None
        model = onnx.ModelProto()
        model.CopyFrom(network.model)
        for name in network.marked:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
        inject(model, network.marked, config.tf32)
        return model.SerializeToString()


def scaled(source, target, factor):
    name = target + "/factor"
    value = numpy_helper.from_array(np.float32(factor), name)
    return [helper.make_node("Constant", [], [name], value=value), helper.make_node("Mul", [source, name], [target])]


def turned(source, target):
    return [
        helper.make_node("Transpose", [source], [target + "/turned"], perm=[0, 1, 3, 2]),
        *scaled(target + "/turned", target, 1.5),
    ]


def shifted(source, target):
    name = target + "/shift"
    value = numpy_helper.from_array(np.float32(100), name)
    return [helper.make_node("Constant", [], [name], value=value), helper.make_node("Add", [source, name], [target])]


CHANGES = {
    "scale": lambda source, target: scaled(source, target, 1.5),
    "slightly": lambda source, target: scaled(source, target, 1.002),
    "nan": lambda source, target: scaled(source, target, np.nan),
    "shape": turned,
    "more": shifted,
}


def inject(model, marked, tf32):
    if any(name in marked for name in FAULT.get("while_inside", [])) or (FAULT.get("tf32") and not tf32):
        return
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        for place, name in enumerate(node.output):
            if node.op_type == FAULT.get("operator") or name == FAULT.get("tensor"):
                node.output[place] = name + "/right"
                nodes += CHANGES[FAULT.get("change", "scale")](name + "/right", name)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)


class Runtime:
    def __init__(self, logger):
        pass

    def deserialize_cuda_engine(self, plan):
        return Engine(plan)


class Engine:
    def __init__(self, plan):
        self.session = onnxruntime.InferenceSession(plan, providers=["CPUExecutionProvider"])
        self.inputs = {each.name: each for each in self.session.get_inputs()}
        self.outputs = {each.name: each for each in self.session.get_outputs()}
        self.names = [*self.inputs, *self.outputs]
        self.num_io_tensors = len(self.names)

    def get_tensor_name(self, number):
        return self.names[number]

    def get_tensor_mode(self, name):
        return TensorIOMode.INPUT if name in self.inputs else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name):
        kinds = {"float": "FLOAT", "float16": "HALF", "int64": "INT64", "int32": "INT32", "bool": "BOOL"}
        return DataType[kinds[(self.inputs | self.outputs)[name].type[len("tensor(") : -1]]]

    def get_tensor_location(self, name):
        return TensorLocation.DEVICE

    def create_execution_context(self):
        return Context(self)


class Context:
    """Runs the model where all inputs have shapes and addresses, and copies the outputs."""

    def __init__(self, engine):
        self.engine = engine
        self.shapes = {}
        self.addresses = {}
        self.results = None

    def set_input_shape(self, name, shape):
        self.shapes[name] = tuple(shape)

    def set_tensor_address(self, name, address):
        self.addresses[name] = address

    def array_at(self, name):
        kind, shape = np.dtype(self.engine.get_tensor_dtype(name).value), self.shapes[name]
        size = int(np.prod(shape)) * kind.itemsize
        return np.frombuffer(ctypes.string_at(self.addresses[name], size), kind).reshape(shape)

    def compute(self):
        feeds = {name: self.array_at(name) for name in self.engine.inputs}
        return dict(zip(self.engine.outputs, self.engine.session.run(None, feeds)))

    def get_tensor_shape(self, name):
        return self.compute()[name].shape

    def execute_async_v3(self, stream):
        assert stream == 77
        for name, array in self.compute().items():
            ctypes.memmove(self.addresses[name], np.ascontiguousarray(array).ctypes.data, array.nbytes)
        return True
