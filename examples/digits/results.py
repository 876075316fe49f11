# Steps of the demo: results.py images DATA.npz OUT.npy, results.py target DOCTOR.json and results.py table FOLDER DATA.npz.
"""`target` prints the GPUs for which the demo builds engines, from the output of `graft doctor --json`. `images` writes the test images with channels last, the layout of the TensorFlow graph. `table` prints the results
of the commands in FOLDER: NAME.convert.json, NAME.verify.json, NAME.build.json where an engine was built, and the
outputs of the converted network in NAME.npz. accuracy.json has the results of other programs for the original
networks, by tools/make_digits_imports.py."""

import json
import pathlib
import sys

import numpy as np

SOURCES = {"onnx": "digits.onnx", "tensorflow": "digits.pb", "caffe": "digits.caffemodel"}


def accuracy(right, of):
    return f"{100 * right / of:.2f} %"


def row(name, folder, stored, labels):
    convert = json.loads((folder / f"{name}.convert.json").read_text())
    verify = json.loads((folder / f"{name}.verify.json").read_text())
    plugins = [choice["operator"] for choice in convert["choices"] if choice["kind"] == "plugin"]
    logits = np.load(folder / f"{name}.npz")["logits"]
    build = folder / f"{name}.build.json"
    engine = "none"
    if build.exists():
        built = json.loads(build.read_text())
        count = len(built["network"]["plugins"])
        engine = f"{', '.join(built['targets'])}; {count or 'no'} plugin{'s' if count > 1 else ''}"
    before = stored[SOURCES[name]]
    return [
        SOURCES[name],
        f"{convert['nodes_before']} -> {convert['nodes_after']}",
        ", ".join(plugins) or "none",
        f"{accuracy(before['right'], before['of'])} {before['by']}",
        accuracy(int((logits.argmax(axis=1) == labels).sum()), len(labels)),
        "same" if verify["equal"] else "differs",
        engine,
    ]


def runs_on(architecture, gpu):
    """Whether code for an architecture of CMake, for example "75-real", runs on a GPU: PTX runs on each later GPU, and
    machine code on later GPUs of its generation. Code for Jetson modules runs on no other GPU."""
    number = int(architecture.split("-")[0])
    is_ptx = not architecture.endswith("-real")
    return number <= gpu and (is_ptx or (number // 10 == gpu // 10 and number not in (87, 110)))


def target(doctor):
    """Returns the GPUs for which TensorRT-RTX builds and the plugin library has code, Blackwell first. Empty if there are
    none. A build without CUDA has no plugins that could be in the way."""
    findings = {finding["name"]: finding for finding in json.loads(doctor.read_text())["findings"]}
    architectures = findings["plugin library"]["facts"].get("cuda_architectures")
    for gpus in [120, 121], [89], [86], [80], [75]:
        if not architectures or any(runs_on(architecture, gpus[0]) for architecture in architectures):
            return ",".join(f"sm{gpu}" for gpu in gpus)
    return ""


def table(folder, data):
    stored = json.loads((pathlib.Path(__file__).parent / "accuracy.json").read_text())
    labels = np.load(data)["labels"]
    rows = [["source", "nodes", "plugins", "before (stored)", "after", "verify", "engine for"]]
    rows += [row(name, folder, stored, labels) for name in SOURCES]
    widths = [max(len(line[i]) for line in rows) for i in range(len(rows[0]))]
    for line in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


if sys.argv[1] == "images":
    np.save(sys.argv[3], np.moveaxis(np.load(sys.argv[2])["images"], 1, -1))
elif sys.argv[1] == "target":
    print(target(pathlib.Path(sys.argv[2])))
else:
    table(pathlib.Path(sys.argv[2]), sys.argv[3])
