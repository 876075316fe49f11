#!/usr/bin/env python3
# Writes src/graph/operator_forms.inc: what attributes and how many inputs each operator of ai.onnx has.
"""Run it with the onnx package installed. What operator set 17 and later know counts: older models are raised to it."""

import pathlib

import onnx.defs

TARGET = pathlib.Path(__file__).resolve().parents[1] / "src" / "graph" / "operator_forms.inc"
LETTERS = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "FLOATS": "F", "INTS": "I", "STRINGS": "S"}

operators = {}
for schema in onnx.defs.get_all_schemas_with_history():
    if schema.domain == "":
        operators.setdefault(schema.name, []).append(schema)

lines = [
    f"// The forms of the operators of ai.onnx, of the schemas of onnx {onnx.__version__}; made by tools/make_operator_forms.py.",
    "// Name, least and most inputs, most outputs, attributes: f number, i integer, s text, t tensor, capitals for",
    "// lists, - what is none of these.",
]
for name, schemas in sorted(operators.items()):
    first = max((s.since_version for s in schemas if s.since_version <= 17), default=0)
    schemas = [s for s in schemas if s.since_version >= first and not s.deprecated]
    if not schemas:
        continue
    attributes = {f"{a.name}:{LETTERS.get(a.type.name, '-')}" for s in schemas for a in s.attributes.values()}
    lines.append(
        f'{{"{name}", {min(s.min_input for s in schemas)}, {max(s.max_input for s in schemas)}, '
        f'{max(s.max_output for s in schemas)}, "{" ".join(sorted(attributes))}"}},'
    )
TARGET.write_text("\n".join(lines) + "\n")
