# graft inspect: compares its rules with TensorRT's parser, and checks each verdict and its reason.
import importlib.util
import json
import re
import shlex

import numpy as np
import onnx
import onnx.defs
import pytest
from conftest import DIGITS, SOURCE, needs_plugin_library
from onnx import TensorProto, helper
from onnx_models import info, make_model, save, session_of, subgraph


def verdicts(answer):
    return {node["node"]: node for node in answer.json["nodes"]}


def test_refused_operators_are_those_that_the_real_parser_refuses(graft, tmp_path):
    trt = pytest.importorskip("tensorrt_rtx")
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    parser = trt.OnnxParser(builder.create_network(0), logger)
    names = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})
    assert len(names) > 200
    # NonMaxSuppression is parsed but cannot be built. For the others, the parser requests a plugin that does not exist,
    # or it accepts no floating-point numbers, or, as QuantizeLinear without a zero point, the output is uint8: this is
    # known by rule only.
    refused = {name for name in names if not parser.supports_operator(name)}
    refused |= {"NonMaxSuppression", "CausalConvWithState", "LinearAttention", "Mod", "QuantizeLinear"}
    computed = {op["onnx_name"] for op in graft("ops", "--json").json["operators"]}

    # The rule does not depend on subgraphs and attributes, so nodes have only the inputs and outputs that the schema
    # requires; control flow needs a body. Inputs have the first of these types that ONNX allows.
    types = {
        "tensor(float)": info("x"),
        "tensor(uint32)": info("u32", TensorProto.UINT32),
        "tensor(int8)": info("i8", TensorProto.INT8),
        "tensor(uint8)": info("u8", TensorProto.UINT8),
        "tensor(int64)": info("i64", TensorProto.INT64),
        "tensor(bool)": info("bool", TensorProto.BOOL),
        "tensor(string)": info("text", TensorProto.STRING),
        "seq(tensor(float))": helper.make_tensor_sequence_value_info("list", TensorProto.FLOAT, None),
    }
    bare = [name for name in names if name not in ("If", "Loop", "Scan", "SequenceMap", "Constant", "ConstantOfShape")]
    nodes = []
    for name in bare:
        schema = onnx.defs.get_schema(name)
        outputs = [f"y_{name}", *(f"y_{name}_{place}" for place in range(1, schema.min_output))]
        inputs = []
        for place in range(min(max(1, schema.min_input), schema.max_input)):
            allowed = schema.inputs[min(place, len(schema.inputs) - 1)].types
            inputs.append(next(value.name for kind, value in types.items() if kind in allowed))
        nodes.append(helper.make_node(name, inputs, outputs, name=name))
    sink = helper.make_node("Sink", [f"y_{name}" for name in bare], ["y"], name="sink", domain="acme")
    model = save(tmp_path / "all.onnx", [*nodes, sink], types.values(), [("y", None)], opset=24, domains=["acme"])
    answer = graft("inspect", model, "--json", code=1)
    found = {verdict: set() for verdict in ("unsupported", "plugin", "lowered")}
    for name, node in verdicts(answer).items():
        found.setdefault(node["verdict"], set()).add(name)
    assert found["lowered"] == {
        "DynamicQuantizeLinear",
        "Mod",
        "NegativeLogLikelihoodLoss",
        "OptionalGetElement",
        "OptionalHasElement",
        "SoftmaxCrossEntropyLoss",
        "SwiGLU",
    }
    # TensorRT supports these forms of the others: they scatter without a reduction, and K is 1.
    assert found["plugin"] == computed & set(bare) - {"ScatterElements", "ScatterND", "TopK"}
    have_computed_parameters = {"STFT", "Unsqueeze"}
    rewritten = found["lowered"] | found["plugin"] | found["unknown"]
    assert found["unsupported"] - {"sink"} == (refused & set(bare) | have_computed_parameters) - rewritten


@pytest.mark.parametrize("op", ["GRU", "LSTM", "RNN"])
def test_a_node_that_tensorrt_builds_and_computes_wrongly_is_not_native(graft, tmp_path, op):
    """TensorRT ignores layout = 1: its output has the batch and the time exchanged."""
    pytest.importorskip("tensorrt_rtx")
    rows = {"GRU": 24, "LSTM": 32, "RNN": 8}[op]
    weights = {name: np.full((1, rows, columns), 0.1, "f4") for name, columns in (("w", 4), ("r", 8))}
    node = helper.make_node(op, ["x", "w", "r"], ["y"], name="recurrent", hidden_size=8, layout=1)
    model = save(tmp_path / "m.onnx", [node], [("x", [2, 5, 4])], [("y", None)], weights, opset=17)
    answer = graft("inspect", model, "--target", "sm120", "--json")
    assert answer.json["built"]
    found = verdicts(answer)["recurrent"]
    assert found["verdict"] == "lowered"
    assert "computes wrong values" in found["reason"]
    assert [step["command"].split()[:2] for step in answer.json["next"]] == [["graft", "convert"]]


WRONG_FORMS = {
    "SAME_UPPER": [("ConvTranspose", "x w", dict(auto_pad="SAME_UPPER", output_shape=[15, 15], strides=[2, 2]))],
    "SAME_LOWER": [("ConvTranspose", "x w", dict(auto_pad="SAME_LOWER", output_shape=[15, 15], strides=[2, 2]))],
    "VALID": [("ConvTranspose", "x w", dict(auto_pad="VALID", output_shape=[15, 15], strides=[2, 2]))],
    "MaxPool": [("MaxPool", "x", dict(ceil_mode=1, kernel_shape=[1, 1], strides=[3, 2]))],
    "MaxPool with pads": [("MaxPool", "x", dict(ceil_mode=1, kernel_shape=[2, 2], strides=[3, 3], pads=[1] * 4))],
    "LpPool": [("LpPool", "x", dict(ceil_mode=1, kernel_shape=[1, 1], strides=[2, 2]))],
}
RIGHT_FORMS = {
    "i8": [("QuantizeLinear", "x s i", {}), ("DequantizeLinear", "y s i", {})],
    "SAME_UPPER": [("ConvTranspose", "x w", dict(auto_pad="SAME_UPPER", output_shape=[16, 16], strides=[2, 2]))],
    "VALID": [("ConvTranspose", "x w", dict(auto_pad="VALID", output_shape=[17, 17], strides=[2, 2]))],
    "output_shape": [("ConvTranspose", "x w", dict(output_shape=[15, 15], strides=[2, 2]))],
    "auto_pad": [("ConvTranspose", "x w", dict(auto_pad="SAME_UPPER", strides=[2, 2]))],
    "MaxPool": [("MaxPool", "x", dict(ceil_mode=1, kernel_shape=[3, 3], strides=[2, 2]))],
    "LpPool": [("LpPool", "x", dict(ceil_mode=1, kernel_shape=[3, 3], strides=[2, 2]))],
}


def special_form(path, rows):
    """Saves a chain of nodes x, y, z, ..., which have the output of the node before or constants as inputs."""
    constants = {"s": np.float32(0.1), "u": np.uint8(0), "i": np.int8(0), "w": np.ones((3, 4, 3, 3), np.float32)}
    used = {name for _, inputs, _ in rows for name in inputs.split()}
    nodes = [
        helper.make_node(op, inputs.split(), [output], name=f"n{output}", **attributes)
        for (op, inputs, attributes), output in zip(rows, "yz", strict=False)
    ]
    weights = {name: values for name, values in constants.items() if name in used}
    return save(path, nodes, [("x", [1, 3, 8, 8])], [("yz"[len(rows) - 1], None)], weights, opset=22)


def output_of_network(model):
    """Returns the sizes of the network's output in TensorRT."""
    trt = pytest.importorskip("tensorrt_rtx")
    logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
    network = trt.Builder(logger).create_network(0)
    parser = trt.OnnxParser(network, logger)
    assert parser.parse(model.read_bytes())
    return tuple(network.get_output(0).shape)


