# Tests workers that hang, and processes of a worker that cannot be killed.
from __future__ import annotations

import os
import pathlib
from collections.abc import Callable

import pytest
from conftest import HERE
from graft.engine import cli, supervisor
from graft.engine.events import EngineError, EventWriter


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Callable[[], None]:
    """Returns a build with the stand-in for TensorRT, and a limit of 1 second without processor time."""
    monkeypatch.setenv("PYTHONPATH", str(HERE / "stand_in"))
    monkeypatch.syspath_prepend(HERE / "stand_in")
    monkeypatch.setenv("STAND_IN_VERSION", "11.4.0")
    monkeypatch.setenv("STAND_IN_RECORD", str(tmp_path / "record"))
    monkeypatch.setattr(supervisor, "IDLE_LIMIT", 1)
    (tmp_path / "m.onnx").write_bytes(b"the stand-in does not read it")
    arguments = ["build", str(tmp_path / "m.onnx"), "--output", str(tmp_path / "m.engine"), "--tensorrt", "full"]
    parsed = cli.argument_parser().parse_args([*arguments, "--shapes", "x=1x3..2x3..4x3"])

    def run() -> None:
        with (tmp_path / "events").open("wb") as events:
            cli.run_build(parsed, EventWriter(events.fileno()))

    return run


def test_a_worker_that_waits_for_ever_is_killed(build: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_SECONDS", "600")
    with pytest.raises(EngineError) as raised:
        build()
    assert raised.value.kind == "hang"
    assert "it has used no processor time for 1 s" in raised.value.message


def test_a_worker_that_computes_has_no_limit(
    build: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("STAND_IN_COMPUTES", "3")
    build()
    assert (tmp_path / "m.engine").read_bytes() == b"engine"


def test_what_runs_as_another_user_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    children = supervisor.Children()
    monkeypatch.setattr(children, "_adopts", True)
    worker = children.start(["false"])
    other = 4_000_001  # not a process: the test's function fails before the number is used

    def refuse(number: int, signal: int) -> None:
        raise PermissionError(number, signal)

    monkeypatch.setattr(supervisor, "children_of", lambda process: {other, worker.pid} - {os.getpid()})
    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(os, "killpg", refuse)
    assert children.end(worker) == 1


def test_the_allocator_of_a_worker_can_be_chosen(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert "tcache_count" in supervisor.worker_environment(None, tmp_path)["GLIBC_TUNABLES"]
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=3")
    assert supervisor.worker_environment(None, tmp_path)["GLIBC_TUNABLES"] == "glibc.malloc.check=3"
