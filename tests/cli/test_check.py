# Compares the verdicts of `graft inspect` and `graft convert` with the result of `graft build`, with the installed
# TensorRT.
import os
import pathlib
import re
import shlex
import sys

import numpy as np
import pytest
from conftest import DIGITS, PROGRAM, needs_plugin_library, program_alone, run_command
from onnx import AttributeProto, TensorProto, helper
from onnx_models import constant, save, subgraph

pytest.importorskip("tensorrt_rtx")

FLOAT, INT64, UINT8, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT8, TensorProto.BOOL
node, info = helper.make_node, helper.make_tensor_value_info
TARGET = ("--target", "sm120")
WITHOUT_TENSORRT = {"GRAFT_PYTHON": sys.base_prefix + "/bin/python3"}


def u8_between_casts(path):
    """Saves two Casts with u8 between them, which TensorRT's parser refuses and no rule for a single node covers."""
    nodes = [
        node("Greater", ["x", "zero"], ["b"]),
        node("Cast", ["b"], ["u"], to=UINT8),
        node("Cast", ["u"], ["y"], to=FLOAT),
    ]
    return save(path, nodes, [("x", [2, 4])], [("y", [2, 4])], {"zero": np.float32(0)})


def u8_table(path):
    """Saves a lookup in a constant u8 table, which TensorRT builds."""
    nodes = [node("Gather", ["table", "i"], ["u"]), node("Cast", ["u"], ["y"], to=FLOAT)]
    table = constant("table", np.arange(12, dtype=np.uint8).reshape(4, 3))
    return save(path, nodes, [("i", INT64, [5])], [("y", [5, 3])], [table])


def u8_picture(path):
    """A picture that is transposed before it becomes real. No node of what `graft convert` makes is better."""
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        node("Cast", ["t"], ["f"], to=FLOAT),
        node("Mul", ["f", "scale"], ["y"]),
    ]
    return save(path, nodes, [("x", UINT8, [1, 4, 4, 3])], [("y", None)], {"scale": np.float32(0.1)})


def axes_of_a_sum(path):
    """Axes that TensorRT's parser does not compute, and `graft convert` does."""
    nodes = [node("Add", ["zero", "one"], ["axes"]), node("ReduceSum", ["x", "axes"], ["y"])]
    constants = {"zero": np.array([0]), "one": np.array([1])}
    return save(path, nodes, [("x", [2, 3, 4])], [("y", None)], constants, opset=18)


def real_sizes(path):
    """A real input that becomes a size."""
    nodes = [node("Cast", ["n"], ["size"], to=INT64), node("Expand", ["x", "size"], ["y"])]
    return save(path, nodes, [("x", [1]), ("n", [1])], [("y", [None])])


def capital_letters(path):
    return save(
        path,
        [node("Einsum", ["a", "b"], ["y"], equation="BIJ,BJK->BIK")],
        [("a", [2, 3, 4]), ("b", [2, 4, 5])],
        [("y", [2, 3, 5])],
    )


def places_of_ones(path):
    """Saves NonZero, which TensorRT-RTX runs only as Graft's plugin."""
    return save(path, [node("NonZero", ["x"], ["y"])], [("x", [2, 4])], [("y", INT64, [2, None])])


def places_in_a_loop(path):
    """Saves a Loop whose body counts positions that depend on its iteration; the network computes nothing else."""
    inner = [
        node("Cast", ["i"], ["step"], to=FLOAT),
        node("Greater", ["x", "step"], ["mask"]),
        node("NonZero", ["mask"], ["places"]),
        node("Shape", ["places"], ["counts"]),
        node("Gather", ["counts", "one"], ["count"]),
        node("Add", ["sum", "count"], ["sum_out"]),
        # The number of iterations depends on data, so that the Loop is not unrolled.
        node("ReduceMax", ["x"], ["largest"], keepdims=0),
        node("Equal", ["largest", "largest"], ["c_out"]),
    ]
    ends = [("i", INT64, []), ("c", BOOL, []), ("sum", INT64, [])]
    body = subgraph(inner, ends, [("c_out", BOOL, []), ("sum_out", INT64, [])])
    constants = {"n": np.int64(4), "one": np.int64(1), "zero": np.int64(0)}
    return save(path, [node("Loop", ["n", "", "zero"], ["y"], body=body)], [("x", [10])], [("y", INT64, [])], constants)


