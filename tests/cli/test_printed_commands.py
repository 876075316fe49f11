# Tests that every printed command works when it is copied: all run in one folder, as a user would run them.
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import DIGITS, PLUGIN_LIBRARY, PROGRAM, SOURCE, needs_plugin_library
from onnx import helper, numpy_helper
from onnx_models import save

LINE = re.compile(
    r"^(?:next)?\s*(?:[\w ]+: )?(graft [a-z_]+(?: .*)?)$"
)  # alone on its line, or after "Create one with: "
QUOTED = re.compile(r"`(graft [a-z][^`]*)`")
# Words in capitals and `...` are placeholders for the user's values.
PLACEHOLDER = re.compile(r"(?:^|[ =:/])(?:[A-Z]{2,}|N)(?:$|[ =.:])|\.\.\.")
MENTION = re.compile(r"^graft [a-z]+$")  # "`graft convert` replaces it with native layers": no call
# A command without the sizes of a dynamic input prints an example of them, with which it has to work.
MISSING = re.compile(r"for example ((?:--shapes \S+ ?)+)")
ANSWERS = ("inspect", "verify")  # exit code 1 is a valid verdict
CUT = re.compile(r"graft convert .* --cut")  # exit code 1 says that ONNX Runtime refuses the half for the host
MOST = 60

FAMILY = {
    "digits": DIGITS.parent,
    "detector": SOURCE / "examples" / "cut",
    "boxes": SOURCE / "examples" / "from_tensorflow",
    "pyramid": SOURCE / "examples" / "from_caffe",
}
SHAPES = "--shapes image=1x1x8x8..8x1x8x8..64x1x8x8"
STARTS = [
    "graft inspect digits.onnx",
    "graft inspect digits.onnx --convert",
    "graft inspect digits.pb",
    "graft inspect digits.prototxt digits.caffemodel",
    "graft inspect digits.prototxt digits.caffemodel --convert",
    "graft inspect detector.onnx",
    "graft inspect detector.onnx --for tensorrt-10.13",
    "graft inspect boxes.pb",
    "graft convert digits.onnx -o d.graft.onnx",
    "graft convert digits.pb -o d.tensorflow.onnx",
    "graft convert detector.onnx -o d.cut.onnx --cut --plugins never",
    "graft build digits.pb -o d.engine",
    "graft build digits.prototxt -o d.engine",
    "graft build digits.onnx -o d.engine",
    f"graft build digits.onnx -o d.engine --target sm120 {SHAPES}",
    "graft build detector.onnx -o detector.engine --target sm120",
    "graft quantize digits.onnx -o d.f16.onnx --precision f16",
    "graft quantize digits.onnx -o d.f16.onnx --precision f16 --limit 90",
    "graft quantize digits.onnx -o d.int8.onnx --precision int8 --data image=digits_test.npz:images --samples 8",
    "graft verify digits.onnx d.f16.onnx --rtol 1e-6 --atol 0",
    "graft verify digits.onnx detector.onnx",
    "graft run digits.onnx -o o.npz",
    "graft run digits.onnx --input image=none.npz -o o.npz",
    "graft canary digits.onnx -o canary",
    "graft convert digits.onnx -o n.onnx --passes no_such",
    "graft ops NoSuchOperator",
    "graft plugins digits.onnx",
    "graft new my_ops --operator no_such",
    "graft no_such",
    "graft doctor",
]


def commands_in(text):
    found = []
    for line in text.splitlines():
        match = LINE.match(line)
        found += [match.group(1).strip()] if match else QUOTED.findall(line)
    return [c for c in found if not PLACEHOLDER.search(c) and not MENTION.match(c)]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "printed"
    folder.mkdir()
    for source in FAMILY.values():
        for file in source.iterdir():
            if file.suffix in (".onnx", ".pb", ".prototxt", ".caffemodel", ".npz"):
                shutil.copy2(file, folder)
    return folder


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


