# bytes_test.py - Tests that no u8 tensor stays between two nodes of a network after a conversion.
"""ONNX's reference computes chains of u8 operators, of which ONNX Runtime lacks some, and ONNX Runtime the converted
networks. TensorRT-RTX, which accepts u8 only next to Cast at the ends of a network, builds them."""

import json
import sys
from pathlib import Path

import graft
import numpy as np
import onnx
import pytest
from conversions import convert, run
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

SUPPORT = Path(__file__).resolve().parents[1] / "support"
SEEDS = range(24)
U8, FLOAT, BOOL, HALF = TensorProto.UINT8, TensorProto.FLOAT, TensorProto.BOOL, TensorProto.FLOAT16


class Chain:
    """Nodes in a row on an image or a mask of u8, whose sizes it tracks."""

    def __init__(self, rng, shape, opset=18):
        self.rng, self.shape, self.opset = rng, list(shape), opset
        self.nodes, self.constants, self.outputs = [], [], []
        self.inputs, self.feeds = [], {}
        self.last = ""

    def name(self):
        return f"t{len(self.nodes)}_{len(self.constants)}_{len(self.inputs)}"

    def constant(self, values, dtype=np.int64):
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, op, inputs, shape=None, outputs=1, **attributes):
        made = [f"{self.name()}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, made, **attributes))
        self.last = made[0]
        self.shape = self.shape if shape is None else list(shape)
        return made

    def input(self, kind, array):
        name = f"in{len(self.inputs)}"
        shape = ["N", *array.shape[1:]]
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.feeds[name] = array
        return name

    def output(self, kind):
        self.outputs.append(helper.make_tensor_value_info(self.last, kind, [None] * 4))

    def model(self):
        graph = helper.make_graph(self.nodes, "chain", self.inputs, self.outputs, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)
        onnx.checker.check_model(made)
        return made


def transpose(c):
    perm = [0, *(c.rng.permutation(3) + 1)]
    c.add("Transpose", [c.last], [c.shape[i] for i in perm], perm=perm)


def reverse(c):
    axis = int(c.rng.integers(1, 4))
    c.add("Slice", [c.last, c.constant([-1]), c.constant([-1000]), c.constant([axis]), c.constant([-1])])


def split_and_concat(c):
    axis = int(c.rng.integers(1, 4))
    size = c.shape[axis]
    if size < 2:
        return
    parts = c.add("Split", [c.last, c.constant([1, size - 1])], outputs=2, axis=axis)
    c.add("Concat", parts[::-1], axis=axis)


def gather(c):
    axis = int(c.rng.integers(1, 4))
    indices = c.rng.integers(-c.shape[axis], c.shape[axis], 2)
    c.add("Gather", [c.last, c.constant(indices)], [*c.shape[:axis], 2, *c.shape[axis + 1 :]], axis=axis)


def look_up(c):
    table = c.constant(c.rng.integers(0, 256, 256), np.uint8)
    c.add("Cast", [c.last], to=TensorProto.INT64)
    c.add("Gather", [table, c.last])


def compute(c):
    operands = [c.last, c.constant(c.rng.integers(0, 256), np.uint8)]
    c.add(str(c.rng.choice(["Mul", "Add", "Sub", "Max", "Min"])), operands[:: c.rng.choice([1, -1])])


def divide(c):
    c.add(str(c.rng.choice(["Div", "Mod"])), [c.last, c.constant(c.rng.integers(1, 256), np.uint8)])


def select(c):
    x = c.last
    c.add("Greater", [x, c.constant(128, np.uint8)])
    c.add("Where", [c.last, x, c.constant(7, np.uint8)])


def pad(c):
    c.add("Pad", [c.last, c.constant([0, 1, 0, 2, 0, 0, 1, 0]), c.constant(114, np.uint8)],
          np.add(c.shape, [0, 1, 1, 2]).tolist())  # fmt: skip


def reshape(c):
    shape = [c.shape[1], c.shape[3], c.shape[2]]
    c.add("Reshape", [c.last, c.constant([-1, *shape])], [c.shape[0], *shape])


def resize(c):
    scales = c.constant([1, 1, 2, 2], np.float32)
    c.add("Resize", [c.last, "", scales], [*c.shape[:2], 2 * c.shape[2], 2 * c.shape[3]], mode="nearest")


def from_mask(c):
    """The mask of where a tensor is above a byte, as u8."""
    c.add("GreaterOrEqual", [c.last, c.constant(100, np.uint8)])
    c.add("Cast", [c.last], to=U8)


STEPS = [
    transpose,
    reverse,
    split_and_concat,
    gather,
    look_up,
    compute,
    divide,
    select,
    pad,
    reshape,
    resize,
    from_mask,
]


def picture(seed):
    """A u8 picture, 1 to 5 steps, and a floating-point tensor, a u8 tensor or both."""
    rng = np.random.default_rng([seed, 1])
    c = Chain(rng, [2, 4, 6, 3])
    c.last = c.input(U8, rng.integers(0, 256, c.shape).astype(np.uint8))
    for step in rng.choice(len(STEPS), int(rng.integers(1, 6))):
        STEPS[step](c)
    ends = int(rng.integers(3))
    if ends != 0:
        if c.last.startswith("in"):
            transpose(c)
        c.output(U8)
    if ends != 1:
        kind = FLOAT if rng.integers(2) else HALF
        c.add("Cast", [c.last], to=kind)
        c.output(kind)
    return c


def mask(seed):
    """A u8 mask or labels of floating-point tensors, and 1 to 3 steps."""
    rng = np.random.default_rng([seed, 2])
    c = Chain(rng, [2, 4, 6, 3])
    x = c.input(FLOAT, rng.uniform(0, 255, c.shape).astype(np.float32))
    which = int(rng.integers(4))
    if which == 0:
        c.add("Greater", [x, c.constant(128, np.float32)])
    elif which == 1:
        c.add("ArgMax", [x], [2, 1, 6, 3], axis=1)
    elif which == 2:
        c.add("Cast", [x], to=TensorProto.INT32)
        c.add("Sub", [c.last, c.constant(300, np.int32)])
    else:
        c.add("Round", [x])
        c.add("Clip", [c.last, c.constant(10, np.float32), c.constant(200, np.float32)])
    c.add("Cast", [c.last], to=U8)
    for step in rng.choice(len(STEPS), int(rng.integers(1, 4))):
        STEPS[step](c)
    if rng.integers(2):
        c.output(U8)
    c.add("Cast", [c.last], to=FLOAT)
    c.output(FLOAT)
    return c


def branch(name, nodes, output):
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(output, U8, [None] * 4)])