def forget_gate(path):
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(1, 12, 4)).astype(np.float32), "r": rng.normal(size=(1, 12, 3)).astype(np.float32)}
    nodes = [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3, input_forget=1)]
    return save(path, nodes, [("x", [5, 2, 4])], [("y", [5, 1, 2, 3])], weights)


def growing_tensor(path):
    """Saves a Loop whose state has one more row after each iteration."""
    inner = [node("Concat", ["h", "h0"], ["h_out"], axis=0), node("Identity", ["c"], ["c_out"])]
    ends = [("i", INT64, []), ("c", BOOL, []), ("h", None)]
    body = subgraph(inner, ends, [("c_out", BOOL, []), ("h_out", None)])
    nodes = [node("Loop", ["n", "go", "h0"], ["y"], body=body)]
    return save(path, nodes, [("h0", [1, 4])], [("y", [None, 4])], {"n": np.int64(3), "go": np.bool_(True)})


def nvidias_suppression(path, op_type="EfficientNMS_TRT"):
    """Saves a node of an NVIDIA plugin that TensorRT-RTX does not have, and that Graft replaces."""
    made = node(
        op_type,
        ["boxes", "scores"],
        ["n", "b", "s", "c"],
        domain="TRT",
        plugin_version="1",
        max_output_boxes=10,
    )
    outputs = [
        ("n", TensorProto.INT32, [1, 1]),
        ("b", [1, 10, 4]),
        ("s", [1, 10]),
        ("c", TensorProto.INT32, [1, 10]),
    ]
    return save(path, [made], [("boxes", [1, 20, 4]), ("scores", [1, 20, 3])], outputs, domains=["TRT"])


def somebodys_suppression(path):
    """Saves a node of a plugin that neither TensorRT-RTX nor Graft has."""
    return nvidias_suppression(path, "SomebodysSuppression_TRT")


def sizes_as_inputs(path):
    nodes = [node("Reshape", ["x", "shape"], ["y"])]
    return save(path, nodes, [("x", [2, 3, 4]), ("shape", INT64, [2])], [("y", None)])


def parts_as_inputs(path):
    nodes = [node("Split", ["x", "parts"], ["y", "z"], axis=1)]
    return save(path, nodes, [("x", [2, 6]), ("parts", INT64, [2])], [("y", None), ("z", None)])


def two_named_sizes(path):
    nodes = [node("Transpose", ["b"], ["t"], perm=[1, 0]), node("Add", ["a", "t"], ["y"])]
    return save(path, nodes, [("a", ["rows", "columns"]), ("b", ["columns", "rows"])], [("y", ["rows", "columns"])])


