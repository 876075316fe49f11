# Tests TensorFlow graphs and Caffe networks on the command line: correct results, and the usual mistakes of new users.
import json
import re
import shutil

import numpy as np
import onnx
import pytest
from conftest import DIGITS, DIGITS_DATA, PROGRAM, SOURCE, run_command
from onnx import helper
from onnx_models import run_onnx, save

EXAMPLES = SOURCE / "examples"
DIGITS_PB = EXAMPLES / "digits" / "digits.pb"
DIGITS_CAFFE = (EXAMPLES / "digits" / "digits.prototxt", EXAMPLES / "digits" / "digits.caffemodel")
BOXES = EXAMPLES / "from_tensorflow" / "boxes.pb"
PYRAMID = (EXAMPLES / "from_caffe" / "pyramid.prototxt", EXAMPLES / "from_caffe" / "pyramid.caffemodel")
OUTPUTS = ("--keep-output", "logits", "--keep-output", "embedding")


# ---- Results compared with those of other programs


def test_boxes_are_what_tensorflow_makes_of_them(graft, tmp_path):
    answer = graft("convert", BOXES, "-o", tmp_path / "boxes.onnx", "--json", code=0)
    assert [c["operator"] for c in answer.json["choices"] if c["kind"] == "plugin"] == ["L2Normalize"]
    expected = np.load(BOXES.with_suffix(".npz"))
    found = run_onnx(tmp_path / "boxes.onnx", {"image": expected["image"]})
    for name, key in (("Identity", "confidence"), ("Identity_1", "orientation"), ("Identity_2", "size")):
        np.testing.assert_allclose(found[name], expected[key], rtol=1e-5, atol=1e-6)


