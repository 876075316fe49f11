# graft verify between formats: the user's data may have the layout of either file, and --layers has the same verdict.
import numpy as np
import onnx
import pytest
from conftest import DIGITS, DIGITS_DATA
from onnx import helper, numpy_helper
from onnx_models import save

FOLDER = DIGITS.parent
TENSORFLOW = [FOLDER / "digits.pb"]  # NHWC
CAFFE = [FOLDER / "digits.prototxt", FOLDER / "digits.caffemodel"]


@pytest.fixture(scope="module")
def images(session_folder):
    """Saves a set of images in both layouts."""
    nchw = np.load(DIGITS_DATA)["images"][:8]
    files = {"NCHW": session_folder / "nchw.npy", "NHWC": session_folder / "nhwc.npy"}
    np.save(files["NCHW"], nchw)
    np.save(files["NHWC"], np.ascontiguousarray(nchw.transpose(0, 2, 3, 1)))
    return files


@pytest.mark.parametrize("layers", [[], ["--layers"]])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("files", [[DIGITS, *TENSORFLOW], [*TENSORFLOW, DIGITS], [*TENSORFLOW, *CAFFE]])
def test_data_in_the_layout_of_one_file_is_laid_out_for_the_other(graft, images, files, layout, layers):
    answer = graft("verify", *files, "--data", f"image={images[layout]}", "--json", *layers, code=0)
    assert answer.json["equal"]
    wanted = "image: f32[8, 8, 8, 1]" if files[0] == TENSORFLOW[0] else "image: f32[8, 1, 8, 8]"
    assert answer.json["inputs"][0].startswith(wanted)
    assert "in the candidate [8, " in answer.json["inputs"][0]


def test_made_up_inputs_are_laid_out_as_well(graft):
    for files in ([DIGITS, *TENSORFLOW], [*TENSORFLOW, DIGITS]):
        for shape in ([], ["--input", "image:3x1x8x8"], ["--input", "image:3x8x8x1"]):
            answer = graft("verify", *files, *shape, "--json", code=0)
            assert answer.json["equal"]
    for files in ([*TENSORFLOW, *CAFFE], [*CAFFE, *TENSORFLOW]):  # Caffe's batch is 1
        answer = graft("verify", *files, code=0)


def test_damage_is_seen_through_another_layout(graft, images, tmp_path):
    model = onnx.load(DIGITS)
    weight = next(t for t in model.graph.initializer if t.name == "conv2.weight")
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.1), weight.name))
    onnx.save(model, tmp_path / "wrong.onnx")
    data = f"image={images['NCHW']}"
    assert graft("verify", *TENSORFLOW, tmp_path / "wrong.onnx", "--data", data).code == 1
    answer = graft("verify", *TENSORFLOW, tmp_path / "wrong.onnx", "--data", data, "--layers", "--json")
    assert "/conv2/Conv" in answer.json["first_divergence"]["candidate_nodes"]


def test_data_that_fits_neither_is_refused_with_what_both_want(graft, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 3, 5, 7), np.float32))
    for layers in ([], ["--layers"]):
        answer = graft("verify", DIGITS, *TENSORFLOW, "--data", f"image={tmp_path}/x.npy", *layers, code=2)
        for text in ("[4, 3, 5, 7]", "digits.onnx", "[batch, 1, 8, 8]", "digits.pb", "[batch, 8, 8, 1]"):
            assert text in answer.err, answer.err
        answer = graft("verify", DIGITS, *TENSORFLOW, "--data", f"picture={tmp_path}/x.npy", *layers, code=2)
        for text in ("picture", "neither", "image"):
            assert text in answer.err


def test_an_input_may_have_the_name_of_either_file(graft, images, tmp_path):
    model = onnx.load(DIGITS)
    for node in model.graph.node:
        node.input[:] = ["pixels" if name == "image" else name for name in node.input]
    model.graph.input[0].name = "pixels"
    onnx.save(model, tmp_path / "renamed.onnx")
    for name in ("image", "pixels"):
        for files in ([*TENSORFLOW, tmp_path / "renamed.onnx"], [tmp_path / "renamed.onnx", *CAFFE]):
            graft("verify", *files, "--data", f"{name}={images['NCHW']}", code=0)


@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_an_output_that_one_only_has_inside_is_found_there(graft, layers):
    """Caffe's network returns the logits; the embedding is an internal tensor."""
    for files in ([DIGITS, *CAFFE], [*CAFFE, DIGITS]):
        answer = graft("verify", *files, "--json", *layers, code=0)
        if not layers:
            inside = next(
                o for o in answer.json["outputs"] if "embedding" in (o["reference_name"], o["candidate_name"])
            )
            assert inside["equal"]
            assert inside["elements"] > 0
            assert "does not return it" in inside["note"]


def ends(path, shape, dtype=onnx.TensorProto.FLOAT):
    """Saves a 1 x 1 convolution, followed by a reshape to `shape` and a cast to the type."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("Reshape", ["c", "sizes"], ["r"], name="shape"),
        helper.make_node("Cast", ["r"], ["y"], name="type", to=dtype),
    ]
    weight = np.random.default_rng(1).standard_normal((4, 3, 1, 1)).astype(np.float32)
    constants = {"w": weight, "sizes": np.array(shape)}
    return save(path, nodes, [("x", [2, 3, 1, 1])], [("y", dtype, shape)], constants)


@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_outputs_of_other_dimensions_or_types_are_not_the_same(graft, tmp_path, layers):
    reference = ends(tmp_path / "a.onnx", [2, 4])
    for candidate, text in (
        (ends(tmp_path / "b.onnx", [2, 4, 1, 1]), "[2, 4, 1, 1]"),
        (ends(tmp_path / "c.onnx", [2, 4], onnx.TensorProto.INT32), "i32"),
    ):
        answer = graft("verify", reference, candidate, *layers, code=1)
        assert text in answer.out


def test_outputs_in_f16_are_compared_with_those_in_f32(graft, tmp_path):
    """`graft quantize --typed-io` writes such outputs."""
    reference = ends(tmp_path / "a.onnx", [2, 4])
    candidate = ends(tmp_path / "b.onnx", [2, 4], onnx.TensorProto.FLOAT16)
    answer = graft("verify", reference, candidate)
    assert answer.code == 0 and "f16" in answer.out, answer.out
