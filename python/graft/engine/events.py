"""Events, errors and exit codes of the engine driver: the protocol between driver, worker and `graft`. Events are JSON
objects, one per line. README.md in this folder describes the protocol."""

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

# The driver's exit code for each kind of error event.
EXIT_CODE_OF_KIND: dict[str, int] = {
    "usage": EXIT_BAD_INPUT,  # the command line itself
    "input": EXIT_BAD_INPUT,  # the model: missing, unreadable, not ONNX
    "shapes": EXIT_BAD_INPUT,  # --shapes: missing, ill-formed, contradicting the model
    "target": EXIT_BAD_INPUT,  # --target: a target for which this TensorRT cannot build
    "option": EXIT_BAD_INPUT,  # an option that this TensorRT does not offer
    "plugin_library": EXIT_BAD_INPUT,  # a plugin library is missing, cannot be loaded, or has no plugin
    "output": EXIT_BAD_INPUT,  # the result cannot be written
    "resource": EXIT_BAD_INPUT,  # a resource of the system is exhausted, or a limit of this process is reached
    "tensorrt_missing": EXIT_TOOL_MISSING,
    "tool_missing": EXIT_TOOL_MISSING,  # graft.bench needs PyTorch or a GPU
    "parse": EXIT_ANSWER_IS_NO,  # TensorRT's parser refuses the model
    "build": EXIT_ANSWER_IS_NO,  # TensorRT's builder refuses the network
    "crash": EXIT_ANSWER_IS_NO,  # the TensorRT process died
    "hang": EXIT_ANSWER_IS_NO,  # the TensorRT process did not end within the limit and was killed
    "internal": EXIT_INTERNAL,
}


class EngineError(Exception):
    """An error with its kind, one of EXIT_CODE_OF_KIND, what to do next, and facts for programs."""

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
        """Returns the error that a worker reported as an event."""
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
    """Returns an EngineError for an error about too many open files. Raises any other error."""
    if error.errno == errno.EMFILE:
        return EngineError("resource", f"{error}", "Allow more open files and run again: ulimit -n 1024")
    if error.errno == errno.ENFILE:
        return EngineError(
            "resource", f"{error}", "The system has reached its limit of open files: close other programs"
        )
    raise error


def read_event(line: bytes, token: str) -> dict[str, Any] | None:
    """Returns the event in a line of a worker's pipe; None for a line that is incomplete because the worker died, and
    for a line without the worker's token."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or event.pop("token", None) != token:
        return None
    return event


class EventWriter:
    """Writes events, one JSON object per line. Any thread may write; lines are never mixed. Events of a worker have its
    token, which distinguishes them from text that a plugin library writes into the same pipe."""

    def __init__(self, descriptor: int, token: str | None = None) -> None:
        self._descriptor = descriptor
        self._token = {} if token is None else {"token": token}
        self._lock = threading.Lock()
        # A build writes thousands of verbose messages; they are left out where the reader would drop them.
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
