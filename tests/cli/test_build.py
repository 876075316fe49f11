# graft build with the real TensorRT-RTX, which builds without a GPU.
import hashlib
import re
import shlex
import signal
import sys

import numpy as np
import pytest
from conftest import (
    DIGITS,
    DIGITS_SHAPES,
    PLUGIN_LIBRARY,
    SOURCE,
    interrupted_leaves_nothing,
    needs_plugin_library,
    program_alone,
    run_command,
)
from onnx import TensorProto, helper
from onnx_models import save, session_of, subgraph

TARGETS = ["--target", "sm120,sm121", "--shapes", DIGITS_SHAPES]
SHAPES = ["--shapes", DIGITS_SHAPES]
GUIDE = SOURCE / "docs" / "guide" / "build_options.md"


def printed_commands(text):
    """Returns the words of each line that is a command, alone or after "next"."""
    return [shlex.split(line) for line in re.findall(r"^(?:next)?\s*(graft [a-z]+ .*)$", text, re.MULTILINE)]


@needs_plugin_library
def test_the_engine_holds_the_plugin_and_says_why(graft, converted, tmp_path):
    engine = tmp_path / "digits.engine"
    answer = graft("build", converted, "-o", engine, *TARGETS, "--json", code=0)
    (plugin,) = answer.json["network"]["plugins"]
    assert plugin["name"] == "L2Normalize"
    assert "TensorRT" in plugin["why"]
    assert answer.json["targets"] == ["sm120", "sm121"]
    data = engine.read_bytes()
    assert len(data) == answer.json["bytes"]
    assert b"L2Normalize" in data and b"epsilon_mode" in data  # TensorRT stores plugin names and fields as plain bytes
    assert [p.name for p in tmp_path.iterdir()] == ["digits.engine"]
    (library,) = answer.json["plugin_libraries"]
    assert library["sha256"] == hashlib.sha256(PLUGIN_LIBRARY.read_bytes()).hexdigest()


def test_never_builds_native_layers_of_the_functions(graft, converted, tmp_path):
    engine = tmp_path / "digits.engine"
    answer = graft("build", converted, "-o", engine, *TARGETS, "--plugins", "never", "--json", code=0)
    assert answer.json["network"]["plugins"] == []
    assert answer.json["plugin_libraries"] == []
    assert b"epsilon_mode" not in engine.read_bytes()


@needs_plugin_library
def test_human_output_is_short_and_names_the_plugin(graft, converted, tmp_path):
    answer = graft("build", converted, "-o", tmp_path / "e", *TARGETS, code=0)
    assert len(answer.out.splitlines()) <= 12
    assert "L2Normalize 1" in answer.out
    assert "sm120, sm121" in answer.out


