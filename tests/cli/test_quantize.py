# graft quantize: typed models in f16 and bf16. ONNX Runtime, NumPy in f16, ONNX's checker and TensorRT-RTX judge.
import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
import pytest
from conftest import DIGITS, DIGITS_DATA, SOURCE, run_command
from onnx import TensorProto, helper
from onnx_models import constant, node, run_onnx, save, session_of, subgraph

F16, F32, BF16 = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.BFLOAT16
RANDOM = np.random.default_rng(3)
RANDOM_OF_ITS_OWN = np.random.default_rng(5)  # keeps the values of other tests unchanged


def weight(name, *shape):
    return constant(name, RANDOM.standard_normal(shape) / np.sqrt(shape[-1]))


def quantize(graft, model, out, *options, precision="f16", code=0):
    answer = graft("quantize", model, "-o", out, "--precision", precision, "--json", *options)
    assert answer.code == code, answer.err + answer.out
    return answer.json


def kept(result):
    """Returns the nodes that stay in f32 because of their values or the user's options, with reasons."""
    return {n["output"]: n["why"] for n in result["nodes"] if n["why"] not in (None, "form")}


def load(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model


def types_of(path):
    """Returns the element type of every tensor, as ONNX infers it."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path), strict_mode=True)
    values = [*model.graph.input, *model.graph.value_info, *model.graph.output]
    types = {v.name: v.type.tensor_type.elem_type for v in values}
    types.update({t.name: t.data_type for t in model.graph.initializer})
    return types


def check_casts(path):
    """Checks that no Cast reads the output of a Cast, that each changes the type, and that no tensor is cast to a
    type twice."""
    model, types = onnx.load(path), types_of(path)
    makers = {o: n for n in model.graph.node for o in n.output}
    seen = set()
    for n in model.graph.node:
        if n.op_type != "Cast":
            continue
        to = n.attribute[0].i
        assert types[n.input[0]] != to, n.name
        assert (n.input[0], to) not in seen
        seen.add((n.input[0], to))
        maker = makers.get(n.input[0])
        assert maker is None or maker.op_type != "Cast" or types[maker.input[0]] != F32, n.name
    return len(seen)


def run(path, **inputs):
    return run_onnx(path, inputs, log_severity_level=3)


def snr(reference, found):
    reference, found = np.float64(reference), np.float64(found)
    assert np.isfinite(found).all()
    noise = ((reference - found) ** 2).sum()
    return 10 * np.log10((reference**2).sum() / noise) if noise != 0 else np.inf


# ---- Known failures of f16


def layer_norm_in_pieces(path, scale):
    """Saves a decomposed layer normalization, as PyTorch exports it before opset 17: x - mean(x), divided by the
    root of the mean of its squares."""
    nodes = [
        node("MatMul", "x w0", "h"),
        node("Mul", "h scale", "big"),
        node("ReduceMean", "big", "mean", axes=[-1]),
        node("Sub", "big mean", "centered"),
        node("Pow", "centered two", "squares"),
        node("ReduceMean", "squares", "variance", axes=[-1]),
        node("Add", "variance epsilon", "padded"),
        node("Sqrt", "padded", "deviation"),
        node("Div", "centered deviation", "normed"),
        node("MatMul", "normed w1", "y"),
    ]
    weights = [weight("w0", 64, 64), weight("w1", 64, 16)]
    weights += [constant("scale", scale), constant("two", 2), constant("epsilon", 1e-5)]
    return save(path, nodes, [("x", ["n", 64])], [("y", ["n", 16])], weights)


def test_a_layer_norm_in_pieces_with_activations_of_1000(graft, tmp_path):
    model = layer_norm_in_pieces(tmp_path / "m.onnx", 1e3)
    x = RANDOM.standard_normal((8, 64)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x)
    out = tmp_path / "o.onnx"
    result = quantize(graft, model, out, "--data", tmp_path / "d.npz")
    # In f16, the squares are infinite, and so every output is 0.
    big = np.float16(run_to(model, "big", x=x))
    with np.errstate(over="ignore"):
        squares = (big - big.mean(-1, keepdims=True, dtype=np.float32).astype(np.float16)) ** 2
    assert np.isinf(squares).any()
    # Exactly the nodes that write or read a number beyond 65504.
    largest = {name: np.abs(run_to(model, name, x=x)).max() for name in ("big", "squares", "variance", "padded")}
    assert largest["big"] < 65504 < min(largest["squares"], largest["variance"], largest["padded"])
    expected = {"squares": "overflow", "variance": "overflow", "padded": "overflow", "deviation": "overflow"}
    if np.abs(run_to(model, "big", x=x)).sum(-1).max() > 65504:
        expected["mean"] = "sum"
    assert kept(result) == expected
    assert result["outputs"][0]["snr_db"] > 50
    assert result["plain_outputs"][0]["snr_db"] is None or result["plain_outputs"][0]["snr_db"] < 10
    load(out)
    check_casts(out)
    types = types_of(out)
    assert {t: types[t] for t in ("x", "y")} == {"x": F32, "y": F32}
    assert all(types[t] == F16 for t in ("w0", "w1", "h", "big", "centered", "deviation/f16", "normed"))
    assert snr(run(model, x=x)["y"], run(out, x=x)["y"]) > 50


def run_to(path, tensor, **inputs):
    """Returns an internal tensor, computed by ONNX Runtime."""
    model = onnx.load(path)
    del model.graph.output[:]
    model.graph.output.append(helper.make_empty_tensor_value_info(tensor))
    return session_of(model).run(None, inputs)[0]


def test_long_rows_make_the_mean_sum_too_far(graft, tmp_path):
    nodes = [node("Relu", "x", "r"), node("ReduceMean", "r", "m", axes=[-1]), node("Sub", "r m", "y")]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 768])], [("y", [2, 768])])
    x = (RANDOM.uniform(0, 2e3, (2, 768))).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "o.onnx"
    result = quantize(graft, model, out, "--data", f"x={tmp_path / 'x.npy'}")
    assert kept(result) == {"m": "sum"}
    assert np.cumsum(np.float16(x), -1, dtype=np.float16).max() == np.inf
    assert snr(run(model, x=x)["y"], run(out, x=x)["y"]) > 50
    # With half as many elements, all nodes become f16.
    model = save(tmp_path / "s.onnx", nodes, [("x", [2, 32])], [("y", [2, 32])])
    np.save(tmp_path / "x.npy", x[:, :32])
    assert kept(quantize(graft, model, out, "--data", f"x={tmp_path / 'x.npy'}")) == {}


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceL1", "ReduceSum"])
def test_a_reduction_without_axes_sums_all_it_has(graft, tmp_path, op):
    nodes = [node("Relu", "x", "r"), node(op, "r", "s"), node("Mul", "s small", "y")]
    model = save(tmp_path / "m.onnx", nodes, [("x", [4, 256])], [("y", [1, 1])], [constant("small", 1e-3)])
    out = tmp_path / "o.onnx"
    for factor, expected in ((1, {}), (1000, {"s": "overflow" if op != "ReduceMean" else "sum"})):
        x = factor * np.abs(RANDOM.standard_normal((4, 256))).astype(np.float32)
        np.save(tmp_path / "x.npy", x)
        found = kept(quantize(graft, model, out, "--data", f"x={tmp_path / 'x.npy'}"))
        assert found.get("s") == expected.get("s")
        assert snr(run(model, x=x)["y"], run(out, x=x)["y"]) > 40


def test_layer_normalization_itself_survives_activations_of_1000(graft, tmp_path):
    nodes = [
        node("MatMul", "x w0", "h"),
        node("Mul", "h scale", "big"),
        node("LayerNormalization", "big gain shift", "normed", axis=-1),
        node("MatMul", "normed w1", "y"),
    ]
    weights = [weight("w0", 64, 64), weight("w1", 64, 16), constant("scale", 1e3)]
    weights += [constant("gain", np.ones(64)), constant("shift", np.zeros(64))]
    model = save(tmp_path / "m.onnx", nodes, [("x", ["n", 64])], [("y", ["n", 16])], weights)
    x = RANDOM.standard_normal((8, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "o.onnx"
    result = quantize(graft, model, out, "--data", f"x={tmp_path / 'x.npy'}")
    assert kept(result) == {}
    assert check_casts(out) == 2
    assert types_of(out)["normed"] == F16
    assert snr(run(model, x=x)["y"], run(out, x=x)["y"]) > 50


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_a_network_with_a_fixed_batch_takes_samples_one_by_one(graft, tmp_path, precision):
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 32])], [("y", [1, 32])], [weight("w", 32, 32)])
    x = RANDOM.standard_normal((16, 32)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "o.onnx"
    data = ["--data", f"x={tmp_path / 'x.npy'}"]
    result = quantize(graft, model, out, *data, precision=precision)
    assert result["runs"] == 16
    assert result["outputs"][0]["elements"] == 16 * 32
    assert types_of(out)["y"] == F32
    assert graft("verify", model, out, *data).code == 0
    text = graft("quantize", model, "-o", out, "--precision", precision, *data)
    assert "worst of 16 runs" in text.out
    # A number of samples that is not a multiple of the batch is refused, and no file is written.
    model = save(tmp_path / "two.onnx", nodes, [("x", [3, 32])], [("y", [3, 32])], [weight("w", 32, 32)])
    answer = graft("quantize", model, "-o", tmp_path / "none.onnx", "--precision", precision, *data, code=2)
    assert "16 samples" in answer.err
    assert "multiple of 3" in answer.err
    assert not (tmp_path / "none.onnx").exists()


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_with_lengths_stay_in_f32(graft, tmp_path, op, gates):
    """TensorRT's parser refuses the f16 form of its own layer, which selects between the f16 steps and f32 zeros."""
    weights = [weight("w", 1, 5 * gates, 4), weight("r", 1, 5 * gates, 5), weight("b", 1, 10 * gates)]
    nodes = [node(op, "x w r b lengths", "y", hidden_size=5), node("Tanh", "y", "z")]
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [("x", [6, 2, 4]), ("lengths", TensorProto.INT32, [2])],
        [("z", [6, 1, 2, 5])],
        weights,
    )
    out = tmp_path / "o.onnx"
    quantize(graft, model, out)
    types = types_of(out)
    assert {each.op_type: types[each.input[0]] for each in load(out).graph.node if each.op_type != "Cast"} == {
        op: F32,
        "Tanh": F16,
    }
    graft("build", out, "-o", tmp_path / "o.engine", "--target", "sm120", code=0)


