# graft canary: tests the files that it writes, and that its script names the node that a stand-in for TensorRT computes
# wrongly.
import importlib.util
import json
import os
import sys

import fastjsonschema
import numpy as np
import onnx
import pytest
from conftest import DIGITS, DIGITS_DATA, PLUGIN_LIBRARY, SCHEMAS, SOURCE, closed, needs_plugin_library, run_command
from onnx import helper, numpy_helper
from onnx_models import run_onnx, save

STAND_IN = SOURCE / "tests" / "cli" / "canary_stand_in"
SAMPLES = 65521


def held_against_schema(name, file):
    found = json.loads(file.read_text())
    fastjsonschema.compile(closed(json.loads((SCHEMAS / f"{name}.schema.json").read_text())))(found)
    return found


def ask(folder, *options, **fault):
    """Runs the script like a user, with the stand-in for TensorRT. Returns exit code, report and output."""
    report = folder / "canary_report.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, folder / "run_canary.py", "--memory", "cuda-python", "--tensorrt", "tensorrt", *options]
    more = {"PYTHONPATH": str(STAND_IN), "CANARY_FAULT": json.dumps(fault)}
    done = run_command(*command, env={**os.environ, **more})
    assert "Traceback" not in done.stderr, done.stderr
    found = held_against_schema("graft.canary.report", report)
    assert found["message"] in done.stdout + done.stderr
    return done.returncode, found, done.stdout + done.stderr


def weights(name, *shape):
    return numpy_helper.from_array(np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32), name)


