# Files: writing one to the disk, for workers, and the digest of one.
"""A worker writes under a temporary name; whoever knows that all is well gives it the right one."""

from __future__ import annotations

import hashlib
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


def file_digest(path: str | pathlib.Path) -> str:
    """SHA-256; raises OSError for what cannot be read."""
    digest = hashlib.sha256()
    with pathlib.Path(path).open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
