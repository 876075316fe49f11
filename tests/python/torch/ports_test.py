# Tests graft.torch with operators that have several results, integers, lists of tensors, or integers that are sizes:
# Graft's own and those of a library. The expected results are PyTorch's.
import itertools
import os
import pathlib

import graft
import graft.ops
import pytest
from golden_operators import cases

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
F = torch.nn.functional

import graft.torch  # noqa: E402
from graft._definitions import FIXED_SIZE_DEFINITIONS  # noqa: E402
from samples import SAMPLES, difference  # noqa: E402

BUILT = pathlib.Path(__file__).parents[3] / "build" / "gpu" / "tests" / "operators"
LIBRARIES = pathlib.Path(os.environ.get("GRAFT_OPERATOR_LIBRARIES", BUILT))
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
each_device = pytest.mark.parametrize("device", DEVICES)
each_dynamic = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
WITHOUT_SAMPLES = sorted(set(FIXED_SIZE_DEFINITIONS) - {sample.function for sample in SAMPLES})


@pytest.fixture(scope="module")
def my():
    """Loads the operators of the library, with CUDA kernels where the build has them."""
    for name in ("libmy_plugins.so", "libmy_operators.so"):
        if (LIBRARIES / name).exists():
            return graft.torch.load_operators(LIBRARIES / name)
    pytest.skip(f"there is no library of operators in {LIBRARIES}")


@pytest.fixture(autouse=True)
def fresh():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch._dynamo.reset()


def namespace(my):
    return torch.ops.my_plugins if "my_plugins" in my._library else torch.ops.my_operators


def golden(function, device):
    case = next(each for each in cases(function) if each.dtype == "f32" and each.inputs[0].size)
    return [torch.from_numpy(each).to(device) for each in case.inputs], case.attributes


@each_device
@pytest.mark.parametrize("function", WITHOUT_SAMPLES)
def test_opcheck(function, device):
    inputs, attributes = golden(function, device)
    torch.library.opcheck(getattr(torch.ops.graft, function).default, tuple(inputs), attributes)


@each_device
@each_dynamic
@pytest.mark.parametrize("function", WITHOUT_SAMPLES)
def test_compiles_without_a_graph_break(function, dynamic, device):
    inputs, attributes = golden(function, device)
    run = getattr(graft.torch, function)
    compiled = torch.compile(
        lambda *given: run(*given, **attributes), fullgraph=True, dynamic=dynamic, backend="aot_eager"
    )
    torch.testing.assert_close(compiled(*inputs), run(*inputs, **attributes), rtol=0, atol=0, equal_nan=True)


@each_device
@pytest.mark.parametrize("function", WITHOUT_SAMPLES)
def test_what_has_no_gradient_says_so(function, device):
    inputs, attributes = golden(function, device)
    inputs[0].requires_grad_()
    result = getattr(graft.torch, function)(*inputs, **attributes)
    result = result[0] if isinstance(result, tuple) else result
    with pytest.raises(NotImplementedError, match=f"graft::{function} has no gradient"):
        result.sum().backward()


@each_device
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int64])
def test_two_results_are_those_of_topk(dtype, device):
    x = torch.arange(60, device=device).roll(17).reshape(3, 20).flip(1).to(dtype)
    values, indices = graft.torch.largest_k(x, k=5, axis=1)
    expected = torch.topk(x, 5, dim=1)
    assert values.dtype == dtype and indices.dtype == torch.int64
    assert torch.equal(values, expected.values) and torch.equal(indices, expected.indices)
    strided = torch.ops.graft.largest_k(x.t().contiguous().t(), k=5, axis=1)
    assert torch.equal(strided[0], values) and torch.equal(strided[1], indices)


@each_device
def test_integers_are_indices(device):
    x = torch.randn(4, 6, device=device)
    indices = torch.randint(0, 4, (3, 6), device=device)
    updates = torch.randn(3, 6, device=device)
    found = graft.torch.scatter_reduce_elements(x, indices, updates, reduction="add", axis=0)
    torch.testing.assert_close(found, x.scatter_add(0, indices, updates))


def sampled(theta, size, corners):
    return F.affine_grid(theta, list(size), align_corners=bool(corners))


SIZES = [(2, 3, 5, 7), (1, 1, 1, 1), (2, 1, 3, 4, 5)]


@each_device
@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("size", SIZES)
def test_integers_say_the_size(my, size, corners, device):
    axes = len(size) - 2
    theta = torch.randn(size[0], axes, axes + 1, device=device)
    expected = sampled(theta, size, corners)
    operator = namespace(my).affine_sampling
    for run, given in itertools.product((my.affine_sampling, operator), (size, list(size), torch.Size(size))):
        assert difference(run(theta, given, align_corners=corners), expected) < 1e-5
    for given in (torch.tensor(size), torch.tensor(size, dtype=torch.int32), torch.tensor(size).numpy()):
        assert difference(my.affine_sampling(theta, given, align_corners=corners), expected) < 1e-5
    spread = theta.transpose(1, 2).contiguous().transpose(1, 2)
    assert difference(my.affine_sampling(spread, size, align_corners=corners), expected) < 1e-5
    torch.library.opcheck(operator.default, (theta, list(size)), {"align_corners": corners})


