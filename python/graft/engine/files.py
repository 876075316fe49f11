# Files: writing one to the disk, for workers, the digest of one, and programs on PATH.
"""A worker writes under a temporary name; whoever knows that all is well gives it the right one."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil

from graft.engine.events import EngineError


def write_file(path: str, data: memoryview | bytes) -> None:
    """Writes a new file: one that is there already may be a link to another file."""
    try:
        with pathlib.Path(path).open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise EngineError(
            "output",
            f"{path}: cannot write {len(data)} bytes: {error.strerror}",
            "Free some space, or choose another folder",
        ) from error


def which(program: str) -> str | None:
    """The program on PATH. Entries that are empty or relative stand for the current folder, which may be a stranger's."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)]
    return shutil.which(program, path=os.pathsep.join(folders)) if folders else None


def file_digest(path: str | pathlib.Path) -> str:
    """SHA-256; raises OSError for what cannot be read."""
    digest = hashlib.sha256()
    with pathlib.Path(path).open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