@needs_plugin_library
def test_gpus_that_the_plugins_have_no_code_for_are_named(graft, converted, tmp_path):
    (library,) = [each for each in graft("doctor", "--json").json["findings"] if each["name"] == "plugin library"]
    architectures = library["facts"]["cuda_architectures"]

    def has_code(gpu):
        return any(
            (number := int(each.split("-")[0])) <= gpu
            and (not each.endswith("-real") or number // 10 == gpu // 10)
            for each in architectures
        )  # fmt: skip

    for gpu in (80, 89, 120):
        target = ("--target", f"sm{gpu}", "--shapes", DIGITS_SHAPES)
        engine = tmp_path / f"{gpu}.engine"
        answer = graft("build", converted, "-o", engine, *target)
        assert answer.code == (0 if has_code(gpu) else 1), answer.err
        assert engine.is_file() == has_code(gpu)
        if has_code(gpu):
            continue
        assert f"no engine was written, because its plugins cannot run on sm{gpu}" in " ".join(answer.err.split())
        (command,) = printed_commands(answer.err)
        assert command[:2] == ["graft", "build"] and command[-2:] == ["--plugins", "never"]
        assert answer.err.index("--plugins never") < answer.err.index("`make wheel`")
        graft(*command[1:], code=0)
        assert engine.is_file()

    # Without --target, TensorRT-RTX builds for all of these GPUs.
    missing = ", ".join(f"sm{gpu}" for gpu in (80, 86, 89, 120) if not has_code(gpu))
    answer = graft("build", converted, "-o", tmp_path / "e", "--tensorrt", "rtx", "--shapes", DIGITS_SHAPES)
    assert answer.code == (1 if missing else 0), answer.err
    assert (tmp_path / "e").is_file() != bool(missing)
    words = f"cannot run on {missing}, for which TensorRT-RTX builds without a target: libgraft_plugins.so has code for"
    assert (words in " ".join(answer.err.split())) == bool(missing), answer.err


@needs_plugin_library
def test_a_node_without_code_for_its_plugin_is_left_to_the_host(graft, tmp_path):
    """TensorRT-RTX has no NonZero, so that the first remedy cuts the network. The printed command works."""
    (library,) = [each for each in graft("doctor", "--json").json["findings"] if each["name"] == "plugin library"]
    architectures = library["facts"]["cuda_architectures"]
    if any(int(each.split("-")[0]) < 90 for each in architectures):
        assert "plugins do not run on" not in library["text"]
        pytest.skip(f"the library may have code for sm89: {architectures}")
    assert "plugins do not run on sm75, sm80, sm86, sm87, sm89" in library["text"]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 3, 3, 3], [0.1] * 108)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("NonZero", ["c"], ["y"], name="places"),
    ]
    ends = [("y", TensorProto.INT64, [4, "found"])]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 3, 8, 8])], ends, [weight])
    engine = tmp_path / "m.engine"
    error = graft("build", model, "-o", engine, "--target", "RTX 4090", code=1).err
    assert "cannot run on sm89" in " ".join(error.split()) and not engine.exists()
    (command,) = printed_commands(error)
    assert command[:2] == ["graft", "convert"] and {"--plugins", "never", "--cut"} <= set(command)
    answer = graft(*command[1:], code=0)
    (following, *_) = printed_commands(answer.out)
    assert following[:2] == ["graft", "build"] and following[following.index("--target") + 1] == "sm89"
    graft(*following[1:], code=0)

    inspected = graft("inspect", model, "--target", "rtx4090", "--probe", "none")
    said = " ".join(inspected.err.split())
    assert "plugins do not run on sm89, and node 'places' (NonZero) needs one" in said
    (next_command, *_) = printed_commands(inspected.out)
    assert next_command[:2] == ["graft", "convert"] and {"--cut", "never", "sm89"} <= set(next_command)
    silent = graft("inspect", model, "--target", "sm120", "--probe", "none")
    assert "plugins do not run" not in silent.err and "--cut" not in silent.out


def test_products_are_targets_and_the_guide_lists_them(graft, tmp_path):
    answer = graft("build", DIGITS, "-o", tmp_path / "e", "--target", "NVIDIA GeForce RTX 4090,l4", "--json", *SHAPES)
    assert answer.code == 0 and answer.json["targets"] == ["sm89"]
    error = graft("build", DIGITS, "-o", tmp_path / "none", "--target", "riva128", code=2).err
    listed = re.findall(r"(sm\d+): ((?:[a-z0-9]+,?\s+)*[a-z0-9]+)$", error, re.MULTILINE)
    rows = re.findall(r"^\| `(sm\d+)` \|[^|]*\| (.*) \|$", GUIDE.read_text(), re.MULTILINE)
    assert [(target, products.split(", ")) for target, products in rows] == [
        (target, products.replace(",", " ").split()) for target, products in listed
    ]


def test_model_without_plugins_needs_no_library(graft, tmp_path):
    answer = graft("build", DIGITS, "-o", tmp_path / "e", *TARGETS, "--json", code=0)
    assert answer.json["network"]["plugins"] == []


def test_dynamic_input_without_shapes_is_explained(graft, tmp_path):
    answer = graft("build", DIGITS, "-o", tmp_path / "e", "--target", "sm120", code=2)
    assert "image" in answer.err
    assert "--shapes" in answer.err
    assert not list(tmp_path.iterdir())


def test_a_profile_that_the_network_cannot_take_is_an_error_and_not_a_warning(graft, tmp_path):
    sizes = helper.make_tensor("sizes", 7, [2], [1, 12])
    node = helper.make_node("Reshape", ["x", "sizes"], ["y"], name="frozen")
    model = save(tmp_path / "m.onnx", [node], [("x", ["batch", 3, 4])], [("y", None)], [sizes])
    answer = graft("build", model, "-o", tmp_path / "e", "--target", "sm120", "--shapes", "x=1x3x4..1x3x4..8x3x4")
    assert answer.code == 2
    assert "frozen" in answer.err
    assert "x=8x3x4" in answer.err
    assert "--shapes" in answer.err.splitlines()[-1]
    assert not (tmp_path / "e").exists()


