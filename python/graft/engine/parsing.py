"""Parses an ONNX file with TensorRT's parser and reports its errors by node. The commands `build`, `parse` and `trials`
use this module in a worker."""

from __future__ import annotations

import pathlib
from types import ModuleType
from typing import Any

from graft.engine.events import EngineError
from graft.engine.names import named
from graft.engine.session import Session
from graft.engine.shapes import NetworkInput

DTYPE_NAMES = {
    "FLOAT": "f32",
    "HALF": "f16",
    "BF16": "bf16",
    "FP8": "f8e4m3fn",
    "INT8": "i8",
    "UINT8": "u8",
    "INT32": "i32",
    "INT64": "i64",
}


def check_model_file(path: str) -> None:
    model = pathlib.Path(path)
    if not model.is_file():
        raise EngineError("input", f"{path}: no such file", "Pass the path of an ONNX model")
    if model.stat().st_size == 0:
        raise EngineError("input", f"{path}: the file is empty", "Pass the path of a complete ONNX model")


def parse_model(session: Session, path: str, plugin_override: bool) -> tuple[Any, Any]:
    """Returns the parsed network and the parser, which owns the weights and has to outlive the network. Raises
    EngineError with the parser's errors."""
    trt = session.trt
    if not hasattr(trt, "OnnxParser"):
        raise EngineError(
            "tensorrt_missing",
            f"{session.flavor.module} has no ONNX parser",
            "Install a TensorRT with a builder: pip install tensorrt-rtx-cu13",
        )
    network = session.owner.create_network(network_flags(trt))
    parser = trt.OnnxParser(network, session.logger)
    if plugin_override:
        set_plugin_override(session, parser)
    if not parser.parse_from_file(path):
        raise parse_failure(session, path, parser_errors(parser))
    return network, parser


def network_flags(trt: ModuleType) -> int:
    """Returns the flags for a strongly typed network: the only mode of TensorRT 11 and RTX, and a flag in 10.x."""
    flag = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    return 0 if flag is None else 1 << int(flag)


def set_plugin_override(session: Session, parser: Any) -> None:
    flag = getattr(session.trt.OnnxParserFlag, "ENABLE_PLUGIN_OVERRIDE", None)
    if flag is None:
        raise EngineError(
            "option",
            f"{named('--plugin-override')}: {session.flavor.module} {session.trt.__version__} does not support this "
            "option",
            "The option needs TensorRT 10.15 or TensorRT-RTX 1.7; with an older release, remove the function from the "
            "model",
        )
    parser.set_flag(flag)


def called(value: Any) -> Any:
    """Returns `value()` if `value` is a method, otherwise `value`: some facts are methods in one release of the
    bindings and attributes in another."""
    return value() if callable(value) else value


def parser_errors(parser: Any) -> list[dict[str, Any]]:
    errors = []
    for index in range(parser.num_errors):
        error = parser.get_error(index)
        facts = {
            name: called(getattr(error, name, ""))
            for name in ("node_name", "node_operator", "desc", "func", "file", "line", "node")
        }
        code = called(error.code)
        errors.append(
            {
                "node": facts["node_name"],
                "op_type": facts["node_operator"],
                "index": facts["node"],
                "message": without_gpu(facts["desc"]),
                "code": getattr(code, "name", str(code)),
                "function": facts["func"],
                "file": facts["file"],
                "line": facts["line"],
                "local_functions": list(called(getattr(error, "local_function_stack", [])) or []),
            }
        )
    return errors


def parse_failure(session: Session, path: str, errors: list[dict[str, Any]]) -> EngineError:
    version = f"{session.flavor.module} {session.trt.__version__}"
    if any(error["code"] == "MODEL_DESERIALIZE_FAILED" for error in errors):
        return EngineError("input", f"{path}: {errors[0]['message']}", "Pass a complete ONNX model", errors=errors)
    described = "; ".join(map(describe_parser_error, errors)) or "no reason given"
    missing = sorted({e["op_type"] for e in errors if "Plugin not found" in e["message"]})
    next_step = "`graft inspect` lists nodes that TensorRT cannot run; `graft convert` rewrites those it supports"
    if missing:
        next_step = (
            f"No plugin named {', '.join(missing)} is registered with the node's plugin_version and "
            f"plugin_namespace: load its library with {named('--plugin-library')}, a library of your own operators "
            f"with {named('--operators')}, or add its function to the model"
        )
    return EngineError("parse", f"{path}: the parser of {version} refuses it: {described}", next_step, errors=errors)


def describe_parser_error(error: dict[str, Any]) -> str:
    node = f"node {error['node']!r} ({error['op_type']})" if error["op_type"] else "the model"
    return f"{node}: {error['message']} [{error['code']}, {error['function']}]"


# Lines of TensorRT about a missing GPU name this function of TensorRT.
GPU_CHECK = "catchCudaError"