def test_any_sample_decides_what_stays_in_f32(graft, tmp_path):
    """Only the second of three samples overflows in one node, and only the third has too large a sum in another."""
    nodes = [node("Mul", "x hundred", "big"), node("Tanh", "big", "t"), node("ReduceMean", "x", "m", axes=[-1])]
    nodes += [node("Add", "t m", "y")]
    weights = [constant("hundred", 100)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 256])], [("y", [1, 256])], weights)
    x = RANDOM.standard_normal((3, 256)).astype(np.float32)
    x[1, 7] = 1000
    x[2] = RANDOM.uniform(300, 400, 256)
    out = tmp_path / "o.onnx"
    kept_by = []
    for samples in (x[:1], x[1:2], x[2:], x):
        np.save(tmp_path / "x.npy", samples)
        kept_by.append(kept(quantize(graft, model, out, "--data", f"x={tmp_path / 'x.npy'}")))
    assert kept_by == [{}, {"big": "overflow", "t": "overflow"}, {"m": "sum"}, {**kept_by[1], **kept_by[2]}]
    for sample in x:
        assert snr(run(model, x=sample[None])["y"], run(out, x=sample[None])["y"]) > 40


@pytest.mark.parametrize(("precision", "narrow"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_figures_of_each_tensor_are_those_of_numpy(graft, tmp_path, precision, narrow):
    """The samples have ordinary values and values that vanish, lose digits or overflow in the type. Counts are
    over all samples; the ratio is of the worst."""
    model = save(tmp_path / "m.onnx", [node("Neg", "x", "y")], [("x", [1, 70000])], [("y", [1, 70000])])
    x = (RANDOM.standard_normal((3, 70000)) * 10.0 ** RANDOM.uniform(-9, 3, (3, 70000))).astype(np.float32)
    x[0, :4] = 0, 65519, -65520, 1e6
    x[1, :2] = 3e38, -3.4e38
    np.save(tmp_path / "x.npy", x)
    found = quantize(graft, model, tmp_path / "o.onnx", "--data", f"x={tmp_path / 'x.npy'}", precision=precision)
    (figures,) = found["nodes"]
    with np.errstate(over="ignore"):
        rounded = (-x).astype(narrow).astype(np.float32)
    finite = np.isfinite(rounded)
    smallest = float(ml_dtypes.finfo(narrow).smallest_normal)
    assert figures["lowest"] == (-x).min()
    assert figures["highest"] == (-x).max()
    assert figures["overflow"] == np.sum(~finite)
    assert figures["underflow"] == np.sum((x != 0) & (rounded == 0))
    assert figures["subnormal"] == np.sum((np.abs(x) < smallest) & (rounded != -x) & (rounded != 0))
    ratios = []
    for i in range(3):
        signal = -x[i][finite[i]].astype(np.float64)
        ratios.append(10 * np.log10(np.sum(signal**2) / np.sum((signal - rounded[i][finite[i]]) ** 2)))
    assert figures["rounding_snr_db"] == pytest.approx(min(ratios), abs=1e-9)


def test_the_worst_sample_is_what_the_figures_say(graft, tmp_path):
    """Two values cancel only in the second sample; the first is so large that both together would be good enough."""
    nodes = [node("Add", "x far", "a"), node("Sub", "a far", "y")]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 32])], [("y", [1, 32])], [constant("far", 1000)])
    x = RANDOM.standard_normal((2, 32)).astype(np.float32) * np.float32([[2000], [1]])
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "o.onnx"
    result = quantize(graft, model, out, "--data", f"x={tmp_path / 'x.npy'}")
    assert result["plain_outputs"][0]["snr_db"] < 20
    assert "loss" in kept(result).values()
    assert result["met"]
    assert snr(run(model, x=x[1:])["y"], run(out, x=x[1:])["y"]) > 40
    # With the first sample alone, no node stays in f32.
    np.save(tmp_path / "x.npy", x[:1])
    assert kept(quantize(graft, model, out, "--data", f"x={tmp_path / 'x.npy'}")) == {}


