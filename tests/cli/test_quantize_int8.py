# graft quantize --precision int8 and f8: ONNX Runtime without its optimizations, NumPy and ONNX's checker judge.
import os
import struct
import subprocess
import zlib

import ml_dtypes
import numpy as np
import onnx
import pytest
from conftest import DIGITS, DIGITS_DATA, PROGRAM, interrupted_leaves_nothing
from onnx import TensorProto, helper, numpy_helper
from onnx_models import constant, node, run_onnx, save

RANDOM = np.random.default_rng(11)
DIGITS_INPUT = f"image={DIGITS_DATA}:images"


def weight(name, *shape):
    return constant(name, RANDOM.standard_normal(shape) / np.sqrt(np.prod(shape[1:])))


@pytest.fixture
def quantize(graft, tmp_path):
    def run(model, data, *options, out="q.onnx", code=0):
        where = tmp_path / out
        given = [] if data is None else ["--data", data]
        answer = graft("quantize", model, "-o", where, "--precision", "int8", "--json", *given, *options)
        assert answer.code == code, answer.err + answer.out
        return (where, answer.json) if code < 2 else answer

    return run


def run(model, **inputs):
    return run_onnx(model, inputs, is_optimized=False, log_severity_level=3)


def tensors_of(path, inputs):
    """Returns every tensor of a model, computed by ONNX Runtime."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    known = {o.name for o in model.graph.output}
    for value in model.graph.value_info:
        if value.name not in known and value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            model.graph.output.append(value)
    return {**run(model.SerializeToString(), **inputs), **inputs}


def scales(path):
    """Returns the scale of each QuantizeLinear by the name of its input."""
    model = onnx.load(path)
    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    return {n.input[0]: values[n.input[1]] for n in model.graph.node if n.op_type == "QuantizeLinear"}


def types(result):
    return {n["output"]: n["type"] for n in result["nodes"]}


def snr(reference, found):
    reference, found = np.float64(reference), np.float64(found)
    return 10 * np.log10((reference**2).sum() / ((reference - found) ** 2).sum())


@pytest.fixture
def digits(graft, tmp_path):
    path = tmp_path / "digits.onnx"
    assert graft("convert", DIGITS, "-o", path, "--no-prove").code == 0
    return path


# ---- The whole pipeline


@pytest.mark.parametrize("method", ["entropy", "minmax", "percentile", "mse"])
def test_digits_are_as_good_as_in_f32(quantize, graft, digits, tmp_path, method):
    data = np.load(DIGITS_DATA)
    out, result = quantize(digits, DIGITS_INPUT, "--method", method)
    onnx.checker.check_model(onnx.load(out), full_check=True)
    exact = run(digits, image=data["images"])["logits"]
    found = run(out, image=data["images"])["logits"]
    right = [(y.argmax(1) == data["labels"]).mean() for y in (exact, found)]
    assert right[1] >= right[0] - 0.005
    assert snr(exact, found) > 30
    # The CPU engine computes in integers and adds the bias once: a few elements are rounded to the other side of a tie.
    assert graft("run", out, "--input", DIGITS_INPUT, "-o", tmp_path / "own.npz").code == 0
    own = np.load(tmp_path / "own.npz")["logits"]
    assert snr(exact, own) > 30
    assert (own.argmax(1) == found.argmax(1)).mean() > 0.995
    assert {n["output"]: n["type"] for n in result["nodes"] if n["operator"] in ("Conv", "Gemm", "MatMul")} == {
        "/conv1/Conv_output_0": "int8",
        "/conv2/Conv_output_0": "int8",
        "/conv3/Conv_output_0": "int8",
        "/embed/Gemm_output_0": "int8",
        "logits": "int8",
    }
    [reported] = [o for o in result["outputs"] if o["name"] == "logits"]
    assert reported["snr_db"] > 30


def test_scales_of_minmax_are_the_largest_numbers(quantize, digits):
    images = np.load(DIGITS_DATA)["images"]
    out, result = quantize(digits, DIGITS_INPUT, "--method", "minmax")
    tensors = tensors_of(digits, {"image": images})
    shared = {t["name"]: t["group"] for t in result["tensors"]}
    for name, scale in scales(out).items():
        group = [other for other, key in shared.items() if key == shared[name]]
        largest = max(np.abs(tensors[other]).max() for other in group)
        assert scale == pytest.approx(largest / 127, rel=1e-5), name


def test_digits_in_f8_are_as_good_as_in_f32(graft, digits, tmp_path):
    """ONNX Runtime rounds to f8 itself. The CPU engine computes the same, and the f8 weights in the file are those
    of ml_dtypes."""
    data = np.load(DIGITS_DATA)
    out = tmp_path / "f8.onnx"
    answer = graft("quantize", digits, "-o", out, "--precision", "f8", "--json", "--data", DIGITS_INPUT, code=0)
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    exact = run(digits, image=data["images"])["logits"]
    found = run(out, image=data["images"])["logits"]
    right = [(y.argmax(1) == data["labels"]).mean() for y in (exact, found)]
    assert right[1] >= right[0] - 0.005
    assert snr(exact, found) > 22
    assert graft("run", out, "--input", DIGITS_INPUT, "-o", tmp_path / "own.npz").code == 0
    assert snr(found, np.load(tmp_path / "own.npz")["logits"]) > 35

    result = answer.json
    assert (result["precision"], result["method"]) == ("f8", "minmax")
    assert sorted(types(result).values()).count("f8") >= 5 and "int8" not in types(result).values()
    tensors = tensors_of(digits, {"image": data["images"]})
    shared = {t["name"]: t["group"] for t in result["tensors"]}
    for name, scale in scales(out).items():
        largest = max(np.abs(tensors[other]).max() for other in shared if shared[other] == shared[name])
        assert scale == pytest.approx(largest / 448, rel=1e-5), name


def test_weights_in_f8_are_those_of_ml_dtypes(graft, tmp_path):
    w = RANDOM.standard_normal((5, 3, 3, 3)).astype(np.float32) * np.geomspace(0.01, 10, 5)[:, None, None, None]
    w = w.astype(np.float32)
    model = save(
        tmp_path / "m.onnx",
        [node("Conv", "x w", "y")],
        [("x", ["n", 3, 9, 9])],
        [("y", ["n", 5, 7, 7])],
        [constant("w", w)],
    )
    np.savez(tmp_path / "x.npz", x=RANDOM.standard_normal((8, 3, 9, 9)).astype(np.float32))
    out = tmp_path / "f8.onnx"
    graft("quantize", model, "-o", out, "--precision", "f8", "--data", tmp_path / "x.npz", code=0)
    values = {i.name: numpy_helper.to_array(i) for i in onnx.load(out).graph.initializer}
    scale = values["w/scale"]
    assert scale == pytest.approx(np.abs(w).max((1, 2, 3)) / 448)
    expected = (w.astype(np.float64) / scale[:, None, None, None].astype(np.float64)).clip(-448, 448)
    found = values["w/f8"].view(np.uint8)
    assert (found == expected.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)).all()


def test_what_improve_changed_is_said(graft, tmp_path):
    out = tmp_path / "q.onnx"
    options = ("-o", out, "--precision", "int8", "--data", DIGITS_INPUT, "--samples", "8", "--improve", "round,bias")
    found = graft("quantize", DIGITS, *options, "--json").json["improvements"]
    assert found["round"] > 0 and found["bias"] > 0
    text = " ".join(graft("quantize", DIGITS, *options).out.split())
    assert f"improvements: rounded adaptively: {found['round']} layer" in text
    assert f"bias corrected: {found['bias']} layer" in text
    plain = graft("quantize", DIGITS, *options[:-2], "--json").json
    assert plain["improvements"] == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "entropy"], ["--method", "int8"]),
        (["--improve", "round"], ["--improve", "int8"]),
        (["--write-cache", "scales.cache"], ["--write-cache", "int8"]),
    ],
)
def test_what_f8_does_not_have_is_said(graft, digits, tmp_path, options, words):
    before = sorted(tmp_path.iterdir())
    answer = graft(
        "quantize", digits, "-o", tmp_path / "f8.onnx", "--precision", "f8", "--data", DIGITS_INPUT, *options, code=2
    )
    for word in words:
        assert word in answer.err, answer.err
    assert sorted(tmp_path.iterdir()) == before


def test_weights_have_a_scale_for_each_channel(quantize, tmp_path):
    nodes = [node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"), node("Conv", "r w2", "y")]
    w = RANDOM.standard_normal((5, 3, 3, 3)).astype(np.float32) * np.geomspace(0.01, 10, 5)[:, None, None, None]
    w[2] = 0
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [("x", ["n", 3, 9, 9])],
        [("y", ["n", 4, 9, 9])],
        [constant("w", w), weight("b", 5), weight("w2", 4, 5, 1, 1)],
    )
    np.savez(tmp_path / "x.npz", x=RANDOM.standard_normal((8, 3, 9, 9)).astype(np.float32))
    out, _ = quantize(model, tmp_path / "x.npz")
    values = {i.name: numpy_helper.to_array(i) for i in onnx.load(out).graph.initializer}
    found = values["w/scale"]
    largest = np.abs(np.float32(w)).max(axis=(1, 2, 3))
    np.testing.assert_allclose(found[[0, 1, 3, 4]], largest[[0, 1, 3, 4]] / 127, rtol=1e-6)
    assert found[2] > 0
    assert not values["w/int8"][2].any()
    assert values["w/int8"].dtype == np.int8
    assert np.abs(values["w/int8"][[0, 1, 3, 4]]).max(axis=(1, 2, 3)).tolist() == [127] * 4
    np.testing.assert_array_less(np.abs(values["w/int8"] * found[:, None, None, None] - w).max(axis=(1, 2, 3)), found)
    assert values["b"].dtype == np.float32


# ---- What becomes int8


def two_branches(path):
    """Saves a Concat of a branch, the pooled branch, and their common input."""
    nodes = [
        node("Conv", "x w0", "c0", pads=[1, 1, 1, 1]),
        node("Relu", "c0", "r0"),
        node("Conv", "r0 w1", "c1"),
        node("MaxPool", "r0", "p", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Concat", "c1 p", "k", axis=1),
        node("Conv", "k w2", "c2"),
        node("GlobalAveragePool", "c2", "y"),
    ]
    weights = [weight("w0", 6, 3, 3, 3), weight("w1", 5, 6, 1, 1), weight("w2", 4, 11, 1, 1)]
    return save(path, nodes, [("x", ["n", 3, 8, 8])], [("y", ["n", 4, 1, 1])], weights)


def test_what_moves_elements_shares_one_scale(quantize, tmp_path):
    model = two_branches(tmp_path / "m.onnx")
    x = RANDOM.standard_normal((8, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    out, result = quantize(model, tmp_path / "x.npz", "--method", "minmax")
    found = scales(out)
    assert found["k"] == found["c1"] == found["p"] == found["r0"]
    tensors = tensors_of(model, {"x": x})
    largest = max(np.abs(tensors[name]).max() for name in ("k", "c1", "p", "r0"))
    assert found["k"] == pytest.approx(largest / 127, rel=1e-5)
    assert types(result) == {
        "c0": "int8",
        "r0": "fused",
        "c1": "int8",
        "p": "int8",
        "k": "int8",
        "c2": "int8",
        "y": "f32",
    }
    assert snr(run(model, x=x)["y"], run(out, x=x)["y"]) > 25


def residual(path, *, down):
    """Saves a residual block whose sum has a convolution in one operand, or in both."""
    nodes = [
        node("Conv", "x w0", "c0", pads=[1, 1, 1, 1]),
        node("Relu", "c0", "r0"),
        node("Conv", "r0 w1", "c1", pads=[1, 1, 1, 1]),
        node("Relu", "c1", "r1"),
        node("Conv", "r1 w2", "c2", pads=[1, 1, 1, 1]),
        *([node("Conv", "r0 w4", "skip")] if down else []),
        node("Add", "c2 skip" if down else "c2 r0", "s"),
        node("Relu", "s", "r2"),
        node("Conv", "r2 w3", "y"),
    ]
    weights = [weight("w0", 6, 3, 3, 3), *(weight(f"w{i}", 6, 6, 3, 3) for i in (1, 2)), weight("w3", 4, 6, 1, 1)]
    return save(
        path,
        nodes,
        [("x", ["n", 3, 8, 8])],
        [("y", ["n", 4, 8, 8])],
        [*weights, *([weight("w4", 6, 6, 1, 1)] if down else [])],
    )


@pytest.mark.parametrize(("down", "stored"), [(False, "r0"), (True, "skip")])
def test_a_sum_stays_with_its_convolution(quantize, tmp_path, down, stored):
    model = residual(tmp_path / "m.onnx", down=down)
    x = RANDOM.standard_normal((8, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    out, result = quantize(model, tmp_path / "x.npz")
    assert set(scales(out)) == {"x", "r0", "r1", "r2", stored}
    [add] = [n for n in onnx.load(out).graph.node if n.op_type == "Add"]
    assert list(add.input) == ["c2", f"{stored}/rounded"]
    assert types(result)["s"] == "int8"
    assert snr(run(model, x=x)["y"], run(out, x=x)["y"]) > 25


def test_scales_behind_a_convolution_become_part_of_it(quantize, tmp_path):
    nodes = [
        node("Conv", "x w", "c"),
        node("BatchNormalization", "c g b m v", "n"),
        node("Relu", "n", "r"),
        node("Conv", "r w2", "y"),
    ]
    weights = [weight("w", 6, 3, 3, 3), weight("w2", 4, 6, 1, 1), *(weight(n, 6) for n in "gbm")]
    weights.append(constant("v", RANDOM.uniform(0.1, 3, 6)))
    model = save(tmp_path / "m.onnx", nodes, [("x", ["n", 3, 8, 8])], [("y", ["n", 4, 6, 6])], weights)
    x = RANDOM.standard_normal((8, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    out, result = quantize(model, tmp_path / "x.npz")
    assert "BatchNormalization" not in {n.op_type for n in onnx.load(out).graph.node}
    assert types(result) == {"n": "int8", "r": "fused", "y": "int8"}
    assert snr(run(model, x=x)["y"], run(out, x=x)["y"]) > 25


def test_what_also_goes_out_in_f32_is_not_rounded_there(quantize, tmp_path):
    nodes = [node("Conv", "x w", "c"), node("Conv", "c w2", "y"), node("Softmax", "c", "z", axis=1)]
    weights = [weight("w", 6, 3, 3, 3), weight("w2", 4, 6, 1, 1)]
    model = save(tmp_path / "m.onnx", nodes, [("x", ["n", 3, 8, 8])], [("y", None), ("z", None)], weights)
    np.savez(tmp_path / "x.npz", x=RANDOM.standard_normal((8, 3, 8, 8)).astype(np.float32))
    out, result = quantize(model, tmp_path / "x.npz")
    [softmax] = [n for n in onnx.load(out).graph.node if n.op_type == "Softmax"]
    assert list(softmax.input) == ["c"]
    [reason] = [n["reason"] for n in result["nodes"] if n["output"] == "z"]
    assert reason == "TensorRT has no int8 Softmax"


# ---- Plugins


def graft_node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=outputs.split()[0], domain="graft", **attributes)


def with_operator(path, middle, *more):
    """Saves Conv, one of Graft's operators, Conv."""
    nodes = [node("Conv", "x w0", "c"), middle, node("Conv", "g w1", "y")]
    weights = [weight("w0", 6, 3, 3, 3), weight("w1", 4, 6, 1, 1), *more]
    return save(path, nodes, [("x", ["n", 3, 9, 9])], [("y", None)], weights, domains=["graft"])


