# Export to ONNX by either of PyTorch's exporters: Graft's nodes with their ONNX functions.
from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from graft import _operators
from graft._definitions import Definition, Tensor
from graft.errors import Error
from graft.torch._library import output_types, registered_operators, symbolic_shapes, values_of

DOMAIN = "graft"
_FUNCTION_OPSET = 17

_ONNX_TYPES = {
    "FLOAT": "f32",
    "FLOAT16": "f16",
    "BFLOAT16": "bf16",
    "FLOAT8E4M3FN": "f8e4m3fn",
    "INT8": "i8",
    "INT32": "i32",
    "INT64": "i64",
}
_ELEMENTS = {"f32": "float", "f16": "float16", "bf16": "bfloat16", "f8e4m3fn": "float8e4m3fn", "i8": "int8"}
_PARSE = {"float": "f", "int": "i", "string": "s", "floats": "fs", "ints": "is"}


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value


def _onnx_text(body: str, types: dict[str, str]) -> str:
    """Translates Graft's text of nodes into ONNX's syntax: `alpha=@alpha` becomes `alpha: float = @alpha`, and
    `int64([1, 2])` becomes `int64[2] {1, 2}`. `types` has the type of each attribute, such as "float"."""

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
    """Raises the opset of a function body. From opset 18 on the axes of a reduction are an input: ReduceMax<axes>(x)
    becomes ReduceMax(x, Constant<axes>). No other operator of the bodies changed."""
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
    """Returns the model-local function of a node as onnx.FunctionProto, in this opset, or None where standard operators
    cannot express the node. `dtype` and `rank` are those of the first input, and `inputs` is the number of inputs."""
    import onnx.parser

    text = _operators.function(definition.name, definition.json([_plain(v) for v in values]), dtype, rank, inputs)
    found = json.loads(text)
    if found is None:
        return None
    types = {info.name: info.type for info in definition.attributes}
    body = _onnx_text(found["body"], types)
    names = ", ".join(definition.input_name(index) for index in range(inputs))
    results = ", ".join(port.name for port in definition.outputs)
    attributes = ", ".join(types)
    header = f'<domain: "{DOMAIN}", opset_import: ["" : {_FUNCTION_OPSET}]> {found["name"]} <{attributes}>'
    function = onnx.parser.parse_function(f"{header} ({names}) => ({results}) {{\n{body}\n}}")
    _raise_opset(function, opset)
    return function


def _inputs_of_node(definition: Definition, arguments: Sequence[Any], tensor_of: Callable[..., Any]) -> list[Any]:
    """Returns the inputs of a node: the tensors of a list as inputs of their own, and the integers of a shape input as
    the tensor that `tensor_of` returns. Missing inputs at the end are left out."""
    inputs: list[Any] = []
    for port, argument in zip(definition.inputs, arguments):
        inputs += argument if port.is_variadic else [tensor_of(argument) if port.is_shape else argument]
    while inputs and inputs[-1] is None:
        inputs.pop()
    return inputs


def _translation(definition: Definition) -> Callable[..., Any]:
    def translate(*arguments: Any, **keywords: Any) -> Any:
        import onnx_ir as ir
        import onnxscript

        def add(operator: str, inputs: Sequence[Any], **attributes: Any) -> Any:
            made = [ir.convenience.convert_attribute(name, value) for name, value in attributes.items()]
            node = ir.Node("", operator, inputs, made)
            onnxscript.evaluator.default().nodes.append(node)
            return node.outputs[0]

        def tensor_of(sizes: Sequence[Any]) -> Any:
            if all(isinstance(size, int) for size in sizes):
                return add("Constant", [], value_ints=list(sizes))
            one = add("Constant", [], value_ints=[1])
            parts = [
                add("Constant", [], value_ints=[size]) if isinstance(size, int) else add("Reshape", [size, one])
                for size in sizes
            ]
            return add("Concat", parts, axis=0)

        inputs = _inputs_of_node(definition, arguments, tensor_of)
        attributes = [
            ir.Attr(info.name, getattr(ir.AttributeType, info.type.upper()), _plain(value))
            for info, value in zip(definition.attributes, values_of(definition, keywords))
        ]
        node = ir.Node(DOMAIN, definition.name, inputs, attributes, num_outputs=len(definition.outputs), version=1)
        onnxscript.evaluator.default().nodes.append(node)
        return node.outputs[0] if len(node.outputs) == 1 else node.outputs

    return translate


