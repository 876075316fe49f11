# Export to ONNX: Graft's nodes with their functions, by both of PyTorch's exporters.
from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from graft import _operators
from graft._definitions import FIXED_SIZE_DEFINITIONS, Definition
from graft.errors import Error

DOMAIN = "graft"
_FUNCTION_OPSET = 17

_ONNX_TYPES = {"FLOAT": "f32", "FLOAT16": "f16", "BFLOAT16": "bf16", "FLOAT8E4M3FN": "f8e4m3fn", "INT8": "i8"}
_SCALAR_TYPES = {"Float": "f32", "Half": "f16", "BFloat16": "bf16", "Float8_e4m3fn": "f8e4m3fn", "Char": "i8"}
_ELEMENTS = {"f32": "float", "f16": "float16", "bf16": "bfloat16", "f8e4m3fn": "float8e4m3fn", "i8": "int8"}
_PARSE = {"float": "f", "int": "i", "string": "s", "floats": "fs", "ints": "is"}


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value


def _onnx_text(body: str, types: dict[str, str]) -> str:
    """Graft's text of nodes as ONNX's own: `alpha: float = @alpha` for `alpha=@alpha`, `int64[2] {1, 2}` for `int64([1, 2])`."""

    def tensor(match: re.Match[str]) -> str:
        element, numbers = _ELEMENTS.get(match[1], match[1]), match[2]
        if not numbers.startswith("["):
            return f"={element} {{{numbers}}}"
        count = numbers.count(",") + 1 if numbers.strip("[] ") else 0
        return f"={element}[{count}] {{{numbers.strip('[]')}}}"

    body = re.sub(r"=\s*(f32|f16|bf16|f8e4m3fn|i8|int8|int32|int64|bool)\((\[[^\]]*\]|[^()]*)\)", tensor, body)
    body = re.sub(r"(?<=[(,])\s*_\s*(?=[,)])", '""', body)  # an input that is left out
    return re.sub(r"(\w+)\s*=\s*@(\w+)", lambda match: f"{match[1]}: {types[match[2]]} = @{match[2]}", body)


_REDUCTIONS = {"ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"}


def _raise_opset(function: Any, opset: int) -> None:
    """From operator set 18 on the axes of a reduction are an input; nothing else that the bodies use was changed."""
    import onnx

    nodes = list(function.node)
    del function.node[:]
    for node in nodes:
        axes = [each for each in node.attribute if each.name == "axes"]
        if opset > _FUNCTION_OPSET and node.op_type in _REDUCTIONS and axes:
            name = f"{node.output[0]}_axes"
            constant = onnx.helper.make_node("Constant", [], [name])
            constant.attribute.add().CopyFrom(axes[0])
            constant.attribute[0].name = "value_ints"
            function.node.append(constant)
            node.attribute.remove(axes[0])
            node.input.append(name)
        function.node.append(node)
    function.opset_import[0].version = max(opset, _FUNCTION_OPSET)


def _function(
    definition: Definition, values: Sequence[Any], dtype: str, rank: int, inputs: int, opset: int
) -> Any | None:
    """The model-local function of a node, as onnx.FunctionProto; None where standard operators cannot express it."""
    import onnx.parser

    text = _operators.function(definition.name, definition.json([_plain(v) for v in values]), dtype, rank, inputs)
    found = json.loads(text)
    if found is None:
        return None
    types = {info.name: info.type for info in definition.attributes}
    body = _onnx_text(found["body"], types)
    names = ", ".join(port.name for port in definition.inputs[:inputs])
    results = ", ".join(port.name for port in definition.outputs)
    attributes = ", ".join(types)
    header = f'<domain: "{DOMAIN}", opset_import: ["" : {_FUNCTION_OPSET}]> {found["name"]} <{attributes}>'
    function = onnx.parser.parse_function(f"{header} ({names}) => ({results}) {{\n{body}\n}}")
    _raise_opset(function, opset)
    return function


def _translation(definition: Definition) -> Callable[..., Any]:
    def translate(*arguments: Any, **keywords: Any) -> Any:
        import onnx_ir as ir
        import onnxscript

        from graft.torch._library import values_of

        inputs = list(arguments)
        while inputs and inputs[-1] is None:
            inputs.pop()
        attributes = [
            ir.Attr(info.name, getattr(ir.AttributeType, info.type.upper()), _plain(value))
            for info, value in zip(definition.attributes, values_of(definition, keywords))
        ]
        node = ir.Node(DOMAIN, definition.name, inputs, attributes, num_outputs=len(definition.outputs), version=1)
        onnxscript.evaluator.default().nodes.append(node)
        return node.outputs[0] if len(node.outputs) == 1 else node.outputs

    return translate


def onnx_translations() -> dict[Any, Any]:
    """For `torch.onnx.export(..., dynamo=True, custom_translation_table=graft.torch.onnx_translations())`.

    The file has Graft's nodes alone, for the exporter would write the bodies of functions in their place; `add_functions`
    gives them their functions, and `export` does both.
    """
    return {getattr(torch.ops.graft, name).default: _translation(d) for name, d in FIXED_SIZE_DEFINITIONS.items()}


