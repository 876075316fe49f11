"""graft.quantize against the program itself; ONNX Runtime says how good the digits network is."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import weakref
from collections.abc import Iterator

import graft
import graft.program
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(os.environ["GRAFT_SOURCE_DIR"])
GRAFT = pathlib.Path(os.environ["GRAFT_BIN"])
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
DATA = ROOT / "examples" / "digits" / "digits_test.npz"
COUNT = 24


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The digits network as `graft convert` writes it."""
    path = tmp_path_factory.mktemp("model") / "digits.onnx"
    subprocess.run([GRAFT, "convert", DIGITS, "-o", path, "-q"], check=True)
    return path


@pytest.fixture(scope="session")
def images() -> np.ndarray:
    return np.load(DATA)["images"]


@pytest.fixture(autouse=True)
def temporary(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """Where temporary files are made; nothing of ours may be left there."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.glob("graft-*"))


def accuracy(model: str | os.PathLike[str]) -> float:
    data = np.load(DATA)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return float((session.run(["logits"], {"image": data["images"]})[0].argmax(1) == data["labels"]).mean())


# ---- Data


def test_all_forms_of_the_same_data_give_the_same_bytes(
    model: pathlib.Path, images: np.ndarray, tmp_path: pathlib.Path
) -> None:
    some = images[:COUNT]
    np.savez(tmp_path / "data.npz", image=some)
    out = tmp_path / "by_command.onnx"
    command = [GRAFT, "quantize", model, "-o", out, "--precision", "int8", "--data", tmp_path / "data.npz", "-q"]
    subprocess.run(command, check=True)
    forms = {
        "path": tmp_path / "data.npz",
        "text": f"image={tmp_path / 'data.npz'}:image",
        "array": some,
        "dict": {"image": some},
        "generator of dicts": ({"image": some[i : i + 1]} for i in range(COUNT)),
        "generator of arrays": (some[i : i + 1] for i in range(COUNT)),
        "list": [some[i : i + 1] for i in range(COUNT)],
    }
    for name, data in forms.items():
        result = graft.quantize(model, tmp_path / "o.onnx", data=data)
        assert (result["samples"], result["met"]) == (COUNT, True), name
        assert (tmp_path / "o.onnx").read_bytes() == out.read_bytes(), name
    graft.quantize(model, tmp_path / "o.onnx", data=some[: COUNT // 2])
    assert (tmp_path / "o.onnx").read_bytes() != out.read_bytes()


def test_a_generator_is_asked_for_one_sample_at_a_time_and_no_more_than_needed(tmp_path: pathlib.Path) -> None:
    shape = (1, 8, 256, 128)  # 1 MiB
    path = tmp_path / "model.onnx"
    weight = numpy_helper.from_array(np.ones((2, 8, 1, 1), np.float32), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    ends[0] = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "conv", ends[:1], ends[1:], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    samples: list[weakref.ref[np.ndarray]] = []

    def endless() -> Iterator[np.ndarray]:
        random = np.random.default_rng(1)
        while True:
            assert sum(sample() is not None for sample in samples) <= 1  # the one before, while the next is made
            sample = random.random(shape, np.float32)
            samples.append(weakref.ref(sample))
            yield sample
            del sample

    tracemalloc.start()
    result = graft.quantize(path, tmp_path / "o.onnx", data=endless(), samples=30, judged=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(samples), result["samples"]) == (30, 30)
    assert peak < 5 << 20


def test_inputs_may_have_any_name(tmp_path: pathlib.Path) -> None:
    # numpy.savez has parameters of the first two names.
    names = ["file", "allow_pickle", "a/b:0"]
    nodes = [helper.make_node("Sum", names, ["sum"]), helper.make_node("MatMul", ["sum", "w"], ["y"])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in names]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    graph = helper.make_graph(nodes, "sum", inputs, [output], [weight])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
    random = np.random.default_rng(2)
    data = {name: random.random((5, 4), np.float32) for name in names}
    samples = ({name: array[i : i + 1] for name, array in data.items()} for i in range(5))
    assert graft.quantize(tmp_path / "m.onnx", tmp_path / "a.onnx", data=samples)["samples"] == 5
    graft.quantize(tmp_path / "m.onnx", tmp_path / "b.onnx", data=data)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_data_that_do_not_fit(model: pathlib.Path, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "o.onnx"
    for data, told in [
        ([], "there is no sample"),
        (images[:COUNT].astype(np.float64), "for the input 'image'; the file has array (f64 24x1x8x8)"),
        ((image for image in images[:COUNT]), "sample_000000000.npy: there is no array for the input 'image'"),
        ([{"image": images[0]}], "input 'image': found f32[1, 8, 8]"),
        ("/nowhere.npz", "/nowhere.npz"),
    ]:
        with pytest.raises(graft.Error, match=re.escape(told)) as raised:
            graft.quantize(model, out, data=data)
        assert raised.value.kind == "bad_input"
    with pytest.raises(ValueError, match="[Oo]bject arrays"):
        graft.quantize(model, out, data=[{"image": object()}])
    assert not out.exists()


def test_what_the_generator_raises_is_raised(model: pathlib.Path, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    error = LookupError("the disk with the images is gone")

    def broken() -> Iterator[np.ndarray]:
        yield images[:1]
        raise error

    with pytest.raises(LookupError) as raised:
        graft.quantize(model, tmp_path / "o.onnx", data=broken())
    assert raised.value is error
    assert not (tmp_path / "o.onnx").exists()


def test_f16_takes_arrays_and_no_samples(model: pathlib.Path, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    result = graft.quantize(model, tmp_path / "o.onnx", "f16", data={"image": images[:COUNT]}, keep="Gemm")
    assert result["precision"] == "f16"
    assert accuracy(tmp_path / "o.onnx") == accuracy(model)
    with pytest.raises(graft.Error, match="for int8"):
        graft.quantize(model, tmp_path / "o.onnx", "f16", data=(image for image in images))


# ---- Metrics


def faint(images: np.ndarray) -> np.ndarray:
    """A twentieth as bright as the real ones: scales that they give saturate."""
    return images[:COUNT] / 20


def test_layers_stay_in_f32_until_the_metric_is_met(
    model: pathlib.Path, images: np.ndarray, tmp_path: pathlib.Path
) -> None:
    measured, threads = [], set()

    def metric(path: str) -> float:
        threads.add(threading.current_thread())
        measured.append(accuracy(path))
        return measured[-1]

    result = graft.quantize(model, tmp_path / "o.onnx", data=faint(images), metric=metric, max_drop=0.01, judged=8)
    assert result["met"] is True
    assert threads == {threading.current_thread()}
    assert measured == [result["metric_f32"], *(trial["metric"] for trial in result["trials"])]
    assert measured[0] == accuracy(model)
    assert measured[1] < measured[0] - 0.2
    assert measured[0] - 0.01 <= result["metric_int8"] == accuracy(tmp_path / "o.onnx")
    assert any(node["type"] == "int8" for node in result["nodes"])


def test_a_drop_that_cannot_be_met_is_no_error(
    model: pathlib.Path, images: np.ndarray, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    numbers = iter([1, *[0] * 100])
    result = graft.quantize(
        model, tmp_path / "o.onnx", data=images[:COUNT], metric=lambda path: next(numbers), max_drop=0.5, judged=4
    )
    assert (result["met"], result["metric_f32"], result["metric_int8"]) == (False, 1, 0)
    assert (tmp_path / "o.onnx").exists()
    assert "not as good as was asked for" in capfd.readouterr().err


def test_a_metric_may_be_a_command(model: pathlib.Path, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    result = graft.quantize(model, tmp_path / "o.onnx", data=images[:COUNT], metric="test -s {} && echo 0.5")
    assert (result["metric_f32"], result["metric_int8"]) == (0.5, 0.5)
    with pytest.raises(graft.Error, match="--metric: it ended with exit code 7") as raised:
        graft.quantize(model, tmp_path / "p.onnx", data=images[:COUNT], metric="echo lost {} >&2; exit 7")
    assert "The command was: echo lost {} >&2; exit 7" in str(raised.value)
    assert not (tmp_path / "p.onnx").exists()


@pytest.mark.parametrize("good", [0, 1])
@pytest.mark.parametrize("error", [RuntimeError("the label file is gone"), KeyboardInterrupt(), SystemExit(3)])
def test_what_the_metric_raises_is_raised(
    model: pathlib.Path, images: np.ndarray, tmp_path: pathlib.Path, error: BaseException, good: int
) -> None:
    calls = 0

    def metric(path: str) -> float:
        nonlocal calls
        calls += 1
        if calls > good:
            raise error
        return 1

    with pytest.raises(type(error)) as raised:
        graft.quantize(model, tmp_path / "o.onnx", data=images[:COUNT], metric=metric)
    assert raised.value is error
    assert calls == good + 1
    assert not (tmp_path / "o.onnx").exists()


def test_what_the_metric_returns_is_a_finite_number(
    model: pathlib.Path, images: np.ndarray, tmp_path: pathlib.Path
) -> None:
    for value, error, told in [
        (None, TypeError, "NoneType"),
        (float("nan"), ValueError, "has to be a finite number, and is nan"),
        (np.float32("inf"), ValueError, "has to be a finite number, and is inf"),
    ]:
        with pytest.raises(error, match=told):
            graft.quantize(model, tmp_path / "o.onnx", data=images[:COUNT], metric=lambda path, value=value: value)
    third = np.float32(1) / 3
    result = graft.quantize(model, tmp_path / "o.onnx", data=images[:COUNT], metric=lambda path: third)
    assert result["metric_int8"] == float(third)


WAITING = """
import sys, time, graft
def wait(path):
    open(sys.argv[3], "w").close()
    time.sleep(600)
try:
    graft.quantize(sys.argv[1], sys.argv[2], data="image=" + sys.argv[4] + ":images", metric=METRIC)
except KeyboardInterrupt:
    sys.exit(77)
"""


@pytest.mark.parametrize("metric", ["wait", 'f"touch {sys.argv[3]}; sleep 600; : {{}}"'])
def test_an_interrupt_ends_everything(model: pathlib.Path, tmp_path: pathlib.Path, metric: str) -> None:
    """In the metric, and while the program works."""
    begun = tmp_path / "begun"
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING.replace("METRIC", metric), model, tmp_path / "o.onnx", begun, DATA],
        process_group=0,
    )
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 77
    with pytest.raises(ProcessLookupError):  # nobody of its group is left
        os.killpg(process.pid, 0)
    assert not (tmp_path / "o.onnx").exists()


def test_progress_is_told(model: pathlib.Path, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    said = []

    def slow(path: str) -> float:
        if not said:
            time.sleep(5.1)  # the program says something every five seconds
        return 1

    graft.quantize(
        model, tmp_path / "o.onnx", data=images, metric=slow, progress=lambda what, part: said.append((what, part))
    )
    assert said and all(what and 0 <= part <= 1 for what, part in said)


# ---- The program


def stand_in(path: pathlib.Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("GRAFT_BIN", str(path))


def test_options_are_those_of_the_command(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path / "graft", f'printf "%s\\n" "$@" >{tmp_path}/arguments; echo "{{}}"', monkeypatch)
    options = dict(
        data="d.npz", recipe=tmp_path / "r.yaml", samples=3, method="mse", percentile=99.5, max_drop=0.25, limit=30,
        judged=4, keep=["a", "b"], only="c", improve=["bias"], rest="f16", cache="c.cache", write_cache="w.cache",
        state="s.npz", report="r.html",
    )  # fmt: skip
    assert graft.quantize("m.onnx", tmp_path / "o.onnx", "int8", **options) == {}
    given = (tmp_path / "arguments").read_text().split()
    assert given[:3] + given[-1:] == ["quantize", "m.onnx", "-o", "--json"]
    help_text = subprocess.run([GRAFT, "quantize", "--help"], capture_output=True, text=True, check=True).stdout
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        assert option in help_text
        for one in value if isinstance(value, list) else [value]:
            assert str(one) in [b for a, b in zip(given, given[1:], strict=False) if a == option]
    graft.quantize("m.onnx", "o.onnx", "f16", typed_io=True)
    given = (tmp_path / "arguments").read_text().split()
    assert given == ["quantize", "m.onnx", "-o", "o.onnx", "--precision", "f16", "--typed-io", "--json"]


def test_errors_of_the_program(model: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for precision, told in [("int8", "--data: int8 needs ranges"), ("f99", "f99 not in")]:
        with pytest.raises(graft.Error, match=told) as raised:
            graft.quantize(model, tmp_path / "o.onnx", precision)
        assert raised.value.kind == "bad_input"
    stand_in(tmp_path / "graft", "echo half; echo gone >&2; kill -SEGV $$", monkeypatch)
    with pytest.raises(graft.Error, match="gone") as raised:
        graft.quantize(model, tmp_path / "o.onnx")
    assert raised.value.kind == "internal"
    stand_in(tmp_path / "graft", "kill -SEGV $$", monkeypatch)
    with pytest.raises(graft.Error, match="signal 11"):
        graft.quantize(model, tmp_path / "o.onnx")
    stand_in(tmp_path / "graft", "exit 130", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        graft.quantize(model, tmp_path / "o.onnx")


def test_where_the_program_is_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAFT_BIN", "/nowhere/graft")
    with pytest.raises(graft.Error, match="/nowhere/graft: cannot be started") as raised:
        graft.quantize("m.onnx", "o.onnx")
    assert raised.value.kind == "missing_tool"
    monkeypatch.delenv("GRAFT_BIN")
    assert os.path.samefile(graft.program.find_program(), GRAFT)
    monkeypatch.setattr(graft.program, "BESIDE_PACKAGE", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(graft.Error, match="the program graft is not found"):
        graft.program.find_program()
    (tmp_path / "graft").symlink_to(GRAFT)
    assert graft.program.find_program() == str(tmp_path / "graft")


@pytest.mark.parametrize("package", ["share/graft/python", "build/python", "python"])
def test_an_installation_and_a_checkout_find_their_own(tmp_path: pathlib.Path, package: str) -> None:
    program = tmp_path / ("bin/graft" if package.startswith("share") else "build/bin/graft")
    program.parent.mkdir(parents=True)
    program.symlink_to(GRAFT)
    (tmp_path / package).mkdir(parents=True)
    (tmp_path / package / "graft").symlink_to(ROOT / "python" / "graft")
    environment = {name: value for name, value in os.environ.items() if name != "GRAFT_BIN"}
    environment["PYTHONPATH"] = str(tmp_path / package)
    script = "import graft.program; print(graft.program.find_program())"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(program)


def test_the_package_itself_needs_nothing() -> None:
    """TensorRT's Python, in which the engine driver runs, may lack NumPy."""
    script = "import sys, graft; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