@pytest.mark.parametrize("form", WRONG_FORMS)
def test_a_form_that_tensorrt_builds_with_other_results_stays_a_finding(graft, tmp_path, form):
    """ONNX Runtime's output has other sizes than TensorRT's."""
    model = special_form(tmp_path / "m.onnx", WRONG_FORMS[form])
    (truth,) = session_of(model).run(None, {"x": np.ones((1, 3, 8, 8), np.float32)})
    assert output_of_network(model) != truth.shape
    answer = graft("inspect", model, "--target", "sm120", "--json", code=1)
    advised = "explicit pads"
    for found in answer.json["nodes"]:
        assert found["verdict"] == "unsupported"
        assert found["cause"] == "computed wrongly"
        assert "computes wrong values" in found["reason"]
        assert advised in found["advice"]
    assert graft("convert", model, "-o", tmp_path / "c.onnx", "--target", "sm120").code == 1
    built = graft("build", model, "-o", tmp_path / "m.engine", "--target", "sm120", "--json")
    assert built.code == 1, "the engine computes something else than the model says"
    wrong = built.json["computed_wrongly"]
    assert len(wrong) == len(answer.json["nodes"])
    assert all(advised in node["advice"] for node in wrong)


@pytest.mark.parametrize("names", ["x s u", "x s"])
def test_u8_that_tensorrt_reads_as_i8_is_replaced(graft, tmp_path, names):
    rows = [("QuantizeLinear", names, {}), ("DequantizeLinear", names.replace("x", "y"), {})]
    model = special_form(tmp_path / "m.onnx", rows)
    for found in graft("inspect", model, "--target", "sm120", "--json", code=0).json["nodes"]:
        assert found["verdict"] == "lowered"
        assert "computes wrong values" in found["reason"]
    assert graft("convert", model, "-o", tmp_path / "c.onnx", "--target", "sm120").code == 0
    built = graft("build", model, "-o", tmp_path / "m.engine", "--target", "sm120", "--json")
    assert built.code == 1, "the engine computes something else than the model says"
    assert all(node["advice"].startswith("graft convert replaces it") for node in built.json["computed_wrongly"])
    assert len(built.json["computed_wrongly"]) == 2


WITHOUT_RULE = {
    "MaxPool": ("MaxPool", "x", dict(auto_pad="VALID", ceil_mode=1, kernel_shape=[1, 1], strides=[2, 2])),
    "LpPool": ("LpPool", "x", dict(auto_pad="VALID", ceil_mode=1, kernel_shape=[1, 1], strides=[2, 2])),
    "ConvTranspose": ("ConvTranspose", "x w", dict(auto_pad="VALID", output_padding=[1, 1], strides=[2, 2])),
}


@pytest.mark.parametrize("form", WITHOUT_RULE)
def test_a_form_without_a_rule_is_found_by_its_sizes(graft, tmp_path, form):
    """ONNX Runtime's output has other sizes than TensorRT's."""
    model = special_form(tmp_path / "m.onnx", [WITHOUT_RULE[form]])
    (truth,) = session_of(model).run(None, {"x": np.ones((1, 3, 8, 8), np.float32)})
    built, defined = ("x".join(map(str, shape)) for shape in (output_of_network(model), truth.shape))
    assert built != defined
    (found,) = graft("inspect", model, "--target", "sm120", "--json", code=1).json["nodes"]
    assert (found["verdict"], found["cause"]) == ("unsupported", "computed wrongly")
    assert found["reason"].endswith(f"builds it, but its output 'y' is {built} where ONNX defines {defined}")
    assert graft("convert", model, "-o", tmp_path / "c.onnx", "--target", "sm120").code == 1
    built_model = graft("build", model, "-o", tmp_path / "m.engine", "--target", "sm120", "--json")
    (wrong,) = built_model.json["computed_wrongly"]
    assert wrong["reason"] == f"its output 'y' is {built} where ONNX defines {defined}"


def test_sizes_that_differ_from_onnx_are_a_finding_without_a_rule(graft, tmp_path):
    """The rules know no size of the pooled axes. For 4x4, TensorRT adds a window that starts after the data; the network
    has an output of its usual size."""
    pytest.importorskip("tensorrt_rtx")
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("MaxPool", ["r"], ["p"], name="pool", ceil_mode=1, kernel_shape=[1, 1], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["y"], name="mean"),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 3, "h", "w"])], [("y", [1, 3, 1, 1])], opset=22)
    pool = save(tmp_path / "pool.onnx", nodes[:2], [("x", [1, 3, "h", "w"])], [("p", [1, 3, "a", "b"])], opset=22)
    (truth,) = session_of(pool).run(None, {"x": np.ones((1, 3, 4, 4), np.float32)})
    assert truth.shape == (1, 3, 2, 2)
    options = ("--shapes", "x=1x3x4x4..1x3x5x5..1x3x5x5", "--target", "sm120")
    answer = graft("inspect", model, *options, "--json", code=1)
    found = {node["node"]: node for node in answer.json["nodes"]}
    assert {name: node["verdict"] for name, node in found.items()} == {
        "relu": "native",
        "pool": "unsupported",
        "mean": "native",
    }
    reason = "its output 'p' is 1x3x3x3 where ONNX defines 1x3x2x2 for x=1x3x4x4"
    assert found["pool"]["cause"] == "computed wrongly"
    assert found["pool"]["reason"].startswith("TensorRT-RTX 1.")
    assert found["pool"]["reason"].endswith(f"builds it, but {reason}")
    assert graft("convert", model, "-o", tmp_path / "c.onnx", *options).code == 1
    (wrong,) = graft("build", model, "-o", tmp_path / "m.engine", *options, "--json").json["computed_wrongly"]
    assert (wrong["node"], wrong["reason"]) == ("pool", reason)
    right = ("--shapes", "x=1x3x5x5..1x3x5x5..1x3x5x5", "--target", "sm120")
    assert graft("inspect", model, *right).code == 0
    assert graft("build", model, "-o", tmp_path / "m.engine", *right, "--json").json["computed_wrongly"] == []


@pytest.mark.parametrize("form", RIGHT_FORMS)
def test_a_form_that_is_like_a_wrong_one_and_right_is_native(graft, tmp_path, form):
    model = special_form(tmp_path / "m.onnx", RIGHT_FORMS[form])
    (truth,) = session_of(model).run(None, {"x": np.ones((1, 3, 8, 8), np.float32)})
    assert output_of_network(model) == truth.shape
    answer = graft("inspect", model, "--target", "sm120", "--json", code=0)
    assert {node["verdict"] for node in answer.json["nodes"]} == {"native"}


def test_the_sizes_for_which_tensorrt_did_not_build_are_named_where_others_build(graft, tmp_path):
    """The branches have different sizes; TensorRT builds them only for one row."""
    pytest.importorskip("tensorrt_rtx")
    narrow = helper.make_node("ReduceSum", ["x", "axes"], ["e"])
    branches = {
        f"{name}_branch": subgraph([made], [], [(made.output[0], ["n", columns])])
        for name, made, columns in (("then", helper.make_node("Identity", ["x"], ["t"]), 4), ("else", narrow, 1))
    }
    axes = {"axes": np.array([1])}
    model = save(
        tmp_path / "m.onnx",
        [helper.make_node("If", ["c"], ["y"], name="if", **branches)],
        [("x", ["n", 4]), ("c", TensorProto.BOOL, [])],
        [("y", ["n", "k"])],
        axes,
        opset=18,
    )
    words = " built the model for x=1x4..1x4..1x4, but not for x=1x4..4x4..8x4"
    target = ("--target", "sm120")
    assert words in " ".join(graft("inspect", model, *target).out.split())
    answer = graft("inspect", model, *target, "--json").json
    assert answer["answered_by"].endswith(words)
    assert answer["failing_shapes"] == ["x=1x4..4x4..8x4"]
    converted = graft("convert", model, "-o", tmp_path / "c.onnx", *target).out
    assert " builds the result for x=1x4..1x4..1x4, but not for x=1x4..4x4..8x4" in " ".join(converted.split())


def test_digits_network_is_native_and_says_what_convert_fuses(graft):
    answer = graft("inspect", DIGITS, "--json", code=0)
    assert answer.json["counts"]["native"] == len(answer.json["nodes"]) == 18
    assert "L2Normalize" in verdicts(answer)["/Div"]["reason"]


def test_converted_digits_network_has_a_plugin_with_its_reason(graft, converted):
    answer = graft("inspect", converted, "--json", code=0)
    assert answer.json["counts"]["plugin"] == 1
    (plugin,) = (n for n in answer.json["nodes"] if n["verdict"] == "plugin")
    assert plugin["operator"] == "graft::L2Normalize"
    assert "TensorRT" in plugin["reason"]


