# The program that runs the driver says what its options are called.
from __future__ import annotations

import json
import pathlib

import pytest
from conftest import drive, driver_environment

NAMES = {"--target": "BuildOptions::targets", "--memory": "memory", "--optimization-level": "`optimization_level`"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "nothing"], "BuildOptions::targets nothing: not a target"),
        (["--memory", "shop=1MiB"], "memory shop=1MiB: no such pool"),
        (["--optimization-level", "x"], "argument `optimization_level`: "),
        (["--shapes", "x=1xa"], "--shapes x=1xa"),
    ],
)
def test_messages_call_options_as_they_are_told(tmp_path: pathlib.Path, arguments: list[str], words: str) -> None:
    command = ["build", tmp_path / "no.onnx", "--output", tmp_path / "no.engine", *arguments]
    environment = driver_environment() | {"GRAFT_OPTION_NAMES": json.dumps(NAMES)}
    error = drive(*command, environment=environment).error
    assert error["exit_code"] == 2 and words in error["message"]
    own = drive(*command).error
    assert arguments[0] in own["message"]


@pytest.mark.parametrize("names", ["", "no JSON", "[]"])
def test_names_that_cannot_be_read_change_nothing(tmp_path: pathlib.Path, names: str) -> None:
    command = ["build", tmp_path / "no.onnx", "--output", tmp_path / "no.engine", "--target", "nothing"]
    error = drive(*command, environment=driver_environment() | {"GRAFT_OPTION_NAMES": names}).error
    assert error["message"].startswith("--target nothing")
