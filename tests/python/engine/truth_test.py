# graft inspect --probe: tests the verdicts of the real parser and builder on each node, also where they crash or hang.
from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np
import onnx
import onnx.defs
import pytest
from conftest import Answer, graft
from onnx import TensorProto, helper, numpy_helper
from onnx_models import subgraph

pytestmark = pytest.mark.usefixtures("rtx")

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
# K of a TopK that TensorRT does not build; `graft convert` does not lower it either, as it needs more than 16 parts of
# 3840.
BEYOND_PARTS = 70000
End = tuple[str, int, Any]


# An attribute that makes Graft leave the node to TensorRT, whose builder fails on it.
NOT_GRAFTS = {"plugin_version": "1"}


def write(
    path: pathlib.Path,
    nodes: list[Any],
    inputs: list[End],
    outputs: list[End],
    constants: dict[str, Any] | None = None,
    functions: tuple[Any, ...] = (),
    opset: int = 18,
) -> pathlib.Path:
    ends = [[helper.make_tensor_value_info(*end) for end in side] for side in (inputs, outputs)]
    weights = [numpy_helper.from_array(np.asarray(data), name) for name, data in (constants or {}).items()]
    domains = sorted({n.domain for n in nodes} | {f.domain for f in functions} | {""})
    opsets = [helper.make_opsetid(domain, 1 if domain else opset) for domain in domains]
    graph = helper.make_graph(nodes, "g", *ends, weights)
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=8), path)
    return path


def inspect(model: pathlib.Path, level: str, *flags: object) -> Answer:
    no_clock = ("--max-seconds", "36000") if "--max-seconds" not in flags else ()
    answer = graft("inspect", model, "--truth", level, "--target", "sm89", "--json", *no_clock, *flags)
    assert answer.code in (0, 1), answer.err
    return answer


def verdicts(answer: Answer) -> dict[str, Any]:
    return {node["node"]: node for node in answer.json["nodes"]}


def kinds(answer: Answer) -> dict[str, str]:
    return {name: node["verdict"] for name, node in verdicts(answer).items()}


def has_gpu() -> bool:
    return bool(graft("doctor", "--json").json.get("cuda", {}).get("devices"))


# The opset of the model that contains all operators.
OPSET = 24
# Maps a type to the name of a value of this type in the model of all operators. The last two values are the outputs of
# the nodes SequenceConstruct and Optional.
VALUES = {
    "tensor(float)": "x",
    "tensor(int64)": "whole",
    "tensor(int8)": "small",
    "tensor(uint8)": "byte",
    "tensor(bool)": "flag",
    "tensor(string)": "text",
    "seq(tensor(float))": "y_SequenceConstruct",
    "optional(tensor(float))": "y_Optional",
}


def smallest_node(name: str, **attributes: Any) -> onnx.NodeProto:
    """Returns a node with the inputs and outputs that the schema requires: x, or a value of a type that it allows."""
    history = [
        schema for schema in onnx.defs.get_all_schemas_with_history() if (schema.name, schema.domain) == (name, "")
    ]
    schema = onnx.defs.get_schema(name, max(OPSET, min(schema.since_version for schema in history)))
    outputs = [f"y_{name}", *(f"y_{name}_{place}" for place in range(1, schema.min_output))]
    inputs = []
    for place in range(min(max(1, schema.min_input), schema.max_input)):
        allowed = schema.inputs[min(place, len(schema.inputs) - 1)].types
        inputs.append(next((value for kind, value in VALUES.items() if kind in allowed), "x"))
    return helper.make_node(name, inputs, outputs, name=name, **attributes)


def test_the_list_of_facts(tmp_path: pathlib.Path) -> None:
    """Checks the lists of operators that the parser refuses, and of those that it accepts but that fail in the
    build."""
    trt = pytest.importorskip("tensorrt_rtx")
    logger = trt.Logger(trt.Logger.ERROR)
    parser = trt.OnnxParser(trt.Builder(logger).create_network(0), logger)
    names = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})
    refused = [name for name in names if not parser.supports_operator(name)]
    assert len(refused) == 46

    body = subgraph([], [("e", [2])], [])
    extra: dict[str, dict[str, Any]] = {"SequenceMap": {"body": body}}
    makers = ["Optional", "SequenceConstruct"]
    assert set(makers) <= set(refused)
    ordered = makers + [name for name in refused if name not in makers]
    nodes = [smallest_node(name, **extra.get(name, {})) for name in ordered]
    nodes += [
        helper.make_node("Relu", ["x"], ["first"], name="relu"),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "three"], ["chosen"], name="nms", **NOT_GRAFTS),
        helper.make_node("TopK", ["long", "k"], ["values", "indices"], name="top_k", **NOT_GRAFTS),
        helper.make_node("Sigmoid", ["values"], ["last"], name="after_top_k"),
        helper.make_node("RoiAlign", ["image", "rois", "batch"], ["regions"], name="roi_align", **NOT_GRAFTS),
    ]
    inputs = [("x", FLOAT, [2, 2]), ("boxes", FLOAT, [1, 10, 4]), ("scores", FLOAT, [1, 2, 10])]
    inputs += [("whole", INT64, [2, 2]), ("small", TensorProto.INT8, [2, 2]), ("byte", TensorProto.UINT8, [2, 2])]
    inputs += [
        ("flag", TensorProto.BOOL, [2, 2]),
        ("long", FLOAT, [1, 8000]),
        ("image", FLOAT, [1, 3, 8, 8]),
        ("rois", FLOAT, [4, 4]),
    ]
    integers = ("indices", "chosen", "y_SequenceLength")
    others = (*integers, *(f"y_{maker}" for maker in makers))
    outputs = [(name, FLOAT, None) for node in nodes for name in node.output if name not in others]
    outputs += [(name, INT64, [] if "Length" in name else None) for name in integers]
    constants = {"three": [3], "k": [5000], "batch": [0, 0, 0, 0], "text": np.array(["a"], object)}
    model = write(tmp_path / "facts.onnx", nodes, inputs, outputs, constants, opset=OPSET)

    answer = inspect(model, "builder")
    found = kinds(answer)
    with_gpu = has_gpu()
    said = verdicts(answer)

    def refused_in(truth: str) -> set[str]:
        """Returns the operators that TensorRT refuses, including those that `convert` lowers: TensorRT refuses the
        unchanged node."""
        nodes = {name: node for name, node in said.items() if node["truth"] == truth and node["tensorrt"]}
        return {name for name, node in nodes.items() if node["verdict"] in ("refused", "fails", "lowered")}

    made = {f"y_{maker}" for maker in makers}
    after = {node.name for node in nodes if made & set(node.input)}
    assert refused_in("parser") == (set(refused) - after) | (set() if with_gpu else {"roi_align"})
    # No part without the node that makes the sequence can be built, so the rules judge.
    assert {found[name] for name in after} <= {"unsupported", "lowered"} and len(after) == 6
    assert refused_in("builder") == {"nms", "top_k"}
    assert found["relu"] == found["after_top_k"] == "native"
    assert "checkDet" in said["Det"]["tensorrt"]
    assert "no runners that implement it" in said["nms"]["tensorrt"]
    assert "K exceeds the maximum value allowed (3840)" in said["top_k"]["tensorrt"]
    if not with_gpu:  # measured with RTX 1.7.1: an error of the parser, not a crash
        assert "CUDA driver version is insufficient" in said["roi_align"]["tensorrt"]
        assert "a machine with a GPU" in said["roi_align"]["advice"]
    assert {node["truth"] for name, node in said.items() if name not in after} == {"parser", "builder"}

    asked = kinds(inspect(model, "parser"))
    assert {name for name, kind in asked.items() if kind == "refused"} == {
        name for name, kind in found.items() if kind == "refused"
    }
    assert (
        asked["top_k"] == "lowered"
    )  # a verdict by rule: the parser accepts the node, and convert writes another form


