# tensorrt_versions.py - measures which operators each release of TensorRT runs, and writes the tables of `graft inspect
# --for`.
"""Run with the environment of .deps/venv, after `tools/setup compat`:

    python tools/tensorrt_versions.py --measure     runs each TensorRT-RTX of .deps/compat: tensorrt_measured.json
    python tools/tensorrt_versions.py               writes tensorrt_versions.inc from it and from tensorrt_facts.json
    python tools/tensorrt_versions.py --hold        compares the rules with each of them on ONNX's own tests:
                                                    docs/ops/versions.md; needs a build of oracle_tool
    python tools/tensorrt_versions.py --check       exits with 1 if tensorrt_versions.inc is outdated

The JSON files and tensorrt_versions.inc are in src/inspect.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMPAT = ROOT / ".deps" / "compat"
HERE = ROOT / "src" / "inspect"
FACTS, MEASURED, TABLES = (HERE / f"tensorrt_{name}" for name in ("facts.json", "measured.json", "versions.inc"))
PAGE = ROOT / "docs" / "ops" / "versions.md"
# A build mostly waits, so several run at once.
PROCESSES = 3
LEAST_AGREEMENT = 0.95

SUPPORTS = """
import json, sys
import tensorrt_rtx as trt
logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
builder = trt.Builder(logger)
network = builder.create_network(0)
parser = trt.OnnxParser(network, logger)
print(json.dumps([name for name in json.load(sys.stdin) if not parser.supports_operator(name)]))
"""

# ONNX's and Graft's names of types.
WORDS = {
    "float": "f32", "float16": "f16", "bfloat16": "bf16", "double": "f64", "int32": "i32", "int64": "i64",
    "bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
# Where's first input is the condition, not one of the values.
NOT_THE_MAIN_PORT = {("Where", 0)}

Json = dict[str, Any]


def installed_releases() -> dict[str, pathlib.Path]:
    """Returns the folder of each release by its version, such as "1.5", the oldest first."""
    found = {folder.name.removeprefix("rtx-"): folder for folder in COMPAT.glob("rtx-*") if folder.is_dir()}
    if not found:
        sys.exit("tensorrt_versions: no TensorRT in .deps/compat; run: tools/setup compat")
    versions = sorted(found, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])
    return {version: found[version] for version in versions}


def short(version: str) -> str:
    return ".".join(version.split(".")[:2])


def node_cases() -> dict[str, Any]:
    """Returns ONNX's tests of operators whose model is one node with tensors; parameters are constants."""
    import onnx_judges  # noqa: PLC0415

    cases = {case.name: onnx_judges.with_constants(case) for case in onnx_judges.node_cases()}
    return {name: case for name, case in cases.items() if case is not None and "_expanded" not in name}


def integers_of(case: Any) -> dict[str, list[int]]:
    import onnx_judges  # noqa: PLC0415

    given = zip(onnx_judges.real_inputs(case.model), case.data_sets[0][0] if case.data_sets else [], strict=False)
    arrays = {info.name: onnx_judges.to_array(value) for info, value in given if value is not None}
    return {
        name: array.ravel().tolist()
        for name, array in arrays.items()
        if not isinstance(array, list | dict) and array.dtype.kind in "iu" and array.size <= 64  # noqa: PLR2004
    }


def save_cases(cases: dict[str, Any], folder: pathlib.Path) -> dict[pathlib.Path, dict[str, list[int]]]:
    """Saves the cases and returns the values of integer inputs, which TensorRT may read as sizes or axes."""
    import onnx  # noqa: PLC0415

    values = {}
    for name, case in cases.items():
        path = folder / f"{name}.onnx"
        onnx.save(case.model, path)
        values[path] = integers_of(case)
    return values


def main_port(model: Any) -> tuple[int, Any] | None:
    """Returns the first input of a node that allows several types, and the schema."""
    import onnx  # noqa: PLC0415

    node = model.graph.node[0]
    if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute):
        return None  # the types in a body are independent
    version = next(opset.version for opset in model.opset_import if opset.domain == "")
    schema = onnx.defs.get_schema(node.op_type, version)
    allowed = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    for i, name in enumerate(node.input):
        kind = schema.inputs[min(i, len(schema.inputs) - 1)].type_str
        if name and len(allowed.get(kind, ())) > 1 and (node.op_type, i) not in NOT_THE_MAIN_PORT:
            return i, schema
    return None