def test_inspect_says_before_and_after_what_convert_says(graft, tmp_path):
    """Checks that the same reason appears for the given model, for the converted file and for the conversion in
    memory."""
    out = tmp_path / "out.onnx"
    (choice,) = (c for c in graft("convert", DIGITS, "-o", out, "--json").json["choices"] if c["kind"] == "plugin")
    assert choice["reason"] in verdicts(graft("inspect", DIGITS, "--json"))["/Div"]["reason"]
    for arguments in ([out], [DIGITS, "--convert"]):
        nodes = graft("inspect", *arguments, "--json").json["nodes"]
        (plugin,) = (n for n in nodes if n["verdict"] == "plugin")
        assert plugin["reason"] == choice["reason"]
    always = tmp_path / "always.onnx"
    node = helper.make_node("LeakyRelu", ["x"], ["y"], name="act", alpha=0.2)
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 4])], [("y", [1, 4])])
    (choice,) = graft("convert", model, "-o", always, "--plugins", "always", "--json").json["choices"]
    (plugin,) = onnx.load(always).graph.node  # `graft build` reports this note; inspect reports what convert would do
    notes = {note.key: note.value for note in plugin.metadata_props}
    assert notes["graft.reason"] == choice["reason"] == "requested: plugins wherever possible"


def test_a_convolution_in_f32_is_no_plugin_for_int8(graft, tmp_path):
    fields = {"num_output": 2, "kernel_h": 3, "kernel_w": 3, "kernel_weights": [0.5] * 18, "bias_weights": [0.0, 1.0]}
    node = helper.make_node("CONVOLUTION", ["x"], ["y"], name="c", domain="trt", plugin_version="1", **fields)
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 1, 8, 8])], [("y", None)], domains=["trt"])
    out = tmp_path / "out.onnx"
    (choice,) = graft("convert", model, "-o", out, "--json").json["choices"]
    reasons = [graft("inspect", path, "--json").json["nodes"][0]["reason"] for path in (model, out)]
    assert choice["reason"] in reasons[0]
    assert choice["reason"] == reasons[1]
    assert "int8" not in choice["reason"]
    assert "weights are fields of the plugin" in choice["reason"]


def test_drop_in_plugin_is_lowered_where_the_native_layer_is_as_fast(graft, tmp_path):
    node = helper.make_node("LReLU_TRT", ["x"], ["y"], name="act", negSlope=0.2)
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 4])], [("y", [1, 4])])
    answer = graft("inspect", model, "--json", code=0)
    assert verdicts(answer)["act"]["verdict"] == "lowered"


def test_unknown_operator_is_unsupported_and_named(graft, tmp_path):
    node = helper.make_node("Wobble", ["x"], ["y"], name="strange", domain="acme")
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 4])], [("y", [1, 4])], domains=["acme"])
    answer = graft("inspect", model, code=1)
    assert "Wobble" in answer.out
    assert "acme" in answer.out
    assert "--plugin-lib" in answer.out
    assert "ONNX Runtime" not in answer.out, "it does not have the operator either"


def test_a_type_of_the_result_is_to_be_another_one(graft, tmp_path):
    node = helper.make_node("Cast", ["x"], ["y"], name="n", to=TensorProto.FLOAT8E5M2)
    model = save(tmp_path / "m.onnx", [node], [("x", [2, 8])], [("y", TensorProto.FLOAT8E5M2, [2, 8])], opset=19)
    judged = verdicts(graft("inspect", model, "--json"))["n"]
    assert judged["verdict"] != "native"
    assert judged["advice"] == "let Cast return another type, such as f32"


def test_no_plugin_is_advised_where_the_name_is_of_onnx(graft, tmp_path):
    pytest.importorskip("tensorrt_rtx")
    node = helper.make_node("Gelu", ["x"], ["y"], name="n", domain="theirs")
    model = save(tmp_path / "m.onnx", [node], [("x", [2, 4])], [("y", [2, 4])], domains=["theirs"])
    judged = verdicts(graft("inspect", model, "--target", "sm120", "--json"))["n"]
    assert "as ONNX's Gelu, although its domain is 'theirs'" in judged["reason"]
    assert judged["advice"].startswith("remove the domain of the node if you mean ONNX's Gelu")
    assert "plugin" not in judged["advice"]


@pytest.mark.parametrize(
    ("op_type", "domain", "attributes", "reason", "advice"),
    [
        (
            "LReLU_TRT",
            "trt",
            {"plugin_version": "2"},
            "the node has plugin_version = '2'",
            "set the string attribute plugin_version to '1'",
        ),
        ("LReLU_TRT", "trt", {"plugin_namespace": "nvidia"}, "= 'nvidia'", "remove plugin_namespace if"),
        ("LReLU_TRT", "acme", {}, "the node has the domain 'acme'", "set the node's domain to trt"),
        ("L2Normalize", "acme", {}, "the node has the domain 'acme'", "set the node's domain to graft"),
        (
            "LReLU_TRTT",
            "trt",
            {},
            "did you mean LReLU_TRT",
            "if you mean LReLU_TRT, set the node's operator type to LReLU_TRT",
        ),
        ("HardSwishh", "", {}, "did you mean ONNX's HardSwish?", "if you mean HardSwish"),
        ("InstanceNormalization", "acme", {}, "ignores the domain of the node", "remove the domain of the node"),
    ],
)
def test_the_advice_follows_from_what_is_known(graft, tmp_path, op_type, domain, attributes, reason, advice):
    node = helper.make_node(op_type, ["x"], ["y"], name="n", domain=domain, **attributes)
    domains = [domain] if domain else []
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 4])], [("y", None)], domains=domains)
    judged = verdicts(graft("inspect", model, "--json"))["n"]
    # TensorRT's parser does take a node by its name alone, so that the rules cannot say that it is refused.
    assert judged["verdict"] == ("unknown" if "ignores the domain" in reason else "unsupported")
    assert reason in judged["reason"]
    assert judged["advice"].startswith(advice)


def test_a_conversion_is_advised_only_for_a_form_that_it_replaces(graft, tmp_path):
    """Graft replaces LSTM with input_forget, but neither Graft nor TensorRT has different activations in directions."""
    activations = ["Sigmoid", "Tanh", "Tanh", "Sigmoid", "Relu", "Tanh"]
    settings = {"hidden_size": 2, "direction": "bidirectional", "activations": activations}
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="n", **settings)
    inputs = [("x", [3, 1, 4]), ("w", [2, 8, 4]), ("r", [2, 8, 2])]
    model = save(tmp_path / "m.onnx", [node], inputs, [("y", None)], opset=17)
    judged = verdicts(graft("inspect", model, "--probe", "none", "--json"))["n"]
    assert judged["verdict"] == "unsupported"
    assert judged["advice"].startswith("no operator of Graft replaces the node")


def test_a_type_of_a_product_is_to_be_another_one(graft, tmp_path):
    node = helper.make_node("MatMul", ["x", "x"], ["y"], name="n")
    model = save(tmp_path / "m.onnx", [node], [("x", TensorProto.UINT32, [2, 2])], [("y", TensorProto.UINT32, [2, 2])])
    advice = verdicts(graft("inspect", model, "--probe", "none", "--json"))["n"]["advice"]
    assert advice.startswith("export the network with i32 or i64")


def test_sizes_that_nobody_knows_are_question_marks(graft, tmp_path):
    """An unknown size inside an expression is a question mark too: Graft's internal names mean nothing to users."""
    constants = [helper.make_tensor("w", TensorProto.FLOAT, [2, 1, 3], [0.0] * 6)]
    shape = [helper.make_tensor("shape", TensorProto.INT64, [3], [1, 1, -1])]
    nodes = [
        helper.make_node("NonZero", ["x"], ["i"], name="where"),
        helper.make_node("Cast", ["i"], ["f"], name="cast", to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["f", "shape"], ["r"], name="reshape"),
        helper.make_node("Conv", ["r", "w"], ["y"], name="conv"),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 4])], [("y", None)], [*constants, *shape])
    answer = graft("inspect", model, "--json", "--report", tmp_path / "m.html")
    assert answer.json["outputs"][0]["shape"] == [1, 2, "?"]
    assert "[1, 2, ?]" in (tmp_path / "m.html.json").read_text()


def test_constants_are_counted_by_themselves(graft, tmp_path):
    """Constants have their own count, as on the page, where a constant is part of the nodes that read it."""
    value = helper.make_tensor("v", TensorProto.FLOAT, [4], [1.0] * 4)
    nodes = [
        helper.make_node("Constant", [], ["c"], name="constant", value=value),
        helper.make_node("Add", ["x", "c"], ["y"], name="add"),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 4])], [("y", None)])
    answer = graft("inspect", model, "--report", tmp_path / "m.html")
    assert "1 node and 1 constant" in answer.out
    page = json.loads((tmp_path / "m.html.json").read_text())
    assert len(page["sections"][0]["rows"]) == 1


