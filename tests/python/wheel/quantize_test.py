"""Compares graft.quantize with the program; ONNX Runtime measures the accuracy of the digits network. Runs in the
installed wheel."""

import json
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
from typing import Any

import graft
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(os.environ["GRAFT_SOURCE_DIR"])
GRAFT = pathlib.Path(sys.executable).parent / "graft"
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
DATA = ROOT / "examples" / "digits" / "digits_test.npz"
COUNT = 24


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Returns the converted digits network."""
    path = tmp_path_factory.mktemp("model") / "digits.onnx"
    graft.convert(DIGITS).model.save(path)
    return path


@pytest.fixture(scope="session")
def images() -> np.ndarray:
    return np.load(DATA)["images"]


@pytest.fixture(autouse=True)
def temporary(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """Returns the folder of temporary files, in which no file of Graft's may remain."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.glob("graft-*"))


def accuracy(model: graft.Model) -> float:
    data = np.load(DATA)
    session = onnxruntime.InferenceSession(model.serialize(), providers=["CPUExecutionProvider"])
    return float((session.run(["logits"], {"image": data["images"]})[0].argmax(1) == data["labels"]).mean())


def said(result: graft.QuantizeResult) -> dict[str, Any]:
    return json.loads(result.to_json())


# ---- Data


class Tensor:
    """A stand-in for PyTorch's tensor on the CPU: it is not a NumPy array, but converts to one."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self._array

    def __iter__(self) -> Iterator[np.ndarray]:
        raise AssertionError("its rows are no samples")


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
        "array": some,
        "tensor of another library": Tensor(some),
        "dict": {"image": some},
        "generator of dicts": ({"image": some[i : i + 1]} for i in range(COUNT)),
        "generator of arrays": (some[i : i + 1] for i in range(COUNT)),
        "list": [some[i : i + 1] for i in range(COUNT)],
    }
    for name, data in forms.items():
        result = graft.quantize(model, precision="int8", data=data)
        assert (said(result)["samples"], result.met) == (COUNT, True), name
        assert result.model.serialize() == out.read_bytes(), name
    half = graft.quantize(model, precision="int8", data=some[: COUNT // 2])
    assert half.model.serialize() != out.read_bytes()


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
            # only the previous one lives while the next one is created
            assert sum(sample() is not None for sample in samples) <= 1
            sample = random.random(shape, np.float32)
            samples.append(weakref.ref(sample))
            yield sample
            del sample

    tracemalloc.start()
    result = graft.quantize(path, precision="int8", data=endless(), samples=30, judged=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(samples), said(result)["samples"]) == (30, 30)
    assert peak < 5 << 20


def test_inputs_may_have_any_name(tmp_path: pathlib.Path) -> None:
    # The first two names are also parameters of numpy.savez.
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
    sampled = graft.quantize(tmp_path / "m.onnx", precision="int8", data=samples)
    whole = graft.quantize(tmp_path / "m.onnx", precision="int8", data=data)
    assert said(sampled)["samples"] == 5
    assert sampled.model.serialize() == whole.model.serialize()


def test_data_that_do_not_fit(model: pathlib.Path, images: np.ndarray) -> None:
    for data, told in [
        ([], "the iterable contains no sample"),
        (images[:COUNT].astype(np.uint8), "input 'image': the tensor is u8["),
        ([{"image": images[0, 0]}], "input 'image': the tensor is f32[8, 8]"),
        ([{"image": object()}], "input 'image' has the dtype object"),
        ("/nowhere.npz", "/nowhere.npz"),
    ]:
        with pytest.raises(graft.Error, match=re.escape(told)) as raised:
            graft.quantize(model, precision="int8", data=data)
        assert raised.value.kind == "bad_input"
    with pytest.raises(graft.Error, match="/nowhere.npz"):
        graft.quantize(model, data="/nowhere.npz")


def test_what_the_generator_raises_is_raised(model: pathlib.Path, images: np.ndarray) -> None:
    error = LookupError("the disk with the images is gone")

    def broken() -> Iterator[np.ndarray]:
        yield images[:1]
        raise error

    with pytest.raises(LookupError) as raised:
        graft.quantize(model, precision="int8", data=broken())
    assert raised.value is error


def test_f16_takes_arrays_and_samples(model: pathlib.Path, images: np.ndarray) -> None:
    result = graft.quantize(model, precision="f16", data={"image": images[:COUNT]}, keep="Gemm")
    assert said(result)["precision"] == "f16"
    assert accuracy(result.model) == accuracy(graft.load(model))
    sampled = graft.quantize(model, precision="f16", data=(image for image in images[:8]))
    assert said(sampled)["runs"] == 8
    with pytest.raises(TypeError, match="found int; pass a dict of arrays"):
        graft.quantize(model, precision="f16", data=3)


def test_float64_and_single_samples_are_converted_with_a_warning(model: pathlib.Path, images: np.ndarray) -> None:
    some = images[:COUNT]
    expected = graft.quantize(model, precision="int8", data=some).model.serialize()
    with pytest.warns(UserWarning, match="data: the array is f64; it is converted to f32, the type of input 'image'"):
        wide = graft.quantize(model, precision="int8", data=some.astype(np.float64))
    assert wide.model.serialize() == expected
    assert len(said(wide)["data_notes"]) == 1
    with pytest.warns(UserWarning, match="is one sample of input 'image'"):
        single = graft.quantize(model, precision="int8", data=(image for image in some))
    assert single.model.serialize() == expected


# ---- Metrics


def faint(images: np.ndarray) -> np.ndarray:
    """Returns images with a twentieth of the real brightness: scales calibrated on them saturate."""
    return images[:COUNT] / 20


def test_layers_stay_in_f32_until_the_metric_is_met(model: pathlib.Path, images: np.ndarray) -> None:
    measured, threads = [], set()

    def metric(tried: graft.Model) -> float:
        threads.add(threading.current_thread())
        measured.append(accuracy(tried))
        return measured[-1]

    result = graft.quantize(
        model, precision="int8", data=faint(images), metric=metric, max_drop=0.01, judged=8, progress=False
    )
    assert result.met is True
    assert threads == {threading.current_thread()}
    assert measured == [result.metric_f32, *(trial["metric"] for trial in said(result)["trials"])]
    assert measured[0] == accuracy(graft.load(model))
    assert measured[1] < measured[0] - 0.2
    assert measured[0] - 0.01 <= result.metric_int8 == accuracy(result.model)
    assert any(node.type == "int8" for node in result.nodes)


def test_a_drop_that_cannot_be_met_is_no_error(model: pathlib.Path, images: np.ndarray) -> None:
    numbers = iter([1, *[0] * 100])
    result = graft.quantize(
        model, precision="int8", data=images[:COUNT], metric=lambda tried: next(numbers), max_drop=0.5, judged=4
    )
    assert (result.met, result.metric_f32, result.metric_int8) == (False, 1, 0)
    assert "limits not met" in repr(result)


@pytest.mark.parametrize("good", [0, 1])
@pytest.mark.parametrize("error", [RuntimeError("the label file is gone"), KeyboardInterrupt(), SystemExit(3)])
def test_what_the_metric_raises_is_raised(
    model: pathlib.Path, images: np.ndarray, error: BaseException, good: int
) -> None:
    calls = 0

    def metric(tried: graft.Model) -> float:
        nonlocal calls
        calls += 1
        if calls > good:
            raise error
        return 1

    with pytest.raises(type(error)) as raised:
        graft.quantize(model, precision="int8", data=images[:COUNT], metric=metric)
    assert raised.value is error
    assert calls == good + 1


def test_what_the_metric_returns_is_a_finite_number(model: pathlib.Path, images: np.ndarray) -> None:
    for value, error, told in [
        (None, TypeError, "NoneType|real number"),
        (float("nan"), ValueError, "has to be a finite number, and is nan"),
        (np.float32("inf"), ValueError, "has to be a finite number, and is inf"),
    ]:
        with pytest.raises(error, match=told):
            graft.quantize(model, precision="int8", data=images[:COUNT], metric=lambda tried, value=value: value)
    third = np.float32(1) / 3
    result = graft.quantize(model, precision="int8", data=images[:COUNT], metric=lambda tried: third)
    assert result.metric_int8 == float(third)


def test_a_metric_may_run_the_toolkit(model: pathlib.Path, images: np.ndarray) -> None:
    def metric(tried: graft.Model) -> float:
        return graft.Session(tried).run(images[:COUNT])["logits"].argmax(1).tolist().count(0)

    result = graft.quantize(model, precision="int8", data=images[:COUNT], metric=metric)
    assert result.metric_f32 == graft.Session(model).run(images[:COUNT])["logits"].argmax(1).tolist().count(0)


WAITING = """
import sys, time, graft, numpy
def wait(tried):
    open(sys.argv[2], "w").close()
    time.sleep(600)
