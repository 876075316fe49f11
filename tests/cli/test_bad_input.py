# Damaged files, wrong models and full disks: exit code 2 or 3, one clear message, no partial file.
import functools
import os
import pathlib
import random
import resource
import subprocess

import numpy as np
import onnx
import pytest
from conftest import DIGITS, DIGITS_DATA, DIGITS_SHAPES, PROGRAM, run_command
from onnx import TensorProto, helper
from onnx_models import save, session_of, subgraph

READERS = {
    "inspect": lambda model, out: ["inspect", model],
    "convert": lambda model, out: ["convert", model, "-o", out / "o.onnx"],
    "verify": lambda model, out: ["verify", DIGITS, model],
    "run": lambda model, out: ["run", model, "--input", f"image={DIGITS_DATA}:images", "-o", out / "o.npz"],
    "build": lambda model, out: ["build", model, "-o", out / "o.engine", "--target", "sm89"],
}
# All commands read models by the same code; where there are many files, one command represents all.
ONE = "convert"


def refused(answer, out, *named, codes=(2,)):
    assert answer.code in codes, (answer.code, answer.out, answer.err)
    assert answer.err.startswith("error: "), answer.err
    assert answer.err.count("error: ") == 1
    assert answer.out == ""
    for text in named:
        assert str(text) in answer.err
    assert not list(out.iterdir())


def wire(field, payload):
    """Returns a length-delimited field of protobuf with up to 127 bytes."""
    return bytes([field << 3 | 2, len(payload)]) + payload


def test_what_protobuf_says_is_part_of_the_error(graft, tmp_path, out):
    """protobuf alone writes to standard error without naming the file."""
    model = tmp_path / "bad.pb"
    model.write_bytes(wire(1, wire(1, b"\xff\xfe") + wire(2, b"Placeholder")))
    answer = graft("convert", model, "-o", out / "o.onnx")
    refused(answer, out, "bad.pb", "GraphDef: String field 'graft.tensorflow.NodeDef.name' contains invalid UTF-8")
    message, next_step = answer.err.splitlines()
    assert "libprotobuf" not in message
    assert next_step == "  Fetch the file again, or export the model again"
    answer = graft("convert", model, "-o", out / "o.onnx", "--json")
    assert "invalid UTF-8" in answer.json["error"]["message"]


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "text", "truncated", "unreadable"])
def test_what_is_no_model(graft, tmp_path, out, command, kind):
    model = tmp_path / "bad.onnx"
    if kind == "folder":
        model.mkdir()
    elif kind == "empty":
        model.write_bytes(b"")
    elif kind == "text":
        model.write_text("This is not a model.\n" * 20)
    elif kind == "truncated":
        model.write_bytes(DIGITS.read_bytes()[:60000])
    elif kind == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root reads everything")
        model.write_bytes(DIGITS.read_bytes())
        model.chmod(0)
    refused(graft(*READERS[command](model, out)), out, "bad.onnx")


