# graft.torch: opcheck, golden data, plain PyTorch's results and gradients, torch.compile, and what is refused.
import numpy as np
import pytest
from golden_operators import assert_close, cases

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import graft.ops  # noqa: E402
import graft.torch  # noqa: E402
from graft._definitions import DEFINITIONS  # noqa: E402
from samples import DTYPES, NAMES, SAMPLES, TOLERANCES, difference  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

each_device = pytest.mark.parametrize("device", DEVICES)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_float = pytest.mark.parametrize("dtype", TOLERANCES)
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)


@pytest.fixture(autouse=True)
def full_precision():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch._dynamo.reset()


def operator(function):
    return getattr(torch.ops.graft, function).default


def named(sample, dtype="f32"):
    return dict(zip([info.name for info in DEFINITIONS[sample.function].attributes], sample.values(dtype)))


def call(sample, inputs, dtype="f32"):
    return getattr(graft.torch, sample.function)(*inputs, **named(sample, dtype))


@each_device
@each_dtype
@each_sample
def test_opcheck(sample, dtype, device):
    arguments = sample.arguments(dtype, device)
    if dtype != "i8":
        arguments = [each.requires_grad_() if isinstance(each, torch.Tensor) else each for each in arguments]
    torch.library.opcheck(operator(sample.function), tuple(arguments))


@each_device
@pytest.mark.parametrize("function", DEFINITIONS)
def test_golden_data(function, device):
    """On a GPU sums are made in f32, in another order."""
    error = {"cpu": 2.0**-24, "cuda": 1e-5}[device]
    for case in cases(function):
        if device == "cuda" and not np.isfinite(np.asarray(case.expected, np.float64)).all():
            continue  # the edges of f32 have tests of their own, in tests/gpu
        inputs = [torch.from_numpy(each.view(np.int16)).view(torch.bfloat16) if each.dtype.name == "bfloat16"
                  else torch.from_numpy(each) for each in case.inputs]  # fmt: skip
        y = getattr(graft.torch, function)(*(each.to(device) for each in inputs), **case.attributes)
        found = y.cpu().float() if case.dtype != "i8" else y.cpu()
        if device == "cuda":
            slack = 1 if case.dtype == "i8" else error * max(1.0, float(np.abs(case.expected).max(initial=0)))
            slack += {"f32": 0, "i8": 0, "f16": 2.0**-10, "bf16": 2.0**-7}[case.dtype] * np.abs(case.expected)
            assert (np.abs(found.numpy().astype(np.float64) - case.expected) <= slack).all(), case.name
        else:
            assert_close(found.numpy(), case, error)


@each_device
@each_float
@each_sample
def test_equals_plain_pytorch(sample, dtype, device):
    inputs = sample.inputs(dtype, device)
    exact = sample.plain(*(each.float() for each in inputs))
    assert difference(call(sample, inputs), exact) < TOLERANCES[dtype]


@each_device
@each_float
@each_sample
def test_gradients_equal_plain_pytorch(sample, dtype, device):
    inputs = [each.requires_grad_() for each in sample.inputs(dtype, device)]
    y = call(sample, inputs)
    weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(device)
    found = torch.autograd.grad(y, inputs, weights.to(y.dtype))
    exact_inputs = [each.detach().float().requires_grad_() for each in inputs]
    expected = torch.autograd.grad(sample.plain(*exact_inputs), exact_inputs, weights)
    for each, exact, given in zip(found, expected, inputs):
        assert each.dtype == given.dtype
        assert difference(each, exact) < 4 * TOLERANCES[dtype]


