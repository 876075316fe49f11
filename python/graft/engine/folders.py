"""Creates temporary folders for the links through which a worker finds its TensorRT. A driver removes the folders of
drivers that were killed. A folder is locked by the driver that owns it: the lock ends with the process, however the
process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile
import time
from collections.abc import Iterator

PREFIX = "graft-engine-"
OWNER = "owner"  # the file that the owner locks
# Age in seconds from which an unlocked folder counts as abandoned: a younger one may not be locked yet.
YOUNGEST = 60.0


@contextlib.contextmanager
def links_folder() -> Iterator[pathlib.Path]:
    """Yields a folder for `make_library_links` and removes it afterwards."""
    sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = pathlib.Path(name)
        with (folder / OWNER).open("wb") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            yield folder


def sweep() -> None:
    """Removes this user's folders that no process has locked. A folder that cannot be removed is ignored."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if entry.name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    remove_if_left(entry)


def remove_if_left(entry: os.DirEntry[str]) -> None:
    status = entry.stat(follow_symlinks=False)
    is_ours = entry.is_dir(follow_symlinks=False) and status.st_uid == os.geteuid()
    if not is_ours or time.time() - status.st_mtime < YOUNGEST:
        return
    owner = os.open(os.path.join(entry.path, OWNER), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(entry.path)
    finally:
        os.close(owner)
