# accuracy.py - measures the accuracy of f16 and int8, and compares with ONNX Runtime's static quantizer on the same
# data.
"""Usage: python bench/quantize/accuracy.py FOLDER [--only NETWORK ...] [--graft PROGRAM] [--record RESULT.json]

FOLDER is the output of bench/quantize/data.py. Each network is converted and then quantized by `graft quantize`: to
f16, and to int8 with each method, with each list of improvements, and with the layers in f32 that --max-drop requires.
onnxruntime.quantization.quantize_static (Q/DQ, symmetric int8 for activations and weights, weights per channel)
quantizes it with the same samples and the same method, twice: with every operator that it quantizes by default, and
with only convolutions and matrix products. ONNX Runtime's quantizer gets the network as `graft convert --plugins never`
writes it, in standard operators, after its own quant_pre_process.

All models are compared in the same way: ONNX Runtime runs them without graph optimizations, so that Q and DQ are
computed literally, in f32, on test data that no calibration used. `graft run` has to return the same answers for the
first samples. A network without labels is measured by its distance from its own f32 outputs. Needs onnxruntime 1.31 and
onnx.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import io
import itertools
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

ROOT = pathlib.Path(__file__).resolve().parents[2]
METHODS = ("minmax", "entropy", "percentile", "mse")
IMPROVEMENTS = ("bias", "equalize,bias", "equalize,smooth,bias", "equalize,smooth,bias,round")
PERCENTILE = 99.99
MAX_DROP = 0.5
BATCH = 50
TRIED_WITH_GRAFT = 100  # number of samples that `graft run` repeats
SAMPLES_FOR_F16 = 8

Feeds = dict[str, np.ndarray]
Outputs = dict[str, np.ndarray]


class Task:
    """A network's folder, as data.py writes it."""

    def __init__(self, folder: pathlib.Path, limit: int | None = None) -> None:
        self.folder, self.limit = folder, limit
        about = json.loads((folder / "task.json").read_text())
        self.name, self.kind, self.input, self.output = folder.name, about["kind"], about["input"], about["output"]
        self.network = folder / about["network"]
        self.source = about.get("from", "")
        self.shape = ["--input", f"{self.input}:{about['shape']}"] if "shape" in about else []
        arrays = folder / "calibration.npz"
        self.calibration = arrays if arrays.exists() else folder / "calibration"
        with np.load(folder / "test.npz") as test:
            self.test = {name: test[name] for name in test.files}
        self.signs: list[str] = []
        if self.kind == "text":
            metadata = {each.key: each.value for each in onnx.load(self.network).metadata_props}
            self.signs = ["", *metadata["character"].splitlines(), " "]

    def samples(self) -> Iterator[Feeds]:
        """Yields the calibration data, one run after the other."""
        if self.calibration.is_dir():
            for path in sorted(self.calibration.iterdir()):
                with np.load(path) as arrays:
                    yield {name: arrays[name] for name in arrays.files}
        else:
            with np.load(self.calibration) as arrays:
                values = arrays[self.input]
            for i in range(len(values)):
                yield {self.input: values[i : i + 1]}

    def batches(self) -> Iterator[tuple[Feeds, np.ndarray | None]]:
        """Yields the test data with their labels."""
        for key, values in self.test.items():
            if key.startswith("labels"):
                continue
            labels = self.test.get(key.replace("image_", "labels_") if "image_" in key else "labels")
            values = values[: self.limit]
            for i in range(0, len(values), BATCH):
                yield (
                    {self.input: values[i : i + BATCH]},
                    None if labels is None else labels[i : min(i + BATCH, len(values))],
                )

    def few(self) -> np.ndarray:
        """Returns a part of the calibration data as one run, for f16."""
        chosen: dict[tuple[int, ...], list[np.ndarray]] = {}
        for feeds in self.samples():
            values = feeds[self.input]
            chosen.setdefault(values.shape, []).append(values)
        return np.concatenate(max(chosen.values(), key=lambda values: values[0].size)[:SAMPLES_FOR_F16])


class Samples(CalibrationDataReader):
    """Calibration data in ranges of one sample: ONNX Runtime keeps all tensors of a range, 14 GB for 64 lines of
    text."""

    def __init__(self, task: Task) -> None:
        self.all = list(task.samples())
        self.samples = iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def set_range(self, start_index: int, end_index: int) -> None:
        self.samples = iter(self.all[start_index:end_index])

    def get_next(self) -> Feeds | None:
        return next(self.samples, None)