def attention(path, scale, mask=None):
    nodes = [node("MatMul", "x wq", "q"), node("MatMul", "x wk", "k"), node("Transpose", "k", "kt", perm=[0, 2, 1])]
    nodes += [node("MatMul", "q kt", "raw"), node("Mul", "raw scale", "logits")]
    weights = [weight("wq", 32, 32), weight("wk", 32, 32), weight("wv", 32, 32), constant("scale", scale)]
    logits = "logits"
    if mask is not None:
        nodes += [node("Sub", "one mask", "hidden"), node("Mul", "hidden low", "shift")]
        nodes.append(node("Add", "logits shift", "masked"))
        weights += [constant("one", 1), constant("low", mask)]
        logits = "masked"
    nodes += [node("Softmax", logits, "p", axis=-1), node("MatMul", "x wv", "v"), node("MatMul", "p v", "y")]
    inputs = [("x", ["n", 10, 32])] + ([("mask", ["n", 1, 10])] if mask is not None else [])
    return save(path, nodes, inputs, [("y", ["n", 10, 32])], weights)


def test_a_softmax_with_large_logits(graft, tmp_path):
    x = RANDOM.standard_normal((4, 10, 32)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "o.onnx"
    # Up to 1e4: exp overflows, but Softmax subtracts the largest element first, so no node stays in f32.
    model = attention(tmp_path / "m.onnx", 300)
    assert 2e3 < np.abs(run_to(model, "logits", x=x)).max() < 65504
    result = quantize(graft, model, out, "--data", f"x={tmp_path / 'x.npy'}", "--limit", "20")
    assert "overflow" not in kept(result).values()
    assert np.isfinite(run(out, x=x)["y"]).all()
    # Beyond 65504: only the nodes that write such values, and the Softmax, stay in f32.
    model = attention(tmp_path / "m.onnx", 3e4)
    assert np.abs(run_to(model, "logits", x=x)).max() > 65504
    result = quantize(graft, model, out, "--data", f"x={tmp_path / 'x.npy'}", "--limit", "20")
    assert kept(result) == {"logits": "overflow", "p": "overflow"}
    assert result["plain_outputs"][0]["not_finite"] > 0
    assert snr(run(model, x=x)["y"], run(out, x=x)["y"]) > 20
    check_casts(out)


def test_a_mask_that_stands_for_minus_infinity_keeps_nothing(graft, tmp_path):
    model = attention(tmp_path / "m.onnx", 0.2, mask=-3.4e38)
    x = RANDOM.standard_normal((4, 10, 32)).astype(np.float32)
    mask = np.ones((4, 1, 10), np.float32)
    mask[:, :, 7:] = 0
    np.savez(tmp_path / "d.npz", x=x, mask=mask)
    out = tmp_path / "o.onnx"
    result = quantize(graft, model, out, "--data", tmp_path / "d.npz")
    assert kept(result) == {}
    assert result["adjusted_constants"] == [{"name": "low", "change": "-3.4e+38 became -65504"}]
    assert any("minus infinity" in note for note in result["notes"])
    assert snr(run(model, x=x, mask=mask)["y"], run(out, x=x, mask=mask)["y"]) > 50


def test_an_epsilon_that_would_become_zero(graft, tmp_path):
    """In x / max(|x|, 1e-12) a row of zeros yields zeros, and NaN where the epsilon is 0."""
    nodes = [node("ReduceL2", "x", "norm", axes=[-1]), node("Max", "norm tiny", "safe"), node("Div", "x safe", "y")]
    model = save(tmp_path / "m.onnx", nodes, [("x", [4, 8])], [("y", [4, 8])], [constant("tiny", 1e-12)])
    x = RANDOM.standard_normal((4, 8)).astype(np.float32)
    x[2] = 0
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "o.onnx"
    result = quantize(graft, model, out, "--data", f"x={tmp_path / 'x.npy'}")
    assert [c["name"] for c in result["adjusted_constants"]] == ["tiny"]
    assert kept(result) == {}
    assert (run(out, x=x)["y"][2] == 0).all()


def test_cancellation_is_found_by_trial(graft, tmp_path):
    """In (a + 3000) - (b + 3000) the sums do not overflow, but lose the significant digits."""
    nodes = [node("Relu", "x", "r"), node("Add", "x far", "a"), node("Add", "r far", "b"), node("Sub", "a b", "d")]
    nodes += [node("Tanh", "d", "t"), node("Sigmoid", "t", "y")]
    model = save(tmp_path / "m.onnx", nodes, [("x", [8, 32])], [("y", [8, 32])], [constant("far", 3000)])
    x = RANDOM.standard_normal((8, 32)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "o.onnx"
    result = quantize(graft, model, out, "--data", f"x={tmp_path / 'x.npy'}")
    assert result["plain_outputs"][0]["snr_db"] < 40
    assert kept(result) == {"a": "loss", "b": "loss", "d": "loss"}
    assert snr(run(model, x=x)["y"], run(out, x=x)["y"]) > 40


def test_positions_that_count_beyond_f16(graft, tmp_path):
    nodes = [node("Cast", "i", "position", to=F32), node("Mul", "position step", "angle"), node("Sin", "angle", "y")]
    model = save(
        tmp_path / "m.onnx", nodes, [("i", TensorProto.INT64, ["n"])], [("y", ["n"])], [constant("step", 0.01)]
    )
    i = np.arange(4001, 6000, 2)
    np.save(tmp_path / "i.npy", i)
    out = tmp_path / "o.onnx"
    result = quantize(graft, model, out, "--data", f"i={tmp_path / 'i.npy'}")
    assert kept(result)["position"] == kept(result)["angle"] == "integers"
    assert snr(run(model, i=i)["y"], run(out, i=i)["y"]) > 40


# ---- Form of the typed model


def test_digits_answer_the_same(graft, converted, digits, tmp_path):
    images, labels = digits
    for model in (DIGITS, converted):
        expected = run(model, image=images)["logits"]
        for precision, type_code in (("f16", F16), ("bf16", BF16)):
            out = tmp_path / f"o.{precision}.onnx"
            result = quantize(graft, model, out, "--data", f"image={DIGITS_DATA}:images", precision=precision)
            assert kept(result) == {}
            check_casts(out)
            assert {t for name, t in types_of(out).items() if name in ("image", "logits", "embedding")} == {F32}
            weights = [t for t in onnx.load(out).graph.initializer if t.data_type in (F32, F16, BF16)]
            assert {t.data_type for t in weights} == {type_code}
            assert result["weight_bytes"] < 0.51 * result["weight_bytes_before"] + 200
            if precision == "bf16":
                # ONNX Runtime has no bf16 on the CPU: Graft's engine rounds each tensor.
                (logits,) = [o for o in result["outputs"] if o["name"] == "logits"]
                assert logits["rows"] == len(labels) and logits["same_top"] >= len(labels) - 2
                continue
            found = run(out, image=images)["logits"]
            assert (found.argmax(1) == expected.argmax(1)).all()
            assert (found.argmax(1) == labels).mean() == (expected.argmax(1) == labels).mean()


@pytest.mark.parametrize("precision", ["f16", "bf16"])
@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_verify_calls_the_result_the_same(graft, converted, tmp_path, precision, layers):
    """The outputs are f32 with the rounding of f16: verify allows this difference, and its message says so."""
    out = tmp_path / "narrow.onnx"
    data = ["--data", f"image={DIGITS_DATA}:images"]
    quantize(graft, converted, out, *data, precision=precision)
    answer = graft("verify", converted, out, *data, *layers, code=0)
    assert f"since it is computed from {precision} in the candidate" in " ".join(answer.out.split())
    # The result is not within the tolerance of f32.
    assert graft("verify", converted, out, *data, *layers, "--rtol", "1e-4").code == 1


def test_verify_sees_what_f16_breaks(graft, tmp_path):
    """verify rounds internal tensors; otherwise the overflow between the casts would not show."""
    path = save(
        tmp_path / "m.onnx", [node("Mul", "x x", "a"), node("Sqrt", "a", "y")], [("x", ["n", 8])], [("y", ["n", 8])]
    )
    narrow = save(
        tmp_path / "narrow.onnx",
        [
            node("Cast", "x", "h", to=F16),
            node("Mul", "h h", "a"),
            node("Sqrt", "a", "r"),
            node("Cast", "r", "y", to=F32),
        ],
        [("x", ["n", 8])],
        [("y", ["n", 8])],
    )
    for largest, code in ((100, 0), (1000, 1)):
        x = np.linspace(1, largest, 8, dtype=np.float32).reshape(1, 8)
        half = x.astype(np.float16)
        with np.errstate(over="ignore"):
            assert np.isfinite(half * half).all() == (code == 0)
        np.save(tmp_path / "x.npy", x)
        for layers in ([], ["--layers"]):
            assert graft("verify", path, narrow, "--data", f"x={tmp_path / 'x.npy'}", *layers).code == code


def test_graft_operators_take_their_own_form(graft, converted, tmp_path):
    out = tmp_path / "o.onnx"
    result = quantize(graft, converted, out, "--data", f"image={DIGITS_DATA}:images")
    (norm,) = [n for n in onnx.load(out).graph.node if n.domain == "graft"]
    types = types_of_graft(graft, out)
    assert norm.op_type.startswith("L2Normalize")
    assert types[norm.output[0]] == "f16"
    assert {n["type"] for n in result["nodes"] if n["operator"].startswith("L2Normalize")} == {"f16"}


def types_of_graft(graft, path):
    """Returns the types of all tensors by Graft's inference, because ONNX's inference stops at functions."""
    result = graft("verify", path, path, "--layers", "--json").json
    return {layer["candidate"]: layer["candidate_type"].split("[")[0] for layer in result["layers"]}


def test_typed_io(graft, digits, tmp_path):
    out = tmp_path / "o.onnx"
    quantize(graft, DIGITS, out, "--data", f"image={DIGITS_DATA}:images", "--typed-io")
    types = types_of(out)
    assert {types[name] for name in ("image", "logits", "embedding")} == {F16}
    assert check_casts(out) == 0
    images, _ = digits
    assert (
        run(out, image=images.astype(np.float16))["logits"].argmax(1) == run(DIGITS, image=images)["logits"].argmax(1)
    ).all()


def test_keep_and_only(graft, tmp_path):
    out = tmp_path / "o.onnx"
    result = quantize(graft, DIGITS, out, "--keep", "/conv2/*", "--keep", "ReduceL2")
    assert {n["node"] for n in result["nodes"] if n["why"] == "asked"} == {"/conv2/Conv", "/ReduceL2"}
    check_casts(out)
    result = quantize(graft, DIGITS, out, "--only", "Conv", "--only", "LeakyRelu")
    # Flatten is defined for any type: after a LeakyRelu in f16 it is f16 too.
    assert {n["operator"] for n in result["nodes"] if n["type"] == "f16"} == {"Conv", "LeakyRelu", "Flatten"}
    check_casts(out)


def test_a_mover_between_kept_nodes_has_no_casts(graft, tmp_path):
    nodes = [node("Exp", "x", "e"), node("Transpose", "e", "t", perm=[1, 0]), node("Reshape", "t size", "r")]
    nodes += [node("Log", "r", "l"), node("MatMul", "l w", "y")]
    weights = [constant("size", [4, 4], np.int64), weight("w", 4, 4)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [4, 4])], [("y", [4, 4])], weights)
    out = tmp_path / "o.onnx"
    quantize(graft, model, out, "--keep", "Exp", "--keep", "Log")
    assert check_casts(out) == 2  # before and after the product
    assert types_of(out)["r"] == F32