def chain(path: pathlib.Path, nodes: list[tuple[str, dict[str, Any]]], shape: tuple[Any, ...] = (1, 4)) -> pathlib.Path:
    """Saves a chain of nodes, named n0, n1 ..."""
    values = ["x", *(f"v{i}" for i in range(len(nodes) - 1)), "y"]
    made = []
    for i, (op_type, attributes) in enumerate(nodes):
        domain = "fixture" if op_type.startswith("Fixture") else ""
        made.append(helper.make_node(op_type, [values[i]], [values[i + 1]], name=f"n{i}", domain=domain, **attributes))
    return write(path, made, [("x", FLOAT, shape)], [("y", FLOAT, None)])


RELU: tuple[str, dict[str, Any]] = ("Relu", {})


@pytest.mark.parametrize(
    ("plugin", "flags", "verdict", "cause", "words"),
    [
        ("FixtureAbort", (), "crashes", "plugin_crash", "by SIGABRT"),
        ("FixtureSegfault", (), "crashes", "plugin_crash", "by SIGSEGV"),
        ("FixtureFork", ("--time-limit", "60"), "crashes", "plugin_crash", "by SIGABRT"),
        ("FixtureRefuse", (), "fails", "plugin_formats", "Failed to find any supported plugin"),
        ("FixtureHang", ("--time-limit", "4"), "hangs", "plugin_hang", "no answer within 4 s"),
    ],
)
def test_one_node_ends_tensorrt_and_the_others_do_not_suffer(
    tmp_path: pathlib.Path,
    fixture_library: pathlib.Path,
    plugin: str,
    flags: tuple[str, ...],
    verdict: str,
    cause: str,
    words: str,
) -> None:
    count, at = (5, 2) if plugin == "FixtureHang" else (12, 7)
    nodes = [RELU] * at + [(plugin, {"gain": 2.0})] + [RELU] * (count - at - 1)
    model = chain(tmp_path / "m.onnx", nodes)
    smallest = tmp_path / "smallest.onnx"
    answer = inspect(model, "builder", "--plugin-lib", fixture_library, "--reduce", smallest, *flags)
    assert kinds(answer) == {f"n{i}": verdict if i == at else "native" for i in range(count)}
    assert words in verdicts(answer)[f"n{at}"]["reason"]
    assert verdicts(answer)[f"n{at}"]["reason"].startswith(f"{plugin} 1 of namespace fixture, from libfixture_plugins")
    assert verdicts(answer)[f"n{at}"]["cause"] == cause
    if verdict == "hangs":
        assert answer.json["trials"]["processes"] == 2  # the limit was waited for once
    assert {node["truth"] for node in answer.json["nodes"]} == {"builder"}  # later nodes were tried too
    reduced = answer.json["reduced"]
    assert (reduced["file"], reduced["nodes"], reduced["verdict"]) == (str(smallest), 1, verdict)
    assert (reduced["node"], reduced["inside"], reduced["shapes"]) == (f"n{at}", None, [])
    assert reduced["alike"] == reduced["others"] == []
    assert [node.op_type for node in onnx.load(smallest).graph.node] == [plugin]
    again = inspect(smallest, "builder", "--plugin-lib", fixture_library, *flags)
    assert kinds(again) == {f"n{at}": verdict}


