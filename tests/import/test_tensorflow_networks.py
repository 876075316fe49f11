# Compares whole, reduced TensorFlow networks (tests/golden/generators/make_tensorflow_networks.py --small) with
# TensorFlow's results, and builds them.
import collections
import json
import os
import pathlib

import numpy as np
import onnx
import onnxruntime
import pytest
from program import run_program

SOURCE = pathlib.Path(os.environ.get("GRAFT_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
PROGRAM = os.environ.get("GRAFT_BIN", str(SOURCE / "build" / "bin" / "graft"))
PLUGIN_LIBRARY = pathlib.Path(os.environ.get("GRAFT_PLUGIN_LIBRARY", SOURCE / "build" / "lib" / "libgraft_plugins.so"))
GOLDEN = pathlib.Path(os.environ.get("GRAFT_GOLDEN_DIR", SOURCE / "tests" / "golden")) / "tensorflow" / "networks"

NETWORKS = ("box3d", "dropout", "recurrent", "style", "unet")
RELATIVE = 1e-5  # relative to the largest number of a tensor: both runtimes add in f32, each in its own order
# The input and each output that is an image keep TensorFlow's layout. box3d's features are flattened in the order in
# which the weights after them were trained: instead of a Transpose, these weights are permuted (fold_transposes) if
# they are small.
TRANSPOSES = {"box3d": 1, "style": 2, "unet": 2}


def graft(*arguments):
    done = run_program([PROGRAM, *arguments])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def convert(tmp_path_factory):
    """Returns the ONNX file and the report of `graft convert` with proofs; each network is converted once."""
    known = {}

    def once(name, plugins):
        if (name, plugins) not in known:
            path = tmp_path_factory.mktemp(name) / f"{plugins}.onnx"
            report = graft("convert", GOLDEN / f"{name}.pb", "-o", path, "--plugins", plugins, "--json")
            known[name, plugins] = path, report
        return known[name, plugins]

    return once


@pytest.mark.parametrize("plugins", ["auto", "never"])
@pytest.mark.parametrize("name", NETWORKS)
def test_onnxruntime_agrees_with_tensorflow(convert, name, plugins):
    path, report = convert(name, plugins)
    assert report["undone"] == []
    assert report["proofs_run"] > 0 or name == "dropout"  # dropout is removed before any pass
    arrays = np.load(GOLDEN / f"{name}.npz")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    outputs = arrays["outputs"].tolist()
    assert [output.name for output in session.get_outputs()] == outputs
    for output, found in zip(outputs, session.run(outputs, {"image": arrays["in/image"]}), strict=True):
        wanted = arrays[f"tensor/{output}"]
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() <= RELATIVE * np.abs(wanted).max()


@pytest.mark.parametrize("name", TRANSPOSES)
def test_no_transposition_is_left_between_layers(convert, name):
    path, _ = convert(name, "auto")
    kinds = collections.Counter(node.op_type for node in onnx.load(path).graph.node)
    assert kinds["Transpose"] == TRANSPOSES[name]


def test_the_report_says_what_is_native_and_what_a_plugin(convert):
    _, report = convert("box3d", "auto")
    choices = collections.defaultdict(list)
    for choice in report["choices"]:
        assert choice["reason"]
        choices[choice["operator"]].append(choice["kind"])
    assert len(choices["LeakyReLU"]) == 3  # each head has another form of it
    assert set(choices["LeakyReLU"]) <= {"native", "plugin"}
    assert choices["L2Normalize"] == ["plugin"]


def test_instance_normalization_is_found(convert):
    _, report = convert("style", "auto")
    assert [choice["operator"] for choice in report["choices"]] == ["InstanceNorm"] * 7


@pytest.mark.parametrize("name", NETWORKS)
def test_verify_says_the_same(convert, name):
    path, _ = convert(name, "auto")
    assert graft("verify", GOLDEN / f"{name}.pb", path, "--seeds", 1, "--json")


@pytest.mark.parametrize("plugins", ["auto", "never"])
def test_layers_are_compared_in_the_order_that_convert_gave_them(convert, plugins):
    """Layers between the moved Transposes are NCHW, those of the reference NHWC, also paddings after an upsampling,
    where only the dimensions show the layout."""
    path, _ = convert("style", plugins)
    report = graft("verify", GOLDEN / "style.pb", path, "--layers", "--seeds", 1, "--json")
    assert report["equal"] and report["first_divergence"] is None and report["problems"] == []
    assert [layer["candidate"] for layer in report["layers"] if layer["incomparable"] or not layer["equal"]] == []
    paddings = [layer for layer in report["layers"] if layer["op"] == "Pad" and layer["layout"] == "transposed"]
    assert len(paddings) >= 5
    for layer in paddings:
        assert "NCHW in the candidate, NHWC in the reference" in layer["diagnosis"]


@pytest.mark.parametrize("plugins", ["auto", "never"])
@pytest.mark.parametrize("name", NETWORKS)
def test_tensorrt_builds(convert, tmp_path, name, plugins):
    pytest.importorskip("tensorrt_rtx")
    path, report = convert(name, plugins)
    wanted = {choice["operator"] for choice in report["choices"] if choice["kind"] == "plugin"}
    if plugins == "auto" and wanted and not PLUGIN_LIBRARY.exists():
        pytest.skip(f"{PLUGIN_LIBRARY} is not built")
    shape = onnx.load(path).graph.input[0].type.tensor_type.shape.dim
    sizes = ["x".join(str(dim.dim_value or batch) for dim in shape) for batch in (1, 2, 4)]
    shapes = [] if all(dim.dim_value for dim in shape) else ["--shapes", f"image={'..'.join(sizes)}"]
    options = ["--target", "sm120", "--plugins", plugins, *shapes, "--json"]
    answer = graft("build", path, "-o", tmp_path / "engine", *options)
    assert {plugin["name"] for plugin in answer["network"]["plugins"]} == (wanted if plugins == "auto" else set())