def test_branches_and_quantized_parts_stay(graft, tmp_path):
    then = subgraph([node("Neg", "r", "a")], [], [("a", [2, 4])])
    other = subgraph([node("Abs", "r", "b")], [], [("b", [2, 4])])
    nodes = [node("Relu", "x", "r"), node("If", "c", "i", then_branch=then, else_branch=other)]
    nodes += [node("QuantizeLinear", "i s z", "q"), node("DequantizeLinear", "q s z", "d"), node("MatMul", "d w", "m")]
    nodes.append(node("Tanh", "m", "y"))
    weights = [constant("s", 0.05), constant("z", 0, np.int8), weight("w", 4, 3)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 4]), ("c", TensorProto.BOOL, [])], [("y", [2, 3])], weights)
    out = tmp_path / "o.onnx"
    result = quantize(graft, model, out)
    load(out)
    forms = {n["output"]: n["type"] for n in result["nodes"]}
    assert forms == {"r": "f16", "i": "f32", "q": "f32", "d": "f32", "m": "f32", "y": "f16"}
    x = RANDOM.standard_normal((2, 4)).astype(np.float32)
    no = np.array(False)
    assert snr(run(model, x=x, c=no)["y"], run(out, x=x, c=no)["y"]) > 40


def test_resize_keeps_its_scales_and_old_models_are_raised(graft, tmp_path):
    nodes = [node("BatchNormalization", "x g b m v", "n"), node("Upsample", "n s", "y", mode="nearest")]
    weights = [constant(k, RANDOM.uniform(0.5, 1, 3)) for k in "gbmv"] + [constant("s", [1, 1, 2, 2])]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 3, 4, 4])], [("y", [1, 3, 8, 8])], weights, opset=9)
    for precision in ("f16", "bf16"):
        out = tmp_path / "o.onnx"
        quantize(graft, model, out, precision=precision)
        load(out)
        check_casts(out)
    assert F32 in {t.data_type for t in onnx.load(out).graph.initializer}