NETWORKS = {
    "u8_between_casts": (u8_between_casts, False),
    "u8_table": (u8_table, True),
    "u8_picture": (u8_picture, None),
    "axes_of_a_sum": (axes_of_a_sum, True),
    "real_sizes": (real_sizes, False),
    "capital_letters": (capital_letters, None),  # a rewrite may rename them
    "forget_gate": (forget_gate, None),
    "growing_tensor": (growing_tensor, False),
    "nvidias_suppression": (nvidias_suppression, None),
    "somebodys_suppression": (somebodys_suppression, None),
    "sizes_as_inputs": (sizes_as_inputs, True),
    "parts_as_inputs": (parts_as_inputs, True),
    "two_named_sizes": (two_named_sizes, True),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_exit_codes_agree_with_build(graft, tmp_path, name):
    make, _ = NETWORKS[name]
    model, converted = make(tmp_path / "m.onnx"), tmp_path / "c.onnx"
    inspected = graft("inspect", model, *TARGET, "--json")
    told = graft("convert", model, "-o", converted, *TARGET, "--no-prove", "--json")
    assert inspected.json["answered_by"].startswith("TensorRT-RTX"), inspected.json["answered_by"]

    def build(file, shapes):
        flags = [flag for shape in shapes for flag in ("--shapes", shape)]
        return graft("build", file, "-o", tmp_path / "e", *TARGET, *flags).code

    if told.code == 0:
        assert build(converted, told.json["shapes"]) == 0
    if inspected.code == 0 and inspected.json["counts"]["lowered"]:
        assert told.code == 0, "what convert makes builds, it says"
    else:
        assert (inspected.code == 0) == (build(model, inspected.json["shapes"]) == 0)
    assert inspected.json["built"] == (inspected.code == 0)
    assert graft("inspect", model, "--probe", "none").code == inspected.code, "the rules agree"


def test_nothing_is_in_the_way_is_said_of_a_model_that_was_built(graft, tmp_path):
    built = graft("inspect", DIGITS, *TARGET, code=0)
    assert "TensorRT built this model" in built.out
    assert "TensorRT-RTX 1.7.1.116 built the model for image=1x1x8x8..4x1x8x8..8x1x8x8" in " ".join(built.out.split())
    assert f"--shapes {'image=1x1x8x8..4x1x8x8..8x1x8x8'!r}" in built.out

    by_rules = [
        (graft("inspect", DIGITS, "--probe", "none"), "only the rules were requested"),
        (graft("inspect", DIGITS, "--for", "rtx-1.5"), "another release was requested"),
        (graft("inspect", DIGITS, *TARGET, env=WITHOUT_TENSORRT), "no TensorRT with a builder is installed"),
    ]
    for answer, why in by_rules:
        assert answer.code == 0, answer.err
        text = " ".join(answer.out.split())
        assert "TensorRT built this model" not in text
        assert "TensorRT runs it as it is" not in text and "no rule refuses it; judged without TensorRT" in text
        assert "nothing was built" in text and why in text, text

    short = graft("inspect", DIGITS, *TARGET, "--max-seconds", "0.01", "--json")
    assert short.code == 1, "exit code 0 says that it builds"
    assert not short.json["built"] and "did not build it: the budget of 0.01 s is spent" in short.json["answered_by"]


def test_the_report_says_who_judged(graft, tmp_path):
    page = tmp_path / "page.html"
    assert graft("inspect", DIGITS, *TARGET, "--report", page).code == 0
    assert "TensorRT-RTX 1.7.1.116 built the model" in page.read_text()


def test_convert_checks_its_result(graft, tmp_path):
    model, converted = u8_between_casts(tmp_path / "m.onnx"), tmp_path / "c.onnx"
    unchecked = graft("convert", model, "-o", converted, "--no-check")
    assert "not checked with TensorRT" in unchecked.out
    told = graft("convert", model, "-o", converted, *TARGET)
    assert converted.is_file()
    assert (told.code == 0) == (graft("build", converted, "-o", tmp_path / "e", *TARGET).code == 0)

    good = graft("convert", DIGITS, "-o", converted, *TARGET, "--json", code=0)
    assert good.json["built"] and good.json["runs"]
    missing = graft("convert", DIGITS, "-o", converted, *TARGET, env=WITHOUT_TENSORRT, code=0)
    assert "not checked with TensorRT" in missing.out and "no TensorRT with a builder is installed" in " ".join(
        missing.out.split()
    )
    short = graft("convert", DIGITS, "-o", converted, *TARGET, "--max-seconds", "0.01")
    assert short.code == 1, "exit code 0 promises an engine"


@pytest.mark.parametrize("command", ["inspect", "convert", "build"])
@pytest.mark.parametrize("name", ["rtx", "full"])
def test_a_tensorrt_that_is_named_and_missing_is_a_missing_tool(graft, tmp_path, command, name):
    output = [] if command == "inspect" else ["-o", tmp_path / "out"]
    answer = graft(command, DIGITS, *output, "--tensorrt", name, env=WITHOUT_TENSORRT, code=3)
    assert f"--tensorrt {name}: the Python module" in answer.err
    assert "Install it with: " in answer.err


def test_what_installs_a_missing_tensorrt_is_a_sentence_of_its_own(graft):
    answer = graft("inspect", DIGITS, *TARGET, env=WITHOUT_TENSORRT, code=0)
    assert "tensorrt_rtx and tensorrt). Install one with: " in " ".join(answer.out.split())


def test_convert_without_plugins_is_checked_without_them(graft, tmp_path):
    model, converted = places_of_ones(tmp_path / "m.onnx"), tmp_path / "c.onnx"
    never = graft("convert", model, "-o", converted, *TARGET, "--plugins", "never", "--json")
    assert never.code == 1 and not never.json["built"]
    assert graft("build", converted, "-o", tmp_path / "e", *TARGET, "--plugins", "never").code == 1
    by_rules = graft("convert", model, "-o", converted, "--plugins", "never", "--no-check", "--json")
    assert by_rules.code == 1 and by_rules.json["unsupported"][0]["operator"] == "NonZero"
    usual = graft("convert", model, "-o", converted, *TARGET, "--json")
    assert usual.code == 0 and usual.json["built"]
    assert graft("build", converted, "-o", tmp_path / "e", *TARGET).code == 0


def test_no_cut_is_suggested_that_leaves_tensorrt_nothing(graft, tmp_path):
    model, converted = places_in_a_loop(tmp_path / "m.onnx"), tmp_path / "c.onnx"
    inspected = graft("inspect", model, *TARGET, code=1)
    assert "--cut" not in inspected.out
    assert "run it in another runtime, such as ONNX Runtime" in " ".join(inspected.out.split())
    assert graft("convert", model, "-o", converted, "--cut", *TARGET).code == 1
    assert "now runs" not in graft("convert", model, "-o", converted, *TARGET).out


def test_inspect_and_convert_recommend_the_same_cut(graft, tmp_path):
    """The advice on the node does not name the cut, which is possible nevertheless."""
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Cast", ["r"], ["u"], to=UINT8),
        node("Abs", ["u"], ["y"]),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [3])], [("y", UINT8, [3])])
    inspected = graft("inspect", model, *TARGET)
    converted = graft("convert", model, "-o", tmp_path / "c.onnx", *TARGET)
    for answer in (inspected, converted):
        assert answer.code == 1, answer.err
        assert " --cut" in answer.out.partition("\nnext")[2], answer.out


