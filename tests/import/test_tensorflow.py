# Compares TensorFlow's operators, each in a small frozen graph, with TensorFlow's own results
# (tests/golden/generators/make_tensorflow_cases.py).
import collections
import json
import os
import pathlib
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
import pytest
from program import run_program

SOURCE = pathlib.Path(os.environ.get("GRAFT_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
PROGRAM = os.environ.get("GRAFT_BIN", str(SOURCE / "build" / "bin" / "graft"))
GOLDEN = pathlib.Path(os.environ.get("GRAFT_GOLDEN_DIR", SOURCE / "tests" / "golden")) / "tensorflow"

FILES = ("cases.npz", "corner_cases.npz", "cell_cases.npz")
ARRAYS = {key: array for name in FILES for key, array in np.load(GOLDEN / name).items()}
NAMES = sorted({key.split("/")[0] for key in ARRAYS})
RELATIVE = 1e-5
# TensorFlow's kernel reads its weights from a table of 1024 positions (resize_bicubic_op.cc).
BICUBIC = 5e-3

# Cases that a reference runtime cannot run, with the reason; the other one runs them.
NOT_IN_ONNXRUNTIME = {
    "resize_bicubic_00_3": "ONNX Runtime makes no image smaller bicubically",
    "resize_bicubic_01_3": "ONNX Runtime makes no image smaller bicubically",
    "resize_bicubic_10_3": "ONNX Runtime makes no image smaller bicubically",
}
NOT_IN_CPU_ENGINE = {
    "determinant": "OpenVINO has no determinant",
    "loop_open": "OpenVINO's Loop refuses a variable that grows",
    "loop_open_frames": "OpenVINO's Loop refuses a variable that grows",
    "lrn": "OpenVINO's LRN is wrong for an exponent of 0.6",
    "resize_bicubic_01_10": "OpenVINO does not know exclude_outside",
    "resize_bicubic_01_3": "OpenVINO does not know exclude_outside",
    "resize_bicubic_01_7": "OpenVINO does not know exclude_outside",
    "function_output_count": "OpenVINO's Unique counts each element once",
    "remainders_of_far_numbers": "OpenVINO's Mod computes x - trunc(x / y) * y, which has no digits left",
}


def part(case, kind):
    prefix = f"{case}/{kind}/"
    return {key[len(prefix) :]: ARRAYS[key] for key in ARRAYS if key.startswith(prefix)}


def graft(*arguments):
    done = run_program([PROGRAM, *arguments])
    # 1: converted, but TensorRT lacks an operator; other runtimes run these graphs.
    assert done.returncode in ((0, 1) if arguments[0] == "convert" else (0,)), done.stderr
    return done.stdout


def compare(case, found, batch=None):
    """Compares with TensorFlow's results, or with those of the first images."""
    outputs = {name: array[:batch] if batch is not None else array for name, array in part(case, "out").items()}
    assert outputs
    for name, expected in outputs.items():
        assert name in found
        assert found[name].dtype == expected.dtype
        assert found[name].shape == expected.shape
        if expected.size == 0:
            continue
        if not np.issubdtype(expected.dtype, np.floating):
            np.testing.assert_array_equal(found[name], expected)
            continue
        tolerance = BICUBIC if "bicubic" in case else RELATIVE
        largest = np.nanmax(np.abs(expected.astype("float64")))
        scale = largest if np.isfinite(largest) and largest > 0 else 1
        np.testing.assert_allclose(
            found[name].astype("float64"), expected.astype("float64"), rtol=tolerance, atol=tolerance * scale
        )


def parameters(without):
    return [
        pytest.param(name, marks=pytest.mark.skip(reason=without[name])) if name in without else name for name in NAMES
    ]


def write_graph(case, folder):
    path = folder / "graph.pb"
    path.write_bytes(ARRAYS[f"{case}/graph"].tobytes())
    return path


def convert_twice(case, folder):
    reports = []
    for source, target in ((write_graph(case, folder), "graph.onnx"), (folder / "graph.onnx", "again.onnx")):
        reports.append(json.loads(graft("convert", source, "-o", folder / target, "--json")))
    return folder, *reports


def run_on_the_cpu_engine(case, folder):
    np.savez(folder / "inputs.npz", **part(case, "in"))
    graft("run", write_graph(case, folder), "--input", folder / "inputs.npz", "-o", folder / "outputs.npz")
    return folder


PROGRAMS_PART = {
    "test_converted_graph_in_onnxruntime": convert_twice,
    "test_graph_as_it_is_on_the_cpu_engine": run_on_the_cpu_engine,
}


@pytest.fixture(scope="module")
def prepared(request, tmp_path_factory):
    """Runs the program for all selected tests, several at a time, because it takes most of their time."""
    pool = ThreadPoolExecutor(os.cpu_count())
    futures = {}
    for item in request.session.items:
        work = PROGRAMS_PART.get(getattr(item, "originalname", None))
        if work is None or item.module is not request.module or item.get_closest_marker("skip"):
            continue
        futures[item.nodeid] = pool.submit(work, item.callspec.params["case"], tmp_path_factory.mktemp("case"))
    yield futures
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case", parameters(NOT_IN_ONNXRUNTIME))
def test_converted_graph_in_onnxruntime(case, prepared, request):
    folder, report, again = prepared[request.node.nodeid].result()
    assert not report["undone"]
    session = onnxruntime.InferenceSession(str(folder / "graph.onnx"), providers=["CPUExecutionProvider"])
    results = session.run(None, part(case, "in"))
    compare(case, dict(zip([output.name for output in session.get_outputs()], results, strict=True)))
    assert not again["rewrites"]


@pytest.mark.parametrize("case", parameters(NOT_IN_CPU_ENGINE))
def test_graph_as_it_is_on_the_cpu_engine(case, prepared, request):
    folder = prepared[request.node.nodeid].result()
    compare(case, dict(np.load(folder / "outputs.npz")))


# ---- Conversion of particular patterns


def operators_of(graph):
    """Returns the number of nodes of each operator, including branches and loops."""
    counts = collections.Counter()
    for node in graph.node:
        counts[node.op_type] += 1
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                counts += operators_of(attribute.g)
    return counts


@pytest.fixture
def converted(request, tmp_path):
    graft("convert", write_graph(request.param, tmp_path), "-o", tmp_path / "graph.onnx", "--unroll", "0")
    return onnx.load(tmp_path / "graph.onnx").graph


@pytest.mark.parametrize("converted", ["atrous_even", "atrous_uneven", "atrous_open_batch"], indirect=True)
def test_blocks_round_a_convolution_become_its_dilations(converted):
    (product,) = [node for node in converted.node if node.op_type == "Conv"]
    (dilations,) = [list(attribute.ints) for attribute in product.attribute if attribute.name == "dilations"]
    assert max(dilations) > 1
    assert not operators_of(converted).keys() & {"Reshape", "Pad", "Slice"}


@pytest.mark.parametrize("converted", [name for name in NAMES if name.startswith("dilated_open")], indirect=True)
def test_computed_paddings_of_blocks_become_dilations(converted):
    counts = operators_of(converted)
    assert counts["Conv"] in (1, 3)
    assert not counts.keys() & {"Reshape", "Pad", "Slice", "Shape"}


@pytest.mark.parametrize("converted", ["atrous_cropped"], indirect=True)
def test_blocks_whose_crops_exceed_the_borders_are_kept(converted):
    assert operators_of(converted)["Reshape"] > 0


@pytest.mark.parametrize(
    "converted", [name for name in NAMES if re.fullmatch(r"same_\d+_\d|flatten_open_batch", name)], indirect=True
)
def test_padding_is_written_as_numbers(converted):
    assert not [
        node.name for node in converted.node if any(attribute.name == "auto_pad" for attribute in node.attribute)
    ]


@pytest.mark.parametrize(
    "converted", ["lstm_while", "lstm_frames", "gru_while", "bidirectional_frames", "map_fn_frames"], indirect=True
)
def test_lists_that_a_loop_fills_are_scan_outputs(converted):
    counts = operators_of(converted)
    assert counts["Loop"] > 0
    # no element is set, and no loop condition is computed
    assert not counts.keys() & {"ScatterND", "Less", "LogicalAnd"}


@pytest.mark.parametrize("converted", ["loop_nested"], indirect=True)
def test_nested_loops_and_branches_are_kept(converted):
    counts = operators_of(converted)
    assert (counts["Loop"], counts["If"]) == (2, 1)


@pytest.mark.parametrize(
    "converted",
    [name for name in NAMES if re.fullmatch(r"block_lstm_(plain|peephole|new)_(h|last)|block_lstm_short_h", name)],
    indirect=True,
)
def test_a_layer_whose_states_are_not_read_is_one_lstm(converted):
    counts = operators_of(converted)
    assert counts["LSTM"] == 1
    assert not counts.keys() & {"Loop", "Sigmoid", "Concat"}


@pytest.mark.parametrize("converted", ["block_lstm_short_last", "block_lstm_plain_all"], indirect=True)
def test_a_layer_whose_states_are_read_is_a_loop(converted):
    counts = operators_of(converted)
    assert counts["Loop"] == 1
    assert "LSTM" not in counts


@pytest.mark.parametrize(
    "converted",
    [name for name in NAMES if re.fullmatch(r"(resize_area|scale_and_translate)_(?!open).*", name)],
    indirect=True,
)
def test_weights_of_known_sizes_are_constants(converted):
    assert operators_of(converted).keys() <= {"Transpose", "MatMul", "AveragePool"}


# ---- Text format, and refused graphs

NODE = 'node {{ name: "{}" op: "{}" {} }}\n'
X = NODE.format(
    "x",
    "Placeholder",
    'attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 2 } } } }',
)


def node(name, op, *inputs, more=""):
    return NODE.format(name, op, " ".join(f'input: "{each}"' for each in inputs) + more)


def refusal(path):
    done = run_program([PROGRAM, "convert", path, "-o", path.parent / "out.onnx"])
    assert done.returncode == 2
    assert not (path.parent / "out.onnx").exists()
    assert str(path) in done.stderr
    return done.stderr


def test_text_form(tmp_path):
    path = tmp_path / "graph.pbtxt"
    constant = 'attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 3 float_val: 4 } } }'
    path.write_text(
        X
        + node("c", "Const", more=constant)
        + node("y", "AddV2", "x", "c")
        + "versions { producer: 1987 bad_consumers: 3 }"
    )
    np.savez(tmp_path / "inputs.npz", x=np.float32([1, 2]))
    graft("run", path, "--input", tmp_path / "inputs.npz", "-o", tmp_path / "outputs.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "outputs.npz")["y"], np.float32([4, 6]))


def test_text_that_is_no_graph(tmp_path):
    path = tmp_path / "graph.pbtxt"
    path.write_text(X + "node { name: 5 }")
    assert "line 2" in refusal(path)


def test_all_unknown_operators_are_named_with_reasons(tmp_path):
    path = tmp_path / "graph.pbtxt"
    path.write_text(
        X
        + node("a", "MysteryOp", "x")
        + node("b", "RandomUniform", "a")
        + node("v", "VarHandleOp")
        + node("r", "ReadVariableOp", "v")
        + node("y", "AddN", "b", "r")
    )
    text = refusal(path)
    for words in (
        "MysteryOp at a",
        "RandomUniform at b",
        "its result is random",
        "VarHandleOp at v",
        "convert_variables_to_constants_v2",
    ):
        assert words in text


def test_complex_numbers_are_not_computed_with(tmp_path):
    path = tmp_path / "graph.pbtxt"
    path.write_text(
        X
        + node("c", "Complex", "x", "x")
        + node("y", "Mul", "c", "c", more=' attr { key: "T" value { type: DT_COMPLEX64 } }')
    )
    assert "node 'y' (Mul): attribute `T` is complex64" in refusal(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("model.h5", b"\x89HDF\r\n", "Keras model or weights in HDF5"),
        ("model.keras", b"PK\x03\x04", "Keras model"),
        ("model.pb", b"PK\x03\x04", "zip archive"),
        ("model.ckpt", b"", "checkpoint"),
        ("model.ckpt-7.index", b"", "checkpoint"),
        ("model.ckpt-7.data-00000-of-00001", b"", "checkpoint"),
        ("model.ckpt-7.meta", b"", "checkpoint"),
        ("saved_model.pb", b"\x08\x01\x12\x10", "SavedModel"),
        ("model.tflite", b"\x1c\0\0\0TFL3", "TensorFlow Lite"),
        ("model.pt", b"PK\x03\x04", "torch.onnx.export"),
    ],
)
def test_other_files_are_named(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    assert words in refusal(path)


def test_folder_of_a_saved_model(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    (path / "saved_model.pb").write_bytes(b"\x08\x01\x12\x10")
    text = refusal(path)
    assert "SavedModel folder" in text
    assert "convert_variables_to_constants_v2" in text


def test_sides_of_different_shapes_are_not_mixed(tmp_path):
    path = tmp_path / "graph.pbtxt"
    flag = 'attr { key: "dtype" value { type: DT_BOOL } } attr { key: "shape" value { shape { } } }'
    zero = 'attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } }'
    sides = node("s", "Switch", "x", "p") + node("z", "Const", more=zero) + node("b", "ExpandDims", "s", "z")
    path.write_text(
        X + node("p", "Placeholder", more=flag) + sides + node("a", "Relu", "s:1") + node("y", "Merge", "b", "a")
    )
    assert "node 'y' (Merge): its two inputs have different shapes" in refusal(path)


@pytest.mark.parametrize("converted", ["resize_nearest_neighbor_01_10"], indirect=True)
def test_resizing_is_said_in_words_of_its_operator_set(converted):
    (resize,) = [node for node in converted.node if node.op_type == "Resize"]
    words = {attribute.name: attribute.s for attribute in resize.attribute}
    assert words["coordinate_transformation_mode"] == b"half_pixel"
    assert words["nearest_mode"] == b"round_prefer_ceil"


def placeholder(name, *dims, type="DT_FLOAT"):
    sizes = " ".join(f"dim {{ size: {dim} }}" for dim in dims)
    return NODE.format(
        name,
        "Placeholder",
        f'attr {{ key: "dtype" value {{ type: {type} }} }} attr {{ key: "shape" value {{ shape {{ {sizes} }} }} }}',
    )


def number(name, value):
    more = f'attr {{ key: "dtype" value {{ type: DT_INT32 }} }} attr {{ key: "value" value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ }} int_val: {value} }} }} }}'
    return node(name, "Const", more=more)


def text(key, value):
    return f' attr {{ key: "{key}" value {{ s: "{value}" }} }}'


BAND = number("zero", 0) + node("y", "MatrixBandPart", "x", "zero", "zero")
FILTER = node(
    "w",
    "Const",
    more='attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } dim { size: 3 } dim { size: 1 } dim { size: 1 } } float_val: 1 } } }',
)
HUGE = (
    FILTER
    + node(
        "s",
        "Const",
        more='attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 4 } } int_val: 2147483647 } } }',
    )
    + node("y", "Conv2DBackpropInput", "s", "w", "x", more=text("padding", "SAME"))
)
SIDES = (
    placeholder("p", type="DT_BOOL")
    + node("t", "Switch", "x", "p")
    + node("f", "Switch", "z", "p")
    + node("y", "Merge", "f", "t:1")
)
SCATTER = (
    number("stop", 0)
    + number("step", -1)
    + placeholder("n", type="DT_INT32")
    + node("array", "TensorArrayV3", "n", more=' attr { key: "dtype" value { type: DT_FLOAT } }')
    + node("places", "Range", "n", "stop", "step")
    + node("filled", "TensorArrayScatterV3", "array", "places", "x", "array:1")
    + node("y", "TensorArrayGatherV3", "array", "places", "filled")
)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (placeholder("x", 4) + BAND, "node 'y' (MatrixBandPart): 'x' has 1 dimensions; it must have at least 2"),
        (placeholder("x") + BAND, "'x' has 0 dimensions"),
        (placeholder("x") + node("y", "MatrixDiag", "x"), "node 'y' (MatrixDiag): 'x' has 0 dimensions"),
        (
            placeholder("x") + placeholder("b", 1) + node("y", "BiasAdd", "x", "b", more=text("data_format", "NCHW")),
            "node 'y' (BiasAdd): 'x' has 0 dimensions",
        ),
        (
            placeholder("x", 1, -1, -1, 1)
            + FILTER
            + node("s", "Shape", "w")
            + node("s3", "ExpandDims", "s", "zero")
            + number("zero", 0)
            + node("one", "Squeeze", "s3")
            + node("c", "ConcatV2", "one", "one", "zero")
            + node("y", "Conv2DBackpropInput", "c", "w", "x", more=text("padding", "SAME")),
            "node 'y' (Conv2DBackpropInput): the size of its result (input 0, 'c') has 8 elements; it must have 4",
        ),
        (placeholder("x", 1, 4, 4, 1) + HUGE, "node 'y' (Conv2DBackpropInput): a result of 2147483647 elements"),
        (
            placeholder("x", 1, 4)
            + node(
                "s",
                "Const",
                more='attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 300 } } int_val: -1 } } }',
            )
            + node("y", "Reshape", "x", "s"),
            "node 'y' (Reshape): the shape has 300 dimensions; it may have at most 254",
        ),
        (placeholder("x", -1) + placeholder("z", -1) + SIDES, "([x_batch] and [z_batch])"),
        (
            placeholder("x", -1, 2) + SCATTER,
            "node 'filled' (TensorArrayScatterV3): Graft cannot prove that its indices are 0, 1, 2",
        ),
        (
            placeholder("x", 1, 4, 4, 1)
            + node("y", "ScaleAndTranslate", "x", "size", "x", "x", more=text("kernel_type", "hermite"))
            + placeholder("size", 2, type="DT_INT32"),
            "node 'y' (ScaleAndTranslate): attribute `kernel_type` is hermite",
        ),
        (
            placeholder("x", 4, 3)
            + placeholder("w", 4, 6)
            + node("y", "LSTMBlockCell", "x", "x", "x", "w", "w", "w", "w", "w"),
            "node 'y' (LSTMBlockCell): the weights (input 3) have the shape [4, 6]; they must have 4 columns",
        ),
        (
            placeholder("x", 4, type="DT_INT16")
            + placeholder("i", 4, type="DT_INT32")
            + node("y", "SegmentMax", "x", "i"),
            "node 'y' (SegmentMax): its data are i16",
        ),
        (
            placeholder("x", 4) + number("axis", 2) + node("y", "Cumprod", "x", "axis"),
            "node 'y' (Cumprod): axis 2 is out of range",
        ),
        (
            placeholder("x", 4)
            + number("low", -1)
            + node("y", "QuantizeAndDequantizeV2", "x", "low", "low", more=text("round_mode", "HALF_UP")),
            "attribute `round_mode` is HALF_UP",
        ),
    ],
)
def test_what_would_be_computed_wrongly_is_refused(tmp_path, graph, words):
    path = tmp_path / "graph.pbtxt"
    path.write_text(graph)
    assert words in refusal(path)


def test_unknown_outputs_inside_functions_are_named(tmp_path):
    path = tmp_path / "graph.pbtxt"
    signature = (
        'signature { name: "best" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }'
    )
    path.write_text(
        X
        + node("y", "best", "x")
        + f'library {{ function {{ {signature} node_def {{ name: "u" op: "Unique" input: "a" }} '
        + 'ret { key: "r" value: "u:indices:0" } } }'
    )
    assert "the function 'best' reads the output 'indices' of node 'u' (Unique)" in refusal(path)


def test_integers_are_not_rounded(tmp_path):
    path = tmp_path / "graph.pbtxt"
    path.write_text(placeholder("x", 3, type="DT_INT32") + node("y", "Round", "x"))
    graft("convert", path, "-o", tmp_path / "graph.onnx")
    (result,) = onnxruntime.InferenceSession(str(tmp_path / "graph.onnx")).run(None, {"x": np.int32([1, -2, 3])})
    np.testing.assert_array_equal(result, [1, -2, 3])


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (("a", "b"), {"a": ["a_batch", 2], "b": ["b_batch", 2]}),
        (("a",), {"a": ["batch", 2], "b": [1, 2]}),
    ],
)
def test_open_sizes_of_several_inputs_are_their_own(tmp_path, inputs, expected):
    path = tmp_path / "graph.pbtxt"
    holders = "".join(placeholder(name, -1 if name in inputs else 1, 2) for name in "ab")
    path.write_text(holders + node("y", "AddV2", "a", "b"))
    graft("convert", path, "-o", tmp_path / "graph.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "graph.onnx"))
    assert {value.name: value.shape for value in session.get_inputs()} == expected


def test_boxes_of_an_empty_batch_are_none(tmp_path):
    """ONNX's Reshape infers no size next to a copied one of 0. TensorFlow's results have a row for each image."""
    case = "suppression_combined"
    sizes = ("--input", "b:?x12x1x4", "--input", "s:?x12x3")
    graft("convert", write_graph(case, tmp_path), "-o", tmp_path / "graph.onnx", *sizes)
    session = onnxruntime.InferenceSession(str(tmp_path / "graph.onnx"))
    inputs = part(case, "in")
    names = [output.name for output in session.get_outputs()]
    for batch in (0, len(inputs["b"])):
        results = session.run(None, {name: array[:batch] for name, array in inputs.items()})
        compare(case, dict(zip(names, results, strict=True)), batch)


@pytest.mark.parametrize("type", ["DT_FLOAT", "DT_HALF"])
def test_arc_tangent_of_two_has_the_quadrant_and_the_sign_of_numpy(tmp_path, type):
    path = tmp_path / "graph.pbtxt"
    path.write_text(placeholder("y", -1, type=type) + placeholder("x", -1, type=type) + node("z", "Atan2", "y", "x"))
    graft("convert", path, "-o", tmp_path / "graph.onnx")
    numbers = np.array([-np.inf, -2e4, -2, -1, -1e-3, -0.0, 0.0, 1e-3, 1, 2, 2e4, np.inf, np.nan])
    numbers = numbers.astype({"DT_FLOAT": np.float32, "DT_HALF": np.float16}[type])
    y, x = (each.ravel() for each in np.meshgrid(numbers, numbers))
    (found,) = onnxruntime.InferenceSession(str(tmp_path / "graph.onnx")).run(None, {"y": y, "x": x})
    expected = np.arctan2(y, x)
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(numbers.dtype).eps)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))