try:
    images = numpy.load(sys.argv[3])["images"]
    graft.quantize(sys.argv[1], precision="int8", data=(image[None] for image in images), metric=wait)
except KeyboardInterrupt:
    sys.exit(77)
"""


def test_an_interrupt_ends_the_metric_and_the_work(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    begun = tmp_path / "begun"
    process = subprocess.Popen([sys.executable, "-c", WAITING, model, begun, DATA], process_group=0)
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 77
    with pytest.raises(ProcessLookupError):  # no process of its group is left
        os.killpg(process.pid, 0)


def test_progress_is_told(model: pathlib.Path, images: np.ndarray) -> None:
    told = []
    graft.quantize(model, precision="int8", data=images[:COUNT], progress=lambda part, what: told.append((part, what)))
    assert told and all(what and 0 <= part <= 1 for part, what in told)


def test_errors_are_those_of_the_command(model: pathlib.Path) -> None:
    for options, told in [
        ({"precision": "int8"}, "data: int8 needs the ranges of real inputs"),
        ({"precision": "f99"}, "precision: found f99"),
        ({"precision": "f16", "max_drop": 1}, "max_drop: this option does not apply to precision f16"),
        ({"precision": "f16", "keep": "nothing*"}, "nothing\\*"),
        ({"precision": "int8", "data": np.zeros((4, 1, 8, 8), np.float32), "improve": "luck"}, "improve: found luck"),
    ]:
        with pytest.raises(graft.Error, match=told) as raised:
            graft.quantize(model, **options)
        assert raised.value.kind == "bad_input"
