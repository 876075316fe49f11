# Compares Caffe's layers, each in a small network with seeded weights, with OpenCV's results
# (tests/golden/generators/make_caffe_cases.py), and tests messages about invalid files.
import json
import os
import pathlib

import numpy as np
import onnxruntime
import pytest
from program import run_program

SOURCE = pathlib.Path(os.environ.get("GRAFT_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
PROGRAM = os.environ.get("GRAFT_BIN", str(SOURCE / "build" / "bin" / "graft"))
GOLDEN = pathlib.Path(os.environ.get("GRAFT_GOLDEN_DIR", SOURCE / "tests" / "golden")) / "caffe" / "cases.npz"

ARRAYS = np.load(GOLDEN)
NAMES = sorted({key.split("/")[0] for key in ARRAYS.files})
RELATIVE = 2e-5


def part(case, kind):
    prefix = f"{case}/{kind}/"
    return {key[len(prefix) :]: ARRAYS[key] for key in ARRAYS.files if key.startswith(prefix)}


@pytest.fixture
def files(request, tmp_path):
    network, weights = tmp_path / "network.prototxt", tmp_path / "network.caffemodel"
    network.write_bytes(ARRAYS[f"{request.param}/network"].tobytes())
    weights.write_bytes(ARRAYS[f"{request.param}/weights"].tobytes())
    return request.param, network, weights


def by_score(rows):
    """Sorts boxes by score, as OpenCV lists them; Caffe lists them by class. Rows of zeros fill OpenCV's table."""
    rows = rows.reshape(-1, 7)
    rows = rows[rows[:, 2] > 0]
    return rows[np.argsort(-rows[:, 2], kind="stable")]


@pytest.mark.parametrize("files", NAMES, indirect=True)
def test_converted_network_in_onnxruntime(files, tmp_path):
    case, network, weights = files
    converted = tmp_path / "network.onnx"
    done = run_program(
        [PROGRAM, "convert", *[file for file in (network, weights) if file.stat().st_size], "-o", converted, "--json"],
    )
    assert done.returncode in (0, 1), done.stderr  # 1: TensorRT lacks an operator of the network
    assert not json.loads(done.stdout)["undone"]
    again = run_program([PROGRAM, "convert", converted, "-o", tmp_path / "again.onnx", "--json"])
    assert again.returncode == done.returncode, again.stderr
    assert not json.loads(again.stdout)["rewrites"]
    session = onnxruntime.InferenceSession(str(converted), providers=["CPUExecutionProvider"])
    results = session.run(None, part(case, "in"))
    found = dict(zip([output.name for output in session.get_outputs()], results, strict=True))
    outputs = part(case, "out")
    assert outputs
    for name, expected in outputs.items():
        result = found[name]
        if case.startswith("detection"):
            result, expected = by_score(result), by_score(expected)
            assert len(expected) > 5
        if case.startswith("ordered_detection"):
            # The order is Caffe's; after the last box Graft's table has rows of -1, where Caffe's ends.
            rows = result[0, 0]
            is_box = rows[:, 1] >= 0
            assert (rows[~is_box] == -1).all()
            result, expected = rows[is_box], expected[expected[..., 1] >= 0]
            if not len(expected):
                assert not len(result)
                continue
        assert result.dtype == np.float32
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=RELATIVE, atol=RELATIVE * np.abs(expected).max())


def varint(number):
    done = bytearray()
    while number > 127:
        done.append(number & 127 | 128)
        number >>= 7
    return bytes([*done, number])


def field(number, payload):
    """Returns a length-delimited field of protobuf."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def blob(array, legacy=None):
    """Returns a BlobProto of f32; `legacy` has its four dimensions in the format of old files."""
    shape = field(7, field(1, b"".join(map(varint, np.shape(array)))))
    if legacy:
        shape = b"".join(varint(i << 3) + varint(dim) for i, dim in enumerate(legacy, start=1))
    return shape + field(5, np.asarray(array, "<f4").tobytes())


def weights_of(**layers):
    return b"".join(
        field(100, field(1, name.encode()) + b"".join(field(7, each) for each in blobs))
        for name, blobs in layers.items()
    )


def layer(kind, name, bottom, top, parameters=""):
    bottoms = "".join(f' bottom: "{each}"' for each in bottom.split())
    tops = "".join(f' top: "{each}"' for each in top.split())
    return f'layer {{ name: "{name}" type: "{kind}"{bottoms}{tops} {parameters} }}\n'


INPUT = 'input: "x" input_shape { dim: 2 dim: 3 dim: 6 dim: 5 }\n'
CONVOLUTION = layer("Convolution", "c", "x", "y", "convolution_param { num_output: 4 kernel_size: 3 }")
KERNEL, SHIFT = np.ones((4, 3, 3, 3)), np.zeros(4)
GOOD = {"c": [blob(KERNEL), blob(SHIFT)]}


@pytest.fixture
def convert(tmp_path):
    """Runs `graft convert`; returns a session of ONNX Runtime, or the message where an exit code is expected."""

    def run(text, weights=None, *arguments, fails=0):
        network, trained, converted = (tmp_path / f"n.{end}" for end in ("prototxt", "caffemodel", "onnx"))
        network.write_bytes(text if isinstance(text, bytes) else text.encode())
        files = [network]
        if weights is not None:
            trained.write_bytes(weights)
            files.append(trained)
        done = run_program([PROGRAM, "convert", *files, "-o", converted, *arguments])
        assert done.returncode == fails, done.stderr
        if fails:
            assert not converted.exists()
            return done.stderr
        run.said = done.stdout + done.stderr
        return onnxruntime.InferenceSession(str(converted), providers=["CPUExecutionProvider"])

    return run


def names(session):
    return [value.name for value in session.get_inputs()], [value.name for value in session.get_outputs()]


def test_unknown_layers_are_named_at_once(convert):
    text = INPUT + layer("Bar", "one", "x", "a") + layer("Foo", "two", "a", "b") + layer("Bar", "three", "b", "y")
    text += layer("Python", "own", "y", "z", 'python_param { module: "rpn.layer" layer: "Own" }')
    message = convert(text, fails=2)
    for part in ("Bar at one, three", "Foo at two", "own (rpn.layer.Own)", "--keep-output", "n.prototxt"):
        assert part in message


def test_unknown_fields_are_named_with_their_lines(convert):
    text = INPUT + layer("ReLU", "r", "x", "a", "relu_param { negative_slop: 0.1 }")
    text += layer("Pooling", "p", "a", "y", "pooling_param { kernel_size: 2 shape_of_it: 3 }") + "wrong: 1\n"
    message = convert(text, fails=2)
    assert "line 2: `negative_slop` of ReLUParameter, in layer 'r' (ReLU)" in message
    assert "line 3: `shape_of_it` of PoolingParameter, in layer 'p' (Pooling)" in message
    assert "line 4: `wrong` of NetParameter" in message


def test_fields_of_training_are_passed_over(convert):
    text = (
        "force_backward: true\n"
        + INPUT
        + layer(
            "Convolution",
            "c",
            "x",
            "y",
            "param { lr_mult: 1 decay_mult: 0 } convolution_param { num_output: 4 kernel_size: 3 engine: CAFFE "
            'weight_filler { type: "xavier" } bias_filler { type: "constant" value: 0 } }',
        )
    )
    text += layer("MyOwnLoss", "l", "y label", "loss", "my_own_loss_param { alpha: 2 } loss_weight: 0.5")
    assert names(convert(text, weights_of(**GOOD))) == (["x"], ["y"])


@pytest.mark.parametrize(
    ("blobs", "expected"),
    [
        (
            [blob(np.ones((3, 4, 3, 3))), blob(SHIFT)],
            "the trained blob has the shape [3, 4, 3, 3], but the parameters of the layer require [4, 3, 3, 3]",
        ),
        (
            [blob(KERNEL), blob(np.zeros(5))],
            "bias: the trained blob has the shape [5], but the parameters of the layer require [4]",
        ),
        ([blob(KERNEL)], "1 blobs of weights, but needs at least 2"),
        (
            [blob(KERNEL), blob(SHIFT), blob(SHIFT)],
            "it has 3 blobs of weights, but its parameters do not use 1 of them",
        ),
        (
            [blob(np.ones(107), (4, 3, 3, 3)), blob(SHIFT)],
            "blob 0 of its weights has 107 elements; its shape [4, 3, 3, 3] requires 108",
        ),
    ],
)
def test_weights_that_do_not_fit(convert, blobs, expected):
    message = convert(INPUT + CONVOLUTION, weights_of(c=blobs), fails=2)
    assert expected in message
    assert "layer 'c' (Convolution)" in message


def test_weights_of_old_files_have_four_dimensions(convert):
    text = 'input: "x" input_dim: 2 input_dim: 3 input_dim: 1 input_dim: 1\n'
    text += layer("InnerProduct", "f", "x", "y", "inner_product_param { num_output: 2 }")
    matrix = np.float32([[1, 2, 3], [4, 5, 6]])
    blobs = [blob(matrix, (1, 1, 2, 3)), blob([1, -1], (1, 1, 1, 2))]
    session = convert(text, weights_of(f=blobs))
    x = np.float32([[1, 0, 0], [0, 1, 1]])
    found = session.run(None, {"x": x[:, :, None, None]})[0]
    np.testing.assert_array_equal(found, x @ matrix.T + [1, -1])


def test_half_precision_weights_of_nvidia(convert):
    text = INPUT + layer("Scale", "s", "x", "y")
    half = np.float16([0.5, -2, 3])
    raw = field(7, field(1, varint(3))) + varint(10 << 3) + varint(2) + field(12, half.tobytes())
    x = np.ones((2, 3, 6, 5), "float32")
    found = convert(text, weights_of(s=[raw])).run(None, {"x": x})[0]
    np.testing.assert_array_equal(found, x * half.astype("float32")[:, None, None])


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (None, "layer c has no weights in the network's file; pass the .caffemodel as the second file"),
        (b"", "the file is empty"),
        (b"\x89HDF\r\n\x1a\nrest", "HDF5"),
        (CONVOLUTION.encode(), "the file is text; pass the network (.prototxt) first"),
        (blob(np.ones((1, 3, 4, 4)), (1, 3, 4, 4)), "Subtract the mean from the images"),
        (weights_of(**GOOD)[:100], "not a .caffemodel, or it is truncated"),
        (weights_of(other=GOOD["c"]), "layer c has no weights in"),
        (varint(2 << 3 | 2) + varint(4) + field(1, field(2, b"")), "first format (V0)"),
    ],
)
def test_what_is_given_for_weights(convert, weights, expected):
    assert expected in convert(INPUT + CONVOLUTION, weights, fails=2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (weights_of(**GOOD), "the file is binary, but a .prototxt file is text; pass the network (.prototxt) first"),
        ("", "the file has no layer for inference"),
        ("layer { name: ", "line 1"),
        (INPUT + layer("ReLU", "r", "x", "a") + layer("ReLU", "r", "a", "y"), "two layers have the name 'r'"),
        (INPUT + layer("ReLU", "r", "nothing", "y"), "the layer reads 'nothing' as a bottom, but no earlier layer"),
        (INPUT + 'layer { name: "r" type: "ReLU" bottom: "x" top: "" }', "one of its tops has no name"),
        ('layers { layer { name: "c" type: "conv" } bottom: "x" top: "y" }', "first format (V0)"),
        (
            'input: "x" input_dim: 2 input_dim: 3\n' + layer("ReLU", "r", "x", "y"),
            "2 fields `input_dim` and 1 fields `input`",
        ),
        (
            layer("Data", "d", "", "x", "data_param { batch_size: 4 } transform_param { crop_size: 227 }")
            + layer("ReLU", "r", "x", "y"),
            "--input x:4x3x227x227",
        ),
        (
            INPUT + layer("Sigmoid", "s", "x x", "y"),
            "it has 2 bottoms, but the conversion of its type does not use 'x'",
        ),
        (INPUT + layer("Sigmoid", "s", "x", "y", "include { phase: TEST } exclude { phase: TRAIN }"), "both `include`"),
    ],
)
def test_what_is_given_for_a_network(convert, text, expected):
    assert expected in convert(text, fails=2)


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        ("Pooling", "pooling_param { pool: STOCHASTIC kernel_size: 2 }", "`pool` is STOCHASTIC"),
        (
            "Pooling",
            "pooling_param { kernel_size: 2 pad: 2 }",
            "`pad` is 2; it must be less than the size of the kernel, 2",
        ),
        (
            "Pooling",
            "pooling_param { kernel_size: 1 stride: 4 }",
            "the last window begins at 8, after the end of the 6",
        ),
        (
            "Pooling",
            "pooling_param { global_pooling: true kernel_size: 2 }",
            "`global_pooling` and also a kernel size or padding",
        ),
        ("Pooling", "pooling_param { kernel_size: 9 }", "a kernel of 9 does not fit into 6 elements"),
        ("SPP", "spp_param { pyramid_height: 2 pool: STOCHASTIC }", "`pool` is STOCHASTIC"),
        ("SPP", "spp_param { pyramid_height: 40 }", "`pyramid_height` is 40"),
        ("LRN", "lrn_param { local_size: 4 }", "`local_size` is 4"),
        ("Exp", "exp_param { base: 0 }", "`base` is 0"),
        ("Log", "log_param { base: -2 }", "`base` is -2"),
        ("Eltwise", "eltwise_param { coeff: 1 coeff: 2 }", "`coeff` has 2 values for 1 bottoms"),
        ("Reshape", "reshape_param { shape { dim: -2 } }", "dimension -2"),
        ("Permute", "permute_param { order: 0 order: 0 }", "is not a permutation"),
        ("Softmax", "softmax_param { axis: 4 }", "axis 4 is out of range; a blob of 4 dimensions has the axes -4 to 3"),
        ("Slice", "slice_param { slice_point: 9 }", "`slice_point`"),
        ("Tile", "tile_param { axis: 1 }", "`tiles`"),
        ("ArgMax", "argmax_param { top_k: 0 }", "`top_k`"),
        ("Reorg", "reorg_param { reverse: true }", "`reverse` is true"),
        ("Reorg", "", "`stride`, 2, must divide the height and the width"),
        ("Interp", "", "neither `height` and `width` nor"),
        ("Interp", "interp_param { height: 4 width: 4 pad_beg: 1 }", "`pad_beg` or `pad_end` is above 0"),
        ("Upsample", "", "it has one bottom and no `scale`"),
        (
            "Upsample",
            "upsample_param { scale: 2 upsample_h: 3 upsample_w: 3 }",
            "require a second bottom with the indices of the maxima",
        ),
        ("ShuffleChannel", "shuffle_channel_param { group: 2 }", "the 3 channels are not divisible by `group`, 2"),
        ("Clip", "clip_param { min: 0 }", "`min` or `max` is missing"),
        ("Dropout", "dropout_param { sample_weights_test: true }", "`sample_weights_test` is true"),
        (
            "DetectionOutput",
            "detection_output_param { num_classes: 2 nms_param { eta: 0.5 } }",
            "`eta` is 0.5; only `eta: 1` is supported",
        ),
        ("Region", "region_param { classes: 2 num: 1 }", "3 channels, with `num` 1, `coords` 4 and `classes` 2"),
        ("MVN", "mvn_param { foo: 1 }", "`foo` of MVNParameter"),
    ],
)
def test_parameters_that_are_refused(convert, kind, parameters, expected):
    message = convert(INPUT + layer(kind, "l", "x", "y", parameters), fails=2)
    assert expected in message
    assert "layer 'l'" in message


@pytest.mark.parametrize(
    ("kind", "parameters", "blobs", "expected"),
    [
        ("BatchNorm", "batch_norm_param { use_global_stats: false }", 3, "`use_global_stats` is false"),
        ("BN", "", 2, "`bn_mode` is LEARN"),
        ("BN", "", 3, "it must have 2 (SegNet) or 4 (PSPNet)"),
        ("Convolution", "convolution_param { num_output: 4 kernel_size: 3 axis: 2 }", 2, "`axis` is 2"),
        (
            "Convolution",
            "convolution_param { num_output: 4 kernel_size: 3 group: 2 }",
            2,
            "`group` is 2, with 3 input channels and 4 output channels",
        ),
        (
            "Convolution",
            "convolution_param { num_output: 4 kernel_size: 0 }",
            2,
            "`kernel_size` must be at least 1; found [0, 0]",
        ),
        ("DepthwiseConvolution", "convolution_param { num_output: 3 kernel_size: 3 group: 1 }", 2, "`group` is 1"),
        ("InnerProduct", "inner_product_param { num_output: 4 axis: 0 }", 2, "`axis` selects the batch, axis 0"),
    ],
)
def test_parameters_of_trained_layers_that_are_refused(convert, kind, parameters, blobs, expected):
    trained = weights_of(l=[blob(np.ones(3)) for _ in range(blobs)])
    assert expected in convert(INPUT + layer(kind, "l", "x", "y", parameters), trained, fails=2)


def test_layers_without_weights_are_named_at_once(convert):
    text = INPUT + CONVOLUTION + layer("Scale", "s", "y", "y") + layer("Bias", "b", "y", "y")
    text += layer("Scale", "by", "y y", "z", "scale_param { axis: 0 }")
    assert "layers c, s, b have no weights in the network's file" in convert(text, fails=2)


def test_weights_without_a_layer_are_noted(convert):
    convert(INPUT + CONVOLUTION, weights_of(**GOOD, old=[blob(SHIFT)], older=[blob(SHIFT)]))
    assert "weights for 2 layers that the network does not have: old, older" in convert.said


def test_phases_stages_and_levels(convert):
    text = "state { level: 2 stage: 'wide' }\n" + INPUT
    expected = []
    for number, (rule, stays) in enumerate(
        (
            ("", True),
            ("include { phase: TEST }", True),
            ("include { phase: TRAIN }", False),
            ("exclude { phase: TRAIN }", True),
            ("exclude { phase: TEST }", False),
            ("include { stage: 'deploy' }", True),
            ("include { stage: 'val' }", False),
            ("include { stage: 'val' } include { stage: 'wide' }", True),
            ("include { stage: 'wide' not_stage: 'deploy' }", False),
            ("exclude { stage: 'deploy' }", False),
            ("include { min_level: 3 }", False),
            ("include { min_level: 1 max_level: 2 }", True),
            ("include { max_level: 1 }", False),
            ("phase: TRAIN", False),
        )
    ):
        text += layer("Sigmoid", f"l{number}", "x", f"y{number}", rule)
        expected += [f"y{number}"] if stays else []
    assert names(convert(text)) == (["x"], expected)


def test_network_with_data_losses_and_silence(convert):
    text = layer(
        "Data", "d", "", "x label", "include { phase: TRAIN } data_param { source: 'a' batch_size: 9 backend: LMDB }"
    )
    text += layer(
        "Data", "d", "", "x label", "include { phase: TEST } data_param { source: 'b' batch_size: 4 backend: LMDB }"
    )
    text += layer("Slice", "s", "x", "a b", "slice_param { slice_point: 1 }") + layer("Silence", "q", "b", "")
    text += layer("Accuracy", "acc", "a label", "acc") + layer("SoftmaxWithLoss", "loss", "a label", "prob")
    session = convert(text, None, "--input", "x:?x3x2x2")
    assert names(session) == (["x"], ["prob"])
    x = np.random.default_rng(1).normal(size=(5, 3, 2, 2)).astype("float32")
    np.testing.assert_allclose(session.run(None, {"x": x})[0], np.ones((5, 1, 2, 2)))


@pytest.mark.parametrize(
    "header",
    [
        'input: "x" input_shape { dim: 2 dim: 3 dim: 6 dim: 5 } input: "z" input_shape { dim: 2 dim: 3 dim: 6 dim: 5 }',
        'input: "x" input: "z" input_shape { dim: 2 dim: 3 dim: 6 dim: 5 }',
        'input: "x" input: "z" ' + "input_dim: 2 input_dim: 3 input_dim: 6 input_dim: 5 " * 2,
        layer("Input", "i", "", "x z", "input_param { shape { dim: 2 dim: 3 dim: 6 dim: 5 } }"),
        layer("Input", "i", "", "x z", "input_param { " + "shape { dim: 2 dim: 3 dim: 6 dim: 5 } " * 2 + "}"),
        "".join(
            layer("MemoryData", name, "", name, "memory_data_param { batch_size: 2 channels: 3 height: 6 width: 5 }")
            for name in "xz"
        ),
    ],
)
def test_forms_of_inputs(convert, header):
    session = convert(header + layer("Eltwise", "e", "x z", "y"))
    assert names(session) == (["x", "z"], ["y"])
    assert [value.shape for value in session.get_inputs()] == [[2, 3, 6, 5]] * 2


def test_open_batch(convert):
    """The results of these layers do not depend on the number of images; the network with 3 images is the reference."""
    text = INPUT + CONVOLUTION + layer("Pooling", "p", "y", "p", "pooling_param { kernel_size: 2 stride: 2 }")
    text += layer("Permute", "o", "p", "o", "permute_param { order: 0 order: 2 order: 3 order: 1 }")
    text += layer("Flatten", "f", "o", "f") + layer(
        "Reshape", "r", "f", "r", "reshape_param { shape { dim: 0 dim: -1 dim: 4 } }"
    )
    text += layer("Softmax", "s", "r", "s", "softmax_param { axis: 2 }") + layer(
        "InnerProduct", "i", "s", "z", "inner_product_param { num_output: 2 }"
    )
    random = np.random.default_rng(3)
    trained = weights_of(
        c=[blob(random.normal(size=KERNEL.shape)), blob(random.normal(size=4))],
        i=[blob(random.normal(size=(2, 16))), blob(random.normal(size=2))],
    )
    x = random.normal(size=(3, 3, 6, 5)).astype("float32")
    expected = convert(text, trained, "--input", "x:3x3x6x5").run(None, {"x": x})[0]
    found = convert(text, trained, "--input", "x:?x3x6x5").run(None, {"x": x})[0]
    assert found.shape == (3, 2)
    np.testing.assert_array_equal(found, expected)


def test_reshaping_takes_an_empty_batch(convert):
    """ONNX's Reshape infers no size next to a copied one of 0; Caffe's dimensions are those of NumPy."""
    text = INPUT + layer("Reshape", "r", "x", "r", "reshape_param { shape { dim: 0 dim: -1 dim: 5 } }")
    session = convert(text + layer("TanH", "t", "r", "y"), None, "--input", "x:?x3x6x5")
    x = np.random.default_rng(3).normal(size=(3, 3, 6, 5)).astype("float32")
    for batch in (0, 3):
        (found,) = session.run(None, {"x": x[:batch]})
        np.testing.assert_allclose(found, np.tanh(x[:batch].reshape(batch, 18, 5)), rtol=RELATIVE, atol=RELATIVE)


def test_dropout_that_scales(convert):
    x = np.random.default_rng(5).normal(size=(2, 3, 6, 5)).astype("float32")
    for parameters, factor in (("scale_train: false dropout_ratio: 0.75", 0.25), ("dropout_ratio: 0.75", 1)):
        text = INPUT + layer("Dropout", "d", "x", "y", f"dropout_param {{ {parameters} }}")
        np.testing.assert_array_equal(convert(text).run(None, {"x": x})[0], x * np.float32(factor))


def test_sizes_of_an_input_can_be_replaced(convert):
    session = convert(INPUT + CONVOLUTION, weights_of(**GOOD), "--input", "x:1x3x8x9")
    assert session.run(None, {"x": np.ones((1, 3, 8, 9), "float32")})[0].shape == (1, 4, 6, 7)


@pytest.mark.parametrize("top_k", [1, 2])
def test_the_last_of_equal_maxima_is_found(convert, top_k):
    """Caffe sorts pairs of value and index, the largest first."""
    x = np.float32([[[-1, 0], [-2, 5], [-1, 5]], [[3, 3], [3, 3], [1, 4]]])
    header = 'input: "x" input_shape { dim: 2 dim: 3 dim: 2 }\n'

    def best(row):
        return sorted(((value, place) for place, value in enumerate(row)), reverse=True)[:top_k]

    pairs = np.apply_along_axis(lambda row: np.float32(best(row)).T, 1, x)  # [2, values and indices, k, 2]
    for largest in (False, True):
        parameters = f"argmax_param {{ axis: 1 top_k: {top_k} out_max_val: {str(largest).lower()} }}"
        found = convert(header + layer("ArgMax", "a", "x", "y", parameters)).run(None, {"x": x})[0]
        np.testing.assert_array_equal(found, pairs[:, 0 if largest else 1])
    flat = np.float32([np.float32(best(row)).T[::-1] for row in x.reshape(2, -1)])
    found = convert(header + layer("ArgMax", "a", "x", "y", f"argmax_param {{ out_max_val: true top_k: {top_k} }}"))
    np.testing.assert_array_equal(found.run(None, {"x": x})[0], flat)