@each_device
@each_sample
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_compiles_without_a_graph_break(sample, dynamic, device):
    function, attributes = getattr(graft.torch, sample.function), named(sample)
    compiled = torch.compile(
        lambda *inputs: function(*inputs, **attributes) * 2, fullgraph=True, dynamic=dynamic, backend="aot_eager"
    )
    inputs = sample.inputs("f32", device)
    assert difference(compiled(*inputs), call(sample, inputs) * 2) < 1e-6
    if dynamic:
        longer = [torch.randn(5, 6, 13, 10, device=device).abs(), *inputs[1:]]
        assert difference(compiled(*longer), call(sample, longer) * 2) < 1e-6


@each_device
def test_gradients_through_compiled_code(device):
    def loss(x, w, b):
        y = graft.torch.convolution(x, w, b, pad=[1, 1], activation="relu")
        y = graft.torch.upsampling(graft.torch.l2_normalize(y), mode="linear", scales=[2.0])
        return graft.torch.spatial_pyramid_pooling(y, levels=[2, 1], mode="average").square().sum()

    inputs = [torch.randn(shape, device=device, requires_grad=True) for shape in [(2, 3, 8, 8), (4, 3, 3, 3), (4,)]]
    expected = torch.autograd.grad(loss(*inputs), inputs)
    compiled = torch.compile(loss, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")
    for found, exact in zip(torch.autograd.grad(compiled(*inputs), inputs), expected):
        assert difference(found, exact) < 1e-4


@each_device
def test_strided_inputs_are_made_contiguous(device):
    x = torch.randn(2, 8, 6, 5, device=device).to(memory_format=torch.channels_last)
    assert torch.equal(graft.torch.l2_normalize(x), graft.torch.l2_normalize(x.contiguous()))


@each_device
def test_graft_ops_on_tensors(device):
    x = torch.randn(2, 8, 6, 5, device=device)
    out = torch.empty_like(x)
    assert graft.ops.l2_normalize(x, axes=[1], out=out) is out
    assert torch.equal(out, graft.torch.l2_normalize(x, axes=[1]))
    with pytest.raises(ValueError, match="graft.ops has no gradients: use graft.torch"):
        graft.ops.l2_normalize(x.requires_grad_())


def test_gradients_that_there_are_not():
    x = torch.randn(1, 2, 8, 8, requires_grad=True)
    y = graft.torch.spatial_pyramid_pooling(x, levels=[3], binning="window")
    with pytest.raises(NotImplementedError, match="no gradient with binning window; allowed: adaptive"):
        y.sum().backward()
    y = graft.torch.instance_norm(x, scales=[1.0, 2.0])
    with pytest.raises(NotImplementedError, match="no gradient with the attribute scales: give the input scale"):
        y.sum().backward()
    y = graft.torch.convolution(x, num_output=1, kernel=[1, 1], kernel_weights=[1.0, 2.0])
    with pytest.raises(NotImplementedError, match="no gradient with weights in attributes"):
        y.sum().backward()


@pytest.mark.parametrize("function", DEFINITIONS)
def test_vmap_is_refused(function):
    sample = next(each for each in SAMPLES if each.function == function)
    inputs = sample.inputs("f32", "cpu")
    with pytest.raises(NotImplementedError, match=f"graft::{function} has no vmap rule"):
        torch.vmap(lambda x: call(sample, [x, *inputs[1:]]))(inputs[0].unsqueeze(0))


@each_device
def test_refused(device):
    x = torch.randn(2, 3, 4, device=device)
    with pytest.raises(ValueError, match="l2_normalize: input x is float64; allowed: f32, f16, bf16, i8"):
        graft.torch.l2_normalize(x.double())
    with pytest.raises(ValueError, match="L2Normalize: attribute `axes`: found 5, allowed is -3 to 2 for rank 3"):
        graft.torch.l2_normalize(x, axes=[5])
    with pytest.raises(ValueError, match="instance_norm: input scale is f16; allowed: f32"):
        graft.torch.instance_norm(x, torch.ones(3, device=device, dtype=torch.float16))
    with pytest.raises(ValueError, match="is left out, so bias has to be left out too"):
        graft.torch.instance_norm(x, None, torch.ones(3, device=device))