def whole_in_a_function(path, *last):
    """Saves a network that is the call of one function: a convolution and the operators `last`."""
    body, value = [node("Conv", ["a", "b"], ["v"], pads=[1, 1, 1, 1])], "v"
    for operator in last:
        body.append(node(operator, [value], [value + "v"], name=operator.lower()))
        value += "v"
    function = helper.make_function("own", "Whole", ["a", "b"], [value], body, [helper.make_opsetid("", 17)])
    call = node("Whole", ["x", "w"], ["y"], name="whole", domain="own")
    weight = constant("w", np.full((4, 3, 3, 3), 0.1, np.float32))
    x = ("x", ["n", 3, 8, 8])
    return save(path, [call], [x], [("y", None)], [weight], functions=[function], domains=["own"])


def det_in_a_function(path):
    """Saves the call of a function with Det alone, so that no arithmetic is left for TensorRT."""
    body = [node("Identity", ["a"], ["r"]), node("Det", ["r"], ["b"], name="det")]
    function = helper.make_function("own", "Whole", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    call = node("Whole", ["x"], ["y"], name="whole", domain="own")
    return save(path, [call], [("x", [1, 8, 8])], [("y", None)], functions=[function], domains=["own"])


@pytest.mark.parametrize("judge", [(), ("--probe", "parser"), ("--probe", "none"), ("--for", "rtx-1.6")])
@pytest.mark.parametrize(
    ("make", "is_cut"),
    [
        (lambda path: whole_in_a_function(path, "Det"), True),
        (lambda path: whole_in_a_function(path, "Relu", "Det", "Exp"), True),
        (lambda path: whole_in_a_function(path, "Unique"), True),
        (det_in_a_function, False),
    ],
)
def test_a_cut_through_a_function_is_what_convert_does(graft, tmp_path, make, is_cut, judge):
    """A conversion inlines functions, so a cut may go through a body of which TensorRT does not run all nodes."""
    model = make(tmp_path / "m.onnx")
    inspected = graft("inspect", model, "--json", *(judge or TARGET), code=1)
    [step] = inspected.json["next"]
    cut = graft("convert", model, "-o", tmp_path / "c.onnx", "--cut", "--json", *(judge or TARGET))
    assert (cut.json["cut"] is not None) == is_cut
    assert step["command"].startswith(f"graft convert {model} -o ") == is_cut, step
    assert ("--cut" in step["command"]) == is_cut, step
    assert ("cannot be cut" in step["why"]) != is_cut, step
    [call] = [each for each in inspected.json["nodes"] if each["node"] == "whole"]
    assert ("--cut" in call["advice"]) == is_cut, call


def test_a_cut_through_a_function_whose_node_only_tensorrt_refuses(graft, tmp_path):
    """No rule for a single node covers u8 between two Casts."""
    body = [
        node("Conv", ["a", "b"], ["v"], pads=[1, 1, 1, 1]),
        node("Greater", ["v", "c"], ["g"]),
        node("Cast", ["g"], ["u"], to=UINT8),
        node("Cast", ["u"], ["o"], to=FLOAT),
    ]
    function = helper.make_function("own", "Whole", ["a", "b", "c"], ["o"], body, [helper.make_opsetid("", 17)])
    call = node("Whole", ["x", "w", "zero"], ["y"], name="whole", domain="own")
    weights = [constant("w", np.full((4, 3, 3, 3), 0.1, np.float32)), constant("zero", np.float32(0))]
    ports = [("x", [1, 3, 8, 8])], [("y", None)]
    model = save(tmp_path / "m.onnx", [call], *ports, weights, functions=[function], domains=["own"])
    [step] = graft("inspect", model, "--json", *TARGET).json["next"]
    cut = graft("convert", model, "-o", tmp_path / "c.onnx", "--cut", "--json", *TARGET)
    assert ("--cut" in step["command"]) == (cut.json["cut"] is not None), step


def places_in_a_branch(path):
    """Saves an If with NonZero in one branch, whose sizes come from data there alone."""
    yes = [
        node("NonZero", ["c"], ["z"], name="places"),
        node("Cast", ["z"], ["f"], to=FLOAT),
        node("ReduceSum", ["f"], ["t"], keepdims=0),
    ]
    no = [node("ReduceSum", ["c"], ["e"], keepdims=0)]
    branches = {
        "then_branch": subgraph(yes, [], [("t", [])]),
        "else_branch": subgraph(no, [], [("e", [])]),
    }
    nodes = [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), node("If", ["go"], ["y"], name="if", **branches)]
    weight = constant("w", np.full((4, 3, 3, 3), 0.1, np.float32))
    return save(path, nodes, [("x", [1, 3, 8, 8]), ("go", BOOL, [])], [("y", [])], [weight])