def _symbolic(definition: Definition) -> Callable[..., Any]:
    from torch.onnx import symbolic_helper

    count = len(definition.inputs)
    letters = {"float": "f", "int": "i", "string": "s", "floats": "f", "ints": "i"}

    def symbolic(g: Any, *arguments: Any) -> Any:
        inputs = [each for each in arguments[:count] if not symbolic_helper._is_none(each)]
        values = [
            symbolic_helper._parse_arg(each, _PARSE[info.type])
            for info, each in zip(definition.attributes, arguments[count:])
        ]
        named = {f"{info.name}_{letters[info.type]}": value for info, value in zip(definition.attributes, values)}
        # An empty list has no type that TorchScript could write; absent, it is the default.
        named = {key: value for key, value in named.items() if value != []}
        kind = inputs[0].type()
        y = g.op(f"{DOMAIN}::{definition.name}", *inputs, **named)
        sizes = kind.sizes()
        if sizes is not None and all(size is not None for size in sizes):
            from graft.torch._library import _symbolic_shape  # of sizes that are known: concrete

            meta = torch.empty(0, device="meta")
            shapes = [each.type().sizes() for each in inputs]
            if all(shape is not None and None not in shape for shape in shapes):
                tensors = [meta.new_empty(shape, dtype=each.type().dtype()) for shape, each in zip(shapes, inputs)]
                sizes = _symbolic_shape(definition, tensors, definition.convert(values))
            y.setType(kind.with_sizes(sizes))
        return y

    return symbolic


def _register_symbolics(opset: int) -> None:
    for name, definition in FIXED_SIZE_DEFINITIONS.items():
        torch.onnx.register_custom_op_symbolic(f"graft::{name}", _symbolic(definition), opset)


def add_functions(model: Any) -> Any:
    """Gives Graft's nodes of an `onnx.ModelProto` their functions, in place, and returns it.

    Any ONNX Runtime runs the model then. `graft convert` does it as well.
    """
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model)
    graph = inferred.graph
    types = {
        value.name: (value.type.tensor_type.elem_type, value.type.tensor_type.shape)
        for value in (*graph.input, *graph.value_info, *graph.output)
    }
    types.update({each.name: (each.data_type, None) for each in graph.initializer})
    by_name = {definition.name: definition for definition in FIXED_SIZE_DEFINITIONS.values()}
    known = {function.name for function in model.functions if function.domain == DOMAIN}
    opset = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    onnx_names = {getattr(onnx.TensorProto, name): short for name, short in _ONNX_TYPES.items()}
    for node in model.graph.node:
        definition = by_name.get(node.op_type) if node.domain == DOMAIN else None
        if definition is None:
            continue
        given = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        values = []
        for info in definition.attributes:
            value = given.get(info.name, info.default)
            value = value.decode() if isinstance(value, bytes) else _plain(value)
            values.append(value)
            if info.name not in given:  # the function refers to all of them
                attribute_type = getattr(onnx.AttributeProto, info.type.upper())
                node.attribute.append(onnx.helper.make_attribute(info.name, value, attr_type=attribute_type))
        element, shape = types.get(node.input[0], (onnx.TensorProto.UNDEFINED, None))
        if element not in onnx_names or shape is None:
            raise ValueError(
                f"{node.op_type} {node.name}: the type and rank of its input {node.input[0]} are not known"
            )
        rank = len(shape.dim)
        function = _function(definition, values, onnx_names[element], rank, len(node.input), opset)
        if function is None:
            continue
        if function.name != node.op_type:
            node.metadata_props.add(key="graft.operator", value=node.op_type)
            node.op_type = function.name
        if function.name not in known:
            known.add(function.name)
            model.functions.append(function)
    if known and not any(each.domain == DOMAIN for each in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    model.ir_version = max(model.ir_version, 8)
    return model


def export(
    module: torch.nn.Module, args: tuple[Any, ...], path: str | os.PathLike[str], *, dynamo: bool = True, **options: Any
) -> None:
    """Writes an ONNX file with Graft's nodes and their functions; the options are those of `torch.onnx.export`.

    Raises graft.Error (missing_tool) where onnxscript is not there, which PyTorch's exporter with `dynamo` needs.
    """
    import onnx

    if dynamo:
        try:
            import onnxscript  # noqa: F401
        except ModuleNotFoundError:
            raise Error(
                "graft.torch.export: onnxscript is not installed, which torch.onnx.export(dynamo=True) needs\n"
                "Install it with: pip install onnxscript; or export with dynamo=False",
                "missing_tool",
            ) from None
        table = {**onnx_translations(), **options.pop("custom_translation_table", {})}
        program = torch.onnx.export(module, args, dynamo=True, custom_translation_table=table, **options)
        onnx.save(add_functions(program.model_proto), os.fspath(path))
        return
    _register_symbolics(options.get("opset_version") or _FUNCTION_OPSET)
    options.setdefault("opset_version", _FUNCTION_OPSET)
    torch.onnx.export(module, args, os.fspath(path), dynamo=False, **options)
    onnx.save(add_functions(onnx.load(os.fspath(path))), os.fspath(path))
