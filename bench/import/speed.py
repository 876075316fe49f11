# speed.py - measures time and memory of reading large networks, and those of tf2onnx in the same run.
"""Usage: python bench/import/speed.py VGG16.pb [--tf2onnx PYTHON] [--runs 3] [--record RESULT.json]

Converts a frozen TensorFlow graph with Graft (with and without proofs), then the resulting ONNX file, then the network
as a Caffe model, written here from the ONNX file's weights; and the frozen graph with tf2onnx, run by the given Python,
in alternation. Times are medians of the runs; memory is the largest resident set of any run. The output of each run is
removed before the next.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]


def resident_bytes(process: int) -> int:
    try:
        return int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, IndexError):
        return 0


def measure(command: list[str], most_bytes: int = 0) -> dict:
    """Returns wall time, CPU time and peak resident set of a process, which is killed where it needs more than
    most_bytes."""
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        ended = False
        while True:
            done, status, usage = os.wait4(process.pid, os.WNOHANG if most_bytes else 0)
            if done:
                break
            if resident_bytes(process.pid) > most_bytes:
                process.kill()
                ended = True
            time.sleep(0.05)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0 and not ended:
            said.seek(0)
            sys.exit(f"{' '.join(command)}\nexit code {process.returncode}\n{said.read().decode()[-2000:]}")
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "bytes": usage.ru_maxrss * 1024, "ended": ended}


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def write_caffe(path: pathlib.Path, folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Writes the layers of a VGG as .prototxt and .caffemodel (NetParameter.layer = 100: name 1, type 2, blobs 7)."""
    model = onnx.load(path)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    text = 'name: "vgg"\nlayer { name: "image" type: "Input" top: "image" input_param { shape { dim: 1 dim: 3 dim: 224 dim: 224 } } }\n'
    bottom, count = "image", 0

    def layer(kind: str, parameters: str = "", in_place: bool = False) -> str:
        nonlocal text, bottom, count
        count += 1
        name = f"{kind.lower()}{count}"
        top = bottom if in_place else name
        text += f'layer {{ name: "{name}" type: "{kind}" bottom: "{bottom}" top: "{top}" {parameters} }}\n'
        bottom = top
        return name

    with (folder / "vgg16.caffemodel").open("wb") as file:
        for node in model.graph.node:
            if node.op_type in ("Conv", "MatMul"):
                array = numpy_helper.to_array(weights[node.input[1]])
                size = array.shape[0]
                if node.op_type == "MatMul":
                    array, size = np.ascontiguousarray(array.T), array.shape[1]
                    name = layer("InnerProduct", f"inner_product_param {{ num_output: {size} }}")
                else:
                    name = layer("Convolution", f"convolution_param {{ num_output: {size} kernel_size: 3 pad: 1 }}")
                content = field(1, name.encode())
                for values in (array, np.zeros(size, "float32")):
                    dims = field(1, b"".join(varint(dim) for dim in values.shape))
                    content += field(7, field(7, dims) + field(5, values.tobytes()))
                file.write(field(100, content))
            elif node.op_type == "Relu":
                layer("ReLU", in_place=True)
            elif node.op_type == "MaxPool":
                layer("Pooling", "pooling_param { pool: MAX kernel_size: 2 stride: 2 }")
            elif node.op_type == "Softmax":
                layer("Softmax")
    (folder / "vgg16.prototxt").write_text(text)
    return folder / "vgg16.prototxt", folder / "vgg16.caffemodel"


def main() -> None:
    parser = argparse.ArgumentParser(description="time and memory of reading large networks")
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("--tf2onnx", help="a Python with tf2onnx and TensorFlow")
    parser.add_argument("--most-memory", type=float, default=12, help="GiB; tf2onnx is ended where it takes more (12)")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--graft", default=os.environ.get("GRAFT_BIN", str(ROOT / "build/bin/graft")))
    parser.add_argument("--record", type=pathlib.Path)
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(dir=arguments.graph.parent))
    made = folder / "out.onnx"
    from_tensorflow = folder / "vgg16.onnx"
    measure([arguments.graft, "convert", str(arguments.graph), "-o", str(from_tensorflow), "--no-prove"])
    # Runs in a process of its own, because each process that this one starts begins as a copy and would count its
    # memory.
    with concurrent.futures.ProcessPoolExecutor(1) as once:
        caffe = once.submit(write_caffe, from_tensorflow, folder).result()

    def convert(*options: object) -> list[str]:
        return [arguments.graft, "convert", *map(str, options), "-o", str(made)]

    commands = {
        "TensorFlow": (arguments.graph, convert(arguments.graph)),
        "TensorFlow, not proven": (arguments.graph, convert(arguments.graph, "--no-prove")),
        "ONNX": (from_tensorflow, convert(from_tensorflow)),
        "ONNX, not proven": (from_tensorflow, convert(from_tensorflow, "--no-prove")),
        "Caffe": (caffe[1], convert(*caffe)),
        "Caffe, not proven": (caffe[1], convert(*caffe, "--no-prove")),
    }
    if arguments.tf2onnx:
        graph = ["--graphdef", str(arguments.graph), "--inputs", "image:0", "--outputs", "probabilities:0"]
        commands["tf2onnx"] = (
            arguments.graph,
            [arguments.tf2onnx, "-m", "tf2onnx.convert", *graph, "--opset", "17", "--output", str(made)],
        )
    runs: dict[str, list[dict]] = {name: [] for name in commands}
    for _ in range(arguments.runs):
        for name, (_, command) in commands.items():
            limit = arguments.most_memory if name == "tf2onnx" else 0
            runs[name].append(measure(command, int(limit * 2**30)))
            made.unlink(missing_ok=True)
    result = {}
    for name, (source, _) in commands.items():
        size = source.stat().st_size
        result[name] = {
            "file_bytes": size,
            "seconds": statistics.median(run["seconds"] for run in runs[name]),
            "cpu_seconds": statistics.median(run["cpu_seconds"] for run in runs[name]),
            "memory_of_file": max(run["bytes"] for run in runs[name]) / size,
            "ended": any(run["ended"] for run in runs[name]),
            "runs": runs[name],
        }
        print(
            f"{name}: {result[name]['seconds']:.2f} s ({result[name]['cpu_seconds']:.2f} s of CPU), "
            f"{result[name]['memory_of_file']:.2f} times the file's {size:,} bytes"
            f"{', ended before it was done for taking too much memory' if result[name]['ended'] else ''}",
            flush=True,
        )
    if "tf2onnx" in result:
        for name in ("TensorFlow", "TensorFlow, not proven"):
            times = result["tf2onnx"]["seconds"] / result[name]["seconds"]
            least = "at least " if result["tf2onnx"]["ended"] else ""
            print(f"tf2onnx takes {least}{times:.1f} times as long as {name}")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    if arguments.record:
        arguments.record.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