def with_type(model: Any, port: int, schema: Any, word: str, every: bool) -> Any:
    """Returns the model with another type for the port and for all ports that share its type parameter; `every`:
    also for ports that have an independent but equal type, such as scales and grids, where they allow the new one."""
    import numpy as np  # noqa: PLC0415
    import onnx  # noqa: PLC0415
    from onnx import numpy_helper  # noqa: PLC0415

    element = onnx.TensorProto.DataType.Value(word.upper())
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    node, graph = copy.graph.node[0], copy.graph

    kind = schema.inputs[min(port, len(schema.inputs) - 1)].type_str
    allowed = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    elements = {info.name: info.type.tensor_type.elem_type for info in (*graph.input, *graph.output)}
    elements |= {tensor.name: tensor.data_type for tensor in graph.initializer}

    def ports(names: Any, formal: Any) -> set[str]:
        found = set()
        for i, name in enumerate(names):
            own = formal[min(i, len(formal) - 1)].type_str
            is_alike = elements.get(name) == elements[node.input[port]] and f"tensor({word})" in allowed.get(own, ())
            if own == kind or (every and is_alike):
                found.add(name)
        return found

    changed = ports(node.input, schema.inputs) | ports(node.output, schema.outputs)
    for info in (*graph.input, *graph.output):
        if info.name in changed and info.type.HasField("tensor_type"):
            info.type.tensor_type.elem_type = element
    for tensor in graph.initializer:
        if tensor.name in changed:
            array = numpy_helper.to_array(tensor).astype(np.float64)
            array = array.astype(onnx.helper.tensor_dtype_to_np_dtype(element))
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return copy


def types_of(port: int, answers: dict[str, list[Any]]) -> Json:
    """Returns the types in which one of the models was built, and those that are unknown: the model's opset does not
    have them, or TensorRT needed a GPU on this machine."""
    built = {word for word, each in answers.items() if any(answer.built for answer in each)}
    unclear = {word for word, each in answers.items() if any(answer.needs_gpu for answer in each)}
    unclear |= set(WORDS.values()) - set(answers)
    words = list(WORDS.values())
    listed = {"types": built, "open": unclear - built}
    return {"port": port} | {key: " ".join(word for word in words if word in some) for key, some in listed.items()}


def measure() -> None:
    import onnx  # noqa: PLC0415
    from tensorrt_builds import ask_tensorrt  # noqa: PLC0415

    releases = installed_releases()
    names = sorted({schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == ""})
    cases = {name: case for name, case in node_cases().items() if case.model.graph.node[0].domain == ""}
    measured: dict[str, Json] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "cases").mkdir()
        (folder / "typed").mkdir()
        values = save_cases(cases, folder / "cases")
        newest = list(releases.values())[-1]
        answers = ask_tensorrt(values, newest, values, PROCESSES)

        # For each operator, the form with most inputs that the newest release builds, and among these the smallest.
        templates: dict[str, tuple[tuple[bool, int, int], str]] = {}
        for path, answer in answers.items():
            model = cases[path.stem].model
            rank = (not answer.built, -len(model.graph.node[0].input), model.ByteSize())
            op_type = model.graph.node[0].op_type
            templates[op_type] = min(templates.get(op_type, (rank, path.stem)), (rank, path.stem))
        typed: dict[pathlib.Path, tuple[str, int, str]] = {}
        for op_type, (_, name) in templates.items():
            found = main_port(cases[name].model)
            if found is None:
                continue
            port, schema = found
            kind = schema.inputs[min(port, len(schema.inputs) - 1)].type_str
            allowed = next(each.allowed_type_strs for each in schema.type_constraints if each.type_param_str == kind)
            for word, graft_word in WORDS.items():
                both = (False, True) if f"tensor({word})" in allowed else ()
                models = [with_type(cases[name].model, port, schema, word, every) for every in both]
                for i, model in enumerate(models):
                    if i > 0 and model == models[0]:
                        continue
                    path = folder / "typed" / f"{op_type}_{graft_word}_{i}.onnx"
                    onnx.save(model, path)
                    typed[path] = (op_type, port, graft_word)
                    values[path] = values[folder / "cases" / f"{name}.onnx"]

        for version, installed in releases.items():
            environment = {"PYTHONPATH": str(installed), "LD_LIBRARY_PATH": str(installed / "lib")}
            asked = subprocess.run(
                [sys.executable, "-c", SUPPORTS],
                input=json.dumps(names),
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                check=True,
            )
            of_cases = answers if installed == newest else ask_tensorrt(list(answers), installed, values, PROCESSES)
            built = {cases[path.stem].model.graph.node[0].op_type for path, each in of_cases.items() if each.built}
            answered: dict[tuple[str, int], dict[str, list[Any]]] = {}
            for path, answer in ask_tensorrt(typed, installed, values, PROCESSES).items():
                op_type, port, word = typed[path]
                answered.setdefault((op_type, port), {}).setdefault(word, []).append(answer)
            types = {name: types_of(port, words) for (name, port), words in answered.items()}
            measured[version] = {
                "refused": json.loads(asked.stdout.splitlines()[-1]),
                "built": sorted(built | {op_type for op_type, entry in types.items() if entry["types"]}),
                "types": {op_type: entry for op_type, entry in sorted(types.items()) if entry["types"]},
            }
            print(f"TensorRT-RTX {version}: {sum(each.built for each in of_cases.values())} of {len(of_cases)} models")
    MEASURED.write_text(one_line_each(measured))