def test_truncated_anywhere(graft, tmp_path, out):
    data = DIGITS.read_bytes()
    model = tmp_path / "cut.onnx"
    for size in [1, 7, 100, *range(997, len(data), len(data) // 12), len(data) - 1]:
        model.write_bytes(data[:size])
        refused(graft(*READERS[ONE](model, out)), out, "cut.onnx")


def test_random_bytes(graft, tmp_path, out):
    generator = random.Random(3)
    model = tmp_path / "random.onnx"
    for size in (1, 10, 1000, 100000):
        model.write_bytes(generator.randbytes(size))
        refused(graft(*READERS[ONE](model, out)), out, "random.onnx")


def test_flipped_bytes_never_crash(graft, tmp_path, out):
    """A changed byte may leave a valid model, but it must not cause a crash or a partial file."""
    data = DIGITS.read_bytes()
    generator = random.Random(5)
    model = tmp_path / "flipped.onnx"
    for _ in range(15):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        model.write_bytes(damaged)
        answer = graft("inspect", model)
        assert answer.code in (0, 1, 2), (answer.code, answer.err)


def test_unknown_operator(graft, tmp_path, out):
    node = helper.make_node("Wobble", ["image"], ["y"], name="strange", domain="acme")
    model = save(tmp_path / "m.onnx", [node], [("image", ["N", 1, 8, 8])], [("y", ["N", 1, 8, 8])], domains=["acme"])
    refused(graft(*READERS["run"](model, out)), out, "Wobble")
    by_worker = graft(
        "run", model, "--input", f"image={DIGITS_DATA}:images", "-o", out / "o.npz", "--engine", "openvino"
    )
    refused(by_worker, out, "Wobble", "--operators LIB")
    refused(graft(*READERS["build"](model, out), "--shapes", "image=1x1x8x8"), out, "Wobble", codes=(1, 2))


def test_contradicting_shapes(graft, tmp_path, out):
    node = helper.make_node("MatMul", ["image", "w"], ["y"], name="product")
    weight = helper.make_tensor("w", TensorProto.FLOAT, [5, 2], [0.0] * 10)
    model = save(tmp_path / "m.onnx", [node], [("image", ["N", 1, 8, 8])], [("y", None)], [weight])
    with pytest.raises(Exception, match="Incompatible dimensions"):
        session_of(model)
    fault = (
        "m.onnx: node 'product' (MatMul): the left input has 8 columns and the right input has 5 rows; "
        "these numbers must be equal"
    )
    step = "Correct the node in the program that wrote the model"
    for command in ("convert", "build", "run"):
        refused(graft(*READERS[command](model, out)), out, fault, step)
    refused(graft("quantize", model, "-o", out / "o.onnx", "--precision", "f16"), out, fault, step)
    refused(graft("verify", model, model), out, fault, step)
    refused(graft("canary", model, "-o", out / "c"), out, fault, step)
    refused(graft("bench", model), out, fault, step)
    answer = graft("inspect", model, "--json", code=1)
    assert fault in answer.json["nodes"][0]["reason"]


FAULTS = {
    "axis": (
        helper.make_node("Concat", ["x", "x"], ["y"], name="n", axis=7),
        "axis 7 is out of range; it must be between -2 and 1 for rank 2",
    ),
    "perm": (helper.make_node("Transpose", ["x"], ["y"], name="n", perm=[0, 0]), "axis 0 is given twice"),
    "type": (
        helper.make_node("Add", ["x", "i"], ["y"], name="n"),
        "inputs 0 and 1 of Add must have the same type, but are f32 'x' and i64 'i'",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
@pytest.mark.parametrize("engine", [[], ["--engine", "onnxruntime"]])
def test_run_names_the_fault_as_verify_does(graft, tmp_path, out, case, engine):
    node, found = FAULTS[case]
    inputs = [("i", TensorProto.INT64, [2, 3])] if "i" in node.input else []
    model = save(tmp_path / "m.onnx", [node], [("x", [2, 3]), *inputs], [("y", None)])
    with pytest.raises(Exception, match="axis|perm|Type"):
        session_of(model)
    run = graft("run", model, "-o", out / "o.npz", *engine)
    refused(run, out, f"m.onnx: node 'n' ({node.op_type}): ", found, "in the program that wrote the model")
    assert run.err == graft("verify", model, model, *engine).err


def test_build_accepts_a_branch_that_contradicts_the_sizes(graft, tmp_path):
    """TensorRT builds the model, because the branch is never taken. Exporters write such branches for a size of 1."""
    pytest.importorskip("tensorrt_rtx")
    branches = {}
    for name, made in {
        "then_branch": [helper.make_node("Squeeze", ["x", "axis"], ["t"])],
        "else_branch": [helper.make_node("Identity", ["x"], ["t"])],
    }.items():
        branches[name] = subgraph(made, [], [("t", None)])
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [0])
    no = helper.make_tensor("no", TensorProto.BOOL, [], [False])
    node = helper.make_node("If", ["no"], ["y"], name="if", **branches)
    model = save(tmp_path / "m.onnx", [node], [("x", [2, 3])], [("y", None)], [axis, no])
    graft("build", model, "-o", tmp_path / "o.engine", "--target", "sm120", code=0)


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon_mode": "sideways"}, "sideways"),
        ({"axes": [0.5]}, "axes"),
        ({"slope": 0.1}, "slope"),
    ],
)
def test_wrong_attribute_of_an_operator_of_ours(graft, tmp_path, out, attributes, named):
    node = helper.make_node("L2Normalize", ["image"], ["y"], name="norm", domain="graft", **attributes)
    model = save(tmp_path / "m.onnx", [node], [("image", ["N", 1, 8, 8])], [("y", ["N", 1, 8, 8])], domains=["graft"])
    for command in ("convert", "build", "run"):
        refused(graft(*READERS[command](model, out)), out, "norm", named)
    answer = graft("inspect", model, "--json", code=1)  # the verdict on the node is listed with the others
    (verdict,) = answer.json["nodes"]
    assert verdict["verdict"] == "unsupported"
    assert named in verdict["reason"]
    assert str(model) in verdict["reason"]


@pytest.mark.parametrize(
    ("op", "attributes", "said"),
    [
        ("MaxPool", {"kernel_shape": [3, 3], "pads": [1, 1, 1]}, "attribute `pads` has 3 elements; it must have 4"),
        ("Softmax", {"axis": "last"}, "attribute `axis` has type string; it must have type int"),
    ],
)
def test_a_wrong_attribute_that_tensorrt_builds_stays_a_fault(graft, tmp_path, out, op, attributes, said):
    pytest.importorskip("tensorrt_rtx")
    node = helper.make_node(op, ["x"], ["y"], name="n", **attributes)
    model = save(tmp_path / "m.onnx", [node], [("x", [1, 3, 8, 8])], [("y", None)])
    with pytest.raises(Exception, match=r"(?s)."):  # ONNX Runtime's errors have no class of their own
        session_of(model)
    for command in ("convert", "build"):
        refused(graft(*READERS[command](model, out)), out, f"m.onnx: node 'n' ({op}): {said}", "\n  Correct the node")
    (verdict,) = graft("inspect", model, "--target", "sm120", "--json", code=1).json["nodes"]
    assert verdict["verdict"] == "unsupported"
    assert said in verdict["reason"]
    assert "TensorRT builds it nevertheless" in verdict["reason"]
    assert verdict["advice"] == "correct the node in the program that wrote the model"


def test_an_attribute_that_the_operator_does_not_have_is_warned_of(graft, tmp_path):
    """TensorRT builds the model, so it is no error."""
    pytest.importorskip("tensorrt_rtx")
    node = helper.make_node("Softmax", ["x"], ["y"], name="n", axes=1)
    model = save(tmp_path / "m.onnx", [node], [("x", [2, 3])], [("y", [2, 3])], opset=18)
    with pytest.raises(Exception, match="Unrecognized attribute: axes"):
        session_of(model)
    said = "node 'n' (Softmax): operator set 18 has no attribute `axes` for Softmax (did you mean `axis`?)"
    for command, output in (("inspect", None), ("convert", "c.onnx"), ("build", "e.engine")):
        answer = graft(command, model, *(["-o", tmp_path / output] if output else []), "--target", "sm120", code=0)
        assert said in " ".join(answer.err.split()), command


def test_a_build_warns_of_a_declared_shape_that_cannot_hold(graft, tmp_path):
    """ONNX defines 2x3 for Relu."""
    pytest.importorskip("tensorrt_rtx")
    model = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", [2, 3])], [("y", [2, 4])])
    answer = graft("build", model, "-o", tmp_path / "e.engine", "--target", "sm120", code=0)
    assert "the file declares the shape [2, 4] for 'y'" in " ".join(answer.err.split())


def test_external_data_outside_the_folder(graft, tmp_path, out):
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="../../../../etc/passwd")
    node = helper.make_node("Add", ["image", "w"], ["y"])
    folder = tmp_path / "model"
    folder.mkdir()
    model = save(folder / "m.onnx", [node], [("image", [2])], [("y", [2])], [weight])
    refused(graft(*READERS[ONE](model, out)), out, "etc/passwd")


