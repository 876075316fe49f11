"""Tests processes that are forked after Graft has run: each call returns the right values or an error."""

import json
import pathlib
import subprocess
import sys

import onnx
from onnx import TensorProto, helper

# Each call runs in its own forked process, which writes the outcome.
SCRIPT = """
import json
import os
import sys
import graft
import numpy as np

path, x = sys.argv[1], np.arange(4, dtype=np.float32)
# Every engine has run: proofs, comparisons and sessions.
graft.convert(graft.load(path))
sessions = {engine: graft.Session(path, engine=engine) for engine in ("openvino", "onnxruntime")}
for session in sessions.values():
    session.run(x)


def what_came(call):
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            came = call()["y"].tolist()
        except graft.Error as error:
            came = f"{error.kind}: {error}"
        os.write(write, json.dumps(came).encode())
        os._exit(0)
    os.close(write)
    os.wait()
    with os.fdopen(read) as answer:
        return json.load(answer)


def calls(engine):
    yield "new", lambda: graft.Session(path, engine=engine).run(x)
    yield "old", lambda: sessions[engine].run(x)
    yield "again", lambda: graft.Session(path, engine=engine).run(x)


came = {f"{engine} {name}": what_came(call) for engine in sessions for name, call in calls(engine)}
came |= {f"{engine} parent": session.run(x)["y"].tolist() for engine, session in sessions.items()}
print(json.dumps(came))
"""


def test_a_forked_process_ends(tmp_path: pathlib.Path) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Abs", ["a"], ["y"])]
    model = helper.make_model(
        helper.make_graph(nodes, "network", [x], [y]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    came = json.loads(done.stdout)
    right = [0, 1, 2, 3]
    for engine in ("openvino", "onnxruntime"):
        assert came[f"{engine} parent"] == right
        # The child starts its own engine process.
        assert came[f"{engine} new"] == came[f"{engine} again"] == right
        assert came[f"{engine} old"].startswith("bad_input")
        assert "Compile the model after the fork" in came[f"{engine} old"]
