#!/usr/bin/env python3
# Writes src/onnx/schema.inc: versions, inputs, outputs, attributes, defaults and types of the operators of ai.onnx; and
# schema_versions.inc: what of that changed between operator sets.
"""Run it with the onnx package installed; --check compares instead and names what to do where the file is stale."""

import argparse
import pathlib
import sys

import numpy
import onnx.defs

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "src" / "onnx"
NEWEST = 28  # as graph/onnx_io.hpp
# Models are upgraded to this operator set or a newer one before rules are applied to them: forms count from here on.
OLDEST_FORM = 17
KINDS = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "FLOATS": "F", "INTS": "I", "STRINGS": "S"}
# Regions and sizes of Resize are f32 in files of every age; what becomes a sequence has no element type of its own.
FIXED_TYPES = {("Resize", 1), ("SplitToSequence", 0), ("SequenceInsert", 1), ("SequenceConstruct", 0), ("Optional", 0)}


def text_of_default(attribute):
    """The shortest text from which the same f32 is read; nothing where there is no default or no text for it."""
    value = onnx.helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else None
    match KINDS.get(attribute.type.name):
        case _ if value is None:
            return ""
        case "f":
            return f"={numpy.float32(value)!s}"
        case "i":
            return f"={value}"
        case "s":
            return f"={value.decode()}"
        case "I":
            return "=" + ",".join(map(str, value))
    return ""


def attributes_of(schemas):
    """Those of every version that counts, each with the default that the newest version gives it."""
    newest = schemas[-1].attributes
    texts = set()
    for schema in schemas:
        for name, attribute in schema.attributes.items():
            default = text_of_default(newest[name]) if name in newest else ""
            required = "!" if attribute.required else ""
            texts.add(f"{name}:{KINDS.get(attribute.type.name, '-')}{required}{default}")
    return " ".join(sorted(texts))


def admits(schema, port, kind):
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == port.type_str), None)
    return f"tensor({kind})" in (allowed or [port.type_str])


def types_of(schema):
    """A letter for each input and output, the same one where the type has to be the same; '.' where it is no f16."""
    letters, inputs = {}, ""
    for i, port in enumerate(schema.inputs):
        narrow = (schema.name, i) not in FIXED_TYPES and all(admits(schema, port, k) for k in ("float", "float16"))
        inputs += letters.setdefault(port.type_str, chr(ord("a") + len(letters))) if narrow else "."
    outputs = "".join(letters.get(port.type_str, ".") for port in schema.outputs)
    return (inputs, outputs) if inputs.strip(".") else ("", "")


def since(schemas, inputs, kind):
    """The operator set from which on all inputs with a letter take this type; 0 where there is none."""
    found = 0
    for schema in reversed(schemas):
        ports = [port for port, letter in zip(schema.inputs, inputs, strict=False) if letter != "."]
        if not all(admits(schema, port, kind) for port in ports if admits(schema, port, "float")):
            break
        found = schema.since_version
    return found


def forms_of(schemas):
    """Those that count."""
    alive = [s for s in schemas if not s.deprecated]
    oldest = max((s.since_version for s in alive if s.since_version <= OLDEST_FORM), default=0)
    return [s for s in alive if s.since_version >= oldest]


def row_of(name, schemas):
    first = schemas[0].since_version
    last = schemas[-1]
    removed = last.since_version if last.deprecated else 0
    forms = forms_of(schemas)
    inputs, outputs = types_of(last)
    f16, bf16 = (since(schemas, inputs, kind) if inputs else 0 for kind in ("float16", "bfloat16"))
    return (
        f'{{"{name}", {first}, {removed}, {min(s.min_input for s in forms)}, {max(s.max_input for s in forms)}, '
        f'{max(s.max_output for s in forms)}, "{attributes_of(forms)}", "{inputs}", "{outputs}", {f16}, {bf16}}},'
    )


def rows_of_versions(name, schemas):
    """Nothing where all versions that count have the same inputs, outputs and attributes."""
    rows = []
    for schema in forms_of(schemas):
        form = f'{schema.min_input}, {schema.max_input}, {schema.max_output}, "{attributes_of([schema])}"'
        if not rows or rows[-1][1] != form:
            rows.append((schema.since_version, form))
    return [f'{{"{name}", {first}, {form}}},' for first, form in rows] if len(rows) > 1 else []


def texts_of(operators):
    """By the names of the files."""
    origin = f"from the schemas of onnx {onnx.__version__}; made by tools/make_schema.py."
    rows = [
        f"// The operators of ai.onnx, {origin}",
        "// In the order of OperatorSchema's members: name, operator sets in which it appears and is removed (0: never),",
        "// fewest and most inputs, most outputs, attributes with kind and default (!: required), types of inputs and",
        "// outputs, operator sets from which on f16 and bf16 are allowed (0: none).",
    ]
    versions = [
        f"// The operators of ai.onnx that changed after operator set {OLDEST_FORM}, {origin}",
        "// In the order of SchemaVersion's members: name, operator set from which on it is so, fewest and most inputs, most",
        "// outputs, attributes as in schema.inc.",
    ]
    for name, schemas in sorted(operators.items()):
        in_order = sorted(schemas, key=lambda schema: schema.since_version)
        rows.append(row_of(name, in_order))
        versions += rows_of_versions(name, in_order)
    return {"schema.inc": "\n".join(rows) + "\n", "schema_versions.inc": "\n".join(versions) + "\n"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    operators = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            operators.setdefault(schema.name, []).append(schema)
    for file, text in texts_of(operators).items():
        target = FOLDER / file
        if not check:
            target.write_text(text)
        elif f"onnx {onnx.__version__};" not in target.read_text():
            print(f"{target} was made with another version of onnx than {onnx.__version__}: not compared")
        elif target.read_text() != text:
            sys.exit(f"{target} is stale: run tools/make_schema.py")


if __name__ == "__main__":
    main()
