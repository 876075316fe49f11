# computed_sizes_test.py - Tests sizes that are computed from floating-point or boolean inputs, or by an If.
"""ONNX Runtime runs each network before and after with several sizes, and TensorRT-RTX builds results that it refused
before."""

import json
import sys
from pathlib import Path

import graft
import numpy as np
import onnx
import onnx.parser
import pytest
from conversions import convert, run

SUPPORT = Path(__file__).resolve().parents[1] / "support"
CONSTANTS = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] axis = {1}, int64[1] two = {2}, int64[1] four = {4}, "
    "int64[1] rest = {-1}, int64[3] none = {0, 0, 0}, int64 begin = {0}, int64 from = {-2}, int64 by = {1}, "
    "int64 by_2 = {2}, float half = {0.5}, int64[1] sixteen = {16}"
)


def model(inputs, outputs, nodes):
    text = f'<ir_version: 8, opset_import: ["" : 18]>\ng ({inputs}) => ({outputs}) <{CONSTANTS}> {{\n{nodes}\n}}'
    network = onnx.parser.parse_model(text)
    onnx.checker.check_model(network)
    return network


SIZE = "h = Add (s, half)\nf = Floor (h)\nn = Cast <to: int = 7> (f)\n"
FROM_IF = """n = If (c) <then_branch: graph = t () => (int64[1] a) { a = Cast <to: int = 7> (s) },
                     else_branch: graph = e () => (int64[1] b) { d = Cast <to: int = 7> (s) b = Add (d, one) }>\n"""
# Name -> nodes that read the size n and x, which is [2, 4].
READERS = {
    "slice": "y = Slice (x, zero, n, axis)",
    "resize": 't = Concat <axis: int = 0> (two, n)\ny = Resize <mode: string = "linear"> (x, , , t)',
    "expand": "t = Concat <axis: int = 0> (n, two, four)\ny = Expand (x, t)",
    "tile": "t = Concat <axis: int = 0> (one, n)\ny = Tile (x, t)",
    "reshape": "r = Concat <axis: int = 0> (one, n)\nk = Tile (x, r)\nt = Concat <axis: int = 0> (n, rest)\ny = Reshape (k, t)",
    "pad": "t = Concat <axis: int = 0> (none, n)\ny = Pad (x, t)",
    "constant_of_shape": "t = Concat <axis: int = 0> (n, four)\nk = ConstantOfShape (t)\nr = ReduceSum (x, zero)\n"
    "y = Add (k, r)",
    "range": "m = Squeeze (n)\nr = Range (begin, m, by)\ny = Cast <to: int = 1> (r)",
}
RANK = {"expand": 3, "range": 1}
NETWORKS = {
    **{
        f"{source}_{name}": model(
            f"float[2,4] x, float[1] s{', bool c' if source == 'if' else ''}",
            f"float[{','.join(f'd{i}' for i in range(RANK.get(name, 2)))}] y",
            nodes + reader,
        )
        for source, nodes in (("float", SIZE), ("if", FROM_IF))
        for name, reader in READERS.items()
    },
    # The prompt decoder of a segmenter: sizes from the picture's size, which is an input in f32.
    "two_sizes": model(
        "float[1,1,8,8] x, float[2] s", "float[1,1,h,w] y",
        """n = Cast <to: int = 7> (s)
        t = Concat <axis: int = 0> (one, one, sixteen, sixteen)
        big = Resize <mode: string = "linear"> (x, , , t)
        b = Concat <axis: int = 0> (zero, zero)
        three = Add (two, one)
        a = Concat <axis: int = 0> (two, three)
        cut = Slice (big, b, n, a)
        u = Concat <axis: int = 0> (one, one, n)
        y = Resize <mode: string = "linear"> (cut, , , u)""",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sizes")
    return {name: convert(network, folder)[0] for name, network in NETWORKS.items()}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_results_stay(name, converted):
    before, after = NETWORKS[name], converted[name]
    assert "CumSum" in [node.op_type for node in after.graph.node]
    rng = np.random.default_rng(0)
    shape = [dim.dim_value for dim in before.graph.input[0].type.tensor_type.shape.dim]
    for size in (1, 2, 3):
        feeds = {"x": rng.standard_normal(shape).astype(np.float32), "s": np.array([size], np.float32)}
        if name == "two_sizes":
            feeds["s"] = np.array([size + 4, 3 * size], np.float32)
        if name.startswith("if"):
            feeds["c"] = np.array(size != 2)
        for one, other in zip(run(before, feeds), run(after, feeds), strict=True):
            np.testing.assert_array_equal(other, one)


def test_tensorrt_builds_what_it_refused(converted, tmp_path):
    pytest.importorskip("tensorrt_rtx")
    sys.path.insert(0, str(SUPPORT))
    from tensorrt_builds import what_tensorrt_builds  # noqa: PLC0415

    paths = {}
    for name, network in NETWORKS.items():
        for part, each in (("before", network), ("after", converted[name])):
            paths[part, name] = tmp_path / f"{part}_{name}.onnx"
            onnx.save(each, paths[part, name])
    built = what_tensorrt_builds(paths.values())
    assert [key for key, path in paths.items() if built[path] != (key[0] == "after")] == []


@pytest.mark.parametrize("name", ["float_slice", "if_expand", "two_sizes"])
def test_inspect_agrees(name, tmp_path):
    onnx.save(NETWORKS[name], tmp_path / "in.onnx")
    report = graft.inspect(tmp_path / "in.onnx", judge="rule")
    assert [node.support for node in report.nodes if node.support in ("unsupported", "unknown")] == []
    assert any("reads when the engine runs" in node.advice for node in report.nodes)


def masked(begin, by):
    return model(
        "float[1,16] x", "int64[k] y, int64[1,j] z",
        f"""g = Greater (x, half) m = Cast <to: int = 7> (g)
        c = ReduceSum <keepdims: int = 0> (m, axis)
        n = ReduceMax <keepdims: int = 0> (c)
        y = Range ({begin}, n, {by})
        l = Less (y, c) z = NonZero (l)""",
    )  # fmt: skip


@pytest.mark.parametrize(("begin", "by", "count"), [("begin", "by", 16), ("from", "by_2", 9)])
def test_a_range_up_to_the_size_of_a_mask_has_a_bound(begin, by, count, tmp_path):
    network = masked(begin, by)
    after, report = convert(network, tmp_path)
    assert "Range" not in [node.op_type for node in after.graph.node]
    assert any(f"a Slice of its {count} numbers" in rewrite.replacement for rewrite in report.rewrites)
    for x in (np.zeros(16), np.ones(16), np.arange(16) % 3):
        feeds = {"x": x.reshape(1, 16).astype(np.float32)}
        for one, other in zip(run(network, feeds), run(after, feeds), strict=True):
            np.testing.assert_array_equal(other, one)


def test_a_resize_by_computed_scales_stays(tmp_path):
    network = model(
        "float[2,4] x, float[1] s", "float[a,b] y",
        """o = Cast <to: int = 1> (one) t = Concat <axis: int = 0> (o, s)
        y = Resize <mode: string = "nearest"> (x, , t)""",
    )  # fmt: skip
    after, report = convert(network, tmp_path)
    assert "CumSum" not in [node.op_type for node in after.graph.node]
    assert any("is not of integers" in near["reason"] for near in json.loads(report.to_json())["near_misses"])
