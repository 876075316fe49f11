# The demo's steps that need NumPy: results.py images DATA.npz OUT.npy, and results.py table FOLDER DATA.npz.
"""`images` writes the test images with channels last, the layout of the TensorFlow graph. `table` prints the results
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
else:
    table(pathlib.Path(sys.argv[2]), sys.argv[3])
