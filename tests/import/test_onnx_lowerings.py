# Tests nodes that TensorRT refuses and Graft lowers: the results stay those of ONNX, near misses stay unchanged, and
# TensorRT-RTX builds the lowered models.
import os
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from lowering_models import LOWERED, NETWORKS, flex_attention, near_misses
from onnx_judges import JUDGES, difference, node_cases, with_constants
from program import run_program

TOOL = pathlib.Path(os.environ["GRAFT_BUILD_DIR"]) / "tests" / "convert_tool"
SEEDS = range(6)
BLOCKS = ("DepthToSpace", "SpaceToDepth")
SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"


def convert(models, folder):
    """Returns name -> (converted model, messages about its lowerings)."""
    for name in ("in", "out"):
        (folder / name).mkdir()
    paths = []
    for name, model in models.items():
        paths.append(folder / "in" / f"{name}.onnx")
        onnx.save(model, paths[-1])
    done = run_program([TOOL, "auto", folder / "out", *paths])
    assert done.returncode == 0, done.stderr[-2000:]
    lines = {name: [] for name in models}
    for line in done.stdout.splitlines():
        name, what, op, text = line.split("\t")
        lines[name.removesuffix(".onnx")].append((what, op, text))
    return {name: (onnx.load(folder / "out" / f"{name}.onnx"), lines[name]) for name in models}


def run(model, feeds):
    values = [feeds[info.name] for info in model.graph.input]
    said = []
    for name, judge in JUDGES.items():
        try:
            return judge(model, values)
        except Exception as error:  # noqa: BLE001 - a judge that cannot run a model says so in a type of its own
            said.append(f"{name}: {error}")
    raise AssertionError("; ".join(said))


def check_same(found, expected, limit):
    assert len(found) == len(expected)
    for one, wanted in zip(found, expected, strict=True):
        assert one.dtype == wanted.dtype
        assert one.shape == wanted.shape
        finite = wanted[np.isfinite(wanted)] if wanted.dtype.kind == "f" else wanted
        largest = float(np.abs(finite.astype(np.float64)).max(initial=0))
        one, wanted = one.astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_allclose(one, wanted, rtol=0, atol=limit * max(largest, 1.0) if limit else 0)


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
def test_a_lowered_node_gives_the_numbers_of_onnx(samples, name):
    one, converted, lines = samples[0][name]
    op = one.model.graph.node[0].op_type
    assert any(what == "lowered" and of == op for what, of, _ in lines), lines
    types = [node.op_type for node in converted.graph.node]
    # These operators remain in another form.
    if op not in ("TopK", "ScatterND", "ScatterElements", "LSTM", "GRU", "RNN", "Einsum", "MatMul") + BLOCKS:
        assert op not in types
    onnx.checker.check_model(converted)
    check_same(run(converted, one.feeds), run(one.model, one.feeds), one.limit)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pool_with_wide_padding_runs_in_onnxruntime(samples, seed):
    """ONNX Runtime refuses the original, whose padding is as large as its windows."""
    one, converted, _ = samples[0][f"lp_pool_with_wide_padding_{seed}"]
    with pytest.raises(Exception, match="Pad should be smaller"):
        onnxruntime.InferenceSession(one.model.SerializeToString(), providers=["CPUExecutionProvider"])
    session = onnxruntime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    check_same(session.run(None, one.feeds), run(one.model, one.feeds), one.limit)


def test_a_graph_of_flex_attention_may_read_values_around_the_node(tmp_path):
    """onnx.reference runs such graphs only where they contain the values, and ONNX Runtime has no FlexAttention."""
    with_constant = next(
        one
        for one in (flex_attention(np.random.default_rng(seed)) for seed in range(20))
        if {"score_mod", "prob_mod"} <= {a.name for a in one.model.graph.node[0].attribute}
    )
    model = onnx.ModelProto()
    model.CopyFrom(with_constant.model)
    for attribute in model.graph.node[0].attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            factor = attribute.g.initializer.pop()
    half = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(factor) / 2, "half")
    model.graph.initializer.append(half)
    model.graph.node.insert(0, onnx.helper.make_node("Add", ["half", "half"], ["factor"]))
    converted, lines = convert({"outer": model}, tmp_path)["outer"]
    assert ("lowered", "FlexAttention") in {line[:2] for line in lines}
    check_same(run(converted, with_constant.feeds), run(with_constant.model, with_constant.feeds), with_constant.limit)


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    made = {name: make(np.random.default_rng(7)) for name, make in NETWORKS.items()}
    folder = tmp_path_factory.mktemp("networks")
    return made, convert({name: one.model for name, one in made.items()}, folder), folder


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_lowered_goes_together(networks, name):
    one, (converted, lines) = networks[0][name], networks[1][name]
    assert {what for what, _, _ in lines} == {"lowered"}
    types = [node.op_type for node in converted.graph.node]
    assert not [kind for kind in types if "Sequence" in kind or "Quantize" in kind or "Linear" in kind]
    # Only the network's inputs and outputs have 8 bits, no tensor between them.
    ends = sum(
        info.type.tensor_type.elem_type == onnx.TensorProto.UINT8
        for info in (*one.model.graph.input, *one.model.graph.output)
    )
    bytes_made = [n for n in converted.graph.node if n.op_type == "Cast" and n.attribute[0].i in (2, 3)]
    assert len(bytes_made) <= ends
    check_same(run(converted, one.feeds), run(one.model, one.feeds), one.limit)