def test_a_plugin_in_a_branch_is_named_where_it_does_not_build(graft, tmp_path):
    """TensorRT builds NonZero in the main graph, and data-dependent sizes nowhere else."""
    model = places_in_a_branch(tmp_path / "m.onnx")
    assert graft("build", model, "-o", tmp_path / "e", *TARGET).code == 1
    found = {each["node"]: each for each in graft("inspect", model, *TARGET, "--json").json["nodes"]}
    assert found["places"]["verdict"] == "fails" and found["places"]["cause"] == "plugin_in_body"
    assert found["places"]["reason"].startswith(
        "NonZero 1 of namespace graft, from libgraft_plugins.so, computes sizes"
    )
    assert "builds only in the main graph, and not in a branch of node 'if' (If)" in found["places"]["reason"]
    assert (
        found["places"]["advice"]
        == "compute the node outside of the body; or graft convert --cut leaves the node to the host"
    )
    assert found["if"]["verdict"] == "fails"
    assert found["if"]["reason"].startswith("inside it, node 'places' (NonZero): NonZero 1 of namespace graft")
    assert found["if"]["advice"] == found["places"]["advice"]
    cut = graft("convert", model, "-o", tmp_path / "c.onnx", *TARGET, "--cut", "--json")
    assert cut.code == 0 and {each["node"] for each in cut.json["cut"]["causes"]} == {"if", "places"}


@needs_plugin_library
def test_no_build_without_plugins_is_suggested_that_fails(graft, tmp_path):
    """TensorRT-RTX has no NonZero, and Graft's operators have functions."""
    facts = {each["name"]: each["facts"] for each in graft("doctor", "--json").json["findings"]}
    missing = [
        gpu
        for gpu in ("sm75", "sm80", "sm86", "sm89", "sm120")
        if graft("build", places_of_ones(tmp_path / "m.onnx"), "-o", tmp_path / "e", "--target", gpu).code != 0
    ]
    if not missing:
        pytest.skip(f"the library has code for all GPUs: {facts['plugin library']['cuda_architectures']}")
    target = ("--target", missing[0])
    norm = node("L2Normalize", ["x"], ["y"], name="norm", domain="graft", axes=[1])
    alone = save(tmp_path / "alone.onnx", [norm], [("x", [4, 8])], [("y", [4, 8])], domains=["graft"])
    converted = tmp_path / "converted.onnx"
    assert graft("convert", alone, "-o", converted, "--plugins", "always", "--no-check").code == 0
    for model, suggests in ((tmp_path / "m.onnx", False), (alone, False), (converted, True)):
        answer = graft("build", model, "-o", tmp_path / "e", *target)
        assert answer.code == 1 and "no engine was written" in answer.err, answer.err
        assert bool(re.search("graft build .*--plugins never", answer.err)) == suggests, answer.err
        assert bool(re.search("graft convert .*--plugins never.* --cut", answer.err)) != suggests, answer.err
        assert ("without plugins TensorRT does not run node" in " ".join(answer.err.split())) != suggests, answer.err
        without = graft("build", model, "-o", tmp_path / "e", *target, "--plugins", "never")
        assert (without.code == 0) == suggests, without.err