def test_an_error_of_tensorrt_keeps_its_parts(graft, tmp_path):
    error = graft("build", DIGITS, "-o", tmp_path / "e", "--target", "sm120", "--json").json["error"]
    assert (error["kind"], error["failure"]) == ("bad_input", "shapes")
    assert error["facts"]["inputs"] == ["image"]
    message, next_step = error["message"].split("\n", 1)
    assert next_step == error["next_step"] and "--shapes 'image=" in next_step and "without --shapes: image" in message


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--shapes", "image=1x1x8x8..4x1x8x8"], "image"),
        (["--shapes", "picture=1x1x8x8"], "picture"),
        (["--shapes", "image=1x3x8x8"], "image"),
        (["--shapes", DIGITS_SHAPES, "--target", "sm90"], "sm90"),
        (["--shapes", DIGITS_SHAPES, "--target", "big"], "big"),
    ],
)
def test_wrong_options_are_named(graft, tmp_path, options, named):
    answer = graft("build", DIGITS, "-o", tmp_path / "e", *options, code=2)
    assert named in answer.err
    assert not list(tmp_path.iterdir())


def test_missing_tensorrt_names_the_command_that_installs_it(graft, tmp_path):
    answer = graft(
        "build", DIGITS, "-o", tmp_path / "e", *TARGETS, env={"GRAFT_PYTHON": sys.base_prefix + "/bin/python3"}, code=3
    )
    assert "pip install tensorrt-rtx-cu13" in answer.err
    assert not list(tmp_path.iterdir())


def test_missing_flavor(graft, tmp_path):
    answer = graft("build", DIGITS, "-o", tmp_path / "e", "--shapes", DIGITS_SHAPES, "--tensorrt", "full", code=3)
    assert "pip install tensorrt" in answer.err


def test_missing_plugin_library_is_named(graft, converted, tmp_path):
    missing = tmp_path / "folder" / "libnothing.so"
    answer = graft("build", converted, "-o", tmp_path / "e", *TARGETS, "--plugin-lib", missing, code=2)
    assert str(missing) in answer.err
    assert not list(tmp_path.iterdir())


def test_own_plugin_library_that_was_not_built(graft, converted, tmp_path):
    answer = run_command(program_alone(tmp_path), "build", converted, "-o", tmp_path / "e", *TARGETS, code=3)
    assert "libgraft_plugins.so" in answer.stderr
    assert "make build" in answer.stderr
    assert "--plugins never" in answer.stderr
    assert not (tmp_path / "e").exists()


def test_node_that_tensorrt_refuses_is_named(graft, tmp_path):
    node = helper.make_node("Det", ["x"], ["y"], name="determinant")
    model = save(tmp_path / "m.onnx", [node], [("x", [2, 2])], [("y", [])])
    answer = graft("build", model, "-o", tmp_path / "e", "--target", "sm120", code=1)
    assert "determinant" in answer.err
    assert not (tmp_path / "e").exists()


def test_a_refused_node_without_a_name_is_named_by_its_output(graft, tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Det", ["r"], ["determinant"])]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 2])], [("determinant", [])])
    answer = graft("build", model, "-o", tmp_path / "e", "--target", "sm120", code=1)
    assert "node 'determinant' (Det)" in answer.err
    assert "node ''" not in answer.err


def test_an_operator_with_a_slip_in_its_name_is_named(graft, tmp_path):
    model = save(tmp_path / "m.onnx", [helper.make_node("Rellu", ["x"], ["y"], name="n")], [("x", [2])], [("y", [2])])
    answer = graft("build", model, "-o", tmp_path / "e", "--target", "sm120", code=1)
    assert "If node 'n' (Rellu) is meant to be ONNX's Relu, set the node's operator type to Relu" in answer.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_leaves_nothing(tmp_path, number):
    # The network has enough layers that the build takes seconds.
    nodes, previous = [], "x"
    weight = helper.make_tensor("w", 1, [64, 64, 3, 3], [0.01] * (64 * 64 * 9))
    for i in range(60):
        nodes.append(helper.make_node("Conv", [previous, "w"], [f"c{i}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Sigmoid", [f"c{i}"], [f"s{i}"]))
        previous = f"s{i}"
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 64, 64, 64])], [(previous, None)], [weight])
    interrupted_leaves_nothing(
        tmp_path, number, "build", model, "-o", tmp_path / "out" / "e", "--target", "sm75,sm80,sm86,sm89,sm120", "-v"
    )


