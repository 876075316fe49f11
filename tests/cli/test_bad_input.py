# Damaged files, wrong models and full disks: exit code 2 or 3, one clear message, no partial file.
import os
import pathlib
import random
import resource
import subprocess

import numpy as np
import pytest
from conftest import DIGITS, DIGITS_DATA, PROGRAM, save
from onnx import TensorProto, helper

READERS = {
    "inspect": lambda model, out: ["inspect", model],
    "convert": lambda model, out: ["convert", model, "-o", out / "o.onnx"],
    "verify": lambda model, out: ["verify", DIGITS, model],
    "run": lambda model, out: ["run", model, "--input", f"image={DIGITS_DATA}:images", "-o", out / "o.npz"],
    "build": lambda model, out: ["build", model, "-o", out / "o.engine", "--target", "sm89"],
}
# Whatever reads a model does so by the same code; one command stands for the rest where there are many files.
ONE = "convert"


def refused(answer, out, *named, codes=(2,)):
    assert answer.code in codes, (answer.code, answer.out, answer.err)
    assert answer.err.startswith("error: "), answer.err
    assert answer.err.count("error: ") == 1
    assert answer.out == ""
    for text in named:
        assert str(text) in answer.err
    assert not list(out.iterdir())


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "text", "truncated", "unreadable"])
def test_what_is_no_model(graft, tmp_path, out, command, kind):
    model = tmp_path / "bad.onnx"
    if kind == "folder":
        model.mkdir()
    elif kind == "empty":
        model.write_bytes(b"")
    elif kind == "text":
        model.write_text("This is not a model.\n" * 20)
    elif kind == "truncated":
        model.write_bytes(DIGITS.read_bytes()[:60000])
    elif kind == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root reads everything")
        model.write_bytes(DIGITS.read_bytes())
        model.chmod(0)
    refused(graft(*READERS[command](model, out)), out, "bad.onnx")


def test_truncated_anywhere(graft, tmp_path, out):
    data = DIGITS.read_bytes()
    model = tmp_path / "cut.onnx"
    for size in [1, 7, 100, *range(997, len(data), len(data) // 12), len(data) - 1]:
        model.write_bytes(data[:size])
        refused(graft(*READERS[ONE](model, out)), out, "cut.onnx")


def test_random_bytes(graft, tmp_path, out):
    generator = random.Random(3)
    model = tmp_path / "random.onnx"
    for size in (1, 10, 1000, 100000):
        model.write_bytes(generator.randbytes(size))
        refused(graft(*READERS[ONE](model, out)), out, "random.onnx")


def test_flipped_bytes_never_crash(graft, tmp_path, out):
    """A changed byte may leave a valid model; what may not happen is a crash or a partial file."""
    data = DIGITS.read_bytes()
    generator = random.Random(5)
    model = tmp_path / "flipped.onnx"
    for _ in range(15):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        model.write_bytes(damaged)
        answer = graft("inspect", model)
        assert answer.code in (0, 1, 2), (answer.code, answer.err)


def test_unknown_operator(graft, tmp_path, out):
    node = helper.make_node("Wobble", ["image"], ["y"], name="strange", domain="acme")
    model = save(tmp_path / "m.onnx", [node], [("image", ["N", 1, 8, 8])], [("y", ["N", 1, 8, 8])], domains=["acme"])
    refused(graft(*READERS["run"](model, out)), out, "Wobble")
    refused(graft(*READERS["build"](model, out), "--shapes", "image=1x1x8x8"), out, "Wobble", codes=(1, 2))


def test_contradicting_shapes(graft, tmp_path, out):
    node = helper.make_node("MatMul", ["image", "w"], ["y"], name="product")
    weight = helper.make_tensor("w", TensorProto.FLOAT, [5, 2], [0.0] * 10)
    model = save(tmp_path / "m.onnx", [node], [("image", [4, 8])], [("y", None)], [weight])
    refused(graft(*READERS["convert"](model, out)), out, "product")


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon_mode": "sideways"}, "sideways"),
        ({"axes": [0.5]}, "axes"),
        ({"slope": 0.1}, "slope"),
    ],
)
def test_wrong_attribute_of_an_operator_of_ours(graft, tmp_path, out, attributes, named):
    node = helper.make_node("L2Normalize", ["image"], ["y"], name="norm", domain="graft", **attributes)
    model = save(tmp_path / "m.onnx", [node], [("image", [4, 8])], [("y", [4, 8])], domains=["graft"])
    for command in ("convert", "build", "run", "inspect"):
        refused(graft(*READERS[command](model, out)), out, "norm", named)


