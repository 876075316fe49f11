# Compares the CPU engine with ONNX Runtime on NaN and infinities, for every elementwise and pooling operator.
"""`graft verify`, emulation and `graft quantize` show an overflow only if the resulting infinity or NaN reaches the
outputs."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import make_model, save, subgraph
from test_against_onnxruntime import run_graft, run_onnxruntime

SPECIAL = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
# A size below a CPU vector, and a size with complete vectors and a remainder.
SIZES = (5, 37)

OF_ONE = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf "
    "IsNaN LeakyRelu Log LogSoftmax LpNormalization Mish Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh "
    "Softmax Softplus Softsign Sqrt Tan Tanh ThresholdedRelu"
)
OF_TWO = "Add Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mul Pow Sub Sum"
FUSED = "Clip Elu Exp HardSigmoid HardSwish LeakyRelu Relu Sigmoid Softplus Tanh"
# Attributes, then constants after the first input.
ONE_INPUT = {
    **{op: ({}, []) for op in OF_ONE.split()},
    "ArgMax": ({"axis": 2}, []),
    "Cast": ({"to": TensorProto.BOOL}, []),
    "Clip": ({}, [np.float32(-1), np.float32(1)]),
    "CumSum": ({}, [np.int64(2)]),
    "PRelu": ({}, [np.array([[0.1], [0.2], [0.0]], "f4")]),
    **{op: ({}, [np.array([2])]) for op in ("ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare")},
}
TWO_INPUTS = {**{op: {} for op in OF_TWO.split()}, "Mod": {"fmod": 1}}


def numbers(size):
    return np.tile(np.linspace(-2, 2, size).astype("f4"), (2, 3, 1))


def with_special(x, special):
    x = x.copy()
    x[0, 1, x.shape[2] // 2] = x[1, 2, -1] = x[1, 0, 0] = special
    return x


def compare(path, nodes, inputs, constants, opset=22):
    save(
        path,
        nodes,
        [(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in inputs.items()],
        [helper.make_empty_tensor_value_info("y")],
        constants,
        opset=opset,
        ir_version=10,
    )
    return run_onnxruntime(path, inputs)["y"], run_graft("functions", path, inputs, path.parent)["y"]


def assert_same(found, expected):
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("op", ONE_INPUT)
def test_one_input(op, special, tmp_path):
    attributes, more = ONE_INPUT[op]
    constants = {f"c{i}": value for i, value in enumerate(more)}
    node = helper.make_node(op, ["x", *constants], ["y"], **attributes)
    for size in SIZES:
        x = with_special(numbers(size), SPECIAL[special])
        expected, found = compare(tmp_path / "model.onnx", [node], {"x": x}, constants)
        assert_same(found, expected)


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("constant", [None, "scalar", "row"])
@pytest.mark.parametrize("op", TWO_INPUTS)
def test_two_inputs(op, constant, special, tmp_path):
    for size in SIZES:
        a = with_special(numbers(size), SPECIAL[special])
        b = numbers(size)[:, :, ::-1] + np.float32(0.01)
        b[1, 1, size // 3] = b[1, 2, -1] = SPECIAL[special]
        if op == "Pow":
            a = np.abs(a)
        constants = {None: {}, "scalar": {"b": np.float32(0.5)}, "row": {"b": numbers(size)[0, 0]}}[constant]
        for order in (["a", "b"], ["b", "a"]):
            node = helper.make_node(op, order, ["y"], **TWO_INPUTS[op])
            inputs = {"a": a} if constants else {"a": a, "b": b}
            if op == "Pow" and order[0] == "b":
                continue  # roots of negative numbers, which need no special number
            expected, found = compare(tmp_path / "model.onnx", [node], inputs, constants)
            assert_same(found, expected)


def test_three_and_one(tmp_path):
    x = with_special(numbers(5), np.nan)
    y = np.ascontiguousarray(x[:, ::-1])
    for op in ("Max", "Min"):
        for names in (["a"], ["a", "b", "c"]):
            inputs = {name: value for name, value in {"a": x, "b": y, "c": y[:, :1].copy()}.items() if name in names}
            expected, found = compare(tmp_path / "model.onnx", [helper.make_node(op, names, ["y"])], inputs, {})
            assert_same(found, expected)


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("op", FUSED.split())
def test_behind_a_convolution_that_it_could_be_fused_with(op, special, tmp_path):
    random = np.random.default_rng(2)
    x = random.standard_normal((1, 8, 9, 9)).astype("f4")
    x[0, 1, 4, 4] = SPECIAL[special]
    constants = {"w": random.standard_normal((8, 8, 3, 3)).astype("f4")}
    limits = {"low": np.float32(0), "high": np.float32(6)} if op == "Clip" else {}
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node(op, ["c", *limits], ["y"])]
    expected, found = compare(tmp_path / "model.onnx", nodes, {"x": x}, {**constants, **limits})
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    assert_same(found, expected)


POOLS = {
    "plain": ("MaxPool", {"kernel_shape": [3, 3]}),
    "strided": ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "padded": ("MaxPool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "global": ("GlobalMaxPool", {}),
    "average": ("AveragePool", {"kernel_shape": [3, 3]}),
    "global average": ("GlobalAveragePool", {}),
    "norm": ("LpPool", {"kernel_shape": [2, 2]}),
    "largest": ("ReduceMax", {}),
    "smallest": ("ReduceMin", {}),
}


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("pool", POOLS)
def test_pooling(pool, special, tmp_path):
    """The maximum of numbers and NaN depends on their order in ONNX Runtime; here it is NaN, as in NumPy. Where ONNX
    Runtime returns NaN, so does the engine; where it returns a number, the engine returns NaN only if the window has
    one."""
    op, attributes = POOLS[pool]
    constants = {"axes": np.array([2, 3])} if op.startswith("Reduce") else {}
    node = helper.make_node(op, ["x", *constants], ["y"], **attributes)
    for channels, size in ((3, 9), (16, 20)):
        x = np.random.default_rng(size).standard_normal((1, channels, size, size)).astype("f4")
        x[0, 1, 4, 4] = x[0, 0, -1, -1] = x[0, 2, 0, 0] = SPECIAL[special]
        expected, found = compare(tmp_path / "model.onnx", [node], {"x": x}, constants)
        if special == "nan" and op in ("MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin"):
            has_nan, _ = compare(tmp_path / "which.onnx", [node], {"x": np.isnan(x).astype("f4")}, constants)
            if op == "ReduceMin":
                has_nan = np.isnan(x).any(axis=(2, 3), keepdims=True)
            np.testing.assert_array_equal(np.isnan(found), has_nan != 0)
            expected = np.where(np.isnan(found), np.nan, expected)
        assert_same(found, expected)


def test_a_window_of_minus_infinity(tmp_path):
    x = np.full((1, 1, 4, 4), -np.inf, "f4")
    x[0, 0, 0, 0] = 1
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    expected, found = compare(tmp_path / "model.onnx", [node], {"x": x}, {})
    assert_same(found, expected)
    for op, value in (("ReduceMax", -np.inf), ("ReduceMin", np.inf)):
        node = helper.make_node(op, ["x", "axes"], ["y"])
        full = np.full((2, 5), value, "f4")
        expected, found = compare(tmp_path / "model.onnx", [node], {"x": full}, {"axes": np.array([1])})
        assert_same(found, expected)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_rows_that_are_masked(op, tmp_path):
    m = -np.inf
    x = np.array([[m, m, m, m], [1, m, m, 2], [1, np.inf, 2, 3], [np.nan, 1, 2, 3], [0, 1, 2, 3]], "f4")
    expected, found = compare(tmp_path / "model.onnx", [helper.make_node(op, ["x"], ["y"])], {"x": x}, {})
    assert_same(found, expected)


@pytest.mark.parametrize("narrow", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
@pytest.mark.parametrize("op", ["Relu", "Exp", "Softmax", "MaxPool", "ReduceMax", "ReduceMin", "Max"])
def test_between_casts_to_16_bits(op, narrow, tmp_path):
    """Constants of these types may be infinite too. ONNX Runtime computes the expected result in f32, as it has few
    of these operators in bf16."""
    x = np.array([-np.inf, 1, np.nan, 2, np.inf, -3, 0.5, 4], "f4").reshape(1, 1, 2, 4)
    attributes = {"MaxPool": {"kernel_shape": [1, 2]}, "ReduceMax": {"keepdims": 0}, "ReduceMin": {"keepdims": 0}}
    constants = {"axes": np.array([3])} if op.startswith("Reduce") else {}
    node = helper.make_node(op, ["h", *constants], ["r"], **attributes.get(op, {}))
    expected, _ = compare(
        tmp_path / "wide.onnx",
        [helper.make_node(op, ["x", *constants], ["y"], **attributes.get(op, {}))],
        {"x": x},
        constants,
    )
    casts = [
        helper.make_node("Cast", ["x"], ["h"], to=narrow),
        node,
        helper.make_node("Cast", ["r"], ["y"], to=TensorProto.FLOAT),
    ]
    model = make_model(casts, [("x", x.shape)], [("y", None)], constants, opset=22, ir_version=10)
    onnx.save(model, str(tmp_path / "narrow.onnx"))
    found = run_graft("functions", tmp_path / "narrow.onnx", {"x": x}, tmp_path)["y"]
    if op in ("MaxPool", "ReduceMax", "ReduceMin"):
        expected = np.where(np.isnan(found), np.nan, expected)
        assert np.isnan(found).any()
    np.testing.assert_allclose(found, expected, rtol=1e-2)


def test_inside_a_branch(tmp_path):
    def body(op):
        return subgraph([helper.make_node(op, ["x"], ["r"])], [], [("r", None)])

    node = helper.make_node("If", ["truth"], ["y"], then_branch=body("Relu"), else_branch=body("Exp"))
    for truth in (True, False):
        inputs = {"truth": np.array(truth), "x": np.array([np.nan, -1, 2], "f4")}
        expected, found = compare(tmp_path / "model.onnx", [node], inputs, {}, opset=17)
        assert_same(found, expected)
