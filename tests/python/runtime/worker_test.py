# Tests `python -m graft.runtime` over its socket: greeting, models, errors, and exit.
import contextlib
import os
import socket
import struct
import subprocess
import sys

import numpy as np
import onnx
import pytest
from graft.runtime.connection import MAGIC, Connection, Message
from graft.runtime.messages import Kind, Reader, Writer
from graft.runtime.sessions import read_tensors, write_tensors
from onnx import TensorProto, helper


@contextlib.contextmanager
def worker(code="import runpy; runpy.run_module('graft.runtime', run_name='__main__')"):
    ours, theirs = socket.socketpair()
    process = subprocess.Popen([sys.executable, "-c", code], stdin=theirs, stderr=subprocess.PIPE)
    theirs.close()
    try:
        yield process, ours
    finally:
        ours.close()
        process.communicate(timeout=20)


def name_of(greeting: Message) -> str:
    reader = Reader(greeting.body)
    reader.number()
    return reader.text()


def text_of(failure: Message) -> str:
    reader = Reader(failure.body)
    reader.number()
    text = reader.text()
    assert reader.number() == 0, "ONNX Runtime has no limit of its own"
    return text


def compiled(model: onnx.ModelProto) -> list:
    body = Writer()
    for number in (0, 0, 1, 1, 0):  # kernels, extra outputs, threads, streams, rounding inside
        body.number(number)
    body.text("some.onnx")
    body.text("")
    body.block(model.SerializeToString())
    return body.parts


def negation(ir_version: int = 8) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "negation", [x], [y])
    return helper.make_model(graph, ir_version=ir_version, opset_imports=[helper.make_opsetid("", 17)])


def run(connection: Connection, numbers: np.ndarray) -> Message | None:
    body = Writer()
    write_tensors(body, {"x": numbers})
    connection.send(Kind.RUN, body.parts)
    return connection.receive()


def test_greets_compiles_and_runs_on_connections_of_their_own():
    with worker() as (process, ours):
        root = Connection(ours)
        greeting = root.receive()
        assert greeting.kind == Kind.GREETING
        assert name_of(greeting).startswith("ONNX Runtime 1.")
        mine, theirs = socket.socketpair()
        socket.send_fds(ours, [struct.pack("=IIQ", MAGIC, Kind.OPEN, 0)], [theirs.fileno()])
        theirs.close()
        assert root.receive().kind == Kind.DONE
        model = Connection(mine)
        # The second version is too new for ONNX Runtime.
        for ir_version in (8, 99):
            model.send(Kind.COMPILE, compiled(negation(ir_version)))
            assert model.receive().kind == Kind.DONE
        for shape in ((3,), (0,)):
            found = read_tensors(Reader(run(model, np.ones(shape, np.float32)).body))
            np.testing.assert_array_equal(found["y"], -np.ones(shape, np.float32))
        failed = run(model, np.ones((3, 3), np.float32))
        assert failed.kind == Kind.FAILED
        assert text_of(failed).startswith("some.onnx: cannot run with x: float32[3, 3]: ONNX Runtime")
        assert run(root, np.ones(3, np.float32)).kind == Kind.FAILED, "nothing was compiled there"
        ours.close()
        assert process.wait(timeout=20) == 0, "it ends with its first connection"
        assert model.receive() is None
        model.close()


@pytest.mark.parametrize("name", ["onnxruntime", "numpy"])
def test_says_what_is_missing(name):
    code = f"import runpy, sys; sys.modules[{name!r}] = None; runpy.run_module('graft.runtime', run_name='__main__')"
    with worker(code) as (process, ours):
        failed = Connection(ours).receive()
        assert failed.kind == Kind.FAILED
        assert struct.unpack_from("=Q", failed.body)[0] == 2, "missing_tool"
        assert "-m pip install onnxruntime" in text_of(failed)
        assert process.wait(timeout=20) == 1


def test_a_damaged_message_ends_it():
    with worker() as (process, ours):
        Connection(ours).receive()
        ours.sendall(b"HTTP/1.1 400 bad")
        assert process.wait(timeout=20) == 1
        assert b"the bytes are not a message" in process.stderr.read()


def test_started_by_hand():
    command = [sys.executable, "-m", "graft.runtime"]
    found = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=os.environ)
    assert found.returncode == 2
    assert "Graft starts this program" in found.stderr
