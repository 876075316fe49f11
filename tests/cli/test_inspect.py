# graft inspect: its rules against the real parser, and each verdict with its reason.
import json

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
    # NonMaxSuppression parses and then cannot be built; of the others the parser asks a plugin that is not there, or
    # it takes no floating-point numbers, or, as QuantizeLinear without a zero point, makes uint8: known by rule only.
    refused = {name for name in names if not parser.supports_operator(name)}
    refused |= {"NonMaxSuppression", "CausalConvWithState", "LinearAttention", "Mod", "QuantizeLinear"}
    computed = {op["onnx_name"] for op in graft("ops", "--json").json["operators"]}

    # Sub-graphs and required attributes do not matter for the rule, so nodes are left bare; control flow needs a body.
    bare = [name for name in names if name not in ("If", "Loop", "Scan", "SequenceMap", "Constant", "ConstantOfShape")]
    nodes = [helper.make_node(name, ["x"], [f"y_{name}"], name=name) for name in bare]
    sink = helper.make_node("Sink", [f"y_{name}" for name in bare], ["y"], name="sink", domain="acme")
    model = save(tmp_path / "all.onnx", [*nodes, sink], [("x", None)], [("y", None)], opset=24, domains=["acme"])
    answer = graft("inspect", model, "--json")
    assert answer.code == 1, answer.err
    unsupported = {name for name, node in verdicts(answer).items() if node["verdict"] == "unsupported"}
    assert unsupported - {"sink"} == refused & set(bare)
    plugins = {name for name, node in verdicts(answer).items() if node["verdict"] == "plugin"}
    # Others are forms that TensorRT has: they scatter without a reduction, and K is 1.
    have_several_inputs = {"CausalConvWithState", "DeformConv", "NonMaxSuppression", "RoiAlign"}
    native = {"ScatterElements", "ScatterND", "TopK"}
    assert plugins == computed & set(bare) - native - have_several_inputs


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


def test_inspect_says_before_and_after_what_convert_says(graft, tmp_path):
    """One reason: of the model as it is, of what convert writes, and of the conversion in memory."""
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
    (plugin,) = onnx.load(
        always
    ).graph.node  # `graft build` tells what is noted here; inspect, what convert would do now
    notes = {note.key: note.value for note in plugin.metadata_props}
    assert notes["graft.reason"] == choice["reason"] == "asked for: plugins wherever they can stand"


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


@pytest.mark.parametrize(
    ("op_type", "domain", "attributes", "reason", "advice"),
    [
        (
            "LReLU_TRT",
            "trt",
            {"plugin_version": "2"},
            "found plugin_version = '2'",
            "set plugin_version, a text, to '1'",
        ),
        ("LReLU_TRT", "trt", {"plugin_namespace": "nvidia"}, "= 'nvidia'", "leave out plugin_namespace"),
        ("LReLU_TRT", "acme", {}, "found 'acme'", "set the node's domain to trt"),
        ("L2Normalize", "acme", {}, "found 'acme'", "set the node's domain to graft"),
        ("LReLU_TRTT", "trt", {}, "did you mean LReLU_TRT", "if LReLU_TRT is meant"),
        ("HardSwishh", "", {}, "did you mean ONNX's HardSwish?", "if HardSwish is meant"),
        ("InstanceNormalization", "acme", {}, "goes by the name alone", "leave out its domain"),
    ],
)
def test_the_advice_follows_from_what_is_known(graft, tmp_path, op_type, domain, attributes, reason, advice):
    node = helper.make_node(op_type, ["x"], ["y"], name="n", domain=domain, **attributes)
    domains = [domain] if domain else []
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 4])], [("y", None)], domains=domains)
    judged = verdicts(graft("inspect", model, "--json"))["n"]
    assert judged["verdict"] == "unsupported"
    assert reason in judged["reason"]
    assert judged["advice"].startswith(advice)


def test_sizes_that_nobody_knows_are_question_marks(graft, tmp_path):
    """Also within a computation: names of Graft's own are no news for anybody."""
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
    """As on the page, where a constant is a part of the nodes that read it."""
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


