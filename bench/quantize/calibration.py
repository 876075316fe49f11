# calibration.py - measures time and memory of calibrating ResNet-50 with a folder of images, relative to bare
# inference.
"""Usage: python bench/quantize/calibration.py FOLDER [--images 1000] [--runs 3] [--graft PROGRAM] [--record RESULT.json]

Creates in FOLDER, where they do not exist, ResNet-50 (its architecture; weights are random, seeded and initialized
after He et al., so that numbers neither grow nor vanish), a folder of JPEG files of gradients, shapes and noise, and a
recipe. Then runs the following in alternation, --runs times each:

bare       OpenVINO in this process, the library of Graft's CPU engine, in f32 on the same images, one at a time.
           Reading and preparing an image, with Pillow, is not in its time.
calibrate  `graft quantize --precision int8` from start to end: reading, preparing, running and counting, scales,
           writing. The comparison of the result is limited to one sample, as it is not part of calibration.

Results are medians of wall time, and of the CPU time of all threads, which is more reliable on a shared machine. The
bare network is compiled before its time starts. The time per image beyond a tenth of the images is compared with that
of the bare network; the time of the whole command, with its start, compilation, placement and comparison, with the bare
network's total. Memory is the peak of the process at a tenth of the images and at all of them. Then a run with --state
is killed (SIGKILL) after its counts were saved for the first time, and continued: the model has to be the same to the
last bit. Exit code 1 where it differs, where an image takes more than 1.3 times the bare inference, or where memory
grows by more than 5 %. Needs onnx, openvino and Pillow.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import openvino
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageDraw

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWED_TIME = 1.3
ALLOWED_GROWTH = 1.05
SIDE = 224
MEAN = (123.675, 116.28, 103.53)
SCALE = (0.017125, 0.017507, 0.017429)
RECIPE = f"""resize: 256
crop: [{SIDE}, {SIDE}]
channels: rgb
mean: [{", ".join(map(str, MEAN))}]
scale: [{", ".join(map(str, SCALE))}]
layout: nchw
input: image
"""


def resnet50(path: pathlib.Path) -> None:
    random = np.random.default_rng(50)
    nodes, weights = [], []

    def constant(name: str, values: np.ndarray) -> str:
        weights.append(numpy_helper.from_array(values.astype("float32"), name))
        return name

    def convolution(x: str, inputs: int, outputs: int, kernel: int, stride: int, name: str, gain: float = 1.0) -> str:
        fan_in = inputs * kernel * kernel
        weight = constant(
            f"{name}.weight", random.normal(0, np.sqrt(2 / fan_in), (outputs, inputs, kernel, kernel)).astype("float32")
        )
        nodes.append(
            helper.make_node(
                "Conv",
                [x, weight],
                [f"{name}.conv"],
                name=name,
                kernel_shape=[kernel, kernel],
                strides=[stride, stride],
                pads=[kernel // 2] * 4,
            )
        )
        statistics_of = [
            constant(f"{name}.scale", gain * random.uniform(0.8, 1.2, outputs)),
            constant(f"{name}.bias", random.normal(0, 0.1, outputs)),
            constant(f"{name}.mean", random.normal(0, 0.1, outputs)),
            constant(f"{name}.variance", random.uniform(0.8, 1.2, outputs)),
        ]
        nodes.append(
            helper.make_node(
                "BatchNormalization", [f"{name}.conv", *statistics_of], [f"{name}.bn"], name=f"{name}/bn", epsilon=1e-5
            )
        )
        return f"{name}.bn"

    def relu(x: str) -> str:
        nodes.append(helper.make_node("Relu", [x], [f"{x}.relu"], name=f"{x}/relu"))
        return f"{x}.relu"

    x = relu(convolution("image", 3, 64, 7, 2, "conv1"))
    nodes.append(
        helper.make_node(
            "MaxPool", [x], ["pool1"], name="pool1", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
        )
    )
    x, channels = "pool1", 64
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 2):
        for block in range(blocks):
            name, stride = f"res{stage}_{block}", 2 if stage > 2 and block == 0 else 1
            y = relu(convolution(x, channels, width, 1, 1, f"{name}_a"))
            y = relu(convolution(y, width, width, 3, stride, f"{name}_b"))
            # The addend of the shortcut is relatively small, as in trained networks; otherwise the sums double with
            # each block.
            y = convolution(y, width, 4 * width, 1, 1, f"{name}_c", 0.3)
            if block == 0:
                x = convolution(x, channels, 4 * width, 1, stride, f"{name}_shortcut")
                channels = 4 * width
            nodes.append(helper.make_node("Add", [y, x], [f"{name}.sum"], name=f"{name}/add"))
            x = relu(f"{name}.sum")
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["pooled"], name="pooled"))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["features"], name="flatten"))
    classifier = constant("fc.weight", random.normal(0, np.sqrt(1 / 2048), (2048, 1000)))
    bias = constant("fc.bias", np.zeros(1000))
    nodes.append(helper.make_node("Gemm", ["features", classifier, bias], ["logits"], name="fc"))
    graph = helper.make_graph(
        nodes,
        "resnet50",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1000])],
        weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def make_images(folder: pathlib.Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        path = folder / f"{number:05}.jpg"
        if path.exists():
            continue
        random = np.random.default_rng(number)
        height, width = (int(side) for side in random.integers(240, 400, 2))
        corners = random.integers(0, 256, (3, 3, 3)).astype("uint8")
        image = Image.fromarray(corners).resize((width, height), Image.Resampling.BICUBIC)
        pen = ImageDraw.Draw(image)
        for _ in range(int(random.integers(3, 15))):
            x, y, across, down = (int(value) for value in random.integers(8, 200, 4))
            shape = pen.ellipse if random.random() < 0.5 else pen.rectangle
            shape((x, y, x + across, y + down), tuple(int(value) for value in random.integers(0, 256, 3)))
        pixels = np.asarray(image) + random.normal(0, random.uniform(0, 25), (height, width, 3))
        Image.fromarray(np.clip(pixels, 0, 255).astype("uint8")).save(path, quality=88)


def folder_of(everything: pathlib.Path, count: int, target: pathlib.Path) -> pathlib.Path:
    """Creates a folder with the first `count` images."""
    target.mkdir()
    for path in sorted(everything.iterdir())[:count]:
        (target / path.name).symlink_to(path.resolve())
    return target


def prepared(path: pathlib.Path) -> np.ndarray:
    image = Image.open(path).convert("RGB")
    factor = 256 / min(image.size)
    image = image.resize((round(image.width * factor), round(image.height * factor)), Image.Resampling.BILINEAR)
    left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
    pixels = np.asarray(image.crop((left, top, left + SIDE, top + SIDE)), "float32")
    pixels = (pixels - np.array(MEAN, "float32")) * np.array(SCALE, "float32")
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def bare(network: pathlib.Path, images: pathlib.Path, threads: int) -> dict[str, float]:
    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    request = core.compile_model(core.read_model(network), "CPU", settings).create_infer_request()
    request.infer([prepared(next(iter(sorted(images.iterdir()))))])
    wall, cpu = 0.0, 0.0
    for path in sorted(images.iterdir()):
        request.set_input_tensor(openvino.Tensor(prepared(path)))
        start, start_cpu = time.perf_counter(), time.process_time()
        request.infer()
        wall, cpu = wall + time.perf_counter() - start, cpu + time.process_time() - start_cpu
    return {"seconds": wall, "cpu_seconds": cpu}


def command_of(options: argparse.Namespace, images: pathlib.Path, output: pathlib.Path, *more: object) -> list[str]:
    network, recipe = options.folder / "resnet50.onnx", options.folder / "recipe.yaml"
    command = [options.graft, "quantize", network, "-o", output, "--precision", "int8", "--data", images]
    return [str(part) for part in [*command, "--recipe", recipe, "--judged", 1, "--json", *more]]


def timed(command: list[str]) -> dict[str, float]:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read() if process.stderr else ""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: the outputs miss their limit, and the model is written
        raise SystemExit(f"exit code {process.returncode}: {said[-500:]}")
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_mib": used.ru_maxrss / 1024,
    }


def killed_and_resumed(
    options: argparse.Namespace, images: pathlib.Path, work: pathlib.Path, whole: pathlib.Path
) -> dict:
    state, output = work / "counts", work / "resumed.onnx"
    command = command_of(options, images, output, "--state", state)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not state.exists():
        time.sleep(0.05)
    time.sleep(0.5)  # waits until samples after the saved state are processed
    was_running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    if not was_running or output.exists():
        raise SystemExit("the run ended before it could be killed: give it more images")
    resumed = timed(command)
    return {"seconds": resumed["seconds"], "same_bits": output.read_bytes() == whole.read_bytes()}


def median_of(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def main() -> int:
    parser = argparse.ArgumentParser(description="calibration of ResNet-50 beside its bare inference")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--graft", type=pathlib.Path, default=os.environ.get("GRAFT_BIN", ROOT / "build/bin/graft"))
    parser.add_argument("--record", type=pathlib.Path, help="write the result here, for bench/quantize/document.py")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    network = options.folder / "resnet50.onnx"
    if not network.exists():
        resnet50(network)
    (options.folder / "recipe.yaml").write_text(RECIPE)
    make_images(options.folder / "images", options.images)
    work = pathlib.Path(tempfile.mkdtemp(dir=options.folder))
    all_images = folder_of(options.folder / "images", options.images, work / "all")
    few_images = folder_of(options.folder / "images", max(1, options.images // 10), work / "few")
    whole = work / "whole.onnx"
    bares, calibrations = [], []
    for number in range(options.runs):
        bares.append(bare(network, all_images, options.threads))
        calibrations.append(timed(command_of(options, all_images, whole)))
        print(f"run {number + 1}: bare {bares[-1]}, calibration {calibrations[-1]}", flush=True)
    few = timed(command_of(options, few_images, work / "few.onnx"))
    resumed = killed_and_resumed(options, all_images, work, whole)
    bare_median, calibration = median_of(bares), median_of(calibrations)
    few_count = len(list(few_images.iterdir()))
    each = (calibration["seconds"] - few["seconds"]) / max(1, options.images - few_count)
    result = {
        "images": options.images,
        "runs": options.runs,
        "threads": options.threads,
        "bare": bare_median,
        "calibration": calibration,
        "of_bare_each": each * options.images / bare_median["seconds"],
        "of_bare": calibration["seconds"] / bare_median["seconds"],
        "of_bare_cpu": calibration["cpu_seconds"] / bare_median["cpu_seconds"],
        "few_images": few_count,
        "few": few,
        "resumed": resumed,
    }
    shutil.rmtree(work)
    print(json.dumps(result, indent=1))
    if options.record:
        options.record.write_text(json.dumps(result, indent=1) + "\n")
    good = result["of_bare_each"] <= ALLOWED_TIME and resumed["same_bits"]
    return 0 if good and calibration["peak_mib"] <= ALLOWED_GROWTH * few["peak_mib"] else 1


if __name__ == "__main__":
    sys.exit(main())
