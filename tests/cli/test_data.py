# Every form of data, in every command that reads data. NumPy and ONNX Runtime determine the expected results.
import struct
import zlib

import numpy as np
import pytest
from conftest import DIGITS, DIGITS_DATA, DIGITS_SHAPES, needs_plugin_library
from onnx import TensorProto, helper
from onnx_models import constant, node, save, session_of

IMAGES = np.load(DIGITS_DATA)["images"][:24]


@pytest.fixture
def logits(graft, tmp_path):
    """Runs the digits network on data, and returns the result and the messages."""

    def run(*data, model=DIGITS, options=()):
        sources = [word for source in data for word in ("--input", source)]
        answer = graft("run", model, *sources, *options, "-o", tmp_path / "found.npz", "--json", code=0)
        return np.load(tmp_path / "found.npz")["logits"], answer

    return run


@pytest.fixture(scope="module")
def expected():
    return session_of(DIGITS).run(["logits"], {"image": IMAGES})[0]


def two_inputs(path, first="n"):
    """Adds an f32 input to an i32 input."""
    nodes = [node("Cast", "b", "c", to=TensorProto.FLOAT), node("Add", "a c", "y")]
    inputs = [("a", [first, 4]), helper.make_tensor_value_info("b", TensorProto.INT32, [first, 4])]
    return save(path, nodes, inputs, [("y", [first, 4])])


def fixed_batch(path, batch):
    weight = constant("w", np.arange(12, dtype=np.float32).reshape(4, 3))
    return save(path, [node("MatMul", "x w", "y")], [("x", [batch, 4])], [("y", [batch, 3])], [weight])


# ---- Forms


