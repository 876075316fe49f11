# Compares the CPU engine with ONNX Runtime: exported networks, element types, branches and loops, and Graft's own
# nodes.
"""`run_model attach` writes the functions of Graft's nodes into the file, and ONNX Runtime runs these functions.
They are the reference for both ways in which the engine computes an operator: by its function and by Graft's own
kernel."""

import atexit
import functools
import json
import os
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

golden = Path(os.environ["GRAFT_GOLDEN_DIR"])
source = Path(os.environ["GRAFT_SOURCE_DIR"])
runner = Path(os.environ["GRAFT_BUILD_DIR"]) / "tests" / "run_model"

# Two runtimes may round each of a few operations differently: 16 epsilon of f32, for results near 1.
tolerance = {"rtol": 2e-6, "atol": 2e-6}


@functools.cache
def server():
    """Starts a process that runs one model after another, because loading the CPU engine takes longer than a small
    model."""
    process = subprocess.Popen([runner, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


def run_served(*arguments):
    """Runs a command in the server and returns its exit code; messages go to standard error, which pytest shows."""
    process = server()
    process.stdin.write("\t".join(map(str, arguments)) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    assert answer, f"the process ended with {process.wait()}"
    return int(answer)


def run_alone(*arguments):
    """Runs a command in a process of its own."""
    done = subprocess.run([runner, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return 0


def run_graft(mode, model, inputs, folder, *extra, run=run_served):
    """Runs a model and returns its outputs by name; input and output files are in NumPy's format."""
    given, found = folder / "in.npz", folder / "out.npz"
    np.savez(given, **inputs)
    assert run(mode, model, given, found, *extra) == 0
    with np.load(found) as archive:
        return {name: archive[name] for name in archive.files}


def run_onnxruntime(model, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def numpy_type(value):
    element_type = value.type.tensor_type.elem_type
    return np.dtype(helper.tensor_dtype_to_np_dtype(element_type))


def random_inputs(path, seed, batch=3):
    model = onnx.load(str(path))
    generator = np.random.default_rng(seed)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        shape = [dim.dim_value or batch for dim in value.type.tensor_type.shape.dim]
        inputs[value.name] = generator.standard_normal(shape).astype(numpy_type(value))
    return inputs


def assert_same(found, expected, **limits):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, name
        assert found[name].shape == value.shape, name
        if value.dtype.kind in "iub":
            np.testing.assert_array_equal(found[name], value, err_msg=name)
        else:
            allowed = limits or tolerance
            # The terms of a sum are rounded relative to the largest: those of a convolution reach 13, and cancel to
            # 0.04.
            finite = np.abs(value[np.isfinite(value)])
            largest = max(1.0, float(finite.max(initial=0)))
            np.testing.assert_allclose(
                found[name], value, err_msg=name, rtol=allowed["rtol"], atol=allowed["atol"] * largest
            )


manifest = json.loads((golden / "exports" / "manifest.json").read_text())
not_on_cpu_engine = {e["file"] for e in manifest["exports"] if "not_on_cpu_engine" in e}
exports = [path for path in sorted((golden / "exports").glob("*.onnx")) if path.name not in not_on_cpu_engine]


def test_there_are_exports():
    assert len(exports) >= 40


@pytest.mark.parametrize("path", exports, ids=lambda path: path.stem)
def test_exported_networks(path, tmp_path):
    inputs = random_inputs(path, seed=1)
    # In f16 the engine computes in f32 and rounds once, where ONNX Runtime rounds after each of up to 6 nodes.
    half = any(value.dtype == np.float16 for value in inputs.values())
    limits = {"rtol": 6e-3, "atol": 6e-3} if half else tolerance
    assert_same(run_graft("functions", path, inputs, tmp_path), run_onnxruntime(path, inputs), **limits)


def test_the_digits(tmp_path):
    path = source / "examples" / "digits" / "digits.onnx"
    with np.load(path.parent / "digits_test.npz") as archive:
        images, labels = archive["images"], archive["labels"]
    expected = run_onnxruntime(path, {"image": images})
    found = run_graft("functions", path, {"image": images}, tmp_path)
    # logits reach 12 after five layers of sums of up to 300 terms
    assert_same(found, expected, rtol=1e-5, atol=1e-4)
    assert (found["logits"].argmax(axis=1) == labels).mean() >= 0.97


# tests/onnx tests how the golden models are read; this test compares their outputs.
stored = sorted(path for path in (golden / "models").glob("*.onnx") if path.with_suffix(".npz").exists())


@pytest.mark.parametrize("path", stored, ids=lambda path: path.stem)
def test_stored_models(path, tmp_path):
    if path.stem == "overloads":
        pytest.skip("overloads of functions are the business of tests/onnx")
    with np.load(path.with_suffix(".npz")) as archive:
        inputs = {
            value.name: archive[value.name] for value in onnx.load(str(path), load_external_data=False).graph.input
        }
    assert_same(run_graft("functions", path, inputs, tmp_path), run_onnxruntime(path, inputs))


def save(path, nodes, inputs, outputs, opset=17, **more):
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        **more,
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("graft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), str(path))


LARGE = np.array([2**24 + 1, -(2**24 + 1), 123456789, 7], "i4")
SMALL = np.array([2**24, -(2**24), 1234567, 7], "i4")
IN_F32 = {
    "Div": [[1000, 3, 7, -2]],
    "Mod": [[1000, 3, 7, -2]],
    "Pow": [[1, 1, 1, 2]],
    "MatMul": [[[1], [1], [0], [0]]],
    "ReduceSum": [],
    "ReduceMax": [],
    "ReduceMean": [],
}


@pytest.mark.parametrize("op", IN_F32)
def test_integers_that_the_engine_computes_in_f32_are_exact_or_refused(op, tmp_path):
    others = {f"x{i}": np.array(other, "i4") for i, other in enumerate(IN_F32[op], 1)}
    for x in (SMALL, LARGE):
        inputs = {"x0": x, **others}
        save(
            tmp_path / "model.onnx",
            [helper.make_node(op, list(inputs), ["y"])],
            [(name, TensorProto.INT32, value.shape) for name, value in inputs.items()],
            [("y", TensorProto.INT32, None)],
        )
        if x is SMALL:
            expected = run_onnxruntime(tmp_path / "model.onnx", inputs)
            assert_same(run_graft("functions", tmp_path / "model.onnx", inputs, tmp_path), expected)
            continue
        np.savez(tmp_path / "in.npz", **inputs)
        paths = [tmp_path / "model.onnx", tmp_path / "in.npz", tmp_path / "out.npz"]
        done = subprocess.run([runner, "functions", *paths], capture_output=True, text=True)
        assert done.returncode != 0
        assert "computes these integers in f32" in done.stderr


@pytest.mark.parametrize("opset", [11, 13, 17, 18])
@pytest.mark.parametrize("op", ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"])
def test_reductions_of_every_opset_see_their_axes(op, opset, tmp_path):
    x = np.arange(1, 13, dtype="f4").reshape(3, 4)
    as_input = opset >= 18
    node = helper.make_node(op, ["x", "axes"] if as_input else ["x"], ["y"], **({} if as_input else {"axes": [1]}))
    constants = {"axes": np.array([1])} if as_input else {}
    path = tmp_path / "model.onnx"
    initializer = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    outputs = [("y", TensorProto.FLOAT, None)]
    save(path, [node], [("x", TensorProto.FLOAT, x.shape)], outputs, opset=opset, initializer=initializer)
    assert_same(run_graft("functions", path, {"x": x}, tmp_path), run_onnxruntime(path, {"x": x}))


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("element", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize(("shape", "axis"), [((8732,), 0), ((2, 500), -1), ((2, 500, 3), 1), ((2, 3, 500), 2)])
def test_equal_numbers_stay_in_their_order(shape, axis, element, largest, tmp_path):
    path = tmp_path / "model.onnx"
    code = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    node = helper.make_node("TopK", ["x", "k"], ["values", "places"], axis=axis, largest=largest)
    constants = [helper.make_tensor("k", TensorProto.INT64, [1], [20])]
    outputs = [("values", code, None), ("places", TensorProto.INT64, None)]
    x = np.random.default_rng(7).integers(-9, 9, shape).astype(element)
    for dims in (shape, [f"size{i}" for i in range(len(shape))]):
        save(path, [node], [("x", code, dims)], outputs, initializer=constants)
        found = run_graft("functions", path, {"x": x}, tmp_path)
        expected = run_onnxruntime(path, {"x": x})
        np.testing.assert_array_equal(found["places"], expected["places"])
        np.testing.assert_array_equal(found["values"], expected["values"])


def test_integers_and_booleans(tmp_path):
    path = tmp_path / "model.onnx"
    nodes = [
        helper.make_node("ArgMax", ["x"], ["place"], axis=1, keepdims=0),
        helper.make_node("TopK", ["x", "two"], ["values", "places"], axis=1),
        helper.make_node("Greater", ["x", "zero"], ["truth"]),
        helper.make_node("Shape", ["x"], ["size"]),
        helper.make_node("NonZero", ["x"], ["not_zero"]),
        helper.make_node("QuantizeLinear", ["x", "scale", "point"], ["byte"]),
        helper.make_node("DequantizeLinear", ["byte", "scale", "point"], ["again"]),
        helper.make_node("Mul", ["n", "n"], ["square"]),
        helper.make_node("Mod", ["n", "three"], ["rest"]),
    ]
    constants = [
        helper.make_tensor("two", TensorProto.INT64, [1], [2]),
        helper.make_tensor("three", TensorProto.INT64, [], [3]),
        helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0]),
        helper.make_tensor("scale", TensorProto.FLOAT, [], [0.02]),
        helper.make_tensor("point", TensorProto.INT8, [], [0]),
    ]
    integer, real = TensorProto.INT64, TensorProto.FLOAT
    outputs = [
        ("place", integer, ["b"]),
        ("values", real, ["b", 2]),
        ("places", integer, ["b", 2]),
        ("truth", TensorProto.BOOL, ["b", 7]),
        ("size", integer, [2]),
        ("not_zero", integer, [2, "k"]),
        ("byte", TensorProto.INT8, ["b", 7]),
        ("again", real, ["b", 7]),
        ("square", integer, ["m"]),
        ("rest", integer, ["m"]),
    ]
    save(path, nodes, [("x", real, ["b", 7]), ("n", integer, ["m"])], outputs, initializer=constants)
    for batch in (1, 4):
        x = np.random.default_rng(batch).standard_normal((batch, 7)).astype(np.float32)
        x[:, 3] = 0
        inputs = {"x": x, "n": np.array([0, 5, -46000, 46340], dtype=np.int64)}
        assert_same(run_graft("functions", path, inputs, tmp_path), run_onnxruntime(path, inputs))


@pytest.mark.parametrize("element", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_narrow_types(element, tmp_path):
    path = tmp_path / "model.onnx"
    code = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "wide"], ["square"]),
        helper.make_node("Cast", ["square"], ["y"], to=code),
    ]
    save(path, nodes, [("x", code, ["b", 5])], [("y", code, ["b", 5]), ("square", TensorProto.FLOAT, ["b", 5])])
    x = np.random.default_rng(3).standard_normal((4, 5)).astype(element)
    found = run_graft("functions", path, {"x": x}, tmp_path)
    square = x.astype(np.float32) ** 2
    np.testing.assert_allclose(found["square"], square, **tolerance)
    assert found["y"].dtype.itemsize == 2
    # NumPy has no bfloat16, so the output has two bytes per element.
    np.testing.assert_array_equal(found["y"].view(np.uint16), square.astype(element).view(np.uint16))


operators = {
    "leaky": ("LeakyReLU", {"alpha": 0.2}),
    "max": ("L2Normalize", {"axes": [1], "epsilon": 0.5}),
    "norm": ("L2Normalize", {"axes": [-1], "epsilon": 0.5, "epsilon_mode": "norm"}),
    "add": ("L2Normalize", {"axes": [2, 1], "epsilon": 0.5, "epsilon_mode": "add"}),
}


@pytest.mark.parametrize("element", [np.float32, np.float16, np.int8], ids=["f32", "f16", "i8"])
@pytest.mark.parametrize("name", operators)
def test_operators(name, element, tmp_path):
    op_type, attributes = operators[name]
    if element is np.int8:
        attributes = {**attributes, "x_scale": 0.05, "y_scale": 1 / 128 if op_type == "L2Normalize" else 0.05}
    code = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    shape = ["b", 6, "w"]
    plain, attached = tmp_path / "plain.onnx", tmp_path / "attached.onnx"
    save(
        plain,
        [helper.make_node(op_type, ["x"], ["y"], domain="graft", **attributes)],
        [("x", code, shape)],
        [("y", code, shape)],
    )
    subprocess.run([runner, "attach", plain, attached], check=True)
    assert len(onnx.load(str(attached)).functions) == 1
    for batch, width in ((1, 1), (2, 5), (3, 33)):
        x = np.random.default_rng(width).standard_normal((batch, 6, width)) * (40 if element is np.int8 else 1)
        inputs = {"x": np.rint(x).astype(element) if element is np.int8 else x.astype(element)}
        expected = run_onnxruntime(attached, inputs)["y"]
        for path in (plain, attached):
            for mode in ("functions", "own"):
                found = run_graft(mode, path, inputs, tmp_path)["y"]
                assert found.dtype == expected.dtype
                if element is np.int8:  # one step where f32 and f64 round a tie differently
                    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1
                else:
                    limit = tolerance if element is np.float32 else {"rtol": 1e-3, "atol": 1e-6}
                    np.testing.assert_allclose(found, expected, **limit)


constant_steps = [-(1 << 62), -(1 << 32), -(1 << 31) - 5, -(1 << 31), 1 << 31, 1 << 32, (1 << 62) + 1]
computed_steps = [-(1 << 31), (1 << 31) - 1, -2]


@pytest.mark.parametrize(
    ("step", "is_constant"), [(step, True) for step in constant_steps] + [(step, False) for step in computed_steps]
)
def test_large_steps(step, is_constant, tmp_path):
    start, end = (-1, -(1 << 63) + 1) if step < 0 else (0, (1 << 63) - 1)
    sizes = {"starts": start, "ends": end, "axes": 0} | ({"steps": step} if is_constant else {})
    constants = [numpy_helper.from_array(np.array([value]), name) for name, value in sizes.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])]
    if not is_constant:
        inputs.append(helper.make_tensor_value_info("steps", TensorProto.INT64, [1]))
    node = helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"], "slice")
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", 4])
    graph = helper.make_graph([node], "graph", inputs, [output], constants)
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
    given = {"x": np.arange(20, dtype=np.float32).reshape(5, 4)}
    if not is_constant:
        given["steps"] = np.array([step])
    assert_same(run_graft("functions", path, given, tmp_path), run_onnxruntime(path, given))


def test_inner_values(tmp_path):
    path = source / "examples" / "digits" / "digits.onnx"
    model = onnx.load(str(path))
    names = [name for node in model.graph.node for name in node.output]
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    everything = tmp_path / "everything.onnx"
    onnx.save(model, str(everything))
    inputs = random_inputs(path, seed=4)
    expected = run_onnxruntime(everything, inputs)
    assert_same(run_graft("functions", path, inputs, tmp_path, *names), expected, rtol=1e-4, atol=1e-4)


def test_a_transformation_that_fails_is_kept_away(tmp_path):
    """OpenVINO's transformation DeReshapeMatMul throws on this part of an attention, which DeBERTa has."""
    shape = [2, 4, 12, 8]
    constants = {"three": np.array([-1, 12, 8]), "four": np.array([-1, 4, 12, 12]), "scale": np.float32(2.83)}
    save(
        tmp_path / "model.onnx",
        [
            helper.make_node("Reshape", ["q", "three"], ["q3"]),
            helper.make_node("Reshape", ["k", "three"], ["k3"]),
            helper.make_node("Div", ["k3", "scale"], ["scaled"]),
            helper.make_node("Transpose", ["scaled"], ["turned"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["q3", "turned"], ["product"]),
            helper.make_node("Reshape", ["product", "four"], ["y"]),
        ],
        [("q", TensorProto.FLOAT, shape), ("k", TensorProto.FLOAT, shape)],
        [("y", TensorProto.FLOAT, [2, 4, 12, 12])],
        initializer=[numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    inputs = random_inputs(tmp_path / "model.onnx", seed=6)
    expected = run_onnxruntime(tmp_path / "model.onnx", inputs)
    assert_same(run_graft("functions", tmp_path / "model.onnx", inputs, tmp_path), expected, rtol=1e-4, atol=1e-5)


def test_a_model_that_cannot_be_read(tmp_path):
    path = tmp_path / "model.onnx"
    save(
        path,
        [helper.make_node("Unheard", ["x"], ["y"], domain="strange", name="odd")],
        [("x", 1, [2])],
        [("y", 1, [2])],
    )
    np.savez(tmp_path / "in.npz", x=np.zeros(2, np.float32))
    done = subprocess.run(
        [runner, "own", path, tmp_path / "in.npz", tmp_path / "out.npz"], capture_output=True, text=True
    )
    assert done.returncode == 2
    message, next_step = done.stderr.splitlines()
    assert "model.onnx" in message and "'odd' (strange::Unheard)" in message
    assert next_step.startswith("Load the library of your own operator with")
    assert not (tmp_path / "out.npz").exists()
