# Tests Graft's own plugin library in the real TensorRT-RTX and the real TensorRT 11 registry, for every operator and
# type.
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import models
import onnx
import pytest
from conftest import ROOT, Driven, drive_forked, driver_environment, graft

TARGETS = ("--target", "sm120,sm121")
DTYPES = ["f32", "f16", "bf16", "i8"]
INTEGERS = ["i32", "i64"]


@pytest.fixture(scope="session")
def case_models(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Writes a folder of small models of every operator, and their manifest, from the operators' cases."""
    tool = pathlib.Path(os.environ.get("GRAFT_BUILD_DIR", ROOT / "build/release")) / "tests/case_models"
    if not tool.is_file():
        pytest.skip(f"{tool} was not built")
    folder = tmp_path_factory.mktemp("cases")
    subprocess.run([str(tool), "engines", str(folder)], check=True)
    return folder


def listed(folder: pathlib.Path, **wanted: str) -> list[dict[str, Any]]:
    models = json.loads((folder / "manifest.json").read_text())["models"]
    found = [model for model in models if all(model[key] == value for key, value in wanted.items())]
    assert found, wanted
    return found


def build_all(
    folder: pathlib.Path, case_models: pathlib.Path, models: list[dict[str, Any]], *options: object
) -> Iterator[tuple[dict[str, Any], pathlib.Path, Driven]]:
    """Builds all models; yields each model with its engine and the driver's output."""
    engines = [folder / f"{number}.engine" for number in range(len(models))]
    for model, engine in zip(models, engines, strict=True):
        shapes = ("--shapes", model["shapes"]) if model["shapes"] else ()
        file = case_models / model["file"]
        yield model, engine, drive_forked("build", file, "--output", engine, *options, *TARGETS, *shapes)


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize("dtype", DTYPES + INTEGERS)
def test_every_plugin_builds(
    tmp_path: pathlib.Path, graft_library: pathlib.Path, case_models: pathlib.Path, dtype: str
) -> None:
    """The models have fixed and dynamic sizes."""
    models = listed(case_models, kind="plugin", dtype=dtype, layout="linear")
    for model, engine, done in build_all(tmp_path, case_models, models, "--plugin-library", graft_library):
        (layer,) = done.result["network"]["plugins"]
        assert (layer["name"], layer["version"], layer["generation"]) == (model["plugin"], model["version"], "V3")
        assert (layer["inputs"][0]["dtype"], layer["outputs"][0]["dtype"]) == (dtype, model["result"])
        assert model["plugin"].encode() in engine.read_bytes()


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_function_builds_as_native_layers(tmp_path: pathlib.Path, case_models: pathlib.Path, dtype: str) -> None:
    models = listed(case_models, kind="function", dtype=dtype)
    # TensorRT-RTX has no layer for NonMaxSuppression, which this function contains.
    models = [model for model in models if model["operator"] != "CombinedNonMaxSuppression"]
    for _, _, done in build_all(tmp_path, case_models, models):
        network = done.result["network"]
        assert network["plugins"] == []
        assert network["layer_count"] >= 1


@pytest.mark.parametrize("flavor", ["lean", "rtx"])
def test_registry_creates_clones_serializes_and_refuses(
    flavor: str,
    request: pytest.FixtureRequest,
    graft_library: pathlib.Path,
    case_models: pathlib.Path,
    compile_library: Callable[..., pathlib.Path],
) -> None:
    request.getfixturevalue(flavor)
    bridge = compile_library(ROOT / "tools/plugin_bridge.cpp", "libplugin_bridge.so")
    check = ROOT / "tools/compat_check.py"
    manifest = case_models / "manifest.json"
    command = [sys.executable, str(check), f"tensorrt_{flavor}", str(graft_library), str(bridge), str(manifest)]
    done = subprocess.run(command, env=driver_environment(), capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    found = {(creator["name"], creator["version"]) for creator in answer["creators"]}
    assert found == {(c["name"], c["version"]) for c in json.loads(manifest.read_text())["creators"]}
    for creator in answer["creators"]:
        assert creator["failed"] == [], creator["name"]
        # Each field is kept, and refused by name where its type is wrong.
        assert len(creator["passed"]) >= 3 * len(creator["fields"])


@pytest.mark.parametrize("flavor", ["lean", "rtx"])
def test_the_check_itself_fails_on_a_careless_plugin(
    flavor: str,
    request: pytest.FixtureRequest,
    fixture_library: pathlib.Path,
    compile_library: Callable[..., pathlib.Path],
) -> None:
    request.getfixturevalue(flavor)
    bridge = compile_library(ROOT / "tools/plugin_bridge.cpp", "libplugin_bridge.so")
    check = ROOT / "tools/compat_check.py"
    command = [sys.executable, str(check), f"tensorrt_{flavor}", str(fixture_library), str(bridge)]
    done = subprocess.run(command, env=driver_environment(), capture_output=True, text=True, check=True)
    choosy = ("FixtureStrict", "FixtureFussy")
    careless = [c for c in json.loads(done.stdout.splitlines()[-1])["creators"] if c["name"] not in choosy]
    assert len(careless) == 8
    for creator in careless:
        assert any("unknown is refused" in failed for failed in creator["failed"])
        assert any(passed == "set 0: re-created from its serialized fields" for passed in creator["passed"])


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize(
    ("op_type", "attributes", "words"),
    [
        ("LeakyReLU", {"alpha": 0.1, "x_scale": -1.0}, ["LeakyReLU", "x_scale", "-1"]),
        ("LeakyReLU", {"alpha": 3}, ["LeakyReLU", "alpha", "FLOAT32"]),
        ("L2Normalize", {"axes": [0.5]}, ["axes", "FLOAT32", "INT64"]),
        ("L2Normalize", {"axes": [9]}, ["axes", "9", "rank 4"]),
        ("L2Normalize", {"epsilon_mode": "bogus"}, ["epsilon_mode", "bogus", "max, norm, add"]),
        ("L2NormHelper", {"eps": 1.0}, ["op_type", "required"]),
    ],
)
def test_a_bad_attribute_is_named_in_the_error(
    tmp_path: pathlib.Path, graft_library: pathlib.Path, op_type: str, attributes: dict[str, Any], words: list[str]
) -> None:
    model = models.custom(tmp_path / "m.onnx", op_type, **attributes)
    done = drive_forked("build", model, "--output", tmp_path / "m.engine", "--plugin-library", graft_library, code=1)
    for word in words:
        assert word in done.error["message"]
    assert not (tmp_path / "m.engine").exists()


@pytest.fixture
def tensorrt_environment(tmp_path: pathlib.Path) -> dict[str, str]:
    """Returns the environment of a program that uses TensorRT-RTX directly, whose parser opens the library by a name
    without version."""
    libraries = pytest.importorskip("tensorrt_rtx_libs")
    core = next(pathlib.Path(libraries.__file__).parent.glob("libtensorrt_rtx.so.*"))
    (tmp_path / "libtensorrt_rtx.so").symlink_to(core)
    return driver_environment() | {"LD_LIBRARY_PATH": str(tmp_path)}


# TensorRT's own parser, as trtexec uses it. Prints the number of plugin layers, or that the model is refused.
PARSER_SCRIPT = """
import sys
import tensorrt_rtx as trt
model, *libraries = sys.argv[1:]
logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
for library in libraries:
    assert trt.get_plugin_registry().load_library(library) is not None
network = trt.Builder(logger).create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
if not trt.OnnxParser(network, logger).parse_from_file(model):
    print("refused")
else:
    layers = [network.get_layer(i) for i in range(network.num_layers)]
    print(sum(layer.type == trt.LayerType.PLUGIN_V3 for layer in layers))
"""


@pytest.mark.usefixtures("rtx")
def test_tensorrt_s_own_parser_makes_plugins_of_a_file_without_functions(
    tmp_path: pathlib.Path, graft_library: pathlib.Path, tensorrt_environment: dict[str, str]
) -> None:
    """The parser creates no plugin for a node with an ONNX function, which `graft convert` writes by default,
    whatever libraries are loaded."""
    pyramid = {"levels": [2, 1], "mode": "max", "binning": "adaptive"}
    nodes = [
        onnx.helper.make_node("LeakyReLU", ["x"], ["a"], domain="graft", alpha=0.2),
        onnx.helper.make_node("L2Normalize", ["a"], ["b"], domain="graft", axes=[1]),
        onnx.helper.make_node("SpatialPyramidPooling", ["b"], ["y"], domain="graft", **pyramid),
    ]
    model = models.save(tmp_path / "m.onnx", nodes, [1, 3, 8, 8])

    def plugins_in(file: pathlib.Path, *libraries: pathlib.Path) -> str:
        command = [sys.executable, "-c", PARSER_SCRIPT, str(file), *map(str, libraries)]
        done = subprocess.run(command, env=tensorrt_environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def converted(name: str, *options: str) -> pathlib.Path:
        assert graft("convert", model, "-o", tmp_path / name, "--plugins", "always", *options).code == 0
        return tmp_path / name

    with_functions = converted("functions.onnx")
    without = converted("plugins.onnx", "--no-functions")
    assert plugins_in(with_functions, graft_library) == "0"
    assert plugins_in(without, graft_library) == "3"
    assert plugins_in(without) == "refused"

    # Graft reads the file like any other: its outputs are the same, and its engine has the plugins.
    assert graft("verify", model, without).code == 0
    built = graft("build", without, "-o", tmp_path / "m.engine", "--target", "sm120", "--json")
    assert len(built.json["network"]["plugins"]) == 3
    again = tmp_path / "again.onnx"
    assert graft("convert", without, "-o", again, "--plugins", "always").code == 0
    assert len(onnx.load(again).functions) == 3


# The driver has no option for the layout of a network's inputs and outputs, so this script uses TensorRT directly.
FORMAT_SCRIPT = """
import sys
import tensorrt_rtx as trt
model, library, form = sys.argv[1:4]
logger = trt.Logger(trt.Logger.VERBOSE)
trt.get_plugin_registry().load_library(library)
builder = trt.Builder(logger)
network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
parser = trt.OnnxParser(network, logger)
assert parser.parse_from_file(model)
for tensor in (network.get_input(0), network.get_output(0)):
    tensor.allowed_formats = 1 << int(getattr(trt.TensorFormat, form))
config = builder.create_builder_config()
config.set_flag(trt.BuilderFlag.DIRECT_IO)
config.num_compute_capabilities = 1
config.set_compute_capability(trt.ComputeCapability.SM89, 0)
assert builder.build_serialized_network(network, config) is not None
"""


@pytest.fixture
def build_with_layout(tensorrt_environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    def build(model: pathlib.Path, library: pathlib.Path, form: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", FORMAT_SCRIPT, str(model), str(library), form]
        return subprocess.run(command, env=tensorrt_environment, capture_output=True, text=True, check=False)

    return build


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize(("dtype", "form"), [("f16", "HWC8"), ("bf16", "HWC8")])
def test_vector_layouts_build_without_a_reformat(
    graft_library: pathlib.Path,
    case_models: pathlib.Path,
    build_with_layout: Callable[..., subprocess.CompletedProcess[str]],
    dtype: str,
    form: str,
) -> None:
    """Only a plugin that supports the layout can build where the network's inputs and outputs have it and reformats
    are forbidden. (TensorRT-RTX is not offered CHW32, which it would pack and unpack around each plugin.)"""
    for model in listed(case_models, kind="plugin", dtype=dtype, layout=form.lower()):
        done = build_with_layout(case_models / model["file"], graft_library, form)
        assert done.returncode == 0, model["file"] + done.stderr[-2000:]


@pytest.mark.usefixtures("rtx")
def test_a_plugin_that_lacks_the_layout_does_not_build(
    tmp_path: pathlib.Path,
    fixture_library: pathlib.Path,
    build_with_layout: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """Shows that the previous test can fail: the fixture plugin supports only the linear layout."""
    model = models.fixture(tmp_path / "m.onnx", "FixtureIdentity")
    assert build_with_layout(model, fixture_library, "LINEAR").returncode == 0
    assert build_with_layout(model, fixture_library, "HWC8").returncode != 0
