# Tests the less common parts of ONNX: branches, loops, sequences, quantized networks, rare types. ONNX Runtime is the
# reference.
import json
import os
import re

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from program import run_program

PROGRAM = os.environ["GRAFT_BIN"]
FLOAT = TensorProto.FLOAT


def graft(*arguments):
    done = run_program([PROGRAM, *arguments])
    assert done.returncode in (0, 1), done.stderr  # 1: TensorRT lacks an operator of the network
    return done.stdout


def parse(text, opset, weights=()):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "acme" : 1]> {text}')
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in dict(weights).items())
    return model


def convert(model, folder, *options):
    """Returns the converted model and the report. Both files stay in the folder."""
    onnx.save(model, folder / "in.onnx")
    report = json.loads(graft("convert", folder / "in.onnx", "-o", folder / "out.onnx", "--json", *options))
    assert report["undone"] == []
    converted = onnx.load(folder / "out.onnx")
    onnx.checker.check_model(converted)
    return converted, report


def run(path, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def same(folder, inputs):
    found, expected = run(folder / "out.onnx", inputs), run(folder / "in.onnx", inputs)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        # rewrites round in another order
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(attribute.g)


def types_of(graph):
    return [node.op_type for node in nodes_of(graph)]


X = np.random.default_rng(2).standard_normal((3, 4)).astype(np.float32)


@pytest.mark.parametrize("opset", [9, 10, 11, 12, 17, 21])
def test_passes_work_in_branches(opset, tmp_path):
    """Both branches read values of the outer graph, and have attributes that became inputs in later opsets."""
    squeeze = "Squeeze <axes = [0]> (wide)" if opset < 13 else "Squeeze (wide, zero)"
    unsqueeze = "Unsqueeze <axes = [0]> (scaled)" if opset < 13 else "Unsqueeze (scaled, zero)"
    text = f"""
    g (float[N, 4] x, bool which) => (float[N, 4] y) {{
      scaled = Mul (x, factor)
      y = If (which) <
        then_branch = first () => (float[N, 4] a) {{ part = Mul (scaled, slope)  a = Max (scaled, part) }},
        else_branch = second () => (float[N, 4] b) {{ wide = {unsqueeze}  flat = {squeeze}  b = Softmax <axis = 0> (flat) }}
      >
    }}"""
    weights = {"factor": np.float32(3), "slope": np.float32(0.1), "zero": np.zeros(1, np.int64)}
    converted, _ = convert(parse(text, opset, weights), tmp_path, "--plugins", "never")
    assert "LeakyRelu" in types_of(converted.graph)
    assert "Max" not in types_of(converted.graph)
    for which in (True, False):
        same(tmp_path, {"x": X, "which": np.array(which)})


def test_a_dead_branch_takes_the_branches_inside_it_along(tmp_path):
    text = """
    g (float[N, 4] x, bool which) => (float[N, 4] y) {
      dead = If (which) <
        then_branch = first () => (float[N, 4] a) {
          a = If (which) <
            then_branch = inner () => (float[N, 4] c) { unused = Neg (x)  c = Relu (x) },
            else_branch = other () => (float[N, 4] d) { d = Neg (x) }
          >
        },
        else_branch = second () => (float[N, 4] b) { b = Abs (x) }
      >
      y = Exp (x)
    }"""
    converted, report = convert(parse(text, 17), tmp_path)
    assert types_of(converted.graph) == ["Exp"]
    assert {rewrite["pass"] for rewrite in report["rewrites"]} == {"remove_dead"}
    same(tmp_path, {"x": X, "which": np.array(True)})


@pytest.mark.parametrize("opset", [11, 17, 23])
def test_passes_work_in_loops(opset, tmp_path):
    text = """
    g (float[3, 4] x, int64 count) => (float[3, 4] last, float[K, 3, 4] all) {
      last, all = Loop (count, , x) <
        body = turn (int64 i, bool go, float[3, 4] state) => (bool again, float[3, 4] next, float[3, 4] kept) {
          again = Identity (go)
          part = Mul (state, slope)
          leaky = Max (part, state)
          next = Add (leaky, x)
          kept = Identity (next)
        }
      >
    }"""
    converted, _ = convert(parse(text, opset, {"slope": np.float32(0.25)}), tmp_path, "--plugins", "never")
    assert "LeakyRelu" in types_of(converted.graph)
    for count in (1, 4):
        same(tmp_path, {"x": X, "count": np.array(count)})


@pytest.mark.parametrize("opset", [9, 17])
def test_passes_work_in_scans(opset, tmp_path):
    text = """
    g (float[4] start, float[N, 4] x) => (float[4] last, float[N, 4] all) {
      last, all = Scan <num_scan_inputs = 1> (start, x) <
        body = turn (float[4] state, float[4] row) => (float[4] next, float[4] kept) {
          sum = Add (state, row)
          part = Mul (sum, slope)
          next = Max (sum, part)
          kept = Clip <min = -1.0, max = 1.0> (next)
        }
      >
    }"""
    if opset > 10:
        text = text.replace("Clip <min = -1.0, max = 1.0> (next)", "Clip (next, low, high)")
    weights = {"slope": np.float32(0.25), "low": np.float32(-1), "high": np.float32(1)}
    text = text.replace("Scan <num_scan_inputs = 1> (start, x) <", "Scan (start, x) <num_scan_inputs = 1,")
    converted, _ = convert(parse(text, opset, weights), tmp_path, "--plugins", "never")
    assert "LeakyRelu" in types_of(converted.graph)
    same(tmp_path, {"start": X[0], "x": X})


def test_sequences_and_optionals_are_kept(tmp_path):
    text = """
    g (float[N, 4] x) => (float[M, 4] y, bool there) {
      parts = SplitToSequence <axis = 0> (x, two)
      more = SequenceInsert (parts, x)
      y = ConcatFromSequence <axis = 0> (more)
      perhaps = Optional (x)
      there = OptionalHasElement (perhaps)
    }"""
    converted, _ = convert(parse(text, 18, {"two": np.array(2)}), tmp_path)
    assert types_of(converted.graph)[:3] == ["SplitToSequence", "SequenceInsert", "ConcatFromSequence"]
    same(tmp_path, {"x": X})


ONE_ROW, FOUR_ROWS = np.ones((1, 5), np.float32), np.arange(20, dtype=np.float32).reshape(4, 5)


@pytest.mark.parametrize(
    "makers",
    [
        "s = SequenceConstruct (a, b)",
        "r = SequenceConstruct (b, b)  s = SequenceInsert (r, a, zero)",
        "r = SequenceConstruct (b, a, b)  s = SequenceErase (r, zero)",
        "whole = Concat <axis = 0> (a, b)  s = SplitToSequence <axis = 0> (whole, lengths)",
        "r = SequenceConstruct (a, b)  o = Optional (r)  s = OptionalGetElement (o)",
    ],
)
def test_two_tensors_of_a_sequence_may_have_different_sizes(makers, tmp_path):
    text = f"""
    g (float[1, 5] a, float[4, 5] b, int64 i, int64 j) => (float[P, Q] y) {{
      {makers}
      p = SequenceAt (s, i)
      q = SequenceAt (s, j)
      sizes = Shape (q)
      y = Expand (p, sizes)
    }}"""
    convert(parse(text, 18, {"zero": np.array(0), "lengths": np.array([1, 4])}), tmp_path)
    same(tmp_path, {"a": ONE_ROW, "b": FOUR_ROWS, "i": np.array(0), "j": np.array(1)})


def test_tensors_of_a_declared_sequence_may_have_different_sizes(tmp_path):
    text = """
    g (seq(float[N, 5]) s) => (float[P, Q] y) {
      p = SequenceAt (s, zero)
      q = SequenceAt (s, one)
      sizes = Shape (q)
      y = Expand (p, sizes)
    }"""
    convert(parse(text, 18, {"zero": np.array(0), "one": np.array(1)}), tmp_path)
    same(tmp_path, {"s": [ONE_ROW, FOUR_ROWS]})


def test_two_optionals_may_have_different_sizes(tmp_path):
    text = """
    g (optional(float[N, 5]) o, optional(float[N, 5]) r) => (float[P, Q] y) {
      p = OptionalGetElement (o)
      q = OptionalGetElement (r)
      sizes = Shape (q)
      y = Expand (p, sizes)
    }"""
    convert(parse(text, 18), tmp_path)
    same(tmp_path, {"o": ONE_ROW, "r": FOUR_ROWS})


TENSOR = helper.make_tensor_type_proto(FLOAT, [2])
SEQUENCE = helper.make_sequence_type_proto(TENSOR)


def empty_optional(output, held):
    node = helper.make_node("Optional", [], [output], name="none")
    if held is not None:
        node.attribute.append(helper.make_attribute("type", held))
    return node


def network_with_empty_optional(held):
    nodes = [
        empty_optional("o", held),
        helper.make_node("OptionalHasElement", ["o"], ["there"]),
        helper.make_node("Cast", ["there"], ["c"], to=FLOAT),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    outputs = [
        helper.make_tensor_value_info("y", FLOAT, [2]),
        helper.make_tensor_value_info("there", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, [2])], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def network_with_optional_of_a_branch():
    """The first If returns an optional with x or an empty one, and the second reads it if it has an element."""

    def branch(node, type):
        return helper.make_graph([node], "branch", [], [helper.make_value_info(node.output[0], type)])

    held = helper.make_optional_type_proto(TENSOR)
    nodes = [
        helper.make_node(
            "If",
            ["b"],
            ["o"],
            then_branch=branch(helper.make_node("Optional", ["x"], ["some"]), held),
            else_branch=branch(empty_optional("empty", TENSOR), held),
        ),
        helper.make_node("OptionalHasElement", ["o"], ["there"]),
        helper.make_node(
            "If",
            ["there"],
            ["y"],
            then_branch=branch(helper.make_node("OptionalGetElement", ["o"], ["e"]), TENSOR),
            else_branch=branch(helper.make_node("Neg", ["x"], ["n"]), TENSOR),
        ),
    ]
    inputs = [helper.make_tensor_value_info("x", FLOAT, [2]), helper.make_tensor_value_info("b", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", FLOAT, [2])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def run_as_onnxruntime(folder, inputs):
    """Checks that `graft run` returns the outputs that ONNX Runtime returns."""
    arguments = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    graft("run", folder / "in.onnx", *arguments, "-o", folder / "found.npz")
    names = [output.name for output in onnx.load(folder / "in.onnx").graph.output]
    found = np.load(folder / "found.npz")
    for name, expected in zip(names, run(folder / "in.onnx", inputs), strict=True):
        np.testing.assert_array_equal(found[name], expected)


@pytest.mark.parametrize("held", [TENSOR, SEQUENCE], ids=["tensor", "sequence"])
def test_an_empty_optional_has_no_element(held, tmp_path):
    inputs = {"x": np.float32([1, -2])}
    convert(network_with_empty_optional(held), tmp_path)
    same(tmp_path, inputs)
    run_as_onnxruntime(tmp_path, inputs)


@pytest.mark.parametrize("has_element", [True, False])
def test_a_branch_may_return_an_empty_optional(has_element, tmp_path):
    inputs = {"x": np.float32([1, -2]), "b": np.array(has_element)}
    convert(network_with_optional_of_a_branch(), tmp_path)
    same(tmp_path, inputs)
    run_as_onnxruntime(tmp_path, inputs)


def test_an_empty_optional_needs_the_type_of_its_element(tmp_path):
    """ONNX's checker and ONNX Runtime refuse such a model."""
    onnx.save(network_with_empty_optional(None), tmp_path / "in.onnx")
    with pytest.raises(onnx.shape_inference.InferenceError):
        onnx.checker.check_model(onnx.load(tmp_path / "in.onnx"), full_check=True)
    done = run_program([PROGRAM, "convert", tmp_path / "in.onnx", "-o", tmp_path / "out.onnx"])
    assert done.returncode == 2
    assert "node 'none' (Optional): it has neither an input nor the attribute `type`" in " ".join(done.stderr.split())
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("iterations", [0, 1])
def test_a_loop_without_iterations_returns_the_sequence_that_it_gets(iterations, tmp_path):
    text = """
    g (float[2, 3] x, float[5, 7] first, float[1, 1] unit, int64 count) => (float[P, Q] y) {
      before = SequenceConstruct (first)
      after = Loop (count, yes, before) <
        body = step (int64 i, bool go, seq(float) old) => (bool on, seq(float) new) {
          on = Identity (go)
          new = SequenceConstruct (x)
        }
      >
      item = SequenceAt (after, zero)
      sizes = Shape (item)
      y = Expand (unit, sizes)
    }"""
    convert(parse(text, 18, {"zero": np.array(0), "yes": np.array(True)}), tmp_path)
    x, first, unit = (np.ones(shape, np.float32) for shape in ((2, 3), (5, 7), (1, 1)))
    same(tmp_path, {"x": x, "first": first, "unit": unit, "count": np.array(iterations)})


# ---- Quantized networks


def quantized(per_channel):
    scale = np.linspace(0.01, 0.03, 4, dtype=np.float32) if per_channel else np.float32(0.02)
    point = np.zeros(4 if per_channel else (), np.int8)
    weights = {
        "x_scale": np.float32(0.05),
        "x_point": np.int8(0),
        "w": np.random.default_rng(4).integers(-127, 128, (4, 3, 3, 3), np.int8),
        "w_scale": scale,
        "w_point": point,
        "slope": np.float32(0.1),
        "y_scale": np.float32(0.1),
        "y_point": np.int8(0),
    }
    axis = "<axis = 0>" if per_channel else ""
    text = f"""
    g (float[N, 6, 7, 3] image) => (float[N, 6, 7, 4] y) {{
      x = Transpose <perm = [0, 3, 1, 2]> (image)
      xq = QuantizeLinear (x, x_scale, x_point)
      xd = DequantizeLinear (xq, x_scale, x_point)
      wd = DequantizeLinear {axis} (w, w_scale, w_point)
      c = Conv <pads = [1, 1, 1, 1]> (xd, wd)
      part = Mul (c, slope)
      a = Max (c, part)
      aq = QuantizeLinear (a, y_scale, y_point)
      ad = DequantizeLinear (aq, y_scale, y_point)
      y = Transpose <perm = [0, 2, 3, 1]> (ad)
    }}"""
    return parse(text, 17, weights)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("plugins", ["never", "auto", "always"])
def test_scales_stay_where_they_are(per_channel, plugins, tmp_path):
    converted, _ = convert(quantized(per_channel), tmp_path, "--plugins", plugins)
    found = types_of(converted.graph)
    assert (found.count("QuantizeLinear"), found.count("DequantizeLinear")) == (2, 3)
    makers = {name: node.op_type for node in converted.graph.node for name in node.output}
    (convolution,) = [node for node in converted.graph.node if node.op_type == "Conv"]
    assert [makers[name] for name in convolution.input[:2]] == ["DequantizeLinear"] * 2
    assert "Max" not in found
    tensors = {t.name: t for t in converted.graph.initializer}
    np.testing.assert_array_equal(
        numpy_helper.to_array(tensors["w"]), numpy_helper.to_array(quantized(per_channel).graph.initializer[2])
    )
    image = np.random.default_rng(1).standard_normal((2, 6, 7, 3)).astype(np.float32)
    expected, found = run(tmp_path / "in.onnx", {"image": image})[0], run(tmp_path / "out.onnx", {"image": image})[0]
    # 0.1 is a step of y; rounding in another order may move a tie to the other step.
    assert np.abs(found - expected).max() < 0.1001
    assert (found != expected).mean() < 0.01


# ---- Types in which Graft does not compute

ODD_TYPES = ["BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0", "UINT4", "INT4",
             "FLOAT4E2M1", "UINT2", "INT2", "UINT16", "COMPLEX64", "COMPLEX128", "DOUBLE", "BOOL"]  # fmt: skip
BITS = {"BFLOAT16": 16, "UINT16": 16, "COMPLEX64": 64, "COMPLEX128": 128, "DOUBLE": 64} | dict.fromkeys(
    ["UINT4", "INT4", "FLOAT4E2M1"], 4) | dict.fromkeys(["UINT2", "INT2"], 2)  # fmt: skip


def odd_model():
    generator = np.random.default_rng(6)
    graph = helper.make_graph(
        [helper.make_node("Keep", ["x", *ODD_TYPES, "words", "sparse"], ["y"], "keeper", "said of it", domain="acme")],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, ["N"])],
        [helper.make_tensor_value_info("y", FLOAT, ["N"])],
    )
    for name in ODD_TYPES:
        bits = BITS.get(name, 8)
        raw = generator.integers(0, 256, (7 * bits + 7) // 8, np.uint8)
        if name == "BOOL":
            raw &= 1
        tensor = TensorProto(name=name, data_type=getattr(TensorProto, name), dims=[7], raw_data=raw.tobytes())
        tensor.doc_string = f"seven of {name}"
        graph.initializer.append(tensor)
    graph.initializer.append(helper.make_tensor("words", TensorProto.STRING, [2], [b"\xff\x00odd", "größe".encode()]))
    sparse = onnx.SparseTensorProto(dims=[3, 3])
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([1.5], np.float32), "sparse"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([4])))
    graph.sparse_initializer.append(sparse)
    annotation = graph.quantization_annotation.add(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="DOUBLE")
    imports = [helper.make_opsetid("", 24), helper.make_opsetid("acme", 7)]
    model = helper.make_model(graph, opset_imports=imports, producer_name="us", producer_version="3", ir_version=13)
    model.doc_string, model.domain, model.model_version = "of the model", "org.acme", 5
    helper.set_model_props(model, {"key": "value"})
    return model


@pytest.mark.parametrize("external", [False, True])
def test_what_is_not_understood_is_kept_bit_for_bit(external, tmp_path):
    model = odd_model()
    options = {"save_as_external_data": True, "size_threshold": 0, "location": "w.bin"} if external else {}
    onnx.save(model, tmp_path / "in.onnx", **options)
    graft("convert", tmp_path / "in.onnx", "-o", tmp_path / "out.onnx")
    expected, found = odd_model(), onnx.load(tmp_path / "out.onnx")
    for tensor in found.graph.initializer:
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
    assert sorted(t.SerializeToString() for t in expected.graph.initializer) == sorted(
        t.SerializeToString() for t in found.graph.initializer
    )
    for field in ("node", "input", "output", "sparse_initializer", "quantization_annotation"):
        assert getattr(found.graph, field) == getattr(expected.graph, field)
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string", "metadata_props"):
        assert getattr(found, field) == getattr(expected, field)
    assert {(o.domain, o.version) for o in found.opset_import} == {("", 24), ("acme", 7)}
    assert found.ir_version == expected.ir_version


def test_an_operator_of_another_domain_is_named(tmp_path):
    onnx.save(odd_model(), tmp_path / "in.onnx")
    done = run_program([PROGRAM, "inspect", tmp_path / "in.onnx"])
    assert done.returncode == 1
    assert "keeper" in done.stdout and "acme::Keep" in done.stdout


def test_an_old_model_with_an_operator_of_another_domain_is_raised(tmp_path):
    """No runtime has the whole network, so each node is checked separately."""
    text = """
    g (float[N, 3, 4] x) => (float[N, 3, 4] y) {
      a = Softmax <axis = 1> (x)
      b = Clip <min = 0.0, max = 0.2> (a)
      part = Mul (b, slope)
      c = Max (b, part)
      y = acme.Keep (c)
    }"""
    converted, report = convert(parse(text, 9, {"slope": np.float32(0.1)}), tmp_path, "--plugins", "never")
    assert [entry.version for entry in converted.opset_import if entry.domain == ""] == [17]
    assert {"LeakyRelu", "Keep", "Flatten"} <= set(types_of(converted.graph))
    (raised,) = [rewrite for rewrite in report["rewrites"] if rewrite["pass"] == "upgrade_opset"]
    assert "1 are computed by other operators" in raised["proof"]


# ---- Sizes


def dims_of(model, name):
    for value in [*model.graph.output, *model.graph.value_info]:
        if value.name == name:
            return [d.dim_value if d.HasField("dim_value") else d.dim_param for d in value.type.tensor_type.shape.dim]
    return None


SIZES = """
g (float[batch, 3, height, width] x) => (float y, float z, int64 found) {
  shape = Shape (x)
  n = Gather (shape, zero)
  h = Gather (shape, two)
  w = Gather (shape, three)
  area = Mul (h, w)
  target = Concat <axis = 0> (n, threes, area)
  y = Reshape (x, target)
  twice = Mul (h, two)
  sizes = Concat <axis = 0> (n, threes, twice, w)
  none = ConstantOfShape (sizes)
  z = Identity (none)
  found = NonZero (x)
}"""


def test_sizes_that_a_model_computes(tmp_path):
    weights = {name: np.array([value]) for name, value in {"zero": 0, "two": 2, "three": 3, "threes": 3}.items()}
    model = parse(SIZES, 17, weights)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    converted, _ = convert(model, tmp_path)
    assert dims_of(converted, "y") == ["batch", 3, "(height * width)"]
    assert dims_of(converted, "z") == ["batch", 3, "(height * 2)", "width"]
    assert dims_of(converted, "found") == [4, ""]
    fixed, _ = convert(model, tmp_path, "--input", "x:2x3x5x6")
    assert dims_of(fixed, "y") == [2, 3, 30]
    assert dims_of(fixed, "z") == [2, 3, 10, 6]
    assert dims_of(fixed, "found") == [4, ""]
    assert "Shape" not in types_of(fixed.graph)
    same(tmp_path, {"x": np.random.default_rng(0).standard_normal((2, 3, 5, 6)).astype(np.float32)})


# ---- Faults of the CPU engine: the result is right or refused with a message, never a crash or a wrong number


def run_on_cpu_engine(model, folder, inputs, *options):
    onnx.save(model, folder / "m.onnx")
    np.savez(folder / "in.npz", **inputs)
    arguments = [PROGRAM, "run", folder / "m.onnx", "--input", folder / "in.npz", "-o", folder / "out.npz", *options]
    done = run_program(arguments)
    return done, dict(np.load(folder / "out.npz")) if done.returncode == 0 else None


def zeros_for(model):
    """Returns zeros for the inputs, with 1 in place of dynamic sizes."""
    feeds = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [size.dim_value or 1 for size in kind.shape.dim]
        feeds[value.name] = np.zeros(shape, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return feeds


INDEXED = {
    "Gather": ("(float[N, 4] x, int64[M, 1] i) => (float[M, 1, 4] y) { y = Gather (x, i) }", [[2], [-3]]),
    "Gather_axis": ("(float[N, 4] x, int64[M] i) => (float[N, M] y) { y = Gather <axis = -1> (x, i) }", [3, 0, -4]),
    "Gather_one": ("(float[N, 4] x, int64 i) => (float[4] y) { y = Gather (x, i) }", -3),
    "GatherElements": (
        "(float[N, 4] x, int64[M, 4] i) => (float[M, 4] y) { y = GatherElements <axis = 0> (x, i) }",
        [[2, -1, 0, -3]],
    ),
    "GatherND": ("(float[N, 4] x, int64[M, 1] i) => (float[M, 4] y) { y = GatherND (x, i) }", [[2], [-3]]),
    "GatherND_batch": (
        "(float[N, 4] x, int64[N, 1] i) => (float[N] y) { y = GatherND <batch_dims = 1> (x, i) }",
        [[3], [0], [-4]],
    ),
    "ScatterElements": (
        "(float[N, 4] x, int64[M, 4] i) => (float[N, 4] y) "
        "{ u = Cast <to = 1> (i)  y = ScatterElements <axis = 0> (x, i, u) }",
        [[2, -1, 0, -3]],
    ),
}


@pytest.mark.parametrize("name", INDEXED)
def test_an_index_outside_of_a_tensor_is_refused(name, tmp_path):
    text, indices = INDEXED[name]
    model = parse("g " + text, 17)
    indices = np.array(indices)
    done, found = run_on_cpu_engine(model, tmp_path, {"x": X, "i": indices})
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(found["y"], run(tmp_path / "m.onnx", {"x": X, "i": indices})[0])
    for wrong in (5, -5, 10**8, -(10**8)):
        indices.flat[-1] = wrong
        done, _ = run_on_cpu_engine(model, tmp_path, {"x": X, "i": indices})
        assert done.returncode == 2, (done.returncode, done.stderr)
        # ONNX Runtime's messages: "indices element out of data bounds", "Out of range value in index tensor".
        assert re.search("index|indices", done.stderr) and "m.onnx" in done.stderr


WRONG_THERE = {
    "beta": (17, "(float[1, 8, 4, 4] x) => (float[1, 8, 4, 4] y) { y = LRN <size = 3, beta = 0.6> (x) }"),
    "exclude_outside": (
        17,
        "(float[1, 1, 4, 4] x) => (float[1, 1, 8, 8] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> "
        '{ y = Resize <mode = "cubic", exclude_outside = 1> (x, , s) }',
    ),
    "layout": (
        17,
        "(float[2, 3, 4] x, float[1, 5, 4] w, float[1, 5, 5] r) => (float[2, 3, 1, 5] y) "
        "{ y = RNN <hidden_size = 5, layout = 1> (x, w, r) }",
    ),
    "onesided": (17, "(float[1, 8, 1] x) => (float[1, 5, 2] y) { y = DFT <axis = 1, onesided = 1> (x) }"),
    "left_window_size": (
        25,
        "(float[1, 2, 3, 4] q, float[1, 2, 3, 4] k, float[1, 2, 3, 4] v) => (float[1, 2, 3, 4] y) "
        "{ y = Attention <left_window_size = 1> (q, k, v) }",
    ),
}


@pytest.mark.parametrize("named", WRONG_THERE)
def test_what_the_cpu_engine_computes_wrongly_is_refused(named, tmp_path):
    opset, text = WRONG_THERE[named]
    model = parse("g " + text, opset)
    done, _ = run_on_cpu_engine(model, tmp_path, zeros_for(model), "--engine", "openvino")
    assert done.returncode == 2
    assert (
        "computes this node wrongly" in done.stderr
        and "set --engine to onnxruntime" in done.stderr
        and named in done.stderr
    )


def test_what_onnx_does_not_allow_is_a_fault_of_the_file(tmp_path):
    """OpenVINO shifts signed integers wrongly; ONNX allows only unsigned ones, and ONNX Runtime refuses the model."""
    text = '(int32[N] x, int32[N] by) => (int32[N] y) { y = BitShift <direction = "RIGHT"> (x, by) }'
    model = parse("g " + text, 17)
    done, _ = run_on_cpu_engine(model, tmp_path, zeros_for(model), "--engine", "openvino")
    assert done.returncode == 2
    assert (
        "node 'y' (BitShift): input 0 of BitShift, 'x', is i32, but ONNX allows only u8, u16, u32, u64 there"
        in done.stderr
    )


@pytest.mark.parametrize("opset", [9, 11, 12, 13])
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_over_several_axes_on_the_cpu_engine(operator, opset, tmp_path):
    model = parse(f"g (float[N, 2, 5] x) => (float[N, 2, 5] y) {{ y = {operator} <axis = 1> (x) }}", opset)
    x = np.random.default_rng(3).standard_normal((3, 2, 5)).astype(np.float32)
    done, found = run_on_cpu_engine(model, tmp_path, {"x": x})
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(found["y"], run(tmp_path / "m.onnx", {"x": x})[0], rtol=1e-5, atol=1e-6)