def test_two_nodes_that_fail_together_are_found_together(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    nodes = [RELU] * 12
    nodes[3], nodes[8] = ("FixturePair", {"axes": [1]}), ("FixturePair", {"axes": [2]})
    model = chain(tmp_path / "m.onnx", nodes)
    smallest = tmp_path / "smallest.onnx"
    answer = inspect(model, "builder", "--plugin-lib", fixture_library, "--reduce", smallest)
    found = verdicts(answer)
    assert {name for name, node in found.items() if node["verdict"] == "crashes"} == {"n3", "n8"}
    assert "these nodes fail together: n3, n8" in found["n3"]["reason"]
    assert [node.op_type for node in onnx.load(smallest).graph.node] == ["FixturePair", "FixturePair"]


def test_two_hundred_nodes_take_less_than_a_minute(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    """The network has convolutions, a node that crashes, a refused node and a node that fails in the build; all are
    found, one after the other."""
    rng = np.random.default_rng(0)
    nodes, constants, value = [], {"k": [BEYOND_PARTS]}, "x"
    for i in range(196):
        if i % 2 == 0:
            constants[f"w{i}"] = rng.standard_normal((8, 8, 3, 3)).astype(np.float32) / 8
            nodes.append(helper.make_node("Conv", [value, f"w{i}"], [f"v{i}"], name=f"c{i}", pads=[1, 1, 1, 1]))
        else:
            nodes.append(helper.make_node("LeakyRelu", [value], [f"v{i}"], name=f"r{i}", alpha=0.1))
        value = f"v{i}"
        if i == 130:
            nodes.append(helper.make_node("FixtureAbort", [value], ["after"], name="abort", domain="fixture"))
            value = "after"
    nodes.append(helper.make_node("Det", ["square"], ["det"], name="det"))
    nodes.append(helper.make_node("Flatten", [value], ["flat"], name="flat"))
    nodes.append(helper.make_node("TopK", ["flat", "k"], ["y", "i"], name="top_k", **NOT_GRAFTS))
    inputs = [("x", FLOAT, [1, 8, 96, 96]), ("square", FLOAT, [5, 5])]
    outputs = [("y", FLOAT, None), ("i", INT64, None), ("det", FLOAT, None)]
    model = write(tmp_path / "m.onnx", nodes, inputs, outputs, constants)
    assert len(nodes) == 200
    answer = inspect(model, "builder", "--plugin-lib", fixture_library)
    wrong = {name: kind for name, kind in kinds(answer).items() if kind != "native"}
    assert wrong == {"abort": "crashes", "det": "refused", "top_k": "fails"}
    assert all(node["truth"] == "builder" for node in verdicts(answer).values() if node["node"] != "det")
    # Bisection needs few builds, not one per node: measured are 5.
    assert answer.json["trials"]["builds"] <= 10


def test_a_node_in_a_branch_and_one_in_a_function(tmp_path: pathlib.Path) -> None:
    def branch(name: str, op_type: str) -> Any:
        node = helper.make_node(op_type, ["x"], [f"{name}_y"], name=f"{name}_node")
        return subgraph([node], [], [(f"{name}_y", None)])

    body = [helper.make_node("Det", ["a"], ["b"], name="inner")]
    function = helper.make_function("local", "F", ["a"], ["b"], body, [helper.make_opsetid("", 18)])
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node(
            "If", ["c"], ["i"], name="if", then_branch=branch("yes", "Det"), else_branch=branch("no", "ReduceSum")
        ),
        helper.make_node("F", ["x"], ["f"], name="call", domain="local"),
    ]
    inputs = [("x", FLOAT, [5, 5]), ("c", TensorProto.BOOL, [])]
    outputs = [("r", FLOAT, None), ("i", FLOAT, None), ("f", FLOAT, None)]
    answer = inspect(write(tmp_path / "m.onnx", nodes, inputs, outputs, functions=(function,)), "builder")
    found = kinds(answer)
    assert (found["relu"], found["if"], found["yes_node"], found["call"]) == ("native", "refused", "refused", "refused")


def graph(name: str, nodes: list[Any], inputs: tuple[Any, ...] = ()) -> Any:
    """Returns a subgraph whose output is the first output of its last node."""
    return subgraph(nodes, inputs, [(nodes[-1].output[0], None)])


def top_k(name: str, source: str = "x", k: str = "k") -> Any:
    return helper.make_node("TopK", [source, k], [f"{name}_values", f"{name}_indices"], name=name, **NOT_GRAFTS)


def builds(model: pathlib.Path) -> bool:
    """Returns whether TensorRT alone, without Graft, builds the model."""
    trt = pytest.importorskip("tensorrt_rtx")
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse(model.read_bytes())
    return builder.build_serialized_network(network, builder.create_builder_config()) is not None


def test_a_node_that_fails_in_a_branch(tmp_path: pathlib.Path) -> None:
    """The other nodes in the branches are tried separately, and the smallest part is the failing node."""
    inner = helper.make_node(
        "If",
        ["c"],
        ["deep_y"],
        name="inner_if",
        then_branch=graph("deep", [helper.make_node("Sigmoid", ["x"], ["s"], name="deep_sigmoid"), top_k("deep", "s")]),
        else_branch=graph("flat", [helper.make_node("Slice", ["x", "zero", "k"], ["f"], name="deep_slice")]),
    )
    yes = [helper.make_node("Relu", ["x"], ["r"], name="yes_relu"), top_k("yes", "r")]
    yes += [helper.make_node("Neg", ["yes_values"], ["n"], name="yes_neg")]
    no = [helper.make_node("Slice", ["x", "zero", "k"], ["no_y"], name="no_slice"), inner]
    no += [helper.make_node("Add", ["no_y", "deep_y"], ["added"], name="no_add")]
    nodes = [
        helper.make_node("If", ["c"], ["y"], name="if", then_branch=graph("yes", yes), else_branch=graph("no", no)),
        helper.make_node("Abs", ["x"], ["z"], name="beside"),
    ]
    inputs = [("x", FLOAT, [80000]), ("c", TensorProto.BOOL, [])]
    outputs = [("y", FLOAT, None), ("z", FLOAT, None)]
    model = write(tmp_path / "m.onnx", nodes, inputs, outputs, {"k": [BEYOND_PARTS], "zero": [0]})
    assert not builds(model)
    smallest = tmp_path / "smallest.onnx"
    answer = inspect(model, "builder", "--reduce", smallest)
    found = verdicts(answer)
    bad = {name: node["verdict"] for name, node in found.items() if node["verdict"] != "native"}
    assert bad == dict.fromkeys(("if", "yes", "inner_if", "deep"), "fails")
    assert {found[name]["truth"] for name in ("yes_relu", "yes_neg", "no_slice", "no_add", "deep_sigmoid")} == {
        "builder"
    }
    assert found["if"]["reason"].startswith("inside it, node 'deep' (TopK): TensorRT's builder fails")
    assert "other nodes inside it do not run: yes" in found["if"]["reason"]
    assert found["inner_if"]["reason"].startswith("inside it, node 'deep' (TopK)")
    reduced = answer.json["reduced"]
    assert (reduced["node"], reduced["inside"], reduced["nodes"]) == ("deep", "if", 1)
    (other,) = reduced["others"]
    assert (other["node"], other["inside"], other["file"]) == ("yes", "if", str(tmp_path / "smallest.2.onnx"))
    for file in (smallest, tmp_path / "smallest.2.onnx"):
        assert [node.op_type for node in onnx.load(file).graph.node] == ["TopK"]
        assert not builds(file)


def test_a_node_that_fails_in_the_body_of_a_loop(tmp_path: pathlib.Path) -> None:
    body = [
        helper.make_node("Identity", ["going"], ["go_on"], name="go_on"),
        helper.make_node("Relu", ["state"], ["r"], name="body_relu"),
        top_k("body", "r", "all"),
    ]
    ends = [("step", INT64, []), ("going", TensorProto.BOOL, []), ("state", FLOAT, [BEYOND_PARTS])]
    inner = subgraph(body, ends, (("go_on", TensorProto.BOOL, []), ("body_values", FLOAT, None)))
    nodes = [helper.make_node("Loop", ["times", "always", "x"], ["y"], name="loop", body=inner)]
    constants = {"all": [BEYOND_PARTS], "times": 3, "always": True}
    model = write(tmp_path / "m.onnx", nodes, [("x", FLOAT, [BEYOND_PARTS])], [("y", FLOAT, None)], constants)
    assert not builds(model)
    found = verdicts(inspect(model, "builder", "--reduce", tmp_path / "smallest.onnx"))
    bad = {name for name, node in found.items() if node["verdict"] == "fails"}
    assert bad == {"loop", "body"}
    assert found["body_relu"]["truth"] == "builder"
    assert not builds(tmp_path / "smallest.onnx")


def test_a_node_that_is_blamed_for_its_loop_has_no_advice_of_its_own(tmp_path: pathlib.Path) -> None:
    """TensorRT has no condition for the body of a loop without one, and names the node that reads it."""
    ends = [("step", INT64, []), ("condition", TensorProto.BOOL, []), ("carried", FLOAT, [2, 3])]
    body = subgraph(
        [
            helper.make_node("Identity", ["condition"], ["goes_on"], name="reads_condition"),
            helper.make_node("Tanh", ["carried"], ["next"], name="tanh"),
        ],
        ends,
        [("goes_on", TensorProto.BOOL, []), ("next", [2, 3])],
    )
    nodes = [helper.make_node("Loop", ["trips", "", "x"], ["y"], name="loop", body=body)]
    inputs = [("x", FLOAT, [2, 3]), ("trips", INT64, [])]
    found = verdicts(inspect(write(tmp_path / "m.onnx", nodes, inputs, [("y", FLOAT, [2, 3])]), "parser"))
    assert found["loop"]["advice"].startswith("`graft convert` replaces it with the same Loop with the condition true")
    assert (found["reads_condition"]["verdict"], found["reads_condition"]["advice"]) == ("refused", "")


def test_nodes_that_build_with_other_sizes_are_not_blamed(tmp_path: pathlib.Path) -> None:
    """The If alone does not build with the smallest sizes; with all others it fails only together with the Resize."""
    pooled = helper.make_node("MaxPool", ["x"], ["pooled"], name="pooled", kernel_shape=[2, 2], strides=[2, 2])
    relu = helper.make_node("Relu", ["x"], ["relu"], name="relu")
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], name="sum", keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["is_positive"], name="is_positive"),
        helper.make_node(
            "If", ["is_positive"], ["m"], name="if", then_branch=graph("t", [relu]), else_branch=graph("e", [pooled])
        ),
        helper.make_node("Resize", ["m", "", "scales"], ["y"], name="resize", mode="cubic", exclude_outside=1),
    ]
    constants = {"zero": np.float32(0), "scales": np.array([1, 1, 2, 2], np.float32)}
    model = write(
        tmp_path / "m.onnx", nodes, [("x", FLOAT, ["n", 3, "h", "w"])], [("y", FLOAT, [None] * 4)], constants, opset=17
    )
    answer = graft("inspect", model, "--json", "--reduce", tmp_path / "smallest.onnx")
    found = kinds(answer)
    assert {name for name, verdict in found.items() if verdict == "fails"} == {"if", "resize"}
    assert found["relu"] == found["pooled"] == "not asked"
    assert "these nodes fail together: if, resize" in verdicts(answer)["if"]["reason"]
    assert f"did not build the model for {answer.json['failing_shapes'][0]}" in answer.json["answered_by"]
    assert all(shapes.startswith("x=1x3x") for shapes in answer.json["failing_shapes"])
    (range_of_part,) = answer.json["reduced"]["shapes"]
    assert inspect(tmp_path / "smallest.onnx", "builder", "--shapes", range_of_part).code == 1


