# Tests a build without OpenVINO: functions that need no CPU engine work, ONNX Runtime runs models where it is
# installed, and all others name the missing tool.
import os
import sys

import onnx
import pytest
from conftest import DIGITS, DIGITS_DATA

WORKER = os.environ.get("GRAFT_ENGINE_WORKER", "")
MISSING = "this build of Graft has no CPU engine"
WITHOUT_ONNXRUNTIME = {"GRAFT_PYTHON": sys.base_prefix + "/bin/python3"}


@pytest.fixture(autouse=True)
def no_worker(monkeypatch):
    monkeypatch.delenv("GRAFT_ENGINE_WORKER", raising=False)


def test_inspect(graft):
    answer = graft("inspect", DIGITS, "--json", code=0)
    assert {node["verdict"] for node in answer.json["nodes"]} <= {"native", "lowered", "plugin"}


def test_convert_without_proofs(graft, tmp_path):
    out = tmp_path / "out.onnx"
    answer = graft("convert", DIGITS, "-o", out, "--no-prove", "--json", code=0)
    onnx.checker.check_model(onnx.load(out), full_check=True)
    assert answer.json["proofs_run"] == 0
    assert "nothing was proven" in graft("convert", DIGITS, "-o", out, "--no-prove").out


def test_convert_proves_nothing_and_says_so(graft, tmp_path):
    answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", code=3)
    assert MISSING in answer.err
    assert "make deps build" in answer.err
    assert "--no-prove" in answer.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", DIGITS, DIGITS],
        ["verify", DIGITS, DIGITS, "--layers"],
        ["quantize", DIGITS, "-o", "out.onnx", "--precision", "f16", "--data", DIGITS_DATA],
        ["quantize", DIGITS, "-o", "out.onnx", "--precision", "int8", "--data", DIGITS_DATA],
        ["run", DIGITS, "--input", DIGITS_DATA, "-o", "out.npz"],
    ],
    ids=["verify", "layers", "f16", "int8", "run"],
)
def test_what_runs_models_says_what_is_missing(graft, tmp_path, arguments):
    answer = graft(*arguments, cwd=tmp_path, env=WITHOUT_ONNXRUNTIME, code=3)
    assert MISSING in answer.err
    assert "make deps build" in answer.err
    assert not list(tmp_path.iterdir())


def test_onnxruntime_answers(graft):
    answer = graft("verify", DIGITS, DIGITS, "--json", code=0)
    assert answer.json["ran_in"].startswith("ONNX Runtime")


def test_doctor(graft):
    answer = graft("doctor", "--json")
    [engine] = [found for found in answer.json["findings"] if found["name"] == "CPU engine"]
    assert not engine["found"]


def test_the_worker_of_another_build_may_be_used(graft):
    graft("verify", DIGITS, DIGITS, env={"GRAFT_ENGINE_WORKER": WORKER}, code=0)