def nodes_of_network():
    return [
        helper.make_node("Conv", ["image", "w1"], ["a"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "w2"], ["c"], name="conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "a"], ["d"], name="add"),
        helper.make_node("Sigmoid", ["d"], ["e"], name="sigmoid"),
        helper.make_node("Mul", ["e", "d"], ["f"], name="swish"),
        helper.make_node("GlobalAveragePool", ["f"], ["g"], name="pool"),
        helper.make_node("Flatten", ["g"], ["h"], name="flatten"),
        helper.make_node("Gemm", ["h", "w3"], ["logits"], name="classes"),
        helper.make_node("Softmax", ["logits"], ["scores"], name="softmax"),
    ]


def save_network(path, batch=1, height=8, width=6):
    constants = [weights("w1", 4, 3, 3, 3), weights("w2", 4, 4, 3, 3), weights("w3", 4, 5)]
    return save(path, nodes_of_network(), [("image", [batch, 3, height, width])], [("scores", [batch, 5])], constants)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return save_network(tmp_path_factory.mktemp("network") / "network.onnx")


@pytest.fixture(scope="module")
def canary(graft, network):
    graft("canary", network, "-o", network.parent / "canary", "--json", code=0)
    return network.parent / "canary"


def test_what_the_folder_holds(graft, network, tmp_path):
    answer = graft("canary", network, "-o", tmp_path / "canary", "--seeds", 2, "--json", code=0)
    assert answer.json["files"] == sorted(path.name for path in (tmp_path / "canary").iterdir())
    assert (answer.json["tensors"], answer.json["outputs"], answer.json["runs"]) == (10, 1, 2)
    bundle = held_against_schema("graft.canary.bundle", tmp_path / "canary" / "canary.json")
    assert [tensor["name"] for tensor in bundle["tensors"]] == [node.output[0] for node in nodes_of_network()]
    assert [tensor["node"] for tensor in bundle["tensors"]] == [node.name for node in nodes_of_network()]
    script = (tmp_path / "canary" / "run_canary.py").read_text()
    assert script == (SOURCE / "templates" / "canary" / "run_canary.py").read_text()
    assert onnx.load(tmp_path / "canary" / "model.onnx").graph.node == onnx.load(network).graph.node


def all_tensors(path, feeds):
    """Returns every tensor of a model, computed by ONNX Runtime."""
    model = onnx.load(path)
    names = [name for node in model.graph.node for name in node.output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return run_onnx(model, feeds)


def test_expected_numbers_are_those_of_onnx_runtime_at_even_places(graft, tmp_path):
    path = save_network(tmp_path / "wide.onnx", height=150, width=128)
    folder = tmp_path / "canary"
    assert graft("canary", path, "-o", folder).code == 0
    bundle = json.loads((folder / "canary.json").read_text())
    expected, allowed = np.load(folder / "expected_0.npz"), np.load(folder / "allowed_0.npz")
    whole = all_tensors(path, dict(np.load(folder / "inputs_0.npz")))
    counts = set()
    for tensor in bundle["tensors"]:
        flat = whole[tensor["name"]].reshape(-1)
        samples = tensor["samples"]
        counts.add(samples)
        assert (tensor["elements"], list(whole[tensor["name"]].shape)) == (flat.size, tensor["shape"])
        places = [k * flat.size // samples for k in range(samples)]
        np.testing.assert_allclose(expected[tensor["name"]], flat[places], rtol=1e-3, atol=1e-4)
        # A tolerance as wide as the values would accept any result; a tolerance of 0 would refuse different rounding.
        assert 0 < allowed[tensor["name"]].max() < 0.02 * np.abs(flat).max()
    assert SAMPLES in counts
    code, report, _ = ask(folder, tensor="d")
    assert (code, report["first"]["node"], report["first"]["compared"]) == (1, "add", SAMPLES)


def test_without_a_fault_it_is_good_after_one_build(canary):
    code, report, printed = ask(canary)
    assert (code, report["verdict"], report["builds"]) == (0, "good", 1), printed
    assert report["first"] is None
    assert report["outputs"] == []
    assert "good: 1 outputs in 1 runs match the CPU" in printed


@pytest.mark.parametrize(
    ("operator", "node"),
    [
        *(("Conv", "conv1"), ("Relu", "relu"), ("Add", "add"), ("Sigmoid", "sigmoid"), ("Mul", "swish")),
        *(("GlobalAveragePool", "pool"), ("Flatten", "flatten"), ("Gemm", "classes"), ("Softmax", "softmax")),
    ],
)
def test_an_operator_that_is_wrong_everywhere_is_named_where_it_comes_first(canary, operator, node):
    code, report, printed = ask(canary, operator=operator)
    assert (code, report["verdict"], report["builds"]) == (1, "wrong", 2), printed
    assert (report["first"]["node"], report["first"]["operator"]) == (node, operator)
    assert f"by node '{node}' ({operator})" in printed
    first = report["first"]
    assert first["found"] == pytest.approx(1.5 * first["expected"], rel=1e-3)
    assert abs(first["found"] - first["expected"]) > first["allowed"] > 0


def test_one_node_among_others_of_its_kind_is_named(canary):
    _, report, _ = ask(canary, tensor="c")
    assert report["first"]["node"] == "conv2"
    _, report, _ = ask(canary, "--most", "2", tensor="c")
    assert report["first"]["node"] == "conv2"


@pytest.mark.parametrize(
    ("wrong", "inside", "nodes"),
    [
        ("b", ["a"], ["conv1", "relu"]),
        ("d", ["c"], ["conv2", "add"]),
        ("d", ["b", "c"], ["relu", "conv2", "add"]),
        ("f", ["d", "e"], ["add", "sigmoid", "swish"]),
        ("scores", ["logits"], ["classes", "softmax"]),
        ("scores", list("abcdefgh") + ["logits"], [node.name for node in nodes_of_network()]),
    ],
)
def test_a_fault_of_fusion_is_narrowed_to_the_nodes_that_are_fused(canary, wrong, inside, nodes):
    code, report, printed = ask(canary, tensor=wrong, while_inside=inside)
    assert (code, report["verdict"]) == (1, "fused"), printed
    assert report["first"] is None
    assert report["fusion"]["tensors"] == inside
    assert [each["node"] for each in report["fusion"]["nodes"]] == nodes
    assert report["fusion"]["wrong"]["tensor"] == wrong
    assert f"TensorRT fuses nodes wrongly, from '{nodes[0]}' to '{nodes[-1]}'" in printed
    assert report["builds"] <= 12


def test_fusion_is_not_searched_with_part_of_the_tensors(canary):
    code, report, printed = ask(canary, "--most", "3", tensor="d", while_inside=["c"])
    # The network is right where a, b and c are outputs, and wrong with the other outputs: the first wrong tensor of
    # these is named.
    assert (code, report["first"]["node"]) == (1, "add"), printed


def test_nan_is_named_where_it_begins(canary):
    code, report, printed = ask(canary, tensor="e", change="nan")
    assert (code, report["first"]["node"], report["first"]["problem"]) == (1, "sigmoid", "not finite"), printed
    assert report["first"]["found"] == "nan"


def test_elements_that_rounding_makes_nan_are_not_decided(graft, tmp_path):
    """Some elements of y are square roots of rounding errors, so their sign is chance."""
    steps = [
        ("Mul", "x", "three"),
        ("Div", "a", "three"),
        ("Mul", "b", "seven"),
        ("Div", "c", "seven"),
        ("Sub", "d", "b"),
    ]
    nodes = [
        helper.make_node(op, inputs, [output], name=f"node_{output}")
        for (op, *inputs), output in zip(steps, "abcde", strict=True)
    ]
    nodes.append(helper.make_node("Sqrt", ["e"], ["r"], name="root"))
    nodes.append(helper.make_node("Concat", ["r", "z"], ["y"], name="join", axis=0))
    constants = {name: np.float32(value) for name, value in (("three", 3), ("seven", 7))}
    path = save(tmp_path / "a.onnx", nodes, [("x", [4]), ("z", [400])], [("y", [404])], constants)
    x = np.array([0.3, 0.7, 1.1, 1.9], np.float32)
    z = np.linspace(0.1, 1, 400, dtype=np.float32)
    roots = all_tensors(path, {"x": x, "z": z})["r"]
    assert np.isfinite(roots).any(), "all are NaN on the CPU"
    np.savez(tmp_path / "inputs.npz", x=x, z=z)
    folder = tmp_path / "canary"
    assert graft("canary", path, "-o", folder, "--data", tmp_path / "inputs.npz").code == 0
    unstable = np.signbit(np.load(folder / "allowed_0.npz")["y"])
    assert unstable[:4][np.isfinite(roots)].all()
    assert not unstable[4:].any()
    code, report, printed = ask(folder)
    assert (code, report["verdict"], report["undecided"]) == (0, "good", []), printed
    code, report, printed = ask(folder, tensor="r", change="more")
    assert (code, report["verdict"]) == (0, "good"), printed
    count = int(np.isfinite(roots).sum())
    assert report["undecided"] == [{"tensor": "y", "elements": count}]
    assert f"{count} elements of 'y' differ where rounding alone makes them NaN" in printed
    # NaN is as little a finding there as a number.
    code, report, printed = ask(folder, tensor="r", change="nan")
    assert (code, report["verdict"]) == (0, "good"), printed
    assert report["undecided"] == [{"tensor": "y", "elements": count}]
    # All other elements are judged.
    assert ask(folder, tensor="y", change="more")[0] == 1
    assert ask(folder, tensor="y", change="nan")[0] == 1


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("run_canary", SOURCE / "templates" / "canary" / "run_canary.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def judged(script, expected, allowed, found, snr_db=None):
    """Returns the Finding and the number of undecided elements of one f64 tensor in one run."""
    facts = {
        "name": "y",
        "node": "n",
        "operator": "Sqrt",
        "output": True,
        "type": "f64",
        "shape": [len(expected)],
        "samples": len(expected),
        "elements": len(expected),
        "tolerance": {"snr_db": snr_db},
    }
    tensor = script.Tensor(facts, [{"y": np.array(expected)}], [{"y": np.array(allowed)}], 0.0)
    return tensor.judge(0, np.array(found, np.float64)), tensor.undecided[0]


@pytest.mark.parametrize("snr_db", [None, 40])
@pytest.mark.parametrize(("cpu", "gpu"), [(1, np.nan), (np.nan, 1), (1, np.inf), (-np.inf, 1), (np.inf, np.nan)])
def test_nan_on_one_side_is_a_finding_unless_rounding_makes_it(script, cpu, gpu, snr_db):
    marked, plain = [-0.1, 0.1], [0.1, 0.1]
    assert judged(script, [cpu, 2], marked, [gpu, 2], snr_db) == (None, 1)
    finding, undecided = judged(script, [cpu, 2], plain, [gpu, 2], snr_db)
    assert (finding.problem, finding.wrong, finding.index, undecided) == ("not finite", 1, [0], 0)
    assert judged(script, [cpu, 2], marked, [gpu, 3], snr_db)[0].problem in ("numbers", "not finite")


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e200, 1e308])
def test_the_snr_of_numbers_whose_squares_exceed_f64(script, scale):
    expected = scale * np.array([1, -0.5, 0.25, -1])
    assert judged(script, expected, np.zeros(4), expected * (1 + 1e-6), snr_db=40)[0] is None
    for wrong in (np.zeros(4), -expected, expected * 0.5):
        assert judged(script, expected, np.zeros(4), wrong, snr_db=40)[0].wrong > 0


def test_a_wrong_shape_is_told_with_both_shapes(canary):
    code, report, printed = ask(canary, tensor="f", change="shape")
    assert (code, report["first"]["node"], report["first"]["problem"]) == (1, "swish", "shape"), printed
    assert (report["first"]["expected"], report["first"]["found"]) == ([1, 4, 8, 6], [1, 4, 6, 8])
    assert "its shape is [1, 4, 6, 8], but [1, 4, 8, 6] on the CPU" in printed


def test_a_parser_that_refuses_is_quoted_with_the_node(canary):
    code, report, printed = ask(canary, refuse="Sigmoid")
    assert (code, report["verdict"]) == (2, "refused")
    assert "node 'sigmoid' (Sigmoid): no importer registered for it" in printed


def test_a_tensor_that_the_builder_does_not_return_is_left_inside(canary):
    code, report, printed = ask(canary, operator="Add", not_built_with="c")
    assert (code, report["first"]["node"], report["not_marked"]) == (1, "add", ["c"]), printed


def test_tf32_is_off_unless_it_is_asked_for(canary):
    assert ask(canary, operator="Conv", change="slightly", tf32=True)[1]["verdict"] == "good"
    assert ask(canary, operator="Conv", change="slightly")[1]["verdict"] == "wrong"
    # The rounding of TF32 is allowed where TF32 is on, and a fault is still found.
    assert ask(canary, "--precision", "tf32", operator="Conv", change="slightly", tf32=True)[1]["verdict"] == "good"
    assert ask(canary, "--precision", "tf32", operator="Conv", tf32=True)[1]["first"]["node"] == "conv1"


def test_a_tensorrt_without_a_flag_for_f16_says_what_to_do(canary):
    code, report, _ = ask(canary, "--precision", "fp16")
    assert code == 2
    assert "graft quantize --precision f16" in report["message"]


def test_a_network_of_f16_is_judged_as_one(graft, network, tmp_path):
    narrow = tmp_path / "f16.onnx"
    graft("quantize", network, "-o", narrow, "--precision", "f16", code=0)
    assert graft("canary", narrow, "-o", tmp_path / "canary").code == 0
    bundle = json.loads((tmp_path / "canary" / "canary.json").read_text())
    # 16 epsilon of f16, the tolerance of `graft verify`.
    assert 2.0**-6 in {tensor["tolerance"]["relative"] for tensor in bundle["tensors"]}
    code, _, printed = ask(tmp_path / "canary")
    assert code == 0, printed


def test_a_dynamic_batch_stays_dynamic_and_gets_a_profile(graft, tmp_path):
    path = save_network(tmp_path / "dynamic.onnx", batch="n")
    assert graft("canary", path, "-o", tmp_path / "canary", "--input", "image:3x3x8x6", "--seeds", 2).code == 0
    model = onnx.load(tmp_path / "canary" / "model.onnx")
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    assert np.load(tmp_path / "canary" / "inputs_1.npz")["image"].shape == (3, 3, 8, 6)
    assert ask(tmp_path / "canary")[0] == 0
    assert ask(tmp_path / "canary", tensor="c")[1]["first"]["node"] == "conv2"


def test_inputs_are_those_that_were_given(graft, digits, tmp_path):
    answer = graft("canary", DIGITS, "-o", tmp_path / "canary", "--data", f"image={DIGITS_DATA}:images", "--json")
    assert answer.code == 0, answer.err
    given = np.concatenate(
        [np.load(tmp_path / "canary" / f"inputs_{i}.npz")["image"] for i in range(answer.json["runs"])]
    )
    np.testing.assert_array_equal(given, digits[0])
    assert ask(tmp_path / "canary")[0] == 0


def test_other_formats_are_taken(graft, tmp_path):
    caffe = [SOURCE / "examples" / "digits" / f"digits.{end}" for end in ("prototxt", "caffemodel")]
    assert graft("canary", *caffe, "-o", tmp_path / "canary").code == 0
    assert ask(tmp_path / "canary")[0] == 0


def test_what_has_no_fixed_size_or_is_random_is_left_out(graft, tmp_path):
    nodes = [
        helper.make_node("Relu", ["x"], ["active"], name="relu"),
        helper.make_node("NonZero", ["active"], ["places"], name="places"),
        helper.make_node("RandomNormalLike", ["x"], ["noise"], name="noise"),
        helper.make_node("Add", ["x", "noise"], ["noisy"], name="add"),
    ]
    outputs = [("active", [4, 5]), ("places", onnx.TensorProto.INT64, [2, "found"]), ("noisy", [4, 5])]
    path = save(tmp_path / "net.onnx", nodes, [("x", [4, 5])], outputs)
    answer = graft("canary", path, "-o", tmp_path / "canary", "--json", code=0)
    why = {each["tensor"]: each["why"] for each in answer.json["left_out"]}
    assert why.keys() == {"places", "noise", "noisy"}
    assert "size" in why["places"]
    assert "random" in why["noisy"]
    assert "does not return it" in answer.err
    assert [each.name for each in onnx.load(tmp_path / "canary" / "model.onnx").graph.output] == ["active"]
    assert ask(tmp_path / "canary", tensor="active")[1]["first"]["node"] == "relu"


@needs_plugin_library
def test_plugins_come_along_and_take_the_place_of_functions(graft, tmp_path):
    nodes = [
        helper.make_node("L2Normalize", ["x"], ["unit"], name="unit", domain="graft", axes=[1]),
        helper.make_node("Relu", ["unit"], ["y"], name="relu"),
    ]
    path = save(tmp_path / "net.onnx", nodes, [("x", [2, 5, 4])], [("y", [2, 5, 4])], domains=["graft"])
    converted = tmp_path / "converted.onnx"
    assert graft("convert", path, "-o", converted, "--plugins", "always").code == 0
    assert "graft" in {node.domain for node in onnx.load(converted).graph.node}
    for options in ([], ["--plugin-lib", PLUGIN_LIBRARY]):
        folder = tmp_path / f"canary{len(options)}"
        assert graft("canary", converted, "-o", folder, *options).code == 0
        model = onnx.load(folder / "model.onnx")
        (node,) = (node for node in model.graph.node if node.domain == "graft")
        is_plugin = any(attribute.name == "plugin_namespace" for attribute in node.attribute)
        assert (is_plugin, bool(model.functions)) == (bool(options), not options)
    assert (folder / PLUGIN_LIBRARY.name).read_bytes() == PLUGIN_LIBRARY.read_bytes()
    assert ask(tmp_path / "canary0", tensor="y")[1]["first"]["node"] == "relu"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--output is required"),
        (["-o", "none/canary"], "mkdir -p none"),
        (["-o", "canary", "--data", "image.npy"], "image.npy: there is no such file or folder"),
        (["-o", "canary", "--input", "images:1x3x8x6"], "images"),
        (["-o", "canary", "--input", "image:1x3x8x7"], "image"),
        (["-o", "canary", "--plugin-lib", "missing.so"], "missing.so: there is no regular file of this name"),
    ],
)
def test_what_is_refused_leaves_nothing(graft, network, tmp_path, arguments, said):
    answer = graft("canary", network, *arguments, cwd=tmp_path, code=2)
    assert said in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_stays_and_the_network_is_not_run(graft, network, tmp_path):
    (tmp_path / "canary").mkdir()
    answer = graft("canary", network, "-o", tmp_path / "canary", code=2)
    assert "canary: it exists already" in answer.err
    assert list((tmp_path / "canary").iterdir()) == []


def test_a_network_without_an_output_of_fixed_size_is_refused(graft, tmp_path):
    output = ("places", onnx.TensorProto.INT64, [1, "found"])
    path = save(tmp_path / "net.onnx", [helper.make_node("NonZero", ["x"], ["places"])], [("x", [4])], [output])
    answer = graft("canary", path, "-o", tmp_path / "canary", code=2)
    assert "no output that can be compared" in answer.err
    assert "places: its size cannot be inferred" in answer.err
    assert "A canary compares only outputs" in answer.err
    assert "--cut" not in answer.err, "the network cannot be cut"
    assert not (tmp_path / "canary").exists()