def built(graft, *options):
    return graft("build", *options, "--json", code=0)


TRTEXEC = [f"--onnx={DIGITS}", "--target", "sm120"]


def test_trtexec_spellings_build_the_same_engine(graft, tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    options = ["--shapes", DIGITS_SHAPES, "--memory", "workspace=512MiB", "--optimization-level", "1"]
    options += ["--input-format", "image=f32:linear"]
    mine = built(graft, DIGITS, "-o", ours, "--target", "sm120", *options).json
    answer = built(
        graft,
        *TRTEXEC,
        f"--saveEngine={theirs}",
        "--minShapes=image:1x1x8x8",
        "--optShapes=image:8x1x8x8",
        "--maxShapes=image:64x1x8x8",
        "--memPoolSize=workspace:512",
        "--builderOptimizationLevel=1",
        "--inputIOFormats=fp32:chw",
        "--noTF32",
        "--skipInference",
    )
    assert theirs.stat().st_size == ours.stat().st_size
    assert answer.json["options"] == mine["options"] | {"input_formats": ["fp32:chw"]}
    assert mine["options"]["memory"] == {"WORKSPACE": 512 << 20}
    assert answer.json["profiles"] == mine["profiles"] == [{"image": DIGITS_SHAPES.removeprefix("image=")}]
    for word in ("graft build", "--memory workspace:512MiB", f"--shapes '{DIGITS_SHAPES}'", "TF32 is off"):
        assert word in answer.err


def test_trtexec_profiles(graft, tmp_path):
    engine = tmp_path / "e"
    profiles = ["--profile=0", "--minShapes=image:1x1x8x8", "--maxShapes=image:4x1x8x8"]
    profiles += ["--profile=1", "--optShapes=image:16x1x8x8", "--minShapes=image:8x1x8x8", "--maxShapes=image:64x1x8x8"]
    answer = built(graft, *TRTEXEC, "-o", engine, *profiles)
    ranges = ["1x1x8x8..4x1x8x8..4x1x8x8", "8x1x8x8..16x1x8x8..64x1x8x8"]
    assert answer.json["profiles"] == [{"image": text} for text in ranges]
    options = [word for text in ranges for word in ("--profile", f"image={text}")]
    other = tmp_path / "other"
    built(graft, DIGITS, "-o", other, "--target", "sm120", *options)
    # not compared bit by bit: builds with two profiles are not reproducible
    assert other.stat().st_size == engine.stat().st_size


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--fp16", ["strongly typed", "graft quantize MODEL -o OUT --precision f16"]),
        ("--int8", ["strongly typed", "--precision int8"]),
        ("--best", ["strongly typed", "graft quantize"]),
        ("--loadEngine=e", ["trtexec --loadEngine"]),
        ("--useCudaGraph", ["trtexec --loadEngine"]),
        ("--sparsity=enable", ["--sparsity", "has no such option"]),
        ("--minShapes=8x8", ["8x8 is not NAME:SHAPE", "--shapes NAME=MIN..OPT..MAX"]),
    ],
)
def test_trtexec_options_that_say_nothing_here_are_explained(graft, tmp_path, option, words):
    answer = graft("build", DIGITS, "-o", tmp_path / "e", *TARGETS, option, "--json", code=2)
    assert answer.json["error"]["kind"] == "bad_input"
    for word in [option.split("=")[0], *words]:
        assert word in answer.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--memory", "workspace=2"], ["--memory workspace=2", "unit"]),
        (["--timing-cache", "x.cache"], ["--timing-cache", "1.7"]),
        (["--dla", "0"], ["--dla 0", "no DLA core"]),
        (["--optimization-level", "high"], ["--optimization-level"]),
        (["--input-format", "image=hwc8"], ["--input-format image=hwc8"]),
        (["--input-format", "image=f16:linear"], ["image is f32", "--typed-io"]),
        (["--exclude-lean-runtime"], ["--version-compatible"]),
        (["--embed-plugins"], ["--plugin-lib"]),
        (["--device", "77"], ["--device 77"]),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(graft, tmp_path, options, words):
    answer = graft("build", DIGITS, "-o", tmp_path / "e", *TARGETS, *options, code=2)
    for word in words:
        assert word in answer.err
    assert not list(tmp_path.iterdir())


