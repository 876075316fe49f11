# Tests graft.verify: it finds a fault of 1 % in any operand of any operator, and equal networks pass.
"""The networks are ONNX's own node tests. ONNX Runtime or onnx.reference, never Graft, determine whether a fault
changes the result."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import graft
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator
from onnx_models import make_model

FAULT = 1.01
Array = np.ndarray[Any, Any]

# Operands where 1 % changes no result, or none that can be compared.
WITHOUT_EFFECT = {
    # Apart from epsilon, the result does not depend on the operand's scale.
    ("GroupNormalization", 0),
    ("InstanceNormalization", 0),
    ("RMSNormalization", 0),
    ("LpNormalization", 0),
    ("MeanVarianceNormalization", 0),
    # Overlaps do not depend on a common scale of all boxes. Selections change only where a score or an overlap is
    # within 1 % of a threshold.
    ("NonMaxSuppression", 0),
    ("NonMaxSuppression", 1),
    ("NonMaxSuppression", 3),
    ("NonMaxSuppression", 4),
    # The size is rounded down.
    ("Resize", 1),
    ("Resize", 2),
    ("Upsample", 1),
    # One step of the 8-bit result is allowed, and 1 % of these small results is less than a step.
    ("QLinearMatMul", 1),
    ("QLinearMatMul", 4),
    ("QLinearMatMul", 6),
    ("QLinearConv", 1),
    ("QLinearConv", 4),
    ("QLinearConv", 6),
    ("QuantizeLinear", 0),
    ("QuantizeLinear", 1),
    # The dropout ratio has an effect in training only.
    ("Dropout", 1),
    # The result is a sequence, which the CPU engines do not return.
    ("SplitToSequence", 0),
}
# Operators that no CPU engine runs.
NOT_RUN = {"FlexAttention", "SwiGLU", "Adagrad", "Adam", "Momentum", "ImageDecoder"}


def run(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Any]:
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, feeds))
    except Exception:  # noqa: BLE001 - what ONNX Runtime lacks, onnx.reference has
        return list(ReferenceEvaluator(model).run(None, feeds))


def differs(right: list[Any], wrong: list[Any]) -> bool:
    """Returns whether a fault exceeds 0.1 % of the largest number, far beyond rounding."""
    for x, y in zip(right, wrong, strict=True):
        if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiub":
            return False
        if x.shape != y.shape:
            return True
        if x.dtype.kind != "f":
            if (x != y).any():
                return True
            continue
        a, b = x.astype(np.float64), y.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        if finite.any() and np.abs(a - b)[finite].max() > 1e-3 * np.abs(a[finite]).max():
            return True
    return False


class Case:
    """A node test with one operand that is a constant or the result of another node."""

    def __init__(self, model: onnx.ModelProto, inputs: list[Array], index: int, computed: bool) -> None:
        self._model, self._inputs, self._index, self._computed = model, inputs, index, computed
        self.feeds = {value.name: array for value, array in zip(model.graph.input, inputs, strict=True)}
        self._name = model.graph.input[index].name
        if computed:
            self.feeds[self._name] = -self.feeds[self._name]
        else:
            del self.feeds[self._name]

    def network(self, fault: float) -> onnx.ModelProto:
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        model.ir_version = 10  # the newest that ONNX Runtime accepts with any opset
        graph = model.graph
        if not self._computed:
            array = self._inputs[self._index]
            graph.initializer.append(numpy_helper.from_array((array * fault).astype(array.dtype), self._name))
            del graph.input[self._index]
            return model
        computed = f"{self._name}_computed"
        for node in graph.node:
            for i, name in enumerate(node.input):
                if name == self._name:
                    node.input[i] = computed
        if fault == 1:
            made = helper.make_node("Neg", [self._name], [computed])
        else:
            graph.initializer.append(numpy_helper.from_array(np.float32(-fault), "factor"))
            made = helper.make_node("Mul", [self._name, "factor"], [computed])
        graph.node.insert(0, made)
        return model


def for_runtimes(model: onnx.ModelProto, inputs: list[Array]) -> tuple[onnx.ModelProto, list[Array]]:
    """Returns the test in f32, in an opset that ONNX Runtime supports where the operator is the same there."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    newest = 24
    op_type = model.graph.node[0].op_type
    for opset in wide.opset_import:
        if opset.domain or opset.version <= newest:
            continue
        if onnx.defs.get_schema(op_type, opset.version).since_version <= newest:
            opset.version = newest
    for value in [*wide.graph.input, *wide.graph.output]:
        if value.type.tensor_type.elem_type == TensorProto.DOUBLE:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    return wide, [array.astype(np.float32) if array.dtype == np.float64 else array for array in inputs]


