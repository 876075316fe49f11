# graft convert --rules: compares the effect of rules with ONNX Runtime, with stored results of TensorFlow and OpenCV,
# and with a real TensorRT; runs every example of docs/guide/rules.md.
import os
import re

import numpy as np
import onnx
import pytest
from conftest import PLUGIN_LIBRARY, SOURCE, needs_plugin_library
from onnx import TensorProto, helper, numpy_helper
from onnx_models import run_onnx, save

GOLDEN = SOURCE / "tests" / "golden"
ORIENTATION = GOLDEN / "rules" / "orientation.pb"
CAFFE = np.load(GOLDEN / "caffe" / "cases.npz")
GUIDE = SOURCE / "docs" / "guide" / "rules.md"


def run(path, feeds, as_written=False):
    """Returns ONNX Runtime's results; `as_written`: without its own fusions, whose int8 kernels saturate on older
    processors."""
    return run_onnx(path, feeds, is_optimized=not as_written)


def constant(name, values, dtype="float32"):
    return numpy_helper.from_array(np.array(values, dtype), name)


def style(path):
    """Saves two instance normalizations, a clamp, and a superfluous output."""
    nodes = [
        helper.make_node("InstanceNormalization", ["x", "scale", "bias"], ["norm_out"], name="norm1"),
        helper.make_node("Relu", ["norm_out"], ["relu_out"], name="relu"),
        helper.make_node("Clip", ["relu_out", "low", "high"], ["clip_out"], name="clip"),
        helper.make_node("InstanceNormalization", ["clip_out", "scale", "bias"], ["y"], name="norm2"),
        helper.make_node("Neg", ["x"], ["extra"], name="neg"),
    ]
    shape = ["n", 4, "h", "w"]
    parts = [constant("scale", [1, 2, 3, 4]), constant("bias", [0, 1, 0, 1]), constant("low", 0), constant("high", 1.5)]
    return save(path, nodes, [("x", shape)], [("y", shape), ("extra", shape)], parts)


def norm(path):
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["q"], name="square"),
        helper.make_node("ReduceSum", ["q", "axes"], ["s"], name="sum", keepdims=1),
        helper.make_node("Add", ["s", "e"], ["t"], name="add"),
        helper.make_node("Sqrt", ["t"], ["r"], name="root"),
        helper.make_node("Div", ["x", "r"], ["y"], name="div"),
    ]
    parts = [constant("axes", [1], "int64"), constant("e", 1e-6)]
    return save(path, nodes, [("x", ["n", 5])], [("y", ["n", 5])], parts)