def forms_of(folder):
    np.save(folder / "x.npy", IMAGES)
    np.save(folder / "fortran.npy", np.asfortranarray(IMAGES))
    np.savez(folder / "named.npz", image=IMAGES)
    np.savez(folder / "other.npz", pictures=IMAGES, labels=np.arange(len(IMAGES)))
    np.savez(folder / "two.npz", p=IMAGES, q=IMAGES + 1)
    np.save(folder / "a=b.npy", IMAGES)
    for kind in ("samples", "batches", "archives", "classes/0", "classes/1"):
        (folder / kind).mkdir(parents=True)
    for i, image in enumerate(IMAGES):
        np.save(folder / "samples" / f"{i:03}.npy", image)  # without the first axis
        np.savez(folder / "archives" / f"{i:03}.npz", image=image[np.newaxis])
        np.save(folder / "classes" / str(i // 12) / f"{i:03}.npy", image)
    for i in range(4):
        np.save(folder / "batches" / f"{i}.npy", IMAGES[6 * i : 6 * i + 6])
    (folder / "samples" / ".hidden.npy").write_bytes(b"no array")
    return {
        "npy": "x.npy",
        "named npy": "image=x.npy",
        "column-major": "fortran.npy",
        "npz": "named.npz",
        "npz with one array that fits": "other.npz",
        "array of an npz": "two.npz:p",
        "named array of an npz": "image=two.npz:p",
        "a path with an equals sign": "a=b.npy",
        "folder of samples": "samples",
        "folder of batches": "batches",
        "folder of archives": "archives",
        "named folder": "image=samples",
        "folder of folders": "classes",
    }


def test_all_forms_are_the_same_data(logits, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, source in forms_of(tmp_path).items():
        found, _ = logits(source)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("source", ["x.npy", "other.npz", "samples", "two.npz:p"])
def test_every_command_reads_the_same_forms(graft, tmp_path, source):
    forms_of(tmp_path)
    data = ["--data", source]
    graft("verify", DIGITS, DIGITS, *data, cwd=tmp_path, code=0)
    for precision in ("f16", "int8"):
        command = ["quantize", DIGITS, "-o", "q.onnx", "--precision", precision, *data, "--json"]
        answer = graft(*command, cwd=tmp_path, code=0)
        assert answer.json.get("samples", len(IMAGES)) == len(IMAGES)
    if source == "samples":
        answer = graft("verify", DIGITS, DIGITS, *data, "--samples", "5", "--json", cwd=tmp_path, code=0)
        assert answer.json["runs"] == 5
        assert answer.json["data_notes"] == [
            "samples: 5 of the 24 files are read, evenly spread over the folder",
            "samples/000.npy and 4 other files: the array of shape [1, 8, 8] is one sample of input 'image', and gets a "
            "first axis of size 1",
        ]
    else:
        graft("canary", DIGITS, "-o", "canary", *data, cwd=tmp_path, code=0)


def test_several_inputs_are_found_by_name(graft, tmp_path):
    model = two_inputs(tmp_path / "m.onnx")
    a, b = np.arange(8, dtype=np.float32).reshape(2, 4), np.ones((2, 4), np.int64)
    np.savez(tmp_path / "both.npz", a=a, b=b, labels=b)
    (tmp_path / "folder").mkdir()
    for name, array in (("a", a), ("b", b)):
        np.save(tmp_path / "folder" / f"{name}.npy", array)
    np.savez(tmp_path / "b_alone.npz", other=b)
    for sources in (["both.npz"], ["folder"], ["folder/b.npy", "folder/a.npy"], ["a=folder/a.npy", "b_alone.npz"]):
        given = [word for source in sources for word in ("-i", source)]
        answer = graft("run", model, *given, "-o", "y.npy", "--json", cwd=tmp_path, code=0)
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), a + b)
        assert any(
            "the array is i64; it is converted to i32, the type of input 'b'" in n for n in answer.json["data_notes"]
        )
        unused = "both.npz: the array 'labels' is not used, because no input has this name"
        assert (unused in answer.json["data_notes"]) == (sources == ["both.npz"])


def test_a_fixed_batch_splits_a_file_and_joins_the_files_of_a_folder(graft, tmp_path):
    model = fixed_batch(tmp_path / "m.onnx", 4)
    x = np.random.default_rng(1).standard_normal((12, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "samples").mkdir()
    for i in range(12):
        np.save(tmp_path / "samples" / f"{i:02}.npy", x[i])
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    for source in ("x.npy", "samples"):
        answer = graft("run", model, "-i", source, "-o", "y.npy", "--json", cwd=tmp_path, code=0)
        assert answer.json["runs"] == 3
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), x @ weight, rtol=1e-4, atol=1e-4)
        command = ["quantize", model, "-o", "q.onnx", "--precision", "int8", "--data", source, "--json"]
        assert graft(*command, cwd=tmp_path).json["samples"] == 3


# ---- Types


def test_float64_is_converted_with_a_note_that_is_printed_once(graft, logits, expected, tmp_path):
    np.save(tmp_path / "x.npy", IMAGES.astype(np.float64))
    found, answer = logits(tmp_path / "x.npy")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    note = f"{tmp_path / 'x.npy'}: the array is f64; it is converted to f32, the type of input 'image'"
    assert answer.json["data_notes"] == [note]
    out = tmp_path / "q.onnx"
    for command in (
        ["verify", DIGITS, DIGITS],
        ["verify", DIGITS, DIGITS, "--layers"],
        ["quantize", DIGITS, "-o", out, "--precision", "f16"],
        ["quantize", DIGITS, "-o", out, "--precision", "int8"],
        ["canary", DIGITS, "-o", tmp_path / "canary"],
    ):
        answer = graft(*command, "--data", tmp_path / "x.npy", "--json", code=0)
        assert answer.json["data_notes"] == [note], command
        assert " ".join(answer.err.split()).count("it is converted to f32") == 1, command


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.float64(1e300), "found the value 1e+300; input 'a' is f32, which cannot represent it"),
        (np.int64(2**31), "found the value 2147483648; input 'b' is i32, which cannot represent it"),
        (np.uint64(2**63), "found the value 9223372036854775808; input 'b' is i32"),
        (np.uint8(1), "the tensor is u8[2, 4]; it must be f32[n, 4]"),
        (np.float32(1), "the tensor is f32[2, 4]; it must be i32[n, 4]"),
    ],
)
def test_values_that_the_type_cannot_have_are_refused(graft, tmp_path, value, message):
    model = two_inputs(tmp_path / "m.onnx")
    name = "b" if "'b'" in message or "i32[n" in message else "a"
    arrays = {"a": np.zeros((2, 4), np.float32), "b": np.zeros((2, 4), np.int32)}
    arrays[name] = np.full((2, 4), value)
    np.savez(tmp_path / "x.npz", **arrays)
    answer = graft("run", model, "-i", tmp_path / "x.npz", "-o", tmp_path / "y.npz", code=2)
    text = " ".join(answer.err.split())
    assert message in text
    assert f"array '{name}'" in text
    assert not (tmp_path / "y.npz").exists()