OPERATORS = {
    "InstanceNorm": (graft_node("InstanceNorm", "c s b", "g", epsilon=1e-3, activation="relu"), ["s", "b"]),
    "L2Normalize": (graft_node("L2Normalize", "c", "g", axes=[1]), []),
    "LeakyReLU": (graft_node("LeakyReLU", "c", "g", alpha=0.2), []),
    "Padding": (graft_node("Padding", "c", "g", mode="reflect", pads=[0, 0, 1, 1, 0, 0, 1, 1]), []),
    "Upsampling": (graft_node("Upsampling", "c", "g", mode="nearest", scales=[2.0]), []),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_of_graft_takes_and_gives_int8(graft, quantize, tmp_path, name):
    middle, more = OPERATORS[name]
    plain = with_operator(tmp_path / "plain.onnx", middle, *(weight(n, 6) for n in more))
    model = tmp_path / "m.onnx"
    assert graft("convert", plain, "-o", model, "--plugins", "always", "--no-prove").code == 0
    x = RANDOM.standard_normal((8, 3, 9, 9)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    out, result = quantize(model, tmp_path / "x.npz", "--method", "minmax")
    assert types(result)["g"] == "int8"
    written = onnx.load(out)
    [own] = [n for n in written.graph.node if n.domain == "graft"]
    attributes = {a.name: helper.get_attribute_value(a) for a in own.attribute}
    makers = {o: n for n in written.graph.node for o in n.output}
    readers = {i: n for n in written.graph.node for i in n.input}
    assert makers[own.input[0]].op_type == "QuantizeLinear"
    after = readers[own.output[0]]
    assert (after.op_type, list(after.output)) == ("DequantizeLinear", ["g"])
    reported = {t["name"]: t["scale"] for t in result["tensors"]}
    assert attributes["x_scale"] == pytest.approx(reported["c"], rel=1e-6)
    assert attributes["y_scale"] == pytest.approx(reported["g"], rel=1e-6)
    if name in ("Padding", "Upsampling"):
        assert attributes["x_scale"] == attributes["y_scale"]
    exact, found = run(model, x=x)["y"], run(out, x=x)["y"]
    assert snr(exact, found) > 25
    assert graft("run", out, "--input", f"x={tmp_path / 'x.npz'}", "-o", tmp_path / "own.npz").code == 0
    assert snr(exact, np.load(tmp_path / "own.npz")["y"]) > 25


@pytest.mark.parametrize("given", ["input", "attribute"])
def test_the_convolution_plugin_from_end_to_end(graft, quantize, tmp_path, given):
    w = np.float32(RANDOM.standard_normal((6, 3, 3, 3)) * np.geomspace(0.3, 3, 6)[:, None, None, None])
    b = np.float32(RANDOM.standard_normal(6))
    if given == "input":
        own = graft_node("Convolution", "x w b", "c", kernel=[3, 3], activation="relu")
        more = [constant("w", w), constant("b", b)]
    else:
        own = graft_node(
            "Convolution",
            "x",
            "c",
            num_output=6,
            kernel=[3, 3],
            activation="relu",
            kernel_weights=w.ravel(),
            bias_weights=b,
        )
        more = []
    plain = save(
        tmp_path / "plain.onnx",
        [own, node("Conv", "c w1", "y")],
        [("x", ["n", 3, 9, 9])],
        [("y", None)],
        [weight("w1", 4, 6, 1, 1), *more],
        domains=["graft"],
    )
    model = tmp_path / "m.onnx"
    assert graft("convert", plain, "-o", model, "--plugins", "always", "--no-prove").code == 0
    x = RANDOM.standard_normal((8, 3, 9, 9)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    out, result = quantize(model, tmp_path / "x.npz", "--method", "minmax")
    assert types(result)["c"] == "int8"
    [own] = [n for n in onnx.load(out).graph.node if n.domain == "graft"]
    attributes = {a.name: helper.get_attribute_value(a) for a in own.attribute}
    np.testing.assert_allclose(attributes["weight_scale"], np.abs(w).max(axis=(1, 2, 3)) / 127, rtol=1e-6)
    exact = run(model, x=x)["y"]
    assert snr(exact, run(out, x=x)["y"]) > 25
    assert graft("run", out, "--input", f"x={tmp_path / 'x.npz'}", "-o", tmp_path / "own.npz").code == 0
    assert snr(exact, np.load(tmp_path / "own.npz")["y"]) > 25


def test_an_operator_before_an_output_stays_in_f32(quantize, digits):
    _, result = quantize(digits, DIGITS_INPUT)
    [told] = [n for n in result["nodes"] if n["output"] == "embedding"]
    assert (told["type"], told["reason"]) == ("f32", "'embedding' is an output of the network")


# ---- Choices


def test_keep_and_only(quantize, digits):
    out, result = quantize(digits, DIGITS_INPUT, "--keep", "/conv2/*")
    assert types(result)["/conv2/Conv_output_0"] == "f32"
    assert "/act1/LeakyRelu_output_0" not in scales(out)
    notes = {n.output[0]: {p.key: p.value for p in n.metadata_props} for n in onnx.load(out).graph.node}
    assert notes["/conv2/Conv_output_0"]["graft.precision"] == "f32: --keep /conv2/*"
    out, result = quantize(digits, DIGITS_INPUT, "--only", "Gemm")
    assert [n["operator"] for n in result["nodes"] if n["type"] == "int8"] == ["Flatten", "Gemm"]
    assert set(scales(out)) == {"/act3/LeakyRelu_output_0", "/Flatten_output_0"}


def test_a_limit_keeps_what_loses_most(quantize, digits):
    _, plain = quantize(digits, DIGITS_INPUT)
    before = min(o["snr_db"] for o in plain["outputs"])
    out, result = quantize(digits, DIGITS_INPUT, "--limit", before + 3)
    assert result["met"]
    assert min(o["snr_db"] for o in result["outputs"]) >= before + 3
    kept = [n["output"] for n in result["nodes"] if n["why"] == "kept"]
    assert 0 < len(kept) < 5
    worst = [s["output"] for s in result["sensitivities"]]
    assert len(worst) == 5
    assert set(kept) <= set(worst[:4])
    images = np.load(DIGITS_DATA)["images"][:64]
    assert snr(run(digits, image=images)["logits"], run(out, image=images)["logits"]) > before
    costs = {t["kept"]: t["int8_multiply_adds"] for t in result["trials"]}
    assert costs[0] == max(costs.values())


def test_a_limit_out_of_reach_is_the_answer_no(quantize, tmp_path):
    model = residual(tmp_path / "m.onnx", down=False)
    np.savez(tmp_path / "x.npz", x=RANDOM.standard_normal((4, 3, 8, 8)).astype(np.float32))
    # With all nodes in f32 only rounding differs, and 1000 dB exceed even that.
    out, result = quantize(model, tmp_path / "x.npz", "--limit", 1000, code=1)
    assert not result["met"]
    # The best trial with at least one node in int8.
    assert result["outputs"][0]["snr_db"] == max(t["snr_db"] for t in result["trials"] if t["kept"] < 4)
    assert scales(out)


@pytest.mark.parametrize("options", [["--limit", 100], ["--keep", "Conv"], ["--only", "Relu"]])
def test_nothing_in_int8_is_an_answer_too(quantize, tmp_path, options):
    model = residual(tmp_path / "m.onnx", down=False)
    x = RANDOM.standard_normal((4, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    out, result = quantize(model, tmp_path / "x.npz", *options)
    assert "no tensor became int8" in result["notes"]
    np.testing.assert_allclose(run(out, x=x)["y"], run(model, x=x)["y"], rtol=1e-5, atol=1e-5)
    answer = quantize(model, tmp_path / "x.npz", *options, "--write-cache", tmp_path / "c.cache", out="r.onnx", code=2)
    assert "there are no scales" in answer.err
    assert not (tmp_path / "r.onnx").exists()


def test_the_rest_in_f16(quantize, graft, tmp_path):
    nodes = [
        node("MatMul", "x w0", "m"),
        node("LayerNormalization", "m g b", "l"),
        node("Softmax", "l", "p"),
        node("MatMul", "p w1", "n"),
        node("Softmax", "n", "y"),
    ]
    weights = [weight("w0", 16, 16), weight("w1", 16, 8), constant("g", np.ones(16)), constant("b", np.zeros(16))]
    model = save(tmp_path / "m.onnx", nodes, [("x", ["n", 16])], [("y", ["n", 8])], weights)
    x = RANDOM.standard_normal((32, 16)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    out, result = quantize(model, tmp_path / "x.npz", "--rest", "f16")
    assert types(result) == {"m": "int8", "l": "f16", "p": "f16", "n": "int8", "y": "f16"}
    onnx.checker.check_model(onnx.load(out), full_check=True)
    assert snr(run(model, x=x)["y"], run(out, x=x)["y"]) > 25


# ---- Calibration


def test_interrupted_and_resumed_it_is_the_same(quantize, digits, tmp_path):
    whole, _ = quantize(digits, DIGITS_INPUT, out="whole.onnx")
    state = tmp_path / "state.npz"
    quantize(digits, DIGITS_INPUT, "--samples", 100, "--state", state)
    resumed, result = quantize(digits, DIGITS_INPUT, "--state", state, out="resumed.onnx")
    assert result["samples"] == 450
    assert whole.read_bytes() == resumed.read_bytes()
    other = residual(tmp_path / "other.onnx", down=False)
    np.savez(tmp_path / "x.npz", x=RANDOM.standard_normal((4, 3, 8, 8)).astype(np.float32))
    answer = quantize(other, tmp_path / "x.npz", "--state", state, code=2)
    assert f"{state}: this is the state of a calibration with another" in answer.err


def test_killed_while_it_writes_its_state_it_goes_on_from_a_whole_one(quantize, digits, tmp_path):
    whole, _ = quantize(digits, DIGITS_INPUT, out="whole.onnx")
    folder = tmp_path / "states"
    folder.mkdir()
    options = ["--precision", "int8", "--data", DIGITS_INPUT, "--state", folder / "state.npz"]
    kills, samples = 0, 0
    while kills < 20:
        samples = samples % 440 + 20  # each run has new state to write at its end
        command = [PROGRAM, "quantize", digits, "-o", tmp_path / "cut.onnx", *options, "--samples", samples]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            if any(entry.name != "state.npz" for entry in os.scandir(folder)):
                process.kill()
                process.wait()
        left = [path for path in folder.iterdir() if path.name != "state.npz"]
        kills += len(left)
        for path in left:
            path.unlink()
        if samples == 440:
            (folder / "state.npz").unlink(missing_ok=True)
    resumed, result = quantize(digits, DIGITS_INPUT, "--state", folder / "state.npz", out="resumed.onnx")
    assert result["samples"] == 450
    assert whole.read_bytes() == resumed.read_bytes()


def write_png(path, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def test_a_folder_of_images_is_what_its_numbers_are(quantize, tmp_path):
    model = residual(tmp_path / "m.onnx", down=False)
    pixels = RANDOM.integers(0, 256, (6, 8, 8, 3)).astype(np.uint8)
    (tmp_path / "images").mkdir()
    for i, image in enumerate(pixels):
        write_png(tmp_path / "images" / f"{i}.png", image)
    (tmp_path / "recipe.yaml").write_text("channels: bgr\nmean: [100, 110, 120]\nscale: 0.0625\n")
    numbers = (np.float32(pixels[..., ::-1]) - np.float32([100, 110, 120])) * np.float32(0.0625)
    np.save(tmp_path / "x.npy", np.ascontiguousarray(numbers.transpose(0, 3, 1, 2)))
    from_images, _ = quantize(model, tmp_path / "images", "--recipe", tmp_path / "recipe.yaml", out="a.onnx")
    from_numbers, _ = quantize(model, tmp_path / "x.npy", out="b.onnx")
    assert from_images.read_bytes() == from_numbers.read_bytes()
    answer = quantize(model, tmp_path / "images", code=2)
    assert "no recipe describes how the images are prepared" in " ".join(answer.err.split())


def test_synthetic_inputs_have_the_range_that_was_calibrated(quantize, graft, digits):
    """Normally distributed inputs would exceed the range, and the outputs would differ widely."""
    out, result = quantize(digits, DIGITS_INPUT)
    (scale,) = (tensor["scale"] for tensor in result["tensors"] if tensor["name"] == "image")
    answer = graft("verify", digits, out, "--json")
    (found,) = answer.json["ranges"].values()
    assert found["lowest"] == pytest.approx(-128 * scale)
    assert found["highest"] == pytest.approx(127 * scale)
    assert "QuantizeLinear" in found["why"]
    assert answer.code == 0 or "use real inputs with --data" in answer.err
    assert "use real inputs with --data" not in graft("verify", digits, out, "--data", DIGITS_INPUT).err


def test_an_output_of_another_size_is_not_called_the_same(quantize, tmp_path):
    """The number of nonzero elements depends on rounding to 8 bits."""
    x = np.linspace(-1, 1, 2 * 16, dtype=np.float32).reshape(2, 16)
    x[:, 3] = 1e-4
    np.savez(tmp_path / "x.npz", x=x)
    weights = {"w": np.eye(16, dtype=np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("NonZero", ["m"], ["nz"])]
    outputs = [("m", [2, 16]), ("nz", TensorProto.INT64, [2, "n"])]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 16])], outputs, weights)
    _, result = quantize(model, tmp_path / "x.npz", code=1)
    of = {output["name"]: output for output in result["outputs"]}
    assert of["nz"]["incomparable"] == "dimensions differ: [2, 32] in the f32 model, [2, 30] in this model"
    assert of["nz"]["differing"] == of["nz"]["elements"]
    assert of["m"]["incomparable"] == ""


# ---- Calibration caches


def test_a_cache_goes_in_and_comes_out(quantize, graft, digits, tmp_path):
    cache = tmp_path / "first.cache"
    _, result = quantize(digits, DIGITS_INPUT, "--write-cache", cache)
    lines = cache.read_text().splitlines()
    written = {
        name: struct.unpack(">f", bytes.fromhex(bits.zfill(8)))[0]
        for name, bits in (x.rsplit(": ", 1) for x in lines[1:])
    }
    assert written == {t["name"]: np.float32(t["scale"]) for t in result["tensors"]}
    # A cache of another TensorRT, in another order, with tensors that do not become int8.
    text = (
        "TRT-8601-EntropyCalibration2\n(Unnamed Layer* 3) [Shuffle]_output: 3c010a14\n"
        + "\n".join(reversed(lines[1:]))
        + "\n"
    )
    cache.write_text(text)
    out, _ = quantize(digits, None, "--cache", cache, "--write-cache", tmp_path / "second.cache")
    assert (tmp_path / "second.cache").read_text() == text
    for name, scale in scales(out).items():
        assert scale == np.float32(written[name])
    assert graft("quantize", out, "--write-cache", tmp_path / "third.cache").code == 0
    assert (tmp_path / "third.cache").read_text() == text
    # Where another tool changed a scale, the scale of the node is used.
    model = onnx.load(out)
    [scale] = [i for i in model.graph.initializer if i.name == "image/scale"]
    scale.CopyFrom(constant("image/scale", np.float32(0.25)))
    onnx.save(model, tmp_path / "changed.onnx")
    assert graft("quantize", tmp_path / "changed.onnx", "--write-cache", tmp_path / "fourth.cache").code == 0
    assert "\nimage: 3e800000\n" in (tmp_path / "fourth.cache").read_text()


def test_what_a_cache_does_not_know_stays_in_f32(quantize, digits, tmp_path):
    cache = tmp_path / "part.cache"
    cache.write_text("TRT-101401-MinMaxCalibration\nimage: 3c010204\n/act1/LeakyRelu_output_0: 3baead5b\n")
    _, result = quantize(digits, None, "--cache", cache)
    assert [n["output"] for n in result["nodes"] if n["type"] == "int8"] == [
        "/conv1/Conv_output_0",
        "/conv2/Conv_output_0",
    ]
    [reason] = [n["reason"] for n in result["nodes"] if n["output"] == "/conv3/Conv_output_0"]
    assert reason == "the cache has no scale for '/pool/MaxPool_output_0'"
    cache.write_text("TRT-101401-MinMaxCalibration\nanother: 3c010204\n")
    assert "has no scale for any tensor" in quantize(digits, None, "--cache", cache, code=2).err


def test_a_model_without_scales_has_no_cache(graft, digits, tmp_path):
    answer = graft("quantize", digits, "--write-cache", tmp_path / "no.cache", code=2)
    assert "no node quantizes a tensor to int8" in answer.err
    assert not (tmp_path / "no.cache").exists()


# ---- Wrong use


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", "int8"], "--data: int8 needs the ranges of real inputs"),
        (["--precision", "int8", "--data", "none"], "none: there is no such file or folder"),
        (
            ["--precision", "int8", "--data", DIGITS_INPUT, "--typed-io"],
            "--typed-io: this option does not apply to --precision int8",
        ),
        (["--precision", "f16", "--method", "mse"], "--method: this option does not apply to --precision f16"),
        (["--precision", "int8", "--data", DIGITS_INPUT, "--keep", "Covn"], "did you mean Conv?"),
        (
            ["--precision", "int8", "--data", f"picture={DIGITS_DATA}:images"],
            "the model has no input 'picture'; its inputs are image",
        ),
        (["--precision", "int8", "--cache", DIGITS_DATA], "a calibration cache must begin with TRT-"),
        (["--precision", "int8", "--improve", "bias", "--cache", "CACHE"], "--improve: "),
        (
            ["--precision", "int8", "--improve", "equalize", "--cache", "CACHE"],
            "change the ranges that --cache contains",
        ),
        (
            ["--precision", "int8", "--method", "mse", "--cache", "CACHE"],
            "--method: this option does not apply with --cache",
        ),
        (
            ["--precision", "int8", "--data", DIGITS_INPUT, "--method", "mse", "--percentile", "99"],
            "--percentile: this option does not apply to --method mse",
        ),
        (
            ["--precision", "int8", "--data", DIGITS_INPUT, "--limit", "much"],
            "--limit: found much; the value must be a number of at least 0",
        ),
        (
            ["--precision", "int8", "--data", DIGITS_INPUT, "--samples", "0"],
            "the value must be an integer of at least 1",
        ),
        (["--precision", "int8", "--data", "image=FOLDER"], "the folder contains neither images nor arrays"),
        (["--precision", "f16", "--data", "image=FOLDER"], "the folder contains neither images nor arrays"),
        ([], "--precision is missing"),
    ],
)
def test_wrong_use_is_named(graft, digits, tmp_path, options, message):
    cache = tmp_path / "c.cache"
    cache.write_text("TRT-8601-EntropyCalibration2\nimage: 3c010204\n")
    given = [cache if o == "CACHE" else str(o).replace("FOLDER", str(tmp_path)) for o in options]
    answer = graft("quantize", digits, "-o", tmp_path / "q.onnx", *given)
    assert (answer.code, message in answer.err) == (2, True), answer.err
    assert not (tmp_path / "q.onnx").exists()


def test_a_sample_that_does_not_fit_is_named_by_its_file(graft, digits, tmp_path):
    folder = tmp_path / "samples"
    folder.mkdir()
    for i in range(20):
        np.save(folder / f"{i:02}.npy", np.zeros((1, 1, 8, 7 if i == 13 else 8), np.float32))
    answer = graft("quantize", digits, "-o", tmp_path / "q.onnx", "--precision", "int8", "--data", folder, code=2)
    assert "13.npy: input 'image': the tensor is f32[1, 1, 8, 7]; it must be f32[" in answer.err, answer.err


def test_data_that_say_little_are_challenged(quantize, digits, tmp_path):
    np.savez(tmp_path / "x.npz", image=np.zeros((3, 1, 8, 8), np.float32))
    _, result = quantize(digits, tmp_path / "x.npz")
    assert any("3 samples are not enough for reliable ranges" in note for note in result["notes"]), result["notes"]
    assert any("'image' contains only zeros" in note for note in result["notes"]), result["notes"]
    with np.load(DIGITS_DATA) as arrays:
        np.savez(tmp_path / "y.npz", image=arrays["images"][:100])
    _, result = quantize(digits, tmp_path / "y.npz")
    assert result["notes"] == []


def test_a_node_may_leave_out_its_first_output(quantize, tmp_path):
    nodes = [
        node("LSTM", "x w r", "a b", hidden_size=4),
        node("Squeeze", "b axes", "h"),
        node("MatMul", "h w1", "y"),
    ]
    del nodes[0].output[:]
    nodes[0].output.extend(["", "b"])
    weights = [weight("w", 1, 16, 3), weight("r", 1, 16, 4), weight("w1", 4, 5), constant("axes", [0], np.int64)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [6, 1, 3])], [("y", [1, 5])], weights)
    np.savez(tmp_path / "x.npz", x=RANDOM.standard_normal((60, 1, 3)).astype(np.float32))
    _, result = quantize(model, tmp_path / "x.npz")
    assert types(result)["y"] == "int8"


