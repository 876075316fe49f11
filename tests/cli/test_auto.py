# graft auto: one run for each format of the digits network, whose models ONNX Runtime runs, and runs that end early.
import json
import os
import re
import shlex
import shutil
import sys

import numpy as np
import pytest
from conftest import DIGITS, DIGITS_DATA, DIGITS_SHAPES, PROGRAM, needs_plugin_library, run_command
from onnx import helper
from onnx_models import save, session_of

FAMILY = DIGITS.parent
SHAPES = ("--shapes", DIGITS_SHAPES)
DATA = ("--data", "image=digits_test.npz:images")
WITHOUT_TENSORRT = {"GRAFT_PYTHON": sys.base_prefix + "/bin/python3"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Returns a folder with the digits network in all formats, in which a user works."""
    folder = tmp_path_factory.mktemp("auto")
    for file in FAMILY.iterdir():
        if file.suffix in (".onnx", ".pb", ".prototxt", ".caffemodel", ".npz"):
            shutil.copy2(file, folder)
    return folder


@pytest.fixture(scope="module")
def int8(graft, folder):
    """Returns the report of the ONNX network in int8."""
    options = ("--precision", "int8", *DATA, "--samples", "64", *SHAPES, "--target", "sm120")
    return graft("auto", "digits.onnx", "-o", "int8.engine", *options, "--json", cwd=folder, code=0).json


def steps_of(report):
    return {step["name"]: step for step in report["steps"]}


def states_of(report):
    return {step["name"]: step["state"] for step in report["steps"]}


def accuracy(file, axes=(0, 1, 2, 3)):
    """Returns the share of scans that ONNX Runtime classifies as people did. The images have these axes."""
    data = np.load(DIGITS_DATA)
    session = session_of(file)
    (image,) = session.get_inputs()
    images = data["images"].transpose(axes)
    batch = image.shape[0] if isinstance(image.shape[0], int) else len(images)
    padded = np.concatenate([images, np.zeros_like(images[:batch])])
    runs = [session.run(None, {image.name: padded[i : i + batch]}) for i in range(0, len(images), batch)]
    (logits,) = [at for at, output in enumerate(runs[0]) if output.shape == (batch, 10)]
    classes = np.concatenate([run[logits] for run in runs]).argmax(axis=1)
    return np.mean(classes[: len(images)] == data["labels"])


def test_the_models_of_the_steps_classify_in_onnx_runtime(int8, folder):
    assert states_of(int8) == {"convert": "done", "verify": "done", "quantize": "done", "build": "done"}
    assert int8["files"] == ["converted.onnx", "quantized.onnx"]
    assert accuracy(folder / "int8.graft" / "converted.onnx") == accuracy(DIGITS) > 0.99
    assert accuracy(folder / "int8.graft" / "quantized.onnx") > 0.98
    assert (folder / "int8.engine").stat().st_size == int8["build"]["bytes"]


def test_the_engine_is_checked(int8):
    assert int8["succeeded"]
    checks = {check["name"]: check for check in int8["checks"]}
    assert [check["passed"] for check in checks.values()] == [True, True, True]
    assert "kernels read i8" in checks["types"]["found"]
    assert int8["build"]["layer_summary"]["matrix_reads"]["i8"] >= 3  # the three convolutions
    assert int8["targets"] == ["sm120"] and "--target" in int8["why_targets"]


def test_the_folder_has_the_report(int8, folder):
    written = sorted(file.name for file in (folder / "int8.graft").iterdir())
    assert written == ["converted.onnx", "quantized.onnx", "report.html", "report.json"]
    assert json.loads((folder / "int8.graft" / "report.json").read_text()) == int8
    page = (folder / "int8.graft" / "report.html").read_text()
    for step in int8["steps"]:
        assert json.dumps(step["command"])[1:-1] in page


def test_the_printed_commands_write_the_same_models(int8, folder, tmp_path):
    for file in folder.glob("digits*"):
        shutil.copy2(file, tmp_path)
    (tmp_path / "int8.graft").mkdir()
    for step in int8["steps"]:
        program, *words = shlex.split(step["command"])
        assert (program, words[0]) == ("graft", step["name"])
        run_command(PROGRAM, *words, cwd=tmp_path, code=0)
    for name in ("converted.onnx", "quantized.onnx"):
        assert (tmp_path / "int8.graft" / name).read_bytes() == (folder / "int8.graft" / name).read_bytes()
    assert (tmp_path / "int8.engine").is_file()


def test_a_tensorflow_graph_in_text(graft, folder):
    options = ("--input", "image:8x8x8x1", "--target", "sm120")
    answer = graft("auto", "digits.pb", "-o", "tensorflow.engine", *options, cwd=folder, code=0)
    commands = re.findall(r"^\$ (graft \w+)", answer.out, re.MULTILINE)
    assert commands == ["graft convert", "graft verify", "graft build"]
    assert "not needed: the network keeps its types" in answer.out
    converted = folder / "tensorflow.graft" / "converted.onnx"
    assert accuracy(converted, (0, 2, 3, 1)) > 0.99


def test_a_caffe_network_replaces_only_its_own_files(graft, folder):
    work = folder / "results"
    work.mkdir()
    (work / "mine.txt").write_text("mine")
    (work / "report.json").write_text("of an earlier run")
    options = ("--work", "results", *DATA, "--json")
    answer = graft("auto", "digits.prototxt", "digits.caffemodel", "-o", "caffe.engine", *options, cwd=folder, code=0)
    assert sorted(file.name for file in work.iterdir()) == ["converted.onnx", "mine.txt", "report.html", "report.json"]
    assert json.loads((work / "report.json").read_text()) == answer.json
    assert accuracy(work / "converted.onnx") > 0.99
    assert answer.json["verify"]["runs"] == 450  # the network has a batch of 1
    # There is no GPU and no --target: the report says what was chosen, and why.
    assert "no GPU" in answer.json["why_targets"] or answer.json["targets"] == ["current"]
    assert (folder / "caffe.engine").is_file()


def test_steps_that_are_not_needed_say_why(graft, converted, tmp_path):
    answer = graft("auto", converted, "-o", tmp_path / "e", *SHAPES, "--target", "rtx5090", "--json", code=0)
    report = answer.json
    steps = steps_of(report)
    assert states_of(report) == {"convert": "done", "verify": "not needed", "quantize": "not needed", "build": "done"}
    assert "rewrote nothing" in steps["verify"]["why"] and not steps["verify"]["command"]
    assert "--precision" in steps["quantize"]["why"]
    assert {check["name"]: check["passed"] for check in report["checks"]}["targets"] and report["succeeded"]
    assert report["targets"] == ["sm120"] and (tmp_path / "e").is_file()


@needs_plugin_library
def test_plugins_without_code_for_a_target_end_the_command_before_long_work(graft, folder):
    (library,) = [each for each in graft("doctor", "--json").json["findings"] if each["name"] == "plugin library"]
    if any(int(each.split("-")[0]) < 90 for each in library["facts"]["cuda_architectures"]):
        pytest.skip("the library may have code for sm80")
    options = ("--precision", "int8", *DATA, *SHAPES, "--target", "a100")
    answer = graft("auto", "digits.onnx", "-o", "a100.engine", *options, "--json", cwd=folder, code=1)
    states = {"convert": "done", "verify": "not reached", "quantize": "not reached", "build": "negative"}
    assert states_of(answer.json) == states
    assert "its plugins cannot run on sm80" in " ".join(answer.err.split())
    assert not (folder / "a100.engine").exists()
    (command,) = re.findall(r"^\s*graft (build .*)$", answer.err, re.MULTILINE)
    graft(*shlex.split(command), cwd=folder, code=0)
    assert (folder / "a100.engine").is_file()


def test_dynamic_sizes_print_the_complete_command(graft, folder):
    options = ("--precision", "f16", "--target", "sm120")
    answer = graft("auto", "digits.onnx", "-o", "f16.engine", *options, cwd=folder, code=2)
    assert not (folder / "f16.engine").exists()
    (command,) = re.findall(r"^\s*graft (auto .*)$", answer.err, re.MULTILINE)
    answer = graft(*shlex.split(command), "--json", cwd=folder, code=0)
    assert [check["passed"] for check in answer.json["checks"]] == [True, True, True]
    assert answer.json["build"]["layer_summary"]["reads"]["f16"] >= 5  # convolutions and matrix products


def test_a_limit_that_is_missed_is_negative(graft, folder):
    options = ("--precision", "int8", *DATA, "--samples", "8", "--limit", "200", *SHAPES, "--target", "sm120")
    answer = graft("auto", "digits.onnx", "-o", "missed.engine", *options, "--json", cwd=folder, code=1)
    report = answer.json
    assert "error: quantize: " in answer.err
    assert states_of(report) == {
        "convert": "done",
        "verify": "done",
        "quantize": "negative",
        "build": "not reached",
    }
    assert not (folder / "missed.engine").exists() and report["build"] is None and not report["succeeded"]
    explain, build = [shlex.split(each["command"])[1:] for each in report["next"]]
    assert explain[0] == "quantize" and explain[-1] == "--explain"
    graft(*explain, cwd=folder, code=1)
    graft(*build, cwd=folder, code=0)
    assert (folder / "missed.engine").is_file()


def test_values_that_cannot_be_compared_are_negative(graft, folder, tmp_path):
    np.save(tmp_path / "nan.npy", np.full([2, 1, 8, 8], np.nan, np.float32))
    options = ("--data", f"image={tmp_path / 'nan.npy'}", *SHAPES)
    answer = graft("auto", "digits.onnx", "-o", tmp_path / "e", *options, cwd=folder, code=1)
    assert "error: verify: " in answer.err and "NaN" in answer.err
    assert re.search(r"graft verify .* --layers", answer.out)
    assert not (tmp_path / "e").exists()


def test_a_node_that_tensorrt_refuses_is_negative(graft, tmp_path):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("NoSuchOperator", ["a"], ["y"], name="custom", domain="nobody"),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 4])], [("y", [1, 4])])
    answer = graft("auto", model, "-o", tmp_path / "e", "--target", "sm120", "--json", code=1)
    assert "error: convert: " in answer.err and "'custom'" in answer.err
    assert states_of(answer.json)["convert"] == "negative" and answer.json["next"]
    assert not (tmp_path / "e").exists()


def test_without_tensorrt_nothing_is_written(graft, tmp_path):
    answer = graft("auto", DIGITS, "-o", tmp_path / "e", *SHAPES, env=WITHOUT_TENSORRT, code=3)
    assert "pip install tensorrt-rtx" in answer.err
    assert not list(tmp_path.iterdir())


def test_the_full_tensorrt_needs_a_gpu_from_the_beginning(graft, tmp_path):
    """The module is a stand-in: the check comes before TensorRT is used."""
    (tmp_path / "tensorrt").mkdir()
    (tmp_path / "tensorrt" / "__init__.py").write_text("")
    paths = {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    options = ("-o", tmp_path / "e", *SHAPES, "--tensorrt", "full")
    answer = graft("auto", DIGITS, *options, env=paths, code=3)
    assert "--tensorrt full: the full TensorRT builds an engine only on a GPU" in answer.err
    assert "Set it to rtx" in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["tensorrt"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--recipe", "images.yaml"), "there are no input data"),
        (("--precision", "int8"), "--data"),
        (("--precision", "f16", "--samples", "3"), "--samples"),
        (("--data", "none"), "none: there is no such file or folder"),
        (("--data", "image=none.npy"), "none.npy"),
        (("--shapes", "image=1"), "image"),
        (("--target", "gpu"), "--target gpu"),
        (("--plugin-lib", "none.so"), "none.so"),
        (("--work", "none/folder"), "--work"),
    ],
)
def test_wrong_options_write_nothing(graft, tmp_path, options, words):
    answer = graft("auto", DIGITS, "-o", tmp_path / "e", *options, cwd=tmp_path, code=2)
    assert words in answer.err, answer.err
    assert not list(tmp_path.iterdir()) or "image=1" in options


def test_an_input_is_not_overwritten(graft, converted, tmp_path):
    model = shutil.copy2(converted, tmp_path / "converted.onnx")
    answer = graft("auto", model, "-o", tmp_path / "e", *SHAPES, "--work", tmp_path, code=2)
    assert "would be overwritten" in answer.err and "--work" in answer.err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["converted.onnx"]