WRONG_TYPES = {
    "two types": (
        17,
        "Add",
        ["f32", "i64"],
        "inputs 0 and 1 of Add must have the same type, but are f32 'a' and i64 'b'",
    ),
    "before 13": (
        11,
        "Mul",
        ["f32", "i32"],
        "inputs 0 and 1 of Mul must have the same type, but are f32 'a' and i32 'b'",
    ),
    "not allowed": (
        17,
        "Sigmoid",
        ["i64"],
        "input 0 of Sigmoid, 'a', is i64, but ONNX allows only f32, f16, f64, bf16 there",
    ),
    "too old": (13, "Add", ["i8", "i8"], "input 0 of Add, 'a', is i8"),
    "bool": (17, "And", ["f32", "bool"], "input 0 of And, 'a', is f32, but ONNX allows only bool there"),
}
TYPES = {
    "f32": TensorProto.FLOAT,
    "i64": TensorProto.INT64,
    "i32": TensorProto.INT32,
    "i8": TensorProto.INT8,
    "bool": TensorProto.BOOL,
}


@pytest.mark.parametrize("case", WRONG_TYPES)
def test_types_that_an_operator_does_not_take(graft, tmp_path, out, case):
    """ONNX Runtime refuses the same models, and onnx.checker those of the newer schemas."""
    opset, operator, types, message = WRONG_TYPES[case]
    inputs = [(name, TYPES[kind], [2]) for name, kind in zip("ab", types, strict=False)]
    node = helper.make_node(operator, [name for name, *_ in inputs], ["y"], name="n")
    model = save(tmp_path / "m.onnx", [node], inputs, [("y", TYPES[types[-1]], [2])], opset=opset)
    with pytest.raises(Exception, match="Type"):
        session_of(model)
    words = f"m.onnx: node 'n' ({operator}): {message}"
    for judge in (("--probe", "none"), ("--for", "tensorrt-10.13")):
        (verdict,) = graft("inspect", model, *judge, "--json", code=1).json["nodes"]
        assert verdict["verdict"] == "unsupported"
        assert words in verdict["reason"]
        assert verdict["advice"] == "correct the node in the program that wrote the model"
    refused(graft("convert", model, "-o", out / "o.onnx", "--no-check"), out, words, "Cast")