@pytest.mark.parametrize(("axis", "count"), [(4, 8), (9, 8), (-9, 8), (0, 4)])
def test_scales_that_do_not_fit_crash_nothing(graft, tmp_path, axis, count):
    nodes = [
        node("DequantizeLinear", "q s", "w", axis=axis),
        node("QuantizeLinear", "x xs xz", "xq"),
        node("DequantizeLinear", "xq xs xz", "xd"),
        node("Conv", "xd w", "y"),
    ]
    weights = [
        constant("q", RANDOM.integers(-9, 9, (8, 3, 3, 3)), np.int8),
        constant("s", np.ones(count)),
        constant("xs", 0.1),
        constant("xz", 0, np.int8),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 3, 8, 8])], [("y", None)], weights)
    x = tmp_path / "x.npz"
    np.savez(x, x=np.zeros((1, 3, 8, 8), np.float32))
    assert graft("run", model, "--input", f"x={x}", "-o", tmp_path / "y.npz").code in (0, 2)
    assert graft("quantize", model, "-o", tmp_path / "q.onnx", "--precision", "int8", "--data", x).code in (0, 2)


def test_zero_points_of_others_are_no_hindrance(quantize, tmp_path):
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("Relu", "d", "r"),
        node("Conv", "r w", "y"),
    ]
    weights = [weight("w", 4, 3, 3, 3), constant("s", 0.05), constant("z", 128, np.uint8)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 3, 8, 8])], [("y", [1, 4, 6, 6])], weights)
    np.savez(tmp_path / "x.npz", x=RANDOM.standard_normal((8, 3, 8, 8)).astype(np.float32))
    _, result = quantize(model, tmp_path / "x.npz")
    assert types(result)["y"] == "int8"