def test_no_build_without_plugins_is_suggested_for_want_of_the_library(tmp_path):
    model = places_of_ones(tmp_path / "m.onnx")
    package = pathlib.Path(PROGRAM).parent.parent / "python"
    command = [program_alone(tmp_path), "build", model, "-o", tmp_path / "e", *TARGET]
    answer = run_command(*command, code=3, env={**os.environ, "PYTHONPATH": str(package)})
    assert "the plugin library does not exist" in answer.stderr
    assert "--plugins never" not in answer.stderr
    assert "without plugins TensorRT does not run node 'y' (NonZero)" in " ".join(answer.stderr.split())


@pytest.mark.parametrize("is_chosen", [True, False])
def test_a_python_that_does_not_have_the_engine_driver_is_named(tmp_path, is_chosen):
    """The program alone has no folder with the package, as the program of a wheel has none."""
    python = sys.base_prefix + "/bin/python3"
    environment = {**os.environ, "PYTHONPATH": "", "GRAFT_PYTHON": python if is_chosen else ""}
    program = program_alone(tmp_path)
    inspected = run_command(program, "inspect", DIGITS, code=0, env=environment).stdout
    built = run_command(program, "build", DIGITS, "-o", tmp_path / "e", code=3, env=environment).stderr
    for text in (inspected, built):
        said = " ".join(text.split())
        assert "cannot import graft.engine, Graft's engine driver: No module named 'graft'" in said
        assert "Traceback" not in said and "runpy" not in said
        assert "set PYTHONPATH to the folder that contains" in said
        assert ("Unset GRAFT_PYTHON, set it" in said) == is_chosen
        assert (f"{python} cannot import" in said) or not is_chosen


TYPES_THAT_TENSORRT_JUDGES = {
    "f32 and i64": ("Add", [FLOAT, INT64], False),
    "f32 and f64": ("Add", [FLOAT, TensorProto.DOUBLE], True),
    "i64": ("Sigmoid", [INT64], False),
    "i8": ("Erf", [TensorProto.INT8], True),
    "f64 and f32": ("MatMul", [TensorProto.DOUBLE, FLOAT], True),
    "bool": ("Add", [BOOL, BOOL], False),
}


@pytest.mark.parametrize("case", TYPES_THAT_TENSORRT_JUDGES)
def test_types_that_onnx_does_not_allow_are_refused_unless_tensorrt_builds_them(graft, tmp_path, case):
    """`graft build` shows what TensorRT builds."""
    operator, types, is_built = TYPES_THAT_TENSORRT_JUDGES[case]
    inputs = [info(name, kind, [2, 2]) for name, kind in zip("ab", types, strict=False)]
    made = node(operator, [each.name for each in inputs], ["y"], name="n")
    model = save(tmp_path / "m.onnx", [made], inputs, [("y", types[0], [2, 2])])
    built = graft("build", model, "-o", tmp_path / "e", *TARGET)
    assert built.code == (0 if is_built else 2), built.err
    assert is_built or "Insert a Cast" in built.err
    converted = tmp_path / "c.onnx"
    for command in (
        ("inspect", model, *TARGET),
        ("inspect", model, *TARGET, "--probe", "parser"),
        ("convert", model, "-o", converted, *TARGET, "--no-prove"),
    ):
        answer = graft(*command)
        if is_built:
            # The parser alone does not know whether a type builds that no rule covers.
            assert answer.code in ((0, 1) if "parser" in command else (0,)), answer.err
            assert "error" not in answer.err
        elif command[0] == "inspect":
            assert answer.code == 1, answer.err
            assert f"m.onnx: node 'n' ({operator}): input" in " ".join(answer.out.split())
        else:
            assert answer.code == 2, answer.out
            assert f"m.onnx: node 'n' ({operator}): input" in answer.err and "Insert a Cast" in answer.err
    assert converted.is_file() == is_built