def test_a_loop_that_grows_its_tensor_is_the_only_node_to_blame(tmp_path: pathlib.Path) -> None:
    """TensorRT reports that sizes contradict each other, which a rule explains."""
    body = subgraph(
        [
            helper.make_node("Concat", ["state", "first"], ["longer"], name="longer", axis=0),
            # The number of iterations depends on data, so that the Loop is not unrolled.
            helper.make_node("ReduceSum", ["longer"], ["total"], name="total", keepdims=0),
            helper.make_node("Equal", ["total", "total"], ["go_on"], name="go_on"),
        ],
        [("step", INT64, []), ("going", TensorProto.BOOL, []), ("state", [None, 4])],
        [("go_on", TensorProto.BOOL, []), ("longer", [None, 4])],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["first"], name="first"),
        helper.make_node("Loop", ["times", "always", "first"], ["last"], name="loop", body=body),
        helper.make_node("MatMul", ["last", "w"], ["y"], name="second"),
    ]
    constants = {"times": 3, "always": True, "w": np.eye(4, dtype=np.float32)}
    model = write(tmp_path / "m.onnx", nodes, [("x", FLOAT, ["b", 4])], [("y", FLOAT, [None, 4])], constants, opset=17)
    answer = graft("inspect", model, "--json")
    found = kinds(answer)
    # The rank and the channels of the input of 'second' are known, so TensorRT is probed with this node alone.
    assert (found["loop"], found["first"], found["second"]) == ("fails", "native", "native")
    assert not [name for name in ("longer", "total", "go_on") if found[name] == "fails"]
    advice = verdicts(answer)["loop"]["advice"]
    assert advice.startswith(
        "graft convert does not replace the node with layers that TensorRT has: whether it continues"
    )


def test_a_node_that_is_refused_in_a_branch_is_reduced_to_itself(tmp_path: pathlib.Path) -> None:
    yes = [helper.make_node("Relu", ["x"], ["r"], name="relu"), helper.make_node("Det", ["r"], ["d"], name="det")]
    no = [helper.make_node("ReduceSum", ["x"], ["s"], name="sum", keepdims=0)]
    branches = {"then_branch": graph("yes", yes), "else_branch": graph("no", no)}
    nodes = [helper.make_node("If", ["c"], ["y"], name="if", **branches)]
    inputs = [("x", FLOAT, [5, 5]), ("c", TensorProto.BOOL, [])]
    model = write(tmp_path / "m.onnx", nodes, inputs, [("y", FLOAT, None)])
    smallest = tmp_path / "smallest.onnx"
    reduced = inspect(model, "parser", "--reduce", smallest).json["reduced"]
    assert (reduced["node"], reduced["inside"], reduced["verdict"]) == ("det", "if", "refused")
    assert [node.op_type for node in onnx.load(smallest).graph.node] == ["Det"]


def test_nodes_alike_are_asked_about_once(tmp_path: pathlib.Path) -> None:
    """Nodes that differ only in their name fail together; nodes with other sizes that build are not reported as
    failing."""
    nodes = [top_k(f"same_{i}", f"x_{i}") for i in range(6)]
    nodes += [top_k("shorter", "short", "less"), top_k("fits", "short", "few"), top_k("wide", "x_wide", "less")]
    inputs = [(f"x_{i}", FLOAT, [1, 80000]) for i in range(6)]
    inputs += [("short", FLOAT, [1, 65000]), ("x_wide", FLOAT, [2, 65000])]
    outputs = [(name, FLOAT if name.endswith("values") else INT64, None) for node in nodes for name in node.output]
    model = write(tmp_path / "m.onnx", nodes, inputs, outputs, {"k": [BEYOND_PARTS], "less": [62000], "few": [100]})
    smallest = tmp_path / "smallest.onnx"
    answer = inspect(model, "builder", "--reduce", smallest)
    found = verdicts(answer)
    assert {name for name, node in found.items() if node["verdict"] == "fails"} == {
        node.name for node in nodes if node.name != "fits"
    }
    assert found["fits"]["verdict"] == "native"
    assert answer.json["trials"]["builds"] <= 3
    as_others = {name: node["as"] for name, node in found.items() if node["as"]}
    (first,) = set(as_others.values())
    assert len(as_others) == 7
    other = next(iter(as_others))
    assert f"as it does for the similar node '{first}' (TopK)" in found[other]["reason"]
    reduced = answer.json["reduced"]
    assert (reduced["node"], reduced["others"]) == (first, [])
    assert set(reduced["alike"]) == set(as_others)
    assert "at most 3840" in found[first]["advice"]


