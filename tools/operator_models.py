# ONNX models of one Graft operator each, as a plugin node and as its own function: for tools/compat.py and for tests.
"""What an operator is comes from `graft ops --json`, so a new operator needs no line here but attribute values."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

DOMAIN = "graft"
DTYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "i8": TensorProto.INT8}
OPSET = 18  # ReduceSum with axes as an input, CastLike

# Values for required attributes; every other attribute takes its default.
REQUIRED = {"op_type": 1}

ONNX_TYPES = {
    "float": AttributeProto.FLOAT,
    "floats": AttributeProto.FLOATS,
    "int": AttributeProto.INT,
    "ints": AttributeProto.INTS,
    "string": AttributeProto.STRING,
    "value_float": AttributeProto.FLOAT,
    "value_ints": AttributeProto.INTS,
    "value_int": AttributeProto.INT,
}


@dataclass(frozen=True)
class PluginName:
    """A name under which an operator is registered, and its operator as `graft ops --json` describes it."""

    name: str
    version: str
    operator: dict[str, Any]
    field_of: dict[str, str]  # attribute to field

    def attributes(self, dtype: str) -> dict[str, Any]:
        values = {}
        for attribute in self.operator["attributes"]:
            name = attribute["name"]
            value = REQUIRED.get(name, attribute["default"])
            if dtype == "i8" and name.endswith("_scale"):
                value = 0.05
            values[self.field_of.get(name, name)] = value
        return values


def operators(graft: pathlib.Path) -> list[dict[str, Any]]:
    listed = subprocess.run([str(graft), "ops", "--json"], check=True, capture_output=True, text=True).stdout
    found = json.loads(listed)
    return found["operators"] if isinstance(found, dict) else found


def plugin_names(operator: dict[str, Any]) -> list[PluginName]:
    """The operator's own name and those of the plugins that it stands in for."""
    names = [PluginName(operator["name"], str(operator["version"]), operator, {})]
    for drop_in in operator["drop_ins"]:
        fields = {field["attribute"]: field["name"] for field in drop_in["fields"]}
        names.append(PluginName(drop_in["name"], str(drop_in["version"]), operator, fields))
    return names


def model(
    node: onnx.NodeProto,
    dtype: str,
    shape: Sequence[int | str],
    functions: Sequence[onnx.FunctionProto] = (),
    quantise: bool = True,
) -> onnx.ModelProto:
    """x through the node to y; where dtype is i8 f32 outside, or with quantise=False i8 outside too."""
    nodes, initializers = [node], []
    inner = DTYPES[dtype]
    outer = TensorProto.FLOAT if dtype == "i8" and quantise else inner
    if dtype == "i8" and quantise:
        initializers = [
            numpy_helper.from_array(np.array(0.05, np.float32), "step"),
            numpy_helper.from_array(np.array(0, np.int8), "zero"),
        ]
        node.input[:], node.output[:] = ["x_i8"], ["y_i8"]
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "step", "zero"], ["x_i8"], name="quantize"),
            node,
            helper.make_node("DequantizeLinear", ["y_i8", "step", "zero"], ["y"], name="dequantize"),
        ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", outer, shape)],
        [helper.make_tensor_value_info("y", outer, shape)],
        initializers,
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)


def call(op_type: str, attributes: dict[str, Any]) -> onnx.NodeProto:
    node = helper.make_node(op_type, ["x"], ["y"], name="the_node", domain=DOMAIN)
    # Not as keywords: an operator may have an attribute named op_type.
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    return node


def plugin_model(plugin: PluginName, dtype: str, shape: Sequence[int | str], quantise: bool = True) -> onnx.ModelProto:
    """The operator as a plugin node, without its function."""
    attributes = {"plugin_version": plugin.version, "plugin_namespace": "", **plugin.attributes(dtype)}
    node = call(plugin.name, attributes)
    return model(node, dtype, shape, quantise=quantise)


def function_models(operator: dict[str, Any], dtype: str, shape: Sequence[int | str]) -> list[onnx.ModelProto]:
    """The operator as a call of each function that it has for the type; no plugin library is needed."""
    made = []
    types = {attribute["name"]: attribute["type"] for attribute in operator["attributes"]}
    attributes = plugin_names(operator)[0].attributes(dtype)
    for listed in operator["functions"]:
        if listed["name"].endswith("_i8") != (dtype == "i8"):
            continue
        function = parse_function(listed["name"], listed["body"], types)
        used = {name: attributes[name] for name in function.attribute}
        node = call(listed["name"], used)
        made.append(model(node, dtype, shape, [function]))
    return made


def parse_function(name: str, body: str, types: dict[str, str]) -> onnx.FunctionProto:
    """Reads the lines `out = Op<attribute=value, ...>(in, ...)` in which Graft writes its functions."""
    nodes, referred = [], []
    for line in filter(None, map(str.strip, body.splitlines())):
        match = re.fullmatch(r"(\w+) = (\w+)(?:<(.*)>)?\((.*)\)", line)
        if match is None:
            raise ValueError(f"function {name}: cannot read {line!r}")
        output, op_type, attributes, inputs = match.groups()
        node = helper.make_node(op_type, [i.strip() for i in inputs.split(",") if i.strip()], [output])
        for pair in filter(None, (attributes or "").split(", ")):
            key, _, value = pair.partition("=")
            if value.startswith("@"):
                referred.append(value[1:])
                kind = ONNX_TYPES[key if key in ONNX_TYPES else types[value[1:]]]
                node.attribute.append(AttributeProto(name=key, ref_attr_name=value[1:], type=kind))
            else:
                node.attribute.append(helper.make_attribute(key, literal(value)))
        nodes.append(node)
    attributes = list(dict.fromkeys(referred))
    return helper.make_function(DOMAIN, name, ["x"], ["y"], nodes, [helper.make_opsetid("", OPSET)], attributes)


def literal(text: str) -> Any:
    match = re.fullmatch(r"int8\((-?\d+)\)", text)
    if match:
        return numpy_helper.from_array(np.array(int(match[1]), np.int8))
    return json.loads(text)
