#!/usr/bin/env python3
# Writes src/quant/type_constraints.inc: which inputs and outputs of each operator of ai.onnx may be f16 or bf16.
"""Run it with the onnx package installed."""

import pathlib

import onnx.defs

TARGET = pathlib.Path(__file__).resolve().parents[1] / "src" / "quant" / "type_constraints.inc"
NEWEST = 28  # as graph/onnx_io.hpp
# Regions and sizes of Resize are f32 in files of every age; what becomes a sequence has no element type of its own.
FIXED = {("Resize", 1), ("SplitToSequence", 0), ("SequenceInsert", 1), ("SequenceConstruct", 0), ("Optional", 0)}


def allowed(schema, port):
    for constraint in schema.type_constraints:
        if constraint.type_param_str == port.type_str:
            return constraint.allowed_type_strs
    return [port.type_str]


def admits(schema, port, kind):
    return f"tensor({kind})" in allowed(schema, port)


def letters_of(schema):
    """A letter for each input and output, the same one where the type has to be the same; '.' where it is no narrow
    number."""
    letters, inputs = {}, ""
    for i, port in enumerate(schema.inputs):
        narrow = admits(schema, port, "float") and admits(schema, port, "float16") and (schema.name, i) not in FIXED
        inputs += letters.setdefault(port.type_str, chr(ord("a") + len(letters))) if narrow else "."
    return inputs, "".join(letters.get(port.type_str, ".") for port in schema.outputs)


def since(schemas, inputs, kind):
    """The operator set from which on all inputs with a letter take this type; 0 where there is none."""
    found = 0
    for schema in reversed(schemas):
        ports = [port for port, letter in zip(schema.inputs, inputs, strict=False) if letter != "."]
        if not all(admits(schema, port, kind) for port in ports if admits(schema, port, "float")):
            break
        found = schema.since_version
    return found


operators = {}
for each in onnx.defs.get_all_schemas_with_history():
    if each.domain == "" and each.since_version <= NEWEST:
        operators.setdefault(each.name, []).append(each)

lines = [
    "// Which types the operators of ai.onnx take, of the schemas of onnx "
    f"{onnx.__version__}; made by tools/make_type_constraints.py.",
    "// Name, inputs and outputs (the same letter: the same type; '.': no f16 or bf16; the last input counts for all",
    "// that follow), operator sets from which on f16 and bf16 are allowed (0: none).",
]
for name, schemas in sorted(operators.items()):
    schemas.sort(key=lambda schema: schema.since_version)
    inputs, outputs = letters_of(schemas[-1])
    if inputs.strip("."):
        f16, bf16 = (since(schemas, inputs, kind) for kind in ("float16", "bfloat16"))
        lines.append(f'{{"{name}", "{inputs}", "{outputs}", {f16}, {bf16}}},')
TARGET.parent.mkdir(exist_ok=True)
TARGET.write_text("\n".join(lines) + "\n")