def test_plugins_of_a_kind_fail_for_their_own_sizes(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    """No rule covers these plugins: each node with other sizes is tried until one builds."""
    sizes = [[1, 3], [1, 3], [2, 3], [1, 3], [3, 3, 3]]
    nodes = [
        helper.make_node("FixtureLarge", [f"x_{i}"], [f"y_{i}"], name=f"n{i}", domain="fixture", gain=float(gain))
        for i, gain in enumerate((1.0, 1.0, 1.0, 1.0, 1.0))
    ]
    ends = [[(f"{side}_{i}", FLOAT, size) for i, size in enumerate(sizes)] for side in "xy"]
    model = write(tmp_path / "m.onnx", nodes, *ends)
    answer = inspect(model, "builder", "--plugin-lib", fixture_library)
    assert kinds(answer) == {"n0": "fails", "n1": "fails", "n2": "plugin", "n3": "fails", "n4": "plugin"}


def many_kinds(path: pathlib.Path, kinds_of_failure: int) -> pathlib.Path:
    """Saves plugins that fail in the build, each of a different kind, between nodes that build."""
    nodes = []
    for i in range(kinds_of_failure):
        nodes += [("Relu", {}), ("FixtureRefuse", {"alpha": float(i)}), ("Sigmoid", {})]
    return chain(path, nodes)


def test_the_budget_of_builds_ends_with_what_is_known(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    model = many_kinds(tmp_path / "m.onnx", 12)
    flags = ("--plugin-lib", fixture_library, "--max-builds", "4")
    answer = inspect(model, "builder", *flags)
    assert answer.code == 1
    assert answer.json["trials"]["builds"] == 4
    found = verdicts(answer)
    failing = [node for node in found.values() if node["verdict"] == "fails"]
    open_ones = [node for node in found.values() if node["verdict"] == "not asked"]
    assert {node["operator"] for node in failing} <= {"fixture::FixtureRefuse"}
    assert failing
    assert len(open_ones) == answer.json["unanswered"] > 0
    assert all("the budget of 4 builds is spent" in node["reason"] for node in open_ones)
    assert all("--max-builds" in node["advice"] for node in open_ones)
    said = graft("inspect", model, "--truth", "builder", "--target", "sm89", *flags)
    assert f"{len(open_ones)} nodes are not judged" in " ".join(said.out.split())


def test_the_budget_of_seconds_ends_with_what_is_known(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    """The first trial always runs; with nearly no time it is the only one."""
    model = many_kinds(tmp_path / "m.onnx", 2)
    answer = inspect(model, "builder", "--plugin-lib", fixture_library, "--max-seconds", "0.001")
    assert answer.code == 1
    assert answer.json["runs"] is None
    trials = answer.json["trials"]
    assert (trials["parses"], trials["builds"]) == (1, 0)
    assert set(kinds(answer).values()) == {"not asked"}


def test_what_the_rules_know_is_not_searched_for(tmp_path: pathlib.Path) -> None:
    """The model has twenty nodes without an implementation among two hundred: one build finds them, and one builds
    the others."""
    nodes, inputs, outputs = [], [("x", FLOAT, [1, 4])], []
    value = "x"
    for i in range(200):
        nodes.append(helper.make_node("Relu" if i % 2 else "Sigmoid", [value], [f"v{i}"], name=f"n{i}"))
        value = f"v{i}"
    for i in range(20):
        nodes.insert(
            10 * i,
            helper.make_node("NonMaxSuppression", [f"b{i}", f"s{i}", "k"], [f"c{i}"], name=f"nms{i}", **NOT_GRAFTS),
        )
        inputs += [(f"b{i}", FLOAT, [1, 10, 4]), (f"s{i}", FLOAT, [1, 2, 10])]
        outputs.append((f"c{i}", INT64, None))
    model = write(tmp_path / "m.onnx", nodes, inputs, [*outputs, (value, FLOAT, None)], {"k": [3]})
    answer = inspect(model, "builder")
    found = kinds(answer)
    assert {name for name, kind in found.items() if kind == "fails"} == {f"nms{i}" for i in range(20)}
    assert set(found.values()) == {"fails", "native"}
    assert answer.json["trials"]["builds"] == 2


def test_refused_nodes_of_a_kind_are_taken_out_together(tmp_path: pathlib.Path) -> None:
    """The parser names one node without a plugin at a time. Later nodes are cut off at the outputs of these nodes.
    (Graft's plugin has no i8.)"""
    nodes, outputs = [], []
    for i in range(40):
        nodes += [
            helper.make_node("Transpose", [f"x{i}"], [f"r{i}"], name=f"turn{i}"),
            helper.make_node("NonZero", [f"r{i}"], [f"n{i}"], name=f"nonzero{i}"),
            helper.make_node("Cast", [f"n{i}"], [f"c{i}"], name=f"cast{i}", to=FLOAT),
        ]
        outputs.append((f"c{i}", FLOAT, [2, None]))
    model = write(tmp_path / "m.onnx", nodes, [(f"x{i}", TensorProto.INT8, [3, 4]) for i in range(40)], outputs)
    answer = inspect(model, "builder")
    found = verdicts(answer)
    assert {name for name, node in found.items() if node["verdict"] == "refused"} == {f"nonzero{i}" for i in range(40)}
    assert {node["verdict"] for name, node in found.items() if name.startswith("turn")} == {"native"}
    assert "as it does for the similar node 'nonzero0' (NonZero)" in found["nonzero7"]["reason"]
    trials = answer.json["trials"]
    assert (trials["parses"], trials["builds"]) == (2, 1)  # earlier versions needed one parse for each node


def test_a_branch_that_is_known_to_fail_is_not_searched_for(tmp_path: pathlib.Path) -> None:
    """The branch is among two hundred nodes: its node fails alone, then the branch is tried, then all other nodes
    build at once."""
    chosen = [("chosen", INT64, None)]
    nms = helper.make_node("NonMaxSuppression", ["boxes", "scores", "k"], ["chosen"], name="nms", **NOT_GRAFTS)
    none = numpy_helper.from_array(np.zeros((0, 3), np.int64), "none")
    empty = helper.make_node("Constant", [], ["empty"], name="constant", value=none)
    branches = {
        "then_branch": subgraph([nms], [], chosen),
        "else_branch": subgraph([empty], [], [("empty", INT64, None)]),
    }
    nodes, value = [], "x"
    for i in range(200):
        nodes.append(helper.make_node("Relu" if i % 2 else "Sigmoid", [value], [f"v{i}"], name=f"n{i}"))
        value = f"v{i}"
    nodes.insert(150, helper.make_node("If", ["condition"], ["boxes_chosen"], name="if", **branches))
    inputs = [("x", FLOAT, [1, 4]), ("condition", TensorProto.BOOL, [])]
    inputs += [("boxes", FLOAT, [1, 10, 4]), ("scores", FLOAT, [1, 2, 10])]
    outputs = [(value, FLOAT, None), ("boxes_chosen", INT64, None)]
    model = write(tmp_path / "m.onnx", nodes, inputs, outputs, {"k": [3]})
    answer = inspect(model, "builder")
    assert {name for name, kind in kinds(answer).items() if kind == "fails"} == {"if", "nms"}
    assert set(kinds(answer).values()) == {"fails", "native"}
    assert answer.json["trials"]["builds"] <= 5
    assert answer.json["pieces"] == 1


def scripted_tensorrt(folder: pathlib.Path, slowest: int) -> pathlib.Path:
    """Returns a Python whose engine driver is a script: its TensorRT accepts every model, fails on Tan, builds up to
    `slowest` nodes, and hangs with more."""
    script = folder / "driver.py"
    script.write_text(
        f"""
import json, sys, onnx

def say(**facts):
    print(json.dumps({{"event": "answer", "plugins": [], "workers": 1, **facts}}), flush=True)

for line in sys.stdin:
    question = json.loads(line)
    if question["action"] == "start":
        tensorrt = {{"flavor": "rtx", "name": "TensorRT-RTX", "version": "1.7.1.116"}}
        say(outcome="ready", creators=[], plugin_libraries=[], tensorrt=tensorrt)
        continue
    ops = [node.op_type for node in onnx.load(question["model"]).graph.node]
    if question["action"] == "parse":
        say(outcome="accepted")
    elif len(ops) > {slowest}:
        say(outcome="hung", limit=question["limit"])
    elif "Tan" in ops:
        say(outcome="failed", messages=[{{"severity": "error", "message": "no implementation"}}])
    else:
        say(outcome="accepted")
"""
    )
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}"\n')
    python.chmod(0o755)
    return python


def test_what_takes_too_long_together_is_built_in_pieces(tmp_path: pathlib.Path) -> None:
    """At most 300 of 1,024 nodes are built in time: every piece has a verdict, and a failing node is found by
    bisection."""
    python = scripted_tensorrt(tmp_path, slowest=300)
    flags = ("--truth", "builder", "--json", "--time-limit", "36000", "--max-seconds", "36000")
    plain = graft("inspect", chain(tmp_path / "plain.onnx", [("Relu", {})] * 1024), *flags, python=python, code=0)
    assert set(kinds(plain).values()) == {"native"}
    assert (plain.json["trials"]["builds"], plain.json["pieces"], plain.json["unanswered"]) == (7, 4, 0)
    nodes: list[tuple[str, dict[str, Any]]] = [("Relu", {})] * 1024
    nodes[700] = ("Tan", {})
    found = graft("inspect", chain(tmp_path / "tan.onnx", nodes), *flags, python=python)
    assert {name: kind for name, kind in kinds(found).items() if kind != "native"} == {"n700": "fails"}
    assert (found.json["pieces"], found.json["unanswered"]) == (4, 0)
    assert found.json["trials"]["builds"] == 22  # 7 as above; the others find one of 256 nodes by bisection


def test_what_tensorrt_builds_against_a_rule_is_told_with_its_version(tmp_path: pathlib.Path) -> None:
    node = helper.make_node("Det", ["x"], ["y"], name="det")
    model = write(tmp_path / "m.onnx", [node], [("x", FLOAT, [2, 8, 8])], [("y", FLOAT, [2])])
    python = scripted_tensorrt(tmp_path, slowest=300)
    found = verdicts(graft("inspect", model, "--truth", "builder", "--json", python=python))["det"]
    assert found["verdict"] == "native"
    words = "TensorRT-RTX 1.7.1.116 builds this node, although Graft's rule says: TensorRT's parser does not support it"
    assert found["reason"].startswith(words)


def test_no_row_says_that_all_run_beside_refused_nodes(tmp_path: pathlib.Path) -> None:
    node = helper.make_node("Det", ["x"], ["y"], name="det")
    model = write(tmp_path / "m.onnx", [node], [("x", FLOAT, [2, 8, 8])], [("y", FLOAT, [2])])
    answer = graft("inspect", model, "--truth", "parser", "--target", "sm89", code=1)
    assert "TensorRT's parser refuses it" in answer.out
    assert "neither TensorRT nor Graft runs it" not in answer.out


def test_sizes_supposed_of_a_part_are_no_failure_of_its_nodes(tmp_path: pathlib.Path) -> None:
    """After two refused nodes, the sizes of their outputs are unknown, and guessed ones may contradict each other."""
    nodes = [
        helper.make_node("Compress", ["x", "some"], ["short"], name="first", axis=0),
        helper.make_node("Compress", ["x", "more"], ["long"], name="second", axis=0),
        helper.make_node("Concat", ["short", "short"], ["twice"], name="concat", axis=0),
        helper.make_node("Add", ["twice", "long"], ["sum"], name="add"),
        helper.make_node("Relu", ["x"], ["positive"], name="relu"),
    ]
    flags = [("some", TensorProto.BOOL, [8]), ("more", TensorProto.BOOL, [8])]
    outputs = [("sum", FLOAT, [None, 4]), ("positive", FLOAT, [8, 4])]
    outputs += [("short", FLOAT, ["n", 4]), ("long", FLOAT, ["m", 4])]
    model = write(tmp_path / "m.onnx", nodes, [("x", FLOAT, [8, 4]), *flags], outputs)
    answer = inspect(model, "builder")
    refused = {"first": "refused", "second": "refused"}
    assert kinds(answer) == {**refused, "concat": "native", "add": "native", "relu": "native"}
    assert answer.json["pieces"] == 2


def test_what_convert_makes_is_inspected_in_memory(tmp_path: pathlib.Path) -> None:
    """The converted form of an enlarging antialiased Resize builds, and the message proposes to inspect it."""
    resize = helper.make_node("Resize", ["x", "", "s"], ["y"], name="n", antialias=1, mode="linear")
    scales = np.array([1, 1, 2, 2], np.float32)
    model = write(tmp_path / "m.onnx", [resize], [("x", FLOAT, [1, 1, 8, 8])], [("y", FLOAT, None)], {"s": scales})
    plain = graft("inspect", model, "--truth", "builder", "--target", "sm89")
    assert "--convert judges the conversion" in plain.out
    answer = inspect(model, "builder", "--convert")
    assert answer.code == 0
    assert answer.json["runs"] is True
    assert answer.json["converted"] is True
    assert set(kinds(answer).values()) <= {"native", "plugin"}


def test_what_the_parser_takes_and_only_convert_makes_build(tmp_path: pathlib.Path) -> None:
    """A TopK that is built in parts is not native: the parser accepts it, and only the converted form builds."""
    outputs = [("big_values", FLOAT, None), ("big_indices", INT64, None)]
    model = write(tmp_path / "m.onnx", [top_k("big")], [("x", FLOAT, [8000])], outputs, {"k": [5000]})
    assert not builds(model)
    found = verdicts(inspect(model, "parser"))["big"]
    assert (found["verdict"], found["truth"]) == ("lowered", "rule")
    assert "TensorRT's parser accepts the node; --probe builder tests whether the node builds" in found["reason"]
    assert verdicts(inspect(model, "builder"))["big"]["verdict"] == "lowered"
    assert inspect(model, "builder", "--convert").json["runs"] is True


def test_a_k_that_is_no_constant(tmp_path: pathlib.Path) -> None:
    node = top_k("top_k", "x", "n")
    outputs = [("top_k_values", FLOAT, None), ("top_k_indices", INT64, None)]
    model = write(tmp_path / "m.onnx", [node], [("x", FLOAT, [1, 100]), ("n", INT64, [1])], outputs)
    refused = graft("inspect", model, "--truth", "builder", "--target", "sm89", code=2)
    assert "its K is not a constant: 'n' comes from an input" in refused.err
    assert "--shapes n=MIN..OPT..MAX" in refused.err
    assert kinds(inspect(model, "builder", "--shapes", "n=1..4..8")) == {"top_k": "native"}

    cast = helper.make_node("Cast", ["f"], ["n"], name="cast", to=INT64)
    model = write(tmp_path / "c.onnx", [cast, node], [("x", FLOAT, [1, 100]), ("f", FLOAT, [1])], outputs)
    found = verdicts(inspect(model, "parser"))["top_k"]
    assert found["verdict"] == "refused"
    assert "its K is not a constant: 'n' comes from node 'cast' (Cast)" in found["reason"]
    assert (
        "'n', which decides the size of its output, is computed from 'f', an input of the network in f32"
        in found["reason"]
    )
    assert "make the size a constant" in found["advice"]


def test_the_advice_fits_the_operator(tmp_path: pathlib.Path) -> None:
    nodes = [
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "three"], ["chosen"], name="nms", **NOT_GRAFTS),
        helper.make_node("Unique", ["x"], ["u"], name="unique"),
        helper.make_node("MatMulInteger", ["a", "a"], ["m"], name="integer"),
        helper.make_node("Identity", ["text"], ["t"], name="text"),
        top_k("big"),
        helper.make_node(
            "MatMul", ["image", "image"], ["product"], name="product"
        ),  # the node that a cut leaves to TensorRT
    ]
    inputs = [
        ("image", FLOAT, [8, 8]),
        ("boxes", FLOAT, [1, 10, 4]),
        ("scores", FLOAT, [1, 2, 10]),
        ("x", FLOAT, [80000]),
    ]
    inputs += [("a", TensorProto.INT8, [2]), ("text", TensorProto.STRING, [4])]
    outputs = [("chosen", INT64, None), ("u", FLOAT, None), ("m", TensorProto.INT32, None)]
    outputs += [("t", TensorProto.STRING, None), ("big_values", FLOAT, None), ("big_indices", INT64, None)]
    outputs += [("product", FLOAT, None)]
    model = write(tmp_path / "m.onnx", nodes, inputs, outputs, {"three": [3], "k": [BEYOND_PARTS]})
    words = {
        "nms": "the network ends with its boxes and scores",
        "unique": "the size of its output depends on the data",
        "integer": "(QDQ)",
        "text": "convert the strings to numbers before the network",
        "big": "reduce K to at most 3840 if that is enough",
    }
    for level in ("none", "parser", "builder"):
        found = verdicts(inspect(model, level))
        for name, advice in words.items():
            assert found[name]["verdict"] in ("unsupported", "refused", "fails"), (level, name)
            assert advice in found[name]["advice"], (level, name)


