# graft convert: ONNX Runtime and the onnx package's checker judge the result.
import re

import numpy as np
import onnx
import pytest
from conftest import DIGITS, SOURCE
from onnx import TensorProto, helper
from onnx_models import save, session_of, subgraph


def outputs(path, feeds):
    session = session_of(path)
    return session.run(None, feeds)


def test_digits_gets_a_plugin_and_onnx_runtime_sees_no_difference(graft, converted, digits):
    model = onnx.load(converted)
    onnx.checker.check_model(model, full_check=True)
    (node,) = (n for n in model.graph.node if n.domain == "graft")
    assert node.op_type.startswith("L2Normalize")
    assert [f.name for f in model.functions] == [node.op_type]
    images, labels = digits
    before, after = outputs(DIGITS, {"image": images}), outputs(converted, {"image": images})
    for expected, found in zip(before, after):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert (after[0].argmax(1) == labels).mean() > 0.99


def test_weights_in_branches_are_counted(graft, tmp_path):
    branches = {
        key: subgraph(
            [helper.make_node("MatMul", ["x", "w" + key], ["y" + key])],
            [],
            [("y" + key, [3, 4])],
            {"w" + key: np.full((4, 4), value, np.float32)},
        )
        for key, value in (("then_branch", 0.5), ("else_branch", 0.25))
    }
    node = helper.make_node("If", ["c"], ["y"], **branches)
    inputs = [("c", TensorProto.BOOL, []), ("x", [3, 4])]
    model = save(tmp_path / "m.onnx", [node], inputs, [("y", [3, 4])])
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--no-check", "--json")
    assert answer.json["weight_bytes"] == 2 * 4 * 4 * 4


def test_report_names_passes_proofs_and_choices(graft, tmp_path):
    report = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--json", code=0).json
    (fusion,) = (r for r in report["rewrites"] if r["pass"] == "fuse_l2_normalize")
    assert "L2Normalize" in fusion["replacement"]
    assert fusion["proof"]
    assert report["proofs_run"] > 0
    (choice,) = (c for c in report["choices"] if c["operator"] == "L2Normalize")
    assert choice["kind"] == "plugin"
    assert choice["reason"]


def test_where_no_proof_was_made_the_summary_says_so_in_words(graft, tmp_path):
    node = helper.make_node("Relu", ["x"], ["y"])
    model = save(tmp_path / "relu.onnx", [node], [("x", [1, 4])], [("y", [1, 4])])
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", code=0)
    assert "0 proofs" not in answer.out
    assert "nothing was rewritten" in answer.out


def test_never_leaves_standard_operators_only(graft, tmp_path):
    assert graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--plugins", "never").code == 0
    model = onnx.load(tmp_path / "out.onnx")
    assert {n.domain for n in model.graph.node} <= {"", "ai.onnx"}
    assert len(model.functions) == 0


def test_always_makes_plugins_of_native_layers_too(graft, tmp_path):
    assert graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--plugins", "always").code == 0
    types = [n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node if n.domain == "graft"]
    assert [t.split("_")[0] for t in types] == ["LeakyReLU", "LeakyReLU", "LeakyReLU", "L2Normalize"]


def test_passes_can_be_chosen_and_left_out(graft, tmp_path):
    for chosen in ("remove_dead", "-fuse_l2_normalize"):
        answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", f"--passes={chosen}", "--json", code=0)
        assert "fuse_l2_normalize" not in [p["pass"] for p in answer.json["passes"]]
        assert not [n for n in onnx.load(tmp_path / "out.onnx").graph.node if n.domain == "graft"]


def test_explain_says_why_a_near_miss_was_none(graft, tmp_path):
    # F.normalize whose clamp also limits from above: another function.
    model = SOURCE / "tests" / "golden" / "near_misses" / "l2_clip_both.onnx"
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--explain", code=0)
    near = answer.out.split("near misses, the closest first")[1].split("\n\n")[0]
    assert re.search(
        r"fuse_l2_normalize +L2Normalize, epsilon_mode \w+ at node '\w+' \(Div\), (\d) of \1 nodes matched", near
    )
    assert "the Clip also has an upper limit" in near
    assert not [n for n in onnx.load(tmp_path / "out.onnx").graph.node if n.domain == "graft"]
    # Passes without a rewrite are counted; -v names them.
    assert re.search(r"^\d\d other passes changed nothing; -v lists them$", answer.out, re.M)
    assert "fuse_upsampling" not in answer.out
    verbose = graft("convert", model, "-o", tmp_path / "out.onnx", "--explain", "-v").out
    idle = verbose.split("passes that changed nothing\n")[1]
    assert "fuse_upsampling" in idle
    assert "fuse_l2_normalize" not in idle, "it stands above, as one that came near"


