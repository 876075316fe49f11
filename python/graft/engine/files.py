"""Writes new files, computes the digest of a file, and finds programs on PATH. A worker writes to a temporary name; the
supervisor renames the file when the worker has succeeded."""

from __future__ import annotations

import errno
import hashlib
import os
import pathlib
import shutil

from graft.engine.events import EngineError


def write_file(path: str, data: memoryview | bytes) -> None:
    """Writes a new file to the disk. Raises EngineError where the path exists, which may be a link to another file, and
    where it cannot be written."""
    try:
        with pathlib.Path(path).open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise EngineError(
            "output",
            f"{path}: cannot write {len(data)} bytes: {error.strerror}",
            "Free some disk space, or choose another folder" if is_full else "Choose another folder",
        ) from error


def which(program: str) -> str | None:
    """Returns the path of the program on PATH, or None. Empty and relative entries of PATH are ignored: they depend on
    the current folder, where another person may have put a program."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)]
    return shutil.which(program, path=os.pathsep.join(folders)) if folders else None


def file_digest(path: str | pathlib.Path) -> str:
    """Returns the SHA-256 of a file. Raises OSError for an unreadable file."""
    digest = hashlib.sha256()
    with pathlib.Path(path).open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
