# Runs a small sample of `tools/fuzz.py left_out sizes`, and compares required ports with ONNX's checker.
import pathlib
import random
import sys

import graft
import onnx
import pytest
from onnx import TensorProto, helper

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
import mutated_models

NEWEST_OPSET = 23


@pytest.fixture(scope="module")
def seeds():
    return mutated_models.node_tests()


@pytest.mark.parametrize(("mutation", "count"), [("left_out", 120), ("sizes", 120)])
def test_mutated_models_end_with_a_result_or_a_message(seeds, mutation, count):
    findings = mutated_models.run(mutated_models.mutated(seeds, mutation, count, seed=45))
    assert not findings, "\n".join(f"{finding.name}: {finding.why}" for finding in findings)


def test_a_model_that_kills_the_process_is_a_finding(monkeypatch):
    def use(path):
        if path.read_bytes() == b"crash":
            mutated_models.os.abort()
        if path.read_bytes() == b"memory":
            _ = bytearray(b"1") * (64 << 20)

    monkeypatch.setattr(mutated_models, "_use", use)
    files = [(name, name.encode(), ".onnx") for name in ("good", "crash", "good2", "memory", "good3")]
    findings = mutated_models.run(files, mutated_models.Limits(mebibytes=60))
    assert [
        (finding.name, "SIGABRT" in finding.why, "MiB" in finding.why)
        for finding in findings
        if finding.name in ("crash", "memory")
    ] == [
        ("crash", True, False),
        ("memory", False, True),
    ]


def refusal_by_onnx(node, opset):
    """Returns the error of ONNX's checker about the ports of a node; the checker ignores variadic inputs."""
    context = onnx.checker.C.CheckerContext()
    context.ir_version = 10
    context.opset_imports = {"": opset}
    try:
        onnx.checker.check_node(node, context)
    except onnx.checker.ValidationError as error:
        return str(error)
    return ""


def refusal_by_graft(node):
    names = sorted({name for name in node.input if name})
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names], []
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWEST_OPSET)], ir_version=10)
    try:
        graft.load(model, progress=False)
    except graft.Error as error:
        return str(error)
    return ""


def test_ports_are_refused_where_onnx_refuses_them():
    """Tests every operator with every number of inputs, and with each input and output left out."""
    numbers = random.Random(1)
    compared = 0
    for name in sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}):
        schema = onnx.defs.get_schema(name, NEWEST_OPSET) if onnx.defs.has(name, NEWEST_OPSET, "") else None
        if schema is None or schema.deprecated or any(a.required for a in schema.attributes.values()):
            continue
        most_inputs, most_outputs = min(schema.max_input, 4), min(schema.max_output, 3)
        for count in range(most_inputs + 2):
            inputs = [f"x{i}" for i in range(count)]
            outputs = [f"y{i}" for i in range(numbers.randint(0, most_outputs + 1))]
            forms = [(inputs, outputs)]
            forms += [(inputs[:i] + [""] + inputs[i + 1 :], outputs) for i in range(count)]
            forms += [(inputs, outputs[:i] + [""] + outputs[i + 1 :]) for i in range(len(outputs))]
            for left, right in forms:
                is_variadic = any(
                    not name and schema.inputs[min(i, len(schema.inputs) - 1)].option.name == "Variadic"
                    for i, name in enumerate(left)
                    if schema.inputs
                )
                if is_variadic:
                    continue
                node = helper.make_node(name, left, right)
                by_onnx, by_graft = refusal_by_onnx(node, NEWEST_OPSET), refusal_by_graft(node)
                assert bool(by_onnx) == bool(by_graft), f"{node}\nONNX: {by_onnx}\nGraft: {by_graft}"
                compared += 1
    assert compared > 1000
