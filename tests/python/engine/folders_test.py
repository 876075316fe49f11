# Tests that only the folders of killed drivers are removed.
from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from graft.engine import folders

OWNER = "from graft.engine.folders import links_folder\nwith links_folder() as f: print(f, flush=True); input()"


@pytest.fixture
def temporary(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def start() -> tuple[subprocess.Popen[str], pathlib.Path]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert owner.stdout is not None
    folder = pathlib.Path(owner.stdout.readline().strip())
    assert folder.is_dir()
    return owner, folder


def age(folder: pathlib.Path) -> None:
    past = time.time() - 2 * folders.YOUNGEST
    os.utime(folder, (past, past))


def test_a_killed_owners_folder_goes_and_a_living_ones_stays(temporary: pathlib.Path) -> None:
    (killed, left), (living, held) = start(), start()
    try:
        (left / "lib").mkdir()
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        age(left)
        age(held)
        with folders.links_folder() as own:
            assert not left.exists()
            assert held.is_dir()
            age(own)
            folders.sweep()  # a second driver of this user
            assert own.is_dir()
        assert not own.exists()
    finally:
        living.communicate("\n")
    assert living.returncode == 0
    assert not list(temporary.iterdir())


def test_what_may_be_anothers_stays(temporary: pathlib.Path) -> None:
    """A link to a folder, a new folder, a folder without an owner, and a folder with another name stay."""
    target = temporary / "target"
    for folder in (target, temporary / "graft-engine-new", temporary / "other-engine"):
        folder.mkdir()
        (folder / folders.OWNER).touch()
    (temporary / "graft-engine-none").mkdir()
    (temporary / "graft-engine-link").symlink_to(target)
    before = sorted(temporary.iterdir())
    for folder in before:
        if folder.name != "graft-engine-new":
            age(folder)
    folders.sweep()
    assert sorted(temporary.iterdir()) == before