def test_nan_in_the_data_is_told(quantize, tmp_path):
    model = residual(tmp_path / "m.onnx", down=False)
    x = RANDOM.standard_normal((4, 3, 8, 8)).astype(np.float32)
    x[1, 0, 0, 0] = np.nan
    np.savez(tmp_path / "x.npz", x=x)
    # An output that is NaN in f32 is a number in int8: verify reports a difference.
    out, result = quantize(model, tmp_path / "x.npz", code=1)
    assert result["check"]["verdict"] == "not the same"
    assert any("'x' contains 1 NaN and 0 infinite values" in note for note in result["notes"])
    assert all(np.isfinite(scale) and scale > 0 for scale in scales(out).values())


@pytest.mark.parametrize("precision", ["f16", "int8"])
@pytest.mark.parametrize("in_folder", [False, True])
def test_data_without_a_finite_number_are_refused(graft, tmp_path, precision, in_folder):
    model = residual(tmp_path / "m.onnx", down=False)
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "x.npz", x=np.full((4, 3, 8, 8), np.nan, np.float32))
    data = folder if in_folder and precision == "int8" else folder / "x.npz"
    answer = graft("quantize", model, "-o", tmp_path / "q.onnx", "--precision", precision, "--data", data, code=2)
    assert "the array for the input 'x' contains no finite value" in answer.err, answer.err
    assert not (tmp_path / "q.onnx").exists()