def test_the_table_of_schemas_is_onnx_s():
    """The table equals the one that is generated from the schemas of the installed onnx."""
    check = [sys.executable, SOURCE / "tools" / "make_schema.py", "--check"]
    made = subprocess.run(check, check=False, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    if "another version" in made.stdout:
        pytest.skip("another version of onnx")


# ---- TensorRT


LAYERS = """
import json, sys
import tensorrt_rtx as trt

class Log(trt.ILogger):
    def __init__(self):
        super().__init__()
        self.messages = []
    def log(self, severity, message):
        self.messages.append(message)

log = Log()
builder = trt.Builder(log)
network = builder.create_network(0)
parser = trt.OnnxParser(network, log)
assert parser.parse_from_file(sys.argv[1]), parser.get_error(0).desc()
config = builder.create_builder_config()
config.num_compute_capabilities = 1
config.set_compute_capability(trt.ComputeCapability.SM89, 0)
config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
profile = builder.create_optimization_profile()
for i in range(network.num_inputs):
    x = network.get_input(i)
    if -1 in x.shape:
        profile.set_shape(x.name, *[[n if d == -1 else d for d in x.shape] for n in (1, 8, 16)])
config.add_optimization_profile(profile)
assert builder.build_serialized_network(network, config) is not None
layers = [network.get_layer(i) for i in range(network.num_layers)]
print(json.dumps({
    "layers": [[l.metadata, str(l.type).split(".")[-1], [str(l.get_output(k).dtype) for k in range(l.num_outputs)]]
               for l in layers],
    "kernels": [m for m in log.messages if m.startswith("Layers:")],
}))
"""


def engine_of(path):
    pytest.importorskip("tensorrt_rtx")
    done = run_command(sys.executable, "-c", LAYERS, path, code=0)
    return json.loads(done.stdout.splitlines()[-1])


def islands(engine):
    """Returns the ONNX nodes whose layers compute in f32."""
    found = set()
    for metadata, kind, types in engine["layers"]:
        if "DataType.FLOAT" in types and kind not in ("CAST", "CONSTANT", "SHUFFLE"):
            found.add(metadata.split("[ONNX Layer: ")[-1].rstrip("]"))
    return found


def test_tensorrt_builds_them_without_other_islands(graft, tmp_path):
    out = tmp_path / "o.onnx"
    for precision in ("f16", "bf16"):
        quantize(graft, DIGITS, out, "--data", f"image={DIGITS_DATA}:images", precision=precision)
        engine = engine_of(out)
        # TensorRT's parser itself builds ReduceL2 in f32.
        assert islands(engine) <= {"/ReduceL2"}
        assert len(engine["kernels"]) == 1
    model = layer_norm_in_pieces(tmp_path / "m.onnx", 1e3)
    np.savez(tmp_path / "d.npz", x=RANDOM.standard_normal((8, 64)).astype(np.float32))
    result = quantize(graft, model, out, "--data", tmp_path / "d.npz")
    announced = {n["node"] for n in result["nodes"] if n["type"] == "f32"}
    found = islands(engine_of(out))
    assert found == announced, (found, announced)


# Operators that TensorRT does not build in a narrow type, on `x` [1, 3, 8, 8]: inputs and attributes.
REFUSED = {
    "ConvTranspose": ("x w", {}),
    "GRU": ("s gw gr", {"hidden_size": 5}),
    "GlobalLpPool": ("x", {}),
    "HardSwish": ("x", {}),
    "LpNormalization": ("x", {"axis": 1}),
    "LpPool": ("x", {"kernel_shape": [2, 2]}),
    "MeanVarianceNormalization": ("x", {"axes": [0, 2, 3]}),
    "Mish": ("x", {}),
}
# ONNX defines these in no narrow type in opset 22.
NOT_OF_ONNX = {"Celu", "OneHot", "Scatter", "Shrink", "Upsample"}
# The rule for LSTM was measured with sequence lengths, which test_recurrent_layers_with_lengths_stay_in_f32 covers.
LSTM_WITH_LENGTHS = {"LSTM"}


def test_the_cases_of_refused_types_are_those_of_the_table():
    measured = json.loads((SOURCE / "src" / "inspect" / "tensorrt_measured.json").read_text())
    newest = list(measured.values())[-1]["types"]
    lacking = {
        op
        for op, of in newest.items()
        if "f32" in of["types"].split() and not {"f16", "bf16"} <= {*of["types"].split()}
    }
    assert lacking - NOT_OF_ONNX - LSTM_WITH_LENGTHS == REFUSED.keys() - {"GlobalLpPool"}


def network_of_refused_types(path):
    """Saves a network with each of these operators next to a Tanh, which TensorRT builds in every type."""
    random = np.random.default_rng(4)
    shapes = {"w": [3, 2, 3, 3], "gw": [1, 15, 8], "gr": [1, 15, 5]}
    weights = [constant(name, random.standard_normal(shape) / 4) for name, shape in shapes.items()]
    weights.append(constant("shape", [2, 12, 8], np.int64))
    nodes = [node("Reshape", "x shape", "s")]
    outputs = []
    for op, (inputs, attributes) in REFUSED.items():
        nodes += [node(op, inputs, op, **attributes), node("Tanh", op, f"{op}_t")]
        outputs.append((f"{op}_t", None))
    return save(path, nodes, [("x", [1, 3, 8, 8])], outputs, weights, opset=22)


@pytest.mark.parametrize(("precision", "narrow"), [("f16", F16), ("bf16", BF16)])
def test_what_tensorrt_does_not_build_in_a_type_stays_in_f32(graft, tmp_path, precision, narrow):
    model = network_of_refused_types(tmp_path / "m.onnx")
    out = tmp_path / "o.onnx"
    result = quantize(graft, model, out, precision=precision)
    of = {n["operator"]: n for n in result["nodes"]}
    in_f32 = {op for op in REFUSED if of[op]["type"] == "f32"}
    assert in_f32 == ({"MeanVarianceNormalization"} if precision == "f16" else REFUSED.keys())
    assert of["Tanh"]["type"] == precision
    for op in in_f32:
        assert of[op]["why"] == "form"
        assert f"TensorRT does not build it in {precision}" in of[op]["reason"]
    types = types_of(out)
    assert all(types[n.input[0]] == narrow for n in load(out).graph.node if n.op_type == "Tanh")
    graft("build", out, "-o", tmp_path / "o.engine", "--target", "sm120", code=0)
    words = graft("quantize", model, "-o", out, "--precision", precision)
    assert (
        "TensorRT builds MeanVarianceNormalization in f32, f64, but not in this type (measured in TensorRT-RTX"
        in " ".join(words.out.split())
    )


def test_lstm_without_lengths_takes_the_type(graft, tmp_path):
    random = np.random.default_rng(4)
    shapes = {"w": [1, 20, 4], "r": [1, 20, 5]}
    weights = [constant(name, random.standard_normal(shape) / 4) for name, shape in shapes.items()]
    nodes = [node("LSTM", "x w r", "y", hidden_size=5)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [6, 2, 4])], [("y", [6, 1, 2, 5])], weights)
    for precision in ("f16", "bf16"):
        result = quantize(graft, model, tmp_path / "o.onnx", precision=precision)
        assert [n["type"] for n in result["nodes"]] == [precision]
        graft("build", tmp_path / "o.onnx", "-o", tmp_path / "o.engine", "--target", "sm120", code=0)


