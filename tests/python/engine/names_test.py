# Tests that messages of the driver name options as the program that runs it does.
from __future__ import annotations

import ast
import json
import pathlib

import pytest
from conftest import drive, driver_environment
from onnx import TensorProto, helper, save

NAMES = {"--target": "BuildOptions::targets", "--memory": "memory", "--optimization-level": "`optimization_level`"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "nothing"], "BuildOptions::targets nothing: not a target"),
        (["--memory", "shop=1MiB"], "memory shop=1MiB: unknown pool"),
        (["--memory", "workspace"], "memory workspace: =SIZE is missing"),
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


def test_a_next_step_of_python_is_python(tmp_path: pathlib.Path) -> None:
    """The message proposes a valid argument `shapes` of graft.build."""
    model = tmp_path / "relu.onnx"
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ports[:1], ports[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    command = ["build", model, "--output", tmp_path / "no.engine", "--tensorrt", "rtx", "--target", "sm89"]
    environment = driver_environment() | {"GRAFT_OPTION_NAMES": json.dumps({"--shapes": "shapes"})}
    _, _, proposed = drive(*command, environment=environment).error["next_step"].partition("for example shapes=")
    proposed, _, more = proposed.partition("\n")
    assert more.startswith("By default graft.inspect tries")
    assert ast.literal_eval(proposed) == {"x": ([1, 3], [4, 3], [8, 3])}
    wrong = drive(*command, "--shapes", "image=1x3", environment=environment).error["next_step"]
    assert isinstance(ast.literal_eval(wrong.partition("for example ")[2]), dict)
    assert drive(*command).error["next_step"].splitlines()[0].endswith("for example --shapes x=1x3..4x3..8x3")


@pytest.mark.parametrize("names", ["", "no JSON", "[]"])
def test_names_that_cannot_be_read_change_nothing(tmp_path: pathlib.Path, names: str) -> None:
    command = ["build", tmp_path / "no.onnx", "--output", tmp_path / "no.engine", "--target", "nothing"]
    error = drive(*command, environment=driver_environment() | {"GRAFT_OPTION_NAMES": names}).error
    assert error["message"].startswith("--target nothing")