def other_numbers(inputs: list[Array], index: int) -> list[list[Array]]:
    """Returns the test's inputs, and other inputs where an operand has an effect that is zero, too small or never
    selected in the test."""
    random = np.random.default_rng(0)
    operand = inputs[index]
    near_one = random.uniform(0.5, 1.5, operand.shape).astype(operand.dtype)
    tried = [inputs]
    spread = (5 * random.standard_normal(operand.shape)).astype(operand.dtype)
    for replaced in (near_one, -10 * near_one, spread):
        tried.append([*inputs[:index], replaced, *inputs[index + 1 :]])
    for scale in (1, 1.005):  # comparisons change only where the operands are within 1 % of each other
        other = (scale * near_one).astype(operand.dtype)
        alike = [other if x.shape == operand.shape and x.dtype == operand.dtype else x for x in inputs]
        tried.append([*alike[:index], near_one, *alike[index + 1 :]])
    return tried


@functools.cache
def operands() -> dict[tuple[str, int, bool], list[tuple[onnx.ModelProto, list[Array], int]]]:
    """Returns the node tests by operator, operand position, and constant (False) or computed (True) operand."""
    found: dict[tuple[str, int, bool], list[tuple[onnx.ModelProto, list[Array], int]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        graph = case.model.graph if case.model is not None else None
        is_single = graph is not None and len(graph.node) == 1 and "_expanded" not in case.name and case.data_sets
        if not is_single or len(graph.node[0].input) < 2 or graph.node[0].domain or graph.node[0].op_type in NOT_RUN:
            continue
        if not all(isinstance(array, np.ndarray) for array in case.data_sets[0][0]):
            continue
        model, inputs = for_runtimes(case.model, case.data_sets[0][0])
        for index, value in enumerate(graph.input):
            if model.graph.input[index].type.tensor_type.elem_type != TensorProto.FLOAT:
                continue
            for computed in (False, True):
                if value.name in graph.node[0].input and (computed or len(graph.input) > 1):
                    key = (graph.node[0].op_type, list(graph.node[0].input).index(value.name), computed)
                    found.setdefault(key, []).append((model, inputs, index))
    return found


def find_cases(key: tuple[str, int, bool]) -> Iterator[Case]:
    """Yields networks in which a fault of 1 % changes the result."""
    most = 8
    for model, inputs, index in operands()[key][:most]:
        for numbers in other_numbers(inputs, index):
            case = Case(model, numbers, index, key[2])
            try:
                right, wrong = (run(case.network(fault), case.feeds) for fault in (1, FAULT))
            except Exception:  # noqa: BLE001 - a test that neither runtime takes in this form
                continue
            if differs(right, wrong):
                yield case


def judge(right: onnx.ModelProto, wrong: onnx.ModelProto, feeds: dict[str, Array], engine: Any) -> str | None:
    """Returns the verdict of the given engine, or of both where it does not run the operator; None where neither
    does."""
    for by in (engine, "auto"):
        try:
            return graft.verify(right, wrong, data=feeds, engine=by).verdict
        except graft.Error as refused:
            if refused.kind != "bad_input":
                raise
    return None


def find_verdict(key: tuple[str, int, bool], engine: Any) -> str | None:
    """Returns the verdict on the first network in which the fault changes the result and that an engine runs; None
    without such a network."""
    verdicts = (judge(case.network(1), case.network(FAULT), case.feeds, engine) for case in find_cases(key))
    return next((verdict for verdict in verdicts if verdict is not None), None)


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_one_percent_in_each_operand_of_each_operator_is_found(engine: Any) -> None:
    keys = operands()
    if engine == "openvino":  # operators whose constants may be shared or folded
        keys = {key: tests for key, tests in keys.items() if key[0] in {"Add", "Sub", "Mul", "Div", "MatMul", "Gemm"}}
    assert len(keys) > 20
    without_case, missed = [], []
    for key in sorted(keys):
        if key[:2] in WITHOUT_EFFECT:
            continue
        verdict = find_verdict(key, engine)
        if verdict is None:
            without_case.append(key)
        elif verdict != "different":
            missed.append((key, verdict))
    assert not without_case, f"no network shows it: {without_case}"
    assert not missed


def with_integers(model: onnx.ModelProto, end: str) -> onnx.ModelProto:
    """Returns the network with integers computed from its first output, in place of its outputs."""
    ended = onnx.ModelProto()
    ended.CopyFrom(model)
    graph = ended.graph
    output = graph.output[0].name
    graph.initializer.append(numpy_helper.from_array(np.float32(1000), "thousand"))
    graph.initializer.append(numpy_helper.from_array(np.int64(97), "modulus"))
    graph.initializer.append(numpy_helper.from_array(np.array([2], np.int64), "two"))
    whole = [
        helper.make_node("Mul", [output, "thousand"], ["scaled"]),
        helper.make_node("Cast", ["scaled"], ["whole"], to=TensorProto.INT64),
    ]
    nodes, result = {
        "Cast": (whole, "whole"),
        "Mod": ([*whole, helper.make_node("Mod", ["whole", "modulus"], ["remainder"])], "remainder"),
        "ArgMax": ([helper.make_node("ArgMax", [output], ["index"], axis=-1)], "index"),
        "TopK": ([helper.make_node("TopK", [output, "two"], ["largest", "indices"], axis=-1)], "indices"),
    }[end]
    graph.node.extend(nodes)
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(result, TensorProto.INT64, None))
    return ended


@pytest.mark.parametrize("end", ["Cast", "Mod"])
def test_one_percent_is_found_in_integers_that_come_from_it(end: str) -> None:
    """None of these networks is ill-conditioned, so each integer that differs is a real difference."""
    missed: list[Any] = []
    compared = 0
    for op in ("Add", "Div", "MatMul", "Where"):
        for key in sorted(key for key in operands() if key[0] == op):
            for case in itertools.islice(find_cases(key), 6):
                right, wrong = (with_integers(case.network(fault), end) for fault in (1, FAULT))
                try:
                    shows = differs(run(right, case.feeds), run(wrong, case.feeds))
                except Exception:  # noqa: BLE001 - an output that the end does not take
                    continue
                verdict = judge(right, wrong, case.feeds, "auto") if shows else None
                if verdict is None:
                    continue
                compared += 1
                if verdict != "different":
                    missed.append((key, verdict))
    assert compared > 0
    assert not missed


@pytest.mark.parametrize("end", ["ArgMax", "TopK"])
def test_one_percent_of_one_class_is_found_in_indices(end: str) -> None:
    random = np.random.default_rng(0)
    weights = random.uniform(0.5, 1.5, 16).astype(np.float32)
    faulty = weights.copy()
    faulty[3] *= FAULT
    x = {"x": (TensorProto.FLOAT, [2000, 16])}
    right, wrong = (
        with_integers(network([helper.make_node("Mul", ["x", "w"], ["y"])], x, {"w": w}), end)
        for w in (weights, faulty)
    )
    feeds = {"x": random.standard_normal((2000, 16)).astype(np.float32)}
    assert differs(run(right, feeds), run(wrong, feeds))
    assert judge(right, wrong, feeds, "auto") == "different"


@pytest.mark.parametrize("end", ["ArgMax", "Mod", "TopK", "Cast"])
def test_integers_that_are_rounding_alone_are_never_the_same(end: str) -> None:
    """The results are Sin and Cos of values that f32 cannot distinguish: they do not agree, and each draw of the
    noise differs."""
    x = {"x": (TensorProto.FLOAT, [64, 16])}
    weights = {"c": np.float32(1.2e9)}
    right, wrong = (
        with_integers(
            network([helper.make_node("Mul", ["x", "c"], ["a"]), helper.make_node(op, ["a"], ["y"])], x, weights), end
        )
        for op in ("Sin", "Cos")
    )
    report = graft.verify(right, wrong)
    assert report.verdict in {"different", "nothing compared"}


def ill_conditioned() -> Any:
    path = Path(__file__).parents[3] / "bench" / "verify" / "ill_conditioned.py"
    spec = importlib.util.spec_from_file_location("ill_conditioned", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_equal_badly_conditioned_networks_are_the_same_each_time() -> None:
    """bench/verify/ill_conditioned.py compares more such networks."""
    bench = ill_conditioned()
    beyond = 0
    for seed in range(12):
        reference, candidate, stages = bench.networks(seed)
        answers = [graft.verify(reference, candidate) for _ in range(2)]
        assert [answer.verdict for answer in answers] == ["same", "same"], (seed, stages)
        beyond += json.loads(answers[0].to_json())["outputs"][0]["within_noise"] > 0
    assert beyond > 0, "none of them needs the noise floor"


def network(nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, list[int]]], weights: dict[str, Any]) -> Any:
    values = [helper.make_tensor_value_info(name, *type_and_shape) for name, type_and_shape in inputs.items()]
    return make_model(nodes, values, [("y", None)], weights)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_constant_operand_hides_no_fault(op: str, swapped: bool) -> None:
    c = np.random.default_rng(0).uniform(0.5, 1.5, 7).astype(np.float32)
    node = helper.make_node(op, ["x", "c"] if swapped else ["c", "x"], ["y"])
    x = {"x": (TensorProto.FLOAT, [2, 7])}
    right, wrong = (network([node], x, {"c": c * np.float32(fault)}) for fault in (1, 1.05))
    for engine in ("auto", "openvino", "onnxruntime"):
        assert graft.verify(right, wrong, engine=engine).verdict == "different", engine
        assert graft.verify(right, right, engine=engine).verdict == "same", engine
