# Tests that Session agrees with ONNX Runtime and onnx.reference, and reports the engine.
"""OpenVINO computes each of these networks wrongly, or differently in each process."""

import graft
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator


def network(text, opset=19):
    return parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]>\n{text}')


def cubic_after_if():
    """OpenVINO's first run in a process returns values up to 1e+36, which differ between processes."""
    return network(
        """g (float[B,1,H,W] x, bool c) => (float[B_,1,H2,W2] y) <float[4] scales = {1, 1, 2, 1.5}, float one = {1}> {
             s = If (c) <then_branch = t () => (float[B,1,H,W] a) { a = Add (x, x) },
                         else_branch = e () => (float[B,1,H,W] b) { b = Add (x, one) }>
             y = Resize <mode = "cubic", coordinate_transformation_mode = "align_corners"> (s, "", scales)
           }"""
    )


def forgetful_lstm():
    random = np.random.default_rng(1)
    weights = {"w": (1, 16, 3), "r": (1, 16, 4), "b": (1, 32)}
    tensors = [numpy_helper.from_array(random.standard_normal(s).astype("f4"), name) for name, s in weights.items()]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)
        for name, sizes in (("x", ["T", "B", 3]), ("y", None))
    )
    node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["", "y"], hidden_size=4, input_forget=1)
    graph = helper.make_graph([node], "g", [x], [y], tensors)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


POOLED = (
    "g (float[B,2,6,8] x) => (float[B,2,h,w] y) { y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], %s> (x) }"
)
NETWORKS = {
    "cubic_resize_after_if": (cubic_after_if(), {"x": (1, 1, 4, 5), "c": True}),
    "average_pool_that_rounds_up": (
        network(POOLED % "ceil_mode = 1, count_include_pad = 1, pads = [1, 1, 1, 1]"),
        {"x": (2, 2, 6, 8)},
    ),
    "average_pool_with_dilations": (
        network(POOLED % "ceil_mode = 1, count_include_pad = 1, pads = [1, 1, 1, 1], dilations = [2, 1]"),
        {"x": (2, 2, 6, 8)},
    ),
    "lstm_with_input_forget": (forgetful_lstm(), {"x": (5, 2, 3)}),
    "max_pool_with_indices_in_column_order": (
        network(
            "g (float[1,2,5,6] x) => (float[a,b,c,d] y, int64[e,f,g,h] i)"
            " { y, i = MaxPool <kernel_shape = [2, 2], storage_order = 1> (x) }"
        ),
        {"x": (1, 2, 5, 6)},
    ),
    "unsigned_bytes_that_wrap": (
        network("g (uint8[N] a, uint8[N] b) => (uint8[N] s, uint8[N] m) { s = Sub (a, b)  m = Mul (a, b) }"),
        {"a": "u8", "b": "u8"},
    ),
    "comparisons_as_bytes": (
        network(
            """g (float[B,2,H,W] x) => (float[B,2,H,W] y) {
                 m = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)
                 e = Equal (m, x)
                 u = Cast <to = 2> (e)
                 f = Cast <to = 1> (u)
                 y = Mul (x, f)
               }"""
        ),
        {"x": (1, 2, 5, 4)},
    ),
    "products_of_64_bits": (
        network(
            """g (int64[N] x) => (int64[N] y) <int64 p = {805459861}, int64 m = {512}> {
                 h = Mul (x, p)
                 y = Mod (h, m)
               }"""
        ),
        {"x": "i64"},
    ),
}


def inputs_of(sizes):
    random = np.random.default_rng(7)
    made = {
        "u8": lambda: random.integers(0, 256, 40).astype(np.uint8),
        "i64": lambda: random.integers(0, 100_000, 40),
    }
    return {
        name: made[form]() if isinstance(form, str)
        else np.asarray(form) if isinstance(form, bool)
        else random.standard_normal(form).astype("f4")
        for name, form in sizes.items()
    }  # fmt: skip