def test_pyramid_is_what_opencv_and_numpy_make_of_it(graft, tmp_path):
    answer = graft("convert", *PYRAMID, "-o", tmp_path / "pyramid.onnx", "--json", code=0)
    assert {e["operator"] for e in answer.json["origin"]["left_out"]} == {"Accuracy", "Data", "Dropout"}
    expected = np.load(PYRAMID[0].with_suffix(".npz"))
    found = run_onnx(tmp_path / "pyramid.onnx", {"data": expected["data"]})
    np.testing.assert_allclose(found["prob"], expected["prob"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("source", "files", "channels_last"),
    [
        ("digits.onnx", [DIGITS], False),
        ("digits.pb", [DIGITS_PB, *OUTPUTS], True),
        ("digits.caffemodel", [*DIGITS_CAFFE, *OUTPUTS, "--input", "image:?x1x8x8"], False),
    ],
)
def test_digits_are_as_right_from_every_format(graft, tmp_path, digits, source, files, channels_last):
    graft("convert", *files, "-o", tmp_path / "digits.onnx", code=0)
    images, labels = digits
    logits = run_onnx(tmp_path / "digits.onnx", {"image": np.moveaxis(images, 1, -1) if channels_last else images})
    stored = json.loads((EXAMPLES / "digits" / "accuracy.json").read_text())[source]
    assert (logits["logits"].argmax(1) == labels).sum() == stored["right"]
    assert len(labels) == stored["of"]


# ---- Fixed sizes that become dynamic


def pyramid(image, levels):
    """Returns a pyramid of maxima over the whole image, for sizes that the levels divide: by cell, then by channel."""
    batch, height, width, channels = image.shape
    return np.concatenate(
        [image.reshape(batch, n, height // n, n, width // n, channels).max((2, 4)).reshape(batch, -1) for n in levels],
        axis=1,
    )


def test_a_pyramid_that_was_frozen_for_one_size_is_one_of_every_size(graft, tmp_path):
    """The graph is TensorFlow's: pools of 2 x 2, 4 x 4 and 8 x 8 over an image of 8 x 8, flattened cell by cell."""
    source = SOURCE / "tests" / "golden" / "exports" / "tensorflow2.19.1_pyramid_of_cells.pb"
    model = tmp_path / "pyramid.onnx"
    answer = graft("convert", source, "-o", model, "--input", "x:?x?x?x3", "--json", code=0)
    (fusion,) = (r for r in answer.json["rewrites"] if r["pass"] == "fuse_spatial_pyramid_pooling")
    assert "levels=[4, 2, 1]" in fusion["replacement"] and "runs" in fusion["proof"]
    (warning,) = answer.json["warnings"]
    for words in ("an image of 8 x 8", "is assumed", "window and caffe would be the same"):
        assert words in warning
    random = np.random.default_rng(4)
    for height, width in ((8, 8), (16, 12), (20, 8)):
        image = random.standard_normal((2, height, width, 3)).astype(np.float32)
        np.save(tmp_path / "x.npy", image)
        graft("run", model, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "y.npz", code=0)
        np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["Identity"], pyramid(image, (4, 2, 1)))


def test_windows_and_lengths_of_a_size_that_is_opened_are_warned_of(graft, tmp_path):
    nodes = [
        helper.make_node("MaxPool", ["x"], ["half"], "half", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("AveragePool", ["half"], ["mean"], "mean", kernel_shape=[7, 7]),
        helper.make_node("Reshape", ["half", "length"], ["flat"], "flat"),
        helper.make_node("Reshape", ["half", "by_channel"], ["rows"], "rows"),
    ]
    constants = {"length": np.array([-1, 4 * 49]), "by_channel": np.array([0, 4, -1])}
    outputs = [("mean", None), ("flat", None), ("rows", None)]
    source = save(tmp_path / "m.onnx", nodes, [("x", ["N", 4, 14, 14])], outputs, constants)
    out = tmp_path / "o.onnx"
    assert graft("convert", source, "-o", out, "--json").json["warnings"] == []
    assert graft("convert", source, "-o", out, "--json", "--input", "x:?x4x14x14").json["warnings"] == []
    mean, flat = graft("convert", source, "-o", out, "--json", "--input", "x:?x4x?x?").json["warnings"]
    assert "node 'mean' (AveragePool)" in mean and "covers all of the 7 elements" in mean
    assert "node 'flat' (Reshape)" in flat and "[-1, 196]" in flat
    said = graft("convert", source, "-o", out, "--input", "x:?x4x?x?").err
    assert "node 'mean' (AveragePool)" in said


# ---- Messages


def test_inspect_names_inputs_and_outputs(graft):
    answer = graft("inspect", BOXES, "--json", code=0)
    assert answer.json["inputs"] == [{"name": "image", "type": "f32", "shape": ["batch", 32, 32, 3]}]
    assert [output["name"] for output in answer.json["outputs"]] == ["Identity", "Identity_1", "Identity_2"]
    text = graft("inspect", *PYRAMID).out
    assert re.search(r"input +data +f32 +1 x 3 x 24 x 24", text)
    assert re.search(r"output +prob", text)


def test_convert_says_what_was_read_and_left_out_on_one_screen(graft, tmp_path):
    answer = graft("convert", *PYRAMID, "-o", tmp_path / "p.onnx")
    assert "Caffe network of 9 layers" in answer.out
    assert re.search(r"left out +.*Dropout: it copies its input", answer.out)
    assert re.search(r"left out +.*Data.*: it is for training", answer.out)
    assert re.search(r"renamed +1 tensor", answer.out)
    assert "SpatialPyramidPooling" in answer.out
    answer = graft("convert", BOXES, "-o", tmp_path / "b.onnx")
    assert "TensorFlow graph of " in answer.out
    assert re.search(r"read +.*4 Conv2D", answer.out)
    assert re.search(r"\d+ transpositions? left", answer.out)
    assert len(answer.out.splitlines()) < 45


def unsupported_model(tmp_path):
    nodes = [
        helper.make_node("Wobble", ["x"], ["a"], name="strange", domain="acme"),
        helper.make_node("Det", ["a"], ["y"], name="determinant"),
    ]
    return save(tmp_path / "m.onnx", nodes, [("x", [2, 4, 4])], [("y", None)], domains=["acme"])


def test_nodes_that_nobody_runs_are_named_and_the_answer_is_no(graft, tmp_path):
    answer = graft("convert", unsupported_model(tmp_path), "-o", tmp_path / "out.onnx", code=1)
    assert (tmp_path / "out.onnx").exists()
    assert "2 nodes that neither TensorRT nor Graft runs" in answer.out
    for text in ("strange", "acme", "--plugin-lib", "determinant", "what to do"):
        assert text in answer.out
    answer = graft("convert", tmp_path / "m.onnx", "-o", tmp_path / "out.onnx", "--json", code=1)
    assert answer.json["runs"] is False
    assert [node["node"] for node in answer.json["unsupported"]] == ["strange", "determinant"]


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (dict(op_type="LReLU_TRT", plugin_version="7"), "only in version 1; the node has plugin_version = '7'"),
        (dict(op_type="LReLU_TRT", plugin_namespace="mine"), "the node has plugin_namespace = 'mine'"),
        (dict(op_type="L2Normalize", domain="acme"), "domain is graft; the node has the domain 'acme'"),
        (dict(op_type="LReLU_TRTT", domain="trt"), "did you mean LReLU_TRT?"),
    ],
)
def test_a_node_that_nearly_is_an_operator_gets_a_hint(graft, tmp_path, node, said):
    model = save(
        tmp_path / "m.onnx",
        [helper.make_node(inputs=["x"], outputs=["y"], name="n", **node)],
        [("x", [1, 4])],
        [("y", [1, 4])],
        domains=["acme", "trt"],
    )
    answer = graft("inspect", model, "--json", code=1)
    assert said in answer.json["nodes"][0]["reason"]


def test_inspect_and_convert_agree_on_a_reflection_wider_than_its_axis(graft, tmp_path):
    """Graft's operator reflects repeatedly, ONNX's Pad only once."""
    pads = [0, 0, 5, 5, 0, 0, 5, 5]
    for size, kind in ((4, "plugin"), (8, "lowered")):
        node = helper.make_node("Padding", ["x"], ["y"], name="pad", domain="graft", mode="reflect", pads=pads)
        model = save(tmp_path / "m.onnx", [node], [("x", [1, 3, size, size])], [("y", None)], domains=["graft"])
        (judged,) = graft("inspect", model, "--json").json["nodes"]
        assert judged["verdict"] == kind
        (choice,) = graft("convert", model, "-o", tmp_path / "o.onnx", "--json").json["choices"]
        assert choice["kind"] == {"lowered": "native"}.get(kind, kind)


def test_report_has_every_node_before_and_after(graft, tmp_path):
    answer = graft("convert", BOXES, "-o", tmp_path / "b.onnx", "--report", tmp_path / "b.html", "--json", code=0)
    assert (tmp_path / "b.html").read_text().startswith("<!doctype html>")
    report = json.loads((tmp_path / "b.html.json").read_text())
    before, after = (
        [node for node in graph["nodes"] if not node["end"]]
        for graph in report["graphs"]
        if graph["title"] in ("before", "after")
    )
    assert len(before) == answer.json["nodes_before"]
    written = [node for node in onnx.load(tmp_path / "b.onnx").graph.node if node.op_type != "Constant"]
    assert len(after) == len(written)
    assert [node for node in after if node["kind"] == "plugin"]
    rewritten = [node for node in before if node["kind"] == "rewritten"]
    assert rewritten
    assert all(node["reason"] and node["facts"] for node in rewritten)
    passes = {row[3] for table in report["sections"] for row in table["rows"] if table["title"] == "Rewrites"}
    assert passes
    assert passes <= {rewrite["pass"] for rewrite in answer.json["rewrites"]}


def test_a_terminal_sees_progress_and_quiet_is_quiet(tmp_path):
    model = EXAMPLES / "style_transfer" / "style.onnx"

    def on_terminal(*more):
        command = " ".join(map(str, [PROGRAM, "convert", model, "-o", tmp_path / "s.onnx", *more]))
        return run_command("script", "-qec", f"env TERM=xterm {command}", "/dev/null").stdout

    assert re.search(r"\d+ %  \w+", on_terminal())
    assert on_terminal("-q") == ""


# ---- Shapes, outputs and data


def test_a_shape_is_taken_with_a_colon_or_an_equals_sign(graft, tmp_path):
    for text in ("image:4x32x32x3", "image=4x32x32x3"):
        assert graft("convert", BOXES, "-o", tmp_path / "b.onnx", "--input", text, "--no-prove").code == 0
        dims = onnx.load(tmp_path / "b.onnx").graph.input[0].type.tensor_type.shape.dim
        assert [d.dim_value for d in dims] == [4, 32, 32, 3]


def test_a_batch_is_opened_and_verified_against_the_network_with_a_fixed_one(graft, tmp_path):
    converted = tmp_path / "p.onnx"
    for batch in ("?", "-1"):
        assert graft("convert", *PYRAMID, "-o", converted, "--input", f"data:{batch}x3x24x24").code == 0
    assert not onnx.load(converted).graph.input[0].type.tensor_type.shape.dim[0].HasField("dim_value")
    answer = graft("verify", *PYRAMID, converted, "--json", code=0)
    assert answer.json["equal"]
    np.save(tmp_path / "data.npy", np.random.default_rng(1).normal(size=(5, 3, 24, 24)).astype("float32"))
    answer = graft("verify", *PYRAMID, converted, "--data", f"data={tmp_path / 'data.npy'}", "--json", code=0)
    assert "5, 3, 24, 24" in answer.json["inputs"][0]


def test_verify_sees_a_network_that_differs(graft, tmp_path):
    converted = tmp_path / "p.onnx"
    assert graft("convert", *PYRAMID, "-o", converted).code == 0
    model = onnx.load(converted)
    weight = next(w for w in model.graph.initializer if w.dims == [8] or list(w.dims) == [5])
    weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight) + 1, weight.name))
    onnx.save(model, converted)
    graft("verify", *PYRAMID, converted, code=1)


