"""Reads and writes TensorRT's timing cache in a file that several concurrent builds may share. The file is read before
the build. After the build, under a lock, the cache is merged with the entries that other builds have written meanwhile,
and the file is replaced as a whole."""

from __future__ import annotations

import errno
import fcntl
import os
import pathlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graft.engine.events import EngineError
from graft.engine.files import write_file
from graft.engine.names import named
from graft.engine.options import lacks
from graft.engine.session import Session


class TimingCache:
    """The timing cache of a build. `path` is the path of the file, and `temporary` another path in the same folder;
    both are None without a timing cache. Raises EngineError for an unreadable file, and for a TensorRT without timing
    caches."""

    def __init__(self, session: Session, config: Any, path: str | None, temporary: str | None) -> None:
        self._session = session
        self._config = config
        self._path = path
        self._temporary = temporary
        self._previous = b""
        self._state = "not asked for"
        if path is not None:
            self._state = self._load(pathlib.Path(path))

    def _load(self, path: pathlib.Path) -> str:
        try:
            self._previous = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise EngineError(
                "input", f"timing cache {path}: {error.strerror}", "Choose a file that can be read"
            ) from error
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            accepted = self._set(self._previous)
            if not accepted:
                self._set(b"")
        if any("no-op" in str(warning.message) for warning in caught):
            raise lacks(self._session, named("--timing-cache"), "timing cache")
        if not accepted:
            self._warn(f"timing cache {path} is damaged, or is for another TensorRT or GPU: starting an empty one")
            return "replaced"
        return "extended" if self._previous else "new"

    def _set(self, data: bytes) -> bool:
        cache = self._config.create_timing_cache(data)
        return cache is not None and bool(self._config.set_timing_cache(cache, False))

    def _warn(self, message: str) -> None:
        self._session.events.log("warning", message)

    def save(self) -> dict[str, Any]:
        if self._path is None or self._temporary is None:
            return {"path": self._path, "state": self._state}
        with locked(pathlib.Path(self._path)) as now:
            cache = self._config.get_timing_cache()
            if now not in (b"", self._previous):
                self._join(cache, now)
            data = memoryview(cache.serialize()).cast("B")
            write_file(self._temporary, data)
            pathlib.Path(self._temporary).replace(self._path)
        return {"path": self._path, "state": self._state, "bytes": data.nbytes}

    def _join(self, cache: Any, now: bytes) -> None:
        """Merges `now`, the contents of the file, into `cache`: another build has written entries since this build
        began."""
        other = self._config.create_timing_cache(now)
        if other is None or not cache.combine(other, False):
            self._warn(
                f"timing cache {self._path}: entries that another build wrote meanwhile do not match and are replaced"
            )


@contextmanager
def locked(path: pathlib.Path) -> Iterator[bytes]:
    """Waits until no other build writes the file, and yields its contents under a lock. Raises EngineError for a file
    that cannot be written.

    The lock is on the open file, and a writer replaces the file under its name. A build that has waited may therefore
    have locked a file that no longer has the name; it then opens and locks the new file. For a symbolic link, the
    function yields no bytes and locks nothing: the writer replaces the link, so no other build writes its target.
    """
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            if error.errno == errno.ELOOP:
                yield b""
                return
            raise EngineError(
                "output", f"timing cache {path}: {error.strerror}", "Choose a file that can be written"
            ) from error
        with os.fdopen(descriptor, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                is_current = os.path.samestat(os.fstat(file.fileno()), path.lstat())
            except FileNotFoundError:
                is_current = False
            if not is_current:
                continue
            found = file.read()
            try:
                yield found
            except BaseException:
                if not found:
                    path.unlink(missing_ok=True)  # os.open created the file, and it is still empty
                raise
            return
