# Runs commands as a user would copy them from what Graft prints: in a shell, in one folder with files. The networks are
# small: each leads to other printed lines.
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import numpy as np
from conftest import DIGITS, PLUGIN_LIBRARY, PROGRAM, SOURCE
from onnx import TensorProto, helper
from onnx_models import constant, info, node, save

LINE = re.compile(r"^(?:next)?\s*(?:[\w ]+: )?(graft [a-z_]+(?: .*)?)$")  # alone, or after "Create one with: "
QUOTED = re.compile(r"`(graft [a-z][^`]*)`")
# Words in capitals and `...` are placeholders for the user's values, and brackets are those of a usage.
PLACEHOLDER = re.compile(r"(?:^|[ =:/])(?:[A-Z]{2,}|N)(?:$|[ =.:])|\.\.\.|\[")
MENTION = re.compile(r"^graft [a-z]+$")  # "`graft convert` replaces it with native layers": no call
# A command without the sizes of a dynamic input prints an example of them, with which it has to work.
MISSING = re.compile(r"for example ((?:--shapes \S+ ?)+)")
# Examples of help that need a GPU or a user's library, and commands for a library of `graft new`, which is not built
# here: tests/python/install builds such libraries and runs these commands.
OF_OTHERS = re.compile(r"--device cuda|libmine\.so|--operators \w+/build/")
ANSWERS = ("inspect", "verify")  # exit code 1 is a valid verdict
# Exit code 1 says that ONNX Runtime refuses the half for the host, or repeats what is explained.
MAY_SAY_NO = re.compile(r"graft convert .* --(?:cut|explain)\b|graft plugins .* --check")

FAMILY = {
    "digits": DIGITS.parent,
    "detector": SOURCE / "examples" / "cut",
    "boxes": SOURCE / "examples" / "from_tensorflow",
    "pyramid": SOURCE / "examples" / "from_caffe",
}


def is_command(text):
    """Returns whether a line is a command and not a sentence: "graft convert does not replace it"."""
    try:
        _, _, *arguments = shlex.split(text)
    except ValueError:
        return False
    if not arguments or arguments[0].startswith("-") or re.search(r"[./]", arguments[0]):
        return True
    return len(arguments) == 1 or arguments[1].startswith("-")


def commands_in(text):
    found = []
    for line in text.splitlines():
        match = LINE.match(line)
        found += [match.group(1).strip()] if match and is_command(match.group(1)) else QUOTED.findall(line)
    ruled_out = (PLACEHOLDER, MENTION, OF_OTHERS)
    return [command for command in found if not any(rule.search(command) for rule in ruled_out)]


def kind_of(printed, printer):
    """Returns the kind of a printed line, which stands for its place in the source: the command that printed it, its
    own command and its options. Sizes, targets and files depend on the network."""
    options = {word.split("=")[0] for word in shlex.split(printed) if re.match(r"--?[a-z]", word)}
    return (printer.split()[1], printed.split()[1], *sorted(options - {"--shapes", "--target", "-o", "--input"}))


def fill(folder):
    """Copies the networks of the examples to the folder."""
    for source in FAMILY.values():
        for file in source.iterdir():
            if file.suffix in (".onnx", ".pb", ".prototxt", ".caffemodel", ".npz"):
                shutil.copy2(file, folder)


def run(command, folder):
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def run_printed_commands(folder, starts, most=120):
    """Runs the commands, and each command that one of them prints. Returns the printed commands, each with the command
    that printed it, and a line for each that failed."""
    printed_by, failed = {}, []
    waiting = list(starts)
    ran = set()
    while waiting:
        command = waiting.pop(0)
        if command in ran:
            continue
        ran.add(command)
        assert len(ran) <= most, f"more commands than {most}: {waiting}"
        code, text = run(command, folder)
        followers = commands_in(text)
        if command in printed_by:
            allowed = (0, 1) if command.split()[1] in ANSWERS or MAY_SAY_NO.match(command) else (0,)
            if code not in allowed:
                failed.append(f"{command}\n  printed by: {printed_by[command]}\n  exit code {code}: {text[-400:]}")
        elif missing := MISSING.search(text):
            followers.append(f"{command} {missing.group(1).strip()}")
        followers = [follower for follower in followers if follower not in ran]
        for follower in followers:
            printed_by.setdefault(follower, command)
        waiting[:0] = followers  # before another command writes the same file
    return printed_by, failed