# ---- Images


def png(pixels):
    """Returns a gray image as a PNG."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels.astype(np.uint8))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_an_image_of_another_size_names_the_line_of_the_recipe(graft, tmp_path):
    (tmp_path / "image.png").write_bytes(png(np.zeros((28, 28))))
    recipe = tmp_path / "images.yaml"
    recipe.write_text("channels: gray\nscale: 1/255\n")
    model = save(tmp_path / "m.onnx", [node("Identity", "x", "y")], [("x", ["n", 1, 8, 6])], [("y", ["n", 1, 8, 6])])
    options = ("--input", tmp_path / "image.png", "--recipe", recipe, "-o", tmp_path / "y.npz")
    said = " ".join(graft("run", model, *options, code=2).err.split())
    assert "the tensor is f32[1, 1, 28, 28]; it must be f32[n, 1, 8, 6]" in said
    line = "resize: [8, 6]"
    assert f"the recipe for images needs the line {line}" in said
    recipe.write_text(recipe.read_text() + line + "\n")
    graft("run", model, *options, code=0)


def test_a_recipe_without_a_scale_is_noted_with_the_range_of_the_values(graft, tmp_path):
    pixels = np.arange(0, 256, 4).reshape(8, 8)
    (tmp_path / "image.png").write_bytes(png(pixels))
    recipe = tmp_path / "images.yaml"
    model = save(tmp_path / "m.onnx", [node("Identity", "x", "y")], [("x", [1, 1, 8, 8])], [("y", [1, 1, 8, 8])])
    lines = {
        "": (0, 1, "x: values 0 to 255; the recipe has no scale"),
        "mean: 100\n": (100, 1, "x: values -100 to 155; the recipe has no scale"),
        "scale: 1/255\n": (0, 1 / 255, None),
    }
    for line, (mean, scale, note) in lines.items():
        recipe.write_text("channels: gray\n" + line)
        options = ("--input", tmp_path / "image.png", "--recipe", recipe, "-o", tmp_path / "y.npz")
        answer = graft("run", model, *options, code=0)
        expected = ((pixels - mean) * scale).astype(np.float32)
        np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"][0, 0], expected, rtol=1e-5, atol=1e-4)
        said = " ".join(answer.err.split())
        assert (note is None and "the recipe has no scale" not in said) or (note is not None and note in said), said


def check_accuracy(graft, data, folder, int8, images, order):
    """Checks the accuracies of --labels against those of ONNX Runtime. `order` has the index of each image."""
    classes = np.array([i % 3 for i in order])  # the names of the folders
    found = graft("verify", DIGITS, int8, *data, "--labels", "folders", "--json", code=0).json["accuracy"]
    for model, correct in ((DIGITS, found["reference_correct"]), (int8, found["candidate_correct"])):
        scores = session_of(model).run(["logits"], {"image": images})[0]
        assert correct == np.count_nonzero(scores.argmax(axis=1) == classes)
    assert (found["output"], found["samples"]) == ("logits", len(order))
    truth = np.load(DIGITS_DATA)["labels"]
    lines = [f"{i % 3}/{i:02}.png,{truth[i]}" for i in order]
    (folder / "labels.csv").write_text("\n".join(["name,class", *lines]))
    command = ["quantize", DIGITS, "-o", int8, "--precision", "int8", *data, "--labels", folder / "labels.csv"]
    answer = graft(*command, "--max-drop", "5", "--json", code=0)
    scores = session_of(DIGITS).run(["logits"], {"image": images})[0]
    accuracy = 100 * np.mean(scores.argmax(axis=1) == truth[order])
    assert answer.json["metric_f32"] == pytest.approx(accuracy)
    assert answer.json["metric_outputs"] == ["logits"] and answer.json["metric_is_accuracy"]
    (folder / "labels.csv").write_text("\n".join(lines[1:]))
    assert "no line has the class of" in " ".join(graft(*command, code=2).err.split())


def write_images(folder):
    """Writes IMAGES as PNG files into folders for the classes 0, 1 and 2, and the recipe that undoes their scale."""
    scale = 255 / float(IMAGES.max())
    pixels = np.rint(IMAGES[:, 0] * scale).astype(np.uint8)
    for i, image in enumerate(pixels):
        file = folder / "images" / str(i % 3) / f"{i:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png(image))
    recipe = folder / "images.yaml"
    recipe.write_text(f"channels: gray\nscale: {1 / scale!r}\n")
    return pixels, scale, recipe


def test_a_classifier_becomes_int8_from_a_folder_of_images(graft, logits, tmp_path):
    """The commands of docs/guide/data.md, on images in folders for their classes."""
    pixels, scale, recipe = write_images(tmp_path)
    order = sorted(range(len(pixels)), key=lambda i: (str(i % 3), i))
    data = ["--data", tmp_path / "images", "--recipe", recipe]
    int8 = tmp_path / "int8.onnx"
    answer = graft("quantize", DIGITS, "-o", int8, "--precision", "int8", *data, "--samples", "20", "--json", code=0)
    assert answer.json["samples"] == 20
    graft("verify", DIGITS, int8, "--snr", "20", *data, "--samples", "12", code=0)
    found, _ = logits(tmp_path / "images", options=["--recipe", recipe])
    images = (pixels[order, np.newaxis] / scale).astype(np.float32)
    expected = session_of(DIGITS).run(["logits"], {"image": images})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    check_accuracy(graft, data, tmp_path, int8, images, order)
    refused = graft("verify", DIGITS, DIGITS, "--data", tmp_path / "images", code=2)
    assert "no recipe describes how the images are prepared" in " ".join(refused.err.split())


@needs_plugin_library
def test_auto_measures_the_accuracy(graft, tmp_path):
    """The labels are the names of the folders, which are not the digits in the images."""
    pixels, scale, recipe = write_images(tmp_path)
    scores = session_of(DIGITS).run(["logits"], {"image": (pixels[:, np.newaxis] / scale).astype(np.float32)})[0]
    correct = np.count_nonzero(scores.argmax(axis=1) == np.arange(len(pixels)) % 3)
    data = ("--data", tmp_path / "images", "--recipe", recipe, "--labels", "folders")
    command = ("auto", DIGITS, "-o", tmp_path / "e.engine", *data, "--shapes", DIGITS_SHAPES, "--target", "sm120")
    for precision in ("int8", "f16"):
        answer = graft(*command, "--precision", precision, "--json", code=0)
        accuracy = answer.json["verify"]["accuracy"]
        assert (accuracy["reference_correct"], accuracy["candidate_correct"]) == (correct, correct)
        if precision == "int8":
            assert answer.json["quantize"]["metric_f32"] == pytest.approx(100 * correct / len(pixels))
    told = " ".join(graft(*command, "--precision", "int8", code=0).out.split())
    percent = f"{100 * correct / len(pixels):.1f} %"
    assert f"accuracy of 'logits': {percent} in the reference, {percent} in the candidate" in told
    assert f"accuracy of logits: {percent} in f32" in told


# ---- Faults


def write_objects(path):
    ragged = np.empty(2, object)
    ragged[:] = [[1, 2], [3]]
    np.save(path, ragged, allow_pickle=True)


FAULTS = {
    "truncated": (lambda p: p.write_bytes(good(p)[:-5]), "the file is truncated or damaged"),
    "truncated header": (lambda p: p.write_bytes(good(p)[:20]), "the .npy file is truncated"),
    "no array": (lambda p: p.write_bytes(b"no array at all"), "this is not a .npy file"),
    "empty file": (lambda p: p.write_bytes(b""), "x.npy"),
    "objects": (write_objects, "the array contains Python objects (|O)"),
    "strings": (lambda p: np.save(p, np.array(["a", "b"])), "the element type is <U1"),
    "no samples": (lambda p: np.save(p, IMAGES[:0]), "has 0 samples; one run needs 1"),
    "channels last": (lambda p: np.save(p, IMAGES.transpose(0, 2, 3, 1)), "x.transpose(0, 3, 1, 2)"),
    "another size": (lambda p: np.save(p, IMAGES[..., :7]), "the tensor is f32[24, 1, 8, 7]; it must be f32["),
    "pixels": (lambda p: np.save(p, IMAGES.astype(np.uint8)), "Prepare the array as in training"),
}


def good(path):
    np.save(path, IMAGES)
    return path.read_bytes()


# A network with a dynamic first dimension runs on a single array without samples.
PLACED = [(fault, in_folder) for fault in FAULTS for in_folder in (False, True) if in_folder or fault != "no samples"]


@pytest.mark.parametrize(("fault", "in_folder"), PLACED)
def test_faults_of_arrays_are_named(graft, tmp_path, fault, in_folder):
    write, message = FAULTS[fault]
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "x.npy")
    source = tmp_path / "data" if in_folder else tmp_path / "data" / "x.npy"
    for command in (
        ["run", DIGITS, "-i", source, "-o", tmp_path / "y.npz"],
        ["quantize", DIGITS, "--precision", "int8", "--data", source, "-o", tmp_path / "q.onnx"],
    ):
        answer = graft(*command, code=2)
        assert message in " ".join(answer.err.split())
        assert "x.npy" in answer.err
        assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("sources", "messages"),
    [
        (["nowhere.npy"], ["nowhere.npy: there is no such file or folder"]),
        (["aa=x.npz"], ["no input 'aa' (did you mean 'a'?)", "its inputs are a, b"]),
        (["x.npz"], ["no array for the input 'a'", "it contains aa (f32 2x4), p (f32 2x4)", "(did you mean 'aa'?)"]),
        (["x.npy"], ["the array may be for any of several inputs: a, b", "a=FILE"]),
        (["a=x.npz:q"], ["the file has no array 'q'", "its arrays are aa, p"]),
        (["a=x.npz:aa", "a=x.npy"], ["input 'a' is specified twice"]),
        (["a=x.npy"], ["no tensor is passed for the input 'b' (i32[n, 4])", "b=FILE.npy"]),
        (["a=x.npy", "b=three.npy"], ["has 3 samples, and the array for 'a' has 2"]),
        (["empty"], ["the folder contains neither images nor arrays"]),
    ],
)
def test_faults_of_names_are_named_with_the_next_step(graft, tmp_path, sources, messages):
    model = two_inputs(tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", aa=np.zeros((2, 4), np.float32), p=np.zeros((2, 4), np.float32))
    np.save(tmp_path / "x.npy", np.zeros((2, 4), np.float32))
    np.save(tmp_path / "three.npy", np.zeros((3, 4), np.int32))
    (tmp_path / "empty").mkdir()
    given = [word for source in sources for word in ("-i", source)]
    answer = graft("run", model, *given, "-o", "y.npz", cwd=tmp_path, code=2)
    text = " ".join(answer.err.split())
    for message in messages:
        assert message in text


def test_calibration_needs_the_same_number_of_samples(graft, tmp_path):
    model = two_inputs(tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", a=np.ones((5, 4), np.float32), b=np.ones((4, 4), np.int32))
    command = ["quantize", model, "-o", tmp_path / "q.onnx", "--precision", "int8", "--data", tmp_path / "x.npz"]
    answer = graft(*command, code=2)
    assert "samples for 4 runs, and the arrays of other inputs for 5" in " ".join(answer.err.split())