def test_converting_again_changes_nothing(graft, converted, tmp_path):
    assert graft("convert", converted, "-o", tmp_path / "again.onnx").code == 0
    assert onnx.load(tmp_path / "again.onnx") == onnx.load(converted)


def test_input_shape_replaces_the_one_in_the_file(graft, tmp_path):
    graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--input", "image:4x1x8x8", code=0)
    dims = onnx.load(tmp_path / "out.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_value for d in dims] == [4, 1, 8, 8]


@pytest.mark.parametrize(
    ("shape", "named"), [("picture:4x1x8x8", "picture"), ("image:4x3x8x8", "image"), ("image:4x1", "image")]
)
def test_input_shape_that_contradicts_the_model_is_refused(graft, tmp_path, shape, named):
    answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--input", shape, code=2)
    assert named in answer.err
    assert not (tmp_path / "out.onnx").exists()


def test_no_prove_runs_nothing(graft, tmp_path):
    answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--no-prove", "--json", code=0)
    assert answer.json["proofs_run"] == 0


def test_quiet_prints_nothing(graft, tmp_path):
    answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "-q")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


# ---- One file


def test_weights_that_came_beside_the_model_go_into_one_file(graft, tmp_path):
    model = save(
        tmp_path / "m.onnx",
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [("x", [2, 64])],
        [("y", None)],
        {"w": np.ones((64, 64), np.float32)},
    )
    onnx.save(onnx.load(model), model, save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    assert (tmp_path / "m.onnx.data").is_file()
    out = tmp_path / "out"
    out.mkdir()
    answer = graft("convert", model, "-o", out / "o.onnx", "--json", code=0)
    assert answer.json["external_data"] is None
    assert [path.name for path in out.iterdir()] == ["o.onnx"]
    (found,) = outputs(out / "o.onnx", {"x": np.ones((2, 64), np.float32)})
    assert (found == 64).all()


# ---- A batch that the exporter froze


def patches(path, token_in_front):
    """Saves the first layers of a vision transformer, as exporters write them that trace one image: every size is a
    constant."""
    random = np.random.default_rng(1)

    def constant(name, *shape):
        return onnx.numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)

    def sizes(name, *numbers):
        return onnx.numpy_helper.from_array(np.array(numbers), name)

    rows = 5 if token_in_front else 4
    nodes = [
        helper.make_node("Conv", ["image", "kernels"], ["conv"], "conv", strides=[4, 4]),
        helper.make_node("Reshape", ["conv", "to_rows"], ["flat"], "view"),
        helper.make_node("Transpose", ["flat"], ["rows"], "transpose", perm=[0, 2, 1]),
        *([helper.make_node("Concat", ["token", "rows"], ["all"], "cat", axis=1)] if token_in_front else []),
        helper.make_node("Add", ["all" if token_in_front else "rows", "positions"], ["embedded"], "add"),
        helper.make_node("Reshape", ["embedded", "to_heads"], ["split"], "heads"),
        helper.make_node("Transpose", ["split"], ["heads"], "permute", perm=[0, 2, 1, 3]),
        helper.make_node("MatMul", ["heads", "queries"], ["products"], "matmul"),
        helper.make_node("Softmax", ["products"], ["y"], "softmax", axis=-1),
    ]
    constants = [
        constant("kernels", 8, 3, 4, 4),
        constant("token", 1, 1, 8),
        constant("positions", 1, rows, 8),
        constant("queries", 4, 6),
        sizes("to_rows", 1, 8, 4),
        sizes("to_heads", 1, rows, 2, 4),
    ]
    return save(path, nodes, [("image", ["batch", 3, 8, 8])], [("y", ["batch", 2, rows, 6])], constants)


