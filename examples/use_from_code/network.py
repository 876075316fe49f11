# A network with Graft's plugins, written by hand with TensorRT's Python API.
"""network.py TENSORRT LIBRARY [ENGINE]: TENSORRT is tensorrt, tensorrt_rtx or tensorrt_lean; LIBRARY libgraft_plugins.so."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
import onnx

trt: Any = importlib.import_module(sys.argv[1])
logger = trt.Logger(trt.Logger.WARNING)


def field(name: str, value: float | int | str | list[int] | list[float]) -> Any:
    """A plugin field of the type that goes with a Python value."""
    if isinstance(value, str):
        return trt.PluginField(name, np.frombuffer(value.encode(), np.int8), trt.PluginFieldType.CHAR)
    array = np.atleast_1d(np.array(value))
    if array.dtype.kind == "f":
        return trt.PluginField(name, array.astype(np.float32), trt.PluginFieldType.FLOAT32)
    return trt.PluginField(name, array.astype(np.int64), trt.PluginFieldType.INT64)


def make_plugin(name: str, version: str = "1", **attributes: Any) -> Any:
    """The plugin of an operator; attributes that are left out have their defaults (`graft ops NAME`)."""
    creator = trt.get_plugin_registry().get_creator(name, version, "graft")
    if creator is None:
        raise LookupError(f"no creator {name} of version {version}: is the plugin library loaded?")
    fields = [field(key, value) for key, value in attributes.items()]  # kept alive until the plugin is made
    plugin = creator.create_plugin(name, trt.PluginFieldCollection(fields), trt.TensorRTPhase.BUILD)
    if plugin is None:
        raise ValueError(f"{name} refused {attributes}; TensorRT's log says which and why")
    return plugin


def write_network(network: Any) -> None:
    """With add_plugin_v3, which TensorRT 10 and 11 have: LeakyReLU, then a native layer."""
    image = network.add_input("image", trt.float32, (1, 3, 32, 32))
    leaky = network.add_plugin_v3([image], [], make_plugin("LeakyReLU", alpha=0.1))
    finish(network, leaky.get_output(0))


def write_network_from_onnx(network: Any) -> None:
    """Without add_plugin_v3, which TensorRT-RTX lacks: the ONNX parser adds the plugin, the rest follows by hand."""
    node = onnx.helper.make_node("LeakyReLU", ["image"], ["leaky"], domain="graft", alpha=0.1)
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 3, 32, 32]) for n in ("image", "leaky")]
    graph = onnx.helper.make_graph([node], "start", ends[:1], ends[1:])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("graft", 1)]
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()):
        raise ValueError(parser.get_error(0).desc())
    leaky = network.get_output(0)
    network.unmark_output(leaky)
    finish(network, leaky)


def finish(network: Any, tensor: Any) -> None:
    result = network.add_activation(tensor, trt.ActivationType.TANH).get_output(0)
    result.name = "result"
    network.mark_output(result)


def build(path: str) -> str:
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    by_hand = hasattr(network, "add_plugin_v3")
    (write_network if by_hand else write_network_from_onnx)(network)
    config = builder.create_builder_config()
    if hasattr(config, "set_compute_capability"):  # TensorRT-RTX: for a GPU that need not be here
        config.num_compute_capabilities = 1
        config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise RuntimeError("TensorRT did not build the network; its log says why")
    with open(path, "wb") as file:
        file.write(engine)
    return "add_plugin_v3" if by_hand else "the ONNX parser, as this TensorRT has no add_plugin_v3"


def main() -> None:
    library, *engine = sys.argv[2:]
    if trt.get_plugin_registry().load_library(library) is None:
        raise OSError(f"{library} was not loaded; TensorRT's log says why")
    print(
        "plugins made:", make_plugin("LeakyReLU", alpha=0.1), make_plugin("L2Normalize", axes=[1], epsilon_mode="norm")
    )
    if engine:
        print(f"wrote {engine[0]}: the plugin came in through {build(engine[0])}")


if __name__ == "__main__":
    main()
