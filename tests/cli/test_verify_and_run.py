# graft verify and graft run, against ONNX Runtime.
import re

import numpy as np
import pytest
from conftest import DIGITS, DIGITS_DATA
from onnx import TensorProto, helper, numpy_helper
from onnx_models import run_onnx, save, session_of


@pytest.mark.parametrize("kernels", ["functions", "own"])
def test_verify_agrees_on_the_converted_model(graft, converted, kernels):
    answer = graft("verify", DIGITS, converted, "--kernels", kernels, "--json", code=0)
    assert answer.json["equal"]
    assert {o["reference_name"] for o in answer.json["outputs"]} == {"logits", "embedding"}
    assert answer.json["runs"] == 3


def test_verify_on_real_data(graft, converted):
    answer = graft("verify", DIGITS, converted, "--data", f"image={DIGITS_DATA}:images", code=0)
    assert "450" in answer.out


def test_verify_finds_one_changed_weight(graft, changed):
    answer = graft("verify", DIGITS, changed, "--json", code=1)
    by_name = {o["reference_name"]: o for o in answer.json["outputs"]}
    assert by_name["embedding"]["equal"]
    assert not by_name["logits"]["equal"]
    assert by_name["logits"]["first_index"][1] == 0  # the changed column comes first
    text = graft("verify", DIGITS, changed).out
    assert "not the same" in text
    assert "differs" in text


def test_verify_obeys_tolerances(graft, changed):
    assert graft("verify", DIGITS, changed, "--atol", "100").code == 0
    assert graft("verify", DIGITS, changed, "--atol", "1e-9", "--rtol", "1e-9").code == 1


def test_layers_say_of_the_outputs_what_verify_says(graft, int8):
    """Only one of the three runs differs, and it is not the first."""
    plain = graft("verify", DIGITS, int8)
    assert graft("verify", DIGITS, int8, "--layers").code == plain.code


@pytest.fixture
def int8(graft, tmp_path):
    path = tmp_path / "digits.int8.onnx"
    data = f"image={DIGITS_DATA}:images"
    graft("quantize", DIGITS, "-o", path, "--precision", "int8", "--data", data, code=0)
    return path


def test_verify_of_int8(graft, int8):
    """The figures compare the outputs of `graft run` with ONNX Runtime's outputs of the f32 network."""
    with np.load(DIGITS_DATA) as archive:
        images = archive["images"]
    expected = run_onnx(DIGITS, {"image": images})
    data = f"image={DIGITS_DATA}:images"
    answer = graft("verify", DIGITS, int8, "--data", data, "--json", code=0)
    folder = int8.parent
    graft("run", int8, "-i", data, "-o", folder / "int8.npz")
    with np.load(folder / "int8.npz") as found:
        for output in answer.json["outputs"]:
            right, wrong = expected[output["reference_name"]], found[output["reference_name"]]
            snr = 10 * np.log10((right.astype("f8") ** 2).sum() / ((right.astype("f8") - wrong) ** 2).sum())
            assert output["snr_db"] == pytest.approx(snr, abs=1e-3)
            is_classifier = output["reference_name"] == "logits"  # The other output is an embedding.
            assert output["rows"] == (len(images) if is_classifier else 0)
            if is_classifier:
                assert output["same_top"] == (right.argmax(axis=1) == wrong.argmax(axis=1)).sum()
            assert output["tolerance"]["snr_db"] == 20
            assert snr > 20
    text = graft("verify", DIGITS, int8, "--data", data).out
    assert re.search(r"top-1 agreement in \d+ of \d+ rows", " ".join(text.split()))
    assert "allowed: an SNR of 20 dB, since the candidate rounds to 8 bits" in text
    graft("verify", DIGITS, int8, "--data", data, "--layers", "--json", code=0)
    assert graft("verify", DIGITS, int8, "--data", data, "--snr", "80").code == 1
    assert graft("verify", DIGITS, int8, "--data", data, "--layers", "--snr", "80").code == 1
    assert graft("verify", DIGITS, int8, "--data", data, "--atol", "1e-6").code == 1


def test_verify_with_given_shape_and_seeds(graft, converted):
    answer = graft("verify", DIGITS, converted, "--input", "image:5x1x8x8", "--seeds", "2", "--json", code=0)
    assert answer.json["runs"] == 2
    assert "5" in answer.json["inputs"][0]


