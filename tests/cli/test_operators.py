# Tests operators of libraries that are not Graft's: --operators. NumPy, PyTorch's formula for PixelUnshuffle, and ONNX
# Runtime, which runs converted models without any library, judge the results.
import json
import os
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import DIGITS, DIGITS_SHAPES, PLUGIN_LIBRARY, needs_plugin_library
from onnx import TensorProto, helper
from onnx_models import run_onnx, save

LIBRARIES = Path(os.environ["GRAFT_BUILD_DIR"]) / "tests" / "operators"
LIBRARY = LIBRARIES / "libmy_operators.so"
PLUGINS = LIBRARIES / "libmy_plugins.so"  # contains the same operators, in a build with CUDA
RANDOM = np.random.default_rng(7)
SHAPE = [2, 3, 4, 6]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def unshuffled(x, factor):
    """Computes torch.nn.functional.pixel_unshuffle by the formula of its documentation."""
    n, c, h, w = x.shape
    pieces = x.reshape(n, c, h // factor, factor, w // factor, factor)
    return pieces.transpose(0, 1, 3, 5, 2, 4).reshape(n, c * factor * factor, h // factor, w // factor)


# name: inputs, attributes, result of f64 inputs
OPERATORS = {
    "Snake": (["x"], {"alpha": 2.0}, lambda x: [x + np.sin(2 * x) ** 2 / 2]),
    "GatedTanh": (["x", "gate"], {}, lambda x, gate: [np.tanh(x) * sigmoid(gate)]),
    "SplitSign": (["x"], {}, lambda x: [np.maximum(x, 0), np.minimum(x, 0)]),
    "PixelUnshuffle": (["x"], {"factor": 2}, lambda x: [unshuffled(x, 2)]),
}
EVERY = pytest.mark.parametrize("name", OPERATORS)


def network(path, name, domain="my", shape=SHAPE, functions=(), **attributes):
    """Saves a network with the operator between two standard ones."""
    inputs, usual, results = OPERATORS[name]
    outputs = [f"y{i}" for i in range(len(results(*[np.zeros(SHAPE)] * len(inputs))))]
    nodes = [
        helper.make_node("Abs", [inputs[0]], ["abs"]),
        helper.make_node("Sub", ["abs", "one"], ["moved"]),
        helper.make_node(
            name, ["moved", *inputs[1:]], [f"inner_{o}" for o in outputs], "it", domain=domain, **(usual | attributes)
        ),
        *(helper.make_node("Neg", [f"inner_{output}"], [output]) for output in outputs),
    ]
    ends = [(output, None) for output in outputs]
    return save(
        path, nodes, [(i, shape) for i in inputs], ends, {"one": np.float32(1)}, functions=functions, domains=[domain]
    )


def feeds_of(name, shape=SHAPE):
    return {each: RANDOM.normal(size=shape).astype(np.float32) for each in OPERATORS[name][0]}


def expected(name, feeds):
    x, *rest = [feed.astype(np.float64) for feed in feeds.values()]
    return [-result for result in OPERATORS[name][2](np.abs(x) - 1, *rest)]


def arguments_for(folder, feeds):
    np.savez(folder / "in.npz", **feeds)
    return ["-i", str(folder / "in.npz")]


def compare(results, name, feeds, tolerance=1e-6):
    for i, wanted in enumerate(expected(name, feeds)):
        np.testing.assert_allclose(results[f"y{i}"], wanted, rtol=tolerance, atol=tolerance)


def with_library(*arguments):
    return [*arguments, "--operators", LIBRARY]


def test_ops_lists_them_beside_grafts_own(graft):
    own = [each["name"] for each in graft("ops", "--json").json["operators"]]
    listed = graft(*with_library("ops", "--json")).json["operators"]
    assert [each["name"] for each in listed] == [
        *own,
        *OPERATORS,
        "SelectRows",
        "FastNormalizedFusion",
        "AffineSampling",
    ]
    assert {each["library"] for each in listed} == {None, str(LIBRARY.resolve())}
    one = graft(*with_library("ops", "pixelunshuffle"))
    assert one.code == 0 and str(LIBRARY.resolve()) in one.out and "factor" in one.out
    assert graft("ops", "PixelUnshuffle").code == 2


@EVERY
@pytest.mark.parametrize("kernels", ["functions", "own"])
@pytest.mark.parametrize("domain", ["my", "graft"])
def test_run_computes_them(graft, tmp_path, name, kernels, domain):
    model, feeds = network(tmp_path / "m.onnx", name, domain), feeds_of(name)
    command = ["run", model, *arguments_for(tmp_path, feeds), "-o", tmp_path / "out.npz", "--kernels", kernels]
    graft(*with_library(*command), code=0)
    compare(np.load(tmp_path / "out.npz"), name, feeds)
    (tmp_path / "out.npz").unlink()
    assert graft(*command).code == 2
    assert not (tmp_path / "out.npz").exists()


@EVERY
@pytest.mark.parametrize("plugins", ["auto", "never"])
def test_convert_writes_what_onnx_runtime_runs(graft, tmp_path, name, plugins):
    sizes = ["n", 3, "h", "w"]
    model, feeds = network(tmp_path / "m.onnx", name, shape=sizes), feeds_of(name)
    out = tmp_path / "out.onnx"
    graft(*with_library("convert", model, "-o", out, "--plugins", plugins, "--json"), code=0)
    compare(run_onnx(out, feeds), name, feeds, 2e-6)
    written = onnx.load(out)
    theirs = [node for node in written.graph.node if node.domain == "graft"]
    if plugins == "never":
        assert not theirs and not written.functions
    else:
        assert [node.op_type for node in theirs] == [name]
        assert [function.name for function in written.functions] == [name]
    # The written model contains the function: it runs without the library, and computes the same with it.
    for more in ([], ["--operators", LIBRARY]):
        graft("run", out, *arguments_for(tmp_path, feeds), "-o", tmp_path / "out.npz", *more, code=0)
        compare(np.load(tmp_path / "out.npz"), name, feeds, 2e-6)


@EVERY
def test_inspect_says_plugin_and_why(graft, tmp_path, name):
    model = network(tmp_path / "m.onnx", name)
    (node,) = [n for n in graft(*with_library("inspect", model, "--json")).json["nodes"] if n["node"] == "it"]
    assert node["verdict"] == "plugin" and f"from {LIBRARY.name}" in node["reason"]
    assert graft("inspect", model).code == 1


def selecting(path, rows="n", is_whole=False, **attributes):
    """Saves SelectRows, whose output size depends on data, between two standard operators; `is_whole`: with its size
    output."""
    outputs = ["selected", "count"] if is_whole else ["selected"]
    nodes = [
        helper.make_node("Abs", ["x"], ["abs"]),
        helper.make_node("SelectRows", ["abs", "score"], outputs, "it", domain="my", threshold=0.25, **attributes),
        helper.make_node("Neg", ["selected"], ["y"]),
    ]
    ends = [("y", None), *([("count", TensorProto.INT64, [])] if is_whole else [])]
    return save(path, nodes, [("x", [rows, 3]), ("score", [rows])], ends, domains=["my"])


SCORES = {"some": RANDOM.normal(size=50), "none": np.full(50, -1), "all": np.full(50, 1), "no rows": np.zeros(0)}


@pytest.mark.parametrize("which", SCORES)
@pytest.mark.parametrize("kernels", ["functions", "own"])
@pytest.mark.parametrize("is_whole", [False, True])
def test_sizes_may_depend_on_data(graft, tmp_path, which, kernels, is_whole):
    score = SCORES[which].astype(np.float32)
    x = RANDOM.normal(size=(len(score), 3)).astype(np.float32)
    feeds, wanted = {"x": x, "score": score}, -np.abs(x[score > 0.25])
    model = selecting(tmp_path / "m.onnx", is_whole=is_whole)
    command = ["run", model, *arguments_for(tmp_path, feeds), "-o", tmp_path / "out.npz", "--kernels", kernels]
    graft(*with_library(*command), code=0)
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_array_equal(out["y"], wanted)
        assert not is_whole or (out["count"].dtype, out["count"]) == (np.int64, len(wanted))

    converted = tmp_path / "converted.onnx"
    graft(*with_library("convert", model, "-o", converted), code=0)
    np.testing.assert_array_equal(run_onnx(converted, feeds)["y"], wanted)


@pytest.mark.parametrize("kernels", ["functions", "own"])
@pytest.mark.parametrize(("limit", "code"), [(0.25, 0), (0.26, 1)])
def test_verify_compares_sizes_that_depend_on_data(graft, tmp_path, kernels, limit, code):
    nodes = [
        helper.make_node("Abs", ["x"], ["abs"]),
        helper.make_node("Greater", ["score", "limit"], ["is_selected"]),
        helper.make_node("Compress", ["abs", "is_selected"], ["selected"], axis=0),
        helper.make_node("Neg", ["selected"], ["y"]),
    ]
    ends = [("y", None)]
    inputs = [("x", [1000, 3]), ("score", [1000])]
    reference = save(tmp_path / "reference.onnx", nodes, inputs, ends, {"limit": np.float32(limit)})
    candidate = selecting(tmp_path / "m.onnx", rows=1000)
    answer = graft(*with_library("verify", reference, candidate, "--kernels", kernels))
    assert answer.code == code, answer.out + answer.err


# ---- Any number of inputs: FastNormalizedFusion, compared with ONNX Runtime on the standard operators to which
# EfficientDet's PyTorch code is exported


def fusion_inputs(counts, shape=SHAPE, element=TensorProto.FLOAT):
    """Yields the inputs w0, x0_1, x0_2, ... of the first node and w1, x1_1, ... of the second."""
    for node, count in enumerate(counts):
        yield f"w{node}", element, [count]
        for i in range(count):
            yield f"x{node}_{i + 1}", element, shape


def fusing(path, counts, shape=SHAPE, element=TensorProto.FLOAT, domain="my", **attributes):
    nodes = [
        helper.make_node(
            *("FastNormalizedFusion", [f"w{n}", *(f"x{n}_{i + 1}" for i in range(count))], [f"y{n}"], f"it{n}"),
            domain=domain,
            **attributes,
        )
        for n, count in enumerate(counts)
    ]
    ends = [(f"y{n}", element, None) for n in range(len(counts))]
    return save(path, nodes, list(fusion_inputs(counts, shape, element)), ends, domains=[domain])


def exported_fusion(path, counts, shape=SHAPE, epsilon=1e-4):
    """Saves w = relu(w); w = w / (w.sum(0) + epsilon); y = w[0] * x_1 + w[1] * x_2 + ... in standard operators."""
    constants = {"epsilon": np.float32(epsilon)} | {f"i{i}": np.int64(i) for i in range(max(counts))}
    nodes = []
    for n, count in enumerate(counts):
        nodes += [
            helper.make_node("Relu", [f"w{n}"], [f"positive{n}"]),
            helper.make_node("ReduceSum", [f"positive{n}"], [f"sum{n}"], keepdims=0),
            helper.make_node("Add", [f"sum{n}", "epsilon"], [f"divisor{n}"]),
            helper.make_node("Div", [f"positive{n}", f"divisor{n}"], [f"shares{n}"]),
        ]
        for i in range(count):
            nodes.append(helper.make_node("Gather", [f"shares{n}", f"i{i}"], [f"share{n}_{i}"], axis=0))
            nodes.append(helper.make_node("Mul", [f"share{n}_{i}", f"x{n}_{i + 1}"], [f"term{n}_{i}"]))
            total = f"y{n}" if i == count - 1 else f"total{n}_{i}"
            before = [f"total{n}_{i - 1}", f"term{n}_{i}"]
            nodes.append(
                helper.make_node("Add", before, [total]) if i else helper.make_node("Identity", before[1:], [total])
            )
    ends = [(f"y{n}", None) for n in range(len(counts))]
    return save(path, nodes, list(fusion_inputs(counts, shape)), ends, constants)


def fusion_feeds(counts):
    feeds = {}
    for node, count in enumerate(counts):
        feeds[f"w{node}"] = np.linspace(-0.5, 2, count + 1)[1:].astype(np.float32)
        for i in range(count):
            feeds[f"x{node}_{i + 1}"] = RANDOM.normal(size=SHAPE).astype(np.float32)
    return feeds


def test_ops_says_which_input_may_be_many(graft):
    (fusion,) = [
        each
        for each in graft(*with_library("ops", "--json")).json["operators"]
        if each["name"] == "FastNormalizedFusion"
    ]
    assert [(port["name"], port["variadic"]) for port in fusion["ports"]] == [("w", False), ("x", True), ("y", False)]
    assert {each["name"] for each in fusion["functions"]} == {"FastNormalizedFusion_1", "FastNormalizedFusion_2"}
    text = graft(*with_library("ops", "FastNormalizedFusion")).out
    assert "variadic input" in text and "bf16, bf16... -> bf16" in text


@pytest.mark.parametrize("counts", [(3, 2), (1,), (30, 30, 4)])
@pytest.mark.parametrize("kernels", ["functions", "own"])
def test_a_node_may_have_any_number_of_inputs(graft, tmp_path, counts, kernels):
    model, feeds = fusing(tmp_path / "m.onnx", counts), fusion_feeds(counts)
    wanted = run_onnx(exported_fusion(tmp_path / "reference.onnx", counts), feeds)
    command = ["run", model, *arguments_for(tmp_path, feeds), "-o", tmp_path / "out.npz", "--kernels", kernels]
    graft(*with_library(*command), code=0)
    with np.load(tmp_path / "out.npz") as out:
        for name, value in wanted.items():
            np.testing.assert_allclose(out[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("plugins", ["auto", "never"])
def test_convert_writes_a_function_for_each_count(graft, tmp_path, plugins):
    counts, sizes = (3, 2, 3), ["n", 3, "h", "w"]
    model, feeds = fusing(tmp_path / "m.onnx", counts, sizes), fusion_feeds(counts)
    wanted = run_onnx(exported_fusion(tmp_path / "reference.onnx", counts, sizes), feeds)
    out = tmp_path / "out.onnx"
    graft(*with_library("convert", model, "-o", out, "--plugins", plugins), code=0)
    written = onnx.load(out)
    names = [f"FastNormalizedFusion_{count}" for count in counts] if plugins == "auto" else []
    assert [node.op_type for node in written.graph.node if node.domain == "graft"] == names
    assert {function.name for function in written.functions} == set(names)
    for name, value in run_onnx(out, feeds).items():
        np.testing.assert_allclose(value, wanted[name], rtol=1e-5, atol=1e-6)
    graft(*with_library("convert", out, "-o", tmp_path / "again.onnx"), code=0)
    assert [node.op_type for node in onnx.load(tmp_path / "again.onnx").graph.node if node.domain == "graft"] == names


@pytest.mark.parametrize("kernels", ["functions", "own"])
@pytest.mark.parametrize(("epsilon", "code"), [(1e-4, 0), (1e-2, 1)])
def test_verify_compares_any_number_of_inputs(graft, tmp_path, kernels, epsilon, code):
    counts = (3, 2)
    reference = exported_fusion(tmp_path / "reference.onnx", counts, epsilon=epsilon)
    answer = graft(*with_library("verify", reference, fusing(tmp_path / "m.onnx", counts), "--kernels", kernels))
    assert answer.code == code, answer.out + answer.err


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_quantize_types_all_inputs_alike(graft, tmp_path, precision):
    """All inputs of the node get the types of one row; an input that is f16 already, next to f32 inputs, is refused."""
    model = fusing(tmp_path / "m.onnx", (3,))
    assert graft(*with_library("convert", model, "-o", tmp_path / "c.onnx")).code == 0
    command = ["quantize", tmp_path / "c.onnx", "-o", tmp_path / "q.onnx", "--precision", precision]
    graft(*with_library(*command), code=0)
    written = onnx.load(tmp_path / "q.onnx")
    (node,) = [node for node in written.graph.node if node.domain == "graft"]
    casts = {node.output[0]: node.attribute[0].i for node in written.graph.node if node.op_type == "Cast"}
    wanted = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}[precision]
    assert [casts[name] for name in node.input] == [wanted] * 4
    assert graft(*with_library("verify", model, tmp_path / "q.onnx", "--snr", 20)).code == 0


def mixed_types(path):
    """Saves a node with one input in f16 and the others in f32."""
    model = onnx.load(fusing(path, (3,)))
    model.graph.input[2].type.tensor_type.elem_type = TensorProto.FLOAT16
    onnx.save(model, path)
    return path


def test_mixed_types_are_refused(graft, tmp_path):
    feeds = fusion_feeds((3,))
    given = arguments_for(tmp_path, feeds | {"x0_2": feeds["x0_2"].astype(np.float16)})
    command = ["run", mixed_types(tmp_path / "m.onnx"), *given, "-o", tmp_path / "out.npz", "--kernels", "own"]
    answer = graft(*with_library(*command), code=2)
    assert "node 'it0' (my::FastNormalizedFusion): FastNormalizedFusion does not take inputs of type" in answer.err
    assert "f32, f32, f16, f32" in answer.err


@pytest.mark.parametrize("kernels", ["functions", "own"])
def test_more_inputs_than_a_plugin_has_are_refused(graft, tmp_path, kernels):
    feeds = arguments_for(tmp_path, fusion_feeds((31,)))
    command = ["run", fusing(tmp_path / "m.onnx", (31,)), *feeds, "-o", tmp_path / "out.npz", "--kernels", kernels]
    answer = graft(*with_library(*command))
    assert answer.code == 2 and "takes 2 to 31" in answer.err, answer.out + answer.err


def test_a_rule_fuses_into_any_number_of_inputs(graft, tmp_path):
    model = exported_fusion(tmp_path / "m.onnx", (2,))
    (tmp_path / "rules.yaml").write_text(
        "- match: |\n"
        "    positive = Relu(w)\n"
        "    shares = Div(positive, Add(ReduceSum(positive){keepdims=0}, @epsilon))\n"
        "    y = Add(Mul(Gather(shares, 0), a), Mul(Gather(shares, 1), b))\n"
        "  with: FastNormalizedFusion\n"
        "  inputs: [w, a, b]\n"
        "  attributes: {epsilon: '@epsilon'}\n"
    )
    command = ["convert", model, "-o", tmp_path / "out.onnx", "--rules", tmp_path / "rules.yaml"]
    graft(*with_library(*command), code=0)
    assert [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node] == ["FastNormalizedFusion_2"]


# ---- An input whose values are sizes: AffineSampling, compared with ONNX Runtime's AffineGrid


def sampling(path, size, operator=("AffineSampling", "my"), element=TensorProto.FLOAT, **attributes):
    """Saves an AffineSampling. `size` is numbers, "x" (its shape with H and W doubled), or "input" (an input of the
    network)."""
    name, domain = operator
    axes = len(size) - 2 if isinstance(size, list) else 2
    inputs = [("theta", element, ["n", axes, axes + 1])]
    nodes, stored = [], {}
    if size == "x":
        inputs.append(("x", element, ["n", 3, "h", "w"]))
        nodes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Mul", ["shape", "twice"], ["size"])]
        stored = {"twice": np.array([1, 1, 2, 2])}
    elif size == "input":
        inputs.append(("size", TensorProto.INT64, [4]))
    else:
        stored = {"size": np.array(size)}
    nodes.append(helper.make_node(name, ["theta", "size"], ["grid"], "it", domain=domain, **attributes))
    nodes.append(helper.make_node("Neg", ["grid"], ["y"]))
    domains = [domain] if domain else []
    return save(path, nodes, inputs, [("y", element, None)], stored, opset=20, domains=domains, ir_version=9)


def sampling_feeds(size):
    axes = len(size) - 2 if isinstance(size, list) else 2
    feeds = {"theta": RANDOM.normal(size=(2, axes, axes + 1)).astype(np.float32)}
    if size == "x":
        feeds["x"] = np.zeros((2, 3, 4, 5), np.float32)
    elif size == "input":
        feeds["size"] = np.array([2, 3, 6, 5])
    return feeds


SIZES = pytest.mark.parametrize("size", [[2, 3, 5, 7], [2, 1, 3, 4, 5], "x", "input"], ids=str)


@SIZES
@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("kernels", ["functions", "own"])
def test_values_of_an_input_are_sizes(graft, tmp_path, size, corners, kernels):
    feeds = sampling_feeds(size)
    wanted = run_onnx(sampling(tmp_path / "r.onnx", size, ("AffineGrid", ""), align_corners=corners), feeds)
    model = sampling(tmp_path / "m.onnx", size, align_corners=corners)
    command = ["run", model, *arguments_for(tmp_path, feeds), "-o", tmp_path / "out.npz", "--kernels", kernels]
    graft(*with_library(*command), code=0)
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_allclose(out["y"], wanted["y"], rtol=1e-5, atol=1e-5)


@SIZES
@pytest.mark.parametrize("plugins", ["auto", "never"])
def test_convert_keeps_values_that_are_sizes(graft, tmp_path, size, plugins):
    feeds = sampling_feeds(size)
    wanted = run_onnx(sampling(tmp_path / "r.onnx", size, ("AffineGrid", "")), feeds)
    out = tmp_path / "out.onnx"
    command = ["convert", sampling(tmp_path / "m.onnx", size), "-o", out, "--plugins", plugins]
    answer = graft(*with_library(*command))
    # Where sizes are computed, the function of the operator has a NonZero, which TensorRT-RTX runs only as a plugin.
    needs_plugin = plugins == "never" and size in ("x", "input")
    assert answer.code == (1 if needs_plugin else 0), answer.err
    np.testing.assert_allclose(run_onnx(out, feeds)["y"], wanted["y"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "dims"),
    [([2, 3, 5, 7], ["n", 5, 7, 2]), ("x", ["n", "(h * 2)", "(w * 2)", 2]), ("input", ["n", "", "", 2])],
)
def test_shapes_follow_from_values(graft, tmp_path, size, dims):
    out = tmp_path / "out.onnx"
    graft(*with_library("convert", sampling(tmp_path / "m.onnx", size), "-o", out), code=0)
    shape = onnx.load(out).graph.output[0].type.tensor_type.shape
    found = [dim.dim_value or dim.dim_param for dim in shape.dim]
    assert [wanted if isinstance(wanted, int) or wanted == "n" else bool(wanted) for wanted in dims] == [
        each if isinstance(each, int) or each == "n" else bool("*" in each or "2" in each) for each in found
    ], found


@SIZES
@pytest.mark.parametrize("kernels", ["functions", "own"])
@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_quantize_leaves_values_that_are_sizes(graft, tmp_path, size, kernels, precision):
    model = sampling(tmp_path / "m.onnx", size)
    assert graft(*with_library("convert", model, "-o", tmp_path / "c.onnx")).code == 0
    command = ["quantize", tmp_path / "c.onnx", "-o", tmp_path / "q.onnx", "--precision", precision]
    graft(*with_library(*command), code=0)
    (node,) = [node for node in onnx.load(tmp_path / "q.onnx").graph.node if node.domain == "graft"]
    assert node.input[1] == "size"
    np.savez(tmp_path / "in.npz", **sampling_feeds(size))
    given = ["--data", tmp_path / "in.npz", "--snr", 20, "--kernels", kernels]
    graft(*with_library("verify", model, tmp_path / "q.onnx", *given), code=0)


def test_wrong_values_are_refused(graft, tmp_path):
    model = sampling(tmp_path / "m.onnx", [2, 3, 5])
    given = arguments_for(tmp_path, {"theta": np.zeros((2, 1, 2), np.float32)})
    for command in (["run", model, *given, "-o", tmp_path / "out.npz"], ["convert", model, "-o", tmp_path / "o.onnx"]):
        answer = graft(*with_library(*command))
        assert answer.code == 2 and "`size` 3 values" in answer.err and "'it'" in answer.err, answer.err


def gated(path, fault=0.0):
    """Saves GatedTanh in standard operators."""
    nodes = [
        helper.make_node("Abs", ["x"], ["abs"]),
        helper.make_node("Sub", ["abs", "one"], ["moved"]),
        helper.make_node("Sigmoid", ["gate"], ["share"]),
        helper.make_node("Tanh", ["moved"], ["value"]),
        helper.make_node("Mul", ["value", "share"], ["inner"]),
        helper.make_node("Neg", ["inner"], ["y0"]),
    ]
    return save(path, nodes, [("x", SHAPE), ("gate", SHAPE)], [("y0", SHAPE)], {"one": np.float32(1 + fault)})


@pytest.mark.parametrize("kernels", ["functions", "own"])
@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_verify_compares_with_standard_operators(graft, tmp_path, kernels, layers):
    candidate = network(tmp_path / "m.onnx", "GatedTanh")
    good, bad = gated(tmp_path / "good.onnx"), gated(tmp_path / "bad.onnx", 0.01)
    for reference, code in [(good, 0), (bad, 1)]:
        answer = graft(*with_library("verify", reference, candidate, "--kernels", kernels, *layers))
        assert answer.code == code, answer.out + answer.err


def test_rules_fuse_into_them(graft, tmp_path):
    """A rule finds an operator of a library in a network of standard ones; the proof runs the library's kernel."""
    model, feeds = gated(tmp_path / "m.onnx"), feeds_of("GatedTanh")
    (tmp_path / "rules.yaml").write_text("- match: y = Mul(Tanh(x), Sigmoid(g))\n  with: GatedTanh\n  inputs: [x, g]\n")
    command = ["convert", model, "-o", tmp_path / "out.onnx", "--rules", tmp_path / "rules.yaml"]
    graft(*with_library(*command), code=0)
    assert "GatedTanh" in [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node]
    compare(run_onnx(tmp_path / "out.onnx", feeds), "GatedTanh", feeds)
    assert graft(*command).code == 2


def test_a_fusion_of_sizes_that_the_operator_refuses_says_so_in_a_line(graft, tmp_path):
    """The pattern matches with a broadcast input, and the message with the shapes that the operator allows appears
    once."""
    model = onnx.load(gated(tmp_path / "m.onnx"))
    gate = next(value for value in model.graph.input if value.name == "gate")
    gate.type.tensor_type.shape.dim[-1].dim_value = 1
    onnx.save(model, tmp_path / "m.onnx")
    answer = graft("convert", tmp_path / "m.onnx", "-o", tmp_path / "out.onnx", *with_library(), code=0)
    assert re.fullmatch(
        r"warning: fuse_library_operators: the replacement of 3 nodes by GatedTanh<steepness=1> "
        r"\(gated_tanh/gated_tanh_fusion.yaml:\d+:\d+\) was not applied: node '\w+' \(graft::GatedTanh\): GatedTanh: "
        r"`gate` is [\dx]+x1, allowed is the shape of `x`, [\dx]+\n",
        answer.err,
    ), answer.err
    assert "GatedTanh" not in [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node]


def test_convert_fuses_what_the_library_says(graft, tmp_path):
    """The library contains gated_tanh_fusion.yaml, so no rule or option is needed; the proof runs the library's
    kernel."""
    model, feeds = gated(tmp_path / "m.onnx"), feeds_of("GatedTanh")
    answer = graft(*with_library("convert", model, "-o", tmp_path / "out.onnx", "--json")).json
    (rewrite,) = [each for each in answer["rewrites"] if each["pass"] == "fuse_library_operators"]
    assert (
        rewrite["replacement"] == "GatedTanh<steepness=1>"
        and rewrite["proof_kind"] == "own"
        and " runs, " in rewrite["proof"]
    )
    assert rewrite["reason"] == "y = tanh(x) * sigmoid(steepness * gate), element by element."
    (choice,) = answer["choices"]
    assert (choice["operator"], choice["kind"]) == ("GatedTanh", "plugin")
    written = onnx.load(tmp_path / "out.onnx")
    assert "GatedTanh" in [node.op_type for node in written.graph.node if node.domain == "graft"]
    compare(run_onnx(tmp_path / "out.onnx", feeds), "GatedTanh", feeds)
    again = graft(*with_library("convert", tmp_path / "out.onnx", "-o", tmp_path / "again.onnx", "--json")).json
    assert again["rewrites"] == []


@pytest.mark.parametrize(
    "more",
    [
        ["--operators", LIBRARY, "--plugins", "never"],
        ["--operators", LIBRARY, "--passes=-fuse_library_operators"],
        [],
    ],
)
def test_a_fusion_of_a_library_may_be_unwanted(graft, tmp_path, more):
    graft("convert", gated(tmp_path / "m.onnx"), "-o", tmp_path / "out.onnx", *more, code=0)
    assert not [node for node in onnx.load(tmp_path / "out.onnx").graph.node if node.domain]


def snake(path, inverse=0.5, alpha=2.0, element=TensorProto.FLOAT):
    """Saves Snake in standard operators, as PyTorch exports x + (1 / alpha) * sin(alpha * x) ** 2."""
    dtype = helper.tensor_dtype_to_np_dtype(element)
    values = {"alpha": alpha, "two": 2, "inverse": inverse}
    nodes = [
        helper.make_node("Mul", ["x", "alpha"], ["angle"]),
        helper.make_node("Sin", ["angle"], ["sine"]),
        helper.make_node("Pow", ["sine", "two"], ["square"]),
        helper.make_node("Mul", ["square", "inverse"], ["ripple"]),
        helper.make_node("Add", ["x", "ripple"], ["y0"]),
    ]
    constants = {name: dtype.type(value) for name, value in values.items()}
    return save(path, nodes, [("x", element, SHAPE)], [("y0", element, SHAPE)], constants)


def test_a_constant_of_the_pattern_becomes_an_attribute(graft, tmp_path):
    answer = graft(*with_library("convert", snake(tmp_path / "m.onnx"), "-o", tmp_path / "out.onnx", "--json")).json
    assert [each["replacement"] for each in answer["rewrites"]] == ["Snake<alpha=2>"]


@pytest.mark.parametrize(
    ("changes", "where", "reason"),
    [
        ({"inverse": 0.25}, "undone", "differ"),  # the pattern allows the value, the proof disagrees
        ({"alpha": -2.0}, "near_misses", "`alpha` is -2"),
        ({"element": TensorProto.DOUBLE}, "near_misses", "'x' is f64, a type that graft::Snake does not support"),
    ],
)
def test_what_a_fusion_does_not_hold_for_stays(graft, tmp_path, changes, where, reason):
    model = snake(tmp_path / "m.onnx", **changes)
    answer = graft(*with_library("convert", model, "-o", tmp_path / "out.onnx", "--json", "--explain"), code=0)
    assert answer.json["rewrites"] == []
    assert reason in str(answer.json[where]), answer.json[where]


def test_a_function_of_the_file_does_not_hide_the_operator(graft, tmp_path):
    """An exporter may write a function with the operator's name: `convert` keeps the call as the operator, with the
    operator's own function."""
    body = [
        helper.make_node("Tanh", ["x"], ["value"]),
        helper.make_node("Sigmoid", ["gate"], ["share"]),
        helper.make_node("Mul", ["value", "share"], ["y"]),
    ]
    function = helper.make_function("my", "GatedTanh", ["x", "gate"], ["y"], body, [helper.make_opsetid("", 17)])
    model, feeds = network(tmp_path / "m.onnx", "GatedTanh", functions=[function]), feeds_of("GatedTanh")
    graft(*with_library("convert", model, "-o", tmp_path / "out.onnx"), code=0)
    assert [n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node if n.domain == "graft"] == ["GatedTanh"]
    compare(run_onnx(tmp_path / "out.onnx", feeds), "GatedTanh", feeds)


@pytest.mark.parametrize(
    ("name", "shape", "attributes", "message"),
    [
        ("PixelUnshuffle", [2, 3, 5, 6], {}, "multiples of 2"),
        ("PixelUnshuffle", SHAPE, {"factor": 0}, "`factor`"),
        ("PixelUnshuffle", SHAPE, {"blocksize": 2}, "`blocksize`"),
        ("Snake", SHAPE, {"alpha": -1.0}, "`alpha`"),
    ],
)
def test_what_the_definition_refuses_is_refused(graft, tmp_path, name, shape, attributes, message):
    model = network(tmp_path / "m.onnx", name, shape=shape, **attributes)
    feeds = arguments_for(tmp_path, feeds_of(name, shape))
    for command in (
        ["run", model, *feeds, "-o", tmp_path / "out.npz", "--kernels", "own"],
        ["convert", model, "-o", tmp_path / "o"],
    ):
        answer = graft(*with_library(*command), code=2)
        assert message in answer.err and re.search(r"node \W?it\b", answer.err)


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_quantize_types_them(graft, tmp_path, precision):
    model = network(tmp_path / "m.onnx", "GatedTanh")
    graft(*with_library("convert", model, "-o", tmp_path / "c.onnx"))
    graft(
        *with_library("quantize", tmp_path / "c.onnx", "-o", tmp_path / "q.onnx", "--precision", precision, "--json"),
        code=0,
    )
    assert "GatedTanh" in [node.op_type for node in onnx.load(tmp_path / "q.onnx").graph.node]
    assert graft(*with_library("verify", model, tmp_path / "q.onnx", "--snr", 20)).code == 0


def test_int8_scales_become_part_of_one(graft, tmp_path):
    """Snake in standard operators between convolutions is fused, and has int8 input and output like Graft's own
    operators."""
    constants = {
        "w0": RANDOM.normal(size=(6, 3, 3, 3)) / 5,
        "w1": RANDOM.normal(size=(4, 6, 1, 1)) / 2,
        "alpha": 2,
        "two": 2,
        "half": 0.5,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c"]),
        helper.make_node("Mul", ["c", "alpha"], ["angle"]),
        helper.make_node("Sin", ["angle"], ["sine"]),
        helper.make_node("Pow", ["sine", "two"], ["square"]),
        helper.make_node("Mul", ["square", "half"], ["ripple"]),
        helper.make_node("Add", ["c", "ripple"], ["g"]),
        helper.make_node("Conv", ["g", "w1"], ["y"]),
    ]
    weights = {name: np.asarray(each, np.float32) for name, each in constants.items()}
    outputs = [(name, ["n", None, None, None]) for name in ("y", "c", "g")]
    reference = save(tmp_path / "reference.onnx", nodes, [("x", ["n", 3, 9, 9])], outputs, weights)
    model = save(tmp_path / "m.onnx", nodes, [("x", ["n", 3, 9, 9])], outputs[:1], weights)
    x = RANDOM.normal(size=(8, 3, 9, 9)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    exact = run_onnx(reference, {"x": x})

    assert graft(*with_library("convert", model, "-o", tmp_path / "c.onnx")).code == 0
    out = tmp_path / "q.onnx"
    options = ["--precision", "int8", "--method", "minmax", "--data", tmp_path / "x.npz"]
    answer = graft(*with_library("quantize", tmp_path / "c.onnx", "-o", out, *options, "--json"), code=0)
    assert {node["output"]: node["type"] for node in answer.json["nodes"]}["g"] == "int8"

    written = onnx.load(out)
    (own,) = [node for node in written.graph.node if node.op_type.startswith("Snake")]
    attributes = {each.name: helper.get_attribute_value(each) for each in own.attribute}
    assert attributes["x_scale"] == pytest.approx(np.abs(exact["c"]).max() / 127, rel=1e-5)
    assert attributes["y_scale"] == pytest.approx(np.abs(exact["g"]).max() / 127, rel=1e-5)
    makers = {output: node.op_type for node in written.graph.node for output in node.output}
    readers = {name: node.op_type for node in written.graph.node for name in node.input}
    assert (makers[own.input[0]], readers[own.output[0]]) == ("QuantizeLinear", "DequantizeLinear")

    found = [run_onnx(out, {"x": x}, is_optimized=False)["y"]]
    for kernels in ("own", "functions"):
        command = ["run", out, "-i", tmp_path / "x.npz", "-o", tmp_path / "out.npz", "--kernels", kernels]
        answer = graft(*with_library(*command), code=0)
        found.append(np.load(tmp_path / "out.npz")["y"])
    for each in found:
        noise = np.square(each.astype(np.float64) - exact["y"]).sum()
        assert 10 * np.log10(np.square(exact["y"].astype(np.float64)).sum() / noise) > 25


def test_bench_times_what_their_cases_say(graft):
    """ONNX Runtime computes the function; it is timed as well, and its result agrees with the library's kernel."""
    (row,) = graft(*with_library("bench", "--op", "GatedTanh", "--device", "cpu", "--json"), code=0).json["results"]
    assert row["name"] == "GatedTanh f32 1x64x56x56, 1x64x56x56" and row["variant"] == "reference" and row["us"] > 0
    assert row["peers"]["onnxruntime"]["us"] > 0 and row["difference"] < 1e-6
    command = ["bench", "--op", "all", "--match", "1x64x56x56", "--device", "cpu", "--no-peers", "--json"]
    every = graft(*with_library(*command), code=0).json
    assert {"GatedTanh", "LeakyReLU"} <= {row["operator"] for row in every["results"]}


def test_bench_says_that_an_operator_has_no_timings(graft):
    answer = graft(*with_library("bench", "--op", "Snake", "--device", "cpu"))
    assert answer.code == 2 and "--op Snake: this operator has no timed cases" in answer.err and "timings" in answer.err
    assert graft("bench", "--op", "GatedTanh", "--device", "cpu").code == 2


def test_bench_times_a_model_with_them(graft, tmp_path):
    answer = graft(*with_library("bench", network(tmp_path / "m.onnx", "SplitSign"), "--time-limit", 0.1, "--json"))
    assert answer.code == 0 and answer.json["runs"] >= 3, answer.err


@pytest.mark.parametrize(
    ("library", "message", "next_step"),
    [
        ("symbol", "no function graft_operators", "graft_add_plugin_library"),
        ("pointer", "its function graft_operators returned a null pointer", "whose definition throws an exception"),
        ("version", "built for version 99 of the library interface", "Build the library again"),
        ("headers", "different headers: those of Graft 0.0.1, digest 0123456789abcdef", "Build the library again"),
        ("standard_library", "compiled with another standard library", "with the standard library of this Graft"),
        ("count", "no operators", "graft_add_plugin_library"),
        ("name", "operator LeakyReLU: an operator of Graft already has this name", "a different name for the operator"),
        ("fusion", "fine_fusion.yaml:1:3: `with` is graft::LeakyReLU, which is not an operator of this library", ""),
        (
            "with",
            "fine_fusion.yaml:2:9: there is no operator Fiine; did you mean Fine? libwrong_with.so has Fine; Graft's "
            "operators are ",
            "",
        ),
        ("empty_fusion", "fine_fusion.yaml: the file has no fusion; write one, as in", ""),
        ("rows", "operator Fine has a type row of 1 formats for 0 inputs and outputs", "build the library again"),
    ],
)
def test_other_libraries_are_refused(graft, library, message, next_step):
    answer = graft("ops", "--operators", LIBRARIES / f"libwrong_{library}.so", "--json", code=2)
    assert answer.json["error"]["kind"] == "bad_input"
    assert f"libwrong_{library}.so: " in answer.err
    assert message in answer.err
    assert next_step in answer.err


def test_what_is_no_library_is_refused(graft, tmp_path):
    os.mkfifo(tmp_path / "pipe.so")
    (tmp_path / "text.so").write_text("no library\n")
    (tmp_path / "empty.so").write_bytes(b"")
    (tmp_path / "part.so").write_bytes(LIBRARY.read_bytes()[:20000])
    (tmp_path / "header.so").write_bytes(LIBRARY.read_bytes()[:70])
    for name, message in [
        ("none.so", "no such file"),
        (".", "it is a folder"),
        ("pipe.so", "not a regular file"),
        ("text.so", "not a shared library"),
        ("empty.so", "not a shared library"),
        ("part.so", "the file is truncated"),
        ("header.so", "the file is truncated"),
    ]:
        answer = graft("ops", "--operators", tmp_path / name)
        assert answer.code == 2, f"{name}: {answer.code} {answer.err}"
        assert message in answer.err, name
        assert len(answer.err.strip().splitlines()) >= 2, "no next step"


def built(graft, model, *arguments):
    """Returns the result of `graft build`, which needs no GPU."""
    engine = model.with_suffix(".engine")
    answer = graft("build", model, "-o", engine, "--target", "sm120", "--json", *arguments)
    if answer.code == 3:
        pytest.skip(answer.json["error"]["message"])
    assert engine.exists() == (answer.code == 0)
    return answer


@pytest.mark.skipif(not PLUGINS.is_file(), reason="this build has no CUDA kernels")
@pytest.mark.parametrize("name", [*OPERATORS, "SelectRows", "FastNormalizedFusion"])
def test_engines_hold_their_plugins(graft, tmp_path, name):
    """Builds the given models and the converted ones. The layer after SelectRows reads a tensor whose size depends
    on data."""
    counts = (2, 30) if name == "FastNormalizedFusion" else (1,)
    model = tmp_path / "m.onnx"
    shapes = ["--shapes", "x=1x3..50x3..100x3", "--shapes", "score=1..50..100"] if name == "SelectRows" else []
    if name == "SelectRows":
        selecting(model)
    elif name == "FastNormalizedFusion":
        fusing(model, counts)
    else:
        network(model, name)
    assert built(graft, model, *shapes).code != 0, "without the library"
    answer = graft("convert", model, "-o", tmp_path / "converted.onnx", "--operators", PLUGINS, code=0)
    for each in (model, tmp_path / "converted.onnx"):
        answer = built(graft, each, *shapes, "--operators", PLUGINS)
        assert answer.code == 0, answer.err
        assert [plugin["name"] for plugin in answer.json["network"]["plugins"]] == [name] * len(counts)


@pytest.mark.skipif(not PLUGINS.is_file(), reason="this build has no CUDA kernels")
def test_a_build_names_what_compares_the_results_of_ones_own_kernels(graft, tmp_path):
    """The advice appears once, with a command that works; it does not appear where the plugins are Graft's."""
    model = network(tmp_path / "m.onnx", "GatedTanh")
    built(graft, model, "--operators", PLUGINS)
    told = graft("build", model, "-o", tmp_path / "e", "--target", "sm120", "--operators", PLUGINS).out
    (command,) = re.findall(r"^next +graft (canary .*)$", told, re.M)
    assert told.count("canary") == 2, "the command and its folder"
    assert "checks whether the CUDA kernel of GatedTanh computes the same as the CPU" in told
    assert graft(*shlex.split(command)).code == 0
    assert (tmp_path / "m.canary" / "run_canary.py").is_file() and (tmp_path / "m.canary" / PLUGINS.name).is_file()
    both = onnx.load(model)
    last = both.graph.node[-1]
    result, last.output[0] = last.output[0], "before"
    both.graph.node.append(helper.make_node("LeakyReLU", ["before"], [result], domain="graft", alpha=0.1))
    both.opset_import.append(helper.make_opsetid("graft", 1))
    onnx.save(both, tmp_path / "both.onnx")
    told = graft("build", tmp_path / "both.onnx", "-o", tmp_path / "e", "--target", "sm120", "--operators", PLUGINS).out
    (command,) = re.findall(r"^next +graft (canary .*)$", told, re.M)
    assert graft(*shlex.split(command)).code == 0
    manifest = json.loads((tmp_path / "both.canary" / "canary.json").read_text())
    assert sorted(manifest["plugin_libraries"]) == ["libgraft_plugins.so", PLUGINS.name]
    converted = tmp_path / "digits.onnx"
    assert graft("convert", DIGITS, "-o", converted, "--plugins", "always").code == 0
    command = ["build", converted, "-o", tmp_path / "d", "--target", "sm120", "--shapes", DIGITS_SHAPES]
    told = graft(*command, "--operators", PLUGINS)
    assert told.code == 0 and "plugin  " in told.out and "canary" not in told.out, told.err


@pytest.mark.skipif(not PLUGINS.is_file(), reason="this build has no CUDA kernels")
@pytest.mark.parametrize("size", [[2, 3, 5, 7], [2, 1, 3, 4, 5], "x"], ids=str)
@pytest.mark.parametrize("operator", [("AffineSampling", "my"), ("AffineGrid", "")], ids=lambda each: each[0])
def test_engines_know_values_that_are_sizes(graft, tmp_path, size, operator):
    """The engines also work where the network has ONNX's own node, which TensorRT-RTX does not build."""
    model = sampling(tmp_path / "m.onnx", size, operator)
    axes = len(size) - 2 if isinstance(size, list) else 2
    shapes = ["--shapes", "theta=" + "..".join(f"{n}x{axes}x{axes + 1}" for n in (1, 2, 4))]
    if size == "x":
        shapes += ["--shapes", "x=1x3x4x4..2x3x4x5..4x3x8x9"]
    assert built(graft, model, *shapes).code != 0, "without the library"
    models = [model]
    if operator[1]:  # `convert` replaces ONNX's own node by standard operators
        models.append(tmp_path / "converted.onnx")
        answer = graft("convert", model, "-o", models[1], "--operators", PLUGINS, code=0)
    for each in models:
        answer = built(graft, each, *shapes, "--operators", PLUGINS)
        assert answer.code == 0, answer.err
        assert [plugin["name"] for plugin in answer.json["network"]["plugins"]] == ["AffineSampling"]


@pytest.mark.skipif(not PLUGINS.is_file(), reason="this build has no CUDA kernels")
def test_an_engine_of_mixed_types_is_refused(graft, tmp_path):
    answer = built(graft, mixed_types(tmp_path / "m.onnx"), "--operators", PLUGINS)
    assert answer.code != 0 and "does not support inputs of the types f32, f32, f16, f32; " in answer.err, answer.err


def test_build_says_that_the_library_has_no_plugins(graft, tmp_path):
    """The library was built without CUDA, which suffices for all other commands."""
    model = network(tmp_path / "m.onnx", "GatedTanh")
    for command in (["build", model, "-o", tmp_path / "e", "--operators", LIBRARY], ["plugins", LIBRARY]):
        answer = graft(*command, code=2)
        assert "built without CUDA" in answer.err and "Build it again on a machine with nvcc" in answer.err, answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_a_library_may_be_named_twice_but_not_its_copy(graft, tmp_path):
    assert graft(*with_library("ops", "--operators", LIBRARY)).code == 0
    link = tmp_path / "link.so"
    link.symlink_to(LIBRARY)
    assert graft(*with_library("ops", "--operators", link)).code == 0
    copy = shutil.copy(LIBRARY, tmp_path / "copy.so")
    answer = graft(*with_library("ops", "--operators", copy), code=2)
    assert f"{LIBRARY}: operator Snake: an operator of {copy} already has this name" in answer.err


def test_a_name_is_not_looked_for_in_the_systems_folders(graft, tmp_path):
    """A name without a folder refers only to a file in the current folder."""
    assert "no such file" in graft("ops", "--operators", "libc.so.6", cwd=tmp_path).err
    shutil.copy(LIBRARY, tmp_path / "libmine.so")
    assert graft("ops", "GatedTanh", "--operators", "libmine.so", cwd=tmp_path).code == 0


@needs_plugin_library
def test_grafts_own_library_is_refused(graft):
    answer = graft("ops", "--operators", PLUGIN_LIBRARY)
    assert answer.code == 2 and "an operator of Graft already has this name" in answer.err


def test_help_says_that_code_runs(graft):
    for command in ["ops", "run", "verify", "convert", "inspect", "quantize", "build", "bench"]:
        text = " ".join(graft(command, "--help").out.split())
        assert "--operators LIB" in text and "runs its code" in text, command


# ---- Nodes that an operator refuses: every command has the same message, with the names of the file and the node


def wrong_gate(path):
    return save(
        path, [helper.make_node("GatedTanh", ["x"], ["y"], "unwired", domain="my")], [("x", SHAPE)], [("y", None)]
    )


def wrong_factor(path):
    return network(path, "PixelUnshuffle", factor=5)


def wrong_axis(path):
    """Saves a node of Graft's own operator without a name."""
    node = helper.make_node("L2Normalize", ["x"], ["y"], domain="graft", axes=[7])
    return save(path, [node], [("x", SHAPE)], [("y", None)])


@pytest.mark.parametrize(
    ("write", "named"),
    [
        (wrong_gate, "node 'unwired' (my::GatedTanh): GatedTanh takes 2 inputs, found 1"),
        (wrong_factor, "node 'it' (my::PixelUnshuffle): "),
        (
            wrong_axis,
            "node 'y' (graft::L2Normalize): attribute `axes` contains 7; each axis must be between -4 and 3 for rank 4",
        ),
    ],
)
def test_a_wrong_node_is_bad_input_for_every_command(graft, tmp_path, write, named):
    model = write(tmp_path / "wrong.onnx")
    np.savez(tmp_path / "in.npz", x=np.ones(SHAPE, np.float32))
    out = tmp_path / "out"
    commands = [
        ["convert", model, "-o", f"{out}.onnx"],
        ["run", model, "-i", tmp_path / "in.npz", "-o", f"{out}.npz"],
        ["run", model, "-i", tmp_path / "in.npz", "-o", f"{out}.npz", "--kernels", "own"],
        ["verify", model, model],
        ["quantize", model, "-o", f"{out}.onnx", "--precision", "f16"],
        ["bench", model, "--device", "cpu"],
        ["build", model, "-o", f"{out}.engine", "--target", "sm120"],
    ]
    for command in commands:
        answer = graft(*with_library(*command))
        assert answer.code == 2, f"{command[0]}: {answer.code} {answer.err}"
        assert answer.err.startswith(f"error: {model}: {named}"), answer.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npz", "wrong.onnx"]


@pytest.mark.parametrize("kernels", ["functions", "own"])
def test_sizes_that_only_the_run_knows_are_refused_by_the_operators_own_words(graft, tmp_path, kernels):
    sizes = ["n", 3, "h", "w"]
    model = network(tmp_path / "open.onnx", "PixelUnshuffle", shape=sizes)
    np.savez(tmp_path / "in.npz", x=np.ones([1, 3, 5, 4], np.float32))
    command = ["run", model, "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz", "--kernels", kernels]
    answer = graft(*with_library(*command), code=2)
    assert "node 'it' (my::PixelUnshuffle)" in answer.err and "multiples of 2" in answer.err
    assert str(model) in answer.err
