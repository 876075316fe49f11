# networks.py - converts whole TensorFlow networks, compares every tensor with TensorFlow's, builds engines, and writes
# a table.
"""Usage: python bench/import/networks.py FOLDER [--only NAME ...] [--graft PROGRAM] [--record RESULT.json]

FOLDER is the output of tests/golden/generators/make_tensorflow_networks.py: NAME.pb with NAME.npz. Each network is
converted with proofs, with and without plugins. ONNX Runtime computes every tensor of the ONNX file that still has its
TensorFlow name, and the script compares it with TensorFlow's own. The outputs are also compared with OpenVINO's own
reader of TensorFlow graphs; `graft verify` compares the .pb with the .onnx; TensorRT-RTX builds the engine in f32.
Needs onnxruntime, openvino and tensorrt_rtx, not TensorFlow. Exit code 1 if results differ or a step fails.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Tolerance relative to a tensor's largest number. Both runtimes add in f32, each in its own order.
ALLOWED = 1e-5


def run(*command: object) -> tuple[dict, float, str]:
    start = time.perf_counter()
    done = subprocess.run([*map(str, command), "--json"], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        answer = {}
    return answer, seconds, "" if done.returncode == 0 else f"exit code {done.returncode}: {done.stdout}{done.stderr}"


def distance(found: np.ndarray, wanted: np.ndarray) -> float:
    """Returns the largest difference relative to the largest element; infinite for different shapes."""
    if found.shape != wanted.shape or not np.isfinite(found).all():
        return float("inf")
    largest = float(np.abs(wanted).max(initial=0))
    worst = float(np.abs(found.astype("float64") - wanted).max(initial=0))
    return worst / largest if largest else worst


def original_of(name: str, arrays: dict[str, np.ndarray]) -> str | None:
    """Returns the TensorFlow tensor for a tensor of the ONNX file. A tensor with channels first has the original's
    name with an addition that no TensorFlow name has: `:Conv` or `~1`. `:Transpose` is the input of an operator."""
    if name.endswith(":Transpose"):
        return None
    for candidate in (name, name.rsplit("~", 1)[0], name.rsplit(":", 1)[0]):
        if f"tensor/{candidate}" in arrays:
            return candidate
    return None


def add_up_in_double(model: onnx.ModelProto) -> None:
    """Computes means of the reference in double. ONNX Runtime adds the numbers of a mean sequentially in f32: for
    65,536 numbers (the variance of the style network), its error is 1.6e-5, where TensorFlow's is 2.8e-6."""
    nodes = []
    for node in model.graph.node:
        if node.op_type != "ReduceMean":
            nodes.append(node)
            continue
        wide, result = f"{node.output[0]}:wide", f"{node.output[0]}:mean"
        nodes.append(helper.make_node("Cast", [node.input[0]], [wide], to=onnx.TensorProto.DOUBLE))
        mean = onnx.NodeProto()
        mean.CopyFrom(node)
        mean.input[0], mean.output[0] = wide, result
        nodes.append(mean)
        nodes.append(helper.make_node("Cast", [result], [node.output[0]], to=onnx.TensorProto.FLOAT))
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def compare_tensors(path: pathlib.Path, arrays: dict[str, np.ndarray]) -> tuple[int, float, str, list[str]]:
    """Returns the number of tensors with a TensorFlow name, the largest error and its tensor, and missing outputs."""
    model = onnx.load(path)
    outputs = [output.name for output in model.graph.output]
    types = {info.name: info.type.tensor_type.elem_type for info in [*model.graph.value_info, *model.graph.output]}
    made = [name for node in model.graph.node for name in node.output if types.get(name) == onnx.TensorProto.FLOAT]
    originals = {name: original for name in made if (original := original_of(name, arrays))}
    # Where the tensor itself exists, `Rsqrt:Sqrt` is an intermediate result.
    originals = {name: original for name, original in originals.items() if name == original or original not in made}
    kept = list(originals)
    model.graph.output.extend(
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in kept if name not in outputs
    )
    add_up_in_double(model)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {key.removeprefix("in/"): value for key, value in arrays.items() if key.startswith("in/")}
    worst, where = 0.0, ""
    for name, value in zip(kept, session.run(kept, feeds), strict=True):
        wanted = arrays[f"tensor/{originals[name]}"]
        if name != originals[name] and wanted.ndim == 4:
            wanted = wanted.transpose(0, 3, 1, 2)
        error = distance(value, wanted)
        if error >= worst:
            worst, where = error, name
    return len(kept), worst, where, [name for name in arrays["outputs"].tolist() if name not in outputs]