def test_a_fault_in_a_function_and_in_a_branch_is_the_verdict_on_its_node(graft, tmp_path):
    three = helper.make_tensor("three", TensorProto.FLOAT, [3], [1.0] * 3)
    body = [helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Add", ["r", "b"], ["o"], name="inner")]
    function = helper.make_function("local", "F", ["a", "b"], ["o"], body, [helper.make_opsetid("", 17)])

    def branch(name, node):
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(node.output[0], 1, None)])

    then_branch = branch("yes", helper.make_node("Add", ["x", "three"], ["t"], name="in_branch"))
    else_branch = branch("no", helper.make_node("Relu", ["x"], ["e"], name="in_the_other"))
    nodes = [
        helper.make_node("F", ["x", "three"], ["f"], name="call", domain="local"),
        helper.make_node("If", ["c"], ["i"], name="if", then_branch=then_branch, else_branch=else_branch),
        helper.make_node("LReLU_TRT", ["x"], ["l", "m"], name="two_outputs", negSlope=0.1),
        helper.make_node("Relu", ["x"], ["y"], name="relu"),
    ]
    outputs = [(name, None) for name in "filmy"]
    inputs = [("x", [1, 4]), helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    model = save(tmp_path / "m.onnx", nodes, inputs, outputs, [three], functions=[function], domains=["local"])
    answer = graft("inspect", model, "--json")
    assert answer.code == 1, answer.err
    judged = verdicts(answer)
    bad = {name for name, node in judged.items() if node["verdict"] == "unsupported"}
    assert bad == {"call", "in_branch", "two_outputs"}
    assert "'call/inner' (Add): dimensions 4 and 3 do not go together" in judged["call"]["reason"]
    assert "found 2 outputs, allowed is 1" in judged["two_outputs"]["reason"]
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
        (form("Resize"), 1, "unsupported"),  # the matrix of 5000 by 10000 numbers would be too large
        (form("Resize", ["antialias"]), 1, "native"),
        (form("MaxPool"), 1, "lowered"),
        (form("MaxPool", kernel_shape=[1, 100]), 1, "unsupported"),
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
        ("rtx-1.4", "TensorRT-RTX 1.4, as it answered when it was asked", "unsupported"),
        ("rtx-1.5", "TensorRT-RTX 1.5, as it answered when it was asked", "native"),
        ("tensorrt-10.13.3", "TensorRT 10.13, as public documents say: it was not asked", "unsupported"),
        ("tensorrt-11.0", "TensorRT 11.0, as public documents say: it was not asked", "native"),
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


def test_what_a_release_computes_wrongly_leads(graft, tmp_path):
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("GridSample", ["a", "grid"], ["b"], mode="bilinear", name="sample"),
        helper.make_node("Identity", ["b"], ["y"]),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 2, 4, 5]), ("grid", [1, 4, 5, 2])], [("y", None)], opset=17)
    answer = graft("inspect", model, "--for", "tensorrt-11.1")
    assert answer.code == 0
    text = " ".join(answer.out.split())
    assert text.index("native GridSample sample TensorRT 11.1 is reported to compute it wrongly") < text.index(
        "Identity"
    )
    assert "what to do: graft convert, told that the model is for tensorrt-11.1" in text
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
    assert "for TensorRT" not in graft("inspect", model).out


def test_a_release_is_for_the_rules_and_not_for_the_tensorrt_that_is_installed(graft):
    answer = graft("inspect", DIGITS, "--for", "rtx-1.7", "--probe", "parser")
    assert answer.code == 2
    assert "--for" in answer.err and "--probe" in answer.err


def test_an_antialiased_resize_that_enlarges_is_lowered(graft, tmp_path):
    scales = helper.make_tensor("scales", TensorProto.FLOAT, [4], [1, 1, 2, 2])
    model = save(tmp_path / "m.onnx", [form("Resize")], [("x", [1, 1, 8, 8])], [("v", None)], [scales], opset=18)
    answer = graft("inspect", model, "--json")
    assert answer.code == 0, answer.err
    assert verdicts(answer)["n"]["verdict"] == "lowered"


def test_problems_come_first_and_the_rest_by_count(graft, tmp_path):
    """Two thousand nodes on one screen; --all and --json have each."""
    nodes, value = [], "x"
    for i in range(1900):
        nodes.append(helper.make_node("LeakyRelu", [value], [f"v{i}"], name=f"plain_{i}", alpha=0.5 + i / 4000))
        value = f"v{i}"
    for i in range(100):
        domain = f"acme{i % 25}"
        nodes.append(helper.make_node(f"Wobble{i % 25}", [value], [f"w{i}"], name=f"bad_{i}", domain=domain))
    outputs = [(value, None), *((f"w{i}", None) for i in range(100))]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 4])], outputs, domains=[f"acme{i}" for i in range(25)])
    answer = graft("inspect", model)
    assert answer.code == 1
    lines = answer.out.splitlines()
    first = next(i for i, line in enumerate(lines) if "bad_0" in line)
    assert not any("plain_" in line for line in lines[:first])
    assert len(lines) - len(outputs) < 60
    assert "and 68 nodes more, for 17 other reasons" in " ".join(answer.out.split())
    every = graft("inspect", model, "--all").out
    assert all(f"bad_{i}" in every and f"plain_{i}" in every for i in range(100))
    assert len(graft("inspect", model, "--json").json["nodes"]) == 2000


def test_results_are_versioned_and_name_nodes_alike(graft, tmp_path):
    """A name is that of the file or of the first output, in every command; numbers that JSON lacks are texts."""

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