def by_onnxruntime(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


@pytest.mark.parametrize("name", NETWORKS)
def test_computes_what_onnxruntime_computes(name):
    model, sizes = NETWORKS[name]
    inputs = inputs_of(sizes)
    session = graft.Session(model, progress=False)
    assert session.ran_in == f"ONNX Runtime {onnxruntime.__version__}"
    assert session.left_out == []
    for _ in range(2):
        found = session.run(inputs)
        for output, expected in zip(model.graph.output, by_onnxruntime(model, inputs), strict=True):
            np.testing.assert_array_equal(found[output.name], expected)


@pytest.mark.parametrize("name", ["unsigned_bytes_that_wrap", "products_of_64_bits", "comparisons_as_bytes"])
def test_computes_what_the_reference_computes(name):
    model, sizes = NETWORKS[name]
    inputs = inputs_of(sizes)
    found = graft.Session(model, progress=False).run(inputs)
    for output, expected in zip(model.graph.output, ReferenceEvaluator(model).run(None, inputs), strict=True):
        np.testing.assert_array_equal(found[output.name], expected)


@pytest.mark.parametrize("dtype", ["float64", "int16", "uint16", "uint32", "uint64"])
def test_takes_and_returns_types_that_no_operator_of_graft_has(dtype):
    name = "double" if dtype == "float64" else dtype
    model = network(f"g ({name}[N] x) => ({name}[M] y) {{ y = Concat <axis = 0> (x, x) }}")
    limits = np.finfo(dtype) if dtype == "float64" else np.iinfo(dtype)
    x = np.array([limits.min, 0, 1, limits.max], dtype)
    [found] = graft.Session(model, progress=False).run(x).values()
    [expected] = by_onnxruntime(model, {"x": x})
    assert found.dtype == expected.dtype == dtype
    np.testing.assert_array_equal(found, expected)


def test_computes_f64_in_f64():
    model = network("g (double[N,4] x) => (double[N,N] y) { t = Transpose (x)  y = MatMul (x, t) }")
    x = np.random.default_rng(2).standard_normal((3, 4))
    [found] = graft.Session(model, progress=False).run(x).values()
    np.testing.assert_array_equal(found, by_onnxruntime(model, {"x": x})[0])


def test_a_model_without_inputs_runs():
    model = network("g () => (float[2] y) <float[2] c = {-1, 2}> { y = Relu (c) }")
    [found] = graft.Session(model, progress=False).run().values()
    np.testing.assert_array_equal(found, by_onnxruntime(model, {})[0])


def refused_by_onnxruntime():
    """Returns Softsign in f64, for which ONNX Runtime 1.31 has no kernel."""
    return network("g (float[N] x) => (float[N] y) { d = Cast <to = 11> (x)  s = Softsign (d)  y = Cast <to = 1> (s) }")


def test_openvino_answers_for_what_onnxruntime_refuses_and_says_so():
    model = refused_by_onnxruntime()
    x = np.linspace(-2, 2, 5, dtype=np.float32)
    with pytest.raises(Exception, match="Softsign"):
        by_onnxruntime(model, {"x": x})
    session = graft.Session(model, progress=False)
    [found] = session.run({"x": x}).values()
    np.testing.assert_allclose(found, x / (1 + abs(x)), rtol=1e-6)
    assert session.ran_in.startswith("OpenVINO 20")
    [why, *others] = session.left_out
    assert all("f64" in other for other in others), others
    assert "refuses the model" in why
    assert "Softsign" in why
    assert "this engine is known to compute some forms of" in why


def test_verify_says_which_engine_compared():
    model, _ = NETWORKS["average_pool_that_rounds_up"]
    result = graft.verify(model, model, progress=False)
    assert result.same
    assert result.ran_in == f"ONNX Runtime {onnxruntime.__version__}"
    assert result.left_out == []
    layers = graft.verify_layers(model, model, progress=False)
    assert layers.verdict == "same"
    assert layers.ran_in == result.ran_in


def test_integers_of_64_bits_are_told_apart():
    text = """g (int64[20] x) => (float[20,2] y) <int64 p = {%d}, int64 m = {512}, float[512,2] t = {%s}> {
                h = Mul (x, p)
                i = Mod (h, m)
                y = Gather (t, i)
              }"""
    numbers = ", ".join(map(str, np.random.default_rng(3).standard_normal(1024).astype("f4")))
    hashed, other = (network(text % (factor, numbers)) for factor in (805459861, 73856093))
    assert graft.verify(hashed, hashed, progress=False).verdict == "same"
    assert graft.verify(hashed, other, progress=False).verdict == "different"


@pytest.mark.parametrize("engine", ["auto", "onnxruntime"])
def test_a_session_names_the_fault_that_onnxruntime_refuses(engine):
    model = network("g (float[2,3] x) => (float[N,M] y) { y = Transpose <perm = [0, 0]> (x) }")
    with pytest.raises(Exception, match="perm"):
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with pytest.raises(
        graft.Error, match="node 'y' \\(Transpose\\): attribute `perm`: axis 0 is given twice"
    ) as refused:
        graft.Session(model, engine=engine, progress=False)
    assert str(refused.value).endswith("Correct the node in the program that wrote the model")