@pytest.mark.parametrize("names", [("", ""), ("p", "p"), ("p", "q")])
def test_a_node_with_branches_is_not_taken_for_another_one(graft, tmp_path, names):
    """`graft build` shows that TensorRT builds Add of f32 and f64, and not of f32 and i64."""

    def adding(path, *added):
        inputs, nodes = [info("x", FLOAT, [4]), info("c", BOOL, [])], []
        for name, kind in added:
            i = len(nodes)
            inputs.append(info(f"z{i}", kind, [4]))
            branches = {
                "then_branch": node("Add", ["x", f"z{i}"], [f"a{i}"], name=f"add{i}"),
                "else_branch": node("Abs", ["x"], [f"b{i}"]),
            }
            graphs = {key: subgraph([made], [], [(made.output[0], [4])]) for key, made in branches.items()}
            nodes.append(node("If", ["c"], [f"y{i}"], name=name, **graphs))
        return save(path, nodes, inputs, [(f"y{i}", [4]) for i in range(len(nodes))])

    accepted, refused = (names[0], TensorProto.DOUBLE), (names[1], INT64)
    assert graft("build", adding(tmp_path / "a.onnx", accepted), "-o", tmp_path / "e", *TARGET).code == 0
    assert graft("build", adding(tmp_path / "b.onnx", refused), "-o", tmp_path / "e", *TARGET).code != 0
    model = adding(tmp_path / "m.onnx", accepted, refused)
    answer = graft("convert", model, "-o", tmp_path / "c.onnx", *TARGET, "--no-prove", code=2)
    assert "m.onnx: node 'add1' (Add): inputs 0 and 1 of Add must have the same type" in answer.err


def test_a_graph_without_outputs_is_refused_where_tensorrt_judges(graft, tmp_path):
    model = save(tmp_path / "m.onnx", [node("Relu", ["x"], ["y"])], [("x", [2])], [])
    converted = tmp_path / "c.onnx"
    assert graft("build", model, "-o", tmp_path / "e", *TARGET).code != 0
    for answer in (graft("inspect", model, *TARGET), graft("convert", model, "-o", converted, *TARGET)):
        assert answer.code == 2, answer.out
        assert "m.onnx: the graph has no outputs" in answer.err
    assert not converted.exists()


def advice_of(graft, model, tmp_path):
    """Returns the advice of inspect and of convert on the only node that does not run."""
    [inspected] = [n for n in graft("inspect", model, *TARGET, "--json").json["nodes"] if n["verdict"] == "refused"]
    converted = graft("convert", model, "-o", tmp_path / "c.onnx", *TARGET, "--json").json
    [kept] = converted["unsupported"]
    return inspected["advice"], kept["advice"]


def test_advice_names_the_cut_only_where_the_network_can_be_cut(graft, tmp_path):
    pool = node("MaxRoiPool", ["t", "r"], ["y"], pooled_shape=[2, 2])
    regions = {"r": np.array([[0, 1, 1, 5, 5]], np.float32)}
    alone = save(tmp_path / "alone.onnx", [pool], [("t", [1, 2, 8, 8])], [("y", None)], regions)
    for advice in advice_of(graft, alone, tmp_path):
        assert "--cut" not in advice
        assert "write an operator" in advice
    nodes = [node("Exp", ["x"], ["t"]), pool]
    after = save(tmp_path / "after.onnx", nodes, [("x", [1, 2, 8, 8])], [("y", None)], regions)
    for advice in advice_of(graft, after, tmp_path):
        assert "graft convert --cut leaves the node to the host; or write an operator" in advice


def test_advice_says_why_convert_does_not_rewrite_a_node(graft, tmp_path):
    rng = np.random.default_rng(0)
    weights = [constant(n, rng.normal(size=(1, 12, size)).astype(np.float32)) for n, size in (("w", 4), ("r", 3))]
    activations = ["Tanh", "Tanh", "Tanh"]
    nodes = [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3, input_forget=1, activations=activations)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [5, 2, 4])], [("y", [5, 1, 2, 3])], weights)
    for advice in advice_of(graft, model, tmp_path):
        assert "layers that TensorRT has: the activation of its gates is Tanh" in advice


