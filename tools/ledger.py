# ledger.py - asks TensorRT-RTX what it builds of each operator, before and after Graft, and writes docs/ledger.md.
"""The models are ONNX's own tests of one node, the seeded models of ONNX Runtime's operators in tests/import, and the
names of plugins that Graft replaces. Run it after a build, with the environment of .deps/venv; it takes some minutes:

    python tools/ledger.py
    python tools/ledger.py --only Attention,CumProd      prints the rows of these operators and writes nothing

It exits with 1 if a model builds before the conversion only, or if a converted model has other results.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "ledger.md"
GRAFT = ROOT / "build" / "bin" / "graft"
NOT_REPLACED = "graft convert does not replace the node with layers that TensorRT has: "
OWN_OPERATOR = "no operator of Graft replaces the node"

TEXT = """<!-- Written by tools/ledger.py; do not edit. -->
# Ledger: what TensorRT builds of each operator, before and after Graft

Each model was given to TensorRT-RTX {tensorrt} three times, on a machine without a GPU: as it is, after `graft convert`,
and, if it then has a node for which Graft has a plugin, to `graft build`. The page [Lowerings](ops/lowerings.md) says
what `graft convert` writes.

## Operators of ONNX

The models are the tests in the `onnx` package ({onnx}, operator set {opset}) whose model is one node with tensors.
Parameters (axes, sizes, scales) are constants. Of {total} models, {before} build before and {after} after the
conversion: {native} with layers of TensorRT, and {plugins} with a plugin of Graft. {lost} models build only before it.
Of the models with a lowered node, {right} have the results that ONNX expects, and {wrong} have different results.

Where models still do not build, the last column has the number of these models and the reason that `graft inspect`
gives. An operator without such a test has no numbers.

| operator | models | before | after | with a plugin | what does not build, and why |
|---|---|---|---|---|---|
{onnx_rows}
## Operators of ONNX Runtime (com.microsoft)

The models are {seeds} seeded models of each operator that Graft replaces, with random attributes, types and sizes
(`tests/import/onnxruntime_models.py`); ONNX Runtime judges the results in the tests. ONNX Runtime {onnxruntime} knows
{known} operators of this domain.

| operator | models | before | after |
|---|---|---|---|
{contrib_rows}
Graft has no replacement for the other operators, for these reasons:

{others}
## Plugins of other libraries

These names are plugins of NVIDIA's or other people's libraries that networks carry. "Registered" says whether this
TensorRT-RTX has a plugin of that name. Graft replaces a node of such a name with layers that TensorRT has, or runs it
as an operator of Graft.