def nested(path: pathlib.Path, in_branch: Any, in_function: Any) -> pathlib.Path:
    """Saves an If with a node next to a Relu in a branch, and calls of a function with another node and a Relu."""

    def branch(name: str, *nodes: Any) -> Any:
        return subgraph(nodes, [], [(nodes[-1].output[0], None)])

    domains = [helper.make_opsetid("", 18), helper.make_opsetid("fixture", 1)]
    last = helper.make_node("Relu", [in_function.output[0]], ["f"], name="in_function_relu")
    function = helper.make_function("local", "F", ["x"], ["f"], [in_function, last], domains)
    beside = helper.make_node("Relu", ["x"], ["no"], name="beside")
    nodes = [
        helper.make_node(
            "If", ["c"], ["i"], name="if", then_branch=branch("yes", in_branch), else_branch=branch("else", beside)
        ),
        helper.make_node("F", ["x"], ["f1"], name="call_1", domain="local"),
        helper.make_node("F", ["f1"], ["f2"], name="call_2", domain="local"),
        helper.make_node("Identity", ["x"], ["of_the_domain"], name="identity"),
    ]
    inputs = [("x", FLOAT, [2, 2]), ("c", TensorProto.BOOL, [])]
    model = write(path, nodes, inputs, [("i", FLOAT, None), ("f2", FLOAT, None)], functions=(function,))
    loaded = onnx.load(model)
    loaded.opset_import.append(helper.make_opsetid("fixture", 1))
    onnx.save(loaded, model)
    return model


