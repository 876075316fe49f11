# Tests the benchmark of precision: its network for digits of any size, and the evaluation of results.
import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest

ROOT = pathlib.Path(os.environ.get("GRAFT_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[3]))
GRAFT = os.environ.get("GRAFT_BIN", ROOT / "build/bin/graft")
GOLDEN = ROOT / "tests" / "golden" / "quantize"
RIGHT = 447  # correct rows of 450, measured with PyTorch after the training


def program(name):
    spec = importlib.util.spec_from_file_location(f"quantize_{name}", ROOT / "bench" / "quantize" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("plugins", ["auto", "never"])
def test_sized_digits_are_read_as_in_pytorch(tmp_path, plugins):
    target = tmp_path / "converted.onnx"
    command = [GRAFT, "convert", GOLDEN / "sized_digits.onnx", "-o", target, "--plugins", plugins, "--quiet"]
    subprocess.run(command, check=True)
    session = onnxruntime.InferenceSession(str(target), providers=["CPUExecutionProvider"])
    arrays = np.load(GOLDEN / "sized_digits.npz")
    sizes = [name.removeprefix("test_") for name in arrays.files if name.startswith("test_")]
    assert len(sizes) == 9
    right = 0
    for size in sizes:
        (logits,) = session.run(None, {"image": arrays[f"test_{size}"].astype("float32") / 16})
        right += int((logits.argmax(1) == arrays[f"labels_{size}"]).sum())
    assert right == RIGHT


def test_text_is_compared_sign_by_sign():
    accuracy = program("accuracy")
    assert [accuracy.edits(*pair) for pair in (("", "abc"), ("kitten", "sitting"), ("flaw", "lawn"))] == [3, 3, 2]
    steps = [1, 1, 0, 1, 2, 3, 3, 0]  # repeated, blank between two of one kind, a space
    probabilities = np.eye(4)[steps][None]
    assert accuracy.texts_of(probabilities, ["", "o", "f", " "]) == ["oof"]


def result_row(quantizer, kind, method, accuracy):
    return {
        "network": "net",
        "model": f"{kind} {method}",
        "type": kind,
        "quantizer": quantizer,
        "method": method,
        "accuracy": accuracy,
        "same_as_f32": 9,
        "samples": 10,
        "snr": {"y": 30.0},
        "bytes": 1000000,
        "seconds": 1.0,
    }


def test_what_falls_short_is_named():
    misses_of = program("accuracy").misses_of
    rows = [
        result_row("graft", "f32", "", 99.0),
        result_row("graft", "f16", "", 98.9),
        result_row("graft", "int8", "minmax", 98.6),
        result_row("graft", "int8", "entropy", 97.0),
        result_row("ONNX Runtime", "int8", "minmax", 98.6),
        result_row("ONNX Runtime", "int8", "entropy", 98.0),
        {"network": "net", "model": "int8 mse", "type": "int8", "quantizer": "graft", "method": "mse", "failed": "no"},
    ]
    misses = misses_of(rows)
    assert len(misses) == 2 and "f16" in misses[0] and "entropy" in misses[1]
    rows[2]["accuracy"] = 98.4
    assert any("within 0.5 %" in miss for miss in misses_of(rows))


def test_the_page_is_written_between_its_marks(tmp_path):
    page, result = tmp_path / "precision.md", tmp_path / "accuracy.json"
    page.write_text((ROOT / "docs" / "precision.md").read_text())
    before = page.read_text()
    rows = [result_row("graft", "f32", "", 99.0), result_row("graft", "int8", "mse", 98.7)]
    about = {"onnxruntime": "1", "percentile": 99.99, "sources": {"net": "a.whl"}, "results": rows, "misses": []}
    result.write_text(program("document").json.dumps(about))
    document = ROOT / "bench" / "quantize" / "document.py"
    command = [sys.executable, document, "--commit", "abc", "--accuracy", result, "--page", page]
    subprocess.run(command, check=True)
    text = page.read_text()
    assert "| graft | int8 mse | 98.70 % | 9 of 10 | 30.0 | 1.00 MB |  |" in text and "commit abc" in text
    assert text.split("<!-- accuracy: begin -->")[0] == before.split("<!-- accuracy: begin -->")[0]
    assert text.split("<!-- accuracy: end -->")[1] == before.split("<!-- accuracy: end -->")[1]
