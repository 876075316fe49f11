# Compares the rules of graft inspect with the real TensorRT, for the models of ONNX's operator tests.
from __future__ import annotations

import collections
import pathlib
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import graft
from onnx import TensorProto, helper, numpy_helper
from tensorrt_builds import what_tensorrt_builds

pytestmark = pytest.mark.usefixtures("rtx")

# In these models TensorRT refuses the network's inputs or outputs, not the node: a size or an iteration count that is
# an input, an int4 output. Rules judge nodes.
REFUSED_FOR_ITS_ENDS = (
    "test_blackmanwindow",
    "test_constantofshape",
    "test_hammingwindow",
    "test_hannwindow",
    "test_loop11",
    "test_quantizelinear_int4",
    "test_range_float",
)


def operator_models(folder: pathlib.Path, per_operator: int) -> list[pathlib.Path]:
    """Saves models of one node with fixed sizes; all inputs but the first are constants, except large tensors."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    by_operator: dict[str, list[Any]] = collections.defaultdict(list)
    for case in cases:
        model = case.model
        if model is None or len(model.graph.node) != 1 or model.graph.node[0].domain or not case.data_sets:
            continue
        by_operator[model.graph.node[0].op_type].append(case)
    written = []
    for of_operator in by_operator.values():
        step = max(1, (len(of_operator) + per_operator - 1) // per_operator)
        for case in of_operator[::step]:
            graph = case.model.graph
            values = case.data_sets[0][0]
            if len(values) != len(graph.input) or any(isinstance(value, list) for value in values):
                continue
            kept = [graph.input[0]] if graph.input else []
            for info, value in list(zip(graph.input, values, strict=True))[1:]:
                data = np.asarray(value)
                if data.dtype.kind in "iub" or (data.dtype.kind == "f" and data.ndim <= 1):
                    graph.initializer.append(numpy_helper.from_array(data, info.name))
                else:
                    kept.append(info)
            del graph.input[:]
            graph.input.extend(kept)
            path = folder / f"{case.name}.onnx"
            onnx.save(case.model, path)
            written.append(path)
    return written


def test_a_rule_that_says_it_runs_is_right(tmp_path: pathlib.Path) -> None:
    """No node that is native by rule is refused or fails, and no node that is unsupported by rule builds."""
    models = [m for m in operator_models(tmp_path, per_operator=2) if not m.stem.startswith(REFUSED_FOR_ITS_ENDS)]
    assert len({path.name for path in models}) > 250
    built = what_tensorrt_builds(models)
    wrong = []
    verdicts: collections.Counter[str] = collections.Counter()
    for path in models:
        answer = graft("inspect", path, "--probe", "none", "--json")
        assert answer.code in (0, 1), answer.err
        kinds = {node["verdict"] for node in answer.json["nodes"]}  # more than one of a node with branches
        verdicts.update(kinds)
        # Where TensorRT gets other nodes in place of the model's, building the file as it is proves nothing.
        is_as_it_is = answer.json["runs"] is not None and not kinds & {"lowered", "plugin"}
        if is_as_it_is and answer.json["runs"] != built[path]:
            wrong.append((path.stem, kinds, [node["reason"] for node in answer.json["nodes"]]))
        assert (answer.json["runs"] is True) == (answer.code == 0)
    assert not wrong
    assert verdicts["native"] > 150
    assert verdicts["unsupported"] > 35  # the others are lowered


def test_nobody_knows_without_a_probe(tmp_path: pathlib.Path) -> None:
    """RoiAlign, for which the parser requests another library's plugin, is not reported to run; the reason has the
    measurement. Compress is known to be refused."""
    info = helper.make_tensor_value_info
    inputs = [info("image", 1, [1, 3, 8, 8]), info("rois", 1, [4, 4])]
    batch = numpy_helper.from_array(np.zeros(4, np.int64), "batch")
    nodes = [helper.make_node("RoiAlign", ["image", "rois", "batch"], ["regions"], name="align", plugin_version="2")]
    graph = helper.make_graph(nodes, "g", inputs, [info("regions", 1, None)], [batch])
    path = tmp_path / "align.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    converted = tmp_path / "converted.onnx"
    for answer in (
        graft("inspect", path, "--probe", "none", "--json"),
        graft("convert", path, "-o", converted, "--no-check", "--json"),
    ):
        assert answer.code == 1
        assert answer.json["runs"] is None
    (node,) = graft("inspect", path, "--probe", "none", "--json").json["nodes"]
    assert (node["verdict"], node["truth"]) == ("unknown", "rule")
    assert "calls CUDA" in node["reason"]
    assert "TensorRT-RTX 1.7.1" in node["reason"]
    assert "--probe builder" in node["advice"]

    inputs = [inputs[0], info("condition", TensorProto.BOOL, [1])]
    nodes = [helper.make_node("Compress", ["image", "condition"], ["where"], name="where", axis=0)]
    graph = helper.make_graph(nodes, "g", inputs, [info("where", 1, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    for answer in (
        graft("inspect", path, "--probe", "none", "--json"),
        graft("convert", path, "-o", converted, "--no-check", "--json"),
    ):
        assert answer.code == 1
        assert answer.json["runs"] is False
    (node,) = graft("inspect", path, "--probe", "none", "--json").json["nodes"]
    (asked,) = graft("inspect", path, "--json", "--truth", "parser").json["nodes"]
    assert (node["verdict"], asked["verdict"]) == ("unsupported", "refused")