def test_external_data_outside_the_folder(graft, tmp_path, out):
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="../../../../etc/passwd")
    node = helper.make_node("Add", ["image", "w"], ["y"])
    folder = tmp_path / "model"
    folder.mkdir()
    model = save(folder / "m.onnx", [node], [("image", [2])], [("y", [2])], [weight])
    refused(graft(*READERS[ONE](model, out)), out, "etc/passwd")


@pytest.mark.parametrize("command", ["convert", "run", "build"])
def test_output_folder_that_is_not_there(graft, tmp_path, out, command):
    arguments = READERS[command](DIGITS, out / "deep" / "er")
    if command == "build":
        arguments += ["--shapes", "image=1x1x8x8"]
    refused(graft(*arguments), out, "deep")


def damaged_arrays():
    whole = DIGITS_DATA.read_bytes()
    return {
        "cut.npz": whole[: len(whole) // 2],
        "text.npz": b"no archive",
        "cut.npy": b"\x93NUMPY\x01\x00v\x00{'descr",
        "empty.npy": b"",
    }


@pytest.mark.parametrize("name", damaged_arrays())
def test_damaged_arrays(graft, tmp_path, out, name):
    (tmp_path / name).write_bytes(damaged_arrays()[name])
    refused(graft("run", DIGITS, "--input", f"image={tmp_path / name}", "-o", out / "o.npz"), out, name)


def test_array_of_objects_is_refused(graft, tmp_path, out):
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    refused(graft("run", DIGITS, "--input", f"image={tmp_path / 'o.npy'}", "-o", out / "o.npz"), out, "o.npy")


WRITERS = {
    "convert": (["convert", str(DIGITS)], "o.onnx"),
    "run": (["run", str(DIGITS), "--input", f"image={DIGITS_DATA}:images"], "o.npz"),
    "build": (["build", str(DIGITS), "--target", "sm89", "--shapes", "image=1x1x8x8"], "o.engine"),
}


@pytest.mark.parametrize("command", WRITERS)
def test_file_size_limit(tmp_path, out, command):
    arguments, name = WRITERS[command]
    limit = 10000
    done = subprocess.run(
        [PROGRAM, *arguments, "-o", out / name],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 2, done.stderr
    assert name in done.stderr
    assert not list(out.iterdir())


@pytest.fixture
def tiny_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("command", WRITERS)
def test_full_disk(tiny_disk, command):
    arguments, name = WRITERS[command]
    before = b"what was there before"
    (tiny_disk / name).write_bytes(before)
    done = subprocess.run([PROGRAM, *arguments, "-o", tiny_disk / name], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert name in done.stderr
    assert [p.name for p in pathlib.Path(tiny_disk).iterdir()] == [name]
    assert (tiny_disk / name).read_bytes() == before


@pytest.mark.parametrize(
    ("weights", "message"),
    [([], "it has no weight"), ([0.5] * 215, "`kernel_weights` has 215 numbers, a weight of 8x3x3x3")],
)
def test_drop_in_whose_weights_do_not_fit(graft, tmp_path, weights, message):
    given = {"kernel_weights": weights} if weights else {}
    node = helper.make_node(
        "CONVOLUTION", ["x"], ["y"], name="c", domain="trt", num_output=8, kernel_h=3, kernel_w=3, **given
    )
    model = tmp_path / "model.onnx"
    save(model, [node], [("x", [1, 3, 32, 32])], [("y", [1, 8, 30, 30])], domains=("trt",))
    answer = graft("convert", model, "-o", tmp_path / "out.onnx")
    assert answer.code == 2
    assert "model.onnx" in answer.err and "'c' (trt::CONVOLUTION)" in answer.err and message in answer.err
    assert not (tmp_path / "out.onnx").exists()