@pytest.mark.parametrize("faulty", ["then_branch", "else_branch"])
def test_a_wrong_type_is_not_put_on_the_node_of_the_other_branch(graft, tmp_path, faulty):
    """The outputs of both nodes have one name, as ONNX allows."""
    branches = {}
    for branch in ("then_branch", "else_branch"):
        made = helper.make_node("Add", ["x", "z"], ["r"]) if branch == faulty else helper.make_node("Abs", ["x"], ["r"])
        branches[branch] = subgraph([made], [], [("r", [2])])
    inputs = [
        (name, kind, shape)
        for name, kind, shape in (
            ("c", TensorProto.BOOL, []),
            ("x", TensorProto.FLOAT, [2]),
            ("z", TensorProto.INT64, [2]),
        )
    ]
    node = helper.make_node("If", ["c"], ["y"], **branches)
    model = save(tmp_path / "m.onnx", [node], inputs, [("y", [2])])
    with pytest.raises(Exception, match="Type"):
        session_of(model)
    verdicts = {each["operator"]: each for each in graft("inspect", model, "--probe", "none", "--json").json["nodes"]}
    assert "inputs 0 and 1 of Add must have the same type" in verdicts["Add"]["reason"]
    assert verdicts["Abs"]["verdict"] == "native"


def test_a_graph_without_outputs(graft, tmp_path, out):
    """ONNX Runtime loads no empty graph."""
    model = save(tmp_path / "m.onnx", [], [], [])
    with pytest.raises(Exception, match="INITIALIZATION|FAIL|Exception"):
        session_of(model)
    words = "m.onnx: the graph has no outputs"
    refused(graft("inspect", model, "--probe", "none"), out, words)
    refused(graft("inspect", model, "--for", "tensorrt-10.13"), out, words)
    refused(graft("convert", model, "-o", out / "o.onnx", "--no-check"), out, words)


def test_an_input_that_is_an_output_is_a_network(graft, tmp_path):
    model = save(tmp_path / "m.onnx", [], [("x", [2])], [("x", [2])])
    session_of(model)
    assert graft("inspect", model, "--probe", "none").code == 0


def test_two_outputs_of_one_name_are_warned_of(graft, tmp_path):
    pytest.importorskip("tensorrt_rtx")
    model = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", [2])], [("y", [2])] * 2)
    for command, output in (("inspect", None), ("convert", "c.onnx"), ("build", "e.engine")):
        answer = graft(command, model, *(["-o", tmp_path / output] if output else []), "--target", "sm120", code=0)
        assert "two outputs have the name 'y'" in " ".join(answer.err.split()), command


def test_a_renamed_input_of_the_engine_is_warned_of(graft, tmp_path):
    """TensorRT-RTX names the input __x, because x is the output's name."""
    pytest.importorskip("tensorrt_rtx")
    model = save(tmp_path / "m.onnx", [], [("x", [2])], [("x", [2])])
    answer = graft("build", model, "-o", tmp_path / "e.engine", "--target", "sm120", "--json", code=0)
    (tensor,) = answer.json["network"]["inputs"]
    assert tensor["name"] != "x"
    said = f"the engine's input is named '{tensor['name']}' instead of 'x': add an Identity"
    assert said in " ".join(answer.err.split())
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    model = save(tmp_path / "right.onnx", nodes, [("x", [2])], [("y", [2])])
    assert "is named" not in graft("build", model, "-o", tmp_path / "e.engine", "--target", "sm120").err


@pytest.mark.parametrize("command", ["convert", "run", "build"])
def test_output_folder_that_is_not_there(graft, tmp_path, out, command):
    arguments = READERS[command](DIGITS, out / "deep" / "er")
    if command == "build":
        arguments += ["--shapes", "image=1x1x8x8"]
    refused(graft(*arguments), out, "deep")


