# Tests graft quantize --metric: a user's command measures each candidate. ONNX Runtime runs the digits network.
import os
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import DIGITS_DATA, PROGRAM, SOURCE
from onnx_models import session_of

ACCURACY = SOURCE / "examples" / "quantize" / "accuracy.py"
COMMAND = shlex.join([sys.executable, str(ACCURACY)])


@pytest.fixture(scope="module")
def faint(session_folder, digits):
    """Saves images with a twentieth of the real brightness: scales calibrated on them saturate."""
    path = session_folder / "faint.npy"
    np.save(path, digits[0][:16] / 20)
    return path


def quantize(graft, model, folder, metric, *options, data=DIGITS_DATA, code=0, env=None):
    """Runs the command; temporary files that it leaves are in folder/tmp."""
    temporary = folder / "tmp"
    temporary.mkdir()
    answer = graft(
        *("quantize", model, "-o", folder / "o.onnx", "--precision", "int8", "--data", data, "--samples", 16),
        *("--judged", 8, "--metric", metric, "--json", *options),
        env={"TMPDIR": str(temporary), **(env or {})},
    )
    assert answer.code == code, answer.err + answer.out
    assert not list(temporary.glob("graft-*"))
    return answer.json


def accuracy(path, digits):
    images, labels = digits
    session = session_of(path)
    return (session.run(["logits"], {"image": images})[0].argmax(1) == labels).mean()


def layers_in_int8(result):
    return sum(n["type"] == "int8" and n["operator"] in ("Conv", "Gemm", "MatMul") for n in result["nodes"])


def test_it_is_the_accuracy_that_onnx_runtime_finds(graft, converted, digits, tmp_path):
    result = quantize(graft, converted, tmp_path, COMMAND)
    assert result["met"] is True
    assert result["metric_f32"] == accuracy(converted, digits)
    assert result["metric_int8"] == accuracy(tmp_path / "o.onnx", digits)
    assert [trial["metric"] for trial in result["trials"]] == [result["metric_int8"]]


def test_layers_stay_in_f32_until_the_metric_is_met(graft, converted, digits, faint, tmp_path):
    result = quantize(graft, converted, tmp_path, COMMAND, "--max-drop", 0.01, data=faint)
    assert result["met"] is True
    trials = result["trials"]
    assert trials[0]["kept"] == 0 and trials[0]["metric"] < result["metric_f32"] - 0.2
    assert result["metric_int8"] == accuracy(tmp_path / "o.onnx", digits) >= result["metric_f32"] - 0.01
    kept = [node for node in result["nodes"] if node["why"] == "kept"]
    assert kept and len(kept) == min(t["kept"] for t in trials if t["metric"] >= result["metric_f32"] - 0.01)
    assert layers_in_int8(result) > 0


def test_a_drop_that_cannot_be_met_is_told(graft, converted, tmp_path):
    # The metric of the first measured model, the f32 network, is 1; that of all others is 0.
    once = f"test -e {tmp_path}/asked && echo 0 || echo 1; touch {tmp_path}/asked; : {{}}"
    result = quantize(graft, converted, tmp_path, once, "--max-drop", 0.5, code=1)
    assert (result["met"], result["metric_f32"], result["metric_int8"]) == (False, 1, 0)
    assert len(result["trials"]) > 1


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("printf '%s\\n' {} > said; echo 1", 1),
        ("printf '%s\\n' \"{}\" > said; echo 1", 1),
        ("printf '%s\\n' {} {} > said; echo 1", 2),
        ("echo 1; printf '%s\\n' > said", 1),
    ],
)
def test_where_the_file_is_put(graft, converted, tmp_path, command, names):
    result = quantize(graft, converted, tmp_path, f"cd {tmp_path}; {command}")
    assert result["metric_f32"] == 1
    said = (tmp_path / "said").read_text().splitlines()
    assert len(said) == names
    assert all(s.startswith(f"{tmp_path}/tmp/graft-") and s.endswith("/model.onnx") for s in said)


def test_a_temporary_folder_with_a_name_that_needs_quotes(graft, converted, tmp_path):
    folder = tmp_path / "it's a $HOME"
    folder.mkdir()
    result = quantize(graft, converted, folder, "test -s {} && echo 0.5")
    assert (result["metric_f32"], result["metric_int8"]) == (0.5, 0.5)


