# Tests how models are prepared for ONNX Runtime: recurrent nodes with the batch first, and functions of other opsets.
"""Expected values come from ONNX Runtime without the preparation, from onnx.reference and from ONNX's own tests."""

import importlib

import graft
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.backend.test.case import node as node_tests
from onnx.reference import ReferenceEvaluator

SEQUENCE, BATCH, INPUT, HIDDEN = 5, 3, 4, 2
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def runs_in_onnxruntime(model, inputs):
    session = graft.Session(model, engine="onnxruntime", progress=False)
    assert session.ran_in == f"ONNX Runtime {onnxruntime.__version__}"
    return session.run(inputs)


def recurrent(op, layout, directions=1, inside=False):
    """Returns a network of one recurrent node with all inputs and outputs; with `inside`, the node is in an If."""
    random = np.random.default_rng(5)
    width = GATES[op] * HIDDEN
    weights = {"w": (directions, width, INPUT), "r": (directions, width, HIDDEN), "b": (directions, 2 * width)}
    constants = [numpy_helper.from_array(random.standard_normal(s).astype("f4"), n) for n, s in weights.items()]
    states = ["h0", "c0"] if op == "LSTM" else ["h0"]
    outputs = ["y", "y_h", "y_c"] if op == "LSTM" else ["y", "y_h"]
    layouts = {"layout": 1} if layout else {}
    node = helper.make_node(
        op,
        ["x", "w", "r", "b", "lengths", *states],
        outputs,
        name="recurrent",
        hidden_size=HIDDEN,
        direction="bidirectional" if directions == 2 else "forward",
        **layouts,
    )

    def real(name, sizes):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)

    inputs = [real("x", ["B", "T", INPUT] if layout else ["T", "B", INPUT])]
    inputs += [helper.make_tensor_value_info("lengths", TensorProto.INT32, ["B"])]
    inputs += [real(name, ["B", directions, HIDDEN] if layout else [directions, "B", HIDDEN]) for name in states]
    nodes = [node]
    if inside:
        branch = helper.make_graph([node], "branch", [], [real(name, None) for name in outputs])
        inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
        inner = [f"in_{name}" for name in outputs]
        nodes = [helper.make_node("If", ["c"], inner, then_branch=branch, else_branch=branch)]
        nodes += [helper.make_node("Identity", [i], [o]) for i, o in zip(inner, outputs, strict=True)]
    graph = helper.make_graph(nodes, "g", inputs, [real(name, None) for name in outputs], constants)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def batch_first_inputs(op, directions):
    random = np.random.default_rng(6)
    inputs = {
        "x": random.standard_normal((BATCH, SEQUENCE, INPUT)).astype("f4"),
        "lengths": np.array([5, 2, 4], np.int32),
        "h0": random.standard_normal((BATCH, directions, HIDDEN)).astype("f4"),
    }
    if op == "LSTM":
        inputs["c0"] = random.standard_normal((BATCH, directions, HIDDEN)).astype("f4")
    return inputs


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("op", GATES)
def test_batch_first_computes_each_sequence_as_if_it_were_alone(op, directions, inside):
    """The expected values are those of ONNX Runtime for one sequence at a time, with the time first: where the batch
    has one element, its axis can be moved by reshaping alone."""
    inputs = batch_first_inputs(op, directions)
    session = onnxruntime.InferenceSession(recurrent(op, 0, directions).SerializeToString())
    expected = []
    for i in range(BATCH):
        alone = {"x": inputs["x"][i].reshape(SEQUENCE, 1, INPUT), "lengths": inputs["lengths"][i : i + 1]}
        for state in inputs.keys() - alone.keys():
            alone[state] = inputs[state][i].reshape(directions, 1, HIDDEN)
        y, *states = session.run(None, alone)
        expected.append([y.reshape(SEQUENCE, directions, HIDDEN), *(s.reshape(directions, HIDDEN) for s in states)])
    more = {"c": np.array(True)} if inside else {}
    found = runs_in_onnxruntime(recurrent(op, 1, directions, inside), inputs | more)
    for name, parts in zip(("y", "y_h", "y_c"), zip(*expected, strict=True), strict=False):
        np.testing.assert_allclose(found[name], np.stack(parts), rtol=1e-6, atol=1e-7, err_msg=name)


def test_batch_first_computes_the_values_of_onnx_own_tests():
    for module in ("gru", "lstm", "rnn"):
        importlib.import_module(f"{node_tests.__name__}.{module}")  # creates the cases
    cases = [case for case in node_tests._NodeTestCases if case.name.endswith("_batchwise")]  # noqa: SLF001
    assert {case.name for case in cases} >= {"test_gru_batchwise", "test_lstm_batchwise", "test_simple_rnn_batchwise"}
    for case in cases:
        [(inputs, outputs)] = case.data_sets
        named = {value.name: data for value, data in zip(case.model.graph.input, inputs, strict=True)}
        found = runs_in_onnxruntime(case.model, named)
        for value, expected in zip(case.model.graph.output, outputs, strict=True):
            np.testing.assert_allclose(found[value.name], expected, rtol=1e-6, atol=1e-7, err_msg=case.name)


def calls_function(main, body, text):
    return parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": {main}, "my": 1]>
            g (float[2,3,4] x) => (float[N,M,K] y) {{ r = Relu (x)  y = my.f (r) }}
            <domain: "my", opset_import: ["": {body}]>
            f (x) => (y) {{ {text} }}"""
    )


X = np.random.default_rng(8).standard_normal((2, 3, 4)).astype("f4")


@pytest.mark.parametrize(("main", "body"), [(17, 28), (26, 28), (28, 28), (28, 27), (17, 22), (28, 20)])
def test_function_of_a_newer_opset(main, body):
    """ONNX Runtime reads the body of a function in the opset of the model: 17 has no Mish, and 28 cannot be read."""
    model = calls_function(main, body, "y = Mish (x)")
    [expected] = ReferenceEvaluator(model).run(None, {"x": X})
    np.testing.assert_allclose(runs_in_onnxruntime(model, {"x": X})["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("main", [13, 17, 26, 28])
def test_function_of_an_older_opset_has_the_meaning_of_that_opset(main):
    """Softmax before opset 13 normalizes over all axes from `axis` on."""
    exponentials = np.exp(np.maximum(X, 0))
    found = runs_in_onnxruntime(calls_function(main, 11, "y = Softmax (x)"), {"x": X})
    np.testing.assert_allclose(found["y"], exponentials / exponentials.sum((1, 2), keepdims=True), rtol=1e-5)
