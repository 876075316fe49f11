"""The exceptions of the package. The text of an exception is the text that the command prints after "error:": what
happened, where, what was found, and what to do."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """The base class of Graft's exceptions.

    `kind` is `bad_input` (wrong use, or a file that cannot be used), `missing_tool` (something has to be installed),
    `answer_is_no` (the work was done and the answer is no: TensorRT refuses the model) or `internal` (a defect of
    Graft).
    """

    def __init__(self, message: str, kind: str = "bad_input") -> None:
        super().__init__(message)
        self.kind = kind


class EngineError(Error):
    """A failure of the process in which TensorRT runs: TensorRT refuses the model, crashes, or is not installed.

    `failure` names the failure: `parse`, `build`, `crash`, `hang`, `shapes`, `target`, `option`, `plugin_library` ...
    `message` says what happened and where, and `next_step` what to do. `library` is the plugin library that caused the
    failure, or empty, and `cause` names the reason (docs/guide/plugin_not_found.md). `facts` has all other details: the
    parser's `errors`, the `signal` of a crash ...
    """

    def __init__(
        self,
        text: str,
        kind: str = "answer_is_no",
        failure: str = "",
        message: str = "",
        next_step: str = "",
        library: str = "",
        cause: str = "",
        facts: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(text, kind)
        self.failure = failure
        self.message = message or text
        self.next_step = next_step
        self.library = library
        self.cause = cause
        self.facts = facts or {}


class Cancelled(Error):
    """The exception of a call whose CancelToken was used. No file has been written, and no argument has changed."""

    def __init__(self, message: str = "cancelled by the caller", kind: str = "answer_is_no") -> None:
        super().__init__(message, kind)
