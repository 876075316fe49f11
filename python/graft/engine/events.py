# Events, errors and exit codes of the engine driver: the protocol between driver, worker and `graft`.
"""Newline-delimited JSON events. The protocol is described in README.md beside this file."""

from __future__ import annotations

import errno
import json
import os
import threading
from typing import Any

EXIT_DONE = 0
EXIT_ANSWER_IS_NO = 1
EXIT_BAD_INPUT = 2
EXIT_TOOL_MISSING = 3
EXIT_INTERNAL = 4

# Every kind of error event and the exit code it ends the driver with.
EXIT_CODE_OF_KIND: dict[str, int] = {
    "usage": EXIT_BAD_INPUT,  # the command line itself
    "input": EXIT_BAD_INPUT,  # the model: missing, unreadable, not ONNX
    "shapes": EXIT_BAD_INPUT,  # --shapes: missing, ill-formed, contradicting the model
    "target": EXIT_BAD_INPUT,  # --target: not one that this TensorRT can build for
    "option": EXIT_BAD_INPUT,  # an option that this TensorRT does not offer
    "plugin_library": EXIT_BAD_INPUT,  # missing, not loadable, no plugin in it
    "output": EXIT_BAD_INPUT,  # the result cannot be written
    "resource": EXIT_BAD_INPUT,  # the system or a limit of this process leaves too little of something
    "tensorrt_missing": EXIT_TOOL_MISSING,
    "tool_missing": EXIT_TOOL_MISSING,  # of graft.bench: PyTorch, a GPU
    "parse": EXIT_ANSWER_IS_NO,  # TensorRT's parser refuses the model
    "build": EXIT_ANSWER_IS_NO,  # TensorRT's builder refuses the network
    "crash": EXIT_ANSWER_IS_NO,  # the TensorRT process died
    "hang": EXIT_ANSWER_IS_NO,  # it did not come to an end and was killed
    "internal": EXIT_INTERNAL,
}


class EngineError(Exception):
    """An error with its kind, what to do next, and facts for a machine to read."""

    def __init__(self, kind: str, message: str, next_step: str = "", **facts: Any) -> None:
        super().__init__(message)
        if kind not in EXIT_CODE_OF_KIND:
            raise ValueError(f"unknown error kind {kind!r}")
        self.kind = kind
        self.message = message
        self.next_step = next_step
        self.facts = facts

    @classmethod
    def from_event(cls, event: dict[str, Any]) -> EngineError:
        """The error that a worker reported."""
        own = ("event", "kind", "message", "next_step", "exit_code")
        facts = {name: value for name, value in event.items() if name not in own}
        return cls(event["kind"], event["message"], event["next_step"], **facts)

    @property
    def exit_code(self) -> int:
        return EXIT_CODE_OF_KIND[self.kind]

    def event(self) -> dict[str, Any]:
        return {
            "event": "error",
            "kind": self.kind,
            "message": self.message,
            "next_step": self.next_step,
            "exit_code": self.exit_code,
            **self.facts,
        }


def open_files_error(error: OSError) -> EngineError:
    """Raises the error itself unless it says that there are too many open files."""
    if error.errno == errno.EMFILE:
        return EngineError("resource", f"{error}", "Allow more open files and run again: ulimit -n 1024")
    if error.errno == errno.ENFILE:
        return EngineError("resource", f"{error}", "The whole system has no more open files: end other programs")
    raise error


def read_event(line: bytes, token: str) -> dict[str, Any] | None:
    """A worker's event; None for a line that its death cut off, and for one without its token."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or event.pop("token", None) != token:
        return None
    return event


class EventWriter:
    """Writes events, one JSON object a line, whole lines only, from any thread. A worker's have its token, by which the
    supervisor knows them from what a plugin library writes into the same pipe."""

    def __init__(self, descriptor: int, token: str | None = None) -> None:
        self._descriptor = descriptor
        self._token = {} if token is None else {"token": token}
        self._lock = threading.Lock()
        # A build writes thousands of verbose messages; a reader that drops them need not parse them first.
        self.writes_verbose = True

    def write(self, event: dict[str, Any]) -> None:
        line = json.dumps(event | self._token, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            view = memoryview(line)
            while view:
                view = view[os.write(self._descriptor, view) :]

    def log(self, severity: str, message: str) -> None:
        if severity == "verbose" and not self.writes_verbose:
            return
        self.write({"event": "log", "severity": severity, "message": message})

    def progress(self, phase: str, step: int, total: int, fraction: float, parent: str | None = None) -> None:
        self.write(
            {
                "event": "progress",
                "phase": phase,
                "parent": parent,
                "step": step,
                "total": total,
                "fraction": round(fraction, 4),
            }
        )

    def result(self, command: str, **facts: Any) -> None:
        self.write({"event": "result", "command": command, **facts})
