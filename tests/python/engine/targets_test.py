# Tests --target: its syntax, and the flavor that "auto" selects for it.
from __future__ import annotations

import pathlib
import sys

import pytest
from graft.engine import cli, flavors
from graft.engine.events import EngineError
from graft.engine.targets import parse_targets


def test_spellings() -> None:
    assert parse_targets(["sm89,SM_120", "86", "sm89"]) == ["sm89", "sm120", "sm86"]
    assert parse_targets([]) == []
    assert parse_targets(["current"]) == ["current"]


@pytest.mark.parametrize("text", ["ampere", "", "sm", "sm8", "sm89,,sm86", "8.9", "current,sm89"])
def test_refusals(text: str) -> None:
    with pytest.raises(EngineError) as caught:
        parse_targets([text])
    assert caught.value.kind == "target"
    assert "--target" in caught.value.message


@pytest.mark.parametrize(
    ("installed", "targets", "gpu", "expected"),
    [
        ({"rtx", "full"}, [], True, "full"),
        ({"rtx", "full"}, ["current"], True, "full"),
        ({"rtx", "full"}, ["sm89"], True, "rtx"),
        ({"rtx", "full"}, [], False, "rtx"),
        ({"full"}, ["sm89"], False, "full"),
        ({"rtx"}, [], True, "rtx"),
    ],
)
def test_auto(
    monkeypatch: pytest.MonkeyPatch, installed: set[str], targets: list[str], gpu: bool, expected: str
) -> None:
    monkeypatch.setattr(flavors, "is_installed", lambda flavor: flavor.name in installed)
    assert flavors.choose_flavor("auto", targets, gpu).name == expected


def test_nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flavors, "is_installed", lambda flavor: False)
    for wanted in ("auto", "rtx", "full"):
        with pytest.raises(EngineError) as caught:
            flavors.choose_flavor(wanted, [], False)
        assert caught.value.exit_code == 3
        assert "pip install tensorrt" in caught.value.next_step


@pytest.mark.parametrize(
    ("variable", "in_wheel", "is_named"),
    [("/opt/python", False, True), ("", False, False), ("/opt/python", True, False)],
)
def test_only_a_python_that_the_user_chose_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, in_wheel: bool, is_named: bool
) -> None:
    """The program of a wheel sets GRAFT_PYTHON too, to the Python in which the wheel is installed."""
    monkeypatch.setattr(flavors, "is_installed", lambda flavor: False)
    monkeypatch.setenv("GRAFT_PYTHON", variable)
    package = pathlib.Path(flavors.__file__).resolve().parents[1]
    monkeypatch.setattr(sys, "prefix", str(package.parent) if in_wheel else "/opt")
    with pytest.raises(EngineError) as caught:
        flavors.choose_flavor("auto", [], False)
    assert ("unset GRAFT_PYTHON" in caught.value.next_step) == is_named


@pytest.mark.parametrize(
    ("has_file", "devices", "words"),
    [
        (False, [], "has no GPU"),
        (True, [], "cuInit returned CUDA error 999"),
        (True, [{"name": "A GPU"}], ""),
    ],
)
def test_a_gpu_counts_where_cuda_can_use_it(
    monkeypatch: pytest.MonkeyPatch, has_file: bool, devices: list[dict[str, str]], words: str
) -> None:
    """`--target current` is chosen by the same answer as the build checks it by."""
    answer = {"cuda": {"devices": devices, "reason": "cuInit returned CUDA error 999"}}
    monkeypatch.setattr(cli, "gpu_seems_present", lambda: has_file)
    monkeypatch.setattr(cli, "run_worker", lambda request, flavor, relay: answer)
    found = cli.why_no_gpu()
    assert words in found and bool(words) == bool(found)