def one_line_each(measured: dict[str, Json]) -> str:
    """Returns JSON with one operator per line."""
    text = "{\n"
    for version, found in measured.items():
        types = ",\n".join(f"   {json.dumps(name)}: {json.dumps(entry)}" for name, entry in found["types"].items())
        text += (
            f' "{version}": {{\n  "refused": {json.dumps(found["refused"])},\n  "built": {json.dumps(found["built"])},'
        )
        text += f'\n  "types": {{\n{types}\n  }}\n }},\n'
    return text.removesuffix(",\n") + "\n}\n"


def order(release: str) -> int:
    major, minor = release.split(".")
    return int(major) * 100 + int(minor)


NO_END = 9999


def quoted(text: str) -> str:
    return json.dumps(text)


def operator_row(flavor: str, name: str, since: int, until: int, entry: Json, source: str) -> str:
    words = [quoted(entry.get("types", "")), quoted(entry.get("open", "")), str(entry.get("port", 0)), quoted(source)]
    return f"GRAFT_OPERATOR({flavor}, {quoted(name)}, {since}, {until}, {entry['answer']}, {', '.join(words)})"


def documented_source(facts: Json, entry: Json) -> str:
    return "according to " + facts["sources"][entry["source"]]["name"] if "source" in entry else ""


def measured_rows(facts: Json, measured: dict[str, Json]) -> list[str]:
    """Returns the rows of the measured releases; consecutive equal releases share a row."""
    numbers = [order(short(version)) for version in measured]
    by_name: dict[str, list[Json | None]] = collections.defaultdict(lambda: [None] * len(numbers))
    for i, found in enumerate(measured.values()):
        for name in found["refused"]:
            by_name[name][i] = {"answer": "no"}
        for name in found["built"]:
            by_name[name][i] = {"answer": "yes", **found["types"].get(name, {})}
    for name, entries in facts["operators"].items():
        for entry in entries:
            for i, number in enumerate(numbers):
                if order(entry["since"]) <= number < order(entry.get("until", "99.99")):
                    by_name[name][i] = {key: value for key, value in entry.items() if key not in ("since", "until")}
    rows = []
    for name, found_in in sorted(by_name.items()):
        begin = 0
        for i, entry in enumerate(found_in):
            if i + 1 < len(found_in) and found_in[i + 1] == entry:
                continue
            if entry is not None:
                until = numbers[i + 1] if i + 1 < len(numbers) else NO_END
                rows.append(operator_row("rtx", name, numbers[begin], until, entry, ""))
            begin = i + 1
    return rows


