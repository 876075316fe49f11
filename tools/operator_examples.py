# The examples of the operators' pages in ONNX, Python and C++, written from docs/ops/examples.json and the definitions.
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
OPSET = 17  # the opset of the functions that `graft convert` writes


def example_of(op):
    examples = json.loads((ROOT / "docs" / "ops" / "examples.json").read_text())
    if op["name"] not in examples:
        raise SystemExit(f"error: docs/ops/examples.json has no example of {op['name']}: add shapes and attributes")
    return examples[op["name"]]


def is_of_indices(op, port):
    """Returns whether the port has indices (i64); all other ports of examples are f32."""
    return op["type_rows"][0][port]["dtype"] == "i64"


def inputs_of_indices(op):
    return [name for port, name in enumerate(example_of(op)["inputs"]) if is_of_indices(op, port)]


def type_of_output(op):
    """Returns the type of the first output, by the names of ONNX's text form and of TensorProto."""
    port = next(port for port, info in enumerate(op["ports"]) if info["output"])
    types = {"i32": ("int32", "INT32"), "i64": ("int64", "INT64")}
    return types.get(op["type_rows"][0][port]["dtype"], ("float", "FLOAT"))


def onnx_text(op):
    """Returns the example as a model in ONNX's text form, which onnx.parser.parse_model reads."""
    example = example_of(op)

    def tensor(name, shape, dtype="float"):
        return f"{dtype}[{','.join(map(str, shape))}] {name}"

    indices = inputs_of_indices(op)
    inputs = ", ".join(
        tensor(name, shape, "int64" if name in indices else "float") for name, shape in example["inputs"].items()
    )
    output = tensor("y", example["output"], type_of_output(op)[0])
    attributes = ", ".join(f"{name} = {json.dumps(held)}" for name, held in example["attributes"].items())
    return (
        f'<ir_version: 8, opset_import: ["" : {OPSET}, "{op["domain"]}" : {op["version"]}]>\n'
        f"example ({inputs}) => ({output}) {{\n"
        f"  y = {op['domain']}.{op['name']}{f' <{attributes}>' if attributes else ''} ({', '.join(example['inputs'])})\n"
        "}"
    )


def python_text(op):
    """Returns a script that writes example.onnx."""
    example = example_of(op)
    output_type = type_of_output(op)[1]
    indices = ", ".join(f'"{name}": TensorProto.INT64' for name in inputs_of_indices(op))
    types = f"types = {{{indices}}}\n" if indices else ""
    type_of = "types.get(name, TensorProto.FLOAT)" if indices else "TensorProto.FLOAT"
    return f"""from onnx import TensorProto, helper, save

shapes = {json.dumps(example["inputs"])}
{types}inputs = [helper.make_tensor_value_info(name, {type_of}, shape) for name, shape in shapes.items()]
output = helper.make_tensor_value_info("y", TensorProto.{output_type}, {json.dumps(example["output"])})
attributes = {json.dumps(example["attributes"])}
node = helper.make_node("{op["name"]}", list(shapes), ["y"], domain="{op["domain"]}")
node.attribute.extend(helper.make_attribute(*attribute) for attribute in attributes.items())
graph = helper.make_graph([node], "example", inputs, [output])
opsets = [helper.make_opsetid("", {OPSET}), helper.make_opsetid("{op["domain"]}", {op["version"]})]
save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "example.onnx")"""


def cpp_literal(attribute, held, header):
    if attribute["type"] == "string":
        enumeration = re.search(rf"(\w+) {attribute['name']} = \1::", header).group(1)
        return f"graft::ops::{enumeration}::{held}"
    if attribute["type"] == "float":
        return f"{held}F"
    if attribute["type"] == "floats":
        return "{" + ", ".join(f"{number}F" for number in held) + "}"
    if attribute["type"] == "ints":
        return "{" + ", ".join(map(str, held)) + "}"
    if re.search(rf"bool {attribute['name']} =", header):
        return "true" if held else "false"
    return str(held)


def cpp_text(op):
    """Returns a C++ function that adds the example to a network."""
    folder = op["file"].removesuffix(".md")
    header = (ROOT / "src" / "ops" / folder / f"{folder}.hpp").read_text()
    example = example_of(op)
    members = ", ".join(
        f".{attribute['name']} = {cpp_literal(attribute, example['attributes'][attribute['name']], header)}"
        for attribute in op["attributes"]
        if attribute["name"] in example["attributes"]
    )
    parameters = [f"nvinfer1::ITensor* {name}" for name in example["inputs"]]
    separator = " " if len(parameters) == 1 else "\n    "
    return f"""#include "graft/tensorrt/add_layer.hpp"
#include "ops/{folder}/{folder}.hpp"

nvinfer1::ITensor* add_{folder}(nvinfer1::INetworkDefinition& network,{separator}{", ".join(parameters)}) {{
  const graft::ops::{op["name"]} definition{{{members}}};
  return graft::tensorrt::add_layer(network, {{{", ".join(example["inputs"])}}}, definition).getOutput(0);
}}"""