def test_the_bytes_of_weights_include_constants_in_branches(graft, tmp_path):
    value = helper.make_tensor("v", TensorProto.FLOAT, [4], [1.0] * 4)
    then = subgraph([helper.make_node("Constant", [], ["t"], value=value)], [], [("t", [4])])
    otherwise = subgraph([helper.make_node("Neg", ["x"], ["e"])], [], [("e", [4])])
    nodes = [
        helper.make_node("If", ["c"], ["i"], then_branch=then, else_branch=otherwise),
        helper.make_node("Add", ["i", "w"], ["y"]),
    ]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2, 1000, 4], [0.5] * 8000)
    model = save(tmp_path / "m.onnx", nodes, [("x", [4]), ("c", TensorProto.BOOL, [])], [("y", None)], [weight])
    answer = graft("inspect", model, "--probe", "none", "--json", "--report", tmp_path / "m.html")
    assert answer.json["weight_bytes"] == (8000 + 4) * 4
    assert {"name": "weights", "text": "32.0 kB"} in json.loads((tmp_path / "m.html.json").read_text())["summary"]
    assert ", 32.0 kB of weights" in " ".join(graft("inspect", model, "--probe", "none").out.split())


def test_function_is_judged_by_its_worst_node(graft, tmp_path):
    def model_with(inner):
        body = [helper.make_node("Relu", ["a"], ["r"]), helper.make_node(inner, ["r"], ["b"], name="inner")]
        function = helper.make_function("local", "F", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
        node = helper.make_node("F", ["x"], ["y"], name="call", domain="local")
        path = tmp_path / f"{inner}.onnx"
        return save(path, [node], [("x", ["n", 2])], [("y", None)], functions=[function], domains=["local"])

    assert verdicts(graft("inspect", model_with("Sigmoid"), "--json"))["call"]["verdict"] == "native"
    judged = verdicts(graft("inspect", model_with("Unique"), "--json"))["call"]
    assert judged["verdict"] == "unsupported"
    assert "inner" in judged["reason"]


def test_a_fault_in_a_function_and_in_a_branch_is_the_verdict_on_its_node(graft, tmp_path):
    three = helper.make_tensor("three", TensorProto.FLOAT, [3], [1.0] * 3)
    body = [helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Add", ["r", "b"], ["o"], name="inner")]
    function = helper.make_function("local", "F", ["a", "b"], ["o"], body, [helper.make_opsetid("", 17)])

    def branch(name, node):
        return subgraph([node], [], [(node.output[0], None)])

    then_branch = branch("yes", helper.make_node("Add", ["x", "three"], ["t"], name="in_branch"))
    else_branch = branch("no", helper.make_node("Relu", ["x"], ["e"], name="in_the_other"))
    nodes = [
        helper.make_node("F", ["x", "three"], ["f"], name="call", domain="local"),
        helper.make_node("If", ["c"], ["i"], name="if", then_branch=then_branch, else_branch=else_branch),
        helper.make_node("LReLU_TRT", ["x"], ["l", "m"], name="two_outputs", negSlope=0.1),
        helper.make_node("Relu", ["x"], ["y"], name="relu"),
    ]
    outputs = [(name, None) for name in "filmy"]
    inputs = [("x", [1, 4]), ("c", TensorProto.BOOL, [])]
    model = save(tmp_path / "m.onnx", nodes, inputs, outputs, [three], functions=[function], domains=["local"])
    answer = graft("inspect", model, "--json", code=1)
    judged = verdicts(answer)
    bad = {name for name, node in judged.items() if node["verdict"] == "unsupported"}
    assert bad == {"call", "in_branch", "two_outputs"}
    assert "'call/inner' (Add): dimensions 4 and 3 cannot be broadcast" in judged["call"]["reason"]
    assert "it has 2 outputs; it may have at most 1" in judged["two_outputs"]["reason"]
    assert answer.err == ""


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
        (form("TopK"), 3841, "lowered"),
        (form("TopK"), 61441, "unsupported"),
        (form("TopK"), 3840, "native"),
        (form("Resize"), 1, "unsupported"),  # the matrix of 5000 by 10000 elements would be too large
        (form("Resize", ["antialias"]), 1, "native"),
        (form("MaxPool"), 1, "lowered"),
        (form("MaxPool", kernel_shape=[1, 200]), 1, "unsupported"),
        (form("MaxPool", ["dilations"]), 1, "native"),
        (form("ScatterND"), 1, "plugin"),
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
    assert (answer.code == 0) == (verdict != "unsupported")


@pytest.mark.parametrize("op_type", ["BatchNormalization", "Dropout"])
def test_what_is_in_training_mode_is_exported_for_evaluation(graft, tmp_path, op_type):
    ones = [helper.make_tensor(name, TensorProto.FLOAT, [4], [1.0] * 4) for name in ("s", "b", "m", "v")]
    training = helper.make_tensor("training", TensorProto.BOOL, [], [True])
    if op_type == "Dropout":
        node, constants = helper.make_node(op_type, ["x", "", "training"], ["y"], name="n"), [training]
    else:
        names = ["x", "s", "b", "m", "v"]
        node = helper.make_node(op_type, names, ["y", "new_m", "new_v"], name="n", training_mode=1)
        constants = ones
    model = save(tmp_path / "m.onnx", [node], [("x", [2, 4])], [("y", [2, 4])], constants, opset=18)
    judged = verdicts(graft("inspect", model, "--json"))["n"]
    assert judged["verdict"] == "unsupported"
    assert judged["advice"].startswith("export the network in evaluation mode")


@pytest.mark.parametrize(("kind", "zero"), [(TensorProto.UINT8, 120), (TensorProto.INT8, 3)])
def test_what_is_quantized_asymmetrically_is_lowered(graft, tmp_path, kind, zero):
    constants = [
        helper.make_tensor("scale", TensorProto.FLOAT, [], [0.1]),
        helper.make_tensor("zero", kind, [], [zero]),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="q"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], name="d"),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 4])], [("y", [2, 4])], constants, opset=18)
    judged = verdicts(graft("inspect", model, "--json"))
    for name in ("q", "d"):
        assert judged[name]["verdict"] == "lowered", judged[name]


@pytest.mark.parametrize(("count", "verdict"), [(5, "lowered"), (4, "native")])
def test_scattering_more_than_there_is(graft, tmp_path, count, verdict):
    node = helper.make_node("ScatterElements", ["x", "at", "u"], ["y"], name="n", axis=1)
    inputs = [("x", [3, 4]), ("u", [3, count])]
    at = helper.make_tensor("at", INT64, [3, count], [i % 4 for i in range(3 * count)])
    answer = graft("inspect", save(tmp_path / "m.onnx", [node], inputs, [("y", None)], [at], opset=18), "--json")
    judged = verdicts(answer)["n"]
    assert judged["verdict"] == verdict, judged
    assert ("5 indices along axis 1, where the data has 4" in json.dumps(judged)) == (verdict == "lowered")


@pytest.mark.parametrize(
    ("release", "title", "verdict"),
    [
        ("rtx-1.4", "TensorRT-RTX 1.4, as measured with this release", "unsupported"),
        ("rtx-1.5", "TensorRT-RTX 1.5, as measured with this release", "native"),
        ("tensorrt-10.13.3", "TensorRT 10.13, as public documents state; this release was not run", "unsupported"),
        ("tensorrt-11.0", "TensorRT 11.0, as public documents state; this release was not run", "native"),
    ],
)
def test_the_rules_of_a_release(graft, tmp_path, release, title, verdict):
    node = helper.make_node("Swish", ["x"], ["y"], name="n")
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 4])], [("y", [1, 4])], opset=24)
    answer = graft("inspect", model, "--for", release, "--json")
    assert answer.json["release"] == ".".join(release.split(".")[:2])
    assert verdicts(answer)["n"]["verdict"] == verdict
    assert answer.json["runs"] == (verdict == "native")
    assert f"for {title}\n" in graft("inspect", model, "--for", release).out


@pytest.mark.parametrize(("release", "code"), [("rtx-1.5", 1), ("rtx-1.6", 1), ("rtx-1.7", 0)])
def test_a_plugin_is_promised_only_where_the_release_adds_it_to_a_network(graft, tmp_path, release, code):
    """docs/compatibility.md: neither the parser nor the network interface of TensorRT-RTX 1.4 to 1.6 adds a
    plugin."""
    limits = [helper.make_tensor("most", INT64, [1], [3])]
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most"], ["y"], name="n")
    inputs = [("boxes", [1, 8, 4]), ("scores", [1, 2, 8])]
    model = save(tmp_path / "m.onnx", [node], inputs, [("y", INT64, [None, 3])], limits, opset=18)
    inspected = graft("inspect", model, "--for", release, "--json")
    assert inspected.code == code
    assert verdicts(inspected)["n"]["verdict"] == ("unsupported" if code else "plugin")
    assert graft("convert", model, "-o", tmp_path / "c.onnx", "--for", release).code == code