| name | registered | Graft |
|---|---|---|
{plugin_rows}"""

# Why Graft has no replacement for operators of ONNX Runtime: a pattern of their names, and the reason.
WHY_NOT = [
    (
        r"BeamSearch|GreedySearch|Sampling|WhisperBeamSearch",
        "they are whole decoding loops around a network, which an application runs itself",
    ),
    (
        r"Packed.*|Paged.*|Sparse.*Attention.*|RemovePadding|RestorePadding|DecoderMasked.*|DecoderAttention"
        r"|LongformerAttention|Varlen.*",
        "they read a packed layout or a cache that only ONNX Runtime's own kernels have",
    ),
    (
        r"QOrdered.*|.*WithOrder|.*BFP|GemmFloat8|MatMulFpQ4|MatMulBnb4|MatMulBlockQuantized.*|Q?MoE"
        r"|GatherBlockQuantized|MatMulNBits.+",
        "their weights are stored in a layout or type of ONNX Runtime's own kernels",
    ),
    (
        r"Tokenizer|WordConvEmbedding|MurmurHash3|.*NGram.*|VarlenNGram.*",
        "they work on text, which belongs before the network",
    ),
    (r"EPContext|Snpe", "they contain a network that another vendor's compiler has compiled"),
    (r".*Dropout|IsAllFinite", "they are for training"),
]
WHY_NOT_ELSE = "no user has asked for them so far; `graft cut` runs them in ONNX Runtime"


def builds_with_plugins(model):
    """Returns whether `graft build` builds a model, with Graft's own plugin library."""
    command = [GRAFT, "build", "-q", model, "-o", model.with_suffix(".engine"), "--target", "sm120"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def operators_of_graft():
    listed = subprocess.run([GRAFT, "ops", "--json"], capture_output=True, text=True, check=True).stdout
    return json.loads(listed)["operators"]


def convert_all(tool, models, folder):
    """Writes the models and their conversions into the folder, and returns the paths of both by name, and the names of
    the models with a lowered node."""
    from program import run_program  # noqa: PLC0415

    for part in ("in", "out"):
        (folder / part).mkdir(parents=True)
    for name, model in models.items():
        onnx.save(model, folder / "in" / f"{name}.onnx")
    paths = {name: folder / "in" / f"{name}.onnx" for name in models}
    done = run_program([tool, "auto", folder / "out", *paths.values()])
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    lowered = {line[0].removesuffix(".onnx") for line in lines if line[1] == "lowered"}
    written = {name: folder / "out" / f"{name}.onnx" for name in models if (folder / "out" / f"{name}.onnx").is_file()}
    return paths, written, lowered


def ask_twice(before, after, values):
    """Returns what TensorRT-RTX builds of the models before and after the conversion, by name."""
    from tensorrt_builds import ask_tensorrt  # noqa: PLC0415

    def ask(paths):
        answers = ask_tensorrt(paths.values(), values={paths[name]: values[name] for name in paths if name in values})
        return {path.stem: answer for path, answer in answers.items()}

    with concurrent.futures.ThreadPoolExecutor() as pool:
        return tuple(pool.map(ask, (before, after)))


def values_of_sizes(case):
    """Returns the integers that the test feeds, for inputs that TensorRT reads as sizes."""
    from onnx_judges import to_array  # noqa: PLC0415

    arrays = {
        info.name: to_array(value) for info, value in zip(case.model.graph.input, case.data_sets[0][0], strict=True)
    }
    return {
        name: array.reshape(-1).tolist()
        for name, array in arrays.items()
        if array is not None and array.dtype in (np.int32, np.int64) and array.ndim <= 1
    }


def reason(path, answer):
    """Returns why a model does not build: the advice of `graft inspect`, or what TensorRT says."""
    import graft  # noqa: PLC0415

    try:
        nodes = graft.inspect(path, judge="rule").nodes
    except graft.GraftError as error:
        return str(error).splitlines()[0]
    problems = [node for node in nodes if str(node.support) == "unsupported"]
    if not problems:
        return f"TensorRT says: {(answer.errors or ['nothing'])[0].splitlines()[0]}"
    node = problems[0]
    if node.advice.startswith(NOT_REPLACED):
        return node.advice.removeprefix(NOT_REPLACED)
    why = node.reason.split("; TensorRT")[0]
    return re.sub(r" \(measured in [^)]*\)", "", why)


def in_table(text):
    """Returns text that may stand in a cell: on one line, without the names of tensors, and of a readable length."""
    text = re.sub(r"'[^']*'", "a tensor", " ".join(text.split()))
    text = re.sub(r"a tensor is \w+, a type that", "a tensor has a type that", text)
    text = text if len(text) <= 160 else text[:157].rstrip() + "..."
    return text.replace("|", "\\|").replace("<", "&lt;")


def onnx_section(tool, folder, only):
    """Returns the rows, and the figures of the text."""
    import onnx_judges  # noqa: PLC0415

    cases = {case.name: onnx_judges.with_constants(case) for case in onnx_judges.node_cases()}
    cases = {
        name: case
        for name, case in cases.items()
        if case is not None and "_expanded" not in name and (not only or case.model.graph.node[0].op_type in only)
    }
    before_paths, after_paths, lowered = convert_all(tool, {n: case.model for n, case in cases.items()}, folder)
    values = {name: values_of_sizes(case) for name, case in cases.items()}
    before, after = ask_twice(before_paths, after_paths, values)
    named = {operator["name"] for operator in operators_of_graft()} | {
        operator["onnx_name"] for operator in operators_of_graft()
    }
    plugins = {
        name
        for name, path in after_paths.items()
        if not after[name].built
        and {node.op_type for node in onnx.load(path).graph.node} & named
        and builds_with_plugins(path)
    }
    right, wrong = [], []
    for name in sorted(lowered):
        judged, problem = onnx_judges.judge(onnx.load(after_paths[name]), cases[name])
        (right if judged else wrong).append(name if judged else f"{name}: {problem}")
    counts = collections.defaultdict(lambda: [0, 0, 0, 0])
    reasons = collections.defaultdict(collections.Counter)
    lost = []
    for name, case in cases.items():
        node = case.model.graph.node[0]
        operator = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        is_built = name in after and after[name].built
        for i, one in enumerate((True, before[name].built, is_built or name in plugins, name in plugins)):
            counts[operator][i] += one
        if not is_built and name not in plugins:
            reasons[operator][in_table(reason(before_paths[name], after.get(name, before[name])))] += 1
            lost += [name] if before[name].built else []
    schemas = {
        f"{schema.domain}::{schema.name}" if schema.domain else schema.name
        for schema in onnx.defs.get_all_schemas()
        if not schema.deprecated
    }
    rows = ""
    for operator in sorted(schemas if not only else counts, key=lambda name: ("::" in name, name)):
        if operator not in counts:
            rows += f"| {operator} |  |  |  |  |  |\n"
            continue
        models, *figures = counts[operator]
        why = "; ".join(f"{count}: {text}" for text, count in sorted(reasons[operator].items()))
        rows += f"| {operator} | {models} | {' | '.join(str(figure or '') for figure in figures)} | {why} |\n"
    built = sum(answer.built for answer in after.values())
    return rows, {
        "total": len(cases),
        "before": sum(answer.built for answer in before.values()),
        "after": built + len(plugins),
        "native": built,
        "plugins": len(plugins),
        "lost": lost,
        "right": right,
        "wrong": wrong,
    }


def contrib_section(tool, folder):
    """Returns the rows, the number of models of an operator, the text about the other operators, and their number."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema  # noqa: PLC0415
    from onnxruntime_models import LOWERED, WITHOUT_KERNEL  # noqa: PLC0415

    seeds = 4
    made, operators = {}, {}
    for name, make in (LOWERED | WITHOUT_KERNEL).items():
        for seed in range(seeds):
            one = make(np.random.default_rng([seed, *name.encode()]))
            one = one[0] if name in WITHOUT_KERNEL else one
            model = one.model
            for info in model.graph.input:  # A dynamic size would need a profile.
                for dim, size in zip(info.type.tensor_type.shape.dim, one.feeds[info.name].shape, strict=True):
                    dim.dim_value = size
            made[f"{name}_{seed}"] = model
            operators[f"{name}_{seed}"] = model.graph.node[0].op_type
    before_paths, after_paths, _ = convert_all(tool, made, folder)
    before, after = ask_twice(before_paths, after_paths, {})
    counts = collections.defaultdict(lambda: [0, 0, 0])
    for name, operator in operators.items():
        for i, one in enumerate((True, before[name].built, name in after and after[name].built)):
            counts[operator][i] += one
    rows = "".join(f"| {name} | {a} | {b or ''} | {c or ''} |\n" for name, (a, b, c) in sorted(counts.items()))
    known = {schema.name for schema in get_all_operator_schema() if schema.domain == "com.microsoft"}
    listed = subprocess.run([tool, "lowerings"], capture_output=True, text=True, check=True).stdout
    replaced = set(re.findall(r"^com\.microsoft::(\w+)\t", listed, re.M))
    groups = collections.defaultdict(list)
    for name in sorted(known - replaced):
        why = next((why for pattern, why in WHY_NOT if re.fullmatch(pattern, name)), WHY_NOT_ELSE)
        groups[why].append(name)
    order = [why for _, why in WHY_NOT] + [WHY_NOT_ELSE]
    others = "".join(f"- {', '.join(groups[why])}: {why}.\n" for why in order if groups[why])
    return rows, seeds, others, len(known)


def plugin_section(tool):
    import tensorrt_rtx as trt  # noqa: PLC0415

    trt.init_libnvinfer_plugins(None, "")
    registered = {creator.name for creator in trt.get_plugin_registry().all_creators}
    does = {}
    listed = subprocess.run([tool, "lowerings"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name, _, written, needs = line.split("\t")
        if name.startswith("*::"):
            does[name[3:]] = f"{written}; needs {needs}" if needs else written
    for operator in operators_of_graft():
        for drop_in in operator["drop_ins"]:
            does.setdefault(drop_in["name"], f"the operator {operator['name']}")
    return "".join(
        f"| {name} | {'yes' if name in registered else 'no'} | {in_table(text)} |\n"
        for name, text in sorted(does.items())
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--only", default="", help="operators of ONNX, joined by commas; prints their rows")
    arguments = parser.parse_args()
    os.environ |= {"GRAFT_BUILD_DIR": str(arguments.build), "GRAFT_PYTHON": sys.executable}
    sys.path[:0] = [str(ROOT / part) for part in ("tests/import", "tests/support", "build/python")]
    tool = arguments.build / "tests" / "convert_tool"
    only = set(arguments.only.split(",")) - {""}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rows, figures = onnx_section(tool, folder / "onnx", only)
        if only:
            print(rows)
        else:
            import onnxruntime  # noqa: PLC0415
            import tensorrt_rtx  # noqa: PLC0415

            contrib_rows, seeds, others, known = contrib_section(tool, folder / "contrib")
            counted = {key: len(value) if isinstance(value, list) else value for key, value in figures.items()}
            text = TEXT.format(
                tensorrt=tensorrt_rtx.__version__,
                onnx=onnx.__version__,
                opset=onnx.defs.onnx_opset_version(),
                onnxruntime=onnxruntime.__version__,
                onnx_rows=rows,
                contrib_rows=contrib_rows,
                seeds=seeds,
                others=others,
                known=known,
                plugin_rows=plugin_section(tool),
                **counted,
            )
            PAGE.write_text(text)
    print({key: value for key, value in figures.items() if key != "right"})
    return 1 if figures["wrong"] or figures["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