def damaged_arrays():
    whole = DIGITS_DATA.read_bytes()
    return {
        "cut.npz": whole[: len(whole) // 2],
        "text.npz": b"no archive",
        "cut.npy": b"\x93NUMPY\x01\x00v\x00{'descr",
        "empty.npy": b"",
    }


@pytest.mark.parametrize("name", damaged_arrays())
def test_damaged_arrays(graft, tmp_path, out, name):
    (tmp_path / name).write_bytes(damaged_arrays()[name])
    refused(graft("run", DIGITS, "--input", f"image={tmp_path / name}", "-o", out / "o.npz"), out, name)


def test_array_of_objects_is_refused(graft, tmp_path, out):
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    refused(graft("run", DIGITS, "--input", f"image={tmp_path / 'o.npy'}", "-o", out / "o.npz"), out, "o.npy")


WRITERS = {
    "convert": (["convert", str(DIGITS)], "o.onnx"),
    "run": (["run", str(DIGITS), "--input", f"image={DIGITS_DATA}:images"], "o.npz"),
    "build": (["build", str(DIGITS), "--target", "sm89", "--shapes", "image=1x1x8x8"], "o.engine"),
}


@pytest.mark.parametrize("command", WRITERS)
def test_file_size_limit(tmp_path, out, command):
    arguments, name = WRITERS[command]
    limit = 10000
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}
    done = run_command(PROGRAM, *arguments, "-o", out / name, code=2, **limited)
    assert name in done.stderr
    assert not list(out.iterdir())


@pytest.fixture
def tiny_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = run_command("mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", folder)
    if mounted.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("command", WRITERS)
def test_full_disk(tiny_disk, command):
    arguments, name = WRITERS[command]
    before = b"what was there before"
    (tiny_disk / name).write_bytes(before)
    done = run_command(PROGRAM, *arguments, "-o", tiny_disk / name, code=2)
    assert name in done.stderr
    assert [p.name for p in pathlib.Path(tiny_disk).iterdir()] == [name]
    assert (tiny_disk / name).read_bytes() == before


@pytest.mark.parametrize(
    ("weights", "message"),
    [([], "it has no weights"), ([0.5] * 215, "`kernel_weights` has 215 elements; weights of shape 8x3x3x3 have 216")],
)
def test_drop_in_whose_weights_do_not_fit(graft, tmp_path, weights, message):
    given = {"kernel_weights": weights} if weights else {}
    node = helper.make_node(
        "CONVOLUTION", ["x"], ["y"], name="c", domain="trt", num_output=8, kernel_h=3, kernel_w=3, **given
    )
    model = tmp_path / "model.onnx"
    save(model, [node], [("x", [1, 3, 32, 32])], [("y", [1, 8, 30, 30])], domains=("trt",))
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", code=2)
    assert "model.onnx" in answer.err and "'c' (trt::CONVOLUTION)" in answer.err and message in answer.err
    assert not (tmp_path / "out.onnx").exists()


# ---- Valid protobuf files that are not networks


def tensor(name="w", dims=(2,), raw=b"\0" * 8, data_type=TensorProto.FLOAT, **external):
    made = TensorProto(name=name, data_type=data_type, dims=dims)
    if external:
        made.data_location = TensorProto.EXTERNAL
        for key, value in external.items():
            made.external_data.add(key=key, value=str(value))
    else:
        made.raw_data = raw
    return made


def add(second="w", **more):
    return [helper.make_node("Add", ["x", second], ["y"], name="sum", **more)]


