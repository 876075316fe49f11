"""Tests the Python toolkit of the installed wheel with the digits network; ONNX Runtime is the reference."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
import warnings

import fastjsonschema
import graft
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import DIGITS, ROOT
from onnx import TensorProto, helper

SHAPES = {"image": ([1, 1, 8, 8], [8, 1, 8, 8], [64, 1, 8, 8])}


def logits(model: graft.Model, images: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.serialize(), providers=["CPUExecutionProvider"])
    return session.run(["logits"], {"image": images})[0]


def check_result(result: object, schema: str, page: bool = True) -> dict[str, object]:
    """Checks the JSON, which is that of the command, the short text, and the HTML for notebooks."""
    text = json.loads((ROOT / "docs" / "schema" / f"graft.{schema}.schema.json").read_text())
    said = json.loads(result.to_json())
    fastjsonschema.compile(text)(said)
    assert re.fullmatch(rf"<graft\.{type(result).__name__}\b.{{5,300}}>", repr(result)), repr(result)
    html = result._repr_html_()
    if page:
        assert (
            html.startswith("<iframe ") and "&quot;" in html and result.to_page().lower().startswith("<!doctype html")
        )
    else:
        assert html.startswith("<table>")
    return said


# ---- Models


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("digits.onnx", {}),
        ("digits.pb", {}),
        ("digits.prototxt", {"weights": DIGITS / "digits.caffemodel", "shapes": {"image": [-1, 1, 8, 8]}}),
    ],
)
def test_networks_of_all_formats_compute_the_same(file: str, options: dict, images: np.ndarray) -> None:
    model = graft.load(DIGITS / file, **options)
    assert model.node_count > 5 and file in repr(model)
    (port,) = model.inputs
    some = images[:3] if port.shape[1] == 1 else np.ascontiguousarray(images[:3].transpose(0, 2, 3, 1))
    outputs = graft.Session(model).run({port.name: some})
    right = logits(graft.load(DIGITS / "digits.onnx"), images[:3])
    assert any(np.allclose(values, right, atol=1e-4) for values in outputs.values() if values.shape == right.shape)


def test_a_model_says_what_it_takes_and_gives(network: graft.Model) -> None:
    assert [(port.name, port.type, port.shape) for port in network.inputs] == [("image", "f32", [-1, 1, 8, 8])]
    assert [port.name for port in network.outputs] == ["logits", "embedding"]
    assert network.source == str(DIGITS / "digits.onnx")
    fixed = graft.load(str(DIGITS / "digits.onnx"), shapes={"image": [4, 1, 8, 8]})
    assert fixed.inputs[0].shape == [4, 1, 8, 8]
    assert graft.load(network) is network


def test_models_come_from_onnx_and_go_there(network: graft.Model, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    proto = network.to_proto()
    assert isinstance(proto, onnx.ModelProto)
    onnx.checker.check_model(proto)
    again = graft.load(proto)
    assert again.to_proto() == proto
    np.testing.assert_allclose(graft.Session(again).run(images[:2])["logits"], logits(network, images[:2]), atol=1e-5)
    network.save(tmp_path / "saved.onnx")
    assert (tmp_path / "saved.onnx").read_bytes() == network.serialize()
    converted = graft.convert(proto)
    assert graft.verify(proto, converted.model).same
    exported = types.SimpleNamespace(model_proto=proto)  # like the result of torch.onnx.export
    assert graft.load(exported).serialize() == graft.load(proto).serialize()


def test_what_is_no_model() -> None:
    with pytest.raises(TypeError, match="graft.Model, a path or an onnx.ModelProto\\), found int"):
        graft.load(3)
    with pytest.raises(TypeError, match="found ConvertResult; its attribute .model is a model"):
        graft.build(graft.convert(graft.load(DIGITS / "digits.onnx")), "no.engine")
    with pytest.raises(TypeError, match="for files"):
        graft.load(graft.load(DIGITS / "digits.onnx"), shapes={"image": [1, 1, 8, 8]})
    with pytest.raises(graft.Error, match="nowhere.onnx") as raised:
        graft.load("/nowhere.onnx")
    assert raised.value.kind == "bad_input"
    with pytest.raises(graft.Error, match="no input 'images'; its inputs are image"):
        graft.load(DIGITS / "digits.onnx", shapes={"images": [1, 1, 8, 8]})


# ---- Sessions


def test_a_session_runs_any_batch_and_keeps_what_it_gave(network: graft.Model, images: np.ndarray) -> None:
    session = graft.Session(network, threads=1)
    assert session.model is network and "digits.onnx" in repr(session)
    first = session.run({"image": images[:1]})["logits"]
    kept = first.copy()
    more = session.run(images[:16])["logits"]
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_allclose(more, logits(network, images[:16]), atol=1e-5)
    strided = images[:32:2]
    np.testing.assert_allclose(session.run(strided)["logits"], logits(network, strided), atol=1e-5)


def test_a_session_says_what_is_wrong_with_inputs(network: graft.Model, images: np.ndarray) -> None:
    session = graft.Session(network)
    for inputs, told in [
        ({}, "image"),
        ({"image": images[:1], "other": images[:1]}, "other"),
        ({"image": images[0, 0]}, r"f32\[8, 8\]"),
        ({"image": images[:1].astype(np.int32)}, "i32"),
        ("/nowhere.npy", "/nowhere.npy: there is no such file or folder"),
    ]:
        with pytest.raises(graft.Error, match=told):
            session.run(inputs)
    with pytest.raises(TypeError, match="a dict of arrays"):
        session.run([images[:1]])


def test_a_session_takes_data_in_any_form(network: graft.Model, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    session = graft.Session(network)
    expected = session.run(images[:8])["logits"]
    np.savez(tmp_path / "x.npz", pictures=images[:8])
    (tmp_path / "samples").mkdir()
    for i, image in enumerate(images[:8]):
        np.save(tmp_path / "samples" / f"{i}.npy", image[np.newaxis])
    for data in (tmp_path / "samples", [f"image={tmp_path}/x.npz:pictures"], {"": images[:8]}):
        np.testing.assert_allclose(session.run(data)["logits"], expected, atol=1e-5)
        assert session.data_notes == []
    with pytest.warns(UserWarning, match="input 'image' is read from the array 'pictures'"):
        session.run(tmp_path / "x.npz")
    with pytest.warns(UserWarning, match="the array is f64; it is converted to f32, the type of input 'image'"):
        found = session.run(images[:8].astype(np.float64))["logits"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the same note is not repeated
        session.run(images[:8].astype(np.float64))
    with pytest.warns(UserWarning, match="is one sample"):
        assert session.run(images[0])["logits"].shape == (1, 10)


def test_data_of_a_comparison_may_have_any_form(
    network: graft.Model, converted: graft.ConvertResult, images: np.ndarray, tmp_path: pathlib.Path
) -> None:
    np.save(tmp_path / "x.npy", images[:8])
    for data in (
        images[:8],
        tmp_path / "x.npy",
        [f"image={tmp_path / 'x.npy'}"],
        (image[None] for image in images[:8]),
    ):
        assert graft.verify(network, converted.model, data=data).same
    with pytest.warns(UserWarning, match="f64"):
        wide = graft.verify(network, converted.model, data=images[:8].astype(np.float64))
    assert wide.same and len(wide.data_notes) == 1


@pytest.mark.parametrize(
    ("onnx_type", "dtype"),
    [
        (TensorProto.FLOAT, np.float32),
        (TensorProto.FLOAT16, np.float16),
        (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
        (TensorProto.INT8, np.int8),
        (TensorProto.UINT8, np.uint8),
        (TensorProto.INT32, np.int32),
        (TensorProto.INT64, np.int64),
        (TensorProto.BOOL, np.bool_),
    ],
)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 3)])
def test_every_type_goes_in_and_comes_out(onnx_type: int, dtype: type, shape: tuple[int, ...]) -> None:
    ends = [helper.make_tensor_value_info(name, onnx_type, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    (given,) = graft.Session(model).run({"x": values}).values()
    assert given.dtype == values.dtype and given.shape == values.shape
    np.testing.assert_array_equal(given, values)


# ---- Results


def test_inspect(network: graft.Model) -> None:
    result = graft.inspect(network, judge="rule")
    said = check_result(result, "inspect")
    assert result.runs is True and result.problems == [] and sum(result.counts.values()) == len(result.nodes)
    assert [node.node.name for node in result.nodes] == [node["node"] for node in said["nodes"]]
    assert result.nodes[0].support == "native" and result.nodes[0].judge == "rule" and result.probe is None
    assert result.weight_bytes == said["weight_bytes"] > 0
    assert graft.inspect(network, convert=True).model.node_count < result.model.node_count


def test_inspect_asks_tensorrt(network: graft.Model) -> None:
    assert {"rtx-1.4", "tensorrt-10.13"} <= set(graft.releases())
    attention = helper.make_graph(
        [helper.make_node("Attention", ["x", "x", "x"], ["y"])],
        "attention",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1, 4, 16, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [1, 4, 16, 64])],
    )
    # TensorRT 10.14 added the operator, according to its release notes.
    model = helper.make_model(attention, opset_imports=[helper.make_opsetid("", 23)])
    for release, support in (("tensorrt-10.13", "unsupported"), ("tensorrt-10.14", "native")):
        (node,) = graft.inspect(model, release=release).nodes
        assert node.support == support, node.reason
    with pytest.raises(
        graft.Error,
        match=r"release: Graft has no data on the release 'rtx-1.3'\nUse the nearest of the releases rtx-1.4",
    ):
        graft.inspect(network, release="rtx-1.3")
    with pytest.raises(graft.Error, match="release"):
        graft.inspect(network, release="rtx-1.7", judge="parser")

    result = graft.inspect(network, judge="builder", shapes=SHAPES, targets="sm120", tensorrt="rtx")
    check_result(result, "inspect")
    assert result.runs is True and "TensorRT-RTX" in result.probe.tensorrt and result.probe.builds > 0
    assert {node.judge for node in result.nodes} == {"builder"}


def test_convert(network: graft.Model, converted: graft.ConvertResult, images: np.ndarray) -> None:
    said = check_result(converted, "convert")
    assert len(converted.rewrites) == len(said["rewrites"]) > 0 and converted.proofs_run > 0
    assert converted.rejected == [] and converted.failed_rules == []
    assert {rewrite.rewrite_pass for rewrite in converted.rewrites} <= set(graft.pass_names())
    np.testing.assert_allclose(logits(converted.model, images[:8]), logits(network, images[:8]), atol=1e-5)
    assert graft.convert(converted.model).rewrites == []
    always = graft.convert(network, plugins="always", prove=False)
    assert {choice.kind for choice in always.choices} == {"plugin"} and always.proofs_run == 0
    for options, told in [
        ({"plugins": "some"}, "plugins: found some"),
        ({"only": ["fuse_nothing"]}, "only: there is no"),
    ]:
        with pytest.raises(graft.Error, match=told):
            graft.convert(network, **options)


def test_the_same_is_said_as_by_the_command(network: graft.Model, tmp_path: pathlib.Path) -> None:
    program = pathlib.Path(sys.executable).parent / "graft"
    command = [program, "convert", DIGITS / "digits.onnx", "-o", tmp_path / "o.onnx", "--json"]
    printed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    said = json.loads(graft.convert(network).to_json())
    for answer in (printed, said):
        del answer["values"]["command"]  # it contains the name of the written file
    for key in ("seconds", "passes", "output"):  # times, and the written file
        del printed[key], said[key]
    assert said == printed
    assert (tmp_path / "o.onnx").read_bytes() == graft.convert(network).model.serialize()


def test_verify(network: graft.Model, converted: graft.ConvertResult, images: np.ndarray) -> None:
    same = graft.verify(network, converted.model, data=images[:64])
    said = check_result(same, "verify")
    assert same.same and same.verdict == "same" and said["equal"] is True and same.problems == []
    assert [output.reference.name for output in same.outputs] == ["logits", "embedding"]
    assert same.outputs[0].compared == 640 and same.outputs[0].mismatched == 0
    assert graft.verify(network, converted.model, seeds=2).runs == 2
    for output in graft.verify(network, converted.model, seeds=3, relative=1e-12, absolute=0).outputs:
        assert output.compared == 3 * output.elements
        assert repr(output).endswith(f", {output.mismatched} of {output.elements} outside>")
    f16 = graft.quantize(network, precision="bf16").model
    different = graft.verify(network, f16, data={"image": images[:64]}, relative=1e-6, absolute=0)
    assert not different.same and different.verdict == "different" and different.outputs[0].mismatched > 0
    assert different.outputs[0].largest_absolute > 0 and different.outputs[0].snr_db > 20
    from_file = graft.verify(network, converted.model, ranges={"image": (0, 16)}, snr_db=60)
    assert from_file.same
    nodes = [onnx.helper.make_node("NonZero", ["x"], ["n"]), onnx.helper.make_node("Neg", ["n"], ["y"])]
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [2, None])
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "g", [x], [y]), opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
    )
    for own, named in ((True, ["NonZero"]), (False, [])):
        assert graft.verify(proto, proto, own_kernels=own).without_own_kernels == named
        assert graft.verify_layers(proto, proto, own_kernels=own).without_own_kernels == named
    with pytest.raises(graft.Error, match="data.*picture"):
        graft.verify(network, converted.model, data={"picture": images[:1]})


def test_verify_layers_finds_the_node(network: graft.Model, images: np.ndarray) -> None:
    spoiled = network.to_proto()
    weights = next(tensor for tensor in spoiled.graph.initializer if len(tensor.dims) == 4)
    values = onnx.numpy_helper.to_array(weights) * np.float32(1.5)
    weights.CopyFrom(onnx.numpy_helper.from_array(values, weights.name))
    result = graft.verify_layers(network, spoiled, data=images[:4])
    check_result(result, "verify.layers")
    assert result.verdict == "different" and result.failure is None
    first = result.first
    assert first.candidate_nodes[-1].op == "Conv" and "differ" in first.why and repr(first).startswith("<divergence at")
    tensor = result.tensors[first.tensor]
    assert tensor.verdict == "different" and tensor.candidate_node.id == first.candidate_nodes[-1].id
    assert tensor.op == "Conv" and tensor.reference_range.nan == 0 and tensor.local.mismatched > 0
    assert first.reference.node_count < network.node_count
    apart = graft.verify(first.reference, first.candidate, data=first.inputs)
    assert not apart.same
    emulated = graft.verify_layers(network, emulated="f16")
    assert json.loads(emulated.to_json())["emulated"] == emulated.emulated == "f16"
    assert any(tensor.rounding is not None for tensor in emulated.tensors)


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_quantize_to_floats(converted: graft.ConvertResult, images: np.ndarray, precision: str) -> None:
    result = graft.quantize(converted.model, precision=precision, data=images[:32], keep="Gemm")
    said = check_result(result, "quantize")
    assert said["precision"] == precision and said["data"] == "given" and result.met
    assert result.counts[precision] > 0
    assert {node.type for node in result.nodes if node.node.op == "Gemm"} <= {"f32"}
    assert graft.verify(converted.model, result.model, data=images[:32], snr_db=20).same


def test_quantize_to_int8(converted: graft.ConvertResult, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    result = graft.quantize(
        converted.model, precision="int8", data=images[:200], improve=["equalize", "bias"], rest="f16"
    )
    said = check_result(result, "quantize")
    assert said["samples"] == 200 and result.counts["int8"] > 3
    rows = {output.name: output.rows for output in result.outputs}
    assert rows["logits"] > 0 and result.outputs[0].snr_db > 10
    assert (logits(result.model, images).argmax(1) == logits(converted.model, images).argmax(1)).mean() > 0.95
    scales = graft.write_calibration_cache(result.model, tmp_path / "digits.cache")
    assert scales > 3
    by_cache = graft.quantize(converted.model, precision="int8", cache=tmp_path / "digits.cache")
    assert by_cache.counts["int8"] > 3


def test_build(converted: graft.ConvertResult, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    int8 = graft.quantize(converted.model, precision="int8", data=images[:200]).model
    result = graft.build(int8, tmp_path / "digits.engine", targets=["sm120"], shapes=SHAPES)
    check_result(result, "build", page=False)
    assert result.bytes == (tmp_path / "digits.engine").stat().st_size > 0
    assert "TensorRT-RTX" in result.tensorrt and result.targets == ["sm120"] and result.layers > 0
    with pytest.raises(graft.Error, match="without shapes: image"):
        graft.build(int8, tmp_path / "other.engine", targets=["sm120"])
    one = graft.build(int8, tmp_path / "one.engine", targets="sm120", shapes={"image": [8, 1, 8, 8]})
    assert one.targets == ["sm120"]
    for built in (result, one):  # a printed engine shows its warnings
        assert ("warning" in repr(built)) == bool(built.warnings)
    with pytest.raises(TypeError, match="it must be one shape, or the minimum, optimum and maximum shape"):
        graft.build(int8, tmp_path / "other.engine", shapes={"image": ([1, 1, 8, 8], [8, 1, 8, 8])})
    with pytest.raises(graft.Error, match="memory: found the pool shop"):
        graft.build(int8, tmp_path / "other.engine", memory={"shop": 1})
    assert not (tmp_path / "other.engine").exists()


def test_messages_name_keywords(network: graft.Model, converted: graft.ConvertResult, tmp_path: pathlib.Path) -> None:
    said = []
    for call in (
        lambda: graft.load(DIGITS / "digits.pb", shapes={"nothing": [1]}),
        lambda: graft.load(DIGITS / "digits.pb", outputs=["nothing"]),
        lambda: graft.verify(network, network, relative=0.1, snr_db=20),
        lambda: graft.quantize(network, precision="f16", keep=["nothing"]),
        lambda: graft.write_calibration_cache(network, tmp_path / "no.cache"),
        lambda: graft.build(converted.model, tmp_path / "no.engine", targets=["sm120"]),
        lambda: graft.build(converted.model, tmp_path / "no.engine", targets=["nothing"], shapes=SHAPES),
        lambda: graft.build(
            converted.model, tmp_path / "no.engine", targets=["sm120"], dla_core=0, gpu_fallback=True, shapes=SHAPES
        ),
    ):
        with pytest.raises(graft.Error) as raised:
            call()
        said.append(str(raised.value))
    words = [
        "shapes: the network has no input 'nothing'",
        "`graft inspect` without outputs",
        "snr_db replaces the tolerance of each element, which relative and absolute set\n"
        "Set either snr_db, or relative and absolute",
        "keep nothing: no node",
        'Create a quantized model with quantize(precision="int8")',
        "without shapes: image",
        "targets nothing: not a target",
        "dla_core 0",
    ]
    for text, word in zip(said, words, strict=True):
        assert word in text
        assert not re.search(r"--[a-z]|Options::", text), text
    reasons = [node.advice for node in graft.inspect(converted.model, judge="rule").nodes]
    assert not re.search(r"--[a-z]|Options::", "".join(reasons))


def test_errors_of_tensorrt_have_their_parts(converted: graft.ConvertResult, tmp_path: pathlib.Path) -> None:
    with pytest.raises(graft.EngineError) as raised:
        graft.build(converted.model, tmp_path / "no.engine", targets=["sm120"])
    error = raised.value
    assert (error.kind, error.failure, error.library, error.cause) == ("bad_input", "shapes", "", "")
    assert str(error) == f"{error.message}\n{error.next_step}" and "image" in error.message
    assert error.facts["inputs"] == ["image"]
    library = tmp_path / "libnothing.so"
    library.write_text("no library")
    with pytest.raises(graft.EngineError) as raised:
        graft.build(
            converted.model, tmp_path / "no.engine", targets=["sm120"], shapes=SHAPES, plugin_libraries=[library]
        )
    assert (raised.value.failure, raised.value.library) == ("plugin_library", str(library))
    assert raised.value.cause == "not_elf"


# ---- A network in two halves


def test_cut(tmp_path: pathlib.Path) -> None:
    folder = ROOT / "examples" / "cut"
    stored = np.load(folder / "detector.npz")
    result = graft.cut(folder / "detector.onnx", plugins=False)
    assert result is not None
    assert result.verified is not None and result.verified.same
    assert {port.name for port in result.between} == {"boxes", "scores"}
    assert [node.node.op for node in result.causes] == ["NonMaxSuppression"]
    (tail,) = result.tails
    assert (tail.kind, tail.boxes, tail.scores, tail.most) == ("suppression", ["boxes"], ["scores"], 10)
    assert tail.is_center_and_size
    assert result.model.node_count == 15
    said = check_result(result, "cut")
    assert said["causes"][0]["operator"] == "NonMaxSuppression" and said["verified"] == "same"
    assert "both halves together equal the whole network" in result.to_page()

    files = result.save(tmp_path / "small.onnx")
    for network in (result.network, graft.load_cut(files.network)):
        found = graft.Session(network).run(stored["image"])
        np.testing.assert_array_equal(found["chosen"], stored["chosen"])
        np.testing.assert_allclose(found["detections"], stored["detections"], atol=1e-5)
    assert graft.verify(folder / "detector.onnx", files.network).same

    token = graft.CancelToken()
    said: list[tuple[float, str]] = []
    session = graft.Session(result.network, progress=lambda part, what: said.append((part, what)), cancel=token)
    assert said[-1][0] == 1 and "compiling" in said[0][1]
    token.cancel()
    with pytest.raises(graft.Cancelled):
        session.run(stored["image"])


def test_nothing_is_cut_where_everything_runs(network: graft.Model) -> None:
    assert graft.cut(network) is None


# ---- All steps in one call


def test_auto(network: graft.Model, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    engine = tmp_path / "digits.engine"
    result = graft.auto(
        DIGITS / "digits.onnx",
        engine,
        precision="f16",
        data={"image": images},
        shapes=SHAPES,
        targets="sm120",
        plugins=False,
    )
    said = check_result(result, "auto")
    assert result.succeeded and said["precision"] == "f16"
    assert [(step.name, step.state) for step in result.steps] == [
        (name, "done") for name in ("convert", "verify", "quantize", "build")
    ]
    assert result.verify.verdict == "same" and result.quantize.met and result.build.bytes == engine.stat().st_size
    assert json.loads((tmp_path / "digits.graft" / "report.json").read_text()) == said
    quantized = graft.load(tmp_path / "digits.graft" / "quantized.onnx")
    np.testing.assert_allclose(logits(quantized, images), logits(network, images), atol=0.05)
    with pytest.raises(TypeError, match="path of a network"):
        graft.auto(network, engine)
    with pytest.raises(graft.Error, match="shapes"):
        graft.auto(DIGITS / "digits.onnx", engine, targets="sm120")


# ---- A canary folder, to test a TensorRT


def test_canary(network: graft.Model, images: np.ndarray, tmp_path: pathlib.Path) -> None:
    said: list[tuple[float, str]] = []
    folder = tmp_path / "canary"
    result = graft.canary(
        network, folder, data={"image": images[:3]}, progress=lambda part, what: said.append((part, what))
    )
    assert said
    assert result.folder == folder and result.runs == 1 and not result.left_out
    assert sorted(result.files) == sorted(file.name for file in folder.iterdir())
    said_of_it = check_result(result, "canary", page=False)
    assert said_of_it["model"] == str(DIGITS / "digits.onnx") and said_of_it["tensors"] == len(result.tensors)
    outputs = [tensor.tensor.name for tensor in result.tensors if tensor.is_output]
    assert set(outputs) == {port.name for port in network.outputs}
    assert all(0 < tensor.samples <= tensor.elements for tensor in result.tensors)
    np.testing.assert_array_equal(np.load(folder / "inputs_0.npz")["image"], images[:3])
    with np.load(folder / "expected_0.npz") as expected:
        assert set(expected) == {tensor.tensor.name for tensor in result.tensors}
        np.testing.assert_allclose(expected["logits"], logits(network, images[:3]).ravel(), atol=1e-4)

    # The script finds the node that a stand-in for TensorRT computes wrongly, and nothing without a fault.
    wrong = next(tensor for tensor in result.tensors if tensor.node.op == "Conv")
    for fault, code in (({}, 0), ({"tensor": wrong.tensor.name}, 1)):
        done = subprocess.run(
            [sys.executable, folder / "run_canary.py", "--memory", "cuda-python", "--tensorrt", "tensorrt"],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "tests" / "cli" / "canary_stand_in"),
                "CANARY_FAULT": json.dumps(fault),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert (f"first wrong tensor is '{wrong.tensor.name}'" in done.stdout) == bool(code)

    with pytest.raises(graft.Error, match="canary"):
        graft.canary(network, folder)
    with pytest.raises(graft.Error, match="seeds"):
        graft.canary(network, tmp_path / "other", seeds=0)
    assert not (tmp_path / "other").exists()


# ---- Progress, cancellation, interrupts


def test_reading_and_compiling_are_watched(network: graft.Model, images: np.ndarray) -> None:
    said: list[tuple[float, str]] = []
    graft.load(DIGITS / "digits.pb", progress=lambda part, what: said.append((part, what)))
    assert said[-1][0] == 1 and len(said) > 5 and "digits.pb" in said[0][1]
    said.clear()
    token = graft.CancelToken()
    session = graft.Session(network, progress=lambda part, what: said.append((part, what)), cancel=token)
    assert said[-1][0] == 1 and "compiling" in said[0][1]
    assert session.run(images[:1])["logits"].shape == (1, 10)
    token.cancel()
    for call in (
        lambda: session.run(images[:1]),
        lambda: graft.load(DIGITS / "digits.pb", cancel=token),
        lambda: graft.Session(network, cancel=token),
        lambda: graft.convert(DIGITS / "digits.onnx", cancel=token),
    ):
        with pytest.raises(graft.Cancelled):
            call()


def test_progress_is_told_in_the_callers_thread(network: graft.Model) -> None:
    said, threads = [], set()

    def progress(fraction: float, text: str) -> None:
        threads.add(threading.current_thread())
        said.append((fraction, text))

    graft.convert(network, progress=progress)
    assert threads == {threading.current_thread()}
    assert said[-1][0] == 1 and all(text for _, text in said)
    assert [fraction for fraction, _ in said] == sorted(fraction for fraction, _ in said)


def test_a_bar_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, network: graft.Model) -> None:
    tqdm = pytest.importorskip("tqdm.auto")
    shown = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(tqdm.tqdm, "set_postfix_str", lambda self, text, refresh: shown.append(text))
    graft.convert(network)
    assert shown
    shown.clear()
    graft.convert(network, progress=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    graft.convert(network)
    assert not shown
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    graft.convert(network)
    assert shown


def test_a_notebook_without_widgets_shows_a_bar_of_text_on_standard_output() -> None:
    """A notebook shows standard error in a red box. Stand-ins represent its kernel."""
    pytest.importorskip("tqdm.auto")
    script = """
    import sys
    from unittest.mock import MagicMock
    sys.modules |= {name: MagicMock() for name in ("ipykernel", "ipykernel.zmqshell", "IPython")} | {"ipywidgets": None}
    from graft.progress import shown
    with shown(None, "converting") as show:
        show(1, "done")
    """
    command = [sys.executable, "-W", "always", "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "converting: 100 %" in done.stdout


@pytest.mark.parametrize("error", [LookupError("enough"), KeyboardInterrupt(), SystemExit(3)])
def test_what_progress_raises_ends_the_work(network: graft.Model, tmp_path: pathlib.Path, error: BaseException) -> None:
    def progress(fraction: float, text: str) -> None:
        raise error

    for call in (
        lambda: graft.load(DIGITS / "digits.pb", progress=progress),
        lambda: graft.Session(network, progress=progress),
        lambda: graft.convert(network, progress=progress),
        lambda: graft.verify(network, network, progress=progress),
        lambda: graft.verify_layers(network, network, progress=progress),
        lambda: graft.quantize(network, progress=progress),
        lambda: graft.build(network, tmp_path / "no.engine", targets=["sm120"], shapes=SHAPES, progress=progress),
    ):
        with pytest.raises(type(error)) as raised:
            call()
        assert raised.value is error
    assert not (tmp_path / "no.engine").exists()


def test_a_token_ends_work_from_another_thread(network: graft.Model) -> None:
    token = graft.CancelToken()
    begun, cancelled = threading.Event(), threading.Event()

    def cancel() -> None:
        begun.wait()
        token.cancel()
        cancelled.set()

    def progress(fraction: float, text: str) -> None:
        begun.set()
        cancelled.wait()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(graft.Cancelled) as raised:
        graft.convert(network, progress=progress, cancel=token)
    thread.join()
    assert token.is_cancelled and isinstance(raised.value, graft.Error) and raised.value.kind == "answer_is_no"
    with pytest.raises(graft.Cancelled):
        graft.convert(network, cancel=token)


def test_other_threads_go_on(network: graft.Model) -> None:
    counted = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    graft.convert(network)
    after = counted
    stop.set()
    thread.join()
    assert after > before


WAITING = """
import pathlib, sys, graft
network = graft.load(sys.argv[1])
begun = pathlib.Path(sys.argv[2])
try:
    CALL
except KeyboardInterrupt:
    sys.exit(77)
"""


@pytest.mark.parametrize(
    "call",
    [
        "graft.verify(network, network, seeds=10000, progress=lambda part, what: begun.touch())",
        "graft.build(network, 'no.engine', targets=['sm75', 'sm80', 'sm86', 'sm120', 'sm90'], "
        "shapes={'image': ([1, 1, 8, 8], [8, 1, 8, 8], [64, 1, 8, 8])}, progress=lambda part, what: begun.touch())",
    ],
)
def test_ctrl_c_ends_the_work(tmp_path: pathlib.Path, call: str) -> None:
    begun = tmp_path / "begun"
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING.replace("CALL", call), DIGITS / "digits.onnx", begun],
        cwd=tmp_path,
        process_group=0,
    )
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 77
    with pytest.raises(ProcessLookupError):  # no process of its group is left
        os.killpg(process.pid, 0)
    assert not (tmp_path / "no.engine").exists()