def fixed(path):
    """Saves a network with a batch of 2, also as a constant in a Reshape."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("Reshape", ["r", "sizes"], ["flat"], name="reshape"),
        helper.make_node("MatMul", ["flat", "w"], ["y"], name="dense"),
    ]
    weights = np.random.default_rng(1).normal(size=(12, 3))
    parts = [constant("sizes", [2, 12], "int64"), constant("w", weights)]
    return save(path, nodes, [("x", [2, 3, 4])], [("y", [2, 3])], parts)


def model_of(name, folder):
    """Returns the model and, for Caffe, its weights."""
    if name == "orientation.pb":
        return [ORIENTATION]
    if name == "convolution.prototxt":
        for end, key in (("prototxt", "network"), ("caffemodel", "weights")):
            (folder / f"convolution.{end}").write_bytes(CAFFE[f"convolution_0/{key}"].tobytes())
        return [folder / "convolution.prototxt", folder / "convolution.caffemodel"]
    return [{"style.onnx": style, "norm.onnx": norm, "fixed.onnx": fixed}[name](folder / name)]


@pytest.fixture
def convert(graft, tmp_path):
    """Converts a model by rules; the result has .model, the written file."""

    def with_rules(name, rules, *arguments, code=None):
        (tmp_path / "rules.yaml").write_text(rules)
        out = tmp_path / "out.onnx"
        files = [*model_of(name, tmp_path), "-o", out, "--rules", tmp_path / "rules.yaml"]
        answer = graft("convert", *files, "--json", *arguments, code=code)
        answer.model = out
        return answer

    return with_rules


def graft_nodes(path):
    return [n for n in onnx.load(path).graph.node if n.domain == "graft"]


def outcome(answer):
    (rule,) = answer.json["rules"]
    return rule


# ---- The guide


EXAMPLES = re.findall(r"<!-- on: (\S+) -->\n```yaml\n(.*?)```", GUIDE.read_text(), re.S)


@pytest.mark.parametrize(("name", "rules"), EXAMPLES, ids=[str(i) for i in range(len(EXAMPLES))])
def test_each_example_of_the_guide_runs(convert, name, rules):
    answer = convert(name, rules, code=0)
    for rule in answer.json["rules"]:
        assert rule["applied"] == rule["matched"]
    assert any(rule["applied"] for rule in answer.json["rules"])
    assert not answer.json["undone"]
    onnx.load(answer.model)


def test_every_rule_of_the_guide_has_an_example():
    text = GUIDE.read_text()
    assert text.count("```yaml") == len(EXAMPLES) > 10
    shown = "\n".join(rules for _, rules in EXAMPLES)
    kinds = "replace match remove set constant rename rename_nodes shape dtype fix dynamic_batch add_outputs"
    for kind in [*kinds.split(), "drop_outputs", "cut"]:
        assert f"- {kind}:" in shown, kind


# ---- Replacing


def test_scope_of_tensorflow_becomes_one_operator_and_agrees_with_tensorflow(convert):
    answer = convert(
        "orientation.pb",
        "- replace: {scope: orientation/l2_normalize}\n  with: graft::L2Normalize\n"
        "  attributes: {axes: [2], epsilon: 1.0e-12}\n",
    )
    assert answer.code == 0, answer.err
    (node,) = (n for n in graft_nodes(answer.model) if "L2Normalize" in n.op_type)
    assert not [n for n in onnx.load(answer.model).graph.node if n.name.startswith("orientation/l2_normalize/")]
    golden = np.load(ORIENTATION.with_suffix(".npz"))
    found = run(answer.model, {"features": golden["features"]})
    np.testing.assert_allclose(found["orientation/out"], golden["orientation"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["confidence"], golden["confidence"], rtol=1e-5, atol=1e-6)
    (rewrite,) = (r for r in answer.json["rewrites"] if r["pass"] == "rules_before")
    assert "runs, largest difference" in rewrite["proof"]


@pytest.mark.parametrize("attributes", ["axes: [1], epsilon: 1.0e-12", "axes: [2], epsilon: 1.0e-3"])
def test_scope_by_a_wrong_operator_is_undone(convert, attributes):
    answer = convert(
        "orientation.pb",
        f"- replace: {{scope: orientation/l2_normalize}}\n  with: L2Normalize\n  attributes: {{{attributes}}}\n",
        "--passes=remove_dead",
    )
    assert answer.code == 1
    assert "was not applied" in outcome(answer)["notes"][0]
    assert "elements differ" in answer.err
    assert not graft_nodes(answer.model)
    golden = np.load(ORIENTATION.with_suffix(".npz"))
    found = run(answer.model, {"features": golden["features"]})
    np.testing.assert_allclose(found["orientation/out"], golden["orientation"], rtol=1e-5, atol=1e-6)


def test_caffe_convolution_goes_to_the_plugin_and_agrees_with_opencv(graft, convert):
    answer = convert("convolution.prototxt", "- replace: {layer_type: Convolution, op: Conv}\n  with: Convolution\n")
    assert answer.code == 0, answer.err
    (choice,) = answer.json["choices"]
    assert choice["kind"] == "plugin"
    assert "rules.yaml:1" in choice["reason"]
    # inspect has the same verdict on the written file as convert, although the operator has a native form.
    (node,) = [n for n in graft("inspect", answer.model, "--json").json["nodes"] if n["operator"].startswith("graft::")]
    assert (node["verdict"], node["reason"]) == ("plugin", choice["reason"])
    expected = CAFFE["convolution_0/out/y"]
    found = run(answer.model, {"x": CAFFE["convolution_0/in/x"]})["y"]
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())


def test_caffe_convolution_in_int8_is_near_opencv_and_says_how_far(convert):
    x, expected = CAFFE["convolution_0/in/x"], CAFFE["convolution_0/out/y"]
    x_scale, y_scale = float(np.abs(x).max() / 127), float(np.abs(expected).max() / 127)
    answer = convert(
        "convolution.prototxt",
        f"- replace: {{op: Conv}}\n  with: Convolution\n  int8: {{x_scale: {x_scale:.9g}, y_scale: {y_scale:.9g}}}\n"
        "  changes_result: true\n  reason: int8\n",
    )
    assert answer.code == 0, answer.err
    types = [n.op_type for n in onnx.load(answer.model).graph.node]
    assert types[0] == "QuantizeLinear"
    assert types[-1] == "DequantizeLinear"
    found = run(answer.model, {"x": x}, as_written=True)["y"]
    # Errors are half a step of y, of x and of the weights, each at most half of 1/127 of the largest, and errors of the
    # terms add up like a random walk.
    error = np.abs(found - expected)
    assert 0 < error.max() < 0.03 * np.abs(expected).max()
    (rewrite,) = (r for r in answer.json["rewrites"] if r["pass"] == "rules_before")
    assert "the result changes, as requested" in rewrite["proof"]
    assert "cosine" in rewrite["proof"]


@needs_plugin_library
@pytest.mark.parametrize("int8", [False, True])
def test_rule_made_plugin_builds_in_tensorrt(convert, graft, tmp_path, int8):
    more = "  int8: {x_scale: 0.05, y_scale: 0.1}\n  changes_result: true\n  reason: int8\n" if int8 else ""
    answer = convert("convolution.prototxt", f"- replace: {{op: Conv}}\n  with: Convolution\n{more}", code=0)
    options = ["--target", "sm120", "--plugin-lib", PLUGIN_LIBRARY, "--json"]
    graft("build", answer.model, "-o", tmp_path / "out.engine", *options, code=0)
    # The engine contains each plugin's name as plain bytes.
    assert b"Convolution" in (tmp_path / "out.engine").read_bytes()


def test_plugin_of_a_rule_stays_when_converted_again(convert, graft, tmp_path):
    answer = convert("convolution.prototxt", "- replace: {op: Conv}\n  with: Convolution\n")
    assert graft("convert", answer.model, "-o", tmp_path / "again.onnx").code == 0
    assert onnx.load(tmp_path / "again.onnx") == onnx.load(answer.model)


def test_foreign_plugin_carries_fields_version_and_namespace(convert):
    answer = convert(
        "style.onnx",
        "- replace: {name: norm1}\n  plugin: {name: TheirNorm, version: '2', namespace: theirs}\n"
        "  attributes: {epsilon: '@epsilon', relu: 0}\n  prove: false\n  reason: theirs\n",
    )
    assert answer.code == 0, answer.err
    (node,) = (n for n in onnx.load(answer.model).graph.node if n.op_type == "TheirNorm")
    fields = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    assert fields == {
        "epsilon": pytest.approx(1e-5),
        "relu": 0,
        "plugin_version": b"2",
        "plugin_namespace": b"theirs",
    }
    assert list(node.input) == ["x", "scale", "bias"]
    (rewrite,) = (r for r in answer.json["rewrites"] if r["replacement"].startswith("the plugin TheirNorm"))
    assert "not proven" in rewrite["proof"]
    assert answer.json["runs"]


def test_pattern_with_captures(convert):
    rules = (
        "- match: |\n    s = ReduceSum(Mul(x, x), @axes){keepdims=1}\n    y = Div(x, Sqrt(Add(s, @eps)))\n"
        "  with: L2Normalize\n  attributes: {axes: '@axes', epsilon: '@eps * 1', epsilon_mode: add}\n"
    )
    answer = convert("norm.onnx", rules, "--passes=remove_dead", code=0)
    assert len(graft_nodes(answer.model)) == 1
    x = np.random.default_rng(0).normal(size=(3, 5)).astype("float32")
    expected = x / np.sqrt((x * x).sum(1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(run(answer.model, {"x": x})["y"], expected, rtol=1e-5)


def test_after_the_fusions(convert):
    """The rule changes the epsilon of the L2Normalize that a fusion created."""
    answer = convert(
        "norm.onnx",
        "- set: {op: 'graft::L2Normalize'}\n  stage: after\n  attributes: {epsilon: 1.0e-2}\n"
        "  changes_result: true\n  reason: test\n",
    )
    assert answer.code == 0, answer.err
    x = np.full((1, 5), 0.01, "float32")
    np.testing.assert_allclose(run(answer.model, {"x": x})["y"], x / np.sqrt((x * x).sum() + 1e-2), rtol=1e-5)


# ---- Removing, setting


def test_removing_what_matters_is_refused_unless_it_is_said(convert):
    x = np.random.default_rng(0).normal(size=(2, 4, 5, 6)).astype("float32")
    answer = convert("style.onnx", "- remove: {name: clip}\n", code=1)
    assert "elements differ" in outcome(answer)["notes"][0]
    clipped = run(answer.model, {"x": x})["y"]
    answer = convert("style.onnx", "- remove: {name: clip}\n  changes_result: true\n  reason: test\n", code=0)
    assert "Clip" not in [n.op_type for n in onnx.load(answer.model).graph.node]
    assert np.abs(run(answer.model, {"x": x})["y"] - clipped).max() > 0.1


def test_removing_what_does_nothing_is_proven(graft, tmp_path):
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("Abs", ["r"], ["y"], name="abs"),
    ]
    save(tmp_path / "m.onnx", nodes, [("x", ["n", 5])], [("y", ["n", 5])])
    # Abs changes nothing after a Relu, but the region of the rule is Abs alone, with arbitrary inputs.
    for rule, code in [("- remove: {op: Abs}\n", 1), ("- match: y = Abs(Relu(x))\n  with: Relu\n", 0)]:
        (tmp_path / "r.yaml").write_text(rule)
        answer = graft("convert", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--rules", tmp_path / "r.yaml")
        assert answer.code == code, answer.err
    assert [n.op_type for n in onnx.load(tmp_path / "o.onnx").graph.node] == ["Relu"]


@pytest.mark.parametrize("prove", ["", "  prove: false\n  reason: a test\n"])
@pytest.mark.parametrize("rule", ["match: y = Abs(Neg(x))", "replace: {op: Abs}"])
def test_an_operator_does_not_come_where_it_does_not_take_the_type(graft, tmp_path, rule, prove):
    """In f32 the operator is inserted: the rule itself is valid."""
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Abs", ["n"], ["y"], "abs")]
    command = ["convert", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--rules", tmp_path / "r.yaml", "--no-prove"]
    (tmp_path / "r.yaml").write_text(f"- {rule}\n  with: LeakyReLU\n{prove}")
    for element_type, code, left in ((onnx.TensorProto.INT32, 1, 0), (onnx.TensorProto.FLOAT, 0, 1)):
        save(tmp_path / "m.onnx", nodes, [("x", element_type, [2, 3])], [("y", element_type, [2, 3])])
        answer = graft(*command)
        assert answer.code == code, answer.out + answer.err
        assert len(graft_nodes(tmp_path / "o.onnx")) == left
        said = "not applied: graft::LeakyReLU supports f32, f16, bf16, i8, f8e4m3fn; here its inputs are i32"
        assert (said in " ".join(answer.err.split())) == (code != 0), answer.err


def test_constants_and_attributes(convert):
    answer = convert(
        "style.onnx",
        "- constant: {high: 0.25}\n  changes_result: true\n  reason: test\n",
    )
    assert answer.code == 0, answer.err
    high = [n for n in onnx.load(answer.model).graph.node if n.op_type == "Clip"][0].input[2]
    values = {i.name: numpy_helper.to_array(i) for i in onnx.load(answer.model).graph.initializer}
    assert values[high] == 0.25
    # An equal constant changes nothing, and so needs no changes_result.
    answer = convert("style.onnx", "- constant: {high: 1.5}\n", code=0)
    assert convert("style.onnx", "- constant: {high: 1.25}\n").code == 1


# ---- Names, shapes, parts


def test_names(convert):
    x = np.random.default_rng(0).normal(size=(2, 4, 5, 6)).astype("float32")
    answer = convert(
        "style.onnx", "- rename: {x: image, y: result, 're:(.*)_out': 'inner_$1'}\n", "--passes=remove_dead", code=0
    )
    found = run(answer.model, {"image": x})
    np.testing.assert_allclose(found["result"], style_in_numpy(x), rtol=1e-4, atol=1e-4)
    assert "inner_relu" in {o for n in onnx.load(answer.model).graph.node for o in n.output}


def test_name_that_is_taken(convert):
    answer = convert("style.onnx", "- rename: {x: y}\n", code=2)
    assert "rules.yaml:1:" in answer.err
    assert "there is already a tensor 'y'" in answer.err
    assert not answer.model.exists()


def dims(value):
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def test_shapes_and_types(convert):
    answer = convert("style.onnx", "- shape: {x: [N, 4, 6, W]}\n- fix: {N: 2}\n- dtype: {x: u8}\n", code=0)
    graph = onnx.load(answer.model).graph
    assert dims(graph.input[0]) == [2, 4, 6, "W"]
    assert dims(graph.output[0]) == [2, 4, 6, "W"]
    assert graph.input[0].type.tensor_type.elem_type == TensorProto.UINT8
    x = np.random.default_rng(0).integers(0, 255, (2, 4, 6, 3), "uint8")
    np.testing.assert_allclose(run(answer.model, {"x": x})["y"], style_in_numpy(x), rtol=1e-4, atol=1e-4)


def style_in_numpy(x):
    scale, bias = np.array([1, 2, 3, 4.0])[:, None, None], np.array([0, 1, 0, 1.0])[:, None, None]

    def normalized(v):
        return (v - v.mean((2, 3), keepdims=True)) / np.sqrt(v.var((2, 3), keepdims=True) + 1e-5) * scale + bias

    return normalized(np.clip(normalized(x.astype("float64")), 0, 1.5))


def test_batch_becomes_dynamic(convert):
    answer = convert("fixed.onnx", "- dynamic_batch: N\n", code=0)
    graph = onnx.load(answer.model).graph
    assert dims(graph.input[0]) == ["N", 3, 4]
    x = np.random.default_rng(0).normal(size=(5, 3, 4)).astype("float32")
    weights = np.random.default_rng(1).normal(size=(12, 3)).astype("float32")
    found = run(answer.model, {"x": x})["y"]
    np.testing.assert_allclose(found, np.maximum(x, 0).reshape(5, 12) @ weights, rtol=1e-4, atol=1e-5)


def test_a_batch_that_becomes_dynamic_may_be_empty(graft, tmp_path):
    """ONNX's Reshape infers no size next to a copied one of 0, so that the size takes the place of -1."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Reshape", ["r", "sizes"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["y"]),
    ]
    weights = np.random.default_rng(1).normal(size=(12, 3)).astype("float32")
    parts = [constant("sizes", [2, -1], "int64"), constant("w", weights)]
    save(tmp_path / "m.onnx", nodes, [("x", [2, 3, 4])], [("y", [2, 3])], parts)
    (tmp_path / "r.yaml").write_text("- dynamic_batch: N\n")
    graft("convert", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--rules", tmp_path / "r.yaml", code=0)
    x = np.random.default_rng(0).normal(size=(5, 3, 4)).astype("float32")
    for batch in (0, 5):
        found = run(tmp_path / "o.onnx", {"x": x[:batch]})["y"]
        np.testing.assert_allclose(found, np.maximum(x[:batch], 0).reshape(batch, 12) @ weights, rtol=1e-4, atol=1e-5)


def test_batch_that_is_mixed_stays(graft, tmp_path):
    nodes = [helper.make_node("Softmax", ["x"], ["y"], axis=0)]
    save(tmp_path / "m.onnx", nodes, [("x", [2, 3])], [("y", [2, 3])])
    (tmp_path / "r.yaml").write_text("- dynamic_batch: N\n")
    answer = graft("convert", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--rules", tmp_path / "r.yaml", "--json")
    assert answer.code == 1
    assert "differs from two batches of 2" in outcome(answer)["notes"][0]
    assert dims(onnx.load(tmp_path / "o.onnx").graph.input[0]) == [2, 3]


def test_a_part(convert):
    x = np.random.default_rng(0).normal(size=(2, 4, 5, 6)).astype("float32")
    answer = convert("style.onnx", "- cut: {from: [norm_out], to: [clip_out]}\n", code=0)
    np.testing.assert_allclose(run(answer.model, {"norm_out": x})["clip_out"], np.clip(x, 0, 1.5))


def test_part_that_is_not_closed(graft, tmp_path):
    nodes = [
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Add", ["r", "b"], ["s"]),
        helper.make_node("Neg", ["s"], ["y"]),
    ]
    save(tmp_path / "m.onnx", nodes, [("a", [2]), ("b", [2])], [("y", [2])])
    (tmp_path / "r.yaml").write_text("- cut: {from: [r]}\n")
    answer = graft("convert", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--rules", tmp_path / "r.yaml", code=2)
    assert "the part also needs 'b'" in answer.err


def test_outputs(convert):
    answer = convert("style.onnx", "- add_outputs: ['*_out']\n- drop_outputs: [extra]\n", code=0)
    assert [o.name for o in onnx.load(answer.model).graph.output] == ["y", "norm_out", "relu_out", "clip_out"]


# ---- Messages


NEAR = [
    (
        "- set: {op: InstanceNormalization}\n  when: {attributes: {epsilon: 1.0e-3}}\n  attributes: {epsilon: 1.0e-4}\n",
        "attribute `epsilon` is 1e-05; the rule requires 0.001",
    ),
    ("- remove: {op: Clip}\n  when: {rank: 3}\n", "the rule requires rank 3"),
    ("- remove: {op: Clip}\n  when: {shape: [any, 5, any, any]}\n", "the rule requires [any, 5, any, any]"),
    ("- remove: {op: Clip, name: clop}\n", "its name is clip; the rule requires clop"),
    ("- remove: {op: Clipp}\n", "nearest: Clip"),
    ("- remove: {name: norm_2}\n", "nearest: norm2"),
    ("- remove: {scope: norm}\n", ""),
    ("- remove: {layer_type: Convolution}\n", "only networks that were read from Caffe or TensorFlow have layer types"),
    ("- rename: {xx: image}\n", "there is no tensor 'xx'"),
    ("- fix: {nn: 3}\n", "did you mean n?"),
    ("- add_outputs: [norm_ot]\n", "did you mean norm_out?"),
    (
        "- match: |\n    y = Clip(Relu(Neg(x)), @a, @b)\n  with: Relu\n  inputs: [x]\n",
        "(InstanceNormalization): the pattern needs Neg here",
    ),
]


@pytest.mark.parametrize(("rules", "said"), NEAR)
def test_rule_that_matches_nothing_is_no_and_says_what_came_nearest(convert, rules, said):
    answer = convert("style.onnx", rules, code=1)
    assert outcome(answer)["failed"]
    assert said in "\n".join(outcome(answer)["notes"])
    assert said in answer.err
    assert answer.model.exists()
    optional = convert("style.onnx", rules.rstrip() + "\n  optional: true\n", code=0)
    assert not outcome(optional)["failed"]


def test_explain_lists_rules(graft, tmp_path):
    style(tmp_path / "m.onnx")
    (tmp_path / "r.yaml").write_text("- remove: {op: Dropout}\n  optional: true\n  reason: none here\n")
    answer = graft(
        "convert", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--rules", tmp_path / "r.yaml", "--explain", code=0
    )
    (line,) = (line for line in answer.out.splitlines() if "r.yaml:1:3" in line)
    assert "matched nothing" in line
    assert "none here" in answer.out


BAD = [
    ("rules: []\n", "rules must be a list"),
    ("- remove: {op: A\n", "the file is not valid YAML"),
    ("- match: y = Relu(x)\n  with: Identity\n  attributes: {a: @b}\n", "needs quotes"),
    ("- remvoe: {op: Clip}\n", "did you mean remove?"),
    ("- remove: {opp: Clip}\n", "did you mean op?"),
    ("- remove: {op: Clip}\n  optinal: true\n", "did you mean optional?"),
    ("- remove: {op: Clip}\n  optional: maybe\n", "`optional` must be true or false"),
    ("- remove: {op: Clip}\n  optional: true\n  optional: true\n", "the key `optional` occurs twice"),
    ("- remove: {op: Clip}\n  rename: {a: b}\n", "this rule has both `remove` and `rename`; write two rules"),
    ("- remove: {op: Clip}\n  changes_result: true\n", "changes_result: true requires a `reason`"),
    ("- remove: {op: 're:('}\n", "not a valid regular expression"),
    ("- replace: {op: Clip}\n", "`with` is missing"),
    ("- replace: {op: Clip}\n  with: L2Normalise\n", "did you mean L2Normalize?"),
    ("- replace: {op: Clip}\n  with: Sigmiod\n", "did you mean Sigmoid?"),
    ("- replace: {op: Clip}\n  with: L2Normalize\n  attributes: {axis: [1]}\n", "did you mean `axes`?"),
    (
        "- replace: {op: Clip}\n  with: L2Normalize\n  attributes: {axes: channels}\n",
        'is set to "channels"; its type must be ints',
    ),
    (
        "- replace: {op: Clip}\n  with: L2Normalize\n  attributes: {epsilon: -1}\n",
        "attribute `epsilon` is -1; it must be at least 0 and finite",
    ),
    (
        "- replace: {op: Clip}\n  with: L2Normalize\n  attributes: {epsilon_mode: mx}\n",
        "it must be one of max, norm, add",
    ),
    ("- replace: {op: Clip}\n  with: LeakyRelu\n  attributes: {alhpa: 1}\n", "did you mean `alpha`?"),
    ("- replace: {op: Clip}\n  with: LeakyRelu\n  attributes: {alpha: [1.0, 2.0]}\n", "its type must be float"),
    ("- replace: {op: Clip}\n  with: Convolution\n  int8: {x_scale: 1}\n", "`y_scale` is missing"),
    ("- replace: {op: Clip}\n  with: Convolution\n  int8: {x_scale: 1, y_scale: 1}\n", "changes_result: true"),
    ("- replace: {op: Clip}\n  with: Relu\n  int8: {x_scale: 1, y_scale: 1}\n", "cannot compute in int8"),
    ("- replace: {op: Clip}\n  plugin: {name: A}\n", "add prove: false and a `reason`"),
    ("- replace: {op: Clip}\n  with: theirs::Thing\n", "add prove: false and a `reason`"),
    ("- replace: {op: Clip}\n  with: Relu\n", "Select and order the inputs with `inputs`"),
    ("- replace: {op: Clip}\n  with: Relu\n  inputs: [relu_ot]\n", "did you mean relu_out?"),
    (
        "- replace: {op: Clip}\n  with: Relu\n  inputs: [7]\n",
        "has no input 7; the index counts from 0, and the number of inputs is 3",
    ),
    (
        "- replace: {op: Clip}\n  with: LeakyRelu\n  inputs: [0]\n  attributes: {alpha: '@slope'}\n",
        "@slope has no value here",
    ),
    ("- match: y = Relu(x\n  with: Identity\n", "A pattern has lines such as"),
    (
        "- match: y = Mul(x, HardSigmoid<alpha=0.2>(x))\n  with: HardSwish\n",
        "rules.yaml:1:10: the pattern, line 1, column 23: in a pattern attributes follow the inputs, in braces: write "
        "`HardSigmoid(x){alpha=0.2}`",
    ),
    ("- match: y = Relu(Ad(x, x))\n  with: Identity\n", "ONNX has no operator Ad (did you mean "),
    (
        "- match: y = LeakyRelu(x){alpa=@slope}\n  with: LeakyReLU\n",
        "LeakyRelu has no attribute `alpa` (did you mean `alpha`?)",
    ),
    (
        "- match: y = LeakyRelu(x){alpha=@alpha}\n  with: LeakyReLU\n  attributes: {alpha: alpha}\n",
        'rules.yaml:3:16: attribute `alpha` is set to the string "alpha"; to use the constant of that name in the pattern, write "@alpha"',
    ),
    (
        "- match: y = Mul(x, a)\n  with: Add\n",
        "rules.yaml:1:3: Add has 2 inputs, but without `inputs` only x is read.",
    ),
    (
        "- match: y = Mul(x, a)\n  with: Relu\n  inputs: [x, a]\n",
        "rules.yaml:3:11: Relu has 1 input, but `inputs` lists 2.",
    ),
    (
        "- match: y = Relu(x)\n  with: Neg\n  attributes: {alpha: 1}\n",
        "Neg has no attribute `alpha`; it has no attributes",
    ),
    ("- match: y = Relu(a)\n  with: Identity\n", "`inputs` is missing"),
    ("- match: y = Relu(x)\n  with: Identity\n  inputs: [z]\n", "the pattern has no name z; its names are x, y"),
    (
        "- match: y = Max(x, Mul(x, @alpha))\n  with: LeakyReLU\n",
        "the pattern has @alpha, but the rule does not use it: the attribute `alpha` of graft::LeakyReLU would have "
        "its default; set the attribute "
        'under `attributes`, as in {alpha: "@alpha"}, or rename the constant if you want the default',
    ),
    (
        "- match: y = Elu(x){alpha=@slope}\n  with: LeakyReLU\n",
        'the pattern has @slope, but the rule does not use it; assign the constant to an attribute of graft::LeakyReLU, as in {attribute: "@slope"}, '
        "or remove the constant from the braces of the pattern",
    ),
    (
        "- match: y = Mul(x, @slope)\n  with: LeakyReLU\n  attributes: {alpha: '@slop'}\n",
        "`alpha` is computed from @slop, which the pattern does not have; the constants of the pattern are slope",
    ),
    ("- shape: {x: [4, 4]}\n", "the new shape must also have 4 dimensions, but it has 2"),
    ("- shape: {x: [1, 0, 1, 1]}\n", "the size of a dimension is 0; it must be at least 1"),
    ("- shape: {x: [n, 3, h, w]}\n", "the shapes of the network do not fit together after this rule"),
    ("- dtype: {x: float17}\n", "the element type 'float17' is unknown"),
    ("- fix: {'x:9': 2}\n", "it has no axis '9'"),
    ("- constant: {scale: [1, 2]}\n", "the rule lists 2 numbers, but the constant 'scale' has 4 elements"),
    ("- cut: {to: [nowhere]}\n", "there is no tensor 'nowhere'"),
    ("- drop_outputs: ['*']\n", "is the only output of the model"),
]


@pytest.mark.parametrize(("rules", "said"), BAD)
def test_wrong_rules_name_file_line_and_column(convert, rules, said):
    answer = convert("style.onnx", rules, code=2)
    assert re.search(r"rules\.yaml:\d+:\d+", answer.err), answer.err
    assert said in answer.err
    assert not answer.model.exists()


def test_regions_that_are_not_closed_name_what_is_missing(graft, tmp_path):
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["q"], name="block/square"),
        helper.make_node("Add", ["q", "z"], ["s"], name="block/add"),
        helper.make_node("Sqrt", ["s"], ["r"], name="block/root"),
        helper.make_node("Neg", ["q"], ["n"], name="elsewhere"),
    ]
    save(tmp_path / "m.onnx", nodes, [("x", [2]), ("z", [2])], [("r", [2]), ("n", [2])])
    for rule, said in [
        ("  inputs: [x]\n", "the nodes also read 'z', which `inputs` does not list"),
        ("  inputs: [x, z]\n  outputs: [r]\n", "'q' is also used outside the replaced nodes (node 'elsewhere' (Neg))"),
        (
            "  inputs: [x, z]\n",
            "2 of its tensors are used outside the replaced nodes, but the number of outputs of Add is at most 1",
        ),
    ]:
        (tmp_path / "r.yaml").write_text("- replace: {scope: block}\n  with: Add\n" + rule)
        answer = graft("convert", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--rules", tmp_path / "r.yaml")
        assert answer.code == 2
        assert said in answer.err
        assert not os.path.exists(tmp_path / "o.onnx")