@pytest.mark.parametrize("token_in_front", [False, True])
def test_a_frozen_batch_follows_the_input(graft, tmp_path, token_in_front):
    model = patches(tmp_path / "m.onnx", token_in_front)
    image = np.random.default_rng(2).standard_normal((3, 3, 8, 8)).astype(np.float32)
    with pytest.raises(Exception, match="view|Reshape"):
        outputs(model, {"image": image})
    answer = graft("convert", model, "-o", tmp_path / "o.onnx", "--json", code=0)
    (warning,) = answer.json["warnings"]
    assert "node 'view' (Reshape)" in warning and "'batch'" in warning
    (rewrite,) = (r for r in answer.json["rewrites"] if r["pass"] == "unfreeze_batch")
    assert len(rewrite["nodes"]) == (3 if token_in_front else 2)
    assert "batches of 1, 2, 3" in rewrite["proof"]
    (found,) = outputs(tmp_path / "o.onnx", {"image": image})
    for index in range(3):  # ONNX Runtime runs the original, image by image
        (alone,) = outputs(model, {"image": image[index : index + 1]})
        np.testing.assert_allclose(found[index], alone[0], rtol=1e-5, atol=1e-6)
    assert "node 'view' (Reshape)" in graft("inspect", model).err


def test_items_that_are_mixed_are_no_frozen_batch(graft, tmp_path):
    nodes = [
        helper.make_node("ReduceSum", ["x", "first"], ["sum"], "sum", keepdims=1),
        helper.make_node("Sub", ["x", "sum"], ["less"], "sub"),
        helper.make_node("Reshape", ["less", "one"], ["y"], "view"),
    ]
    constants = {"first": np.array([0]), "one": np.array([1, 8])}
    model = save(tmp_path / "m.onnx", nodes, [("x", ["batch", 8])], [("y", None)], constants)
    answer = graft("convert", model, "-o", tmp_path / "o.onnx", "--json")
    assert not [r for r in answer.json["rewrites"] if r["pass"] == "unfreeze_batch"]
    (undone,) = (r for r in answer.json["undone"] if r["pass"] == "unfreeze_batch")
    assert "item" in undone["proof"]
    assert "no other batch size runs" in answer.json["warnings"][0]


def test_inspect_and_convert_count_the_same_nodes(graft, tmp_path):
    """Nodes in bodies are counted by both, and constants are named apart."""
    then = subgraph([helper.make_node("Relu", ["x"], ["t"])], [], [("t", [3, 4])])
    otherwise = subgraph([helper.make_node("Neg", ["x"], ["e"])], [], [("e", [3, 4])])
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)
    model = save(tmp_path / "if.onnx", [node], [("x", [3, 4]), ("c", TensorProto.BOOL, [])], [("y", [3, 4])])
    text = "3 nodes (2 of them in branches and bodies)"
    assert f"opset 17, {text}" in graft("inspect", model, "--probe", "none").out
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--no-check")
    assert f"{text} before, {text} after" in " ".join(answer.out.split())
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--no-check", "--json")
    assert (answer.json["nodes_before"], answer.json["nodes_after"]) == (3, 3)
    assert len(graft("inspect", model, "--probe", "none", "--json").json["nodes"]) == 3


def test_the_verdicts_of_convert_have_the_fields_of_inspect(graft, tmp_path):
    model = save(tmp_path / "u.onnx", [helper.make_node("Unique", ["x"], ["y"])], [("x", ["n"])], [("y", [None])])
    (left,) = graft("convert", model, "-o", tmp_path / "out.onnx", "--tensorrt", "auto", "--json").json["unsupported"]
    (node,) = graft("inspect", model, "--tensorrt", "auto", "--json").json["nodes"]
    # Only an inspection counts the work of nodes.
    assert set(left) == set(node) - {"cost"}
    assert left["truth"] == "parser"
    assert "checkUnique" in left["tensorrt"]


def without_elements(name):
    """Returns a network that runs with a batch of 0, and one of its inputs."""
    if name == "attention":
        heads = {"q_num_heads": 4, "kv_num_heads": 4}
        attention = helper.make_node("Attention", ["x", "x", "x"], ["y"], **heads, softcap=1.0)
        return [attention], ["n", 5, 32], (0, 5, 32), 23
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Unsqueeze", ["a", "one"], ["u"]),
        helper.make_node("Flatten", ["u"], ["f"]),
        helper.make_node("Neg", ["f"], ["y"]),
    ]
    return nodes, ["n", 4, "h", "w"], (0, 4, 2, 3), 17