def in_branches(seed):
    """An If whose branches return a computed tensor, the picture itself or a constant."""
    rng = np.random.default_rng([seed, 3])
    c = Chain(rng, [1, 4, 6, 3])
    x = c.input(U8, rng.integers(0, 256, c.shape).astype(np.uint8))
    chosen = helper.make_tensor_value_info("chosen", BOOL, [])
    c.feeds["chosen"] = np.array(bool(seed % 2))
    byte = c.constant(9, np.uint8)
    then = branch("then", [helper.make_node("Add", [x, byte], ["a"])], "a")
    constant = numpy_helper.from_array(rng.integers(0, 256, c.shape).astype(np.uint8))
    others = [helper.make_node("Identity", [x], ["b"]), helper.make_node("Constant", [], ["b"], value=constant)]
    other = branch("other", [others[seed // 2 % 2]], "b")
    c.add("If", ["chosen"], then_branch=then, else_branch=other)
    c.inputs.append(chosen)
    transpose(c)
    c.output(U8)
    c.add("Cast", [c.last], to=FLOAT)
    c.output(FLOAT)
    return c


NETWORKS = {
    **{f"picture_{seed}": picture(seed) for seed in SEEDS},
    **{f"mask_{seed}": mask(seed) for seed in SEEDS},
    **{f"branches_{seed}": in_branches(seed) for seed in range(4)},
}


def inner_bytes(network):
    """Returns the u8 tensors that TensorRT refuses. It imports constants, and what is selected from them, as i32."""
    graph = onnx.shape_inference.infer_shapes(network).graph
    kinds = {info.name: info.type.tensor_type.elem_type for info in (*graph.value_info, *graph.input, *graph.output)}
    selected = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        read_bytes = [name for name in node.input if name in selected or kinds.get(name) == U8]
        if read_bytes and node.op_type != "Cast" and selected.issuperset(read_bytes):
            selected |= set(node.output)
    kinds = {name: kind for name, kind in kinds.items() if name not in selected}
    pictures = {info.name for info in graph.input if info.type.tensor_type.elem_type == U8}
    read = {name for node in graph.node for name in node.input}
    ends = {info.name for info in graph.output}
    cast = {name for node in graph.node if node.op_type == "Cast" for name in node.output}
    inner = [name for name, kind in kinds.items() if kind == U8 and name not in pictures]
    refused = [name for name in inner if name in read or name not in cast & ends]
    return refused + [n.op_type for n in graph.node if pictures & set(n.input) and n.op_type not in ("Cast", "Shape")]


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bytes")
    return {name: convert(chain.model(), folder)[0] for name, chain in NETWORKS.items()}


@pytest.mark.parametrize("name", NETWORKS)
def test_no_byte_is_between_two_nodes_and_the_results_stay(name, converted):
    chain, after = NETWORKS[name], converted[name]
    if "branches" not in name:
        assert not inner_bytes(after)
    expected = ReferenceEvaluator(chain.model()).run(None, chain.feeds)
    found = run(after, chain.feeds)
    for one, wanted in zip(found, expected, strict=True):
        assert one.dtype == wanted.dtype
        np.testing.assert_array_equal(one, wanted)


def test_tensorrt_builds_the_results(converted, tmp_path):
    pytest.importorskip("tensorrt_rtx")
    sys.path.insert(0, str(SUPPORT))
    from tensorrt_builds import what_tensorrt_builds  # noqa: PLC0415

    paths = []
    for name, after in converted.items():
        if not name.endswith(("_0", "_1", "_2", "_3")):
            continue
        for info in after.graph.input:
            for dim, size in zip(info.type.tensor_type.shape.dim, NETWORKS[name].feeds[info.name].shape, strict=True):
                dim.dim_value = size
        paths.append(tmp_path / f"{name}.onnx")
        onnx.save(after, paths[-1])
    assert [path.stem for path, is_built in what_tensorrt_builds(paths).items() if not is_built] == []


def test_a_linear_resize_cuts_off_fractions_as_onnxruntime_does(tmp_path):
    c = Chain(np.random.default_rng(0), [2, 3, 5, 6])
    c.last = c.input(U8, c.rng.integers(0, 256, c.shape).astype(np.uint8))
    c.add("Resize", [c.last, "", c.constant([1, 1, 2, 1.5], np.float32)], mode="linear")
    c.add("Cast", [c.last], to=FLOAT)
    c.output(FLOAT)
    after, _ = convert(c.model(), tmp_path)
    assert not inner_bytes(after)
    np.testing.assert_array_equal(run(after, c.feeds)[0], run(c.model(), c.feeds)[0])


def test_a_picture_that_is_only_moved_becomes_real_at_once(tmp_path):
    c = Chain(np.random.default_rng(0), [2, 4, 6, 3])
    c.last = c.input(U8, c.rng.integers(0, 256, c.shape).astype(np.uint8))
    transpose(c)
    reverse(c)
    c.add("Cast", [c.last], to=HALF)
    c.output(HALF)
    after, _ = convert(c.model(), tmp_path)
    assert after.graph.node[0].op_type == "Cast"
    assert sorted(node.op_type for node in after.graph.node) == ["Cast", "Slice", "Transpose"]
    np.testing.assert_array_equal(run(after, c.feeds)[0], run(c.model(), c.feeds)[0])


def test_bytes_that_cannot_be_widened_are_named(tmp_path):
    c = Chain(np.random.default_rng(0), [2, 4, 6, 3])
    c.last = c.input(U8, c.rng.integers(0, 256, c.shape).astype(np.uint8))
    transpose(c)
    c.add("Resize", [c.last, "", c.constant([1, 1, 2, 2], np.float32)], mode="cubic")
    c.add("Cast", [c.last], to=FLOAT)
    c.output(FLOAT)
    network = c.model()
    after, report = convert(network, tmp_path)
    assert [node.op_type for node in after.graph.node] == ["Transpose", "Resize", "Cast"]
    (near,) = [near for near in json.loads(report.to_json())["near_misses"] if near["pass"] == "widen_bytes"]
    assert "Resize" in near["reason"]
    assert "is not rewritten for another type than u8" in near["reason"]


def test_inspect_says_what_becomes_of_bytes(tmp_path):
    onnx.save(NETWORKS["mask_0"].model(), tmp_path / "mask.onnx")
    report = graft.inspect(tmp_path / "mask.onnx", judge="rule")
    assert not [node for node in report.nodes if node.support == "unsupported"]
    assert any("the same nodes in i32" in node.advice for node in report.nodes if node.support == "lowered")
