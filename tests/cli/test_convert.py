# graft convert: the result is judged by ONNX Runtime and by the onnx package's checker.
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from conftest import DIGITS, SOURCE


def outputs(path, feeds):
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
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


def test_report_names_passes_proofs_and_choices(graft, tmp_path):
    answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--json")
    assert answer.code == 0
    report = answer.json
    (fusion,) = (r for r in report["rewrites"] if r["pass"] == "fuse_l2_normalize")
    assert "L2Normalize" in fusion["replacement"]
    assert fusion["proof"]
    assert report["proofs_run"] > 0
    (choice,) = (c for c in report["choices"] if c["operator"] == "L2Normalize")
    assert choice["kind"] == "plugin"
    assert choice["reason"]


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
        answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", f"--passes={chosen}", "--json")
        assert answer.code == 0, answer.err
        assert "fuse_l2_normalize" not in [p["pass"] for p in answer.json["passes"]]
        assert not [n for n in onnx.load(tmp_path / "out.onnx").graph.node if n.domain == "graft"]


def test_explain_says_why_a_near_miss_was_none(graft, tmp_path):
    # F.normalize whose clamp also limits from above: another function.
    model = SOURCE / "tests" / "golden" / "near_misses" / "l2_clip_both.onnx"
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--explain")
    assert answer.code == 0
    near = answer.out.split("nearly")[1]
    assert "Div" in near.splitlines()[0]
    assert "Clip" in near.splitlines()[1]
    assert not [n for n in onnx.load(tmp_path / "out.onnx").graph.node if n.domain == "graft"]


def test_converting_again_changes_nothing(graft, converted, tmp_path):
    assert graft("convert", converted, "-o", tmp_path / "again.onnx").code == 0
    assert onnx.load(tmp_path / "again.onnx") == onnx.load(converted)


def test_input_shape_replaces_the_one_in_the_file(graft, tmp_path):
    answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--input", "image:4x1x8x8")
    assert answer.code == 0, answer.err
    dims = onnx.load(tmp_path / "out.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_value for d in dims] == [4, 1, 8, 8]


@pytest.mark.parametrize(
    ("shape", "named"), [("picture:4x1x8x8", "picture"), ("image:4x3x8x8", "image"), ("image:4x1", "image")]
)
def test_input_shape_that_contradicts_the_model_is_refused(graft, tmp_path, shape, named):
    answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--input", shape)
    assert answer.code == 2
    assert named in answer.err
    assert not (tmp_path / "out.onnx").exists()


def test_no_prove_runs_nothing(graft, tmp_path):
    answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--no-prove", "--json")
    assert answer.code == 0
    assert answer.json["proofs_run"] == 0


def test_quiet_prints_nothing(graft, tmp_path):
    answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "-q")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
