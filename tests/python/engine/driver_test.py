# Tests the driver with the real TensorRT-RTX: engines that it builds, and messages about models that it cannot build.
from __future__ import annotations

import hashlib
import json
import os
import pathlib
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import models
import numpy as np
import onnx
import pytest
from conftest import drive, drive_forked, driver_environment
from onnx import helper, numpy_helper

pytestmark = pytest.mark.usefixtures("rtx")


def folder_holds(folder: pathlib.Path, *names: str) -> bool:
    """Returns whether a folder has exactly these files, and no temporary file."""
    return {p.name for p in folder.iterdir()} == set(names)


def test_probe_describes_every_flavor() -> None:
    result = drive("probe").result
    by_name = {flavor["flavor"]: flavor for flavor in result["flavors"]}
    assert set(by_name) == {"rtx", "full", "lean"}
    code = "import tensorrt_rtx; print(tensorrt_rtx.__version__)"
    version = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert by_name["rtx"]["version"] == version
    assert by_name["rtx"]["builder"] is by_name["rtx"]["parser"] is True
    assert {"current", "sm89", "sm120"} <= set(by_name["rtx"]["targets"])
    assert "sm90" not in by_name["rtx"]["targets"]
    assert isinstance(result["cuda"]["devices"], list)


def test_builds_for_two_gpu_generations(tmp_path: pathlib.Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    engine = tmp_path / "conv.engine"
    done = drive("build", model, "--output", engine, "--target", "sm89,sm120", "--network-info")
    result = done.result
    data = engine.read_bytes()
    assert result["bytes"] == len(data) > 1000
    assert result["sha256"] == hashlib.sha256(data).hexdigest()
    assert result["targets"] == ["sm89", "sm120"]
    assert result["tensorrt"]["flavor"] == "rtx"
    network = result["network"]
    assert network["inputs"] == [{"name": "x", "dtype": "f32", "shape": [1, 3, 8, 8]}]
    assert network["outputs"] == [{"name": "y", "dtype": "f32", "shape": [1, 4, 6, 6]}]
    assert network["plugins"] == []
    assert [layer["name"] for layer in network["layers"]] == ["conv", "sigmoid"]
    assert folder_holds(tmp_path, "conv.onnx", "conv.engine")
    fractions = [e["fraction"] for e in done.events if e["event"] == "progress"]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert any(e.get("phase") == "Building engine" for e in done.events)
    assert done.stderr == ""


def test_dynamic_shapes_need_and_take_a_range(tmp_path: pathlib.Path) -> None:
    model = models.dynamic(tmp_path / "dynamic.onnx")
    engine = tmp_path / "dynamic.engine"
    refused = drive("build", model, "--output", engine, code=2)
    assert "x is batchx3xheightxwidth" in refused.error["message"]
    assert "--shapes x=" in refused.error["next_step"]
    assert refused.error["inputs"] == ["x"]
    assert refused.logged() == ""  # the driver's own check came before TensorRT's
    given = "x=1x3x8x8..4x3x16x16..8x3x32x32"
    result = drive("build", model, "--output", engine, "--shapes", given).result
    assert result["profiles"] == [{"x": given.removeprefix("x=")}]
    assert result["network"]["outputs"][0]["shape"] == [-1, 3, -1, -1]


@pytest.mark.parametrize(
    ("given", "end", "word", "severity"),
    [
        ("x=1x3x4..1x3x4..8x3x4", "maximum", "maximum shapes of the profile, x=8x3x4:", "warning"),
        ("x=1x3x4..2x3x4..8x3x4", "optimum", "optimum shapes of the profile, x=2x3x4:", "error"),
    ],
)
def test_a_profile_that_does_not_go_through_the_network_is_an_error(
    tmp_path: pathlib.Path, given: str, end: str, word: str, severity: str
) -> None:
    model = models.frozen_batch(tmp_path / "m.onnx")
    done = drive("build", model, "--output", tmp_path / "m.engine", "--target", "sm89", "--shapes", given)
    assert (done.code, done.error["kind"], done.error["profile_end"]) == (2, "shapes", end)
    assert word in done.error["message"]
    assert "frozen" in done.error["message"]
    # TensorRT's own message: it only warns about the largest shape, and builds
    assert "frozen" in done.logged(severity)
    assert folder_holds(tmp_path, "m.onnx")
    assert drive("build", model, "--output", tmp_path / "m.engine", "--shapes", "x=1x3x4").code == 0


@pytest.mark.parametrize(
    ("ranges", "end", "word"),
    [
        (["x=4x3..4x3..8x3", "y=1x3..2x3..2x3"], None, "the ranges of the profile, x=4x3..4x3..8x3 y=1x3..2x3..2x3:"),
        (["x=1x3..2x3..8x3", "y=1x3..1x3..8x3"], "optimum", "the optimum shapes of the profile, x=2x3 y=1x3:"),
    ],
)
def test_ranges_that_contradict_each_other_are_an_error_of_the_shapes(
    tmp_path: pathlib.Path, ranges: list[str], end: str | None, word: str
) -> None:
    model = models.two_inputs(tmp_path / "m.onnx")
    flags = [flag for found in ranges for flag in ("--shapes", found)]
    done = drive("build", model, "--output", tmp_path / "m.engine", "--target", "sm89", *flags)
    assert (done.code, done.error["kind"], done.error["profile_end"]) == (2, "shapes", end)
    assert word in done.error["message"]
    assert "batch" in done.error["message"]
    assert "Dimensions with the same name" in done.error["next_step"]
    assert folder_holds(tmp_path, "m.onnx")


def test_a_plugin_gets_the_nodes_attributes(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    model = models.fixture(tmp_path / "m.onnx", "FixtureIdentity", gain=2.71875, axes=[5, 1234567])
    engine = tmp_path / "m.engine"
    result = drive("build", model, "--output", engine, "--plugin-library", fixture_library).result
    (plugin,) = result["network"]["plugins"]
    assert (plugin["layer"], plugin["name"], plugin["version"]) == ("custom", "FixtureIdentity", "1")
    assert (plugin["namespace"], plugin["generation"]) == ("fixture", "V3")
    data = engine.read_bytes()
    assert b"FixtureIdentity" in data
    assert struct.pack("<f", 2.71875) in data
    assert struct.pack("<2q", 5, 1234567) in data
    (library,) = result["plugin_libraries"]
    assert [creator["name"] for creator in library["creators"]][0] == "FixtureIdentity"
    assert library["sha256"] == hashlib.sha256(fixture_library.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("op_type", "signal_name"),
    [("FixtureAbort", "SIGABRT"), ("FixtureSegfault", "SIGSEGV"), ("FixtureFork", "SIGABRT")],
)
def test_a_crash_of_tensorrt_is_an_error_event(
    tmp_path: pathlib.Path, fixture_library: pathlib.Path, op_type: str, signal_name: str
) -> None:
    model = models.fixture(tmp_path / "m.onnx", op_type)
    engine = tmp_path / "m.engine"
    engine.write_bytes(b"the engine of yesterday")
    done = drive("build", model, "--output", engine, "--plugin-library", fixture_library, code=1)
    assert done.error["kind"] == "crash"
    assert done.error["signal"] == signal_name
    assert signal_name in done.error["message"]
    assert done.error["last_messages"]
    assert engine.read_bytes() == b"the engine of yesterday"
    assert folder_holds(tmp_path, "m.onnx", "m.engine")


def test_a_refused_build_passes_on_tensorrts_reason(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    model = models.fixture(tmp_path / "m.onnx", "FixtureRefuse")
    done = drive("build", model, "--output", tmp_path / "m.engine", "--plugin-library", fixture_library, code=1)
    assert done.error["kind"] == "build"
    assert "custom" in done.logged("error")
    assert folder_holds(tmp_path, "m.onnx")


def test_every_parser_error_names_its_node(tmp_path: pathlib.Path) -> None:
    nodes = [
        helper.make_node("Det", ["x"], ["a"], name="the_determinant"),
        helper.make_node("Missing", ["a"], ["y"], name="the_missing", domain="graft"),
    ]
    model = models.save(tmp_path / "m.onnx", nodes, [2, 3, 3])
    done = drive("build", model, "--output", tmp_path / "m.engine", code=1)
    assert done.error["kind"] == "parse"
    first = done.error["errors"][0]
    assert (first["node"], first["op_type"], first["code"]) == ("the_determinant", "Det", "UNSUPPORTED_NODE")
    assert "'the_determinant' (Det)" in done.error["message"]


def test_a_missing_plugin_says_so(tmp_path: pathlib.Path) -> None:
    model = models.custom(tmp_path / "m.onnx", "NoSuchPlugin")
    done = drive("parse", model, code=1)
    assert "NoSuchPlugin" in done.error["message"]
    assert "--plugin-library" in done.error["next_step"]


@pytest.mark.parametrize("kind", ["missing", "empty", "random", "truncated", "folder"])
def test_bad_models_are_bad_input(tmp_path: pathlib.Path, kind: str) -> None:
    model = tmp_path / "bad.onnx"
    if kind == "empty":
        model.touch()
    elif kind == "random":
        model.write_bytes(np.random.default_rng(1).bytes(5000))
    elif kind == "truncated":
        data = models.convolution(tmp_path / "bad.onnx").read_bytes()
        model.write_bytes(data[: len(data) // 2])
    elif kind == "folder":
        model.mkdir()
    engine = tmp_path / "out" / "bad.engine"
    engine.parent.mkdir()
    done = drive("build", model, "--output", engine, code=2)
    assert done.error["kind"] == "input"
    assert "bad.onnx" in done.error["message"]
    assert folder_holds(engine.parent)


def test_external_weights_are_found_beside_the_model(tmp_path: pathlib.Path) -> None:
    model = onnx.load(models.convolution(tmp_path / "conv.onnx"))
    onnx.save(model, tmp_path / "external.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").stat().st_size >= 4 * 3 * 3 * 3 * 4
    assert drive("build", tmp_path / "external.onnx", "--output", tmp_path / "m.engine").result["bytes"] > 1000
    (tmp_path / "weights.bin").unlink()
    (tmp_path / "m.engine").unlink()
    done = drive("build", tmp_path / "external.onnx", "--output", tmp_path / "m.engine")
    assert done.code in (1, 2)
    assert "weights.bin" in done.error["message"] + done.logged("error")
    assert not (tmp_path / "m.engine").exists()


@pytest.mark.parametrize(
    ("flags", "kind", "words"),
    [
        (["--target", "sm90"], "target", ["sm90", "sm89"]),
        (["--target", "bogus"], "target", ["bogus"]),
        (["--shapes", "z=1"], "shapes", ["'z'", "its inputs are: x"]),
        (["--shapes", "x=2x3x8x8"], "shapes", ["fixes at 1"]),
        (["--shapes", "nonsense"], "shapes", ["nonsense"]),
        (["--plugin-library", "/no/such/library.so"], "plugin_library", ["/no/such/library.so", "no such file"]),
        (["--memory", "workspace=-1MiB"], "option", ["--memory", "'-1MiB'"]),
        (["--memory", "workspace=2"], "option", ["--memory", "with a unit"]),
        (["--memory", "workspace=1MiB,workspace=2MiB"], "option", ["--memory", "specified twice"]),
        (["--memory", "bogus=1MiB"], "option", ["--memory bogus=1MiB", "tacticSharedMemory"]),
        (["--memory", "dlaSRAM=1MiB"], "option", ["--memory", "DLA"]),
        (["--optimization-level", "-1"], "usage", ["--optimization-level"]),
        (["--optimization-level", "most"], "usage", ["--optimization-level"]),
        (["--input-format", "x=bogus"], "option", ["--input-format x=bogus", "'bogus'"]),
        (["--input-format", "x=f8:linear"], "option", ["--input-format x=f8:linear", "'f8'"]),
        (["--input-format", "z=linear"], "option", ["'z'", "it has: x"]),
        (["--input-format", "linear,linear"], "option", ["2 formats for 1 inputs: x"]),
        (["--input-format", "x=linear", "--input-format", "linear"], "option", ["some formats have a name"]),
        (["--input-format", "x=linear", "--input-format", "x=hwc"], "option", ["specified twice"]),
        (["--input-format", "x=f16:linear"], "option", ["x is f32 in the model"]),
        (["--output-format", "y=hwc8"], "option", ["--output-format y=hwc8", "no such format"]),
        (["--exclude-lean-runtime"], "option", ["needs --version-compatible"]),
        (["--gpu-fallback"], "option", ["needs --dla"]),
        (["--embed-plugins"], "option", ["no plugin library"]),
        (["--dla", "0"], "option", ["--dla 0", "no DLA core"]),
        (["--profile", "x=1x3x8x8"], "shapes", ["no dynamic input"]),
        (["--profile", "nonsense"], "shapes", ["nonsense"]),
        (["--timing-cache", "no.cache"], "option", ["--timing-cache", "does not support this option"]),
        (["--bogus"], "usage", ["--bogus"]),
        (["--tensorrt", "bogus"], "usage", ["--tensorrt"]),
    ],
)
def test_wrong_use(tmp_path: pathlib.Path, flags: list[str], kind: str, words: list[str]) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    done = drive_forked("build", model, "--output", tmp_path / "m.engine", *flags, code=2)
    assert done.error["kind"] == kind
    for word in words:
        assert word in done.error["message"]
    assert folder_holds(tmp_path, "conv.onnx")


def test_current_without_a_gpu_is_refused(tmp_path: pathlib.Path) -> None:
    if drive("probe").result["cuda"]["devices"]:
        pytest.skip("this machine has a GPU")
    model = models.convolution(tmp_path / "conv.onnx")
    done = drive("build", model, "--output", tmp_path / "m.engine", "--target", "current", "--tensorrt", "rtx", code=2)
    assert "no GPU" in done.error["message"]


def test_output_folder_must_exist(tmp_path: pathlib.Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    done = drive("build", model, "--output", tmp_path / "no" / "m.engine", code=2)
    assert done.error["kind"] == "output"
    assert "mkdir" in done.error["next_step"]
    assert drive("build", model, "--output", tmp_path).error["kind"] == "output"


def test_only_regular_files_are_replaced(tmp_path: pathlib.Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = drive("build", model, "--output", pipe)
    assert (done.code, done.error["kind"]) == (2, "output")
    assert "a pipe" in done.error["message"]
    assert pipe.is_fifo()
    link = tmp_path / "link.engine"
    link.symlink_to("secret")
    (tmp_path / "secret").write_text("secret")
    assert drive("build", model, "--output", link).code == 0
    assert not link.is_symlink()
    assert link.stat().st_size > 1000
    assert (tmp_path / "secret").read_text() == "secret"


def test_a_full_disk_leaves_no_partial_file(tmp_path: pathlib.Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    done = drive("build", model, "--output", tmp_path / "m.engine", preexec_fn=full, code=2)
    assert done.error["kind"] == "output"
    assert folder_holds(tmp_path, "conv.onnx")


def test_missing_tensorrt_says_what_to_install(tmp_path: pathlib.Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    for arguments in (["build", model, "--output", tmp_path / "m.engine"], ["parse", model], ["plugins", model]):
        done = subprocess.run(
            [sys.executable, "-S", "-m", "graft.engine", *map(str, arguments)],  # -S: no site-packages
            capture_output=True,
            text=True,
            env=driver_environment(),
            check=False,
        )
        event = json.loads(done.stdout.splitlines()[-1])
        assert done.returncode == 3
        assert event["kind"] == "tensorrt_missing"
        assert "pip install tensorrt" in event["next_step"]


def test_verbose_passes_on_all_that_tensorrt_says(tmp_path: pathlib.Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    assert drive("parse", model).logged() == ""
    assert "ONNX IR version" in drive("parse", model, "--verbose").logged("info")


def test_workspace_limits_the_builder(tmp_path: pathlib.Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    done = drive("build", model, "--output", tmp_path / "m.engine", "--memory", "workspace=1MiB", code=1)
    assert "workspace" in done.logged("error")
    assert drive("build", model, "--output", tmp_path / "m.engine", "--memory", "workspace=1GiB").code == 0


def engine_of(tmp_path: pathlib.Path, model: pathlib.Path, *flags: object) -> tuple[bytes, dict[str, Any]]:
    result = drive("build", model, "--output", tmp_path / "m.engine", "--target", "sm89", *flags).result
    return (tmp_path / "m.engine").read_bytes(), result


def test_tf32_is_off_unless_it_is_allowed(tmp_path: pathlib.Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    without, result = engine_of(tmp_path, model)
    assert result["options"] == {"tf32": False}
    allowed, result = engine_of(tmp_path, model, "--tf32")
    assert result["options"] == {"tf32": True}
    assert without != allowed
    # builds are reproducible bit by bit, so the comparison is meaningful
    assert engine_of(tmp_path, model)[0] == without


def test_options_that_rtx_has_change_the_engine(tmp_path: pathlib.Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    plain, _ = engine_of(tmp_path, model)
    for flags in (
        ["--input-format", "x=hwc"],
        ["--input-format", "f32:chw32"],
        ["--output-format", "y=f32:hwc+linear"],
    ):
        assert engine_of(tmp_path, model, *flags)[0] != plain, flags
    for flags in (
        ["--optimization-level", "0"],
        ["--memory", "workspace=512MiB,tacticSharedMemory=64KiB,tacticDRAM=1GiB"],
        ["--weight-streaming"],
        ["--version-compatible", "--exclude-lean-runtime"],
        ["--profiling-verbosity", "layer_names_only"],
    ):
        assert engine_of(tmp_path, model, *flags)[0], flags


def test_an_engine_with_two_profiles(tmp_path: pathlib.Path) -> None:
    model = models.dynamic(tmp_path / "dynamic.onnx")
    small, large = "1x3x8x8..4x3x8x8..8x3x16x16", "16x3x8x8..16x3x8x8..32x3x16x16"
    two, result = engine_of(tmp_path, model, "--profile", f"x={small}", "--profile", f"x={large}")
    assert result["profiles"] == [{"x": small}, {"x": large}]
    assert len(two) > len(engine_of(tmp_path, model, "--shapes", f"x={small}")[0])
    done = drive("build", model, "--output", tmp_path / "m.engine", "--profile", f"x={small}", "--profile", "y=1")
    assert (done.code, done.error["kind"]) == (2, "shapes")
    assert "--profile y=1" in done.error["message"]


def test_a_version_compatible_engine_without_a_lean_runtime_says_what_to_add(tmp_path: pathlib.Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    done = drive("build", model, "--output", tmp_path / "m.engine", "--version-compatible", code=1)
    assert "--exclude-lean-runtime" in done.error["next_step"]


def test_the_plugin_library_is_in_the_engine_or_not(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    model = models.fixture(tmp_path / "m.onnx", "FixtureIdentity", gain=1.0, axes=[1])
    without, result = engine_of(tmp_path, model, "--plugin-library", fixture_library)
    assert [library["embedded"] for library in result["plugin_libraries"]] == [False]
    within, result = engine_of(tmp_path, model, "--plugin-library", fixture_library, "--embed-plugins")
    assert [library["embedded"] for library in result["plugin_libraries"]] == [True]
    assert fixture_library.read_bytes() in within
    assert fixture_library.read_bytes() not in without


def test_a_gpu_that_is_not_there(tmp_path: pathlib.Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx")
    done = drive("build", model, "--output", tmp_path / "m.engine", "--device", 63)
    assert (done.code, done.error["kind"]) == (2, "option")
    assert "--device 63" in done.error["message"]
    shown = driver_environment() | {"CUDA_VISIBLE_DEVICES": "0"}
    done = drive("build", model, "--output", tmp_path / "m.engine", "--device", 1, environment=shown)
    assert "CUDA_VISIBLE_DEVICES=0 shows 1 GPUs" in done.error["message"]
    assert folder_holds(tmp_path, "conv.onnx")


def test_an_operator_of_its_own_process_is_not_needed_for_help() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "graft.engine", "build", "--help"],
        capture_output=True,
        text=True,
        env=driver_environment(),
        check=True,
    )
    for option in ("--output", "--plugin-library", "--tensorrt", "--target", "--shapes", "--timing-cache"):
        assert option in done.stdout


@pytest.fixture(scope="module")
def unnamed_library(
    tmp_path_factory: pytest.TempPathFactory, compile_library: Callable[..., pathlib.Path]
) -> pathlib.Path:
    """Compiles the fixture plugins for namespace "", the only one that --plugin-override searches."""
    source = tmp_path_factory.mktemp("source") / "unnamed.cpp"
    text = (pathlib.Path(__file__).parent / "fixture_plugins.cpp").read_text()
    source.write_text(text.replace('return "fixture";', 'return "";'))
    return compile_library(source, "libunnamed_plugins.so")


def model_with_function(path: pathlib.Path, **attributes: str) -> pathlib.Path:
    body = [helper.make_node("Identity", ["x"], ["y"])]
    function = helper.make_function("graft", "FixtureIdentity", ["x"], ["y"], body, [helper.make_opsetid("", 17)])
    node = helper.make_node("FixtureIdentity", ["x"], ["y"], name="custom", domain="graft", **attributes)
    return models.save(path, [node], [1, 3, 8, 8], functions=[function])


def test_plugin_override_prefers_the_plugin_to_the_function(
    tmp_path: pathlib.Path, unnamed_library: pathlib.Path
) -> None:
    model = model_with_function(tmp_path / "m.onnx", plugin_version="1")
    native = drive("parse", model, "--plugin-library", unnamed_library).result["network"]
    assert native["plugins"] == []
    overridden = drive("parse", model, "--plugin-library", unnamed_library, "--plugin-override").result["network"]
    assert [plugin["name"] for plugin in overridden["plugins"]] == ["FixtureIdentity"]


def test_a_node_that_names_a_namespace_is_a_plugin_where_there_is_one_and_its_function_where_not(
    tmp_path: pathlib.Path, fixture_library: pathlib.Path, unnamed_library: pathlib.Path
) -> None:
    model = model_with_function(tmp_path / "m.onnx", plugin_namespace="fixture")

    def plugins(*flags: object) -> list[str]:
        return [plugin["name"] for plugin in drive("parse", model, *flags).result["network"]["plugins"]]

    assert plugins("--plugin-library", fixture_library) == ["FixtureIdentity"]
    assert plugins("--plugin-library", unnamed_library) == []
    assert plugins() == []


def test_int8_network_reports_graft_dtypes(tmp_path: pathlib.Path) -> None:
    scale = numpy_helper.from_array(np.array(0.1, np.float32), "s")
    zero = numpy_helper.from_array(np.array(0, np.int8), "z")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], name="dq"),
    ]
    model = models.save(tmp_path / "m.onnx", nodes, [1, 3, 8, 8], initializers=[scale, zero])
    layers = drive("parse", model, "--network-info").result["network"]["layers"]
    assert "i8" in [output["dtype"] for layer in layers for output in layer["outputs"]]