def save_failing_models(folder):
    """Saves models that TensorRT-RTX does not build."""

    def ones(name, *shape):
        return constant(name, np.ones(shape, np.float32))

    save(folder / "unique.onnx", [node("Unique", "x", "y")], [("x", ["n"])], [("y", [None])])
    nodes = [node("Conv", "x w", "a"), node("LRN", "a", "b", size=4), node("Conv", "b v", "y")]
    constants = [ones("w", 8, 3, 3, 3), ones("v", 2, 8, 3, 3)]
    save(folder / "lrn.onnx", nodes, [("x", [1, 3, 9, 9])], [("y", [1, 2, 5, 5])], constants)
    nodes = [node("Conv", "x w", "a"), node("Flatten", "a", "f"), node("MatMul", "f m", "y")]
    constants = [ones("w", 4, 3, 3, 3), ones("m", 4 * 30 * 14, 2)]
    save(folder / "sizes.onnx", nodes, [("x", ["n", 3, "h", "w"])], [("y", ["n", 2])], constants)
    save(folder / "undefined.onnx", [node("Relu", "nowhere", "y")], [("x", [2])], [("y", [2])])


def save_networks(folder):
    """Saves networks of one problem each, named after it, and two networks in paths that a shell has to be given in
    quotes."""
    save_failing_models(folder)
    f32, i64 = TensorProto.FLOAT, TensorProto.INT64
    image, sized = ("x", ["n", 3, "h", "w"]), ("x", [1, 3, 8, 8])

    def one(name, nodes, inputs=(sized,), outputs=(("y", None),), constants=(), **options):
        save(folder / f"{name}.onnx", nodes, inputs, outputs, constants, **options)

    relu = [node("Relu", "x", "y")]
    one("relu", relu)
    one("dynamic", relu, [image])
    one("shapeless", relu, [("x", None)])
    (folder / "my nets").mkdir()
    one("my nets/it's", relu, [image])
    one("my nets/weights & all", [node("Conv", "x w", "y")], [image], constants=[constant("w", np.ones((2, 3, 3, 3)))])
    square = [node("Mul", "x x", "q"), node("ReduceSum", "q axes", "s", keepdims=1), node("Sqrt", "s", "r")]
    one(
        "normalize",
        [*square, node("Max", "r least", "m"), node("Div", "x m", "y")],
        [image],
        constants=[constant("axes", [1], np.int64), constant("least", 1e-12)],
    )
    one(
        "l2",
        [helper.make_node("L2Normalize", ["x"], ["y"], name="l2", domain="graft", axes=[1])],
        domains=["graft"],
    )
    one("foreign", [node("Relu", "x", "a"), node("Blur", "a", "y", domain="acme")], domains=["acme"])
    one(
        "near_name",
        [helper.make_node("L2Normalise", ["x"], ["y"], name="l2", domain="graft", axes=[1])],
        domains=["graft"],
    )
    one("f64", [node("Exp", "x", "y")], [("x", TensorProto.DOUBLE, [2, 3])], [info("y", TensorProto.DOUBLE)])
    one(
        "boxes_nms",
        [node("NonMaxSuppression", "boxes scores most", "y")],
        [("boxes", [1, 20, 4]), ("scores", [1, 2, 20])],
        [info("y", i64)],
        [constant("most", [5], np.int64)],
    )
    one(
        "values",
        [node("Expand", "x size", "y")],
        [("x", [1, 4]), ("size", i64, [2])],
        [info("y", f32)],
    )
    one("nonzero", [node("NonZero", "x", "y")], [("x", [4, 4])], [info("y", i64)])
    one(
        "legacy",
        [node("Upsample", "x scales", "y", mode="nearest")],
        constants=[constant("scales", [1, 1, 2, 2])],
        opset=9,
    )
    one(
        "sequence",
        [node("SequenceConstruct", "x x", "s"), node("ConcatFromSequence", "s", "y", axis=1)],
    )
    one("det", [node("MatMul", "x x", "m"), node("Det", "m", "y")])
    one(
        "quantized",
        [
            node("QuantizeLinear", "x scale zero", "q"),
            node("DequantizeLinear", "q scale zero", "y"),
        ],
        constants=[constant("scale", 0.1), constant("zero", 128, np.uint8)],
    )
    one(
        "microsoft",
        [node("FusedConv", "x w", "y", domain="com.microsoft", activation="Relu", kernel_shape=[3, 3])],
        constants=[constant("w", np.ones((2, 3, 3, 3)))],
        domains=["com.microsoft"],
    )
    one("missing_attribute", [node("Concat", "x x", "y")])
    one("different", [node("Relu", "x", "r"), node("Mul", "r two", "y")], constants=[constant("two", 2.0)])
    np.save(folder / "x.npy", np.ones((1, 3, 8, 8), np.float32))
    np.savez(folder / "wrong_names.npz", picture=np.ones((1, 3, 8, 8), np.float32))
    np.savez(folder / "inputs.npz", x=np.ones((1, 3, 8, 8), np.float32))
    (folder / "rules.yaml").write_text("- match: y = Softplus(x)\n  with: Relu\n  inputs: [x]\n")
    exports = SOURCE / "tests" / "golden" / "exports"
    for name in ("network", "ssd", "l2_normalize_nhwc", "keras_network"):
        shutil.copy2(exports / f"tensorflow2.19.1_{name}.pb", folder / f"tf_{name}.pb")
    shutil.copy2(exports / "paddle2onnx2.0.1_pyramid_adaptive.onnx", folder / "paddle.onnx")
    shutil.copy2(exports / "paddle2onnx2.0.1_f_normalize_any_size.onnx", folder / "any_size.onnx")
    shutil.copy2(SOURCE / "tests" / "golden" / "detectors" / "two_stage.onnx", folder)
    (folder / "build" / "lib").mkdir(parents=True)
    for library in ("libgraft_plugins.so", "build/lib/libgraft_plugins.so"):
        (folder / library).symlink_to(PLUGIN_LIBRARY)