LONG = 2**40
BAD = {
    "cycle": (
        [helper.make_node("Add", ["x", "b"], ["a"], name="one"), helper.make_node("Relu", ["a"], ["b"], name="two")],
        [],
        {"output": "b"},
        ["cycle", "one"],
    ),
    "self": ([helper.make_node("Add", ["x", "y"], ["y"], name="sum")], [], {}, ["cycle", "sum"]),
    "same_outputs": (
        [helper.make_node("Relu", ["x"], ["y"], name="one"), helper.make_node("Abs", ["x"], ["y"], name="two")],
        [],
        {},
        ["'y'", "twice"],
    ),
    "output_is_input": ([helper.make_node("Relu", ["x"], ["x"], name="one")], [], {"output": "x"}, ["'x'", "twice"]),
    "same_weights": (add(), [tensor(), tensor()], {}, ["'w'", "twice"]),
    "missing_input": (add("nowhere"), [], {}, ["'sum' (Add)", "input 1", "'nowhere'"]),
    "missing_output": (
        add(),
        [tensor()],
        {"output": "z"},
        ["no node, input or initializer defines the graph output 'z'"],
    ),
    "no_operator": ([helper.make_node("", ["x"], ["y"], name="one")], [], {}, ["'one'", "op_type"]),
    "ir_of_the_future": (add(), [tensor()], {"ir_version": 99}, ["IR version 99", "1 to "]),
    "ir_zero": (add(), [tensor()], {"ir_version": 0}, ["IR version 0"]),
    "opset_zero": (add(), [tensor()], {"opset": 0}, ["version 0"]),
    "opset_of_the_future": (add(), [tensor()], {"opset": 99}, ["operator set 99", "1 to "]),
    "no_opset": (add(), [tensor()], {"opset": None}, ["'sum'", "imports no operator set"]),
    "raw_too_short": (add(), [tensor(raw=b"\0" * 7)], {}, ["'w'", "7 bytes", "[2]", "8"]),
    "raw_too_long": (add(), [tensor(raw=b"\0" * 9)], {}, ["'w'", "9 bytes"]),
    "too_many_numbers": (
        add(),
        [TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], float_data=[1, 2, 3])],
        {},
        ["'w'", "3 elements"],
    ),
    "overflow": (add(), [tensor(dims=(LONG, LONG))], {}, ["'w'", str(LONG), "64 bits"]),
    "overflow_of_bytes": (add(), [tensor(dims=(2**62,))], {}, ["'w'", "64 bits"]),
    "huge_without_data": (add(), [tensor(dims=(2**40,), raw=b"")], {}, ["'w'"]),
    "negative_size": (add(), [tensor(dims=(-1,))], {}, ["'w'", "-1"]),
    "no_type": (add(), [tensor(data_type=0)], {}, ["'w'", "undefined"]),
    "absolute": (add(), [tensor(location="/etc/passwd")], {}, ["'w'", "/etc/passwd", "inside the model's folder"]),
    "climbs": (add(), [tensor(location="a/../../w.bin")], {}, ["'w'", "a/../../w.bin"]),
    "no_data_file": (add(), [tensor(location="absent.bin")], {}, ["'w'", "absent.bin"]),
    "folder_as_data": (add(), [tensor(location=".")], {}, ["'w'"]),
    "data_cut": (add(), [tensor(location="w.bin", offset=4)], {}, ["'w'", "w.bin", "8 bytes", "from byte 4"]),
    "data_beyond": (add(), [tensor(location="w.bin", offset=2**62)], {}, ["'w'", "w.bin"]),
    "data_length": (add(), [tensor(location="w.bin", length=4)], {}, ["'w'", "4 bytes", "8"]),
    "offset_of_text": (add(), [tensor(location="w.bin", offset="zero")], {}, ["'w'", "offset", "'zero'"]),
    "attribute_twice": ([helper.make_node("Relu", ["x"], ["y"], name="one")], [], {"twice": True}, ["'one'", "twice"]),
    "axis_is_text": (
        [helper.make_node("Concat", ["x", "x"], ["y"], name="both", axis="last")],
        [],
        {},
        ["'both' (Concat)", "axis"],
    ),
    "axes_are_real": (
        [helper.make_node("Transpose", ["x"], ["y"], name="turn", perm=[0.5])],
        [],
        {},
        ["'turn' (Transpose)", "perm"],
    ),
    "axis_too_large": (
        [helper.make_node("Concat", ["x", "x"], ["y"], name="both", axis=3)],
        [],
        {},
        ["'both' (Concat)", "axis 3"],
    ),
    "cannot_broadcast": (add(), [tensor(dims=(3,), raw=b"\0" * 12)], {}, ["'sum' (Add)", "2", "3"]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_network(graft, tmp_path, out, name):
    nodes, weights, changes, named = BAD[name]
    (tmp_path / "w.bin").write_bytes(b"\0" * 8)
    path = save(tmp_path / "m.onnx", nodes, [("x", [2])], [(changes.get("output", "y"), None)], weights)
    model = onnx.load(path, load_external_data=False)
    if "ir_version" in changes:
        model.ir_version = changes["ir_version"]
    if "opset" in changes:
        del model.opset_import[:]
        if changes["opset"] is not None:
            model.opset_import.add(domain="", version=changes["opset"])
    if "twice" in changes:
        model.graph.node[0].attribute.extend([helper.make_attribute("alpha", 1.0)] * 2)
    path.write_bytes(model.SerializeToString())
    answer = graft(*READERS[ONE](path, out))
    refused(answer, out, "m.onnx", *named)
    _message, step = answer.err.splitlines()
    assert step.strip() and "--help" not in step


@pytest.mark.parametrize("size", [None, 7])
def test_the_file_to_copy_is_named_where_external_data_are_not_whole(graft, tmp_path, out, size):
    path = save(tmp_path / "m.onnx", add(), [("x", [2])], [("y", [2])], [tensor(location="w.bin")])
    if size is not None:
        (tmp_path / "w.bin").write_bytes(b"\0" * size)
    for command in ("inspect", "convert", "build", "run", "verify"):
        answer = graft(*READERS[command](path, out))
        refused(answer, out, "m.onnx: initializer 'w'", f"\n  Copy the whole file to {tmp_path / 'w.bin'}: ")


def test_the_size_of_the_whole_file_is_named_where_a_model_is_truncated(graft, tmp_path, out):
    path = save(tmp_path / "m.onnx", add(), [("x", [2])], [("y", [2])], [tensor()])
    model = onnx.load(path)
    model.ClearField("opset_import")  # the last field
    whole = model.SerializeToString()
    path.write_bytes(whole[:-20])
    found = f"it has {len(whole) - 20} bytes, and its graph ends at byte {len(whole)}"
    step = f"Fetch the file again, or export the model again; the whole file has {len(whole)} bytes or more"
    for command in ("inspect", "convert", "build", "run", "verify"):
        refused(graft(*READERS[command](path, out)), out, found, step)


def test_strings_are_to_be_converted_before_the_network(graft, tmp_path, out):
    """TensorRT has no strings, and OpenVINO and Graft read none from arrays."""
    node = helper.make_node("StringNormalizer", ["s"], ["y"], name="lower", case_change_action="LOWER")
    path = save(tmp_path / "m.onnx", [node], [("s", TensorProto.STRING, [2])], [("y", TensorProto.STRING, [2])])
    step = "leave out node 'lower' (StringNormalizer), and make these numbers its inputs"
    for command in (["verify", path, path], ["run", path, "-o", out / "o.npz"], ["bench", path]):
        refused(graft(*command), out, "input 's' is of type string", step)
    refused(graft("build", path, "-o", out / "o.engine"), out, "which TensorRT does not accept", step, codes=(1,))


@pytest.mark.parametrize(
    ("readers", "others"),
    [(3, ""), (4, ", 1 other node that reads it"), (10000, ", 9997 other nodes that read it")],
)
def test_few_of_the_nodes_that_read_strings_are_named(graft, tmp_path, out, readers, others):
    nodes = [helper.make_node("Equal", ["s", "s"], [f"y{i}"], name=f"n{i}") for i in range(readers)]
    outputs = [(f"y{i}", TensorProto.BOOL, [2]) for i in range(readers)]
    path = save(tmp_path / "m.onnx", nodes, [("s", TensorProto.STRING, [2])], outputs, opset=19)
    first = ", ".join(f"node 'n{i}' (Equal)" for i in range(3))
    step = f"network: leave out {first}{others}, and make these numbers its inputs\n"
    refused(graft("run", path, "-o", out / "o.npz"), out, "input 's' is of type string", step)
    refused(graft("build", path, "-o", out / "o.engine"), out, "input 's' is of type string", step, codes=(1,))


def test_help_is_named_only_for_options(graft, tmp_path, out):
    missing = graft("convert", tmp_path / "missing.onnx", "-o", out / "o.onnx")
    refused(missing, out, "missing.onnx")
    assert "--help" not in missing.err
    wrong = graft("convert", DIGITS, "-o", out / "o.onnx", "--passes", "wobble")
    refused(wrong, out, "--passes: there is no pass wobble", "\n  See `graft convert --help`")


def test_external_data_behind_a_link(graft, tmp_path, out):
    """A link inside the model's folder must not lead outside of the folder."""
    (tmp_path / "model").mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\0" * 8)
    (tmp_path / "model" / "w.bin").symlink_to(tmp_path / "secret.bin")
    path = save(tmp_path / "model" / "m.onnx", add(), [("x", [2])], [("y", [2])], [tensor(location="w.bin")])
    refused(graft(*READERS[ONE](path, out)), out, "'w'", "link")


WRITES_OVER = {
    "convert -o": ["convert", "m.onnx", "-o", "m.onnx"],
    "convert --report": ["convert", "m.onnx", "-o", "o.onnx", "--report", "m.onnx"],
    "quantize -o": ["quantize", "m.onnx", "--precision", "f16", "-o", "m.onnx"],
    "quantize --report": ["quantize", "m.onnx", "--precision", "f16", "-o", "o.onnx", "--report", "m.onnx"],
    "quantize --state": [
        "quantize",
        "m.onnx",
        "--precision",
        "int8",
        "--data",
        "d.npz",
        "--state",
        "m.onnx",
        "-o",
        "o",
    ],
    "build -o": ["build", "m.onnx", "-o", "m.onnx", "--target", "sm89"],
    "build --timing-cache": ["build", "m.onnx", "-o", "o.engine", "--timing-cache", "m.onnx"],
    "inspect --report": ["inspect", "m.onnx", "--report", "m.onnx"],
    "verify --report": ["verify", "m.onnx", "m.onnx", "--report", "m.onnx"],
    "verify --reduce": ["verify", "m.onnx", "m.onnx", "--reduce", "m.onnx"],
    "bench --report": ["bench", "m.onnx", "--report", "m.onnx"],
    "run -o": ["run", "m.onnx", "--input", "image=d.npz:images", "-o", "d.npz"],
    "through a link": ["inspect", "m.onnx", "--report", "link.html"],
    "the JSON of a report": ["inspect", "m.onnx.json", "--report", "m.onnx"],
    "twice": ["convert", "m.onnx", "-o", "o.onnx", "--report", "./o.onnx"],
    "engine and timing cache": ["build", "m.onnx", "-o", "o.engine", "--timing-cache", "o.engine"],
}


@pytest.mark.parametrize("case", WRITES_OVER)
def test_nothing_is_written_over_what_is_read(graft, tmp_path, case):
    files = {"m.onnx": DIGITS, "m.onnx.json": DIGITS, "d.npz": DIGITS_DATA}
    for name, source in files.items():
        (tmp_path / name).write_bytes(source.read_bytes())
    (tmp_path / "link.html").symlink_to("m.onnx")
    answer = graft(*WRITES_OVER[case], cwd=tmp_path)
    assert answer.code == 2, (answer.out, answer.err)
    assert "Choose another file to write" in answer.err or "Choose another name for one of the two files" in answer.err
    for name, source in files.items():
        assert (tmp_path / name).read_bytes() == source.read_bytes(), name
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*files, "link.html"])