def test_run_agrees_with_onnx_runtime(graft, tmp_path, converted, digits):
    images, _ = digits
    expected = run_onnx(DIGITS, {"image": images})
    for model, kernels in ((DIGITS, "functions"), (converted, "functions"), (converted, "own")):
        output = tmp_path / "out.npz"
        graft("run", model, "--input", f"image={DIGITS_DATA}:images", "-o", output, "--kernels", kernels, code=0)
        found = np.load(output)
        assert set(found.files) == set(expected)
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-4)


def test_run_takes_inputs_in_every_form(graft, tmp_path, digits):
    images = digits[0][:3]
    np.save(tmp_path / "image.npy", images)
    np.savez(tmp_path / "one.npz", whatever=images)
    np.savez(tmp_path / "named.npz", image=images)
    np.savez_compressed(tmp_path / "several.npz", other=images[:1], image=images)
    results = []
    for text in ("image={}/image.npy", "image={}/one.npz", "{}/named.npz", "image={}/several.npz:image"):
        output = tmp_path / "out.npz"
        answer = graft("run", DIGITS, "--input", text.format(tmp_path), "-o", output, "--json", code=0)
        assert {o["name"]: o["shape"] for o in answer.json["outputs"]} == {"logits": [3, 10], "embedding": [3, 32]}
        results.append(np.load(output)["logits"])
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize(
    ("array", "named"),
    [
        (np.zeros((2, 1, 8, 9), np.float32), "image"),
        (np.zeros((2, 8, 8), np.float32), "image"),
        (np.zeros((2, 1, 8, 8), np.int64), "image"),
    ],
)
def test_run_refuses_what_does_not_fit_the_input(graft, tmp_path, array, named):
    np.save(tmp_path / "x.npy", array)
    answer = graft("run", DIGITS, "--input", f"image={tmp_path}/x.npy", "-o", tmp_path / "out.npz", code=2)
    assert named in answer.err
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize(
    "text", ["image", "image=", "=x.npy", "image=nowhere.npy", "other={data}:images", "image={data}:nope"]
)
def test_run_refuses_input_texts(graft, tmp_path, text):
    answer = graft("run", DIGITS, "--input", text.format(data=DIGITS_DATA), "-o", tmp_path / "out.npz", code=2)
    assert answer.err.startswith("error: ")
    assert not list(tmp_path.iterdir())


def test_what_was_not_run_is_not_called_the_same(graft, tmp_path):
    save(tmp_path / "a.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", [2, 3])], [("y", [2, 3])])
    save(tmp_path / "b.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", [2, 4])], [("y", [2, 4])])
    answer = graft("verify", tmp_path / "a.onnx", tmp_path / "b.onnx", code=1)
    assert "not run" in answer.out
    assert "same  " not in answer.out
    assert "no difference" not in answer.out


def test_a_batch_that_the_exporter_froze_needs_no_option(graft, tmp_path):
    """The default synthetic batch of 2 does not run; a batch of 1 does, and every command finds it and reports it."""
    node = helper.make_node("Reshape", ["x", "s"], ["y"], name="view")
    frozen = save(tmp_path / "frozen.onnx", [node], [("x", ["n", 8, 8])], [("y", None)], {"s": np.array([1, 64])})
    converted = tmp_path / "frozen.g.onnx"
    assert graft("convert", frozen, "-o", converted).code == 0
    why = "runs with a first dimension of 1 instead of 2: node 'view' (Reshape) has a constant shape"
    for command in (
        ["verify", frozen, converted],
        ["verify", "--layers", frozen, converted],
        ["bench", frozen],
        ["quantize", frozen, "--precision", "f16", "-o", tmp_path / "f16.onnx"],
    ):
        answer = graft(*command, code=0)
        assert why in " ".join(answer.out.split()), command
    assert why in graft("verify", frozen, converted, "--json").json["why_sizes"]


