# Tests both of PyTorch's exporters: they write Graft's nodes with their functions, which ONNX Runtime and `graft
# convert` read.
import importlib.util
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

import graft  # noqa: E402
import graft.torch  # noqa: E402
from graft._definitions import DEFINITIONS  # noqa: E402
from samples import NAMES, SAMPLES, TOLERANCES, difference  # noqa: E402

# `ci/gpu` tests a package with graft.ops alone, whose extension needs no further library.
needs_toolkit = pytest.mark.skipif(
    importlib.util.find_spec("graft._toolkit") is None, reason="this package has no graft._toolkit"
)


class Network(torch.nn.Module):
    def __init__(self, sample, dtype, weights):
        super().__init__()
        self.sample, self.dtype = sample, dtype
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(w, requires_grad=False) for w in weights)

    def forward(self, x):
        return getattr(graft.torch, self.sample.function)(x, *self.weights, **self.sample.named(self.dtype))


def run(path, x):
    options = onnxruntime.SessionOptions()
    if x.dtype == torch.int8:
        # ONNX Runtime 1.31 moves a QuantizeLinear ahead of preceding reductions and sums, which are then quantized.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0])


def test_what_the_exporter_lacks_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxscript", None)  # simulates a missing package
    network = torch.nn.Identity()
    with pytest.raises(graft.Error, match="onnxscript is not installed") as raised:
        graft.torch.export(network, (torch.zeros(1),), tmp_path / "n.onnx")
    assert raised.value.kind == "missing_tool" and "pip install onnxscript" in str(raised.value)


@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "torchscript"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "i8"])  # ONNX Runtime's bindings take no bf16 from NumPy
@pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)
def test_export_runs_in_onnx_runtime(sample, dtype, dynamo, tmp_path):
    x, *weights = sample.inputs(dtype, "cpu")
    network = Network(sample, dtype, weights).eval()
    path = tmp_path / "network.onnx"
    graft.torch.export(network, (x,), path, dynamo=dynamo)
    model = onnx.load(path)
    (node,) = [node for node in model.graph.node if node.domain == "graft"]
    assert node.op_type.startswith(DEFINITIONS[sample.function].name)
    assert node.op_type in {function.name for function in model.functions}
    found, expected = run(path, x), network(x)
    if dtype == "i8":
        assert int((found.int() - expected.int()).abs().max()) <= 1
    else:
        assert difference(found, expected) < TOLERANCES[dtype]


class Several(torch.nn.Module):
    def forward(self, x):
        x = graft.torch.padding(x, pads=[0, 0, 1, 1, 0, 0, 1, 1], mode="reflect")
        x = graft.torch.upsampling(x, mode="linear", scales=[2.0])
        x = graft.torch.l2_normalize(x, axes=[1], epsilon_mode="norm")
        return graft.torch.spatial_pyramid_pooling(x, levels=[2, 1])


@needs_toolkit
def test_what_the_exporter_returns_is_a_model():
    x = torch.randn(2, 3, 8, 9)
    program = torch.onnx.export(Several(), (x,), dynamo=True, custom_translation_table=graft.torch.onnx_translations())
    model = graft.convert(program).model
    (found,) = graft.Session(model).run(x).values()  # tensors are accepted as arrays
    assert difference(torch.from_numpy(found), Several()(x)) < 1e-5
    assert graft.verify(program, model, data=x).same
    with pytest.raises(TypeError, match=r"this is Several\nExport it with torch.onnx.export"):
        graft.load(Several())


@needs_toolkit
def test_dynamic_sizes_and_convert(tmp_path):
    path, converted = tmp_path / "network.onnx", tmp_path / "converted.onnx"
    x = torch.randn(2, 3, 8, 9)
    sizes = {"x": {0: torch.export.Dim("n"), 2: torch.export.Dim("h"), 3: torch.export.Dim("w")}}
    graft.torch.export(Several(), (x,), path, dynamic_shapes=sizes)
    other = torch.randn(3, 3, 12, 7)
    assert difference(run(path, other), Several()(other)) < 1e-5
    graft.convert(graft.load(path)).model.save(converted)
    operators = {node.op_type.split("_")[0] for node in onnx.load(converted).graph.node if node.domain == "graft"}
    assert {"L2Normalize", "SpatialPyramidPooling"} <= operators
    assert difference(run(converted, other), Several()(other)) < 1e-5


def test_own_export_with_the_table(tmp_path):
    program = torch.onnx.export(
        Several(), (torch.randn(1, 3, 8, 8),), dynamo=True, custom_translation_table=graft.torch.onnx_translations()
    )
    nodes = [node.op_type for node in program.model_proto.graph.node]
    assert nodes == ["Padding", "Upsampling", "L2Normalize", "SpatialPyramidPooling"]
    onnx.save(graft.torch.add_functions(program.model_proto), tmp_path / "network.onnx")
    x = torch.randn(1, 3, 8, 8)
    np.testing.assert_allclose(run(tmp_path / "network.onnx", x), Several()(x), rtol=1e-5, atol=1e-6)
