# Tests nodes of ONNX Runtime's own operators, which Graft lowers: the results stay those of ONNX Runtime, near misses
# stay unchanged, and TensorRT-RTX builds the lowered models.
import json
import os
import re
import sys

import numpy as np
import onnx
import pytest
from onnx_judges import run_onnxruntime
from onnxruntime_models import LOWERED, WITHOUT_KERNEL, near_misses
from program import run_program
from test_onnx_lowerings import SUPPORT, check_same, convert

SEEDS = range(12)
NEAR_MISSES = near_misses()


def run(model, feeds):
    return run_onnxruntime(model, [feeds[info.name] for info in model.graph.input])


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    made = {
        f"{name}_{seed}": make(np.random.default_rng([seed, *name.encode()]))
        for name, make in LOWERED.items()
        for seed in SEEDS
    }
    folder = tmp_path_factory.mktemp("lowered")
    converted = convert({name: one.model for name, one in made.items()}, folder)
    return {name: (one, *converted[name]) for name, one in made.items()}, folder


@pytest.mark.parametrize("name", [f"{name}_{seed}" for name in LOWERED for seed in SEEDS])
def test_a_lowered_node_gives_the_numbers_of_onnxruntime(samples, name):
    one, converted, lines = samples[0][name]
    node = one.model.graph.node[0]
    assert ("lowered", node.op_type) in [(what, op) for what, op, _ in lines], lines
    assert not [n.op_type for n in converted.graph.node if n.domain or n.op_type == node.op_type]
    onnx.checker.check_model(converted)
    outputs = [output for output in node.output if output]
    check_same(run(converted, one.feeds)[: len(outputs)], run(one.model, one.feeds)[: len(outputs)], one.limit)


def joined(models):
    """Returns one model with the nodes of all models."""
    graph = onnx.GraphProto(name="joined")
    for name, model in models.items():
        part = onnx.compose.add_prefix(model, f"{name}/").graph
        for field in ("node", "initializer", "input", "output"):
            getattr(graph, field).extend(getattr(part, field))
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_onnxruntime_proves_each_lowering(samples, tmp_path):
    """The proof of a conversion is a comparison with ONNX Runtime, which runs all of these operators."""
    made = {name: samples[0][f"{name}_0"][0].model for name in LOWERED}
    onnx.save(joined(made), tmp_path / "m.onnx")
    command = [os.environ["GRAFT_BIN"], "convert", tmp_path / "m.onnx", "-o", tmp_path / "c.onnx", "--no-check"]
    done = run_program([*command, "--json"])
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [rewrite["proof"] for rewrite in report["undone"]] == []
    lowered = [rewrite for rewrite in report["rewrites"] if rewrite["pass"] == "lower_to_native"]
    # Later rewrites are of the nodes that the first one of each operator made.
    proofs = {re.match("node '(.*?)/", each["nodes"][0])[1]: each["proof"] for each in reversed(lowered)}
    assert proofs.keys() >= LOWERED.keys()
    # Its lengths contradict each other in most random inputs, so that ONNX Runtime refuses them.
    assert "total_sequence_length must be positive" in proofs.pop("group_query_attention")
    assert {name: proof for name, proof in proofs.items() if " runs, " not in proof} == {}


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    made = {
        f"{name}_{seed}": make(np.random.default_rng([seed, *name.encode()]))
        for name, make in WITHOUT_KERNEL.items()
        for seed in SEEDS
    }
    folder = tmp_path_factory.mktemp("computed")
    return made, convert({name: one.model for name, (one, _) in made.items()}, folder)


@pytest.mark.parametrize("name", [f"{name}_{seed}" for name in WITHOUT_KERNEL for seed in SEEDS])
def test_a_node_that_only_gpus_run_gives_the_numbers_of_numpy(computed, name):
    one, expected = computed[0][name]
    converted, lines = computed[1][name]
    assert {what for what, *_ in lines} == {"lowered"}, lines
    check_same(run(converted, one.feeds), expected, one.limit)


@pytest.fixture(scope="module")
def near(tmp_path_factory):
    folder = tmp_path_factory.mktemp("near")
    return convert({name: one.model for name, (one, _) in NEAR_MISSES.items()}, folder)


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_a_near_miss_stays(near, name):
    one, words = NEAR_MISSES[name]
    converted, lines = near[name]
    assert [node.op_type for node in converted.graph.node] == [one.model.graph.node[0].op_type]
    assert [what for what, _, _ in lines] == (["not lowered"] if words else [])
    assert words in "".join(text for _, _, text in lines)


def test_inspect_names_what_is_not_covered(tmp_path):
    one, words = NEAR_MISSES["rotary_in_attention"]
    onnx.save(one.model, tmp_path / "m.onnx")
    done = run_program([os.environ["GRAFT_BIN"], "inspect", tmp_path / "m.onnx", "--json"])
    (node,) = json.loads(done.stdout)["nodes"]
    assert node["verdict"] == "unsupported"
    assert "it is an operator of ONNX Runtime" in node["reason"]
    assert node["advice"].startswith("graft convert does not replace the node")
    assert words in node["advice"]
    assert "did you mean" not in node["reason"] + node["advice"]


def test_tensorrt_builds_what_was_lowered(samples):
    pytest.importorskip("tensorrt_rtx")
    sys.path.insert(0, str(SUPPORT))
    from tensorrt_builds import what_tensorrt_builds  # noqa: PLC0415

    made, folder = samples
    paths = []
    (folder / "fixed").mkdir()
    for name in (f"{name}_{seed}" for name in LOWERED for seed in (0, 1)):
        model = onnx.load(folder / "out" / f"{name}.onnx")
        for info in model.graph.input:  # a dynamic size would need a profile
            for dim, size in zip(info.type.tensor_type.shape.dim, made[name][0].feeds[info.name].shape, strict=True):
                dim.dim_value = size
        paths.append(folder / "fixed" / f"{name}.onnx")
        onnx.save(model, paths[-1])
    assert [path.stem for path, is_built in what_tensorrt_builds(paths).items() if not is_built] == []