def test_figures_of_several_runs_say_of_which_they_are(graft, tmp_path):
    """The worst run by tolerance does not always have the largest difference."""
    constant = numpy_helper.from_array(np.array([3], np.float32), "c")
    wide = save(
        tmp_path / "wide.onnx", [helper.make_node("Div", ["x", "c"], ["y"])], [("x", [2])], [("y", [2])], [constant]
    )
    nodes = [
        helper.make_node("Cast", ["x"], ["half"], to=10),
        helper.make_node("Cast", ["half"], ["full"], to=1),
        helper.make_node("Div", ["full", "c"], ["y"]),
    ]
    narrow = save(tmp_path / "narrow.onnx", nodes, [("x", [2])], [("y", [2])], [constant])
    # The first sample has the larger relative error, the second the larger absolute error.
    x = np.array([[1 + 2**-11, 1], [1000.3, 1000]], np.float32)
    np.savez(tmp_path / "x.npz", x=x.reshape(4))
    answer = graft("verify", wide, narrow, "--data", tmp_path / "x.npz", "--json", code=0)
    assert answer.json["runs"] == 2
    output = answer.json["outputs"][0]
    errors = np.abs(x - x.astype(np.float16).astype(np.float32)) / 3
    assert output["largest_error"] == pytest.approx(errors.max(), rel=1e-3)
    assert output["max_absolute"] == pytest.approx(errors[output["worst_run"]].max(), rel=1e-3)
    text = graft("verify", wide, narrow, "--data", tmp_path / "x.npz").out
    assert f"worst run ({output['worst_run'] + 1}): largest difference" in text
    assert "all 2 runs: SNR" in text


def test_a_model_without_inputs_runs(graft, tmp_path):
    constants = {"c": np.array([-1, 2], np.float32)}
    model = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["c"], ["y"])], [], [("y", [2])], constants)
    graft("run", model, "-o", tmp_path / "out.npz", code=0)
    [expected] = session_of(model).run(None, {})
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], expected)


def test_run_names_the_inputs_that_are_missing(graft, tmp_path):
    answer = graft("run", DIGITS, "-o", tmp_path / "out.npz", code=2)
    assert "input 'image'" in answer.err and "has no value" in answer.err
    assert not list(tmp_path.iterdir())


def integer(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.INT64, shape)


def numbers(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def sizes_from_inputs(folder, name):
    """Saves a network that computes sizes from the integers of an input."""
    nodes, inputs, constants = {
        "behind a constant": (
            [
                helper.make_node("Unsqueeze", ["n", "zero"], ["line"]),
                helper.make_node("Concat", ["three", "line"], ["s"], axis=0),
                helper.make_node("Reshape", ["x", "s"], ["y"]),
            ],
            [("x", [2, 60]), integer("n", [])],
            [numbers("three", 3), numbers("zero", 0)],
        ),
        "after arithmetic": (
            [helper.make_node("Mul", ["n", "n"], ["s"]), helper.make_node("Reshape", ["x", "s"], ["y"])],
            [("x", [7, 7]), integer("n", [1])],
            [],
        ),
        "of two inputs": (
            [
                helper.make_node("Concat", ["n", "m"], ["s"], axis=0),
                helper.make_node("ConstantOfShape", ["s"], ["ones"]),
                helper.make_node("MatMul", ["z", "ones"], ["sums"]),
                helper.make_node("MatMul", ["sums", "x"], ["y"]),
            ],
            [("x", [25, 4]), ("z", [3, 14]), integer("n", [1]), integer("m", [1])],
            [],
        ),
    }[name]
    return save(folder / "m.onnx", nodes, inputs, [("y", None)], constants)


@pytest.mark.parametrize("name", ["behind a constant", "after arithmetic", "of two inputs"])
def test_inputs_that_decide_sizes_get_values_that_go_together(graft, tmp_path, name):
    model = sizes_from_inputs(tmp_path, name)
    answer = graft("verify", model, model, "--json", code=0)
    assert "are consistent" in answer.json["why_sizes"]
    assert graft("quantize", model, "-o", tmp_path / "q.onnx", "--precision", "f16").code == 0


@pytest.mark.parametrize("command", ["verify", "quantize"])
def test_the_advice_for_sizes_that_nobody_finds_runs(graft, tmp_path, command):
    nodes = [
        helper.make_node("Sub", ["n", "far"], ["s"]),
        helper.make_node("Reshape", ["x", "s"], ["r"]),
        helper.make_node("Neg", ["r"], ["y"]),
    ]
    model = save(
        tmp_path / "m.onnx", nodes, [("x", [3, 4]), integer("n", [1])], [("y", None)], [numbers("far", 123456)]
    )
    arguments = [
        command,
        model,
        *([model] if command == "verify" else ["-o", tmp_path / "q.onnx", "--precision", "f16"]),
    ]
    refused = graft(*arguments)
    assert refused.code == (2 if command == "verify" else 1)  # quantize decides by the rules, and says so
    assert "--range" not in refused.err
    assert "computes sizes from 'n'" in refused.err
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    np.save(tmp_path / "n.npy", np.array([123468]))
    advised = re.findall(r"--data \S+\.npy", refused.err)
    assert len(advised) == 2
    graft(*arguments, *" ".join(advised).split(), cwd=tmp_path, code=0)