def test_run_reads_every_format(graft, tmp_path, digits):
    np.save(tmp_path / "last.npy", np.moveaxis(digits[0], 1, -1))
    answer = graft("run", DIGITS_PB, "-i", f"image={tmp_path / 'last.npy'}", *OUTPUTS, "-o", tmp_path / "tf.npz")
    assert answer.code == 0, answer.err
    answer = graft("run", *DIGITS_CAFFE, "-i", f"image={DIGITS_DATA}:images", *OUTPUTS, "-o", tmp_path / "caffe.npz")
    assert answer.code == 0, answer.err
    tensorflow, caffe = np.load(tmp_path / "tf.npz"), np.load(tmp_path / "caffe.npz")
    for name in ("logits", "embedding"):
        np.testing.assert_allclose(tensorflow[name], caffe[name], rtol=1e-4, atol=1e-4)


def test_run_writes_what_the_name_says(graft, tmp_path):
    data = f"image={BOXES.with_suffix('.npz')}:image"
    answer = graft("run", BOXES, "-i", data, "-o", tmp_path / "size.npy", "--keep-output", "Identity_2", code=0)
    assert np.load(tmp_path / "size.npy").shape == (2, 3)
    for name, said in (("all.npy", "3 tensors: Identity, Identity_1, Identity_2"), ("all.txt", ".npz")):
        answer = graft("run", BOXES, "-i", data, "-o", tmp_path / name, code=2)
        assert said in answer.err
        assert not (tmp_path / name).exists()