def test_advice_of_convert_says_what_is_left_to_do(graft, tmp_path):
    """No rule covers i16 between two Casts, and no pass rewrites it."""
    nodes = [
        node("Greater", ["x", "zero"], ["b"]),
        node("Cast", ["b"], ["i"], to=TensorProto.INT16),
        node("Cast", ["i"], ["y"], to=FLOAT),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 4])], [("y", [2, 4])], {"zero": np.float32(0)})
    told = graft("convert", model, "-o", tmp_path / "c.onnx", *TARGET, "--json").json
    advice = [each["advice"] for each in told["unsupported"]]
    advice += [each["advice"] for each in graft("inspect", model, *TARGET, "--json").json["nodes"] if each["advice"]]
    assert advice
    for each in advice:
        assert "rewrites" not in each and "graft convert writes" not in each, each


def test_a_recurrent_layer_with_the_batch_first_is_compared_by_its_values(graft, tmp_path):
    """ONNX Runtime refuses layout = 1. Graft moves the axes for it, apart from the pass that rewrites the layer."""
    rng = np.random.default_rng(0)
    weights = [constant(n, rng.normal(size=(1, 12, size)).astype(np.float32)) for n, size in (("w", 4), ("r", 3))]
    nodes = [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3, layout=1)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 5, 4])], [("y", [2, 5, 1, 3])], weights)
    converted = graft("convert", model, "-o", tmp_path / "c.onnx", *TARGET, "--json", code=0)
    assert converted.json["values"]["verdict"] == "the same"
    assert graft("verify", model, tmp_path / "c.onnx").code == 0


def test_a_layout_that_the_call_of_a_function_gives_is_followed(graft, tmp_path):
    """ONNX Runtime refuses layout = 1, also where a function has it by reference, here through two functions. The model
    with the batch second computes the same with Transposes, as ONNX's documentation of the layout says."""
    rng = np.random.default_rng(0)
    weights = [constant(n, rng.normal(size=(1, 12, size)).astype(np.float32)) for n, size in (("w", 4), ("r", 3))]
    lstm = node("LSTM", ["a", "b", "c"], ["d"], hidden_size=3)
    call = helper.make_node("Inner", ["a", "b", "c"], ["d"], domain="own")
    for made in (lstm, call):
        layout = made.attribute.add()
        layout.name, layout.ref_attr_name, layout.type = "layout", "layout", AttributeProto.INT
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = [
        helper.make_function("own", name, ["a", "b", "c"], ["d"], [body], imports, ["layout"])
        for name, body in (("Inner", lstm), ("Outer", call))
    ]
    outer = helper.make_node("Outer", ["x", "w", "r"], ["y"], domain="own", layout=1)
    ports = [("x", [2, 5, 4])], [("y", [2, 5, 1, 3])]
    model = save(tmp_path / "m.onnx", [outer], *ports, weights, functions=functions, domains=["own"])
    plain = [
        node("Transpose", ["x"], ["time_first"], perm=[1, 0, 2]),
        node("LSTM", ["time_first", "w", "r"], ["states"], hidden_size=3),
        node("Transpose", ["states"], ["y"], perm=[2, 0, 1, 3]),
    ]
    other = save(tmp_path / "other.onnx", plain, *ports, weights)
    graft("verify", other, model, "--engine", "onnxruntime", code=0)


def test_the_next_step_of_convert_builds(graft, tmp_path):
    converted = tmp_path / "c.onnx"
    told = graft("convert", DIGITS, "-o", converted, *TARGET, code=0)
    command = next(line for line in told.out.splitlines() if line.startswith("next  "))
    _, verb, *arguments = shlex.split(command.removeprefix("next  "))
    assert verb == "build"
    assert graft(verb, *arguments).code == 0
    assert (tmp_path / "c.engine").is_file()
    assert f"the result and {DIGITS} are the same: 2 runs" in told.out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--no-check", "--shapes", "image=1x1x8x8"), "--shapes"),
        (("--no-check", "--cut", "--probe", "parser"), "--no-check"),
        (("--for", "rtx-1.5", "--cut", "--probe", "builder"), "--for"),
        (("--for", "rtx-1.5", "--shapes", "image=1x1x8x8"), "--for"),
        (("--cut", "--probe", "none", "--shapes", "image=1x1x8x8"), "--probe none"),
        (("--probe", "parser"), "--cut"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(graft, tmp_path, flags, words):
    answer = graft("convert", DIGITS, "-o", tmp_path / "c.onnx", *flags, code=2)
    assert words in answer.err
    assert not (tmp_path / "c.onnx").exists()
