# Runs ONNX's own tests: every model is converted, and the converted model has the results that ONNX expects.
import os
import pathlib

import numpy as np
import onnx
import pytest
from onnx_judges import Case, judge, light_case, node_cases, run_onnxruntime, stored_cases
from onnx_models import subgraph
from program import run_program

TOOL = pathlib.Path(os.environ["GRAFT_BUILD_DIR"]) / "tests" / "convert_tool"
# ctest runs the tests of the operators in two halves, by the first letters of their modules.
HALF = os.environ.get("GRAFT_NODE_TESTS", "a-{")
# The number of models of each half that ONNX Runtime runs (measured with 1.31; onnx.reference runs most others). With
# fewer, ONNX Runtime would no longer accept the models that Graft writes.
LEAST_IN_ONNXRUNTIME = {"a-l": 638, "l-{": 834, "a-{": 1472}

# Tests without a reference: prefixes of names, and why.
NO_JUDGE = {
    "test_bernoulli": "random numbers",
    "test_image_decoder": "decoding images needs Pillow, which is not a part of the tests",
    "test_range_bfloat16_type_positive_delta_expanded": "both runtimes fail on the original too",
}
# Gradients are for training, and no runtime has them. The models must stay unchanged.
NO_JUDGE_STORED = {"test_gradient_of_add": "no runtime has Gradient"}


def convert_all(cases, folder, mode="auto"):
    """Returns name -> converted model, and the messages about refused ones. One process converts all, so a crash
    fails the test."""
    (folder / "in").mkdir()
    (folder / "out").mkdir()
    paths = []
    for case in cases:
        path = folder / "in" / f"{case.name}.onnx"
        onnx.save(case.model, path)
        paths.append(str(path))
    done = run_program([TOOL, mode, folder / "out", *paths])
    assert done.returncode in (0, 1), done.stderr[-2000:]
    return {path.stem: onnx.load(path) for path in (folder / "out").iterdir()}, done.stderr


def wrong_ones(cases, converted, without):
    """Returns each case that is neither right nor without a reference for a stated reason."""
    wrong, counts = [], {}
    for case in cases:
        if case.name not in converted:
            wrong.append(f"{case.name}: refused")
            continue
        who, problem = judge(converted[case.name], case)
        excused = any(case.name.startswith(name) for name in without)
        counts[who or "nobody"] = counts.get(who or "nobody", 0) + 1
        if not who and not excused:
            wrong.append(f"{case.name}: {problem}")
        if who and excused:
            wrong.append(f"{case.name}: {who} can judge it")
    return wrong, counts


def test_every_node_test(tmp_path):
    first, last = HALF.split("-")
    cases = node_cases(first, last)
    assert len(cases) >= 900 * (2 if HALF == "a-{" else 1)
    assert len({case.name for case in cases}) == len(cases)
    converted, refused = convert_all(cases, tmp_path)
    wrong, counts = wrong_ones(cases, converted, NO_JUDGE)
    print(len(cases), counts)
    assert not wrong, "\n".join(wrong) + refused
    assert counts["ONNX Runtime"] >= LEAST_IN_ONNXRUNTIME[HALF]


def sampling_cases():
    """Returns GridSample with seeded sizes and attributes; points lie in the image, on its edges and far outside.
    ONNX Runtime is the reference."""
    cases = []
    for seed, (opset, mode) in enumerate([(16, "bilinear"), (20, "linear"), (20, None)]):
        for padding in ("zeros", "border"):
            for corners in (0, 1):
                random = np.random.default_rng(seed)
                channels, height, width, rows, columns = (int(size) for size in random.integers(1, 9, 5))
                batch, name = 3, f"sampled_{opset}_{mode}_{padding}_{corners}"
                image = random.standard_normal((batch, channels, height, width)).astype(np.float32)
                grid = random.uniform(-1.5, 1.5, (batch, rows, columns, 2)).astype(np.float32)
                grid[0] = np.array([-1, 1])
                grid[1, 0] = np.array([1e6, -1e6])
                attributes = {"padding_mode": padding, "align_corners": corners} | ({"mode": mode} if mode else {})
                node = onnx.helper.make_node("GridSample", ["image", "grid"], ["y"], **attributes)
                sizes = {"image": ["N", *image.shape[1:]], "grid": ["N", *grid.shape[1:]]}
                graph = subgraph([node], [(key, sizes[key]) for key in sizes], [("y", None)])
                opsets = [onnx.helper.make_opsetid("", opset)]
                model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
                expected = run_onnxruntime(model, [image, grid])
                cases.append(Case(name, model, [([image, grid], expected)], 1e-4, 1e-5))
    return cases


@pytest.mark.skipif(HALF.startswith("l"), reason="the other half of the tests does this")
def test_gridsample_by_gather_gives_the_same(tmp_path):
    """Tests the guard for a GridSample that TensorRT computes wrongly, with ONNX's own tests and other sizes."""
    stored = [case for case in node_cases("gridsample", "gridsample~") if case.name.startswith("test_gridsample")]
    cases = [case for case in stored if "_expanded" not in case.name] + sampling_cases()
    assert len(cases) >= 25
    converted, refused = convert_all(cases, tmp_path, "guarded")
    wrong, _ = wrong_ones(cases, converted, {})
    assert not wrong, "\n".join(wrong) + refused
    for case in cases:
        (node,) = case.model.graph.node
        attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        is_image = len(case.data_sets[0][0][0].shape) == 4  # noqa: PLR2004
        is_guarded = (
            is_image
            and attributes.get("mode", b"linear") in (b"linear", b"bilinear")
            and attributes.get("padding_mode", b"zeros") != b"reflection"
        )
        operators = {node.op_type for node in converted[case.name].graph.node}
        assert ("GridSample" not in operators) == is_guarded, case.name


@pytest.mark.skipif(HALF.startswith("l"), reason="the other half of the tests does this")
@pytest.mark.parametrize(("kind", "count"), [("pytorch-converted", 82), ("pytorch-operator", 35), ("simple", 23)])
def test_every_stored_model(kind, count, tmp_path):
    cases = stored_cases(kind)
    assert len(cases) == count
    converted, refused = convert_all(cases, tmp_path)
    wrong, _ = wrong_ones(cases, converted, NO_JUDGE_STORED)
    assert not wrong, "\n".join(wrong) + refused


LIGHT = [
    "squeezenet",
    *(
        pytest.param(name, marks=pytest.mark.skipif("GRAFT_ALL_LIGHT" not in os.environ, reason="takes long"))
        for name in (
            "bvlc_alexnet",
            "densenet121",
            "inception_v1",
            "inception_v2",
            "resnet50",
            "shufflenet",
            "vgg19",
            "zfnet512",
        )
    ),
]


@pytest.mark.skipif(HALF.startswith("l"), reason="the other half of the tests does this")
@pytest.mark.parametrize("name", LIGHT)
def test_light_network(name, tmp_path):
    case = light_case(name)
    converted, refused = convert_all([case], tmp_path)
    wrong, _ = wrong_ones([case], converted, {})
    assert not wrong, wrong + [refused]
