# bodies_test.py - Tests that after a conversion no body of an If, Loop or Scan has one of Graft's operators.
"""TensorRT-RTX parses a plugin in a body, but its builder fails. The tool in GRAFT_CONVERT_TOOL converts each
network, ONNX Runtime runs it before and after, and TensorRT-RTX builds it."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"
MODES = ["auto", "always", "never"]

L2 = """
  {y}_norm = ReduceL2 <axes: ints = [1], keepdims: int = 1> ({x})
  {y}_limited = Max ({y}_norm, epsilon)
  {y} = Div ({x}, {y}_limited)
"""
INSTANCE_NORM = """
  {y}_mean = ReduceMean <axes: ints = [2, 3], keepdims: int = 1> ({x})
  {y}_centered = Sub ({x}, {y}_mean)
  {y}_squares = Mul ({y}_centered, {y}_centered)
  {y}_variance = ReduceMean <axes: ints = [2, 3], keepdims: int = 1> ({y}_squares)
  {y}_sum = Add ({y}_variance, small)
  {y}_deviation = Sqrt ({y}_sum)
  {y} = Div ({y}_centered, {y}_deviation)
"""
CONDITION = "largest = ReduceMax <keepdims: int = 0> (x)\ncondition = Greater (largest, zero)\n"
CONSTANTS = "float zero = {0}, float epsilon = {1e-12}, float small = {1e-5}, int64 count = {2}, bool true = {1}"


def branches(then, otherwise, kind="float[3,5]"):
    return (
        f"{CONDITION}y = If (condition) <then_branch: graph = t () => ({kind} a) {{ {then} }}, "
        f"else_branch: graph = e () => ({kind} b) {{ {otherwise} }}>"
    )


def model(inputs, outputs, nodes, functions="", domains=""):
    text = f'<ir_version: 8, opset_import: ["" : 17{domains}]>\n'
    text += f"g ({inputs}) => ({outputs}) <{CONSTANTS}> {{\n{nodes}\n}}\n{functions}"
    return onnx.parser.parse_model(text)


# The number of iterations depends on data, so that the Loop is not unrolled.
GOES_ON = "largest_of_row = ReduceMax <keepdims: int = 0> (row)\ngoes_on = Equal (largest_of_row, largest_of_row)"


def norm_in_if():
    return model("float[3,5] x", "float[3,5] y", branches(L2.format(x="x", y="a"), "b = Neg (x)"))


def norm_in_loop():
    body = f"row = Gather <axis: int = 0> (x, i)\n{L2.format(x='row', y='o')}\n{GOES_ON}"
    return model(
        "float[2,3,5] x",
        "float[2,3,5] y",
        f"y = Loop (count, true) <body: graph = b (int64 i, bool goes) => (bool goes_on, float[3,5] o) {{ {body} }}>",
    )


def norm_in_if_in_loop():
    inner = L2.format(x="row", y="a")
    body = f"""row = Gather <axis: int = 0> (x, i)
      largest = ReduceMax <keepdims: int = 0> (row)
      condition = Greater (largest, zero)
      o = If (condition) <then_branch: graph = t () => (float[3,5] a) {{ {inner} }},
                          else_branch: graph = e () => (float[3,5] n) {{ n = Neg (row) }}>
      {GOES_ON}"""
    return model(
        "float[2,3,5] x",
        "float[2,3,5] y",
        f"y = Loop (count, true) <body: graph = b (int64 i, bool goes) => (bool goes_on, float[3,5] o) {{ {body} }}>",
    )


def norm_in_scan():
    body = f"after = Add (before, row)\n{L2.format(x='row', y='o')}"
    return model(
        "float[3,5] first, float[2,3,5] x",
        "float[3,5] last, float[2,3,5] y",
        "last, y = Scan <num_scan_inputs: int = 1, body: graph = b (float[3,5] before, float[3,5] row) => "
        f"(float[3,5] after, float[3,5] o) {{ {body} }}> (first, x)",
    )


def norm_in_function_in_if():
    function = f"""<domain: "my", opset_import: ["" : 17]>
      norm (v) => (w) {{ epsilon = Constant <value_float: float = 1e-12> () {L2.format(x="v", y="w")} }}"""
    nodes = branches("a = my.norm (x)", "b = Neg (x)")
    return model("float[3,5] x", "float[3,5] y", nodes, function, ', "my" : 1')


def instance_norm_in_if():
    nodes = branches(INSTANCE_NORM.format(x="x", y="a"), "b = Neg (x)", "float[1,3,4,5]")
    return model("float[1,3,4,5] x", "float[1,3,4,5] y", nodes)


def drop_in_in_if():
    """Returns an If with a node of a plugin that Graft replaces and whose native form is a layer of TensorRT."""
    return model(
        "float[3,5] x",
        "float[3,5] y",
        branches("a = LReLU_TRT <negSlope: float = 0.25> (x)", "b = Neg (x)"),
    )


NETWORKS = {
    f.__name__: f()
    for f in (
        norm_in_if, norm_in_loop, norm_in_if_in_loop, norm_in_scan, norm_in_function_in_if, instance_norm_in_if,
        drop_in_in_if,
    )
}  # fmt: skip


def graphs_inside(graph):
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield attribute.g
                yield from graphs_inside(attribute.g)


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """Returns mode -> name -> file."""
    folder = tmp_path_factory.mktemp("bodies")
    paths = []
    for name, network in NETWORKS.items():
        paths.append(folder / f"{name}.onnx")
        onnx.save(network, paths[-1])
    for mode in MODES:
        (folder / mode).mkdir()
    subprocess.run([os.environ["GRAFT_CONVERT_TOOL"], ",".join(MODES), folder, *paths], check=True)
    return {mode: {name: folder / mode / f"{name}.onnx" for name in NETWORKS} for mode in MODES}


def run(network, feeds):
    return onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"]).run(None, feeds)


def feeds_of(network, seed):
    generator = np.random.default_rng(seed)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in network.graph.input}
    # The largest number selects the branch; it is negative for one seed.
    return {name: generator.standard_normal(s).astype(np.float32) - 9 * (seed % 2) for name, s in shapes.items()}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("mode", MODES)
def test_a_body_holds_no_operator_of_graft_and_computes_the_same(converted, mode, name):
    after = onnx.load(converted[mode][name])
    domains = {node.domain for graph in graphs_inside(after.graph) for node in graph.node}
    # A Scan of fixed length has no body any more.
    assert domains == (set() if name == "norm_in_scan" else {""})
    original = NETWORKS[name]
    if name == "drop_in_in_if":  # ONNX Runtime does not have the plugin
        original = model(
            "float[3,5] x", "float[3,5] y", branches("a = LeakyRelu <alpha: float = 0.25> (x)", "b = Neg (x)")
        )
    for seed in range(2):
        feeds = feeds_of(original, seed)
        wanted, found = run(original.SerializeToString(), feeds), run(after.SerializeToString(), feeds)
        for one, other in zip(wanted, found, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


def test_outside_of_a_body_the_operator_is_fused(tmp_path):
    network = model("float[3,5] x", "float[3,5] y", L2.format(x="x", y="y"))
    onnx.save(network, tmp_path / "norm.onnx")
    (tmp_path / "out").mkdir()
    subprocess.run([os.environ["GRAFT_CONVERT_TOOL"], "auto", tmp_path / "out", tmp_path / "norm.onnx"], check=True)
    assert [node.domain for node in onnx.load(tmp_path / "out" / "norm.onnx").graph.node] == ["graft"]


def test_tensorrt_builds_what_it_built_before(converted):
    pytest.importorskip("tensorrt_rtx")
    sys.path.insert(0, str(SUPPORT))
    from tensorrt_builds import what_tensorrt_builds  # noqa: PLC0415

    built = what_tensorrt_builds([path for files in converted.values() for path in files.values()])
    assert [f"{path.parent.name}/{path.stem}" for path, is_built in built.items() if not is_built] == []
