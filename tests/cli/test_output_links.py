# Tests symbolic links at the paths of output files: an untrusted archive may contain them, and no command writes
# through one.
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import DIGITS, DIGITS_DATA, DIGITS_SHAPES, PROGRAM
from onnx import helper
from onnx_models import save

SECRET = b"a file of the user's that no command was told about"
INT8 = ["--precision", "int8", "--data", "image=d.npz:images", "--samples", "8"]
# Each command with the files that it writes.
WRITERS = {
    "convert": (["convert", "m.onnx", "-o", "o.onnx", "--report", "p.html"], ["o.onnx", "p.html", "p.html.json"]),
    "cut": (["convert", "cut.onnx", "--cut", "-o", "o.onnx"], ["o.onnx", "o.host.onnx", "o.cut.json"]),
    "quantize": (["quantize", "m.onnx", *INT8, "--state", "s.npz", "-o", "o.onnx"], ["o.onnx", "s.npz"]),
    "inspect": (["inspect", "m.onnx", "--report", "p.html"], ["p.html", "p.html.json"]),
    "verify": (["verify", "m.onnx", "m.onnx", "--report", "p.html"], ["p.html", "p.html.json"]),
    "run": (["run", "m.onnx", "-i", "image=d.npz:images", "-o", "o.npz"], ["o.npz"]),
    "build": (["build", "m.onnx", "--shapes", DIGITS_SHAPES, "--target", "sm89", "-o", "o.engine"], ["o.engine"]),
}


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "archive"
    inside.mkdir()
    (inside / "m.onnx").write_bytes(DIGITS.read_bytes())
    (inside / "d.npz").write_bytes(DIGITS_DATA.read_bytes())
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["product"]),
        helper.make_node("Unique", ["product"], ["values"]),
    ]
    save(inside / "cut.onnx", nodes, [("x", ["n", "n"])], [("values", ["found"])])
    return inside


@pytest.mark.parametrize("command", WRITERS)
def test_a_link_is_replaced_and_not_followed(graft, folder, command):
    arguments, names = WRITERS[command]
    secrets = [folder.parent / f"secret_{name}" for name in names]
    for name, secret in zip(names, secrets, strict=True):
        # A state file is read before it is written, and has to be complete.
        if name != "s.npz":
            secret.write_bytes(SECRET)
        (folder / name).symlink_to(secret)
    graft(*arguments, cwd=folder, code=0)
    for name, secret in zip(names, secrets, strict=True):
        assert (folder / name).is_file() and not (folder / name).is_symlink(), name
        assert secret.read_bytes() == SECRET if name != "s.npz" else not secret.exists(), name
    assert {path.name for path in folder.iterdir()} == {"m.onnx", "d.npz", "cut.onnx", *names}


@pytest.mark.parametrize("command", [["canary", "m.onnx", "-o", "out"], ["new", "out"]], ids=["canary", "new"])
def test_a_folder_that_is_a_link_is_refused(graft, folder, command):
    elsewhere = folder.parent / "elsewhere"
    for there in (False, True):  # a dangling link, and a link to a folder
        if there:
            elsewhere.mkdir()
        else:
            (folder / "out").symlink_to(elsewhere)
        answer = graft(*command, cwd=folder)
        assert answer.code == 2 and "out: it exists already" in answer.err
        assert (folder / "out").is_symlink()
        assert not there or not list(elsewhere.iterdir())


def test_the_report_of_a_canary_replaces_a_link(graft, folder):
    """The script runs on the machine with the user's TensorRT; without TensorRT it fails and writes the reason."""
    assert graft("canary", "m.onnx", "-o", "canary", cwd=folder).code == 0
    secret = folder.parent / "secret"
    secret.write_bytes(SECRET)
    report = folder / "canary" / "canary_report.json"
    report.symlink_to(secret)
    subprocess.run(
        [sys.executable, "canary/run_canary.py", "--tensorrt", "tensorrt"], cwd=folder, capture_output=True, check=False
    )
    assert secret.read_bytes() == SECRET
    assert json.loads(report.read_text())["message"] and not report.is_symlink()


def test_the_system_s_own_links_stay(graft, folder):
    """/dev/stdout is a link, here to a regular file; as root it could be replaced."""
    with (folder / "out").open("wb") as out:
        done = subprocess.run(
            [PROGRAM, "convert", "m.onnx", "-o", "/dev/stdout"],
            cwd=folder,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2 and "/dev is a system folder" in done.stderr
    assert pathlib.Path("/dev/stdout").is_symlink()


def make_slow(path):
    """Saves many large products, so that the command can be killed while it runs."""
    weights = np.random.default_rng(0).normal(size=(1024, 1024)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x" if i == 0 else f"y{i - 1}", "w"], [f"y{i}"]) for i in range(40)]
    return save(path, nodes, [("x", [1024, 1024])], [("y39", [1024, 1024])], {"w": weights})


def test_what_a_killed_canary_left_is_removed_by_the_next(graft, folder):
    make_slow(folder / "slow.onnx")
    process = subprocess.Popen([PROGRAM, "canary", "slow.onnx", "-o", "canary"], cwd=folder, stderr=subprocess.DEVNULL)

    def left():
        return [path for path in folder.iterdir() if path.name.startswith(".canary.")]

    while not any(list(path.iterdir()) for path in left()):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    (killed,) = left()
    backup = folder / ".canary.backup"  # the user's own
    backup.mkdir()
    hour_ago = time.time() - 3600
    for path in (*killed.iterdir(), killed, backup):
        os.utime(path, (hour_ago, hour_ago))
    graft("canary", "m.onnx", "-o", "canary", cwd=folder, code=0)
    assert left() == [backup]
    assert "model.onnx" in os.listdir(folder / "canary") and ".graft-temporary" not in os.listdir(folder / "canary")