def openvino_says(path: pathlib.Path, arrays: dict[str, np.ndarray]) -> float:
    """Returns the largest difference between OpenVINO's own reading of the .pb and TensorFlow."""
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    feeds = {key.removeprefix("in/"): value for key, value in arrays.items() if key.startswith("in/")}
    given = {port.get_any_name().split(":")[0]: port for port in compiled.inputs}
    results = compiled({given[name]: value for name, value in feeds.items()})
    wanted = set(arrays["outputs"].tolist())
    worst, found = 0.0, set()
    for port in compiled.outputs:
        for name in {name.split(":")[0] for name in port.get_names()} & wanted:
            worst = max(worst, distance(results[port], arrays[f"tensor/{name}"]))
            found.add(name)
    return worst if found == wanted else float("inf")


def shapes_of(model: onnx.ModelProto) -> list[str]:
    """Returns `--shapes` for inputs with a dynamic batch."""
    arguments = []
    for value in model.graph.input:
        dims = [dim.dim_value or None for dim in value.type.tensor_type.shape.dim]
        if None in dims:
            text = ["x".join(str(dim or batch) for dim in dims) for batch in (1, 1, 4)]
            arguments += ["--shapes", f"{value.name}={'..'.join(text)}"]
    return arguments


def judge(name: str, folder: pathlib.Path, graft: pathlib.Path, output: pathlib.Path) -> tuple[dict, list[str]]:
    source = folder / f"{name}.pb"
    arrays = dict(np.load(folder / f"{name}.npz"))
    problems = []
    row: dict = {"network": name, "bytes": source.stat().st_size, "plugins": {}}
    for plugins in ("auto", "never"):
        target = output / f"{name}.{plugins}.onnx"
        report, seconds, error = run(graft, "convert", source, "-o", target, "--plugins", plugins)
        if error:
            return row, [f"{name}, plugins {plugins}: {error}"]
        problems += [f"{name}: undone: {undone}" for undone in report["undone"]]
        model = onnx.load(target)
        kinds = collections.Counter(node.op_type for node in model.graph.node)
        kept, worst, where, missing = compare_tensors(target, arrays)
        if missing or not worst <= ALLOWED:
            problems.append(f"{name}, plugins {plugins}: outputs missing {missing}, worst {worst:.2g} at '{where}'")
        engine = output / f"{name}.{plugins}.engine"
        shapes = shapes_of(model)
        built, build_seconds, error = run(
            graft, "build", target, "-o", engine, "--target", "sm89", "--plugins", plugins, *shapes
        )
        if error:
            problems.append(f"{name}, plugins {plugins}: build: {error}")
        engine.unlink(missing_ok=True)
        row["plugins"][plugins] = {
            "nodes_before": report["nodes_before"],
            "nodes_after": report["nodes_after"],
            "transposes": kinds["Transpose"],
            "operators": dict(kinds.most_common()),
            "tensors_compared": kept,
            "worst": worst,
            "worst_at": where,
            "seconds": seconds,
            "proofs": report["proofs_run"],
            "choices": report["choices"],
            "built": not error,
            "build_seconds": build_seconds,
            "engine_plugins": [plugin["name"] for plugin in built.get("network", {}).get("plugins", [])],
        }
    verified, row["verify_seconds"], error = run(graft, "verify", source, output / f"{name}.auto.onnx", "--seeds", 1)
    row["verify"] = not error
    if error:
        problems.append(f"{name}: verify: {error or verified}")
    try:
        row["openvino"] = openvino_says(source, arrays)
    except RuntimeError as refused:
        row["openvino"] = None
        row["openvino_refusal"] = str(refused).strip().splitlines()[-1]
    return row, problems


def main() -> int:
    parser = argparse.ArgumentParser(description="whole TensorFlow networks through Graft")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--graft", type=pathlib.Path, default=os.environ.get("GRAFT_BIN", ROOT / "build/bin/graft"))
    parser.add_argument("--output", type=pathlib.Path, help="where the models go (FOLDER/converted)")
    parser.add_argument("--record", type=pathlib.Path, help="write the result here, for bench/import/document.py")
    arguments = parser.parse_args()
    output = arguments.output or arguments.folder / "converted"
    output.mkdir(parents=True, exist_ok=True)
    names = arguments.only or sorted(path.stem for path in arguments.folder.glob("*.pb"))
    rows, problems = [], []
    for name in names:
        row, found = judge(name, arguments.folder, arguments.graft, output)
        rows.append(row)
        problems += found
        print(json.dumps({key: value for key, value in row.items() if key != "plugins"}), flush=True)
        for plugins, result in row["plugins"].items():
            print(f"  {plugins}: {json.dumps({k: v for k, v in result.items() if k != 'choices'})}", flush=True)
            for choice in {(c["operator"], c["kind"], c["reason"]) for c in result["choices"]}:
                print(f"    {choice}")
    for problem in problems:
        print(problem, file=sys.stderr)
    if arguments.record:
        arguments.record.write_text(json.dumps({"networks": rows}, indent=1) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