def test_tf32_is_off_and_said(graft, tmp_path):
    answer = graft("build", DIGITS, "-o", tmp_path / "e", *TARGETS, code=0)
    assert "TF32" in answer.out and "off" in answer.out
    assert graft("build", DIGITS, "-o", tmp_path / "e", *TARGETS, "--json").json["options"] == {"tf32": False}
    assert "allowed" in graft("build", DIGITS, "-o", tmp_path / "e", *TARGETS, "--tf32").out


@needs_plugin_library
def test_the_library_is_inside_the_engine_if_asked_for(graft, converted, tmp_path):
    engine = tmp_path / "e"
    answer = built(graft, converted, "-o", engine, *TARGETS, "--embed-plugins")
    assert answer.json["plugin_libraries"][0]["embedded"]
    assert engine.stat().st_size > PLUGIN_LIBRARY.stat().st_size


@needs_plugin_library
def test_the_library_may_be_named(graft, converted, tmp_path):
    answer = graft("build", converted, "-o", tmp_path / "e", *TARGETS, "--plugin-lib", PLUGIN_LIBRARY, "--json", code=0)
    assert len(answer.json["plugin_libraries"]) == 1


@pytest.mark.parametrize("name", ["t", "other"])
def test_a_tensor_is_not_taken_for_that_of_a_branch(graft, tmp_path, name):
    """The branches have a tensor 't' of 2x3 for themselves, and the model may have another one."""
    branches = {
        key: subgraph(
            [helper.make_node(first, ["x"], ["t"]), helper.make_node(second, ["t"], [key])], [], [(key, [2, 3])]
        )
        for key, first, second in (("then_branch", "Relu", "Neg"), ("else_branch", "Abs", "Exp"))
    }
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["largest"], keepdims=0),
        helper.make_node("Greater", ["largest", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["chosen"], **branches),
        helper.make_node("Transpose", ["chosen"], [name], perm=[1, 0]),
        helper.make_node("Sigmoid", [name], ["y"]),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 3])], [("y", [3, 2])], {"zero": np.float32(0)})
    session = session_of(model)
    assert session.run(None, {"x": np.ones((2, 3), np.float32)})[0].shape == (3, 2)
    answer = graft("build", model, "-o", tmp_path / "m.engine", "--target", "sm120", "--json", code=0)
    assert answer.json["computed_wrongly"] == []


def test_a_node_that_this_release_computes_wrongly_is_named(graft, tmp_path):
    """TensorRT-RTX itself takes the batch for time: the engine's outputs have the shapes of layout = 0."""
    gru = helper.make_node("GRU", ["x", "w", "r"], ["y"], name="gru", hidden_size=3, layout=1)
    constants = {name: np.ones((1, 9, size), np.float32) for name, size in (("w", 5), ("r", 3))}
    model = save(tmp_path / "gru.onnx", [gru], [("x", [2, 6, 5])], [("y", [2, 6, 1, 3])], constants)
    answer = graft("build", model, "-o", tmp_path / "gru.engine")
    assert answer.code == 1, "the engine is written, and TensorRT computes other values than ONNX defines"
    assert (tmp_path / "gru.engine").stat().st_size > 0
    assert "2x1x6x3" in answer.out
    assert "node 'gru' (GRU): TensorRT-RTX" in answer.err
    assert "computes it wrongly: layout = 1" in answer.err
    (command,) = [
        line.partition("build the result: ")[2] for line in answer.err.splitlines() if "build the result: " in line
    ]
    assert graft(*command.split()[1:]).code == 0
    answer = graft("build", tmp_path / "gru.graft.onnx", "-o", tmp_path / "gru.engine", "--json")
    assert answer.json["computed_wrongly"] == []
    assert "wrongly" not in answer.err
    (node,) = graft("build", model, "-o", tmp_path / "gru.engine", "--json").json["computed_wrongly"]
    (judged,) = graft("inspect", model, "--json").json["nodes"]
    for key in ("node", "operator", "verdict", "cause"):
        assert node[key] == judged[key]
    assert node["advice"] == "`graft convert` rewrites it"