@pytest.mark.parametrize("name", ["named", ""])
def test_plugins_in_a_branch_and_in_a_function_are_seen(
    tmp_path: pathlib.Path, fixture_library: pathlib.Path, name: str
) -> None:
    in_branch = helper.make_node("FixtureIdentity", ["x"], ["b"], name="in_branch", domain="fixture", gian=2.0)
    in_function = helper.make_node("FixtureIdentity", ["x"], ["m"], name=name, domain="fixture")
    model = nested(tmp_path / "m.onnx", in_branch, in_function)
    found = verdicts(inspect(model, "parser", "--plugin-lib", fixture_library))
    kind = {node: verdict["verdict"] for node, verdict in found.items()}
    assert (kind["if"], kind["beside"], kind["in_branch"]) == ("native", "native", "plugin")
    assert (kind["call_1"], kind["call_2"]) == ("plugin", "plugin")
    for node in ("in_branch", "call_1", "call_2"):
        assert found[node]["plugin"] == "FixtureIdentity 1 of namespace fixture, from libfixture_plugins.so"
    assert found["in_branch"]["cause"] == "plugin_field"
    assert "inside its function" in found["call_1"]["reason"]


def test_what_is_wrong_with_a_plugin_in_a_branch_and_in_a_function(
    tmp_path: pathlib.Path, fixture_library: pathlib.Path
) -> None:
    """The inner node is compared with the plugins, not the node that contains it."""
    in_branch = helper.make_node("FixtureIdentty", ["x"], ["b"], name="in_branch", domain="fixture")
    in_function = helper.make_node("FixtureIdentity", ["x"], ["m"], name="n", domain="fixture", plugin_version="2")
    model = nested(tmp_path / "m.onnx", in_branch, in_function)
    found = verdicts(inspect(model, "parser", "--plugin-lib", fixture_library))
    for node in ("if", "in_branch"):
        assert (found[node]["verdict"], found[node]["cause"]) == ("refused", "plugin_name")
        assert "no plugin is registered under the name FixtureIdentty" in found[node]["reason"]
    assert "inside it, node 'in_branch' (fixture::FixtureIdentty)" in found["if"]["reason"]
    assert found["beside"]["verdict"] == "not asked"  # no fault of it is known
    assert "TensorRT gave no verdict on the node: it is inside 'if'" in found["beside"]["reason"]
    assert (found["call_1"]["verdict"], found["call_1"]["cause"]) == ("refused", "plugin_version")
    assert "inside it, node 'n'" in found["call_1"]["reason"]


def test_open_sizes_reach_the_parts(tmp_path: pathlib.Path) -> None:
    """After a layer that halves a size, the part has half of the size in --shapes."""
    pool = ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]})
    # `graft convert` lowers windows of at most 128 positions.
    dilated = ("MaxPool", {"kernel_shape": [12, 12], "dilations": [2, 2], "pads": [11] * 4})
    model = chain(tmp_path / "m.onnx", [pool, RELU, dilated, RELU], ("n", 3, "h", "w"))
    missing = graft("inspect", model, "--truth", "builder", code=2)
    assert "x is nx3xhxw" in missing.err
    assert "--shapes" in missing.err
    smallest = tmp_path / "smallest.onnx"
    given = ("--shapes", "x=1x3x8x8..2x3x16x16..4x3x32x64", "--reduce", smallest)
    answer = inspect(model, "builder", *given)
    assert kinds(answer) == {"n0": "native", "n1": "native", "n2": "refused", "n3": "native"}
    reduced = answer.json["reduced"]
    assert reduced["shapes"] == ["v1=1x3x4x4..2x3x8x8..4x3x16x32"]
    again = inspect(smallest, "builder", "--shapes", reduced["shapes"][0])
    assert kinds(again) == {"n2": "refused"}


def test_what_a_failing_node_feeds_with_whole_numbers_is_not_asked(tmp_path: pathlib.Path) -> None:
    nodes = [
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "three"], ["chosen"], name="nms", **NOT_GRAFTS),
        helper.make_node("Gather", ["chosen", "two"], ["box"], name="gather", axis=1),
        helper.make_node("Cast", ["box"], ["y"], name="cast", to=FLOAT),
        helper.make_node("Relu", ["scores"], ["z"], name="relu"),
    ]
    inputs = [("boxes", FLOAT, [1, 10, 4]), ("scores", FLOAT, [1, 2, 10])]
    model = write(
        tmp_path / "m.onnx", nodes, inputs, [("y", FLOAT, None), ("z", FLOAT, None)], {"three": [3], "two": 2}
    )
    found = verdicts(inspect(model, "builder"))
    assert (found["nms"]["verdict"], found["relu"]["truth"]) == ("fails", "builder")
    for name in ("gather", "cast"):
        assert (found[name]["truth"], found[name]["verdict"]) == ("rule", "not asked")
        assert (
            "TensorRT gave no verdict on the node: it needs the output of 'nms', which TensorRT did not accept"
            in found[name]["reason"]
        )


@pytest.mark.parametrize("level", ["parser", "builder"])
def test_what_lies_behind_bad_plugins_is_asked_as_if_they_were_what_was_meant(
    tmp_path: pathlib.Path, fixture_library: pathlib.Path, level: str
) -> None:
    relu = ("Relu", {})
    misspelt, misplaced = ("FixtureIdentitty", {}), ("FixtureIdentity", {"plugin_namespace": "fixtures"})
    bad = [relu, misspelt, relu, misplaced, relu, ("FixtureIdentity", {"plugin_version": "7"}), relu]
    model = chain(tmp_path / "m.onnx", [*bad, ("FixtureIdentity", {"gain": 2.0}), ("FixtureSegfault", {}), relu])
    loaded = onnx.load(model)
    loaded.graph.node[3].domain = "acme"
    loaded.opset_import.append(helper.make_opsetid("acme", 1))
    onnx.save(loaded, model)
    answer = inspect(model, level, "--plugin-lib", fixture_library)
    found = verdicts(answer)
    last = "crashes" if level == "builder" else "plugin"
    wanted = ["native", "refused", "native", "refused", "native", "refused", "native", "plugin", last, "native"]
    assert [node["verdict"] for node in found.values()] == wanted
    causes = {1: "plugin_name", 3: "plugin_namespace", 5: "plugin_version"}
    assert all(found[f"n{i}"]["cause"] == cause for i, cause in causes.items())
    assert {node["truth"] for node in found.values() if node["verdict"] == "native"} == {level}
    assert found["n0"]["reason"] == ""
    for i in (2, 4, 6, 7, 8, 9):
        assert (
            "judged under the assumption that 'n1' is the plugin FixtureIdentity of version 1"
            in found[f"n{i}"]["reason"]
        )
    assert answer.json["counts"]["not asked"] == 0
    assert answer.json["version"] == 2