def test_what_a_release_computes_wrongly_leads(graft, tmp_path):
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("GridSample", ["a", "grid"], ["b"], mode="bilinear", name="sample"),
        helper.make_node("Identity", ["b"], ["y"]),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 2, 4, 5]), ("grid", [1, 4, 5, 2])], [("y", None)], opset=17)
    answer = graft("inspect", model, "--for", "tensorrt-11.1", code=0)
    text = " ".join(answer.out.split())
    assert text.index("native GridSample sample TensorRT 11.1 is reported to compute it wrongly") < text.index(
        "Identity"
    )
    assert "what to do: graft convert, if the model is for tensorrt-11.1, replaces it" in text
    command = graft("inspect", model, "--for", "tensorrt-11.1", "--json").json["next"][0]["command"]
    assert command == f"graft convert {model} -o {tmp_path / 'm.graft.onnx'} --for tensorrt-11.1"
    assert f"next  {command}\n" in answer.out, "in one line, however long it is"
    assert "issue 4813" not in graft("inspect", model, "--for", "tensorrt-10.13").out


def test_without_a_release_the_rules_are_those_of_the_newest_that_was_asked(graft, tmp_path):
    node = helper.make_node("Swish", ["x"], ["y"], name="n")
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 4])], [("y", [1, 4])], opset=24)
    answer = graft("inspect", model, "--json")
    assert answer.json["release"] is None
    assert answer.json["nodes"] == graft("inspect", model, "--for", "rtx-1.7", "--json").json["nodes"]
    assert "as measured with this release" not in graft("inspect", model).out


def test_a_release_is_for_the_rules_and_not_for_the_tensorrt_that_is_installed(graft):
    answer = graft("inspect", DIGITS, "--for", "rtx-1.7", "--probe", "parser", code=2)
    assert "--for" in answer.err and "--probe" in answer.err
    for option in (("--shapes", "image=1x1x8x8"), ("--reduce", "smallest.onnx"), ("--plugin-override",)):
        answer = graft("inspect", DIGITS, "--for", "rtx-1.7", *option)
        assert answer.code == 2, option
        assert f"{option[0]} applies to the installed TensorRT, which does not run with --for" in answer.err


def test_an_antialiased_resize_that_enlarges_is_lowered(graft, tmp_path):
    scales = helper.make_tensor("scales", TensorProto.FLOAT, [4], [1, 1, 2, 2])
    model = save(tmp_path / "m.onnx", [form("Resize")], [("x", [1, 1, 8, 8])], [("v", None)], [scales], opset=18)
    answer = graft("inspect", model, "--json", code=0)
    assert verdicts(answer)["n"]["verdict"] == "lowered"


def test_problems_come_first_and_the_rest_by_count(graft, tmp_path):
    """Two thousand nodes fit on one screen; --all and --json list each of them."""
    nodes, value = [], "x"
    for i in range(1900):
        nodes.append(helper.make_node("LeakyRelu", [value], [f"v{i}"], name=f"plain_{i}", alpha=0.5 + i / 4000))
        value = f"v{i}"
    for i in range(100):
        domain = f"acme{i % 25}"
        nodes.append(helper.make_node(f"Wobble{i % 25}", [value], [f"w{i}"], name=f"bad_{i}", domain=domain))
    outputs = [(value, None), *((f"w{i}", None) for i in range(100))]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 4])], outputs, domains=[f"acme{i}" for i in range(25)])
    answer = graft("inspect", model, code=1)
    lines = answer.out.splitlines()
    first = next(i for i, line in enumerate(lines) if "bad_0" in line)
    assert not any("plain_" in line for line in lines[:first])
    assert len(lines) - len(outputs) < 60
    assert "and 68 nodes more, for 17 other reasons" in " ".join(answer.out.split())
    every = graft("inspect", model, "--all").out
    assert all(f"bad_{i}" in every and f"plain_{i}" in every for i in range(100))
    assert len(graft("inspect", model, "--json").json["nodes"]) == 2000


def test_results_are_versioned_and_name_nodes_alike(graft, tmp_path):
    """Every command names a node by its name in the file or by its first output; numbers that JSON lacks are
    strings."""

    def network(name, divisor):
        nodes = [
            helper.make_node("Relu", ["x"], ["r"], name="first"),
            helper.make_node("Div", ["r", "d"], ["y"]),
        ]
        constant = helper.make_tensor("d", TensorProto.FLOAT, [1], [divisor])
        return save(tmp_path / name, nodes, [("x", [1, 64])], [("y", [1, 64])], [constant])

    right, wrong = network("right.onnx", 2.0), network("wrong.onnx", 0.0)
    inspected = graft("inspect", right, "--json").json
    quantized = graft("quantize", right, "-o", tmp_path / "f16.onnx", "--precision", "f16", "--json").json
    layers = graft("verify", right, wrong, "--layers", "--json").json
    plain = graft("verify", right, wrong, "--json").json
    found = [(answer["schema"], answer["version"]) for answer in (inspected, quantized, plain, layers)]
    assert found == [("graft.inspect", 2), ("graft.quantize", 1), ("graft.verify", 1), ("graft.verify.layers", 2)]
    names = ["first", "y"]
    assert [node["node"] for node in inspected["nodes"]] == names
    assert [node["node"] for node in quantized["nodes"]] == names
    assert {layer["candidate_node"] for layer in layers["layers"]} == set(names)
    first = layers["first_divergence"]
    assert (first["op"], first["candidate_node"], first["candidate_nodes"]) == ("Div", "y", ["y"])
    (output,) = plain["outputs"]
    assert output["max_absolute"] in ("inf", "nan")
    (layer,) = (layer for layer in layers["layers"] if layer["candidate"] == "y")
    for key in ("max_absolute", "max_relative", "snr_db", "cosine", "excess"):
        assert layer[key] is None or layer[key] in ("inf", "-inf", "nan") or isinstance(layer[key], (int, float))


def selects_in_a_function(path, body, outputs):
    """Saves a model whose only node calls a function with these nodes."""
    function = helper.make_function("local", "Chosen", ["a"], ["o"], body, [helper.make_opsetid("", 17)])
    node = helper.make_node("Chosen", ["x"], ["y"], name="call", domain="local")
    return save(path, [node], [("x", [3, 4])], outputs, functions=[function], domains=["local"])


@needs_plugin_library
def test_a_function_is_judged_as_it_is_once_it_is_inlined(graft, tmp_path):
    """Types inside the function follow from the call, so its NonZero is a plugin, as in `build`, and the model
    builds."""
    body = [
        helper.make_node("Greater", ["a", "a"], ["g"]),
        helper.make_node("NonZero", ["g"], ["o"], name="inner"),
    ]
    outputs = [("y", TensorProto.INT64, [2, "found"])]
    model = selects_in_a_function(tmp_path / "m.onnx", body, outputs)
    answer = graft("inspect", model, "--json", code=0)
    judged = verdicts(answer)["call"]
    assert judged["verdict"] == "plugin"
    assert "inside its function local::Chosen, node 'call/inner' (NonZero)" in judged["reason"]
    converted = tmp_path / "converted.onnx"
    answer = graft("convert", model, "-o", converted, "--json")
    assert (answer.code, answer.json["runs"]) == (0, True)
    for built in (model, converted):
        answer = graft("build", built, "-o", tmp_path / "m.engine", "--target", "sm120", "--json", code=0)
        assert [plugin["name"] for plugin in answer.json["network"]["plugins"]] == ["NonZero"]


def test_what_convert_makes_of_a_node_in_a_function_is_what_inspect_says_of_the_call(graft, tmp_path):
    body = [helper.make_node("Det", ["a"], ["o"], name="inner")]
    function = helper.make_function("local", "Chosen", ["a"], ["o"], body, [helper.make_opsetid("", 17)])
    node = helper.make_node("Chosen", ["x"], ["y"], name="call", domain="local")
    path = tmp_path / "m.onnx"
    model = save(path, [node], [("x", [4, 3, 3])], [("y", [4])], functions=[function], domains=["local"])
    judged = verdicts(graft("inspect", model, "--json"))["call"]
    assert judged["verdict"] == "lowered"
    assert "local::Chosen" in judged["reason"]
    assert graft("convert", model, "-o", tmp_path / "out.onnx", "--json").json["runs"] is True