# ---- Mistakes


@pytest.fixture
def folder(tmp_path):
    for file in (DIGITS, DIGITS_PB, *DIGITS_CAFFE, BOXES):
        shutil.copy(file, tmp_path)
    (tmp_path / "saved" / "variables").mkdir(parents=True)
    # The bytes of a SavedModel: a version, then a graph with its tags.
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"\x08\x01\x12\x0b\x0a\x09\x22\x05serve\x2a\x00")
    (tmp_path / "models").mkdir()
    shutil.copy(DIGITS, tmp_path / "models" / "mine.onnx")
    shutil.copy(DIGITS, tmp_path / "onnx.pb")
    shutil.copy(DIGITS_PB, tmp_path / "graph.onnx")
    shutil.copy(DIGITS_PB, tmp_path / "graph.prototxt")
    shutil.copy(DIGITS_CAFFE[0], tmp_path / "deploy.txt")
    (tmp_path / "keras.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    (tmp_path / "keras.keras").write_bytes(b"PK\x03\x04" + bytes(100))
    (tmp_path / "lite.tflite").write_bytes(b"\x1c\0\0\0TFL3" + bytes(100))
    (tmp_path / "pointer.pb").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    (tmp_path / "empty.pb").write_bytes(b"")
    return tmp_path


TO = ("-o", "out.onnx")
MISTAKES = {
    "no weights": (["convert", "digits.prototxt", *TO], ["conv1", "classifier", ".caffemodel", "second"]),
    "weights first": (["convert", "digits.caffemodel", "digits.prototxt", *TO], ["digits.caffemodel", "first"]),
    "weights alone": (["inspect", "digits.caffemodel"], ["digits.caffemodel", ".prototxt"]),
    "weights of another format": (["convert", "digits.prototxt", "digits.pb", *TO], ["digits.pb"]),
    "weights that are not there": (
        ["convert", "digits.prototxt", "no.caffemodel", *TO],
        ["no.caffemodel: cannot be read"],
    ),
    "weights of a graph": (["convert", "digits.pb", "digits.caffemodel", *TO], ["digits.caffemodel", "only a Caffe"]),
    "saved model": (["convert", "saved", *TO], ["saved: ", "SavedModel", "convert_variables_to_constants_v2"]),
    "file of a saved model": (
        ["convert", "saved/saved_model.pb", *TO],
        ["saved_model.pb", "SavedModel", "convert_variables_to_constants_v2"],
    ),
    "folder": (["convert", "models", *TO], ["models: ", "folder", "mine.onnx"]),
    "ONNX called pb": (["convert", "onnx.pb", *TO], ["onnx.pb", "rename it to .onnx"]),
    "graph called ONNX": (["convert", "graph.onnx", *TO], ["graph.onnx", "rename it to .pb"]),
    "graph called prototxt": (["convert", "graph.prototxt", *TO], ["graph.prototxt", "the file is binary"]),
    "prototxt called txt": (["inspect", "deploy.txt"], ["deploy.txt", "rename the file to .prototxt"]),
    "Keras HDF5": (["convert", "keras.h5", *TO], ["keras.h5", "HDF5", "convert_variables_to_constants_v2"]),
    "Keras archive": (["convert", "keras.keras", *TO], ["keras.keras", "Keras", "convert_variables_to_constants_v2"]),
    "TensorFlow Lite": (["convert", "lite.tflite", *TO], ["lite.tflite", "TensorFlow Lite"]),
    "pointer": (["convert", "pointer.pb", *TO], ["pointer.pb", "git lfs pull"]),
    "empty": (["convert", "empty.pb", *TO], ["empty.pb"]),
    "input name": (["convert", "digits.pb", *TO, "--input", "imgae:1x8x8x1"], ["imgae", "image"]),
    "input name of Caffe": (
        ["convert", "digits.prototxt", "digits.caffemodel", *TO, "--input", "imgae:1x1x8x8"],
        ["imgae", "image"],
    ),
    "channels first where they are last": (
        ["convert", "digits.pb", *TO, "--input", "image:1x1x8x8"],
        ["Without --input its inputs are image [batch, 8, 8, 1]"],
    ),
    "sizes joined by commas": (["convert", "digits.pb", *TO, "--input", "image:1,8,8,1"], ["1,8,8,1", "1x3x224x224"]),
    "output name": (["convert", "digits.pb", *TO, "--keep-output", "logit"], ["'logit'", "logits"]),
    "output name of Caffe": (
        ["convert", "digits.prototxt", "digits.caffemodel", *TO, "--keep-output", "logit"],
        ["'logit'", "logits"],
    ),
    "number of an output": (["convert", "digits.pb", *TO, "--keep-output", "logits:3"], ["logits:3"]),
    "output of ONNX": (
        ["convert", "digits.onnx", *TO, "--keep-output", "logits"],
        ["digits.onnx", "declares its outputs itself, so leave out --keep-output"],
    ),
    "the model itself": (["convert", "digits.pb", "-o", "digits.pb"], ["digits.pb", "the input model"]),
    "the weights": (
        ["convert", *DIGITS_CAFFE[:1], "digits.caffemodel", "-o", "digits.caffemodel"],
        ["the input model"],
    ),
    "full device": (["convert", "digits.pb", "-o", "/dev/full"], ["/dev/full"]),
    "folder to write": (["convert", "digits.pb", "-o", "models"], ["models", "folder"]),
    "long name": (["convert", "digits.pb", "-o", "x" * 300 + ".onnx"], ["xxx", "too long"]),
    "engine of a graph": (["build", "digits.pb", "-o", "e.engine"], ["digits.pb", "graft convert digits.pb"]),
    "engine of Caffe": (
        ["build", "digits.prototxt", "-o", "e.engine"],
        ["graft convert digits.prototxt digits.caffemodel"],
    ),
    "time of a graph": (["bench", "digits.pb"], ["digits.pb", "graft convert digits.pb"]),
    "one model to verify": (["verify", "digits.prototxt", "digits.caffemodel"], ["two"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_the_next_step(graft, folder, mistake):
    arguments, named = MISTAKES[mistake]
    before = sorted((p.name, p.read_bytes()) for p in folder.iterdir() if p.is_file())
    answer = graft(*arguments, cwd=folder)
    assert answer.code == 2, (answer.code, answer.out, answer.err)
    message = "".join(line for line in answer.err.splitlines(keepends=True) if " %  " not in line)  # slow machines
    assert message.startswith("error: ") and message.count("error: ") == 1
    assert answer.out == ""
    for text in named:
        assert text in answer.err, answer.err
    assert sorted((p.name, p.read_bytes()) for p in folder.iterdir() if p.is_file()) == before
    answer = graft(*arguments, "--json", cwd=folder)
    assert answer.json["error"]["kind"] == "bad_input"


@pytest.mark.parametrize("python", ["/nope/python", "/bin/true", "/bin/ls"])
def test_a_wrong_graft_python_is_named_with_advice(graft, tmp_path, python):
    answer = graft(
        "build",
        DIGITS,
        "-o",
        tmp_path / "e",
        "--shapes",
        "image=1x1x8x8",
        "--plugins",
        "never",
        env={"GRAFT_PYTHON": python},
    )
    assert answer.code == 3, answer.err
    assert f"GRAFT_PYTHON={python}" in answer.err
    assert "unset it" in answer.err