def test_few_file_descriptors(graft, tmp_path):
    """Each limit on file descriptors below what the command and its driver need yields an error."""
    build = ["build", DIGITS, "--shapes", DIGITS_SHAPES, "--target", "sm89", "-o", tmp_path / "o.engine"]
    for command in (build, ["doctor"]):
        ends = []
        for most in (8, 10, 12, 32):
            answer = graft(
                *command, preexec_fn=functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (most, most))
            )
            ends.append(answer.code)
            assert answer.code != 2 or "ulimit -n 1024" in answer.err, answer.err
        assert ends[0] == 2 and set(ends[:-1]) <= {0, 2} and ends[-1] == 0, ends


NO_RANK = {
    "inspect": lambda model, out: ["inspect", model, "--probe", "auto"],
    "convert": lambda model, out: ["convert", model, "-o", out / "o.onnx", "--tensorrt", "auto"],
    "build": lambda model, out: ["build", model, "-o", out / "o.engine"],
    "verify": lambda model, out: ["verify", model, model],
    "quantize": lambda model, out: ["quantize", model, "-o", out / "o.onnx", "--precision", "f16"],
}


@pytest.mark.parametrize("command", NO_RANK)
def test_an_input_without_a_rank_is_named_with_what_gives_it_one(graft, tmp_path, command):
    """TensorRT builds an engine for a scalar of it."""
    out = tmp_path / "out"
    out.mkdir()
    model = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", None)], [("y", None)])
    arguments = NO_RANK[command](model, out)
    refused(graft(*arguments), out, "input 'x'")
    assert "--input" in graft(*arguments).err and " x:1x3x224x224" in graft(*arguments).err
    if command == "build":
        converted = tmp_path / "converted.onnx"
        assert graft("convert", model, "-o", converted, "--input", "x:1x3x224x224").code == 0
        arguments[1] = converted
    else:
        arguments += ["--input", "x:1x3x224x224"]
    graft(*arguments, code=0)


def test_the_rules_warn_of_an_input_without_a_rank(graft, tmp_path):
    model = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", None)], [("y", None)])
    for arguments in (
        ["inspect", model, "--probe", "none"],
        ["convert", model, "-o", tmp_path / "o.onnx", "--no-check"],
    ):
        [warning] = graft(*arguments, "--json", code=0).json["warnings"]
        assert "input 'x' has no shape" in warning and "--input x:1x3x224x224" in warning