def run_printed_commands(folder, starts):
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
        assert len(ran) <= MOST, f"more commands than {MOST}: {waiting}"
        code, text = run(command, folder)
        followers = commands_in(text)
        if command in printed_by:
            allowed = (0, 1) if command.split()[1] in ANSWERS or CUT.match(command) else (0,)
            if code not in allowed:
                failed.append(f"{command}\n  printed by: {printed_by[command]}\n  exit code {code}: {text[-400:]}")
        elif missing := MISSING.search(text):
            followers.append(f"{command} {missing.group(1).strip()}")
        followers = [follower for follower in followers if follower not in ran]
        for follower in followers:
            printed_by.setdefault(follower, command)
        waiting[:0] = followers  # before another command writes the same file
    return printed_by, failed


def test_every_printed_command_works(folder):
    printed_by, failed = run_printed_commands(folder, STARTS)
    assert not failed, "\n".join(failed)
    # Checks the collection itself: different rules print these commands.
    assert "graft convert --help" in printed_by
    assert any(command.startswith("graft convert digits.prototxt digits.caffemodel") for command in printed_by)
    assert any(command.startswith("graft build ") for command in printed_by)


def test_printed_commands_work_for_files_whose_names_begin_with_a_dash(folder):
    for file in list(folder.iterdir()):
        file.rename(folder / f"-{file.name}")
    starts = [
        "graft inspect ./-digits.onnx",
        "graft inspect ./-digits.prototxt ./-digits.caffemodel",
        "graft build ./-digits.prototxt -o -d.engine",
        f"graft convert ./-digits.onnx -o -d.graft.onnx {SHAPES}",
        "graft quantize ./-digits.onnx -o -d.f16.onnx --precision f16",
    ]
    printed_by, failed = run_printed_commands(folder, starts)
    assert not failed, "\n".join(failed)
    assert {command.split()[1] for command in printed_by} >= {"build", "convert", "verify"}
    # An unknown pattern ends with exit code 2, and its message names the command that lists the nodes.
    _, text = run("graft quantize ./-digits.onnx -o q.onnx --precision f16 --keep no_such", folder)
    assert "`graft inspect ./-digits.onnx`" in text


def save_failing_models(folder):
    """Saves models that TensorRT-RTX does not build."""

    def node(op, inputs, output, **attributes):
        return helper.make_node(op, inputs, [output], name=output, **attributes)

    def weights(name, *shape):
        return numpy_helper.from_array(np.ones(shape, np.float32), name)

    save(folder / "unique.onnx", [node("Unique", ["x"], "y")], [("x", [8])], [("y", [None])])
    nodes = [node("Conv", ["x", "w"], "a"), node("LRN", ["a"], "b", size=4), node("Conv", ["b", "v"], "y")]
    constants = [weights("w", 8, 3, 3, 3), weights("v", 2, 8, 3, 3)]
    save(folder / "lrn.onnx", nodes, [("x", [1, 3, 9, 9])], [("y", [1, 2, 5, 5])], constants)
    nodes = [node("Conv", ["x", "w"], "a"), node("Flatten", ["a"], "f"), node("MatMul", ["f", "m"], "y")]
    constants = [weights("w", 4, 3, 3, 3), weights("m", 4 * 30 * 14, 2)]
    save(folder / "sizes.onnx", nodes, [("x", ["n", 3, "h", "w"])], [("y", ["n", 2])], constants)
    save(folder / "undefined.onnx", [node("Relu", ["nowhere"], "y")], [("x", [2])], [("y", [2])])


def test_every_conversion_that_fails_ends_with_a_command_that_works(folder):
    save_failing_models(folder)
    starts = {
        "graft convert unique.onnx -o u.onnx": "graft inspect u.onnx --reduce u.smallest.onnx",
        "graft convert unique.onnx -o u.onnx --cut": "graft inspect u.onnx --reduce u.smallest.onnx",
        "graft convert unique.onnx -o u.onnx --no-check": "graft inspect u.onnx",
        "graft convert lrn.onnx -o l.onnx": "graft convert lrn.onnx -o l.onnx --cut",
        "graft convert sizes.onnx -o s.onnx": "graft inspect s.onnx",
        "graft convert detector.onnx -o d.onnx --plugins never": "graft convert detector.onnx -o d.onnx",
    }
    for start, follower in starts.items():
        code, text = run(start, folder)
        assert code == 1, f"{start}: {text}"
        assert follower in commands_in(text), f"{start}: {text}"
    # Only a wrong option is explained by the help.
    for refused, step in {
        "graft convert undefined.onnx -o n.onnx": "Export the model again",
        "graft convert missing.onnx -o n.onnx": "missing.onnx: cannot be read: No such file or directory",
        "graft convert digits.onnx -o n.onnx --passes no_such": "`graft convert --help`",
    }.items():
        code, text = run(refused, folder)
        assert code == 2
        assert step in text, text
        assert ("graft convert --help" in commands_in(text)) == ("--help" in step), text
        assert "Correct the file" not in text, "nothing is wrong with it, or that is not known"
    _, failed = run_printed_commands(folder, [*starts, "graft convert undefined.onnx -o n.onnx"])
    assert not failed, "\n".join(failed)
    assert (folder / "u.smallest.onnx").is_file()


