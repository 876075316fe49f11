"""Runs README's first examples in the installed wheel and a folder of its own, without the checkout."""

import os
import pathlib
import re
import subprocess
import sys

import graft
import graft.examples
import numpy as np
import onnxruntime
import pytest
from conftest import ROOT

README = (ROOT / "README.md").read_text()
EXAMPLES = re.compile(r"readme_test.py runs it[^\n]*-->\n```(\w+)\n(.*?)^```$", re.M | re.S)
BLOCKS = dict(EXAMPLES.findall(README))
PRINTED = re.search(r"<!-- printed by these commands -->\n```\n(.*?)^```$", README, re.M | re.S)[1]


def run(command: list[str], folder: pathlib.Path) -> str:
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def without_numbers(text: str) -> str:
    """Returns a text without the figures that depend on the processor and on the time."""
    return re.sub(r"\d[\d.e-]*", "N", text)


def accuracy(model: pathlib.Path) -> float:
    """Returns the accuracy of a channels-last network in ONNX Runtime."""
    with np.load(graft.examples.DIGITS_IMAGES) as data:
        images, labels = data["images"], data["labels"]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    logits = session.run(["Identity"], {"image": images.reshape(-1, 8, 8, 1)})[0]
    return float((logits.argmax(1) == labels).mean())


def test_there_is_one_of_each() -> None:
    assert set(BLOCKS) == {"python", "sh"}
    lines = [line for line in BLOCKS["python"].splitlines() if line]
    assert len(lines) <= 6, "five lines and the import"


def test_python(tmp_path: pathlib.Path) -> None:
    printed = run([sys.executable, "-P", "-c", BLOCKS["python"]], tmp_path)
    assert "<graft.VerifyResult: same" in printed and "TensorRT-RTX" in printed
    assert (tmp_path / "digits.engine").stat().st_size > 10_000


def test_shell(tmp_path: pathlib.Path) -> None:
    printed = run(["bash", "-euc", BLOCKS["sh"]], tmp_path)
    for line in PRINTED.splitlines():
        assert without_numbers(line.removesuffix("...").rstrip()) in without_numbers(printed), line
    converted = tmp_path / "digits.graft" / "converted.onnx"
    run(["graft", "quantize", str(converted), "-o", "f16.onnx", "--precision", "f16"], tmp_path)
    assert (tmp_path / "digits.engine").stat().st_size > 10_000
    # The figure of examples/digits/README.md, measured with another runtime for the exported network.
    assert accuracy(converted) == pytest.approx(447 / 450)
    assert accuracy(tmp_path / "f16.onnx") > 0.99


def test_the_examples_are_those_of_the_package(tmp_path: pathlib.Path) -> None:
    for file in (graft.examples.DIGITS, graft.examples.DIGITS_ONNX, graft.examples.DIGITS_IMAGES):
        assert file.is_relative_to(sys.prefix)
        assert file.read_bytes() == (ROOT / "examples" / "digits" / file.name).read_bytes()
    (tmp_path / "digits.pb").write_text("a graph of the user's")
    done = subprocess.run(
        [sys.executable, "-m", "graft.examples"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "digits.pb: this file already exists" in done.stderr
    assert (tmp_path / "digits.pb").read_text() == "a graph of the user's"
