# soak.py - runs, converts and verifies every network of a folder many times, and compares with ONNX Runtime.
"""Usage: python bench/networks/soak.py FOLDER [--only PATTERN ...] [--jobs N] [--graft PROGRAM] [--record RESULT.json]
                                      [--resume] [--page PAGE.md]

FOLDER is the output of bench/networks/export.py: NAME.onnx with NAME.npz. For each network:

- `graft run` ten times, each in a process of its own: all results are bitwise equal, and agree with ONNX Runtime's;
- `graft convert` and `graft verify` of the original and the result, three times with different seeds: each verdict is
  "the same", and the converted network agrees with the original in ONNX Runtime, which shows whether the verdict is
  true.

Prints a row for each network when it ends, then the failures with their messages. RESULT.json has the results of this
and earlier runs; --resume skips the networks in it. PAGE.md is a table of RESULT.json. Needs numpy, onnx and
onnxruntime. Exit code 1 if any check fails.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Tolerance relative to the largest element of an output. Both runtimes add in f32, each in its own order, through up to
# 200 layers.
ALLOWED = 1e-3
# Where ONNX Runtime differs more with and without its own rewrites, the tolerance is this multiple of that difference.
OF_ITS_OWN = 10


def reference(model: pathlib.Path, inputs: dict[str, np.ndarray], optimized: bool) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    wanted = {value.name for value in session.get_inputs()}
    return dict(zip(names, session.run(names, {k: v for k, v in inputs.items() if k in wanted}), strict=True))


def distance(found: np.ndarray, wanted: np.ndarray) -> float:
    """Returns the largest difference relative to the largest element; infinite for another shape or type, for
    different integers, and for a NaN on one side."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if wanted.dtype.kind != "f":
        return 0.0 if np.array_equal(found, wanted) else float("inf")
    finite = np.isfinite(wanted)
    if not np.array_equal(found[~finite], wanted[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        return float("inf")
    largest = float(np.abs(wanted[finite]).max(initial=0))
    worst = float(np.abs(found[finite].astype("float64") - wanted[finite]).max(initial=0))
    return worst / largest if largest else worst


def furthest(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> float:
    """Returns the largest distance of any output; infinite where the names of the outputs differ."""
    if found.keys() != wanted.keys():
        return float("inf")
    return max((distance(found[name], wanted[name]) for name in wanted), default=0.0)


KINDS = {
    "detector": ("fasterrcnn", "fcos", "keypointrcnn", "maskrcnn", "retinanet", "ssd", "yolos", "rt_detr"),
    "segmenter": ("deeplabv3", "fcn_", "lraspp", "segformer", "dpt"),
    "sequence": ("gru", "lstm", "rnn_"),
    "speech": ("wav2vec2", "whisper"),
    "language": (
        "albert",
        "bart",
        "bert",
        "bloom",
        "deberta",
        "electra",
        "gpt",
        "llama",
        "mistral",
        "opt",
        "qwen2",
        "squeezebert",
        "t5",
    ),
}


def kind_of(network: str) -> str:
    family = network.partition("_")[2]
    fitting = (kind for kind, starts in KINDS.items() if any(start in family for start in starts))
    return next(fitting, "style" if "style" in family else "image")


def commit() -> str:
    """Returns the commit of the sources of this file."""
    done = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def page_of(rows: list[dict], given: argparse.Namespace) -> str:
    """Returns the page with a table of the networks by kind."""
    good = sum(not row["problems"] for row in rows)
    commits = ", ".join(sorted({row["commit"] for row in rows}))
    lines = [
        "<!-- Written by bench/networks/soak.py --page from the result of a soak. -->",
        "# Networks of other projects",
        "",
        f"{good} of {len(rows)} networks are good, at commit {commits}, compared with ONNX Runtime {onnxruntime.__version__}. "
        "They are exports of torchvision,",
        "transformers, timm and plain PyTorch with weights from a seed, created by `bench/networks/export.py`; the "
        "repository contains none of them.",
        "",
        "*Runs*: processes of `graft run` whose results are bitwise equal; *from ONNX Runtime*: their difference from ONNX "
        "Runtime, relative to the",
        "largest element of an output. *The same*: verdicts of `graft verify` after `graft convert`, each with a different "
        "number of seeds;",
        "*converted*: the difference of the converted network from the original in ONNX Runtime.",
        "",
        "| kind | network | exporter | runs | from ONNX Runtime | the same | converted | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (kind_of(row["network"]), row["network"])):
        name, _, exporter = row["network"].rpartition(".")
        lines.append(
            f"| {kind_of(row['network'])} | {name} | {exporter} | {row.get('equal_runs', 0)} of {given.repeats} "
            f"| {number(row.get('distance'))} | {row.get('same_verdicts', 0)} of {given.verdicts} "
            f"| {number(row.get('converted_distance'))} | {'; '.join(row['problems'])[:200] or 'good'} |"
        )
    return "\n".join(lines) + "\n"


class Soak:
    def __init__(self, given: argparse.Namespace):
        self.given = given

    def graft(self, *command: object) -> tuple[int, str, float]:
        started = time.perf_counter()
        done = subprocess.run([self.given.graft, *map(str, command)], capture_output=True, text=True, check=False)
        text = (done.stderr.strip() or done.stdout.strip())[-2000:]
        return done.returncode, text, time.perf_counter() - started

    def soak(self, model: pathlib.Path) -> dict:
        started = time.perf_counter()
        row: dict = {"network": model.stem, "commit": commit(), "problems": []}
        try:
            with tempfile.TemporaryDirectory() as folder:
                self.judge(model, pathlib.Path(folder), row)
        except Exception as failed:  # one network must not end the run of the others
            row["problems"].append(f"judge: {type(failed).__name__}: {str(failed)[:500]}")
        row["seconds"] = round(time.perf_counter() - started, 1)
        return row

    def judge(self, model: pathlib.Path, folder: pathlib.Path, row: dict) -> None:
        with np.load(model.with_suffix(".npz")) as archive:
            inputs = {name: archive[name] for name in archive.files}
        wanted = reference(model, inputs, optimized=False)
        if all(array.size == 0 or (array == array.flat[0]).all() for array in wanted.values()):
            row["problems"].append("its outputs are one number each, which any network is equal to")
            return
        own = furthest(reference(model, inputs, optimized=True), wanted)
        row["onnxruntime_to_itself"] = own
        allowed = max(ALLOWED, OF_ITS_OWN * own)
        self.judge_runs(model, folder, row, wanted, allowed)
        self.judge_verdicts(model, folder, row, inputs, wanted, allowed)

    def judge_runs(self, model, folder, row, wanted, allowed) -> None:
        first: dict[str, np.ndarray] | None = None
        row["equal_runs"], row["distance"] = 0, 0.0
        for repeat in range(self.given.repeats):
            result = folder / "out.npz"
            code, text, _ = self.graft("run", model, "--input", model.with_suffix(".npz"), "-o", result)
            if code != 0:
                row["problems"].append(f"run {repeat + 1}: exit {code}: {text}")
                return
            with np.load(result) as archive:
                found = {name: archive[name] for name in archive.files}
            if first is None:
                first = found
            differing = [name for name in found if found[name].tobytes() != first[name].tobytes()]
            if differing:
                row["problems"].append(f"run {repeat + 1}: not bitwise equal to run 1: {', '.join(differing)}")
            else:
                row["equal_runs"] += 1
            worst = furthest(found, wanted)
            row["distance"] = max(row["distance"], worst)
            if not worst <= allowed:
                row["problems"].append(f"run {repeat + 1}: {worst:.3g} off ONNX Runtime; allowed is {allowed:.3g}")
                return

    def judge_verdicts(self, model, folder, row, inputs, wanted, allowed) -> None:
        row["same_verdicts"] = 0
        converted = folder / "converted.onnx"
        for attempt in range(self.given.verdicts):
            code, text, seconds = self.graft("convert", model, "-o", converted)
            row["convert_seconds"] = round(seconds, 1)
            if code not in (0, 1) or not converted.exists():
                row["problems"].append(f"convert {attempt + 1}: exit {code}: {text}")
                return
            worst = furthest(reference(converted, inputs, optimized=False), wanted)
            row["converted_distance"] = worst
            if not worst <= allowed:
                row["problems"].append(f"convert {attempt + 1}: {worst:.3g} off the original in ONNX Runtime")
            code, text, seconds = self.graft("verify", model, converted, "--seeds", attempt + 1)
            row["verify_seconds"] = round(seconds, 1)
            if code == 0:
                row["same_verdicts"] += 1
            else:
                row["problems"].append(f"verify {attempt + 1}: exit {code}: {text}")


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="names, with * and ?")
    parser.add_argument("--jobs", type=int, default=1, help="networks at a time (1)")
    parser.add_argument("--repeats", type=int, default=10, help="of graft run (10)")
    parser.add_argument("--verdicts", type=int, default=3, help="times convert and verify run (3)")
    parser.add_argument("--largest", type=float, default=float("inf"), help="leave out larger files, in MB")
    parser.add_argument("--graft", default=str(ROOT / "build" / "bin" / "graft"))
    parser.add_argument("--record", type=pathlib.Path, help="write every figure and message as JSON")
    parser.add_argument("--resume", action="store_true", help="leave out networks that the record has")
    parser.add_argument("--page", type=pathlib.Path, help="write the record as a page")
    given = parser.parse_args()
    recorded = {}
    if given.record and given.record.exists():
        recorded = {row["network"]: row for row in json.loads(given.record.read_text())}
    models = [
        path
        for path in sorted(given.folder.glob("*.onnx"), key=lambda path: path.stat().st_size)
        if any(fnmatch.fnmatch(path.stem, pattern) for pattern in given.only)
        and path.with_suffix(".npz").exists()
        and path.stat().st_size <= given.largest * 1e6
        and not (given.resume and path.stem in recorded)
    ]
    if not models and not (given.resume and recorded):
        parser.error(f"{given.folder}: no NAME.onnx with NAME.npz that --only and --largest allow")
    soak = Soak(given)
    rows = []
    print(f"{'network':58} {'runs':>5} {'distance':>9} {'same':>5} {'converted':>9} {'s':>6}  verdict")
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(soak.soak, model) for model in models]):
            row = done.result()
            rows.append(row)
            print(
                f"{row['network']:58} {row.get('equal_runs', 0):>2}/{given.repeats:<2} {number(row.get('distance')):>9} "
                f"{row.get('same_verdicts', 0):>3}/{given.verdicts} {number(row.get('converted_distance')):>9} "
                f"{row['seconds']:>6}  {'FAILED' if row['problems'] else 'good'}",
                flush=True,
            )
            if given.record:
                recorded[row["network"]] = row
                ordered = [recorded[name] for name in sorted(recorded)]
                given.record.write_text(json.dumps(ordered, indent=1) + "\n")
    if given.page:
        given.page.write_text(page_of(list(recorded.values()) or rows, given))
    failed = [row for row in rows if row["problems"]]
    for row in sorted(failed, key=lambda entry: entry["network"]):
        print(f"\n{row['network']}")
        for problem in row["problems"]:
            print("  " + problem.replace("\n", "\n    "))
    print(f"\n{len(rows) - len(failed)} of {len(rows)} networks are good")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