def graft(program: pathlib.Path, *arguments: object) -> dict:
    done = subprocess.run([program, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    # Exit code 1 is valid: an output misses its limit, and the model is written.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-400:]}")
    return json.loads(done.stdout)


def session_of(model: pathlib.Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def run_all(model: pathlib.Path, task: Task) -> list[Outputs]:
    session = session_of(model)
    names = [output.name for output in session.get_outputs()]
    return [dict(zip(names, session.run(names, feeds), strict=True)) for feeds, _ in task.batches()]


def run_with_graft(program: pathlib.Path, model: pathlib.Path, task: Task) -> list[Outputs]:
    result, count = [], 0
    with tempfile.TemporaryDirectory() as temporary:
        given, made = pathlib.Path(temporary) / "in.npz", pathlib.Path(temporary) / "out.npz"
        for feeds, _ in task.batches():
            np.savez(given, **feeds)
            graft(program, "run", model, "-i", given, "-o", made)
            with np.load(made) as arrays:
                result.append({name: arrays[name] for name in arrays.files})
            count += len(feeds[task.input])
            if count >= TRIED_WITH_GRAFT:
                break
    return result


def edits(first: str, second: str) -> int:
    """Returns the Levenshtein distance."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def texts_of(probabilities: np.ndarray, signs: list[str]) -> list[str]:
    """Returns the decoded texts: the most likely sign of each step, without repetitions and blanks."""
    found = []
    for row in probabilities.argmax(axis=2):
        kept = [signs[sign] for sign, before in zip(row, [0, *row[:-1]], strict=True) if sign and sign != before]
        found.append("".join(kept).replace(" ", ""))
    return found


def answers_of(outputs: Outputs, task: Task) -> list:
    if task.kind == "boxes":
        return [int(i) for i in outputs["confidence/result"].argmax(axis=1)]
    values = outputs[task.output or next(iter(outputs))]
    return texts_of(values, task.signs) if task.kind == "text" else [int(i) for i in values.argmax(axis=1)]


def accuracy_of(results: list[Outputs], task: Task) -> float | None:
    """Returns the percentage of images with the correct class, or of correct signs; None without labels."""
    wrong, total = 0, 0
    for outputs, (_, labels) in zip(results, task.batches(), strict=True):
        if labels is None:
            return None
        for answer, label in zip(answers_of(outputs, task), labels, strict=True):
            if task.kind == "text":
                text = str(label).replace(" ", "")
                wrong, total = wrong + min(edits(answer, text), len(text)), total + len(text)
            else:
                wrong, total = wrong + (answer != int(label)), total + 1
    return 100 * (total - wrong) / total


def snr(results: list[Outputs], wanted: list[Outputs]) -> dict[str, float]:
    """Returns the signal to noise ratio of each output in dB, relative to f32."""
    found = {}
    for name in wanted[0]:
        signal = sum(float((batch[name].astype("float64") ** 2).sum()) for batch in wanted)
        noise = sum(
            float(((mine[name].astype("float64") - theirs[name]) ** 2).sum())
            for mine, theirs in zip(results, wanted, strict=True)
        )
        found[name] = 200.0 if noise == 0 else float(10 * np.log10(signal / noise))
    return found


def box_errors(results: list[Outputs], wanted: list[Outputs]) -> dict[str, float]:
    """Returns the errors of the orientation's angles in degrees, and of the dimensions in per cent of their size."""

    def joined(batches: list[Outputs], name: str) -> np.ndarray:
        return np.concatenate([batch[f"{name}/result"] for batch in batches]).astype("float64")

    def angles(batches: list[Outputs]) -> np.ndarray:
        values = joined(batches, "orientation")
        return np.arctan2(values[..., 1], values[..., 0])

    turn = np.abs(np.angle(np.exp(1j * (angles(results) - angles(wanted)))))
    mine, theirs = joined(results, "dimension"), joined(wanted, "dimension")
    return {
        "angle_mean": float(np.degrees(turn).mean()),
        "angle_worst": float(np.degrees(turn).max()),
        "dimension_mean": float(100 * (np.abs(mine - theirs).sum() / np.abs(theirs).sum())),
    }


def judge(model: pathlib.Path, task: Task, wanted: list[Outputs] | None, program: pathlib.Path | None) -> dict:
    results = run_all(model, task)
    wanted = wanted or results
    answers = list(itertools.chain.from_iterable(answers_of(batch, task) for batch in results))
    truth = list(itertools.chain.from_iterable(answers_of(batch, task) for batch in wanted))
    row = {
        "accuracy": accuracy_of(results, task),
        "same_as_f32": sum(a == b for a, b in zip(answers, truth, strict=True)),
        "samples": len(answers),
        "snr": snr(results, wanted),
        "bytes": model.stat().st_size,
    }
    if task.kind == "boxes":
        row["boxes"] = box_errors(results, wanted)
    if program:
        own = run_with_graft(program, model, task)
        tried = list(itertools.chain.from_iterable(answers_of(batch, task) for batch in own))
        row["graft_run"] = {
            "same": sum(a == b for a, b in zip(answers, tried, strict=False)),
            "of": len(tried),
            "snr": min(snr(own, results[: len(own)]).values()),
        }
    return row


def quantize_with_onnxruntime(plain: pathlib.Path, target: pathlib.Path, task: Task, method: str, only: bool) -> None:
    chosen = {
        "minmax": CalibrationMethod.MinMax,
        "entropy": CalibrationMethod.Entropy,
        "percentile": CalibrationMethod.Percentile,
    }[method]
    with contextlib.redirect_stdout(io.StringIO()):  # quantize_static prints its progress
        quantize_static(
            str(plain),
            str(target),
            Samples(task),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["Conv", "ConvTranspose", "MatMul", "Gemm"] if only else None,
            per_channel=True,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
            calibrate_method=chosen,
            calibration_providers=["CPUExecutionProvider"],
            extra_options={
                "ActivationSymmetric": True,
                "WeightSymmetric": True,
                "CalibTensorRangeSymmetric": True,
                "CalibStridedMinMax": 1,
                **({"CalibPercentile": PERCENTILE} if method == "percentile" else {}),
            },
        )


def ways_of(task: Task, program: pathlib.Path, work: pathlib.Path, options: argparse.Namespace) -> Iterator[tuple]:
    """Yields (label, type, quantizer, method, function that writes the model) for all compared models."""
    source, plain, ready = work / "graft.onnx", work / "plain.onnx", work / "ready.onnx"

    def graft_f16(target: pathlib.Path) -> None:
        np.save(work / "few.npy", task.few())
        few = f"{task.input}={work / 'few.npy'}"
        graft(program, "quantize", source, "-o", target, "--precision", "f16", "--data", few)

    def graft_int8(method: str, improve: str, *more: object) -> Callable[[pathlib.Path], None]:
        more += ("--improve", improve) if improve else ()
        more += ("--percentile", PERCENTILE) if method == "percentile" else ()
        data = ["--data", task.calibration, "--method", method]
        return lambda target: graft(program, "quantize", source, "-o", target, "--precision", "int8", *data, *more)

    def onnxruntime_int8(method: str, only: bool) -> Callable[[pathlib.Path], None]:
        def make(target: pathlib.Path) -> None:
            if not ready.exists():
                quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
            quantize_with_onnxruntime(ready, target, task, method, only)

        return make

    yield "f32", "f32", "graft", "", None
    yield "f16", "f16", "graft", "", graft_f16
    for method in METHODS:
        yield f"int8 {method}", "int8", "graft", method, graft_int8(method, "")
    method = options.improve_method
    for improve in IMPROVEMENTS:
        yield f"int8 {method}, {improve}", "int8", "graft", method, graft_int8(method, improve)
    mixed = graft_int8(method, "bias", "--max-drop", MAX_DROP)
    yield f"int8 {method}, bias, --max-drop {MAX_DROP}", "mixed", "graft", method, mixed
    for method in (method for method in METHODS if method != "mse"):
        for only in (False, True):
            label = f"int8 {method}, {'products alone' if only else 'all operators'}"
            yield label, "int8", "ONNX Runtime", method, onnxruntime_int8(method, only)


def measure(task: Task, options: argparse.Namespace) -> Iterator[dict]:
    program: pathlib.Path = options.graft
    work = task.folder / "models"
    work.mkdir(exist_ok=True)
    (work / "ready.onnx").unlink(missing_ok=True)
    graft(program, "convert", task.network, "-o", work / "graft.onnx", *task.shape)
    graft(program, "convert", task.network, "-o", work / "plain.onnx", *task.shape, "--plugins", "never")
    wanted = run_all(work / "plain.onnx", task)
    for number, (label, kind, quantizer, method, make) in enumerate(ways_of(task, program, work, options)):
        if not any(fnmatch.fnmatchcase(label, pattern) for pattern in options.models):
            continue
        row = {"network": task.name, "model": label, "type": kind, "quantizer": quantizer, "method": method}
        target = work / f"{number:02}.onnx" if make else work / "graft.onnx"
        start = time.perf_counter()
        try:
            if make:
                make(target)
            row["seconds"] = time.perf_counter() - start
            own = program if quantizer == "graft" and options.run else None
            row |= judge(target, task, wanted, own)
        # A failing model must not prevent the others' figures; the table lists it as failed.
        except Exception as failure:
            row["failed"] = str(failure).strip().splitlines()[-1][:400]
        print(line_of(row), flush=True)
        yield row


def line_of(row: dict) -> str:
    text = f"{row['network']:13} {row['quantizer']:13} {row['model']:36}"
    if "failed" in row:
        return f"{text} failed: {row['failed']}"
    accuracy = "no labels" if row["accuracy"] is None else f"{row['accuracy']:.2f} %"
    text += f" {accuracy:>9}  as f32 {row['same_as_f32']} of {row['samples']}  SNR {min(row['snr'].values()):.1f} dB"
    text += f"  {row['bytes'] / 1e6:.2f} MB  {row['seconds']:.1f} s"
    if "boxes" in row:
        boxes = row["boxes"]
        text += f"  angle {boxes['angle_mean']:.3f} (worst {boxes['angle_worst']:.2f}) deg, size {boxes['dimension_mean']:.3f} %"
    if "graft_run" in row:
        own = row["graft_run"]
        text += f"  graft run: {own['same']} of {own['of']} the same, {own['snr']:.0f} dB"
    return text


def misses_of(rows: list[dict]) -> list[str]:
    """Returns the missed targets: f16 as accurate as f32, int8 within half a per cent of it, and not worse than ONNX
    Runtime's int8 with the same method."""
    misses = []
    for name in dict.fromkeys(row["network"] for row in rows):
        own = [row for row in rows if row["network"] == name and row.get("accuracy") is not None]
        f32 = next((row["accuracy"] for row in own if row["type"] == "f32"), None)
        if f32 is None:
            continue
        int8 = [row for row in own if row["type"] == "int8"]
        ours = [row for row in int8 if row["quantizer"] == "graft"]
        misses += [
            f"{name}: f16 has {row['accuracy']:.2f} %, f32 {f32:.2f} %"
            for row in own
            if row["type"] == "f16" and row["accuracy"] < f32
        ]
        near = [row["accuracy"] for row in own if row["quantizer"] == "graft" and row["type"] in ("int8", "mixed")]
        if near and max(near) < f32 - 0.5:
            misses.append(f"{name}: no int8 of Graft's is within 0.5 % of f32's {f32:.2f} %")
        for method in METHODS:
            mine = [row["accuracy"] for row in ours if row["method"] == method]
            theirs = [row["accuracy"] for row in int8 if row["quantizer"] != "graft" and row["method"] == method]
            if mine and theirs and max(mine) < max(theirs):
                misses.append(f"{name}: {method}: {max(mine):.2f} %, ONNX Runtime {max(theirs):.2f} %")
    return misses


def main() -> int:
    parser = argparse.ArgumentParser(description="accuracy in f32, f16 and int8, beside ONNX Runtime's quantizer")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--graft", type=pathlib.Path, default=os.environ.get("GRAFT_BIN", ROOT / "build/bin/graft"))
    parser.add_argument(
        "--improve-method",
        choices=METHODS,
        default="percentile",
        help="the thresholds beside improvements (percentile)",
    )
    parser.add_argument(
        "--models", nargs="+", default=["*"], help="patterns of what is made, as it is printed: 'f32' 'int8 mse*'"
    )
    parser.add_argument("--test", type=int, metavar="N", help="judge by the first N test samples (of each size)")
    parser.add_argument("--run", action=argparse.BooleanOptionalAction, default=True, help="repeat with `graft run`")
    parser.add_argument("--record", type=pathlib.Path, help="write the result here, for bench/quantize/document.py")
    options = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    folders = sorted(path.parent for path in options.folder.glob("*/task.json"))
    about = {
        "onnxruntime": onnxruntime.__version__,
        "sources": {folder.name: Task(folder).source for folder in folders},
        "percentile": PERCENTILE,
    }
    rows: list[dict] = []
    misses: list[str] = []
    for folder in folders:
        if options.only and folder.name not in options.only:
            continue
        for row in measure(Task(folder, options.test), options):
            rows.append(row)
            misses = misses_of(rows)
            if options.record:  # after each model, so that an interrupted run keeps its results
                options.record.write_text(json.dumps(about | {"results": rows, "misses": misses}, indent=1) + "\n")
    for miss in misses:
        print(miss, file=sys.stderr)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
