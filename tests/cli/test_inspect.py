# graft inspect: its rules against the real parser, and each verdict with its reason.
import onnx
import onnx.defs
import pytest
from conftest import DIGITS, save
from onnx import TensorProto, helper


def verdicts(answer):
    return {node["node"]: node for node in answer.json["nodes"]}


def test_refused_operators_are_those_that_the_real_parser_refuses(graft, tmp_path):
    trt = pytest.importorskip("tensorrt_rtx")
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    parser = trt.OnnxParser(builder.create_network(0), logger)
    names = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})
    assert len(names) > 200
    # NonMaxSuppression parses and then cannot be built: known by rule only.
    refused = {name for name in names if not parser.supports_operator(name)} | {"NonMaxSuppression"}

    # Sub-graphs and required attributes do not matter for the rule, so nodes are left bare; control flow needs a body.
    bare = [name for name in names if name not in ("If", "Loop", "Scan", "SequenceMap", "Constant", "ConstantOfShape")]
    nodes = [helper.make_node(name, ["x"], [f"y_{name}"], name=name) for name in bare]
    sink = helper.make_node("Sink", [f"y_{name}" for name in bare], ["y"], name="sink", domain="acme")
    model = save(tmp_path / "all.onnx", [*nodes, sink], [("x", None)], [("y", None)], opset=24, domains=["acme"])
    answer = graft("inspect", model, "--json")
    assert answer.code == 1, answer.err
    unsupported = {name for name, node in verdicts(answer).items() if node["verdict"] == "unsupported"}
    assert unsupported - {"sink"} == refused & set(bare)


def test_digits_network_is_native_and_says_what_convert_fuses(graft):
    answer = graft("inspect", DIGITS, "--json")
    assert answer.code == 0
    assert answer.json["counts"]["native"] == len(answer.json["nodes"]) == 18
    assert "L2Normalize" in verdicts(answer)["/Div"]["reason"]


def test_converted_digits_network_has_a_plugin_with_its_reason(graft, converted):
    answer = graft("inspect", converted, "--json")
    assert answer.code == 0
    assert answer.json["counts"]["plugin"] == 1
    (plugin,) = (n for n in answer.json["nodes"] if n["verdict"] == "plugin")
    assert plugin["operator"] == "graft::L2Normalize"
    assert "TensorRT" in plugin["reason"]


def test_drop_in_plugin_is_lowered_where_the_native_layer_is_as_fast(graft, tmp_path):
    node = helper.make_node("LReLU_TRT", ["x"], ["y"], name="act", negSlope=0.2)
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 4])], [("y", [1, 4])])
    answer = graft("inspect", model, "--json")
    assert answer.code == 0
    assert verdicts(answer)["act"]["verdict"] == "lowered"


def test_unknown_operator_is_unsupported_and_named(graft, tmp_path):
    node = helper.make_node("Wobble", ["x"], ["y"], name="strange", domain="acme")
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 4])], [("y", [1, 4])], domains=["acme"])
    answer = graft("inspect", model)
    assert answer.code == 1
    assert "Wobble" in answer.out
    assert "acme" in answer.out
    assert "--plugin-lib" in answer.out


def test_function_is_judged_by_its_worst_node(graft, tmp_path):
    def model_with(inner):
        body = [helper.make_node("Relu", ["a"], ["r"]), helper.make_node(inner, ["r"], ["b"], name="inner")]
        function = helper.make_function("local", "F", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
        node = helper.make_node("F", ["x"], ["y"], name="call", domain="local")
        path = tmp_path / f"{inner}.onnx"
        return save(path, [node], [("x", [2, 2])], [("y", None)], functions=[function], domains=["local"])

    assert verdicts(graft("inspect", model_with("Sigmoid"), "--json"))["call"]["verdict"] == "native"
    judged = verdicts(graft("inspect", model_with("Det"), "--json"))["call"]
    assert judged["verdict"] == "unsupported"
    assert "inner" in judged["reason"]


INT64 = TensorProto.INT64
FORMS = {
    "TopK": (dict(inputs=["x", "k"], outputs=["v", "i"]), True),
    "Resize": (dict(inputs=["x", "", "scales"], outputs=["v"], antialias=1, mode="linear"), True),
    "MaxPool": (dict(inputs=["x"], outputs=["v"], kernel_shape=[2, 2], dilations=[2, 2]), True),
    "ScatterND": (dict(inputs=["x", "at", "x"], outputs=["v"], reduction="add"), True),
}


def form(op, changed=(), **attributes):
    settings, _ = FORMS[op]
    keywords = {k: v for k, v in settings.items() if k not in ("inputs", "outputs")} | attributes
    for name in changed:
        keywords.pop(name)
    return helper.make_node(op, settings["inputs"], settings["outputs"], name="n", **keywords)


@pytest.mark.parametrize(
    ("node", "k", "verdict"),
    [
        (form("TopK"), 3841, "unsupported"),
        (form("TopK"), 3840, "native"),
        (form("Resize"), 1, "unsupported"),
        (form("Resize", ["antialias"]), 1, "native"),
        (form("MaxPool"), 1, "unsupported"),
        (form("MaxPool", ["dilations"]), 1, "native"),
        (form("ScatterND"), 1, "unsupported"),
        (form("ScatterND", ["reduction"]), 1, "native"),
    ],
)
def test_forms_of_an_operator(graft, tmp_path, node, k, verdict):
    constants = [
        helper.make_tensor("k", INT64, [1], [k]),
        helper.make_tensor("scales", TensorProto.FLOAT, [4], [1, 1, 0.5, 2]),
        helper.make_tensor("at", INT64, [1, 1, 1, 1, 4], [0, 0, 0, 0]),
    ]
    used = [c for c in constants if c.name in node.input]
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 1, 8, 5000])], [("v", None)], used, opset=18)
    answer = graft("inspect", model, "--json")
    judged = verdicts(answer)["n"]
    assert judged["verdict"] == verdict, judged
    assert (answer.code == 0) == (verdict == "native")


def test_an_antialiased_resize_that_enlarges_is_lowered(graft, tmp_path):
    scales = helper.make_tensor("scales", TensorProto.FLOAT, [4], [1, 1, 2, 2])
    model = save(tmp_path / "m.onnx", [form("Resize")], [("x", [1, 1, 8, 8])], [("v", None)], [scales], opset=18)
    answer = graft("inspect", model, "--json")
    assert answer.code == 0, answer.err
    assert verdicts(answer)["n"]["verdict"] == "lowered"
