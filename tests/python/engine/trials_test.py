# Tests the `trials` command: many trials in one TensorRT process, some of which crash it.
from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import models
import numpy as np
import onnx
import pytest
from conftest import HERE, driver_environment, has_gone
from graft.engine.flavors import flavor_named
from graft.engine.sizes import known_shapes
from graft.engine.trials import Trials
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.usefixtures("rtx")


def ask(*questions: dict[str, Any], libraries: tuple[pathlib.Path, ...] = ()) -> list[dict[str, Any]]:
    """Returns the results; the first is the result of the action `start`."""
    start = {"action": "start", "plugin_libraries": [str(library) for library in libraries]}
    lines = [start] + [{"limit": 60, "shapes": []} | question for question in questions]
    done = subprocess.run(
        [sys.executable, "-m", "graft.engine", "trials", "--tensorrt", "rtx", "--target", "sm89"],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        env=driver_environment(),
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    *answers, result = map(json.loads, done.stdout.splitlines())
    assert result["event"] == "result"
    assert len(answers) == len(lines)
    return answers


def build(model: pathlib.Path, **settings: Any) -> dict[str, Any]:
    return {"action": "build", "model": str(model)} | settings


def two_outputs(path: pathlib.Path, node: onnx.NodeProto, shape: list[int], k: int) -> pathlib.Path:
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    types = (TensorProto.FLOAT, TensorProto.INT64)
    outputs = [helper.make_tensor_value_info(*end, None) for end in zip(node.output, types, strict=True)]
    graph = helper.make_graph([node], "g", ends, outputs, [numpy_helper.from_array(np.array([k]), "k")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_the_first_answer_tells_which_tensorrt_and_which_plugins(fixture_library: pathlib.Path) -> None:
    (ready,) = ask(libraries=(fixture_library,))
    assert ready["tensorrt"]["flavor"] == "rtx"
    owners = {creator["name"]: creator["library"] for creator in ready["creators"]}
    assert owners["FixtureIdentity"] == str(fixture_library)
    assert owners["ROIAlign_TRT"] == ""  # TensorRT's own


def test_each_level_has_its_outcome(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    good = models.convolution(tmp_path / "good.onnx")
    det = models.save(tmp_path / "det.onnx", [helper.make_node("Det", ["x"], ["y"], name="det")], [2, 3, 3])
    top_k = helper.make_node("TopK", ["x", "k"], ["v", "i"], name="top")
    big = two_outputs(tmp_path / "big.onnx", top_k, [1, 8000], 5000)
    custom = models.fixture(tmp_path / "custom.onnx", "FixtureIdentity", gain=2.0)
    _, accepted, refused, parsed, failed, plugin = ask(
        build(good), build(det), build(big, action="parse"), build(big), build(custom), libraries=(fixture_library,)
    )
    assert accepted["outcome"] == "accepted"
    assert refused["outcome"] == "refused"
    assert refused["errors"][0]["node"] == "det"
    assert parsed["outcome"] == "accepted"
    assert failed["outcome"] == "failed"
    assert any("K exceeds the maximum value allowed (3840)" in m["message"] for m in failed["messages"])
    assert plugin["plugins"][0]["name"] == "FixtureIdentity"
    assert plugin["workers"] == 1


def test_a_build_reports_the_sizes_of_tensors_for_each_size_of_the_inputs(tmp_path: pathlib.Path) -> None:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["y"], name="mean"),
    ]
    model = models.save(tmp_path / "m.onnx", nodes, [1, 3, "h", 8])
    ranges = ["x=1x3x4x8..1x3x6x8..1x3x9x8"]
    _, parsed, built = ask(build(model, action="parse"), build(model, shapes=ranges))
    assert parsed["tensors"] == {}
    assert built["tensors"] == {
        "types": {"y": "f32"},
        "sizes": [
            {"inputs": {"x": [1, 3, rows, 8]}, "shapes": {"p": [1, 3, rows // 2, 4], "y": [1, 3, 1, 1]}}
            for rows in (6, 4, 9)
        ],
    }
    assert not [each for each in built["messages"] if each["severity"] != "warning"]


def test_a_crash_and_a_hang_cost_a_worker_and_no_more(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    good = models.convolution(tmp_path / "good.onnx")
    aborts, segfaults, hangs = (
        models.fixture(tmp_path / f"{name}.onnx", f"Fixture{name}") for name in ("Abort", "Segfault", "Hang")
    )
    _, first, second, third, fourth, last = ask(
        build(aborts), build(good), build(segfaults), build(hangs, limit=2), build(good), libraries=(fixture_library,)
    )
    assert (first["outcome"], first["signal"]) == ("crashed", "SIGABRT")
    assert (third["outcome"], third["signal"]) == ("crashed", "SIGSEGV")
    assert fourth["outcome"] == "hung"
    assert fourth["seconds"] >= 2
    assert second["outcome"] == last["outcome"] == "accepted"
    assert last["workers"] == 4


def test_a_crash_that_leaves_a_process_behind(
    tmp_path: pathlib.Path, fixture_library: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remaining process keeps the worker's pipes open, which must not count as a sign of life."""
    child = tmp_path / "child"
    monkeypatch.setenv("FIXTURE_CHILD", str(child))
    good = models.convolution(tmp_path / "good.onnx")
    forks = models.fixture(tmp_path / "forks.onnx", "FixtureFork")
    _, crashed, accepted = ask(build(forks), build(good), libraries=(fixture_library,))
    assert (crashed["outcome"], crashed["signal"]) == ("crashed", "SIGABRT")
    assert has_gone(int(child.read_text()))
    assert accepted["outcome"] == "accepted"


def test_an_answer_that_a_plugin_wrote_is_not_believed(
    tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]
) -> None:
    """The plugin forges the message that its model is accepted, then ends the process."""
    source = tmp_path / "forges.cpp"
    text = (HERE / "fixture_plugins.cpp").read_text()
    forge = """{
      char const line[] = "{\\"event\\":\\"answer\\",\\"outcome\\":\\"accepted\\",\\"plugins\\":[]}\\n";
      for (int descriptor = 3; descriptor < 64; ++descriptor) (void)!::write(descriptor, line, sizeof line - 1);
      ::_exit(0);
    }"""
    before = "if (behavior_ == Behavior::kAbortInBuild) std::abort();"
    assert before in text
    source.write_text(text.replace(before, before.replace("std::abort();", forge)))
    forged = models.fixture(tmp_path / "forged.onnx", "FixtureAbort")
    good = models.convolution(tmp_path / "good.onnx")
    _, crashed, accepted = ask(build(forged), build(good), libraries=(compile_library(source, "libforges.so"),))
    assert (crashed["outcome"], crashed["return_code"]) == ("crashed", 0)
    assert accepted["outcome"] == "accepted"


def test_an_open_size_is_asked_for(tmp_path: pathlib.Path) -> None:
    model = models.dynamic(tmp_path / "dynamic.onnx")
    _, without, given = ask(build(model), build(model, shapes=["x=1x3x8x8..2x3x8x8..4x3x9x9"]))
    assert without["outcome"] == "shapes"
    assert without["inputs"] == ["x"]
    assert given["outcome"] == "accepted"


def test_two_that_only_crash_together(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    """The search for the smallest failing part is tested with these nodes: each alone builds, also in the same
    worker."""

    def chain(name: str, *axes: int) -> pathlib.Path:
        values = ["x", *(f"v{i}" for i in range(len(axes) - 1)), "y"]
        nodes = [
            helper.make_node("FixturePair", [values[i]], [values[i + 1]], name=f"n{i}", domain="fixture", axes=[axis])
            for i, axis in enumerate(axes)
        ]
        return models.save(tmp_path / name, nodes, [1, 4])

    one, two, both = chain("one.onnx", 1), chain("two.onnx", 2), chain("both.onnx", 1, 2)
    answers = ask(build(one), build(two), build(both), build(two), libraries=(fixture_library,))
    assert [answer["outcome"] for answer in answers[1:]] == ["accepted", "accepted", "crashed", "accepted"]


@pytest.mark.parametrize("verbose", [False, True])
def test_a_worker_writes_verbose_messages_where_they_are_relayed(tmp_path: pathlib.Path, verbose: bool) -> None:
    """A build has thousands of verbose messages, which take more time than the build of a small part."""
    request: dict[str, Any] = {
        "command": "trials",
        "flavor": "rtx",
        "plugin_override": False,
        "targets": ["sm89"],
        "verbose": verbose,
    }
    relayed: list[dict[str, Any]] = []
    with Trials(request, flavor_named("rtx"), relayed.append) as trials:
        trials.start(libraries=[])
        answer = trials.ask(build(models.convolution(tmp_path / "m.onnx"), limit=60, shapes=[]))
    assert answer["outcome"] == "accepted"
    assert any(event["severity"] == "verbose" for event in relayed) == verbose


def test_a_tensor_whose_shape_tensorrt_cannot_give_has_no_sizes() -> None:
    """`shape` of some tensors behind shape tensors raises RuntimeError, and of one without a rank ValueError.
    A branch may have a tensor with the name of another tensor, and then the name says nothing."""

    class Tensor:
        def __init__(self, name: str, error: Exception | None) -> None:
            self.name = name
            self.error = error

        @property
        def shape(self) -> tuple[int, ...]:
            if self.error:
                raise self.error
            return (2, 3)

    tensors = [
        Tensor("a", RuntimeError("Could not get tensor shape.")),
        Tensor("b", ValueError("__len__() should return >= 0")),
        Tensor("c", None),
        Tensor("d", None),
        Tensor("e", None),
        Tensor("d", None),
        Tensor("e", RuntimeError("Could not get tensor shape.")),
    ]

    class Layer:
        num_outputs = len(tensors)

        def get_output(self, number: int) -> Tensor:
            return tensors[number]

    class Network:
        num_layers = 1

        def get_layer(self, _index: int) -> Layer:
            return Layer()

    assert known_shapes(Network()) == {"c": [2, 3]}