@pytest.mark.parametrize("name", ["flatten", "attention"])
def test_the_result_runs_without_elements_too(graft, tmp_path, name):
    nodes, shape, sizes, opset = without_elements(name)
    model = save(tmp_path / "m.onnx", nodes, [("x", shape)], [("y", None)], {"one": np.array([1])}, opset=opset)
    assert graft("convert", model, "-o", tmp_path / "o.onnx").code == 0
    for batch in (0, 2):
        x = np.random.default_rng(1).standard_normal((batch, *sizes[1:])).astype(np.float32)
        # ONNX Runtime's Attention takes no batch of 0.
        is_refused = name == "attention" and batch == 0
        (expected,) = [np.empty(x.shape, np.float32)] if is_refused else outputs(model, {"x": x})
        (found,) = outputs(tmp_path / "o.onnx", {"x": x})
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("declared", [["a", "b", "f", "g"], ["f", "g", "s"]], ids=["elements", "sequence"])
def test_names_of_sizes_of_elements_prove_nothing(graft, tmp_path, declared):
    """Two elements of a sequence have a size of the same name, as shape inference of ONNX copies it from the type of
    the sequence. At run time they have 1 and 3 rows, so the Expand repeats the row."""
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "z"], ["s"]),
        helper.make_node("SequenceAt", ["s", "i"], ["a"]),
        helper.make_node("SequenceAt", ["s", "j"], ["b"]),
        helper.make_node("Relu", ["a"], ["f"]),
        helper.make_node("Relu", ["b"], ["g"]),
        helper.make_node("Shape", ["g"], ["size"]),
        helper.make_node("Expand", ["f", "size"], ["e"]),
        helper.make_node("Neg", ["e"], ["y"]),
    ]
    inputs = [("x", ["N", 4]), ("z", ["M", 4])]
    inputs += [(name, TensorProto.INT64, []) for name in ("i", "j")]
    source = save(tmp_path / "m.onnx", nodes, inputs, [("y", None)])
    model = onnx.load(source)
    for name in declared:
        element = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", 4])
        type = helper.make_sequence_type_proto(element) if name == "s" else element
        model.graph.value_info.append(helper.make_value_info(name, type))
    onnx.save(model, source)
    out = tmp_path / "out.onnx"
    graft("convert", source, "-o", out)
    given = {"x": np.ones((1, 4), np.float32), "z": np.ones((3, 4), np.float32), "i": np.array(0), "j": np.array(1)}
    (expected,), (found,) = outputs(source, given), outputs(out, given)
    assert expected.shape == (3, 4)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("corners", [0, 1])
def test_volumes_are_sampled_by_gather_where_a_release_cannot_sample_them(graft, tmp_path, padding, corners):
    attributes = {"mode": "linear", "padding_mode": padding, "align_corners": corners}
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], name="sample", **attributes)
    inputs = [("x", ["N", 2, 3, 4, 5]), ("grid", ["N", 2, 3, 4, 3])]
    model = save(tmp_path / "m.onnx", [node], inputs, [("y", None)], opset=20)
    random = np.random.default_rng(3)
    feeds = {
        "x": random.normal(size=(2, 2, 3, 4, 5)).astype("float32"),
        "grid": random.uniform(-1.5, 1.5, size=(2, 2, 3, 4, 3)).astype("float32"),
    }
    converted = tmp_path / "out.onnx"
    for release, gathers in (("tensorrt-11.1", 8), ("rtx-1.5", 8), ("tensorrt-11.2", 0), ("rtx-1.7", 0)):
        (judged,) = graft("inspect", model, "--for", release, "--json", code=0).json["nodes"]
        assert judged["verdict"] == ("lowered" if gathers else "native")
        graft("convert", model, "-o", converted, "--for", release, code=0)
        operators = [each.op_type for each in onnx.load(converted).graph.node]
        assert operators.count("GatherND") == gathers
        assert operators.count("GridSample") == (0 if gathers else 1)
        np.testing.assert_allclose(outputs(converted, feeds)[0], outputs(model, feeds)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("mode", "padding"), [("nearest", "zeros"), ("linear", "reflection")])
def test_other_samples_of_volumes_stay_and_the_reason_is_given(graft, tmp_path, mode, padding):
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], name="sample", mode=mode, padding_mode=padding)
    inputs = [("x", [1, 2, 3, 4, 5]), ("grid", [1, 2, 3, 4, 3])]
    model = save(tmp_path / "m.onnx", [node], inputs, [("y", None)], opset=20)
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--for", "tensorrt-11.1", "--json", code=1)
    assert answer.json["unsupported"][0]["operator"] == "GridSample"
    assert f"its {'mode' if mode == 'nearest' else 'padding_mode'} is" in answer.out