@needs_plugin_library
def test_every_example_of_help_works(folder):
    """The files have the names in the examples; two examples need a GPU and a user's library."""
    (folder / "build" / "lib").mkdir(parents=True)
    shutil.copy2(PLUGIN_LIBRARY, folder / "build" / "lib")
    code, text = run("graft --help", folder)
    assert code == 0
    commands = re.findall(r"^  ([a-z]+)  ", text, re.MULTILINE)
    assert {"inspect", "convert", "quantize", "verify", "run", "build", "canary", "new"} <= set(commands)
    failed, examples = [], 0
    for command in commands:
        _, text = run(f"graft {command} --help", folder)
        for example in re.findall(r"^  (graft .*)$", text.partition("\nExample\n")[2], re.MULTILINE):
            examples += 1
            if "--device cuda" in example or "libmine.so" in example:
                continue
            code, text = run(example, folder)
            allowed = (0, 1) if command in ANSWERS else (0, 3) if command == "doctor" else (0,)
            if code not in allowed:
                failed.append(f"{example}\n  exit code {code}: {text[-400:]}")
    assert not failed, "\n".join(failed)
    assert examples > len(commands) / 2


def test_a_printed_conversion_has_the_options_of_the_first_one(folder):
    save_failing_models(folder)
    options = (
        "--passes=-fuse_leaky_relu,-lower_to_native",
        "--plugins always",
        "--engine openvino --no-prove",
        "--prove-each --no-check",
        "--shapes 'x=1x3x9x9..1x3x9x9..1x3x9x9' --tensorrt rtx --max-builds 7",
    )
    for given in options:
        _, text = run(f"graft convert lrn.onnx -o l.onnx {given}", folder)
        assert any(command.endswith(f"{given} --cut") for command in commands_in(text)), text


def test_a_conversion_for_a_release_does_not_promise_the_installed_tensorrt(folder):
    save_failing_models(folder)
    _, text = run("graft convert unique.onnx -o u.onnx --for tensorrt-10.13", folder)
    assert "graft inspect u.onnx" in commands_in(text), text
    assert "run it where TensorRT 10.13 is installed" in " ".join(text.split())
    code, text = run("graft convert digits.onnx -o d.graft.onnx --for tensorrt-10.13", folder)
    assert code == 0 and "run the build where TensorRT 10.13 is installed" in " ".join(text.split()), text


def test_the_build_after_an_inspection_with_given_sizes_has_these_sizes(folder):
    node = helper.make_node("Relu", ["x"], ["y"], name="n")
    save(folder / "dynamic.onnx", [node], [("x", ["n", 3, "h", "w"])], [("y", ["n", 3, "h", "w"])])
    save(folder / "shapeless.onnx", [node], [("x", None)], [("y", None)])
    given = "--input x:1x3x8x8"
    build = "graft build dynamic.onnx -o dynamic.engine --shapes 'x=1x3x8x8..1x3x8x8..1x3x8x8'"
    followers = {
        f"graft inspect dynamic.onnx {given}": build,
        f"graft inspect shapeless.onnx {given}": f"graft convert shapeless.onnx {given} -o shapeless.graft.onnx",
    }
    for start, follower in followers.items():
        _, text = run(start, folder)
        assert follower in commands_in(text), text
    _, failed = run_printed_commands(folder, followers)
    assert not failed, "\n".join(failed)