NEAR_MISSES = near_misses()


@pytest.fixture(scope="module")
def near(tmp_path_factory):
    folder = tmp_path_factory.mktemp("near")
    return convert({name: one.model for name, (one, _) in NEAR_MISSES.items()}, folder)


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_a_near_miss_stays(near, name):
    one, words = NEAR_MISSES[name]
    converted, lines = near[name]
    if words is None:
        assert [what for what, _, _ in lines] == ["lowered"]
        return
    assert [node.op_type for node in converted.graph.node] == [one.model.graph.node[0].op_type]
    if not words:
        assert not lines
        return
    (what, _, text), *others = lines
    assert what == "not lowered"
    assert not others
    assert words in text


def test_node_tests_with_constant_parameters(tmp_path):
    """Runs ONNX's own tests of lowered operators, with all parameters as constants."""
    done = run_program([TOOL, "lowerings"])
    lowered = {line.split("\t")[0].removeprefix("ai.onnx.preview::") for line in done.stdout.splitlines()}
    lowered = {name for name in lowered if "::" not in name} - {"SimplifiedLayerNormalization"}  # of ONNX Runtime
    # Only the nodes around these make TensorRT refuse them.
    lowered -= {"If", "Slice", "Reshape", "Expand", "Tile", "Pad", "ConstantOfShape", "Range"}
    assert len(lowered) > 25
    cases = [with_constants(case) for case in node_cases() if "_expanded" not in case.name]
    cases = [case for case in cases if case is not None and case.model.graph.node[0].op_type in lowered]
    converted = convert({case.name: case.model for case in cases}, tmp_path)
    wrong, fired = [], set()
    for case in cases:
        model, lines = converted[case.name]
        names = {what for what, _, _ in lines}
        if "rejected" in names:
            wrong.append(f"{case.name}: {lines}")
        if "lowered" not in names:
            continue
        fired.add(case.model.graph.node[0].op_type)
        problem = "nobody"
        for judge in JUDGES.values():
            try:
                problem = ""
                for inputs, expected in case.data_sets:
                    problem = problem or difference(judge(model, inputs), expected, case.rtol, case.atol)
            except Exception as error:  # noqa: BLE001 - as above
                problem = str(error)[:200]
            if not problem:
                break
        if problem:
            wrong.append(f"{case.name}: {problem}")
    assert not wrong, "\n".join(wrong)
    # For the other operators, ONNX has no test of one node with constant parameters in a form that TensorRT refuses.
    others = {"TopK", "NonZero", "MelWeightMatrix", "Cast", "SequenceAt", "ConcatFromSequence", "SequenceLength"}
    others |= {"Einsum", "Loop", "NonMaxSuppression", *BLOCKS}
    assert lowered - fired <= others


def test_tensorrt_builds_what_it_refused(samples):
    pytest.importorskip("tensorrt_rtx")
    sys.path.insert(0, str(SUPPORT))
    from tensorrt_builds import what_tensorrt_builds  # noqa: PLC0415

    made, folder = samples
    models = {"in": [], "out": []}
    for name, (one, *_) in made.items():
        if not name.endswith(("_0", "_1")):
            continue
        for part, paths in models.items():
            # A dynamic size would need a profile.
            model = onnx.load(folder / part / f"{name}.onnx")
            for info in model.graph.input:
                for dim, size in zip(info.type.tensor_type.shape.dim, one.feeds[info.name].shape, strict=True):
                    dim.dim_value = size
            (folder / "fixed" / part).mkdir(parents=True, exist_ok=True)
            paths.append(folder / "fixed" / part / f"{name}.onnx")
            onnx.save(model, paths[-1])
    before, after = (what_tensorrt_builds(paths) for paths in models.values())
    # TensorRT ignores the layout of a recurrent layer: where the sizes fit, it builds another network.
    refused = [path for path in before if not path.stem.startswith("recurrent_layout")]
    assert [path.stem for path in refused if before[path]] == []
    assert [path.stem for path, built in after.items() if not built] == []