# ---- Types that follow an input


@pytest.mark.parametrize("precision", ["f16", "bf16"])
@pytest.mark.parametrize("dtype", [None, F32, TensorProto.INT64])
def test_a_type_that_follows_the_input_is_written_as_dtype(graft, tmp_path, precision, dtype):
    """Tests all operators of ONNX whose output has the input's type unless `dtype` sets another: those whose
    attribute has no default."""
    following = {
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if schema.domain == "" and "dtype" in schema.attributes and schema.inputs
        if not schema.attributes["dtype"].default_value.type
    }
    attributes = {} if dtype is None else {"dtype": dtype}
    if dtype == TensorProto.INT64:
        following = {"EyeLike"}
    nodes, outputs = [node("Sigmoid", "x", "p")], []
    for op in sorted(following):
        nodes += [
            node(op, "p", op, **attributes),
            node("Cast", op, f"{op}_f", to=F32),
            node("Mul", f"{op}_f p", f"{op}_y"),
        ]
        outputs.append((f"{op}_y", [4, 4]))
    model = save(tmp_path / "m.onnx", nodes, [("x", [4, 4])], outputs, opset=18)
    out = tmp_path / "o.onnx"
    # Random numbers are not compared, so the exit code is 1.
    quantize(graft, model, out, precision=precision, code=0 if dtype == TensorProto.INT64 else 1)
    load(out)
    types = types_of(out)
    for n in onnx.load(out).graph.node:
        if n.op_type in following:
            assert types[n.output[0]] == {a.name: a.i for a in n.attribute}.get("dtype", types[n.input[0]])
    if precision == "f16":  # ONNX Runtime implements few operators in bf16
        assert run(out, x=np.zeros((4, 4), np.float32))


def test_random_numbers_are_not_judged(graft, tmp_path):
    """ONNX Runtime draws other values in each run of the f32 network alone."""
    nodes = [node("Dropout", "x ratio training", "y"), node("Sigmoid", "x", "z")]
    constants = [constant("ratio", 0.5), constant("training", True, bool)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [4, 4])], [("y", [4, 4]), ("z", [4, 4])], constants)
    ones = np.ones((4, 4), np.float32)
    assert any(not np.array_equal(*(run(model, x=ones)["y"] for _ in range(2))) for _ in range(9))
    answer = graft("quantize", model, "-o", tmp_path / "o.onnx", "--precision", "f16")
    why = "it depends on the random numbers of node 'y' (Dropout)"
    assert answer.code == 1
    assert f"y not judged: {why}" in " ".join(answer.out.split())
    assert "SNR" in answer.out and "it loses" not in answer.out
    error = " ".join(answer.err.split())
    assert f"output 'y' was not compared: {why}" in error
    assert "keeping more nodes" not in error and "--layers" not in error
    result = quantize(graft, model, tmp_path / "o.onnx", code=1)
    assert [n["type"] for n in result["nodes"]] == ["f16", "f16"]


@pytest.mark.parametrize(("precision", "narrow"), [("f16", F16), ("bf16", BF16)])
@pytest.mark.parametrize("attributes", [{}, {"dtype": F32}])
def test_an_eye_takes_the_type(graft, tmp_path, precision, narrow, attributes):
    nodes = [node("Sigmoid", "x", "p"), node("EyeLike", "p", "e", **attributes), node("Add", "e p", "y")]
    model = save(tmp_path / "m.onnx", nodes, [("x", [4, 4])], [("y", [4, 4])], opset=18)
    out = tmp_path / "o.onnx"
    result = quantize(graft, model, out, precision=precision)
    assert [n["type"] for n in result["nodes"]] == [precision] * 3
    assert {types_of(out)[name] for name in ("p", "e")} == {narrow}


