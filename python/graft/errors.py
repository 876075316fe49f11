# The exceptions of the package.
"""Their text is what the command prints after "error:": what happened, where, what was found, and what to do."""

from __future__ import annotations


class Error(Exception):
    """What Graft says is wrong.

    `kind` is `bad_input` (wrong use, or a file that cannot be used), `missing_tool` (something has to be installed),
    `answer_is_no` (the work was done and the answer is no: TensorRT refuses the model) or `internal` (a defect of Graft).
    """

    def __init__(self, message: str, kind: str = "bad_input") -> None:
        super().__init__(message)
        self.kind = kind


class Cancelled(Error):
    """The work's CancelToken was used. No file has been written, and no argument has changed."""

    def __init__(self, message: str = "cancelled by the caller", kind: str = "answer_is_no") -> None:
        super().__init__(message, kind)