@each_device
@each_dynamic
def test_sizes_of_compiled_code(my, dynamic, device):
    """The size is computed from the sizes of another tensor: with `dynamic`, one compiled program serves all sizes."""
    testing = pytest.importorskip("torch._dynamo.testing")
    count = testing.CompileCounterWithBackend("aot_eager")

    def network(theta, image):
        n, c, h, w = image.shape
        return my.affine_sampling(theta, [n, c, 2 * h, w + 1]) * 2

    compiled = torch.compile(network, fullgraph=True, dynamic=dynamic, backend=count)
    # all sizes differ, because PyTorch treats equal sizes as one symbol
    for n, h, w in ((4, 5, 7), (5, 6, 9), (6, 11, 8)):
        theta, image = torch.randn(n, 2, 3, device=device), torch.randn(n, 1, h, w, device=device)
        found = compiled(theta, image)
        assert difference(found, sampled(theta, (n, 1, 2 * h, w + 1), 0) * 2) < 1e-5
    assert not dynamic or count.frame_count == 1


def fused(w, maps, epsilon=1e-4):
    w = w.float().relu()
    return sum(share * each.float() for share, each in zip(w, maps)) / (w.sum() + epsilon)


@each_device
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_a_list_of_tensors(my, count, dtype, device):
    w = torch.rand(count, device=device).to(dtype) + 0.1
    maps = [torch.randn(2, 3, 5, device=device).to(dtype) for _ in range(count)]
    expected = fused(w, maps)
    operator = namespace(my).fast_normalized_fusion
    tolerance = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    for found in (my.fast_normalized_fusion(w, maps), my.fast_normalized_fusion(w, tuple(maps)), operator(w, maps)):
        assert found.dtype == dtype
        assert difference(found, expected) < tolerance
    spread = [each.transpose(0, 2).contiguous().transpose(0, 2) for each in maps]
    assert torch.equal(my.fast_normalized_fusion(w, spread), operator(w, maps))
    torch.library.opcheck(operator.default, (w, maps), {"epsilon": 1e-3})


