# What a worker left behind, where it cannot be killed.
from __future__ import annotations

import os

import pytest
from graft.engine import supervisor


def test_what_runs_as_another_user_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    children = supervisor.Children()
    monkeypatch.setattr(children, "_adopts", True)
    worker = children.start(["false"])
    other = 4_000_001  # no process: what is asked of it fails before it is looked for

    def refuse(number: int, signal: int) -> None:
        raise PermissionError(number, signal)

    monkeypatch.setattr(supervisor, "children_of", lambda process: {other, worker.pid} - {os.getpid()})
    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(os, "killpg", refuse)
    assert children.end(worker) == 1