@pytest.mark.parametrize(
    ("node", "element_type", "said", "advice"),
    [
        ("NonZero", TensorProto.INT16, "'x' is i16; Graft's NonZero", "insert a Cast to i32 for 'x'"),
        ("LReLU_TRT", TensorProto.INT32, "'x' is i32; Graft's LeakyReLU accepts f32", "insert a Cast to f32 for 'x'"),
        ("LReLU_TRT", TensorProto.BOOL, "'x' is bool; Graft's LeakyReLU accepts f32", "insert a Cast to f32 for 'x'"),
    ],
)
def test_types_that_no_plugin_takes_are_named_before_the_build(graft, tmp_path, node, element_type, said, advice):
    made = helper.make_node(node, ["x"], ["y"], name="n", **({"negSlope": 0.1} if node == "LReLU_TRT" else {}))
    inputs = [("x", element_type, [3, 4])]
    is_selection = node == "NonZero"
    outputs = [("y", INT64 if is_selection else element_type, None)]
    model = save(tmp_path / "m.onnx", [made], inputs, outputs)
    answer = graft("inspect", model, "--json", code=1)
    judged = verdicts(answer)["n"]
    assert judged["verdict"] == "unsupported"
    assert said in judged["reason"]
    assert advice in judged["advice"]
    (left,) = graft("convert", model, "-o", tmp_path / "out.onnx", "--json", code=1).json["unsupported"]
    assert said in left["reason"]
    # TensorRT refuses the model, too.
    assert graft("build", model, "-o", tmp_path / "m.engine", "--target", "sm120").code != 0


@needs_plugin_library
@pytest.mark.parametrize(
    ("node", "element_type"),
    [("NonZero", TensorProto.BOOL), ("NonZero", TensorProto.DOUBLE), ("LReLU_TRT", TensorProto.DOUBLE)],
)
def test_what_a_cast_makes_a_plugin_take_is_a_plugin_and_builds(graft, tmp_path, node, element_type):
    """TensorRT itself computes f64 tensors in f32."""
    is_selection = node == "NonZero"
    made = helper.make_node(node, ["x"], ["y"], name="n", **({} if is_selection else {"negSlope": 0.1}))
    inputs = [("x", element_type, [3, 4])]
    outputs = [("y", INT64 if is_selection else element_type, None)]
    model = save(tmp_path / "m.onnx", [made], inputs, outputs)
    assert verdicts(graft("inspect", model, "--json"))["n"]["verdict"] == "plugin"
    answer = graft("build", model, "-o", tmp_path / "m.engine", "--target", "sm120", "--json", code=0)
    assert len(answer.json["network"]["plugins"]) == 1


@pytest.mark.parametrize(
    ("op_type", "domain", "meant"),
    [
        ("NonZreo", "graft", "did you mean graft.NonZero?"),
        ("L2Normalise", "graft", "did you mean graft.L2Normalize?"),
        ("NonZreo", "", "did you mean ONNX's NonZero?"),
    ],
)
def test_a_slip_in_a_name_is_one_of_the_domain_that_the_node_has(graft, tmp_path, op_type, domain, meant):
    node = helper.make_node(op_type, ["x"], ["y"], name="n", domain=domain)
    model = save(tmp_path / "m.onnx", [node], [("x", [2, 3])], [("y", None)], domains=[domain] if domain else [])
    judged = verdicts(graft("inspect", model, "--json"))["n"]
    assert judged["verdict"] == "unsupported"
    assert meant in judged["reason"]
    assert ("remove its domain" in judged["advice"]) is False


def weights(*shape):
    return np.ones(shape, np.float32)


# Invalid nodes of ONNX's own operators, with their inputs besides x, whose shape is 1x3x8x8.
INVALID = {
    "softmax_axis": (
        helper.make_node("Softmax", ["x"], ["y"], axis=7),
        {},
        "axis 7 is out of range; it must be between -4 and 3",
    ),
    "log_softmax_axis": (helper.make_node("LogSoftmax", ["x"], ["y"], axis=-6), {}, "axis -6"),
    "axis_of_text": (
        helper.make_node("Softmax", ["x"], ["y"], axis="last"),
        {},
        "attribute `axis` has type string; it must have type int",
    ),
    "conv_kernel": (
        helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[5, 5]),
        {"w": weights(4, 3, 3, 3)},
        "attribute `kernel_shape` is [5, 5], but the weights 'w' have the shape [4, 3, 3, 3]",
    ),
    "conv_channels": (helper.make_node("Conv", ["x", "w"], ["y"]), {"w": weights(4, 5, 3, 3)}, "require 5"),
    "conv_bias": (
        helper.make_node("Conv", ["x", "w", "b"], ["y"]),
        {"w": weights(4, 3, 3, 3), "b": weights(3)},
        "its bias 'b' has 3 elements; the weights require 4",
    ),
    "conv_transpose_kernel": (
        helper.make_node("ConvTranspose", ["x", "w"], ["y"], kernel_shape=[5, 5]),
        {"w": weights(3, 4, 3, 3)},
        "attribute `kernel_shape` is [5, 5]",
    ),
    "conv_transpose_channels": (
        helper.make_node("ConvTranspose", ["x", "w"], ["y"]),
        {"w": weights(4, 4, 3, 3)},
        "3 channels; the weights require 4",
    ),
    "pool_without_kernel": (helper.make_node("MaxPool", ["x"], ["y"]), {}, "lacks the attribute `kernel_shape`"),
    "concat_without_axis": (helper.make_node("Concat", ["x", "x"], ["y"]), {}, "lacks the attribute `axis`"),
    "transposed_twice": (helper.make_node("Transpose", ["x"], ["y"], perm=[0, 1, 1, 2]), {}, "axis 1 is given twice"),
    "batch_normalization": (
        helper.make_node("BatchNormalization", ["x", "s", "s", "s", "s"], ["y"]),
        {"s": weights(5)},
        "its input 's' has 5 elements; it must have one for each of the 3 channels",
    ),
    "instance_normalization": (
        helper.make_node("InstanceNormalization", ["x", "s", "s"], ["y"]),
        {"s": weights(5)},
        "its input 's' has 5 elements; it must have one for each of the 3 channels",
    ),
    "layer_normalization": (
        helper.make_node("LayerNormalization", ["x", "s"], ["y"], axis=-1),
        {"s": weights(7)},
        "dimensions 8 and 7 cannot be broadcast",
    ),
    "prelu_slope": (helper.make_node("PRelu", ["x", "s"], ["y"]), {"s": weights(5, 1, 1)}, "3 and 5"),
    "einsum_terms": (
        helper.make_node("Einsum", ["x"], ["y"], equation="bchw,bcwk->bchk"),
        {},
        "its equation names 2 inputs, but the node has 1",
    ),
    "depth_to_space": (
        helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2),
        {},
        "dimension 1 is 3; attribute `blocksize` = 2 requires a multiple of 4",
    ),
    "resize_scales": (helper.make_node("Resize", ["x", "", "s"], ["y"]), {"s": weights(3)}, "3 scales for 4 axes"),
    "gather_elements_rank": (
        helper.make_node("GatherElements", ["x", "i"], ["y"]),
        {"i": np.zeros((1, 3), np.int64)},
        "the indices have rank 2 and the data have rank 4",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_a_node_that_is_invalid_is_said_to_be_and_no_cut_is_advised(graft, tmp_path, name):
    node, constants, said = INVALID[name]
    node.name = "n"
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 3, 8, 8])], [("y", None)], constants)
    with pytest.raises(Exception, match=r"(?s)."):  # ONNX Runtime's errors have no class of their own
        session_of(model).run(None, {"x": np.zeros((1, 3, 8, 8), np.float32)})
    answer = graft("inspect", model, "--json", code=1)
    judged = verdicts(answer)["n"]
    assert judged["verdict"] == "unsupported"
    assert said in judged["reason"]
    assert judged["advice"] == "correct the node in the program that wrote the model"
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--cut", code=2)
    assert said in answer.err
    assert "node 'n'" in answer.err


