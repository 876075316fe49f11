# Tests state that is updated in place: an output of a plugin uses the memory of an input.
from __future__ import annotations

import pathlib
import types

import numpy as np
import onnx
import pytest
from conftest import graft
from graft.engine.events import EngineError
from graft.engine.options import allow_aliased_ports
from onnx import TensorProto, helper, numpy_helper

FLOAT, FLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16


def step_in_place(
    path: pathlib.Path, dtype: int, has_state: bool = True, batch: int | str = 1, length: int | str = 1
) -> pathlib.Path:
    """Saves a step of a sequence whose state is updated in place, as an attribute of Graft's node requests."""
    weight = numpy_helper.from_array(np.ones((16, 1, 4)).astype(helper.tensor_dtype_to_np_dtype(dtype)), "weight")
    bias = numpy_helper.from_array(np.zeros(16).astype(helper.tensor_dtype_to_np_dtype(dtype)), "bias")
    node = helper.make_node(
        "CausalConvWithState",
        ["x", "weight", "bias", "past"][: 4 if has_state else 3],
        ["convolved", "present"],
        name="convolve",
        domain="graft",
        in_place=1,
    )
    last = helper.make_node("Relu", ["convolved"], ["y"], name="last")
    ends = (("x", length), ("past", 3))[: 2 if has_state else 1]
    inputs = [helper.make_tensor_value_info(name, dtype, [batch, 16, size]) for name, size in ends]
    outputs = [helper.make_tensor_value_info(name, dtype, None) for name in ("y", "present")]
    graph = helper.make_graph([node, last], "step", inputs, outputs, [weight, bias])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("graft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize("dtype", [FLOAT, FLOAT16])
def test_a_state_that_stays_in_place_builds(tmp_path: pathlib.Path, dtype: int) -> None:
    """TensorRT-RTX fails unless the preview flag for aliased plugin I/O is set."""
    model, engine = step_in_place(tmp_path / "m.onnx", dtype), tmp_path / "m.engine"
    (layer,) = graft("build", model, "-o", engine, "--target", "sm120", "--json", code=0).json["network"]["plugins"]
    assert (layer["layer"], layer["name"]) == ("convolve", "CausalConvWithState")
    assert layer["outputs"][1]["shape"] == layer["inputs"][3]["shape"] == [1, 16, 3]
    told = graft("inspect", model, "--json", "--probe", "builder")
    assert {node["node"]: node["verdict"] for node in told.json["nodes"]}.pop("convolve") == "plugin"


@pytest.mark.usefixtures("rtx", "graft_library")
def test_a_state_that_is_left_out_is_named(tmp_path: pathlib.Path) -> None:
    """The sizes are known only to TensorRT, whose own message is `Aliased input index for output at index 1 is
    invalid: 3`."""
    model = step_in_place(tmp_path / "m.onnx", FLOAT, has_state=False, batch="n", length="l")
    shapes = "x=1x16x1..2x16x8..4x16x64"
    built = graft("build", model, "-o", tmp_path / "m.engine", "--target", "sm120", "--shapes", shapes, code=1)
    assert "CausalConvWithState: `past_state` is absent, but `present_state` shares its memory" in built.err
    assert "Aliased input index" not in built.err


class Layer(types.SimpleNamespace):
    """A layer of a network. Its class can be changed to that of a plugin's layer, as TensorRT's bindings require."""


def network_of(major: int) -> types.SimpleNamespace:
    """Returns a network with one plugin layer whose interface has this major version, as TensorRT's bindings show
    it."""
    build = types.SimpleNamespace(interface_info=types.SimpleNamespace(kind="PLUGIN_V3ONE_BUILD", major=major))
    plugin = types.SimpleNamespace(get_capability_interface=lambda _: build)
    layer = Layer(type="v3", name="convolve", plugin=plugin)
    return types.SimpleNamespace(num_layers=1, get_layer=lambda _: layer)


@pytest.mark.parametrize("has_feature", [False, True])
@pytest.mark.parametrize("major", [1, 2])
def test_the_preview_flag_is_set_where_a_plugin_needs_it(has_feature: bool, major: int) -> None:
    trt = types.SimpleNamespace(
        IPluginV3Layer=Layer,
        LayerType=types.SimpleNamespace(PLUGIN_V3="v3"),
        PluginCapabilityType=types.SimpleNamespace(BUILD="build"),
        PreviewFeature=types.SimpleNamespace(),
    )
    if has_feature:
        trt.PreviewFeature.ALIASED_PLUGIN_IO_10_03 = "aliased"
    session = types.SimpleNamespace(trt=trt, version="tensorrt 10.2.0")
    told: list[tuple[str, bool]] = []
    config = types.SimpleNamespace(set_preview_feature=lambda feature, value: told.append((feature, value)))
    if major > 1 and not has_feature:
        with pytest.raises(
            EngineError, match="tensorrt 10.2.0 does not support plugins that update an input in place"
        ) as refused:
            allow_aliased_ports(session, config, network_of(major))
        assert "convolve" in refused.value.message
        assert "in_place = 0" in refused.value.next_step
        return
    allow_aliased_ports(session, config, network_of(major))
    assert told == ([("aliased", True)] if major > 1 else [])
