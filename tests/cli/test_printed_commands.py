# Tests that every printed command works when it is copied: all run in one folder, as a user would run them. Each kind of
# printed line runs here; test_all_printed_commands.py, which is run by hand, has all networks.
import re
import shutil

import pytest
from conftest import PLUGIN_LIBRARY, needs_plugin_library
from onnx import helper
from onnx_models import save
from printed_commands import (
    ANSWERS,
    SHAPES,
    commands_in,
    fill,
    run,
    run_printed_commands,
    save_failing_models,
    save_networks,
    starts_of_a_test_run,
)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "printed"
    folder.mkdir()
    fill(folder)
    return folder


@needs_plugin_library
def test_every_printed_command_works(folder):
    save_networks(folder)
    printed_by, failed = run_printed_commands(folder, starts_of_a_test_run())
    assert not failed, "\n".join(failed)
    # Checks the collection itself: different rules print these commands.
    assert "graft convert --help" in printed_by
    assert any(command.startswith("graft convert digits.prototxt digits.caffemodel") for command in printed_by)
    assert "graft new my_ops --from foreign.onnx --node y" in printed_by
    settings = "--target sm120 --tensorrt rtx --plugin-lib libgraft_plugins.so"
    ranges = "--shapes x=1x3x8x8..2x3x16x16..4x3x32x32"
    build = f"graft build normalize.onnx -o normalize.engine {settings} {ranges}"
    convert = f"graft convert normalize.onnx -o normalize.graft.onnx {ranges} {settings}"
    plain = {command.replace("'", "") for command in printed_by}
    assert {build, convert} <= plain, plain
    # The comparison takes the only array that fits, as the quantization does.
    assert "graft verify digits.onnx d.fits.onnx --data digits_test.npz" in plain


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