@pytest.mark.parametrize("size", ["n", 2])  # TensorRT's types and sizes are compared where all sizes are fixed
@pytest.mark.parametrize("where", ["inner", "output"])
def test_a_declared_type_that_cannot_hold_is_a_fault(graft, tmp_path, where, size):
    """ONNX Runtime refuses such a file, too. Sizes on the command line do not change the declared types."""
    types = {"r": TensorProto.FLOAT, "y": TensorProto.FLOAT} | {{"inner": "r", "output": "y"}[where]: TensorProto.INT64}
    nodes = [helper.make_node("Relu", ["x"], ["r"], "n"), helper.make_node("Abs", ["r"], ["y"], "n")]
    model = make_model(nodes, [("x", [size, 3])], [("y", types["y"], [size, 3])])
    model.graph.value_info.append(info("r", types["r"], [size, 3]))
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    said = f"its output '{'r' if where == 'inner' else 'y'}' is declared as i64, but it is f32"
    judges = [(), ("--target", "sm120")] if size == 2 and importlib.util.find_spec("tensorrt_rtx") else [()]
    for judge in judges:
        answer = graft("inspect", path, *judge, "--json", code=1)
        wrong = next(node for node in answer.json["nodes"] if node["verdict"] == "unsupported")
        assert said in wrong["reason"]
        assert wrong["advice"] == "correct the node in the program that wrote the model"
    for sizes in ([], ["--shapes", "x:2x3"]):
        answer = graft("convert", path, "-o", tmp_path / "out.onnx", *sizes, code=2)
        assert said in answer.err


def test_declared_shapes_that_cannot_hold_are_told(graft, tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Flatten", ["r"], ["y"])]
    model = make_model(nodes, [("x", ["n", 3, 8, 8])], [("y", ["n", 100])])
    model.graph.value_info.append(info("r", shape=["n", 3, 8]))
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    with pytest.raises(onnx.shape_inference.InferenceError):
        onnx.shape_inference.infer_shapes(model, strict_mode=True)
    answer = graft("inspect", path, "--json", code=0)
    told = answer.json["warnings"]
    assert len(told) == 2
    assert "the shape [n, 3, 8] for 'r', but from inputs and nodes Graft infers [n, 3, 8, 8]" in told[0]
    assert "the shape [n, 100] for 'y', but from inputs and nodes Graft infers [n, 192]" in told[1]
    assert all(warning in " ".join(answer.err.split()) for warning in told)
    answer = graft("convert", path, "-o", tmp_path / "out.onnx", "--json", code=0)
    assert told == answer.json["warnings"]
    # A declaration that is valid for every value of the named size is not reported.
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 192
    del model.graph.value_info[:]
    onnx.save(model, path)
    assert graft("inspect", path, "--json").json["warnings"] == []


def test_f64_is_said_once_to_be_computed_in_f32(graft, tmp_path):
    """TensorRT-RTX imports f64 as f32 without a message; the engine's inputs and outputs are f32 then."""
    trt = pytest.importorskip("tensorrt_rtx")
    nodes = [
        helper.make_node("Cast", ["x"], ["d"], name="widen", to=TensorProto.DOUBLE),
        helper.make_node("MatMul", ["d", "w"], ["m"], name="product"),
        helper.make_node("Reshape", ["m", "s"], ["r"], name="move"),
        helper.make_node("Add", ["r", "z"], ["y"], name="sum"),
    ]
    constants = {"w": np.ones((4, 3)), "s": np.array([3, 2])}
    graph = subgraph(
        nodes, [("x", [2, 4]), ("z", TensorProto.DOUBLE, [3, 2])], [("y", TensorProto.DOUBLE, [3, 2])], constants
    )
    model = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), model)

    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse_from_file(str(model))
    ports = [network.get_input(i) for i in range(2)] + [network.get_output(0)]
    assert {port.name: port.dtype for port in ports} == dict.fromkeys("xzy", trt.float32)

    warning = (
        "{}: TensorRT computes f64 in f32, to about 7 digits: node 'product' (MatMul), node 'sum' (Add); "
        "in the engine, the type of 'z', 'y' is f32"
    )
    for arguments in (["--target", "sm120"], ["--probe", "none"], ["--for", "rtx-1.7"]):
        answer = graft("inspect", model, *arguments, code=0)
        assert answer.err.count("f64 in f32") == 1
        assert warning.format(model) in answer.err
    assert warning.format(model) in graft("inspect", model, "--probe", "none", "--json").json["warnings"]
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--no-check")
    assert warning.format(model) in answer.err


def test_shapes_that_the_model_cannot_have_are_refused_alike(graft, tmp_path):
    """A build with such shapes fails, which would look like a verdict on the model."""
    pytest.importorskip("tensorrt_rtx")
    model = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", ["N", 4])], [("y", ["N", 4])])
    commands = {
        ("inspect", model): ["x=-1x4", "x=8x4..4x4..1x4", "x=1x5"],
        ("convert", model, "-o", tmp_path / "c.onnx"): ["x=-1x4", "x=8x4..4x4..1x4"],
        ("build", model, "-o", tmp_path / "b.engine"): ["x=-1x4", "x=8x4..4x4..1x4"],
    }
    for command, shapes in commands.items():
        for shape in shapes:
            answer = graft(*command, "--shapes", shape)
            assert answer.code == 2, (command, shape, answer.err)
            assert f"--shapes {shape}" in answer.err
    answer = graft("verify", model, model, "--input", "x:-1x4", code=2)
    assert "--input x:-1x4" in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_shapes_that_contradict_each_other_are_no_verdict_on_the_model(graft, tmp_path):
    """A dimension has the same size in all inputs that name it."""
    pytest.importorskip("tensorrt_rtx")
    rows = [("x", ["n", 4]), ("q", ["n", 4])]
    model = save(tmp_path / "m.onnx", [helper.make_node("Add", ["x", "q"], ["y"])], rows, [("y", ["n", 4])])
    shapes = ["--shapes", "x=2x4", "--shapes", "q=3x4"]
    for command in (["inspect", model], ["convert", model, "-o", tmp_path / "c.onnx"]):
        answer = graft(*command, *shapes, code=2)
        assert "'n'" in answer.err and "'x'" in answer.err and "'q'" in answer.err
    model = save(tmp_path / "i.onnx", [helper.make_node("Cast", ["i"], ["y"], to=1)], [("i", INT64, [5])], [("y", [5])])
    for command in (["inspect", model], ["convert", model, "-o", tmp_path / "c.onnx"]):
        answer = graft(*command, "--shapes", "i=7", code=2)
        assert "which the model fixes at 5" in answer.err
    assert not (tmp_path / "c.onnx").exists()


def test_the_printed_build_has_ranges_for_values_that_decide_sizes(graft, tmp_path):
    """Without them, TensorRT refuses the build, whether the rules or TensorRT judged the model."""
    pytest.importorskip("tensorrt_rtx")
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=1)
    model = save(tmp_path / "top.onnx", [node], [("x", [2, 10]), ("k", INT64, [1])], [("y", [2, None])])
    for judge in (["--probe", "none"], ["--for", "rtx-1.7"], ["--target", "sm120"]):
        (step,) = graft("inspect", model, *judge, "--json").json["next"]
        assert "the values of k determine sizes" in step["why"], judge
        assert ("run the build where TensorRT-RTX 1.7 is installed" in step["why"]) == ("--for" in judge)
        program, *arguments = shlex.split(step["command"])
        assert program == "graft"
        graft(*arguments, code=0)
    converted = graft("convert", model, "-o", tmp_path / "c.onnx").out
    assert "the values of k determine sizes" in " ".join(converted.split())

    # Neither an input of another kind nor sizes of inputs are called values.
    model = save(
        tmp_path / "add.onnx", [helper.make_node("Add", ["x", "q"], ["y"])], [("x", ["n"]), ("q", [1])], [("y", ["n"])]
    )
    (step,) = graft("inspect", model, "--json").json["next"]
    assert "determine sizes" not in step["why"]


@pytest.mark.parametrize(("size", "has_one_shape"), [(4, True), ("n", False)])
def test_the_printed_build_has_one_shape_for_a_tensor_of_fixed_sizes(graft, tmp_path, size, has_one_shape):
    """TensorRT checks the smallest and the largest values of the range, which need as many elements as the tensor."""
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    model = save(tmp_path / "m.onnx", [node], [("x", [size, 6]), ("shape", INT64, [2])], [("y", [None, None])])
    (step,) = graft("inspect", model, "--probe", "none", "--json").json["next"]
    assert ("an engine supports only one such shape" in step["why"]) == has_one_shape
    assert ("replace the range with the minimum, optimum and maximum" in step["why"]) != has_one_shape