@pytest.mark.parametrize("printed", ["0.75", "+7.5e-1", "  0.75\\r", "loaded\\n0.75\\n\\n \\n", "1\\n0.75"])
def test_the_last_line_is_the_number(graft, converted, tmp_path, printed):
    result = quantize(graft, converted, tmp_path, f"printf '{printed}' # {{}}")
    assert result["metric_f32"] == 0.75


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            "echo first >&2; echo the label file is gone >&2; exit 3; {}",
            ["exit code 3", "first\nthe label file is gone"],
        ),
        ("no_such_program", ["exit code 127", "no_such_program", "not found"]),
        ("kill -KILL $$ {}", ["ended by signal 9", "Its standard error is empty"]),
        ("echo accuracy: 0.98 # {}", ["is 'accuracy: 0.98'; it must be a finite number"]),
        ("echo 0.98 0.97 # {}", ["is '0.98 0.97'; it must be a finite number"]),
        ("echo nan # {}", ["is 'nan'; it must be a finite number"]),
        ("echo lost >&2; : {}", ["the standard output of the command is empty; its last line", "lost"]),
        ("", ["exit code 126"]),
    ],
)
def test_one_that_fails_is_an_error_before_any_calibration(graft, converted, tmp_path, command, told):
    state = tmp_path / "state.npz"
    error = quantize(graft, converted, tmp_path, command, "--state", state, code=2)["error"]
    assert error["kind"] == "bad_input"
    assert error["message"].startswith("--metric: ")
    for text in [*told, f"\nThe command was: {command}\n"]:
        assert text in error["message"]
    assert not state.exists()
    assert not (tmp_path / "o.onnx").exists()


def test_of_long_errors_the_end_is_shown(graft, converted, tmp_path):
    message = quantize(graft, converted, tmp_path, "seq 1000 >&2; exit 1; {}", code=2)["error"]["message"]
    assert message.endswith("standard error:\n" + "\n".join(map(str, range(991, 1001))))


def test_one_that_fails_later_leaves_nothing(graft, converted, tmp_path):
    once = f"test -e {tmp_path}/asked && exit 5; touch {tmp_path}/asked; echo 1; : {{}}"
    error = quantize(graft, converted, tmp_path, once, code=2)["error"]["message"]
    assert "exit code 5" in error
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_and_what_it_has_started(converted, tmp_path, number):
    for name in ("tmp", "out"):
        (tmp_path / name).mkdir()
    command = f"sleep 600 & echo $! > {tmp_path}/pid.part; mv {tmp_path}/pid.part {tmp_path}/pid; wait; echo 1; : {{}}"
    process = subprocess.Popen(
        [PROGRAM, "quantize", converted, "-o", tmp_path / "out" / "o.onnx", "--precision", "int8"]
        + ["--data", DIGITS_DATA, "--metric", command],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )
    while not (tmp_path / "pid").exists():
        assert process.poll() is None
        time.sleep(0.05)
    sleeper = int((tmp_path / "pid").read_text())
    assert is_running(sleeper)
    process.send_signal(number)
    assert process.wait() == 128 + number
    while is_running(sleeper):
        time.sleep(0.05)
    assert not list((tmp_path / "tmp").iterdir())
    assert not list((tmp_path / "out").iterdir())


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_it_has_no_meaning_with(graft, converted, tmp_path):
    out = tmp_path / "o.onnx"
    answer = graft("quantize", converted, "-o", out, "--precision", "f16", "--metric", "echo 1", code=2)
    assert "--metric: this option does not apply to --precision f16" in answer.err
    cache = tmp_path / "c.cache"
    cache.write_text("TRT-8503-EntropyCalibration2\nimage: 3e000000\n")
    for option in (["--metric", "echo 1"], ["--max-drop", "1"], ["--limit", "20"]):
        answer = graft("quantize", converted, "-o", out, "--precision", "int8", "--cache", cache, *option, code=2)
        assert f"{option[0]}: this option needs --data in addition to --cache" in answer.err
    assert not out.exists()