def test_operators_of_a_raised_set_run(graft, tmp_path):
    """bf16 needs opset 22, in which ONNX Runtime implements neither of these operators."""
    filters = constant("w", RANDOM_OF_ITS_OWN.standard_normal((4, 3, 3, 3)) / 5)
    weights = [filters, constant("rois", [[0, 0, 5, 5], [1, 1, 7, 6]]), constant("batch", [0, 0], np.int64)]
    nodes = [
        node("Conv", "x w", "c"),
        node("RoiAlign", "c rois batch", "r", mode="max", output_height=2, output_width=2),
        node("GlobalLpPool", "r", "g"),
    ]
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [("x", [1, 3, 10, 10])],
        [("r", [2, 4, 2, 2]), ("g", [2, 4, 1, 1])],
        weights,
        opset=18,
    )
    result = quantize(graft, model, tmp_path / "o.onnx", precision="bf16")
    assert result["check"]["ran_in"].startswith("ONNX Runtime")
    assert {n["operator"]: n["type"] for n in result["nodes"]}["Conv"] == "bf16"
    assert load(tmp_path / "o.onnx").opset_import[0].version == 22


# ---- Messages


def test_nodes_that_had_the_type_before_are_counted(graft, tmp_path):
    half = {"w": RANDOM_OF_ITS_OWN.standard_normal((4, 4)).astype(np.float16)}
    nodes = [node("MatMul", "x w", "m"), node("Tanh", "m", "y")]
    model = save(tmp_path / "m.onnx", nodes, [("x", F16, [2, 4])], [("y", F16, [2, 4])], half)
    words = graft("quantize", model, "-o", tmp_path / "o.onnx", "--precision", "f16")
    assert "2 nodes in f16 (2 of them before), 0 kept in f32, 0 casts" in words.out, words.out
    assert [n["type"] for n in quantize(graft, model, tmp_path / "o.onnx")["nodes"]] == ["f16", "f16"]
    words = graft("quantize", model, "-o", tmp_path / "o.onnx", "--precision", "bf16")
    assert "0 nodes in bf16, 0 kept in f32, 2 in f16 as before, 0 casts" in words.out, words.out


# ---- Wrong use


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--precision", "f9"], ["--precision", "f9", "bf16"]),
        (["--precision", "f16", "--keep", "/conv9/Conv"], ["--keep", "/conv9/Conv", "did you mean"]),
        (["--precision", "f16", "--only", "Convolutions"], ["--only", "Convolutions"]),
        (["--precision", "f16", "--limit", "-3"], ["--limit"]),
        (["--precision", "f16", "--data", "nothing.npz"], ["nothing.npz"]),
        (["--precision", "f16", "--data", f"picture={DIGITS_DATA}:images"], ["picture"]),
        (["--precision", "f16", "--input", "image:1x1x8"], ["image"]),
        (["--precision", "f16", "--input", "image:1x1x8x8", "--data", f"image={DIGITS_DATA}:images"], ["--input"]),
        ([], ["--precision"]),
    ],
)
def test_wrong_use_is_said(graft, tmp_path, arguments, words):
    answer = graft("quantize", DIGITS, "-o", tmp_path / "o.onnx", *arguments, code=2)
    for word in words:
        assert word in answer.err
    assert not list(tmp_path.iterdir())


def test_other_formats_are_converted_first(graft, tmp_path):
    answer = graft("quantize", SOURCE / "examples/digits/digits.pb", "-o", tmp_path / "o.onnx", "--precision", "f16")
    assert answer.code == 2
    assert "graft convert" in answer.err
    answer = graft("quantize", DIGITS, "-o", DIGITS, "--precision", "f16")
    assert answer.code == 2 and "the input model" in answer.err


def test_a_limit_that_cannot_be_met(graft, tmp_path):
    result = quantize(graft, DIGITS, tmp_path / "o.onnx", "--limit", "140", code=1)
    assert result["met"] is False


def test_a_chain_of_numbers_that_vanish_in_f16_is_kept_whole(graft, tmp_path):
    """In f16 the first number is 0, so later nodes show no further loss; yet each of them needs f32."""
    nodes = [node("MatMul", "x w", "m"), node("Mul", "m small", "t0"), node("Mul", "t0 small", "t1")]
    nodes += [node("Tanh", f"t{i}", f"t{i + 1}") for i in range(1, 6)]
    nodes += [node("Mul", "t6 large", "u"), node("Mul", "u large", "v"), node("MatMul", "v w", "y")]
    weights = [weight("w", 32, 32), constant("small", 1e-5), constant("large", 6e4)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [4, 32])], [("y", [4, 32])], weights)
    result = quantize(graft, model, tmp_path / "o.onnx")
    assert result["met"] is True
    assert {"t1", "t3", "t6"} <= kept(result).keys()
    assert any("too small for f16" in (entry["reason"] or "") for entry in result["nodes"])


@pytest.mark.parametrize("layers", [6, 24])
def test_a_limit_that_nothing_meets_takes_as_many_trials_for_any_network(graft, tmp_path, layers):
    """Each trial compiles and runs the whole network, so their number must not grow with the network."""
    nodes, weights = [], []
    for i in range(layers):
        weights.append(weight(f"w{i}", 32, 32))
        nodes.append(node("MatMul", f"{'x' if i == 0 else f't{i - 1}'} w{i}", f"m{i}"))
        nodes.append(node("Tanh", f"m{i}", f"t{i}"))
    model = save(tmp_path / "m.onnx", nodes, [("x", [4, 32])], [(f"t{layers - 1}", None)], weights)
    result = quantize(graft, model, tmp_path / "o.onnx", "--limit", "200", code=1)
    assert result["met"] is False
    assert result["trials"] <= 8


def test_scores_that_a_node_chooses_by_stay_in_f32(graft, tmp_path):
    """f16 has few values just below 1, so the order of such scores is lost, and other boxes are selected."""
    nodes = [
        helper.make_node("Add", ["s", "far"], ["logits"]),
        helper.make_node("Sigmoid", ["logits"], ["scores"], name="scores"),
        helper.make_node("TopK", ["scores", "k"], ["best", "places"], name="choose"),
        helper.make_node("Gather", ["boxes", "places"], ["y"], axis=0),
    ]
    weights = {"far": np.float32(7), "k": np.array([10])}
    model = save(tmp_path / "m.onnx", nodes, [("s", [50]), ("boxes", [50, 4])], [("y", [10, 4])], weights)
    answer = graft("quantize", model, "-o", tmp_path / "o.onnx", "--precision", "f16", "--json", code=0)
    kept = {node["node"]: node for node in answer.json["nodes"] if node["why"] == "loss"}
    assert {"scores", "choose"} <= kept.keys(), kept