def test_no_build_is_printed_for_sizes_that_the_network_cannot_compute(graft, tmp_path):
    nodes = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])]
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [("x", ["n", 4, "h", "w"])],
        [("y", ["n", 2])],
        {"w": np.zeros((4 * 30 * 14, 2), "f4")},
    )
    (step,) = graft("inspect", model, "--json").json["next"]
    assert step["command"] == ""
    assert "no sizes were found for which the network is valid" in step["why"]


def test_the_advice_is_a_remedy(graft, tmp_path):
    resize = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="cubic", antialias=1)
    images = save(
        tmp_path / "r.onnx",
        [resize],
        [("x", [1, 3, "h", "w"])],
        [("y", [1, 3, None, None])],
        {"s": np.array([1, 1, 0.5, 0.5], "f4")},
        18,
    )
    (node,) = graft("inspect", images, "--json").json["nodes"]
    assert "--input sets fixed sizes for the inputs of the network" in node["advice"]
    (node,) = graft("inspect", images, "--input", "x:1x3x16x16", "--json").json["nodes"]
    assert node["verdict"] == "lowered"

    bytes_, complex_ = (("x", kind, [4]) for kind in (TensorProto.UINT8, TensorProto.COMPLEX64))
    bytes_out, complex_out = (("y", kind, [4]) for kind in (TensorProto.UINT8, TensorProto.COMPLEX64))
    model = save(tmp_path / "u.onnx", [helper.make_node("Abs", ["x"], ["y"])], [bytes_], [bytes_out])
    (node,) = graft("inspect", model, "--json").json["nodes"]
    assert node["advice"].startswith("cast 'x' to ") and "i32" in node["advice"]
    model = save(tmp_path / "c.onnx", [helper.make_node("Identity", ["x"], ["y"])], [complex_], [complex_out])
    (node,) = graft("inspect", model, "--json").json["nodes"]
    assert "the real and the imaginary parts" in node["advice"]

    unread = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Unique", ["x"], ["u"], name="unread")]
    answer = graft("inspect", save(tmp_path / "d.onnx", unread, [("x", [4])], [("y", [4])]))
    assert "no output needs it: `graft convert` removes it" in answer.out


@pytest.mark.parametrize(
    ("operator", "source", "builds"),
    [
        ("ArgMax", "a", False),
        ("ArgMin", "soft", False),
        ("TopK", "a", False),
        ("ArgMax", "w", True),
    ],
)
def test_a_size_in_a_body_from_an_index_of_the_step(graft, tmp_path, operator, source, builds):
    """TensorRT builds the size only if the index is that of a tensor which is the same in each step."""
    trt = pytest.importorskip("tensorrt_rtx")
    index = {"ArgMax": ["k1"], "ArgMin": ["k1"], "TopK": ["_", "k1"]}[operator]
    inputs = [source, *(["one"] if operator == "TopK" else [])]
    body = subgraph(
        [
            helper.make_node("Softmax", ["a"], ["soft"], axis=1),
            helper.make_node(operator, inputs, index, axis=1, name="index"),
            helper.make_node("Reshape", ["k1", "one"], ["k"]),
            helper.make_node("Add", ["k", "one"], ["size"]),
            helper.make_node("Expand", ["value", "size"], ["many"], name="many"),
            helper.make_node("ReduceSum", ["many"], ["sum"], keepdims=0),
            helper.make_node("Add", ["a", "sum"], ["next"]),
            helper.make_node("Identity", ["go"], ["go_on"]),
        ],
        [("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("a", [1, 4])],
        [("go_on", TensorProto.BOOL, []), ("next", [1, 4])],
        {"one": np.array([1], np.int64), "value": np.float32(1)},
    )
    limits = {"n": np.int64(3), "c": np.array(True)}
    loop = helper.make_node("Loop", ["n", "c", "x"], ["y"], body=body)
    model = save(tmp_path / "m.onnx", [loop], [("x", [1, 4]), ("w", [1, 16])], [("y", [1, 4])], limits)

    builder = trt.Builder(trt.Logger(trt.Logger.INTERNAL_ERROR))
    network = builder.create_network(0)
    assert trt.OnnxParser(network, trt.Logger(trt.Logger.INTERNAL_ERROR)).parse(model.read_bytes())
    built = builder.build_serialized_network(network, builder.create_builder_config())
    assert (built is not None) == builds

    nodes = verdicts(graft("inspect", model, "--probe", "none", "--json"))
    assert (nodes["many"]["verdict"] == "native") == builds


def test_operators_of_onnx_ml_and_sequences_get_no_advice_that_fails(graft, tmp_path):
    scaler = helper.make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    nodes = [helper.make_node("Relu", ["s"], ["y"])]
    model = save(tmp_path / "s.onnx", [scaler, *nodes], [("x", [2, 4])], [("y", [2, 4])], domains=["ai.onnx.ml"])
    answer = graft("inspect", model)
    assert "TensorRT supports no operator of the domain ai.onnx.ml" in " ".join(answer.out.split())
    assert "did you mean" not in answer.out

    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["m"]),
        helper.make_node("SequenceConstruct", ["m", "m"], ["q"]),
        helper.make_node("SequenceErase", ["q"], ["r"]),
        helper.make_node("ConcatFromSequence", ["r"], ["y"], axis=0),
    ]
    model = save(tmp_path / "q.onnx", nodes, [("x", [4, 4])], [("y", [4, 4])])
    for step in graft("inspect", model, "--json").json["next"]:
        program, *arguments = shlex.split(step["command"]) or ["graft"]
        if "--cut" in arguments:
            assert graft(*arguments).code in (0, 1), step


def test_advice_on_a_sequence_names_why_it_is_not_replaced(graft, tmp_path):
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["list"]),
        helper.make_node("SequenceAt", ["list", "place"], ["y"]),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 3]), ("place", INT64, [])], [("y", [2, 3])])
    found = verdicts(graft("inspect", model, "--probe", "none", "--json"))
    instead = "export the network with tensors instead of sequences and optionals"
    assert found["list"]["advice"] == instead
    reason = "graft convert does not replace the node with layers that TensorRT has: its position is not a constant"
    assert found["y"]["advice"] == f"{reason}; {instead}"


def test_ranges_of_all_values_that_decide_sizes_are_printed(graft, tmp_path):
    sizes, depth = ("s", INT64, [2]), ("d", INT64, [1])
    onoff = {"v": np.array([0, 1], "f4")}
    models = {
        "s": (helper.make_node("ConstantOfShape", ["s"], ["y"]), [sizes], []),
        "d": (helper.make_node("OneHot", ["i", "d", "v"], ["y"]), [("i", INT64, [3]), depth], onoff),
    }
    for name, (node, inputs, constants) in models.items():
        model = save(tmp_path / f"{name}.onnx", [node], inputs, [("y", [None, None])], constants)
        (step,) = graft("inspect", model, "--json").json["next"]
        assert f"--shapes '{name}=" in step["command"]


@needs_plugin_library
def test_guide_shows_what_is_printed_for_a_plugin_of_another_namespace(graft, tmp_path):
    pytest.importorskip("tensorrt_rtx")
    guide = (SOURCE / "docs" / "guide" / "plugin_not_found.md").read_text()
    shown = " ".join(re.search(r"The output looks like this:\n\n```\n(.*?)```", guide, re.DOTALL).group(1).split())
    node = helper.make_node("L2NormHelper", ["x"], ["y"], name="custom", domain="acme")
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 4])], [("y", [1, 4])], domains=["acme"])
    printed = " ".join(graft("inspect", model, "--probe", "parser").out.split())
    start, end = shown.split("...")
    assert start in printed
    assert end in printed


def test_an_operator_of_onnxruntime_is_lowered_where_the_release_lacks_it(graft, tmp_path):
    inputs = [(name, [2, 5, 8]) for name in "qkv"]
    node = helper.make_node("MultiHeadAttention", list("qkv"), ["y"], domain="com.microsoft", num_heads=2)
    model = save(tmp_path / "m.onnx", [node], inputs, [("y", [2, 5, 8])], domains=["com.microsoft"])
    for release, verdict in (("rtx-1.5", "lowered"), ("tensorrt-10.13", "lowered"), ("rtx-1.7", "native")):
        (judged,) = graft("inspect", model, "--for", release, "--json", code=0).json["nodes"]
        assert judged["verdict"] == verdict, judged
        converted = tmp_path / f"{release}.onnx"
        graft("convert", model, "-o", converted, "--for", release, "--no-check", code=0)
        assert any(n.domain for n in onnx.load(converted).graph.node) == (verdict == "native")
