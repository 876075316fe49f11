# Tests that quantize and verify agree: the command that quantize prints has the same exit code as quantize.
import shlex

import numpy as np
import onnx
import pytest
from conftest import DIGITS, DIGITS_DATA
from onnx import numpy_helper, parser

DATA = f"image={DIGITS_DATA}:images"


def product(path, rest, outputs, columns=20):
    """Saves a matrix product, followed by the nodes in `rest`, which read it as `v`."""
    weights = np.random.default_rng(0).standard_normal((16, columns)).astype("f4")
    text = f"""<ir_version: 8, opset_import: ["": 18]> g (float[8,16] x) => ({outputs}) <float thirty = {{30}}> {{
        v = MatMul (x, w)
        {rest}
      }}"""
    model = parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    onnx.save(model, path)
    return path


NETWORKS = {
    "an_index_by_remainder": (
        "s = Mul (v, thirty)  m = Mod <fmod = 1> (s, thirty)  y = Cast <to = 7> (m)",
        "int64[8,20] y, float[8,20] v",
    ),
    "a_rounded_number": ("s = Mul (v, thirty)  y = Round (s)", "float[8,20] y"),
    "a_decision": ("p = Greater (v, thirty)  n = Not (p)  y = Cast <to = 1> (n)", "float[8,20] y"),
    "a_softmax": ("y = Softmax (v)", "float[8,20] y"),
}


def check_that_both_agree(graft, answer):
    """Checks that verify agrees with quantize, and returns whether both accept the model."""
    command = shlex.split(answer.json["check"]["command"])
    assert command[:2] == ["graft", "verify"]
    verified = graft(*command[1:])
    assert verified.code == answer.code, (answer.json["check"], verified.out, verified.err)
    assert (answer.json["check"]["verdict"] == "the same") == (verified.code == 0)
    assert answer.json["met"] == (answer.code == 0)
    return answer.code == 0


@pytest.mark.parametrize("precision", ["f16", "bf16"])
@pytest.mark.parametrize("name", NETWORKS)
def test_of_types(graft, tmp_path, name, precision):
    model = product(tmp_path / "model.onnx", *NETWORKS[name])
    answer = graft("quantize", model, "-o", tmp_path / "typed.onnx", "--precision", precision, "--json")
    check_that_both_agree(graft, answer)


def test_of_files_whose_names_have_spaces(graft, tmp_path):
    model = product(tmp_path / "my model.onnx", *NETWORKS["a_softmax"])
    np.savez(tmp_path / "my data.npz", x=np.ones((8, 16), "f4"))
    data = ["--data", tmp_path / "my data.npz"]
    answer = graft("quantize", model, "-o", tmp_path / "typed.onnx", "--precision", "f16", "--json", *data)
    check_that_both_agree(graft, answer)


def test_of_f16_with_data_and_typed_inputs(graft, tmp_path):
    out = tmp_path / "typed.onnx"
    for more in ([], ["--typed-io"]):
        answer = graft("quantize", DIGITS, "-o", out, "--precision", "f16", "--data", DATA, "--json", *more, code=0)
        assert check_that_both_agree(graft, answer)
        layers = graft("verify", DIGITS, out, "--data", DATA, "--layers", "--json")
        assert layers.code == 0, layers.json["problems"]


def test_of_int8_the_bar_is_20_db(graft, tmp_path):
    model = product(tmp_path / "model.onnx", "y = Relu (v)", "float[8,20] y")
    x = np.random.default_rng(1).standard_normal((64, 16)).astype("f4")
    x[0, 0] = 150  # With a scale for this number, the others lose most of their digits.
    np.savez(tmp_path / "x.npz", x=x)
    out = tmp_path / "int8.onnx"
    command = ["quantize", model, "-o", out, "--precision", "int8", "--data", tmp_path / "x.npz", "--method", "minmax"]
    answer = graft(*command, "--json")
    assert answer.json["outputs"][0]["snr_db"] < 20
    assert answer.code == 1
    assert not check_that_both_agree(graft, answer)
    words = graft(*command, code=1)
    assert "each output needs 20 dB" in words.out
    assert f"next  graft verify {model} {out} --data {tmp_path}/x.npz" in words.out
    assert "--limit" in words.err
    lower = graft(*command, "--limit", "3", "--json", code=0)
    assert lower.json["check"]["command"].endswith("--snr 3")
    assert check_that_both_agree(graft, lower)


def test_of_int8_that_is_good(graft, tmp_path):
    out = tmp_path / "int8.onnx"
    answer = graft("quantize", DIGITS, "-o", out, "--precision", "int8", "--data", DATA, "--json", code=0)
    assert check_that_both_agree(graft, answer)


def test_a_metric_judges_alone(graft, tmp_path):
    out = tmp_path / "int8.onnx"
    metric = ["--metric", "echo {} >/dev/null; echo 1", "--max-drop", "0"]
    answer = graft("quantize", DIGITS, "-o", out, "--precision", "int8", "--data", DATA, "--json", *metric, code=0)
    assert answer.json["check"] is None