@each_device
@each_dynamic
def test_lists_in_compiled_code(my, dynamic, device):
    def network(w, x, y):
        return my.fast_normalized_fusion(w, [x, F.interpolate(y, scale_factor=2)]) * 2

    compiled = torch.compile(network, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for h in (3, 5):
        given = [torch.rand(2, device=device), *(torch.randn(1, 4, s, s, device=device) for s in (2 * h, h))]
        maps = [given[1], F.interpolate(given[2], scale_factor=2)]
        assert difference(compiled(*given), fused(given[0], maps) * 2) < 1e-5


@each_device
def test_several_results_of_a_library(my, device):
    x = torch.randn(2, 3, 4, 6, device=device)
    positive, negative = my.split_sign(x)
    assert torch.equal(positive, x.clamp(min=0)) and torch.equal(negative, x.clamp(max=0))
    assert torch.equal(my.pixel_unshuffle(x, factor=2), F.pixel_unshuffle(x, 2))
    assert difference(my.snake(x, alpha=2.0), x + (2 * x).sin() ** 2 / 2) < 1e-5
    torch.library.opcheck(namespace(my).split_sign.default, (x,), {})


@each_device
def test_transforms_and_gradients_are_refused_by_name(my, device):
    w, x, y = (torch.randn(shape, device=device, requires_grad=True) for shape in [(2,), (2, 3), (2, 3)])
    theta = torch.randn(2, 2, 3, device=device, requires_grad=True)
    calls = {
        "fast_normalized_fusion": lambda each: my.fast_normalized_fusion(w, [each, y]),
        "affine_sampling": lambda each: my.affine_sampling(theta * each.sum(), [2, 1, 3, 3]),
    }
    for name, call in calls.items():
        with pytest.raises(NotImplementedError, match=f"{name} has no gradient"):
            call(x).sum().backward()
        with pytest.raises(NotImplementedError, match=f"{name} has no gradient"):
            torch.func.grad(lambda each: call(each).sum())(x)  # noqa: B023
        with pytest.raises(NotImplementedError, match=f"{name} has no rule for torch.vmap"):
            torch.func.vmap(call)(x.unsqueeze(0))
        with pytest.raises(NotImplementedError, match=f"{name} has no forward-mode derivative"):
            torch.func.jvp(call, (x,), (torch.ones_like(x),))


def test_a_transform_around_what_it_does_not_follow(my):
    w, maps = torch.rand(2), [torch.randn(2, 3), torch.randn(2, 3)]
    found = torch.func.grad(lambda x: (x * my.fast_normalized_fusion(w, maps)).sum())(torch.ones(2, 3))
    assert difference(found, fused(w, maps)) < 1e-5


@each_device
def test_refused(my, device):
    w, x = torch.ones(2, device=device), torch.ones(2, 3, device=device)
    theta = torch.ones(1, 2, 3, device=device)
    for error, message, call in [
        (TypeError, "input x is Tensor; it must be a list of at least one tensor", lambda: my.fast_normalized_fusion(w, x)),
        (ValueError, "input x is an empty list", lambda: my.fast_normalized_fusion(w, [])),
        (ValueError, "input x_2 is float64; it must be f32", lambda: my.fast_normalized_fusion(w, [x, x.double()])),
        (ValueError, "input x_2 has type f16; the supported types are f32", lambda: my.fast_normalized_fusion(w, [x, x.half()])),
        (ValueError, "`x_2` is 3x2, allowed is the shape of `x_1`",
         lambda: my.fast_normalized_fusion(w, [x, x.t().contiguous()])),
        (TypeError, r"input size is float32 \(4,\) on cpu; it must be a list of integers",
         lambda: my.affine_sampling(theta, torch.ones(4))),
        (ValueError, "`size` 3 values, allowed are 3, and 4 or 5", lambda: my.affine_sampling(theta, [1, 2, 3])),
        (AttributeError, "has no select_rows: the size of its result depends on data", lambda: my.select_rows),
        (AttributeError, "has no nothing$", lambda: my.nothing),
        (AttributeError, "graft.torch has no non_zero: the size of its result depends on data", lambda: graft.torch.non_zero),
        (graft.Error, "no such file", lambda: graft.torch.load_operators("nowhere.so")),
    ]:  # fmt: skip
        with pytest.raises(error, match=message):
            call()


@each_device
def test_graft_ops_runs_the_same_kernels(my, device):
    again = graft.ops.load_operators(LIBRARIES / f"lib{namespace(my).name}.so")
    w, maps = torch.rand(2, device=device), [torch.randn(2, 3, device=device) for _ in range(2)]
    assert torch.equal(again.fast_normalized_fusion(w, maps), my.fast_normalized_fusion(w, maps))
    theta = torch.randn(2, 2, 3, device=device)
    size = torch.tensor([2, 1, 3, 3])
    assert torch.equal(again.affine_sampling(theta, size), my.affine_sampling(theta, size))
    assert again.select_rows(torch.ones(3, 2, device=device), torch.ones(3, device=device))[-1].item() == 3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_sizes_on_a_device_are_refused(my):
    with pytest.raises(TypeError, match=r"input size is int64 \(4,\) on cuda:0; it must be a list of integers"):
        my.affine_sampling(torch.ones(1, 2, 3, device="cuda"), torch.ones(4, dtype=torch.int64, device="cuda"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_lists_and_sizes_in_a_graph(my):
    w, maps = torch.rand(2, device="cuda"), [torch.randn(2, 3, device="cuda") for _ in range(2)]
    theta = torch.randn(2, 2, 3, device="cuda")

    def run():
        return my.fast_normalized_fusion(w, maps), my.affine_sampling(theta, [2, 1, 3, 3])

    expected = run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = run()
    graph.replay()
    torch.cuda.synchronize()
    for each, exact in zip(found, expected):
        assert torch.equal(each, exact)


class Fused(torch.nn.Module):
    def __init__(self, my):
        super().__init__()
        self.my = my

    def forward(self, w, x, theta):
        n, c, h, width = x.shape
        grid = self.my.affine_sampling(theta, [n, c, h, width])
        values, indices = graft.torch.largest_k(x, k=2, axis=3)
        return self.my.fast_normalized_fusion(w, [x, x * x, x + 1]), grid, values, indices


# Tracing to TorchScript turns the integers of a call into constants.
@pytest.mark.parametrize(
    ("dynamo", "dynamic"),
    [(True, False), (True, True), (False, False)],
    ids=["dynamo", "dynamo_dynamic", "torchscript"],
)
def test_export_runs_in_onnx_runtime(my, dynamo, dynamic, tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    network = Fused(my).eval()
    path = tmp_path / "network.onnx"

    def inputs(n, h):
        return torch.rand(3), torch.randn(n, 2, h, 5), torch.randn(n, 2, 3)

    names = {"input_names": ["w", "x", "theta"], "output_names": ["fused", "grid", "values", "indices"]}
    if dynamic:
        n, h = torch.export.Dim("n"), torch.export.Dim("h")
        names["dynamic_shapes"] = {"w": None, "x": {0: n, 2: h}, "theta": {0: n}}
    graft.torch.export(network, inputs(2, 4), path, dynamo=dynamo, **names)
    model = onnx.load(path)
    nodes = [node.op_type for node in model.graph.node if node.domain == "graft"]
    assert sorted(nodes) == ["AffineSampling", "FastNormalizedFusion_3", "LargestK_2"]
    assert {function.name for function in model.functions} >= set(nodes)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for given in [inputs(2, 4), *([inputs(3, 6)] if dynamic else [])]:
        feeds = {each.name: tensor.numpy() for each, tensor in zip(session.get_inputs(), given)}
        for found, expected in zip(session.run(None, feeds), network(*given)):
            torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-5, atol=1e-5)