SHAPES = "--shapes image=1x1x8x8..8x1x8x8..64x1x8x8"
RANGES = "--shapes x=1x3x8x8..2x3x16x16..4x3x32x32"
DATA = "--data image=digits_test.npz:images"
# Commands that print others, by what they print. The first of each list runs with every test run, and all of them in
# test_all_printed_commands.py, which also checks that the first ones print every kind of line.
STARTS = {
    "build after a conversion": [
        "graft convert digits.onnx -o digits.graft.onnx",
        "graft convert dynamic.onnx -o dynamic.graft.onnx",
        f"graft convert dynamic.onnx -o dynamic.graft.onnx {RANGES}",
        "graft convert normalize.onnx -o normalize.always.onnx --plugins always",
        "graft convert normalize.onnx -o normalize.unchecked.onnx --no-check",
        "graft convert normalize.onnx -o normalize.release.onnx --for tensorrt-10.13",
        "graft convert values.onnx -o values.graft.onnx",
        "graft convert nonzero.onnx -o nonzero.graft.onnx",
        "graft convert legacy.onnx -o legacy.graft.onnx",
        "graft convert f64.onnx -o f64.graft.onnx",
        "graft convert paddle.onnx -o paddle.graft.onnx",
        "graft convert any_size.onnx -o any_size.graft.onnx",
    ],
    # The examples of help have files of these names, which later commands write for other networks.
    "help of a comparison": [
        "graft verify relu.onnx different.onnx --data wrong_names.npz",
        "graft verify relu.onnx different.onnx --data picture=x.npy",
        "graft verify relu.onnx relu.onnx --range y=0..1",
        "graft verify relu.onnx",
    ],
    "help of a run": [
        "graft run digits.onnx -o o.npz --no-such",
        "graft run digits.onnx -o o.npz",
        "graft run digits.onnx --input image=none.npz -o o.npz",
        "graft run relu.onnx --input x=x.npy",
    ],
    "help of a conversion": ["graft convert digits.onnx -o n.onnx --passes no_such", "graft convert digits.onnx"],
    "help of an inspection": ["graft inspect relu.onnx --alle", "graft inspect relu.onnx --for tensorrt-8.6"],
    "help of a build": ["graft build relu.onnx"],
    "help of a quantization": [
        "graft quantize digits.onnx -o n.onnx --precision f16 --no-such",
        "graft quantize digits.onnx -o n.onnx --precision no_such",
    ],
    "help of an operator's page": ["graft ops NoSuchOperator", "graft ops --reads no_such", "graft ops L2Normalise"],
    "build after a conversion with settings": [
        f"graft convert normalize.onnx -o n.own.onnx --plugin-lib libgraft_plugins.so --tensorrt rtx {RANGES}",
        "graft convert l2.onnx -o l2.own.onnx --plugin-lib libgraft_plugins.so --target sm120",
    ],
    "build without plugins": [
        "graft convert normalize.onnx -o normalize.never.onnx --plugins never",
        "graft convert dynamic.onnx -o dynamic.never.onnx --plugins never",
    ],
    "conversion that fuses": ["graft inspect digits.onnx", "graft inspect normalize.onnx"],
    "build after an inspection": [
        "graft inspect dynamic.onnx",
        "graft inspect relu.onnx",
        "graft inspect l2.onnx",
        "graft inspect f64.onnx",
        "graft inspect boxes_nms.onnx",
        "graft inspect values.onnx",
        "graft inspect nonzero.onnx",
        "graft inspect legacy.onnx",
        "graft inspect paddle.onnx",
        "graft inspect any_size.onnx",
        "graft inspect dynamic.onnx --probe none",
        f"graft inspect dynamic.onnx {RANGES}",
        f"graft inspect dynamic.onnx --probe none {RANGES}",
    ],
    "build with settings": [
        f"graft inspect normalize.onnx --plugin-lib libgraft_plugins.so --target sm120 --tensorrt rtx {RANGES}",
        "graft inspect normalize.onnx --plugin-lib libgraft_plugins.so",
        "graft inspect dynamic.onnx --target sm120 --tensorrt rtx",
    ],
    "commands for a release": [
        "graft inspect normalize.onnx --for tensorrt-10.13",
        "graft inspect detector.onnx --for tensorrt-10.13",
        "graft inspect boxes_nms.onnx --for rtx-1.5",
    ],
    "conversion of a TensorFlow graph": [
        "graft inspect digits.pb",
        "graft inspect boxes.pb",
        "graft inspect tf_network.pb",
        "graft inspect tf_ssd.pb",
        "graft inspect tf_l2_normalize_nhwc.pb",
        "graft inspect tf_keras_network.pb",
        "graft inspect tf_network.pb --plugin-lib libgraft_plugins.so --shapes x=1x8x8x3..2x8x8x3..4x8x8x3",
    ],
    "conversion of a Caffe network": [
        "graft inspect digits.prototxt digits.caffemodel",
        "graft inspect digits.prototxt digits.caffemodel --convert",
        "graft inspect pyramid.prototxt pyramid.caffemodel",
    ],
    "conversion before another command": [
        "graft build digits.pb -o d.engine",
        "graft build digits.prototxt -o d.engine",
        "graft quantize tf_network.pb -o q.onnx --precision f16",
        "graft quantize digits.prototxt -o q.onnx --precision f16",
    ],
    "rewrites": [
        "graft inspect sequence.onnx",
        "graft convert sequence.onnx -o sequence.graft.onnx",
        "graft inspect two_stage.onnx",
    ],
    "cut": [
        "graft inspect detector.onnx",
        "graft inspect det.onnx",
        "graft inspect lrn.onnx",
        "graft convert det.onnx -o det.cut.onnx",
        "graft convert lrn.onnx -o lrn.cut.onnx",
        "graft convert detector.onnx -o d.cut.onnx --cut --plugins never",
        "graft inspect detector.onnx --plugin-lib libgraft_plugins.so",
    ],
    "operator of a user": [
        "graft inspect foreign.onnx",
        "graft inspect microsoft.onnx",
        "graft inspect foreign.onnx --probe none",
    ],
    "smallest part that fails": [
        "graft convert quantized.onnx -o quantized.graft.onnx",
        "graft convert unique.onnx -o unique.graft.onnx",
        "graft convert near_name.onnx -o near_name.graft.onnx",
        "graft convert microsoft.onnx -o microsoft.graft.onnx",
        "graft convert unique.onnx -o unique.release.onnx --for tensorrt-10.13",
    ],
    "sizes that fail": ["graft convert sizes.onnx -o sizes.graft.onnx"],
    "rules that match nothing": ["graft convert relu.onnx -o relu.rules.onnx --rules rules.yaml"],
    "missing ranges": [
        "graft build 'my nets/weights & all.onnx' -o 'my nets/e.engine'",
        "graft build digits.onnx -o d.engine",
        "graft build dynamic.onnx -o dynamic.engine",
        "graft build values.onnx -o values.engine",
        "graft build sizes.onnx -o sizes.engine",
        f"graft build digits.onnx -o d.engine --target sm120 {SHAPES}",
        "graft build detector.onnx -o detector.engine --target sm120",
    ],
    "names in quotes": [
        'graft inspect "my nets/it\'s.onnx"',
        "graft inspect 'my nets/weights & all.onnx'",
        "graft convert 'my nets/weights & all.onnx' -o 'my nets/out put.onnx'",
        "graft quantize 'my nets/weights & all.onnx' -o 'my nets/half.onnx' --precision f16",
    ],
    "check of a quantization": [
        "graft quantize digits.onnx -o d.f16.onnx --precision f16",
        "graft quantize relu.onnx -o relu.f16.onnx --precision f16",
        "graft quantize dynamic.onnx -o dynamic.bf16.onnx --precision bf16",
        "graft quantize l2.onnx -o l2.f16.onnx --precision f16",
    ],
    "check of a quantization with data": [
        "graft quantize digits.onnx -o d.fits.onnx --precision int8 --data digits_test.npz --samples 8",
        f"graft quantize digits.onnx -o d.int8.onnx --precision int8 {DATA} --samples 8",
        f"graft quantize digits.onnx -o d.f8.onnx --precision f8 {DATA} --samples 8",
        "graft quantize relu.onnx -o relu.int8.onnx --precision int8 --data x.npy",
        "graft quantize relu.onnx -o relu.int8.onnx --precision int8 --data inputs.npz",
    ],
    "first node that differs": [
        "graft quantize digits.onnx -o d.limit.onnx --precision f16 --limit 90",
        "graft quantize relu.onnx -o relu.limit.onnx --precision bf16 --limit 200",
    ],
    "nodes of a pattern": ["graft quantize digits.onnx -o d.keep.onnx --precision f16 --keep no_such"],
    "comparisons": [
        "graft verify digits.onnx d.f16.onnx --rtol 1e-6 --atol 0",
        "graft verify digits.onnx detector.onnx",
        "graft verify relu.onnx different.onnx",
        "graft verify relu.onnx different.onnx --layers",
        "graft verify digits.onnx digits.pb",
    ],
    "plugin libraries": [
        "graft plugins no_such.so",
        "graft plugins digits.onnx",
        "graft plugins libgraft_plugins.so",
        "graft plugins --no-such",
    ],
    "projects": ["graft new my_ops --like no_such", "graft new my_ops --operator no_such", "graft new other_ops"],
    "speed": ["graft bench --op NoSuch", "graft bench"],
    "bundles": ["graft canary digits.onnx -o canary --no-such", "graft canary digits.onnx -o canary"],
    "usage": ["graft no_such", "graft", "graft inspekt relu.onnx", "graft --verbose inspect relu.onnx"],
    "state of the machine": ["graft doctor", "graft doctor -v"],
}


def starts_of_a_test_run():
    return [starts[0] for starts in STARTS.values()]


def all_starts():
    """Returns all commands of STARTS, and an inspection of each network that other programs exported."""
    exported = sorted(file.name for file in (SOURCE / "tests" / "golden" / "exports").glob("*.pb"))
    exported += sorted(file.name for file in (SOURCE / "tests" / "golden" / "exports").glob("paddle2onnx*.onnx"))
    return [start for starts in STARTS.values() for start in starts] + [f"graft inspect {name}" for name in exported]
