"""The worker that replies to requests with ONNX Runtime, one request at a time on each connection. The process ends
when its first connection closes, also while a run is in progress."""

from __future__ import annotations

import os
import stat
import sys
import threading
from typing import TYPE_CHECKING

from graft.runtime.connection import Connection, Message, connection_of
from graft.runtime.messages import PROTOCOL_VERSION, ErrorKind, Failure, Kind, Reader, Writer

if TYPE_CHECKING:
    from graft.runtime.sessions import Session


def encode_failure(failure: Failure) -> Writer:
    body = Writer()
    body.number(failure.kind)
    body.text(str(failure))
    body.number(0)  # the failure is not a limit of this engine: ONNX Runtime has none that another engine lacks
    return body


class Served:
    """A connection, and the model that was compiled on this connection or on the one that opened it."""

    def __init__(self, connection: Connection, session: Session | None = None) -> None:
        self._connection = connection
        self._session = session

    def serve(self) -> None:
        """Answers requests until the peer closes its end."""
        while (message := self._connection.receive()) is not None:
            try:
                kind, body = Kind.DONE, self._answer(message)
            except Failure as failure:
                kind, body = Kind.FAILED, encode_failure(failure)
            except Exception as defect:  # noqa: BLE001 - the C++ side reports every failure
                text = f"the worker of ONNX Runtime failed: {type(defect).__name__}: {defect}"
                kind, body = Kind.FAILED, encode_failure(Failure(ErrorKind.INTERNAL, text))
            try:
                self._connection.send(kind, body.parts)
            except OSError:
                return

    def _answer(self, message: Message) -> Writer:
        from graft.runtime import sessions

        body = Writer()
        if message.kind == Kind.OPEN and message.attached is not None:
            serve_beside(Served(connection_of(message.attached), self._session))
        elif message.kind == Kind.COMPILE:
            self._session = sessions.Session(Reader(message.body).compile())
        elif message.kind == Kind.RUN and self._session is not None:
            reader = Reader(message.body)
            sessions.write_tensors(body, self._session.run(sessions.read_tensors(reader)))
        else:
            raise Failure(ErrorKind.INTERNAL, f"the worker cannot answer a message of kind {message.kind} here")
        return body


def serve_beside(served: Served) -> None:
    threading.Thread(target=served.serve, daemon=True).start()


def main() -> int:
    """Sends the greeting on the socket that is the standard input, answers requests on it, and returns the exit
    code."""
    if not stat.S_ISSOCK(os.fstat(0).st_mode):
        print("graft.runtime: Graft starts this program, with a socket as its standard input", file=sys.stderr)
        return 2
    root = connection_of(os.dup(0))
    try:
        from graft.runtime import sessions
    except ImportError as error:
        text = (
            f"ONNX Runtime is not installed: {sys.executable}: {error}\n"
            f"Install it with: {sys.executable} -m pip install onnxruntime, or set GRAFT_PYTHON to a Python that has it"
        )
        root.send(Kind.FAILED, encode_failure(Failure(ErrorKind.MISSING_TOOL, text)).parts)
        return 1
    greeting = Writer()
    greeting.number(PROTOCOL_VERSION)
    greeting.text(sessions.ENGINE)
    root.send(Kind.GREETING, greeting.parts)
    Served(root).serve()
    # No peer waits for the result of a thread that is still computing.
    os._exit(0)
