# Compares the graph library with onnx and ONNX Runtime: files, inlining, operator sets, shape inference.
from __future__ import annotations

import os
import subprocess
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import make_model, session_of, subgraph

GOLDEN = Path(os.environ["GRAFT_GOLDEN_DIR"])
SOURCE = Path(os.environ["GRAFT_SOURCE_DIR"])
TOOL = Path(os.environ["GRAFT_BUILD_DIR"]) / "tests" / "graph_tool"
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"

NETWORKS = sorted(
    [SOURCE / "examples" / "digits" / "digits.onnx", *GOLDEN.glob("models/*.onnx"), *GOLDEN.glob("exports/*.onnx")]
)
LIGHT = sorted(DATA.glob("light/*.onnx"))


def graft(source: Path, target: Path, *steps: str) -> str:
    done = subprocess.run([TOOL, source, target, *steps], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def name_of(path: Path) -> str:
    return path.stem


NAMES = {
    "float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "bool", "string": "string", "complex64":
    "complex64", "complex128": "complex128"
}  # fmt: skip


def name_of_type(text: str) -> str:
    """Returns Graft's name of a type such as "tensor(int8)"."""
    name = text.removeprefix("tensor(").removesuffix(")")
    return NAMES.get(name) or name.replace("uint", "u").replace("int", "i").replace("float", "f")


def allowed_types(schema: onnx.defs.OpSchema) -> list[tuple[str, set[str]]]:
    """Returns for each input its type parameter and the allowed types: "no tensor" for a sequence, "any" for a
    variadic input whose tensors have independent types."""
    parameters = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    inputs = []
    for port in schema.inputs:
        allowed = parameters.get(port.type_str, [port.type_str])
        types = {name_of_type(text) for text in allowed if text.startswith("tensor(")} or {"no tensor"}
        inputs.append((port.type_str, types if port.is_homogeneous else {"any"}))
    return inputs


def test_the_types_of_operators_are_onnx_s() -> None:
    """Compares the types of every operator in every opset with the schemas of the installed onnx."""
    if f"onnx {onnx.__version__};" not in (SOURCE / "src/onnx/schema_types.inc").read_text():
        pytest.skip("another version of onnx")
    lines = subprocess.run([TOOL, "--types"], capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[tuple[str, int], list[tuple[str, set[str]]]] = {}
    for line in lines:
        place, _, types = line.partition(": ")
        name, opset, _, letter = place.split()
        found.setdefault((name, int(opset)), []).append((letter, set(types.split(", "))))
    names = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == ""}
    compared = 0
    for name, opset in [(name, opset) for name in sorted(names) for opset in range(13, 29)]:
        try:
            schema = onnx.defs.get_schema(name, opset, "")
        except onnx.defs.SchemaError:
            assert (name, opset) not in found
            continue
        inputs = allowed_types(schema)
        ours = found.get((name, opset), [])
        if schema.deprecated and not ours:
            continue
        assert [types for _, types in ours] == [types for _, types in inputs], (name, opset)
        for i, (letter, types) in enumerate(ours):
            same = [each == letter for each, _ in ours[:i]]
            assert types == {"any"} or same == [each == inputs[i][0] for each, _ in inputs[:i]], (name, opset, i)
        for kind in ("f16", "bf16"):
            compared += sum(kind in types for _, types in ours)
    assert compared > 2000


def random_inputs(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Returns values for each input without a default; unknown dimensions become 3, and each name gets one number."""
    generator = np.random.default_rng(7)
    defaults = {tensor.name for tensor in model.graph.initializer}
    inputs = {}
    for value in model.graph.input:
        if value.name in defaults:
            continue
        tensor = value.type.tensor_type
        shape = [dim.dim_value if dim.dim_value > 0 else 3 for dim in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if dtype == np.bool_:
            inputs[value.name] = generator.integers(0, 2, shape).astype(bool)
        elif np.issubdtype(dtype, np.integer):
            inputs[value.name] = generator.integers(0, 3, shape).astype(dtype)
        else:
            inputs[value.name] = generator.normal(size=shape).astype(dtype)
    return inputs


def run(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def same(a: list, b: list, exact: bool = True) -> None:
    assert len(a) == len(b)
    for x, y in zip(a, b):
        if exact:
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
        else:
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("path", NETWORKS, ids=name_of)
def test_a_file_survives_reading_and_writing(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    graft(path, target, "clone", "inside")
    onnx.checker.check_model(str(target))
    inputs = random_inputs(onnx.load(path))
    same(run(path, inputs), run(target, inputs))


@pytest.mark.parametrize("path", NETWORKS, ids=name_of)
def test_nothing_that_a_file_says_is_lost(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    graft(path, target, "inside")
    before, after = onnx.load(path), onnx.load(target)
    assert before.ir_version <= after.ir_version
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        assert getattr(before, field) == getattr(after, field)
    assert {(o.domain, o.version) for o in before.opset_import} == {(o.domain, o.version) for o in after.opset_import}
    assert {p.key: p.value for p in before.metadata_props} == {p.key: p.value for p in after.metadata_props}
    compare_graphs(before.graph, after.graph)
    functions = {(f.domain, f.name, f.overload): f for f in after.functions}
    assert len(before.functions) == len(after.functions)
    for function in before.functions:
        other = functions[function.domain, function.name, function.overload]
        assert list(function.input) == list(other.input) and list(function.output) == list(other.output)
        assert sorted(function.attribute) == sorted(other.attribute)
        compare_nodes(function.node, other.node)


def compare_graphs(before: onnx.GraphProto, after: onnx.GraphProto) -> None:
    assert [v.SerializeToString() for v in before.input] == [v.SerializeToString() for v in after.input]
    assert [v.SerializeToString() for v in before.output] == [v.SerializeToString() for v in after.output]
    assert before.quantization_annotation == after.quantization_annotation
    tensors = {t.name: t for t in after.initializer}
    assert len(before.initializer) == len(after.initializer)
    for tensor in before.initializer:
        other = tensors[tensor.name]
        assert (tensor.data_type, list(tensor.dims), tensor.doc_string) == (
            other.data_type,
            list(other.dims),
            other.doc_string,
        )
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), numpy_helper.to_array(other))
    compare_nodes(before.node, after.node)


def compare_nodes(before, after) -> None:  # noqa: ANN001
    assert len(before) == len(after)
    by_outputs = {tuple(node.output): node for node in after}
    for node in before:
        other = by_outputs[tuple(node.output)]
        for field in ("op_type", "domain", "name", "doc_string", "overload"):
            assert getattr(node, field) == getattr(other, field)
        assert list(node.input) == list(other.input)
        attributes = {a.name: a for a in other.attribute}
        assert len(attributes) == len(node.attribute)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                compare_graphs(attribute.g, attributes[attribute.name].g)
            elif attribute.type == onnx.AttributeProto.TENSOR:
                a, b = attribute.t, attributes[attribute.name].t
                assert (a.data_type, list(a.dims)) == (b.data_type, list(b.dims))
                np.testing.assert_array_equal(numpy_helper.to_array(a), numpy_helper.to_array(b))
            else:
                assert attribute == attributes[attribute.name]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("models/*.onnx")), ids=name_of)
def test_inlined_functions_compute_the_same(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    graft(path, target, "inline", "inside")
    model = onnx.load(target)
    assert not model.functions
    onnx.checker.check_model(model)
    inputs = random_inputs(onnx.load(path))
    same(run(path, inputs), run(target, inputs), exact=False)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("models/*.onnx")), ids=name_of)
def test_results_are_those_stored_with_the_model(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    graft(path, target, "clone", "inline", "infer", "inside")
    stored = np.load(path.with_suffix(".npz"), allow_pickle=False)
    model = onnx.load(target)
    feeds = {
        v.name: stored[key] for v in model.graph.input for key in stored.files if key in (v.name, f"input:{v.name}")
    }
    results = dict(zip([v.name for v in model.graph.output], run(target, feeds)))
    compared = 0
    for name, result in results.items():
        for key in (name, f"output:{name}"):
            if key in stored.files:
                np.testing.assert_allclose(result, stored[key], rtol=1e-5, atol=1e-6)
                compared += 1
    assert compared == len(results)


def test_external_data_round_trip(tmp_path: Path) -> None:
    source = SOURCE / "examples" / "digits" / "digits.onnx"
    target = tmp_path / "out.onnx"
    graft(source, target, "external")
    assert (tmp_path / "out.onnx.data").exists()
    model = onnx.load(target, load_external_data=False)
    external = [t for t in model.graph.initializer if t.data_location == TensorProto.EXTERNAL]
    assert len(external) == len(model.graph.initializer)
    assert all(int(e.value) % 4096 == 0 for t in external for e in t.external_data if e.key == "offset")
    inputs = random_inputs(model)
    same(run(source, inputs), run(target, inputs))
    back = tmp_path / "back.onnx"
    graft(target, back, "inside")
    same(run(source, inputs), run(back, inputs))
    again = tmp_path / "again.onnx"
    graft(target, again)  # a model that fits into one file is written as one
    assert not (tmp_path / "again.onnx.data").exists()
    same(run(source, inputs), run(again, inputs))
    graft(target, target)  # overwrites the input file
    same(run(source, inputs), run(target, inputs))


# ---- Functions of Graft's operators


def graft_model(dtype: int, nodes: list[onnx.NodeProto], opset: int = 17) -> onnx.ModelProto:
    graph = subgraph(nodes, [("x", dtype, ["n", 4, 5])], [("y", dtype, None)])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("graft", 1), helper.make_opsetid("TRT", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


CHAIN = [
    helper.make_node("LeakyReLU", ["x"], ["a"], "first", domain="graft", alpha=0.3),
    helper.make_node("L2Normalize", ["a"], ["b"], "second", domain="graft", axes=[1], epsilon=0.5, epsilon_mode="norm"),
    helper.make_node("LReLU_TRT", ["b"], ["c"], "third", domain="TRT", negSlope=0.7),
    helper.make_node("L2Normalize", ["c"], ["y"], "fourth", domain="graft", axes=[-1], epsilon=0.1, epsilon_mode="add"),
]


def chain(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float32)
    a = np.where(x >= 0, x, np.float32(0.3) * x)
    b = a / np.maximum(np.sqrt((a * a).sum(1, keepdims=True)), 0.5)
    c = np.where(b >= 0, b, np.float32(0.7) * b)
    return c / np.sqrt((c * c).sum(-1, keepdims=True) + 0.1)


@pytest.mark.parametrize("opset", [9, 11, 13, 17, 18, 21])
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16], ids=["f32", "f16"])
@pytest.mark.parametrize(
    "steps", [["attach"], ["attach", "inline"], ["raise", "adopt", "infer", "body"]], ids=lambda s: s[-1]
)
def test_a_graft_model_runs_without_graft(dtype: int, opset: int, steps: list[str], tmp_path: Path) -> None:
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(graft_model(dtype, CHAIN, opset), source)
    graft(source, target, *steps)
    model = onnx.load(target)
    onnx.checker.check_model(model)
    assert bool(model.functions) == (steps[-1] == "attach")
    x = np.random.default_rng(1).normal(size=(2, 4, 5)).astype(helper.tensor_dtype_to_np_dtype(dtype))
    (y,) = run(target, {"x": x})
    # Four operators in a row round their results to f16: 2^-11 each, for values up to 1.
    tolerance = 1e-6 if dtype == TensorProto.FLOAT else 4 * 2.0**-11
    np.testing.assert_allclose(y.astype(np.float32), chain(x), rtol=0, atol=tolerance)


def test_detached_nodes_are_what_the_parser_looks_up(tmp_path: Path) -> None:
    source, attached, target = tmp_path / "in.onnx", tmp_path / "attached.onnx", tmp_path / "out.onnx"
    onnx.save(graft_model(TensorProto.FLOAT, CHAIN), source)
    graft(source, attached, "attach")
    graft(attached, target, "detach")
    model = onnx.load(target)
    assert not model.functions
    assert [n.op_type for n in model.graph.node] == ["LeakyReLU", "L2Normalize", "LeakyReLU", "L2Normalize"]
    for node in model.graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        assert attributes["plugin_version"] == b"1"
        assert attributes["plugin_namespace"] == b"graft"
        assert {"x_scale", "y_scale"} <= attributes.keys()


def test_native_form(tmp_path: Path) -> None:
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(graft_model(TensorProto.FLOAT, CHAIN), source)
    graft(source, target, "adopt", "infer", "native", "attach")
    nodes = onnx.load(target).graph.node
    assert [(n.domain, n.op_type) for n in nodes][::2] == [("", "LeakyRelu")] * 2
    assert [{p.key: p.value for p in n.metadata_props}.get("graft.operator", n.op_type) for n in nodes][1::2] == [
        "L2Normalize"
    ] * 2
    x = np.random.default_rng(1).normal(size=(2, 4, 5)).astype(np.float32)
    np.testing.assert_allclose(run(target, {"x": x})[0], chain(x), rtol=0, atol=1e-6)


# ---- Operator sets

OLD_NODES = {
    "softmax_axis1": (9, [("Softmax", ["x"], {"axis": 1})]),
    "softmax_default": (9, [("Softmax", ["x"], {})]),
    "log_softmax_last": (11, [("LogSoftmax", ["x"], {"axis": 2})]),
    "hardmax": (11, [("Hardmax", ["x"], {"axis": 1})]),
    "clip": (10, [("Clip", ["x"], {"min": -0.5, "max": 0.25})]),
    "clip_max": (10, [("Clip", ["x"], {"max": 0.25})]),
    "pad": (10, [("Pad", ["x"], {"pads": [0, 1, 2, 0, 0, 1], "value": 3.0})]),
    "slice": (9, [("Slice", ["x"], {"starts": [1, 0], "ends": [3, 4], "axes": [1, 2]})]),
    "slice_no_axes": (9, [("Slice", ["x"], {"starts": [0, 1], "ends": [1, 9]})]),
    "top_k": (9, [("TopK", ["x"], {"k": 2, "axis": 1})]),
    "split": (11, [("Split", ["x"], {"axis": 1, "split": [1, 3]})]),
    "split_even": (11, [("Split", ["x"], {"axis": 1})]),
    "squeeze": (11, [("Unsqueeze", ["x"], {"axes": [0, 2]}), ("Squeeze", ["t0"], {"axes": [2]})]),
    "squeeze_all": (11, [("Unsqueeze", ["x"], {"axes": [0, 2]}), ("Squeeze", ["t0"], {})]),
    "reduce": (11, [("ReduceSum", ["x"], {"axes": [1], "keepdims": 0}), ("ReduceMax", ["t0"], {"axes": [1]})]),
    "reduce_all": (11, [("ReduceMean", ["x"], {})]),
    "dropout": (11, [("Dropout", ["x"], {"ratio": 0.3})]),
    "upsample": (7, [("Unsqueeze", ["x"], {"axes": [0]}), ("Upsample", ["t0"], {"scales": [1.0, 1.0, 2.0, 3.0]})]),
}


@pytest.mark.parametrize("step", ["raise", "raise_newest"])
@pytest.mark.parametrize("case", OLD_NODES)
def test_a_raised_model_computes_the_same(case: str, step: str, tmp_path: Path) -> None:
    opset, specs = OLD_NODES[case]
    nodes = []
    for i, (op_type, inputs, attributes) in enumerate(specs):
        outputs = [f"t{i}"]
        if i + 1 == len(specs):
            outputs = ["y", "z"] if op_type in ("TopK", "Split") else ["y"]
        nodes.append(helper.make_node(op_type, inputs, outputs, f"node{i}", **attributes))
    outputs = [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in nodes[-1].output]
    for output in outputs:
        output.ClearField("type")
    model = make_model(nodes, [("x", [3, 4, 5])], outputs, opset=opset, ir_version=7)
    for output in model.graph.output:  # ONNX Runtime requires the type of an output
        kind = TensorProto.INT64 if output.name == "z" and case == "top_k" else TensorProto.FLOAT
        output.type.tensor_type.elem_type = kind
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(model, source)
    graft(source, target, step, "infer")
    raised = onnx.load(target)
    assert raised.opset_import[0].version == (17 if step == "raise" else 22)
    onnx.checker.check_model(raised)
    x = np.random.default_rng(3).normal(size=(3, 4, 5)).astype(np.float32)
    same(run(source, {"x": x}), run(target, {"x": x}), exact=False)


IMAGE = [1, 4, 6, 8]
ROIS = np.array([[0.3, 0.4, 5.2, 4.9], [1, 1, 4, 3]], np.float32)
# Opset, the older form, and its constants; x is an image.
OLD_FORMS = {
    "upsample7_linear": (7, "Upsample", {"mode": "linear", "scales": [1.0, 1.0, 2.0, 3.0]}, []),
    "upsample9": (9, "Upsample", {"mode": "nearest"}, [np.array([1, 1, 2.5, 3], np.float32)]),
    "upsample9_linear": (9, "Upsample", {"mode": "linear"}, [np.array([1, 1, 2, 3], np.float32)]),
    "resize10": (10, "Resize", {"mode": "nearest"}, [np.array([1, 1, 1.7, 3], np.float32)]),
    "resize10_smaller": (10, "Resize", {"mode": "nearest"}, [np.array([1, 1, 0.6, 0.35], np.float32)]),
    "resize10_linear": (10, "Resize", {"mode": "linear"}, [np.array([1, 1, 0.6, 1.5], np.float32)]),
    "resize11_tf_half_pixel": (
        11,
        "Resize",
        {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"},
        [np.zeros(0, np.float32), np.array([1, 1, 0.6, 1.7], np.float32)],
    ),
    "roi_align10": (
        10,
        "RoiAlign",
        {"output_height": 3, "output_width": 2, "sampling_ratio": 2},
        [ROIS, np.zeros(2, np.int64)],
    ),
    "batch_norm7": (7, "BatchNormalization", {"spatial": 1}, [np.full(4, v, np.float32) for v in (2, 3, 0.5, 4)]),
    "scatter9": (9, "Scatter", {"axis": 1}, [np.array([[[[2]]]]), np.array([[[[7]]]], np.float32)]),
    "dropout7": (7, "Dropout", {"ratio": 0.3}, []),
    "dropout10": (10, "Dropout", {"ratio": 0.3}, []),
    "p_relu7": (7, "PRelu", {}, [np.arange(8, dtype=np.float32)]),
    "softmax12_minus2": (12, "Softmax", {"axis": -2}, []),
    "hardmax11_2": (11, "Hardmax", {"axis": 2}, []),
    "log_softmax7_0": (7, "LogSoftmax", {"axis": 0}, []),
    "max_pool8_indices": (8, "MaxPool", {"kernel_shape": [2, 2], "storage_order": 1}, []),
    "grid_sample16": (16, "GridSample", {"mode": "bicubic"}, [np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 3, 4, 2)]),
    "group_norm18": (18, "GroupNormalization", {"num_groups": 2}, [np.array([2, 3], np.float32), np.array([1, 5], np.float32)]),
}  # fmt: skip


def one_node(opset: int, op_type: str, attributes: dict, constants: list, count: int = 1) -> onnx.ModelProto:
    names = [f"c{i}" for i in range(len(constants))]
    outputs = [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(count)]
    return make_model(
        [helper.make_node(op_type, ["x", *names], [o.name for o in outputs], "node", **attributes)],
        [("x", IMAGE)],
        outputs,
        dict(zip(names, constants)),
        opset=opset,
    )


@pytest.mark.parametrize("step", ["raise", "raise_newest"])
@pytest.mark.parametrize("name", OLD_FORMS)
def test_an_old_form_computes_the_same_in_a_newer_set(name: str, step: str, tmp_path: Path) -> None:
    if (name, step) == ("roi_align10", "raise_newest"):
        pytest.skip("ONNX Runtime 1.31 lacks RoiAlign of operator set 22")
    if (name, step) == ("group_norm18", "raise"):
        pytest.skip("18 is newer than the operator set that this step asks for")
    opset, op_type, attributes, constants = OLD_FORMS[name]
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(one_node(opset, op_type, attributes, constants), source)
    graft(source, target, "infer", step, "infer")
    raised = onnx.load(target)
    assert raised.opset_import[0].version == max(opset, 17 if step == "raise" else 22)
    onnx.checker.check_model(raised, full_check=True)
    x = np.random.default_rng(3).normal(size=IMAGE).astype(np.float32)
    same(run(source, {"x": x}), run(target, {"x": x}), exact=False)


REFUSED_FORMS = {
    "scales that are not known": (10, "Resize", {"mode": "nearest"}, "scales", "not constant"),
    "larger and smaller": (10, "Resize", {"mode": "nearest"}, [1, 1, 0.5, 2], "shrinks it in another"),
    "a mean for each pixel": (7, "BatchNormalization", {"spatial": 0}, [1, 1, 1, 1], "`spatial` is 0"),
    "training": (6, "Dropout", {"ratio": 0.5}, None, "`is_test` is 0"),
}


@pytest.mark.parametrize("name", REFUSED_FORMS)
def test_a_form_without_an_equal_is_refused(name: str, tmp_path: Path) -> None:
    opset, op_type, attributes, values, message = REFUSED_FORMS[name]
    model = one_node(opset, op_type, attributes, [])
    if values == "scales":
        model.graph.input.append(helper.make_tensor_value_info("scales", TensorProto.FLOAT, [4]))
    elif values:
        model.graph.initializer.append(numpy_helper.from_array(np.array(values, np.float32), "scales"))
    if values:
        # BatchNormalization has four inputs with one number per channel.
        model.graph.node[0].input.extend(["scales"] * (4 if op_type == "BatchNormalization" else 1))
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(model, source)
    done = subprocess.run([TOOL, source, target, "raise"], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "'node'" in done.stderr and message in done.stderr
    assert not target.exists()


# ---- Shape inference


def types_of(model: onnx.ModelProto) -> dict[str, tuple[int, list[int | str | None] | None]]:
    types = {}
    for value in [*model.graph.value_info, *model.graph.output]:
        if not value.type.HasField("tensor_type"):
            continue
        tensor = value.type.tensor_type
        shape = None
        if tensor.HasField("shape"):
            shape = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim]
        types[value.name] = (tensor.elem_type, shape)
    return types


def compare_types(ours: dict, theirs: dict) -> tuple[int, int]:
    """Fails on a contradiction; returns the number of values with a type and shape in onnx, and how many of these
    Graft infers too."""
    known = reached = 0
    for name, (dtype, shape) in theirs.items():
        if dtype == 0 or shape is None:
            continue
        complete = all(isinstance(d, int) for d in shape)
        known += complete
        if name not in ours:
            continue
        my_dtype, my_shape = ours[name]
        assert my_dtype in (0, dtype), f"{name}: {my_dtype} against {dtype}"
        if my_shape is None:
            continue
        assert len(my_shape) == len(shape), f"{name}: {my_shape} against {shape}"
        for a, b in zip(my_shape, shape):
            assert not isinstance(a, int) or not isinstance(b, int) or a == b, f"{name}: {my_shape} against {shape}"
        reached += complete and all(isinstance(d, int) for d in my_shape) and my_dtype == dtype
    return known, reached


def strip_types(model: onnx.ModelProto) -> onnx.ModelProto:
    stripped = onnx.ModelProto()
    stripped.CopyFrom(model)
    del stripped.graph.value_info[:]
    for output in stripped.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return stripped


@pytest.mark.parametrize("path", [*NETWORKS, *LIGHT], ids=name_of)
def test_inferred_shapes_agree_with_onnx(path: Path, tmp_path: Path) -> None:
    model = onnx.load(path)
    theirs = types_of(onnx.shape_inference.infer_shapes(strip_types(model), data_prop=True))
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(strip_types(model), source)
    graft(source, target, "infer", "inside")
    known, reached = compare_types(types_of(onnx.load(target)), theirs)
    assert reached == known, f"onnx knows {known} values, Graft {reached} of them"


# Networks with one output `y` after a sequence or an optional.
SEQUENCES = {
    "construct": "s = SequenceConstruct (x, x)  y = SequenceAt (s, one)",
    "of several sizes": "u = Concat <axis = 0> (x, x)  s = SequenceConstruct (x, u)  y = SequenceAt (s, one)",
    "of several ranks": "s = SequenceConstruct (x, v)  y = SequenceAt (s, one)",
    "empty": "e = SequenceEmpty <dtype = 7> ()  s = SequenceInsert (e, i)  y = SequenceAt (s, zero)",
    "empty by default": "e = SequenceEmpty ()  s = SequenceInsert (e, x)  t = SequenceInsert (s, v)  y = SequenceAt (t, zero)",
    "erased": "s = SequenceConstruct (x, x)  t = SequenceErase (s, zero)  y = SequenceAt (t, zero)",
    "length": "s = SequenceConstruct (x, x)  y = SequenceLength (s)",
    "split": "s = SplitToSequence <axis = 1> (x)  y = SequenceAt (s, one)",
    "split without the axis": "s = SplitToSequence <axis = 1, keepdims = 0> (x)  y = SequenceAt (s, one)",
    "split by a size": "s = SplitToSequence <axis = 1> (x, two)  y = SequenceAt (s, one)",
    "split by a size with a rest": "s = SplitToSequence <axis = 1> (x, four)  y = SequenceAt (s, one)",
    "split by sizes": "s = SplitToSequence <axis = 1> (x, parts)  y = SequenceAt (s, one)",
    "split by other sizes": "s = SplitToSequence <axis = 1> (x, other_parts)  y = SequenceAt (s, zero)",
    "concatenated": "s = SequenceConstruct (x, x)  y = ConcatFromSequence <axis = 1> (s)",
    "stacked": "s = SequenceConstruct (x, x)  y = ConcatFromSequence <axis = -1, new_axis = 1> (s)",
    "mapped": """s = SplitToSequence <axis = 1> (x)
                 m = SequenceMap (s) <body = b (float[2,1] part) => (int64[1,2] r) { c = Cast <to = 7> (part)  r = Transpose (c) }>
                 y = SequenceAt (m, one)""",
    "carried": """e = SequenceEmpty ()
                  s = Loop (two, yes, e) <body = b (int64 step, bool go, seq(float) before) => (bool on, seq(float) after)
                    { on = Identity (go)  after = SequenceInsert (before, x) }>
                  y = ConcatFromSequence <axis = 0> (s)""",
    "chosen": """s = If (yes) <then_branch = t () => (seq(float) a) { a = SequenceConstruct (x, x) },
                               else_branch = e () => (seq(float) b) { b = SequenceConstruct (x) }>
                 y = SequenceAt (s, zero)""",
    "identity": "s = SequenceConstruct (x, x)  t = Identity (s)  y = SequenceAt (t, one)",
    "optional": "o = Optional (x)  y = OptionalGetElement (o)",
    "optional sequence": "s = SequenceConstruct (i, i)  o = Optional (s)  t = OptionalGetElement (o)  y = SequenceAt (t, one)",
    "optional or not": "y = OptionalGetElement (x)",
    "has an element": "o = Optional (x)  y = OptionalHasElement (o)",
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_types_after_sequences_are_those_of_the_results(name: str, tmp_path: Path) -> None:
    text = f"""<ir_version: 9, opset_import: ["": 18]> g (float[2,6] x, float[3] v, int64[4] i) => (float y)
      <int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}}, int64 four = {{4}}, int64[2] parts = {{3, 3}},
       int64[2] other_parts = {{2, 4}}, bool yes = {{1}}> {{ {SEQUENCES[name]} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.output[0].ClearField("type")
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(model, source)
    graft(source, target, "infer")
    dtype, shape = types_of(onnx.load(target))["y"]
    typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
    theirs, their_shape = types_of(typed)["y"]
    session = session_of(typed)
    feeds = {"x": np.ones((2, 6), "f4"), "v": np.ones(3, "f4"), "i": np.ones(4, "i8")}
    [y] = session.run(
        None, {name: array for name, array in feeds.items() if name in {i.name for i in session.get_inputs()}}
    )
    assert dtype == theirs == onnx.helper.np_dtype_to_tensor_dtype(np.asarray(y).dtype)
    if shape is None:
        assert their_shape is None
        return
    assert len(shape) == np.ndim(y)
    assert all(not isinstance(size, int) or size == found for size, found in zip(shape, np.shape(y)))
    # onnx infers fewer dimensions of some shapes, never more.
    known = [their_shape is not None and isinstance(size, int) for size in their_shape or shape]
    assert all(isinstance(size, int) for size, is_known in zip(shape, known) if is_known), (shape, their_shape)


def test_the_declared_types_of_sequences_and_optionals_count(tmp_path: Path) -> None:
    tensor = onnx.helper.make_tensor_type_proto(onnx.TensorProto.INT32, [2, "n"])
    sequence = onnx.helper.make_sequence_type_proto(tensor)
    types = {
        "s": sequence,
        "o": onnx.helper.make_optional_type_proto(tensor),
        "q": onnx.helper.make_optional_type_proto(sequence),
    }
    make = onnx.helper.make_node
    nodes = [make("SequenceAt", ["s", "k"], ["a"]), make("OptionalGetElement", ["o"], ["b"]),
             make("OptionalGetElement", ["q"], ["t"]), make("SequenceAt", ["t", "k"], ["c"])]  # fmt: skip
    outputs = [onnx.ValueInfoProto(name=name) for name in "abc"]
    inputs = [onnx.helper.make_value_info(name, kind) for name, kind in types.items()]
    graph = subgraph(nodes, inputs, outputs, {"k": np.array(0)})
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(model, source)
    graft(source, target, "infer")
    theirs = types_of(onnx.shape_inference.infer_shapes(model))
    # onnx copies the name `n`, although the tensors of a sequence may have different sizes.
    unnamed = {
        name: (dtype, [size if size != "n" else None for size in shape]) for name, (dtype, shape) in theirs.items()
    }
    assert types_of(onnx.load(target)) == unnamed


def node_tests() -> list:
    from onnx.backend.test.loader import load_model_tests  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_model_tests(kind="node")


def fix_small_inputs(model: onnx.ModelProto, values: list) -> None:
    """Turns integer inputs after the first into constants: axes, shapes and similar inputs, which are usually
    constant."""
    for value, data in list(zip(model.graph.input, values))[1:]:
        if isinstance(data, np.ndarray) and data.dtype == np.int64 and data.size <= 64:
            model.graph.initializer.append(numpy_helper.from_array(data, value.name))
            model.graph.input.remove(value)


def test_inferred_shapes_agree_with_the_results_of_every_onnx_node_test(tmp_path: Path) -> None:
    """ONNX's own tests of operators contain the shapes of the results; Graft must not contradict them."""
    cases = []
    for case in node_tests():
        if case.model is None or any(o.domain == "" and o.version < 7 for o in case.model.opset_import):
            continue
        stripped = strip_types(case.model)
        fix_small_inputs(stripped, case.data_sets[0][0])
        source, target = tmp_path / f"{len(cases)}.in.onnx", tmp_path / f"{len(cases)}.out.onnx"
        onnx.save(stripped, source)
        cases.append((case, source, target))
    assert len(cases) > 800
    (tmp_path / "list").write_text("".join(f"{source} {target}\n" for _, source, target in cases))
    done = subprocess.run([TOOL, "--list", tmp_path / "list", "infer", "inside"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")

    known = reached = 0
    contradictions, partly = [], set()
    for case, _, target in cases:
        try:
            k, r = compare_types(types_of(onnx.load(target)), types_of(case.model))
        except AssertionError as error:
            contradictions.append(f"{case.name}: {error}")
            continue
        known += k
        reached += r
        if k > r and len(case.model.graph.node) == 1:
            partly.add(case.model.graph.node[0].op_type)
    print(f"{len(cases)} models; of {known} results {reached} inferred in full; not: {', '.join(sorted(partly))}")
    assert not contradictions, "\n".join(contradictions[:20])
    # Shapes that depend on data, sequences, and operators that trained networks do not have are not inferred.
    assert reached > 0.7 * known
