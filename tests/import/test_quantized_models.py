# Tests networks that other tools quantized: after the conversion ONNX Runtime computes the same results, and
# TensorRT-RTX builds them.
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from program import run_program
from quantized_models import MODELS, REFUSED, network_of_onnxruntime
from test_onnx_lowerings import SUPPORT, convert

# The limit relative to the largest number of a result: both round the same numbers, and only the order of sums differs.
LIMIT = 1e-5
SEEDS = range(4)


def run(model, feeds):
    """Runs a model without the optimizations of ONNX Runtime, some of which compute layers with fewer bits."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def largest_difference(found, expected):
    assert [(one.dtype, one.shape) for one in found] == [(one.dtype, one.shape) for one in expected]
    pairs = [(a.astype(np.float64), b.astype(np.float64)) for a, b in zip(found, expected, strict=True)]
    return max(np.abs(a - b).max() / max(np.abs(b).max(), 1e-9) for a, b in pairs)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    made = {
        f"{name}_{seed}": make(np.random.default_rng([seed, *name.encode()]))
        for name, make in MODELS.items()
        for seed in SEEDS
    }
    folder = tmp_path_factory.mktemp("quantized")
    converted = convert({name: model for name, (model, _) in made.items()}, folder)
    return {name: (*one, converted[name][0]) for name, one in made.items()}, folder


@pytest.mark.parametrize("name", [f"{name}_{seed}" for name in MODELS for seed in SEEDS])
def test_results_stay(samples, name):
    model, feeds, converted = samples[0][name]
    onnx.checker.check_model(converted)
    assert largest_difference(run(converted, feeds), run(model, feeds)) <= LIMIT


def test_tensorrt_builds_all(samples):
    pytest.importorskip("tensorrt_rtx")
    sys.path.insert(0, str(SUPPORT))
    from tensorrt_builds import what_tensorrt_builds  # noqa: PLC0415

    made, folder = samples
    (folder / "fixed").mkdir()
    paths = []
    for name, (_, feeds, converted) in made.items():
        for info in converted.graph.input:  # a dynamic size would need a profile
            for dim, size in zip(info.type.tensor_type.shape.dim, feeds[info.name].shape, strict=True):
                dim.dim_value = size
        paths.append(folder / "fixed" / f"{name}.onnx")
        onnx.save(converted, paths[-1])
    assert [path.stem for path, is_built in what_tensorrt_builds(paths).items() if not is_built] == []


def test_i8_stays_where_it_is_the_same(samples):
    for name in ("u8_at_128_0", "weights_0"):
        converted = samples[0][name][2]
        operators = [node.op_type for node in converted.graph.node]
        assert "DequantizeLinear" in operators, name
        assert not {"Round", "Clip"} & set(operators), name


def graft(*arguments):
    return run_program([os.environ["GRAFT_BIN"], *arguments])


@pytest.fixture(scope="module")
def cnn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cnn")
    feeds = network_of_onnxruntime(folder / "u8.onnx")
    return folder, feeds


def test_a_network_of_onnxruntimes_quantizer_stays_exact(cnn):
    folder, feeds = cnn
    done = graft("convert", folder / "u8.onnx", "-o", folder / "exact.onnx")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "f32 computes the same rounding" in " ".join(done.stdout.split())
    model, exact = onnx.load(folder / "u8.onnx"), onnx.load(folder / "exact.onnx")
    assert largest_difference(run(exact, feeds), run(model, feeds)) <= LIMIT


def test_symmetric_i8_is_measured(cnn):
    folder, feeds = cnn
    path = folder / "symmetric.onnx"
    # The comparison of the outputs is part of the check that run_program() leaves out.
    command = [os.environ["GRAFT_BIN"], "convert", folder / "u8.onnx", "-o", path, "--quantized", "symmetric"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the signal-to-noise ratio is" in " ".join(done.stdout.split())
    model = onnx.load(path)
    kinds = {value.name: value.data_type for value in model.graph.initializer}
    rounding = [node for node in model.graph.node if node.op_type == "QuantizeLinear"]
    assert len(rounding) > 3
    assert {kinds[node.input[2]] for node in rounding} == {onnx.TensorProto.INT8}
    # The steps are up to twice as large; it must differ, and not by more than a few steps of the last scale.
    assert 1e-4 < largest_difference(run(model, feeds), run(onnx.load(folder / "u8.onnx"), feeds)) < 0.05


def test_quantize_replaces_what_tensorrt_refuses(cnn):
    folder, _ = cnn
    path = folder / "f16.onnx"
    done = graft("quantize", folder / "u8.onnx", "-o", path, "--precision", "f16")
    assert "the model is already quantized" in done.stdout
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: the limit of the accuracy is not met
    operators = {node.op_type for node in onnx.load(path).graph.node}
    assert not operators & {"QuantizeLinear"}


@pytest.mark.parametrize("name", REFUSED)
def test_quantize_refuses_what_it_cannot_replace(tmp_path, name):
    model, words = REFUSED[name]()
    onnx.save(model, tmp_path / "m.onnx")
    done = graft("quantize", tmp_path / "m.onnx", "-o", tmp_path / "out.onnx", "--precision", "f16")
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "out.onnx").exists()