def test_only_zeros_still_have_steps(quantize, tmp_path):
    model = residual(tmp_path / "m.onnx", down=False)
    np.savez(tmp_path / "x.npz", x=np.zeros((4, 3, 8, 8), np.float32))
    out, _ = quantize(model, tmp_path / "x.npz")
    assert all(scale > 0 for scale in scales(out).values())
    np.testing.assert_array_equal(run(out, x=np.zeros((1, 3, 8, 8), np.float32))["y"], 0)


@pytest.mark.parametrize("number", [2, 15])
def test_an_interrupt_leaves_nothing(digits, tmp_path, number):
    data = np.repeat(np.load(DIGITS_DATA)["images"], 200, axis=0)
    np.save(tmp_path / "many.npy", data)
    options = ["--precision", "int8", "--data", str(tmp_path / "many.npy")]
    interrupted_leaves_nothing(
        tmp_path, number, "quantize", str(digits), "-o", str(tmp_path / "out" / "q.onnx"), *options
    )


def test_what_is_quantized_already_stays_as_it_is(quantize, digits):
    first, _ = quantize(digits, DIGITS_INPUT, out="first.onnx")
    second, result = quantize(first, DIGITS_INPUT, out="second.onnx")
    assert not [n for n in result["nodes"] if n["type"] == "int8"]
    [reason] = [n["reason"] for n in result["nodes"] if n["output"] == "/conv1/Conv_output_0"]
    assert reason == "it reads DequantizeLinear: it is already quantized"
    x = np.load(DIGITS_DATA)["images"][:50]
    np.testing.assert_array_equal(run(first, image=x)["logits"], run(second, image=x)["logits"])