def behind_an_unknown_plugin(path: pathlib.Path, declared: list[int] | None) -> pathlib.Path:
    """Saves x (1 x 4) -> Wobble -> w -> MatMul with 8 x 2 -> Relu; and Relu, Det and another unknown operator after
    Wobble."""
    nodes = [
        helper.make_node("Wobble", ["x"], ["w"], name="wobble", domain="acme"),
        helper.make_node("MatMul", ["w", "weights"], ["m"], name="multiply"),
        helper.make_node("Relu", ["m"], ["y"], name="behind"),
        helper.make_node("Sigmoid", ["w"], ["s"], name="fits_anything"),
        helper.make_node("Det", ["w"], ["d"], name="det"),
        helper.make_node("Twirl", ["w"], ["t"], name="twirl", domain="acme"),
    ]
    constants = {"weights": np.ones((8, 2), np.float32)}
    outputs = [(name, FLOAT, None) for name in "ysdt"]
    model = write(path, nodes, [("x", FLOAT, [1, 4])], outputs, constants)
    if declared:
        loaded = onnx.load(model)
        loaded.graph.value_info.append(helper.make_tensor_value_info("w", FLOAT, declared))
        onnx.save(loaded, model)
    return model


def test_what_nobody_knows_is_supposed_and_not_believed(tmp_path: pathlib.Path) -> None:
    """The output of an unknown plugin is assumed to be like its input; a refusal that may follow from this
    assumption is not a verdict."""
    answer = inspect(behind_an_unknown_plugin(tmp_path / "m.onnx", None), "parser")
    found = verdicts(answer)
    assert {name: node["verdict"] for name, node in found.items()} == {
        "wobble": "refused",
        "multiply": "not asked",
        "behind": "not asked",
        "fits_anything": "native",
        "det": "refused",
        "twirl": "refused",
    }
    assert (
        "under the assumption that the output of 'wobble' has the type and shape of 'x', f32[1, 4]"
        in found["fits_anything"]["reason"]
    )
    assert "TensorRT refuses it if the output of 'wobble' has the type" in found["multiply"]["reason"]
    assert "it needs the output of 'multiply', which TensorRT did not accept" in found["behind"]["reason"]
    assert found["twirl"]["cause"] == "library_missing"
    assert answer.json["counts"]["native"] == 1
    assert answer.json["counts"]["not asked"] == 2


def test_what_the_file_declares_behind_an_unknown_plugin_counts(tmp_path: pathlib.Path) -> None:
    found = kinds(inspect(behind_an_unknown_plugin(tmp_path / "m.onnx", [1, 8]), "builder"))
    assert found["multiply"] == found["behind"] == found["fits_anything"] == "native"
    assert found["wobble"] == found["det"] == found["twirl"] == "refused"


@pytest.mark.parametrize("level", ["none", "parser"])
def test_a_node_with_a_fault_is_judged_like_any_other(
    tmp_path: pathlib.Path, graft_library: pathlib.Path, level: str
) -> None:
    """Every fault is the verdict on its node, with the file's name; the other nodes are judged as usual."""
    text = {
        "none": "attribute `negSlope` has type string; it must have type float",
        "parser": "negSlope is string, and the plugin expects float32",
    }
    faulty = {
        "misspelt": ({"negslope": 0.1}, "no attribute `negslope` (did you mean `negSlope`?)"),
        "text": ({"negSlope": "0.1"}, text[level]),
        "version": ({"negSlope": 0.1, "plugin_version": 1}, "attribute `plugin_version` has the type int"),
    }
    nodes = [
        helper.make_node("LReLU_TRT", ["x"], [name], name=name, domain="trt", **attributes)
        for name, (attributes, _) in faulty.items()
    ]
    nodes += [
        helper.make_node("Add", ["x", "three"], ["a"], name="contradicts"),
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
    ]
    outputs = [(node.output[0], FLOAT, None) for node in nodes]
    model = write(tmp_path / "m.onnx", nodes, [("x", FLOAT, [1, 4])], outputs, {"three": np.ones(3, np.float32)})
    answer = inspect(model, level, *(["--plugin-lib", graft_library] if level == "parser" else []))
    found = verdicts(answer)
    assert answer.code == 1
    assert found["relu"]["verdict"] == "native"
    for name, (_, words) in faulty.items():
        assert words in found[name]["reason"], found[name]
        assert found[name]["verdict"] in ("unsupported", "refused", "plugin")
    assert found["misspelt"]["reason"].startswith(str(model)) or level == "parser"
    assert "dimensions 4 and 3 cannot be broadcast" in found["contradicts"]["reason"]
    assert found["contradicts"]["verdict"] in ("unsupported", "refused")


def test_grafts_own_plugin(tmp_path: pathlib.Path, graft_library: pathlib.Path) -> None:
    settings: dict[str, Any] = {"axes": [1], "epsilon": 1e-12, "epsilon_mode": "max"}
    node = helper.make_node("L2Normalize", ["x"], ["y"], name="norm", domain="graft", **settings)
    model = write(tmp_path / "m.onnx", [node], [("x", FLOAT, [1, 8, 4, 4])], [("y", FLOAT, None)])
    found = verdicts(inspect(model, "builder", "--plugin-lib", graft_library))["norm"]
    assert (found["verdict"], found["truth"]) == ("plugin", "builder")
    assert found["plugin"] == "L2Normalize 1 of namespace graft, from libgraft_plugins.so"


def test_options_that_need_a_truth(tmp_path: pathlib.Path) -> None:
    model = chain(tmp_path / "m.onnx", [RELU])
    for flags in (["--reduce", "o.onnx"], ["--shapes", "x=1x4"], ["--plugin-override"]):
        answer = graft("inspect", model, "--probe", "none", *flags, code=2)
        assert f"{flags[0]} applies to the installed TensorRT" in answer.err
    answer = graft("inspect", model, "--truth", "parser", "--plugin-lib", tmp_path / "none.so", code=2)
    assert "no such file" in answer.err
    whole = tmp_path / "whole.onnx"
    answer = graft("inspect", model, "--truth", "builder", "--target", "sm89", "--reduce", whole, code=0)
    assert "TensorRT accepts the whole model" in answer.err
    assert not whole.exists()
    outputs = [("big_values", FLOAT, None), ("big_indices", INT64, None)]
    model = write(tmp_path / "big.onnx", [top_k("big")], [("x", FLOAT, [80000])], outputs, {"k": [BEYOND_PARTS]})
    answer = graft("inspect", model, "--truth", "parser", "--reduce", whole, code=1)
    assert "TensorRT's parser accepts the whole model; by the rules, its builder does not accept 1 node" in answer.err
    assert "--probe builder runs the builder" in answer.err
