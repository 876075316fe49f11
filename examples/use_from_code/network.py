# Builds a network with Graft's plugins through TensorRT's Python API.
"""network.py TENSORRT [ENGINE]: TENSORRT is tensorrt, tensorrt_rtx or tensorrt_lean."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import graft.plugins
import onnx

trt: Any = importlib.import_module(sys.argv[1])
logger = trt.Logger(trt.Logger.WARNING)


def write_network(network: Any) -> None:
    """Adds two of Graft's plugins and a native layer, with the API of TensorRT 10 and 11."""
    image = network.add_input("image", trt.float32, (1, 3, 32, 32))
    normal = graft.plugins.add(network, "L2Normalize", [image], axes=[1], epsilon=1e-6)
    leaky = graft.plugins.add(network, "LeakyReLU", [normal.get_output(0)], name="activation", alpha=0.1)
    finish(network, leaky.get_output(0))


def write_network_from_onnx(network: Any) -> None:
    """Adds a plugin through the ONNX parser, because TensorRT-RTX has no API for plugins, and then native layers."""
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


def build(path: str) -> None:
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    by_hand = hasattr(network, "add_plugin_v3")
    (write_network if by_hand else write_network_from_onnx)(network)
    config = builder.create_builder_config()
    if hasattr(config, "set_compute_capability"):  # TensorRT-RTX builds for a GPU that this machine need not have
        config.num_compute_capabilities = 1
        config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise RuntimeError("TensorRT did not build the network; its log says why")
    with open(path, "wb") as file:
        file.write(engine)
    print(f"wrote {path}: the plugin came in through {'add_plugin_v3' if by_hand else 'the ONNX parser'}")


def main() -> None:
    registered = graft.plugins.register(tensorrt=trt)
    print(f"{registered.library} in {registered.tensorrt}:", *(creator.name for creator in registered.added))
    if len(sys.argv) > 2:
        build(sys.argv[2])


if __name__ == "__main__":
    main()
