# Writing a file to the disk, for workers.
"""A worker writes under a temporary name; whoever knows that all is well gives it the right one."""

from __future__ import annotations

import os
import pathlib

from graft.engine.events import EngineError


def write_file(path: str, data: memoryview | bytes) -> None:
    try:
        with pathlib.Path(path).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise EngineError(
            "output",
            f"{path}: cannot write {len(data)} bytes: {error.strerror}",
            "Free some space, or choose another folder",
        ) from error