def without_gpu(message: str) -> str:
    """Returns an error message without its lines about a missing GPU, if a line gives another reason; otherwise
    unchanged."""
    kept = [line for line in message.splitlines() if GPU_CHECK not in line]
    return "\n".join(kept) if any("Error Code" in line for line in kept) else message


def messages_without_gpu(messages: list[dict[str, str]], has_reason: bool) -> list[dict[str, str]]:
    """Returns the messages without those about a missing GPU, if `has_reason` is set or a remaining message is an
    error; otherwise all messages."""
    kept = [each for each in messages if GPU_CHECK not in each["message"]]
    return kept if has_reason or any(each["severity"] != "warning" for each in kept) else messages


def network_inputs(network: Any) -> list[NetworkInput]:
    inputs = []
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        shape = tuple(tensor.shape)
        names = ()
        if hasattr(tensor, "get_dimension_name"):
            names = tuple(tensor.get_dimension_name(axis) or "" for axis in range(len(shape)))
        inputs.append(NetworkInput(tensor.name, shape, names, bool(tensor.is_shape_tensor)))
    return inputs


def dtype_name(dtype: Any) -> str:
    """Returns Graft's name of a TensorRT data type, or TensorRT's name where Graft has no such type."""
    return DTYPE_NAMES.get(dtype.name, dtype.name.lower())


def describe_tensor(tensor: Any) -> dict[str, Any]:
    return {"name": tensor.name, "dtype": dtype_name(tensor.dtype), "shape": list(tensor.shape)}


def aliased_layers(trt: ModuleType, network: Any) -> list[str]:
    """Returns the names of layers whose plugins have the second version of the build interface, with which an output
    may have the memory of an input. The bindings cannot read from a C++ plugin which output does (TensorRT-RTX 1.7)."""
    names = []
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        if layer.type != getattr(trt.LayerType, "PLUGIN_V3", None):
            continue
        layer.__class__ = trt.IPluginV3Layer
        build = layer.plugin.get_capability_interface(trt.PluginCapabilityType.BUILD)
        info = getattr(build, "interface_info", None)
        if info is not None and info.major > 1:
            names.append(layer.name)
    return names


def describe_network(trt: ModuleType, network: Any, with_layers: bool) -> dict[str, Any]:
    """Returns the network's inputs, outputs, counts by layer type and plugin layers, and all layers where `with_layers`
    is set."""
    layers = [network.get_layer(index) for index in range(network.num_layers)]
    counts: dict[str, int] = {}
    for layer in layers:
        name = layer.type.name.lower()
        counts[name] = counts.get(name, 0) + 1
    described = {
        "inputs": [describe_tensor(network.get_input(i)) for i in range(network.num_inputs)],
        "outputs": [describe_tensor(network.get_output(i)) for i in range(network.num_outputs)],
        "layer_count": len(layers),
        "layer_types": dict(sorted(counts.items())),
        "plugins": [p for p in (describe_plugin_layer(trt, layer) for layer in layers) if p],
    }
    if with_layers:
        described["layers"] = [
            {
                "name": layer.name,
                "type": layer.type.name.lower(),
                "metadata": layer.metadata,
                "outputs": [describe_tensor(layer.get_output(i)) for i in range(layer.num_outputs)],
            }
            for layer in layers
        ]
    return described


def describe_plugin_layer(trt: ModuleType, layer: Any) -> dict[str, Any] | None:
    """Returns the name, version and namespace of a plugin layer's plugin, or None for a native layer.

    The bindings cannot read the serialized fields of a C++ plugin; the metadata string is its only description.
    """
    facts: dict[str, Any] = {"layer": layer.name, "metadata": ""}
    if layer.type == getattr(trt.LayerType, "PLUGIN_V3", None):
        layer.__class__ = trt.IPluginV3Layer
        core = layer.plugin.get_capability_interface(trt.PluginCapabilityType.CORE)
        build = layer.plugin.get_capability_interface(trt.PluginCapabilityType.BUILD)
        facts |= {
            "name": core.plugin_name,
            "version": core.plugin_version,
            "namespace": core.plugin_namespace,
            "generation": "V3",
            "metadata": getattr(build, "metadata_string", None) or "",
        }
    elif layer.type in (getattr(trt.LayerType, "PLUGIN_V2", None), getattr(trt.LayerType, "PLUGIN", None)):
        layer.__class__ = trt.IPluginV2Layer
        facts |= {
            "name": layer.plugin.plugin_type,
            "version": layer.plugin.plugin_version,
            "namespace": layer.plugin.plugin_namespace,
            "generation": "V2",
        }
    else:
        return None
    facts["inputs"] = [describe_tensor(layer.get_input(i)) for i in range(layer.num_inputs) if layer.get_input(i)]
    facts["outputs"] = [describe_tensor(layer.get_output(i)) for i in range(layer.num_outputs)]
    return facts