def test_scores_of_all_heads_that_a_node_chooses_by_stay_in_f32(graft, tmp_path):
    """The scores of both heads are concatenated before TopK reads them."""
    nodes = [
        helper.make_node("Add", ["a", "far"], ["a_logits"]),
        helper.make_node("Sigmoid", ["a_logits"], ["a_scores"], name="first"),
        helper.make_node("Add", ["b", "far"], ["b_logits"]),
        helper.make_node("Sigmoid", ["b_logits"], ["b_scores"], name="second"),
        helper.make_node("Concat", ["a_scores", "b_scores"], ["scores"], axis=0),
        helper.make_node("TopK", ["scores", "k"], ["best", "places"], name="choose"),
        helper.make_node("Gather", ["boxes", "places"], ["y"], axis=0),
    ]
    weights = {"far": np.float32(7), "k": np.array([10])}
    inputs = [("a", [50]), ("b", [50]), ("boxes", [100, 4])]
    model = save(tmp_path / "m.onnx", nodes, inputs, [("y", [10, 4])], weights)
    answer = graft("quantize", model, "-o", tmp_path / "o.onnx", "--precision", "f16", "--json", code=0)
    kept = {node["node"] for node in answer.json["nodes"] if node["type"] == "f32"}
    assert {"first", "second", "choose"} <= kept, kept


def test_what_computes_the_boxes_before_they_are_moved_stays_in_f32(graft, tmp_path):
    """Four nodes that only move elements are between the Relu and the node that chooses boxes."""
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"], name="conv", strides=[4, 4]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Reshape", ["r", "size"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["columns"], perm=[0, 2, 1]),
        helper.make_node("Split", ["columns"], ["corners", "other"], axis=2, num_outputs=2),
        helper.make_node("Identity", ["corners"], ["boxes"]),
        helper.make_node("Slice", ["rows", "four", "eight", "one"], ["logits"]),
        helper.make_node("Sigmoid", ["logits"], ["scores"], name="sigmoid"),
        helper.make_node(
            "NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"], name="choose"
        ),
    ]
    weights = {
        name: np.array(values)
        for name, values in {
            "w": (np.random.default_rng(2).normal(size=(8, 3, 3, 3)) * 0.2).astype(np.float32),
            "size": [1, 8, -1],
            "four": [4],
            "eight": [8],
            "one": [1],
            "most": np.int64(20),
            "overlap": np.float32(0.5),
            "least": np.float32(0.1),
        }.items()
    }
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [("image", [1, 3, 64, 64])],
        [("chosen", TensorProto.INT64, None)],
        weights,
        opset=18,
    )
    command = ("quantize", model, "-o", tmp_path / "o.onnx", "--precision", "f16", "--json")
    chosen = ("conv", "relu", "sigmoid", "choose")
    # The boxes and scores are judged, and not the order of what is chosen.
    types = {node["node"]: node["type"] for node in graft(*command, code=0).json["nodes"]}
    assert "f16" in {types[name] for name in chosen}, types
    types = {node["node"]: node["type"] for node in graft(*command, "--limit", "90", code=0).json["nodes"]}
    assert {types[name] for name in chosen} == {"f32"}, types


@pytest.mark.parametrize("precision", ["f16", "bf16", "int8"])
def test_a_network_in_f64_is_said_to_stay_so(graft, tmp_path, precision):
    """Only f32 becomes narrower, so the result is the network as it was."""
    double = TensorProto.DOUBLE
    nodes = [node("MatMul", "x w", "m"), node("Tanh", "m", "y")]
    model = save(tmp_path / "m.onnx", nodes, [("x", double, [2, 3])], [("y", double, [2, 3])], {"w": np.eye(3)})
    np.savez(tmp_path / "x.npz", x=RANDOM_OF_ITS_OWN.standard_normal((2, 3)))
    out = tmp_path / "out.onnx"
    data = ["--data", tmp_path / "x.npz"] if precision == "int8" else []
    answer = graft("quantize", model, "-o", out, "--precision", precision, *data, code=0)
    text = " ".join(answer.out.split())
    assert f"note: 2 of 2 nodes stay in f64, because only f32 becomes {precision}" in text
    assert "export the network in f32" in text
    assert (", 2 in f64 as before" in text) == (precision != "int8")
    assert types_of(out)["m"] == double
    mixed = save(
        tmp_path / "mixed.onnx",
        [
            node("Cast", "x", "f", to=F32),
            node("Tanh", "f", "t"),
            node("Cast", "t", "d", to=double),
            node("Abs", "d", "y"),
        ],
        [("x", double, [2, 3])],
        [("y", double, [2, 3])],
    )
    if precision != "int8":
        [note] = quantize(graft, mixed, out, precision=precision)["notes"]
        assert note.startswith("1 of 4 nodes stays in f64, because")
        words = graft("quantize", mixed, "-o", out, "--precision", precision).out
        assert ", 1 in f64 as before, " in words, words


def test_the_nodes_in_f32_are_those_that_are_listed(graft, tmp_path):
    """Greater computes no f32, and stays in f32 because a Cast before it would be the only node in f16."""
    nodes, limit = [node("Greater", "x limit", "y")], [constant("limit", 0.5)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 8])], [("y", TensorProto.BOOL, [2, 8])], limit)
    out = tmp_path / "o.onnx"
    words = graft("quantize", model, "-o", out, "--precision", "f16", "--explain").out
    listed = sum(line.startswith("  f32  ") for line in words.splitlines())
    assert listed == 1
    assert f"0 nodes in f16, {listed} kept in f32, 0 casts" in words, words
    assert onnx.load(out).graph.input[0].type.tensor_type.elem_type == F32


def test_nodes_behind_a_sequence_take_the_type(graft, tmp_path):
    nodes = [
        node("Relu", "x", "a"),
        node("SequenceConstruct", "x a", "s"),
        node("SequenceAt", "s i", "c"),
        node("MatMul", "c w", "y"),
    ]
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [("x", ["n", 8]), ("i", TensorProto.INT64, [])],
        [("y", ["n", 4])],
        [weight("w", 8, 4)],
    )
    result = quantize(graft, model, tmp_path / "q.onnx")
    assert {n["output"]: n["type"] for n in result["nodes"]}["y"] == "f16"
    typed = onnx.shape_inference.infer_shapes(onnx.load(tmp_path / "q.onnx"), check_type=True, strict_mode=True)
    [product] = [n for n in typed.graph.node if n.op_type == "MatMul"]
    kinds = {v.name: v.type.tensor_type.elem_type for v in typed.graph.value_info}
    assert kinds[product.output[0]] == F16