def tables() -> str:
    facts, measured = json.loads(FACTS.read_text()), json.loads(MEASURED.read_text())
    text = "// Written by tools/tensorrt_versions.py of tensorrt_facts.json and tensorrt_measured.json; do not edit.\n"
    text += "// clang-format off\n#ifdef GRAFT_RELEASE\n"
    for flavor, releases in (("rtx", list(measured)), ("full", facts["full"]["releases"])):
        for version in releases:
            major, minor = version.split(".")[:2]
            text += f'GRAFT_RELEASE({flavor}, {major}, {minor}, "{version}")\n'
    text += "#undef GRAFT_RELEASE\n#endif\n#ifdef GRAFT_OPERATOR\n"
    text += "".join(row + "\n" for row in measured_rows(facts["rtx"], measured))
    for name, entries in facts["full"]["operators"].items():
        for entry in entries:
            until = order(entry.get("until", "99.99"))
            source = documented_source(facts["full"], entry)
            text += operator_row("full", name, order(entry["since"]), until, entry, source) + "\n"
    text += "#undef GRAFT_OPERATOR\n#endif\n#ifdef GRAFT_FORM\n"
    for flavor in ("rtx", "full"):
        for name, entries in facts[flavor]["forms"].items():
            for entry in entries:
                numbers = f"{order(entry['since'])}, {order(entry.get('until', '99.99'))}"
                source = quoted(documented_source(facts[flavor], entry))
                text += f"GRAFT_FORM({flavor}, {quoted(name)}, {numbers}, {entry['answer']}, {source})\n"
    return text + "#undef GRAFT_FORM\n#endif\n// clang-format on\n"


HEAD = """<!-- Written by tools/tensorrt_versions.py --hold; do not edit. -->
# The nodes that each release of TensorRT runs

`graft inspect MODEL --for rtx-1.5` (or `tensorrt-10.13`) reports the nodes that the release refuses, and does not
need the release itself. Its data are in `src/inspect`:

| file | content |
|---|---|
| `tensorrt_measured.json` | TensorRT-RTX {versions}, each run on a machine without a GPU: the operators that its parser refuses, and for each other operator the element types in which a model of one node was built |
| `tensorrt_facts.json` | forms of operators that these releases refuse; and for TensorRT {first} to {last} what public documents state, each entry with its source |

An operator or a form that is in neither file is reported as unknown. The full TensorRT was not run here: PyPI has no builder
of it.

| source | where |
|---|---|
{sources}

## Compared with the releases that can be run

Each of the tests of operators in the `onnx` package ({onnx}) whose model is one node with tensors, with its parameters
(axes, sizes, scales) as constants: {total} models. "right" is a model that the rules predict to run and the
release builds, or that the rules predict to fail and the release refuses. "unknown" counts against the rules. A model
for which the release needs a GPU is not counted, because the machine has none.

| release | models | right | agreement | wrong: predicted to run | wrong: predicted to fail | unknown | needs a GPU |
|---|---|---|---|---|---|---|---|
{rows}
The types in the tables were measured with models of these tests, one for each operator, and the forms were found with
the same tests, so these figures show how well the tables describe known models. How well they predict other models is
shown by {stored} models that were not used for the tables: the package's models of PyTorch's layers and operators and of
single features (operator sets 6 to 12). In their first run 111 of 140 were right in TensorRT-RTX 1.4: 4 had been built
without their sizes, and 25 were of operator set 6, for whose broadcasting there was no rule; a rule was added.

| release | models | right | agreement | wrong: predicted to run | wrong: predicted to fail | unknown | needs a GPU |
|---|---|---|---|---|---|---|---|
{stored_rows}
ONNX's tests whose verdict is wrong or unknown, by operator, with the releases:

| operator | models | wrong | unknown |
|---|---|---|---|
{differences}"""


