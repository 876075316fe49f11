# Finds the program `graft` and runs it: JSON out, progress and a metric's questions on the way.
"""Standard error's progress becomes calls; the rest of it is printed at the end, unless it is the error that is raised."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
import re
import selectors
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from graft.engine.files import which

# Where a build and an installation have it, from the folder that holds the package.
BESIDE_PACKAGE = ("../bin/graft", "../../../bin/graft", "../build/bin/graft")
PROGRESS_LINE = re.compile(r"\s*(\d+) %  (.*)")
METRIC_CLIENT = pathlib.Path(__file__).with_name("metric.py")
LONGEST_MESSAGE = 65536

Metric = Callable[[str], float]
Progress = Callable[[str, float], object]


class Error(Exception):
    """What the program says is wrong. `kind` is `bad_input`, `missing_tool`, `answer_is_no` or `internal`."""

    def __init__(self, message: str, kind: str = "bad_input") -> None:
        super().__init__(message)
        self.kind = kind


def find_program() -> str:
    """GRAFT_BIN, the program that was built or installed with this package, or the one on PATH."""
    chosen = os.environ.get("GRAFT_BIN")
    if chosen:
        return chosen
    folder = pathlib.Path(__file__).absolute().parents[1]  # not resolved: a build's is a link into the sources
    for relative in BESIDE_PACKAGE:
        path = os.path.normpath(folder / relative)
        if os.access(path, os.X_OK):
            return path
    found = which("graft")
    if found is None:
        raise Error("the program graft is not found: put it on PATH, or set GRAFT_BIN to it", "missing_tool")
    return found


def run_program(arguments: list[str], metric: Metric | None = None, progress: Progress | None = None) -> dict[str, Any]:
    """The command's JSON. With a metric the command gets `--metric`, and asks it through a pair of sockets; it is called
    here, in the caller's thread, and what it raises ends the command. Raises Error where the command fails."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            command = [find_program(), *arguments, "--json"]
            if metric is not None:
                client = [sys.executable, "-I", "-S", str(METRIC_CLIENT), str(theirs.fileno())]
                command += ["--metric", shlex.join(client) + " {}"]
            process = start(command, theirs.fileno())
        try:
            heard = Conversation(process, ours, metric, progress)
            process.wait()
        except BaseException:
            process.terminate()
            raise
        finally:
            with process:  # closes its pipes and waits: it takes its temporary files away
                pass
    return heard.result()


def start(command: list[str], inherited: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(inherited,),
        )
    except OSError as error:
        raise Error(f"{command[0]}: cannot be started: {error.strerror}", "missing_tool") from error


class Conversation:
    """What a program says until it closes its outputs, and the answers to what it asks."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        questions: socket.socket,
        metric: Metric | None,
        progress: Progress | None,
    ) -> None:
        assert process.stdout is not None and process.stderr is not None
        self._process = process
        self._questions = questions
        self._metric = metric
        self._progress = progress
        self._output = b""
        self._partial_line = b""
        self._messages: list[str] = []
        outputs = {process.stdout: self._on_output, process.stderr: self._on_messages}
        with selectors.DefaultSelector() as selector:
            for stream, callback in outputs.items():
                selector.register(stream, selectors.EVENT_READ, callback)
            selector.register(questions, selectors.EVENT_READ, self._on_question)
            while any(stream in selector.get_map() for stream in outputs):
                for key, _ in selector.select():
                    data = os.read(key.fd, LONGEST_MESSAGE)
                    if not data:
                        selector.unregister(key.fileobj)
                    key.data(data)

    def _on_output(self, data: bytes) -> None:
        self._output += data

    def _on_messages(self, data: bytes) -> None:
        lines = (self._partial_line + data).split(b"\n")
        self._partial_line = lines.pop() if data else b""
        for line in lines:
            text = line.decode(errors="replace")
            is_progress = PROGRESS_LINE.fullmatch(text)
            if not is_progress:
                self._messages.append(text)
            elif self._progress is not None:
                self._progress(is_progress[2], int(is_progress[1]) / 100)

    def _on_question(self, model: bytes) -> None:
        if not model or self._metric is None:
            return
        value = float(self._metric(os.fsdecode(model)))
        if not math.isfinite(value):
            raise ValueError(f"the metric has to be a finite number, and is {value}")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who asked is gone; the program tells
            self._questions.send(repr(value).encode())

    def result(self) -> dict[str, Any]:
        code = self._process.returncode
        if code == 128 + signal.SIGINT:  # Ctrl-C reaches both, and may reach the program first
            raise KeyboardInterrupt
        messages = "\n".join(self._messages).strip()
        try:
            answer = json.loads(self._output)
        except ValueError:
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            raise Error(f"graft ended {how} and gave no result\n{messages}".strip(), "internal") from None
        if "error" in answer:
            raise Error(answer["error"]["message"], answer["error"]["kind"])
        if messages:
            print(messages, file=sys.stderr)
        return answer
