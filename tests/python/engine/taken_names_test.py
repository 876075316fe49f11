# Tests Graft's libraries in a real TensorRT where another library has registered the names of NVIDIA's standard
# plugins.
from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import onnx
import pytest
from conftest import driver_environment
from onnx import TensorProto, helper

TAKEN = ["InstanceNormalization_TRT 1", "InstanceNormalization_TRT 2", "InstanceNormalization_TRT 3"]
TAKEN += ["LReLU_TRT 1", "Normalize_TRT 1", "ResizeNearest_TRT 1", "ModulatedDeformConv2d 1", "ModulatedDeformConv2d 2"]
TAKEN += ["MultiscaleDeformableAttnPlugin_TRT 1", "MultiscaleDeformableAttnPlugin_TRT 2"]

# Loads libraries like trtexec and the driver: the standard plugins first, then the named libraries. Prints the result
# of each load and all creators. With a model, builds an engine.
SCRIPT = """
import importlib, json, sys
module, taken, libraries, model, engine = sys.argv[1], *map(json.loads, sys.argv[2:4]), *sys.argv[4:6]
trt = importlib.import_module(module)

class Creator(trt.IPluginCreatorV3One):
    def __init__(self, name, version):
        trt.IPluginCreatorV3One.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = name, version, ""
        self.field_names = trt.PluginFieldCollection([])

    def create_plugin(self, name, fields, phase):
        raise AssertionError("a creator of somebody else was asked")

logger = trt.Logger(trt.Logger.ERROR)
builder = trt.Builder(logger) if hasattr(trt, "Builder") else None
registry = trt.get_plugin_registry()
creators = [Creator(*each.split()) for each in taken]
assert all(registry.register_creator(creator, "") for creator in creators)
loaded = [registry.load_library(library) is not None for library in libraries]
found = [[c.plugin_namespace, c.name, c.plugin_version] for c in registry.all_creators]
if model:
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    assert parser.parse_from_file(model), parser.get_error(0).desc()
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    with open(engine, "wb") as file:
        file.write(builder.build_serialized_network(network, config))
print(json.dumps({"loaded": loaded, "creators": found}))
"""


def run(
    flavor: str, taken: list[str], libraries: list[pathlib.Path], *model_and_engine: pathlib.Path, **variables: str
) -> dict[str, list[object]]:
    environment = driver_environment() | variables
    if "LD_LIBRARY_PATH" in os.environ:  # on this path TensorRT-RTX's parser finds its own library
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    files = [str(path) for path in model_and_engine] or ["", ""]
    command = [sys.executable, "-c", SCRIPT, f"tensorrt_{flavor}", json.dumps(taken)]
    command += [json.dumps([str(library) for library in libraries]), *files]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


LIST = pathlib.Path(__file__).resolve().parents[3] / "src" / "ops" / "ops.inc"
OPERATORS = re.findall(r"graft::ops::(\w+)\)", LIST.read_text())
FREE = {"CONVOLUTION", "LeakyReluPlugin", "MMCVDeformConv2d", "MMCVModulatedDeformConv2d", "ReflectPad", "SPP_TRT"}
FREE |= {"EfficientIdxNMS_TRT", "EfficientNMSX_TRT"}
FREE |= {"ModulatedDeformableConv2dTRT", "ModulatedDeformableConv2dTRT2", "UpsamplePlugin", "l2norm_helper"}


def names(answer: dict[str, list[object]], space: str) -> set[str]:
    return {name for found, name, _ in answer["creators"] if found == space}  # type: ignore[misc]


@pytest.mark.parametrize("flavor", ["lean", "rtx"])
def test_all_of_grafts_operators_are_there(
    flavor: str, request: pytest.FixtureRequest, graft_library: pathlib.Path, stand_ins: pathlib.Path
) -> None:
    request.getfixturevalue(flavor)
    answer = run(flavor, TAKEN, [graft_library, stand_ins])
    assert answer["loaded"] == [True, False]  # the second library does not know which names are taken
    assert names(answer, "graft") == set(OPERATORS)

    told = run(flavor, TAKEN, [graft_library, stand_ins], GRAFT_LEAVE_OUT=",".join(t.split()[0] for t in TAKEN))
    assert told["loaded"] == [True, True]
    assert names(told, "graft") == set(OPERATORS)
    assert names(told, "") >= FREE

    free = run(flavor, [], [graft_library, stand_ins])
    assert free["loaded"] == [True, True]
    assert names(free, "") >= FREE | {t.split()[0] for t in TAKEN}


@pytest.mark.usefixtures("rtx")
def test_an_engine_of_five_operators_builds(tmp_path: pathlib.Path, graft_library: pathlib.Path) -> None:
    def node(op_type: str, x: str, y: str, **attributes: object) -> onnx.NodeProto:
        return helper.make_node(op_type, [x], [y], domain="graft", plugin_namespace="graft", **attributes)

    nodes = [
        node("Padding", "x", "padded", mode="reflect", pads=[0, 0, 1, 1, 0, 0, 1, 1]),
        node("InstanceNorm", "padded", "norm", scales=[1.0, 2.0, 3.0], bias=[0.0, 0.0, 0.5], activation="relu"),
        node("LeakyReLU", "norm", "leaky", alpha=0.2),
        node("Upsampling", "leaky", "large", mode="nearest", coordinate_mode="asymmetric", scales=[2.0]),
        node("Normalize", "large", "y", weights=[1.0, 2.0, 3.0]),
    ]
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])]
    ends.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("graft", 1)]
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), model)
    run("rtx", TAKEN, [graft_library], model, engine)
    content = engine.read_bytes()
    assert all(node.op_type.encode() in content for node in nodes)
    assert not any(each.split()[0].encode() in content for each in TAKEN)