def onnx_translations() -> dict[Any, Any]:
    """Returns the table for
    `torch.onnx.export(..., dynamo=True, custom_translation_table=graft.torch.onnx_translations())`.

    The exported file has Graft's nodes without functions, because the exporter would inline the bodies of functions;
    `add_functions` adds the functions, and `export` does both.
    """
    return {each.overload: _translation(each.definition) for each in registered_operators()}


def _symbolic(definition: Definition) -> Callable[..., Any]:
    from torch.onnx import symbolic_helper

    count = len(definition.inputs)
    letters = {"float": "f", "int": "i", "string": "s", "floats": "f", "ints": "i"}

    def symbolic(g: Any, *arguments: Any) -> Any:
        def tensor_of(sizes: Any) -> Any:
            one = g.op("Constant", value_t=torch.tensor([1]))
            return g.op("Concat", *(g.op("Reshape", size, one) for size in unpacked(sizes)), axis_i=0)

        def unpacked(values: Any) -> Sequence[Any]:
            constants = symbolic_helper._maybe_get_const(values, "is")
            if isinstance(constants, (list, tuple)):
                return [g.op("Constant", value_t=torch.tensor(value)) for value in constants]
            return symbolic_helper._unpack_list(values)

        given = [None if symbolic_helper._is_none(each) else each for each in arguments[:count]]
        given = [unpacked(each) if port.is_variadic else each for port, each in zip(definition.inputs, given)]
        inputs = _inputs_of_node(definition, given, tensor_of)
        values = [
            symbolic_helper._parse_arg(each, _PARSE[info.type])
            for info, each in zip(definition.attributes, arguments[count:])
        ]
        named = {f"{info.name}_{letters[info.type]}": value for info, value in zip(definition.attributes, values)}
        # TorchScript cannot write an empty list, which has no element type. A missing attribute has its default.
        named = {key: value for key, value in named.items() if value != []}
        results = g.op(f"{DOMAIN}::{definition.name}", *inputs, **named, outputs=len(definition.outputs))
        kinds = [each.type() for each in inputs]
        if definition.is_plain and all(kind.sizes() is not None and None not in kind.sizes() for kind in kinds):
            meta = torch.empty(0, device="meta")  # all sizes are integers
            tensors = [
                Tensor(port.name, i, meta.new_empty(kind.sizes(), dtype=kind.dtype()))
                for i, (port, kind) in enumerate(zip(definition.inputs, kinds))
            ]
            shapes = symbolic_shapes(definition, tensors, [], definition.convert(values))
            dtypes = output_types(definition, tensors)
            for result, shape, dtype in zip([results] if len(shapes) == 1 else results, shapes, dtypes):
                result.setType(kinds[0].with_dtype(dtype).with_sizes(shape))
        return results

    return symbolic


def _register_symbolics(opset: int) -> None:
    for each in registered_operators():
        torch.onnx.register_custom_op_symbolic(each.name, _symbolic(each.definition), opset)


def add_functions(model: Any) -> Any:
    """Adds the ONNX functions of Graft's nodes to an `onnx.ModelProto`, in place, and returns the model.

    ONNX Runtime runs the result without Graft. `graft convert` adds the functions as well. Raises ValueError naming the
    node where the type or the rank of its first input cannot be inferred.
    """
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model)
    graph = inferred.graph
    types = {
        value.name: (value.type.tensor_type.elem_type, value.type.tensor_type.shape)
        for value in (*graph.input, *graph.value_info, *graph.output)
    }
    types.update({each.name: (each.data_type, None) for each in graph.initializer})
    by_name = {each.definition.name: each.definition for each in registered_operators()}
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
            if info.name not in given:  # the body of the function refers to all attributes
                attribute_type = getattr(onnx.AttributeProto, info.type.upper())
                node.attribute.append(onnx.helper.make_attribute(info.name, value, attr_type=attribute_type))
        element, shape = types.get(node.input[0], (onnx.TensorProto.UNDEFINED, None))
        if element not in onnx_names or shape is None:
            raise ValueError(f"{node.op_type} {node.name}: the type and rank of its input {node.input[0]} are unknown")
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
    """Writes an ONNX file with Graft's nodes and their functions.

    module, args: the module and the arguments of a call, see `torch.onnx.export`.
    path: the file to write.
    dynamo: whether PyTorch's exporter with `dynamo=True` is used, or the TorchScript exporter.
    options: further options of `torch.onnx.export`.

    Raises graft.Error (missing_tool) where onnxscript is not installed, which the exporter with `dynamo=True` needs,
    and the errors of `torch.onnx.export` and `add_functions`.
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
