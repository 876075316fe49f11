# ONNX's own tests: every model is converted, and what comes out gives the results that ONNX expects.
import os
import pathlib

import onnx
import pytest
from onnx_judges import judge, light_case, node_cases, stored_cases
from program import run_program

TOOL = pathlib.Path(os.environ["GRAFT_BUILD_DIR"]) / "tests" / "convert_tool"
# ctest runs the tests of the operators in two halves, by the first letters of their modules.
HALF = os.environ.get("GRAFT_NODE_TESTS", "a-{")
# How many of each half ONNX Runtime judges (measured with 1.31; onnx.reference judges most others): fewer would mean that
# what we write had become strange to it.
LEAST_IN_ONNXRUNTIME = {"a-l": 638, "l-{": 834, "a-{": 1472}

# What cannot be judged: beginnings of names, and why.
NO_JUDGE = {
    "test_bernoulli": "random numbers",
    "test_image_decoder": "decoding images needs Pillow, which is not a part of the tests",
    "test_range_bfloat16_type_positive_delta_expanded": "both runtimes fail on the original too",
}
# Gradients are for training: no runtime has them. The models are kept as they are.
NO_JUDGE_STORED = {"test_gradient_of_add": "no runtime has Gradient"}


def convert_all(cases, folder):
    """Name -> converted model, and the lines about refused ones. One process for all: a crash fails the test."""
    (folder / "in").mkdir()
    (folder / "out").mkdir()
    paths = []
    for case in cases:
        path = folder / "in" / f"{case.name}.onnx"
        onnx.save(case.model, path)
        paths.append(str(path))
    done = run_program([TOOL, "auto", folder / "out", *paths])
    assert done.returncode in (0, 1), done.stderr[-2000:]
    return {path.stem: onnx.load(path) for path in (folder / "out").iterdir()}, done.stderr


def wrong_ones(cases, converted, without):
    """Each case that is neither right nor, for a reason that is stated, without a judge."""
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