class Held:
    """The agreement of the rules' verdicts with a release's results."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.not_right: list[tuple[str, str]] = []  # the model, and "wrong" or "unknown"

    @property
    def agreement(self) -> float:
        return self.counts["right"] / (self.counts.total() - self.counts["gpu"])

    def row(self, version: str) -> str:
        counts = self.counts
        cells = [f"TensorRT-RTX {version}", counts.total() - counts["gpu"], counts["right"]]
        cells += [
            f"{100 * self.agreement:.1f} %",
            counts["said yes"],
            counts["said no"],
            counts["unknown"],
            counts["gpu"],
        ]
        return "| " + " | ".join(map(str, cells)) + " |\n"


def held(build: pathlib.Path, version: str, values: dict[pathlib.Path, dict[str, list[int]]]) -> Held:
    from tensorrt_builds import ask_tensorrt  # noqa: PLC0415

    tool = [build / "tests" / "oracle_tool", f"rtx-{short(version)}", *values]
    said = subprocess.run(tool, capture_output=True, text=True, check=True).stdout
    predicted = {pathlib.Path(line.split("\t")[0]): line.split("\t")[1] for line in said.splitlines()}
    result = Held()
    for path, answer in ask_tensorrt(values, installed_releases()[version], values, PROCESSES).items():
        what = predicted[path]
        kind = "gpu" if answer.needs_gpu else "right" if what == ("yes" if answer.built else "no") else f"said {what}"
        kind = "unknown" if kind == "said unknown" else kind
        result.counts[kind] += 1
        if kind not in ("gpu", "right"):
            result.not_right.append((path.stem, "unknown" if kind == "unknown" else "wrong"))
            print(f"{version} {path.stem}: {kind}: {answer.errors[:1]}")
    print(result.row(version), end="", flush=True)
    return result


def save_stored(folder: pathlib.Path) -> dict[pathlib.Path, dict[str, list[int]]]:
    """Saves the models of the onnx package that are not tests of operators."""
    import onnx  # noqa: PLC0415
    import onnx_judges  # noqa: PLC0415

    folder.mkdir()
    values: dict[pathlib.Path, dict[str, list[int]]] = {}
    for kind in ("pytorch-converted", "pytorch-operator", "simple"):
        for case in onnx_judges.stored_cases(kind):
            path = folder / f"{case.name}.onnx"
            onnx.save(case.model, path)
            values[path] = integers_of(case)
    return values


def hold(build: pathlib.Path) -> int:
    import onnx  # noqa: PLC0415

    cases = node_cases()
    facts = json.loads(FACTS.read_text())["full"]
    rows, stored_rows, least = "", "", 1.0
    by_operator: dict[str, dict[str, collections.Counter[str]]] = collections.defaultdict(
        lambda: {"wrong": collections.Counter(), "unknown": collections.Counter()}
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        values = save_cases(cases, folder)
        stored = save_stored(folder / "stored")
        for version in installed_releases():
            result = held(build, version, values)
            for name, kind in result.not_right:
                by_operator[cases[name].model.graph.node[0].op_type][kind][short(version)] += 1
            rows += result.row(version)
            least = min(least, result.agreement)
            stored_rows += held(build, version, stored).row(version)

    def listed(counter: collections.Counter[str]) -> str:
        return ", ".join(f"{count} in {version}" for version, count in counter.items())

    number = collections.Counter(case.model.graph.node[0].op_type for case in cases.values())
    differences = "".join(
        f"| {name} | {number[name]} | {listed(found['wrong'])} | {listed(found['unknown'])} |\n"
        for name, found in sorted(by_operator.items())
    )
    measured = json.loads(MEASURED.read_text())
    sources = "\n".join(f"| {each['name']} | {each['where']} |" for each in facts["sources"].values())
    PAGE.write_text(
        HEAD.format(
            versions=", ".join(measured),
            first=facts["releases"][0],
            last=facts["releases"][-1],
            sources=sources,
            onnx=onnx.__version__,
            total=len(cases),
            rows=rows,
            stored=len(stored),
            stored_rows=stored_rows,
            differences=differences,
        )
    )
    return int(least < LEAST_AGREEMENT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("measure", "hold", "check"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests" / "import"), str(ROOT / "tests" / "support")]
    if options.measure:
        measure()
    if options.hold:
        return hold(options.build)
    if options.check:
        current = TABLES.read_text() == tables()
        if not current:
            print("tensorrt_versions.inc is not what tools/tensorrt_versions.py writes: run it")
        return int(not current)
    TABLES.write_text(tables())
    return 0


if __name__ == "__main__":
    sys.exit(main())
