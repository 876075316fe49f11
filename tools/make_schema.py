# Writes src/onnx/schema.inc: versions, inputs, outputs, attributes and defaults of the operators of ai.onnx;
# schema_versions.inc: changes of these between opsets; schema_types.inc: the types in each opset; and schema_ports.inc:
# the inputs, outputs and names of attributes in all opsets.
"""Needs the onnx package. --check only compares, and names the command to run where a file is outdated."""

import argparse
import pathlib
import sys

import numpy
import onnx.defs

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "src" / "onnx"
NEWEST = 28  # as in onnx/onnx_io.hpp
# Models are upgraded to this opset or a newer one before rules are applied, so older forms are left out.
OLDEST_FORM = 17
OLDEST_TYPES = 13
KINDS = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "FLOATS": "F", "INTS": "I", "STRINGS": "S"}
# The element type of a tensor in onnx's schemas, and in ElementType.
TYPES = {
    "float": "f32",
    "double": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "bool": "boolean",
    "string": "string",
    "complex64": "complex64",
    "complex128": "complex128",
    "float8e8m0": "f8e8m0",
    "float8e4m3fn": "f8e4m3fn",
    "float8e4m3fnuz": "f8e4m3fnuz",
    "float8e5m2": "f8e5m2",
    "float8e5m2fnuz": "f8e5m2fnuz",
    "float4e2m1": "f4e2m1",
    "float6e2m3": "f6e2m3",
    "float6e3m2": "f6e3m2",
    **{f"int{bits}": f"i{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (2, 4, 8, 16, 32, 64)},
}


def text_of_default(attribute):
    """Returns the default as the shortest text that reads as the same f32; an empty string where there is no default
    or no text for it."""
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
    """Returns the attributes of all given versions, each with the default of the newest version."""
    newest = schemas[-1].attributes
    texts = set()
    for schema in schemas:
        for name, attribute in schema.attributes.items():
            default = text_of_default(newest[name]) if name in newest else ""
            required = "!" if attribute.required else ""
            texts.add(f"{name}:{KINDS.get(attribute.type.name, '-')}{required}{default}")
    return " ".join(sorted(texts))


def types_of(schema, port):
    """Returns the allowed tensor types; none where the port allows only sequences. None where the tensors of a
    variadic port may have different types."""
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == port.type_str), None)
    tensors = [t[len("tensor(") : -1] for t in allowed or [port.type_str] if t.startswith("tensor(")]
    return sorted(TYPES[tensor] for tensor in tensors) if port.is_homogeneous else None


def letters_of(schema):
    """Returns a letter for each input and output, equal where the types have to be equal, and the types of each
    letter."""
    letters, inputs, types = {}, "", []
    for port in schema.inputs:
        allowed = types_of(schema, port)
        if allowed is not None and port.type_str not in letters:
            letters[port.type_str] = chr(ord("a") + len(letters))
            types.append(allowed)
        inputs += "." if allowed is None else letters[port.type_str]
    return inputs, "".join(letters.get(port.type_str, ".") for port in schema.outputs), types


def counted_from(first, schemas):
    """Returns the schemas that are valid in opset `first` or later."""
    oldest = max((s.since_version for s in schemas if s.since_version <= first), default=0)
    return [s for s in schemas if s.since_version >= oldest]


def forms_of(schemas):
    """Returns the schemas of OLDEST_FORM and later, without deprecated ones."""
    return counted_from(OLDEST_FORM, [s for s in schemas if not s.deprecated])


def row_of(name, schemas):
    first = schemas[0].since_version
    last = schemas[-1]
    removed = last.since_version if last.deprecated else 0
    forms = forms_of(schemas)
    return (
        f'{{"{name}", {first}, {removed}, {min(s.min_input for s in forms)}, {max(s.max_input for s in forms)}, '
        f'{max(s.max_output for s in forms)}, "{attributes_of(forms)}"}},'
    )


def rows_of_versions(name, schemas):
    """Returns a row for each change of the form; none where all versions have the same inputs, outputs and
    attributes."""
    rows = []
    for schema in forms_of(schemas):
        form = f'{schema.min_input}, {schema.max_input}, {schema.max_output}, "{attributes_of([schema])}"'
        if not rows or rows[-1][1] != form:
            rows.append((schema.since_version, form))
    return [f'{{"{name}", {first}, {form}}},' for first, form in rows] if len(rows) > 1 else []


def rows_of_types(name, schemas):
    """Returns a row for each change of the types. The first row is valid in OLDEST_TYPES, and begins with the opset
    that introduced these types."""
    rows = []
    for schema in counted_from(OLDEST_TYPES, schemas):
        inputs, outputs, types = letters_of(schema)
        types = ", ".join(f"{{{', '.join(each)}}}" for each in types)
        form = f'"{inputs}", "{outputs}", {{{{{types}}}}}'
        if inputs and (not rows or rows[-1][1] != form):
            rows.append((schema.since_version, form))
    return [f'{{"{name}", {first}, {form}}},' for first, form in rows]


def letters_of_ports(ports):
    """Returns a letter for each port: s for a required one, o for an optional one, v for a variadic one."""
    return "".join(port.option.name[0].lower() for port in ports)


def rows_of_ports(name, schemas):
    """Returns a row for each change of the ports or of the names of attributes. Opsets in which the operator is
    deprecated have no row: the schema has no ports there."""
    rows = []
    for schema in schemas:
        if schema.deprecated:
            continue
        inputs, outputs = letters_of_ports(schema.inputs), letters_of_ports(schema.outputs)
        attributes = " ".join(sorted(schema.attributes))
        form = f'"{inputs}", {schema.min_input}, "{outputs}", {schema.min_output}, "{attributes}"'
        if not rows or rows[-1][1] != form:
            rows.append((schema.since_version, form))
    return [f'{{"{name}", {first}, {form}}},' for first, form in rows]


def texts_of(operators):
    """Returns the contents of the files by name."""
    origin = f"from the schemas of onnx {onnx.__version__}; made by tools/make_schema.py."
    rows = [
        f"// The operators of ai.onnx, {origin}",
        "// In the order of OperatorSchema's members: name, operator sets in which it appears and is removed (0: never),",
        "// fewest and most inputs, most outputs, attributes with kind and default (!: required).",
    ]
    versions = [
        f"// The operators of ai.onnx that changed after operator set {OLDEST_FORM}, {origin}",
        "// In the order of SchemaVersion's members: name, operator set from which it is so, fewest and most inputs, most",
        "// outputs, attributes as in schema.inc.",
    ]
    types = [
        f"// The types of the operators of ai.onnx from operator set {OLDEST_TYPES} on, {origin}",
        "// In the order of SchemaTypes's members: name, operator set from which it is so, a letter for each input and",
        "// output, types of each letter.",
    ]
    ports = [
        f"// The inputs, outputs and attributes of the operators of ai.onnx in every operator set, {origin}",
        "// In the order of SchemaPorts's members: name, operator set from which it is so, letters of the inputs, fewest",
        "// inputs, letters of the outputs, fewest outputs, names of the attributes.",
    ]
    for name, schemas in sorted(operators.items()):
        in_order = sorted(schemas, key=lambda schema: schema.since_version)
        rows.append(row_of(name, in_order))
        versions += rows_of_versions(name, in_order)
        types += rows_of_types(name, in_order)
        ports += rows_of_ports(name, in_order)
    texts = {
        "schema.inc": rows,
        "schema_versions.inc": versions,
        "schema_types.inc": types,
        "schema_ports.inc": ports,
    }
    return {file: "\n".join(lines) + "\n" for file, lines in texts.items()}


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
