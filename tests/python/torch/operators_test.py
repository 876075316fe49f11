# Tests graft.torch: opcheck, golden data, comparison of results and gradients with plain PyTorch, torch.compile, and
# errors.
import numpy as np
import pytest
from golden_operators import assert_close, cases

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
F = torch.nn.functional

import graft.ops  # noqa: E402
import graft.torch  # noqa: E402
from graft._definitions import FIXED_SIZE_DEFINITIONS  # noqa: E402
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


def first(result):
    return result[0] if isinstance(result, tuple) else result


def call(sample, inputs, dtype="f32"):
    return getattr(graft.torch, sample.function)(*inputs, **sample.named(dtype))


@each_device
@each_dtype
@each_sample
def test_opcheck(sample, dtype, device):
    inputs = sample.inputs(dtype, device)
    if dtype != "i8":
        inputs = [each.requires_grad_() for each in inputs]
    torch.library.opcheck(operator(sample.function), tuple(inputs), sample.named(dtype))


@each_device
@pytest.mark.parametrize("function", FIXED_SIZE_DEFINITIONS)
def test_golden_data(function, device):
    """On a GPU, sums are computed in f32 and in another order."""
    error = {"cpu": 2.0**-24, "cuda": 1e-5}[device]
    for case in cases(function):
        if device == "cuda" and not np.isfinite(np.asarray(case.expected, np.float64)).all():
            continue  # tests/gpu covers the limits of f32
        inputs = [torch.from_numpy(each.view(np.int16)).view(torch.bfloat16) if each.dtype.name == "bfloat16"
                  else torch.from_numpy(each) for each in case.inputs]  # fmt: skip
        results = getattr(graft.torch, function)(*(each.to(device) for each in inputs), **case.attributes)
        results = results if isinstance(results, tuple) else (results,)
        found, *more = ((y.float() if y.is_floating_point() else y).cpu().numpy() for y in results)
        if device == "cuda":
            slack = (
                1
                if case.dtype == "i8"
                else 0
                if case.dtype in ("i32", "i64")
                else error * max(1.0, float(np.abs(case.expected).max(initial=0)))
            )
            slack += {"f16": 2.0**-10, "bf16": 2.0**-7}.get(case.dtype, 0) * np.abs(case.expected)
            assert (np.abs(found.astype(np.float64) - case.expected) <= slack).all(), case.name
        else:
            assert_close((found, *more), case, error)


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
def test_gradients_where_optional_inputs_are_left_out(device):
    x, w, s = (torch.randn(shape, device=device, requires_grad=True) for shape in [(2, 3, 6, 6), (4, 3, 3, 3), (3,)])
    functions = torch.nn.functional
    for found, plain, inputs in [
        (graft.torch.convolution(x, w), functions.conv2d(x, w), (x, w)),
        (graft.torch.convolution(x, w, None), functions.conv2d(x, w), (x, w)),
        (graft.torch.instance_norm(x), functions.instance_norm(x), (x,)),
        (graft.torch.instance_norm(x, s), functions.instance_norm(x, weight=s), (x, s)),
        (graft.torch.normalize(x), functions.normalize(x), (x,)),
    ]:
        grad = torch.randn(plain.shape, generator=torch.Generator().manual_seed(1)).to(device)
        for one, exact in zip(torch.autograd.grad(found, inputs, grad), torch.autograd.grad(plain, inputs, grad)):
            assert difference(one, exact) < 1e-4


@each_device
@each_sample
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_compiles_without_a_graph_break(sample, dynamic, device):
    function, attributes = getattr(graft.torch, sample.function), sample.named("f32")
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
def test_attributes_of_torch_ops_have_the_defaults(device):
    x = torch.randn(2, 8, 6, 5, device=device)
    assert torch.equal(torch.ops.graft.l2_normalize(x), graft.torch.l2_normalize(x))
    assert torch.equal(torch.ops.graft.leaky_relu(x, alpha=0.5), F.leaky_relu(x, 0.5))


@each_device
def test_strided_inputs_are_made_contiguous(device):
    x = torch.randn(2, 8, 6, 5, device=device).to(memory_format=torch.channels_last)
    assert torch.equal(graft.torch.l2_normalize(x), graft.torch.l2_normalize(x.contiguous()))


def last(x):
    return x.to(memory_format=torch.channels_last)


def is_last(x):
    return x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()


CHANNELS = {
    "leaky_relu": {"alpha": 0.1},
    "l2norm_helper": {"op_type": 1, "eps": 0.25},
    "l2_normalize": {"axes": [1]},
    "padding": {"mode": "reflect", "pads": [0, 0, 2, 3, 0, 0, 2, 1]},
    "upsampling": {"mode": "linear", "scales": [2.0]},
}


@each_device
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("function", CHANNELS)
def test_channels_last_stays(function, dtype, device):
    x = torch.randn(2, 16, 9, 11, device=device).to(dtype)
    run = getattr(graft.torch, function)
    y = run(last(x), **CHANNELS[function])
    assert is_last(y)
    # A normalization adds in another order.
    torch.testing.assert_close(
        y, run(x, **CHANNELS[function]).to(memory_format=torch.channels_last), rtol=2e-2, atol=2e-2
    )
    torch.library.opcheck(operator(function), (last(x),), CHANNELS[function])


@each_device
@pytest.mark.parametrize(
    ("function", "attributes", "channels", "dtype"),
    [
        ("leaky_relu", {}, 12, torch.float16),  # no complete vectors
        ("leaky_relu", {}, 16, torch.float32),
        ("l2_normalize", {"axes": [2, 3]}, 16, torch.float16),
        ("instance_norm", {}, 16, torch.float16),
        ("padding", {"mode": "constant", "pads": [0, 8, 0, 0, 0, 0, 0, 0]}, 16, torch.float16),
    ],
)
def test_other_layouts_become_contiguous(function, attributes, channels, dtype, device):
    x = torch.randn(2, channels, 9, 11, device=device).to(dtype)
    run = getattr(graft.torch, function)
    y = run(last(x), **attributes)
    assert y.is_contiguous()
    assert torch.equal(y, run(x, **attributes))
    torch.library.opcheck(operator(function), (last(x),), attributes)


@each_device
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("inputs", "outputs"), [(16, 24), (3, 16), (16, 3), (3, 3)])
@pytest.mark.parametrize("which", ["both", "x", "weight"])
def test_convolution_with_channels_last(inputs, outputs, which, dtype, device):
    """The result has the memory format of PyTorch's own convolution, except where neither input nor output has
    complete vectors of channels."""
    x = torch.randn(2, inputs, 9, 11, device=device).to(dtype)
    w = torch.randn(outputs, inputs, 3, 5, device=device).to(dtype)
    b = torch.randn(outputs, device=device)
    x, w = last(x) if which != "weight" else x, last(w) if which != "x" else w
    attributes = {"pad": [1, 2], "stride": [1, 2]}
    y = graft.torch.convolution(x, w, b, **attributes)
    plain = F.conv2d(x, w, b.to(dtype), padding=(1, 2), stride=(1, 2))
    assert y.stride() == plain.stride() if inputs != 3 or outputs != 3 else y.is_contiguous()
    exact = F.conv2d(x.float(), w.float(), b, padding=(1, 2), stride=(1, 2))
    assert difference(y, exact) < (4e-3 if dtype == torch.float16 else 3e-2)
    torch.library.opcheck(operator("convolution"), (x, w, b), attributes)


@each_device
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_channels_last_through_compiled_code(dynamic, device):
    def network(x, w, b):
        y = graft.torch.convolution(x, w, b, kernel=[3, 3], pad=[1, 1], activation="relu")
        return graft.torch.leaky_relu(F.max_pool2d(y, 2), alpha=0.1)

    w, b = last(torch.randn(16, 3, 3, 3, device=device).half()), torch.randn(16, device=device)
    compiled = torch.compile(
        network, fullgraph=True, dynamic=dynamic, backend="inductor" if device == "cuda" else "aot_eager"
    )
    for size in (12, 16):
        x = torch.randn(2, 3, size, size + 2, device=device).half()
        found, expected = compiled(x, w, b), network(x, w, b)
        assert is_last(expected)
        assert found.stride() == expected.stride()
        assert difference(found, expected) < 2e-3


@each_device
def test_tensors_that_do_not_begin_at_a_vector(device):
    memory = torch.randn(2 * 6 * 5 * 8 + 1, device=device).half()
    x = memory[1:].as_strided((2, 8, 6, 5), (240, 1, 40, 8))
    y = graft.torch.l2_normalize(x, axes=[1])
    assert is_last(y)
    torch.testing.assert_close(y.contiguous(), graft.torch.l2_normalize(x.contiguous(), axes=[1]), rtol=1e-2, atol=1e-2)


@each_device
def test_gradients_with_channels_last(device):
    inputs = [last(torch.randn(s, device=device).half()).requires_grad_() for s in [(2, 8, 6, 6), (16, 8, 3, 3)]]
    y = graft.torch.convolution(*inputs, torch.zeros(16, device=device), pad=[1, 1])
    found = torch.autograd.grad(y.float().square().sum(), inputs)
    exact_inputs = [each.detach().float().requires_grad_() for each in inputs]
    exact = F.conv2d(*exact_inputs, padding=1).square().sum()
    for each, expected in zip(found, torch.autograd.grad(exact, exact_inputs)):
        assert difference(each, expected) < 2e-2


@each_device
def test_graft_ops_on_tensors(device):
    x = torch.randn(2, 8, 6, 5, device=device)
    out = torch.empty_like(x)
    assert graft.ops.l2_normalize(x, axes=[1], out=out) is out
    assert torch.equal(out, graft.torch.l2_normalize(x, axes=[1]))
    with pytest.raises(
        ValueError, match="graft.ops does not support tensors inside transforms of torch.func: use graft.torch"
    ):
        torch.vmap(graft.ops.l2_normalize)(x)
    with pytest.raises(ValueError, match="graft.ops computes no gradients: use graft.torch"):
        graft.ops.l2_normalize(x.requires_grad_())


def test_gradients_that_there_are_not():
    x = torch.randn(1, 2, 8, 8, requires_grad=True)
    y = graft.torch.spatial_pyramid_pooling(x, levels=[3], binning="window")
    with pytest.raises(NotImplementedError, match="no gradient with binning window: use binning adaptive"):
        y.sum().backward()
    y = graft.torch.instance_norm(x, scales=[1.0, 2.0])
    with pytest.raises(NotImplementedError, match="no gradient with the attribute scales: use the input scale"):
        y.sum().backward()
    y = graft.torch.convolution(x, num_output=1, kernel=[1, 1], kernel_weights=[1.0, 2.0])
    with pytest.raises(NotImplementedError, match="no gradient with weights in attributes"):
        y.sum().backward()


def example(function):
    """Returns inputs in f32, and attributes."""
    for sample in SAMPLES:
        if sample.function == function:
            return sample.inputs("f32", "cpu"), sample.named("f32")
    case = next(each for each in cases(function) if each.dtype == "f32")
    return [torch.from_numpy(each) for each in case.inputs], case.attributes


@pytest.mark.parametrize("function", FIXED_SIZE_DEFINITIONS)
def test_vmap_is_refused(function):
    inputs, attributes = example(function)
    told = f"graft::{function} has no rule for torch.vmap: its first axis is the batch. Call it on the whole batch"

    def run(x):
        return first(getattr(graft.torch, function)(x, *inputs[1:], **attributes))

    def run_operator(x):
        return first(operator(function)(x, *inputs[1:], **attributes))

    for mapped in (run, run_operator, torch.func.grad(lambda x: run(x).sum())):
        with pytest.raises(NotImplementedError, match=told):
            torch.func.vmap(mapped)(inputs[0].unsqueeze(0))


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("function", FIXED_SIZE_DEFINITIONS)
def test_vmap_is_refused_in_compiled_code(function, fullgraph):
    """The message is the operator's; with `fullgraph`, PyTorch wraps it in an error of its own, which is a
    RuntimeError too."""
    inputs, attributes = example(function)
    run_operator = getattr(graft.torch, function)

    @torch.compile(backend="eager", fullgraph=fullgraph)
    def run(batch):
        return torch.func.vmap(lambda x: run_operator(x, *inputs[1:], **attributes))(batch)

    with pytest.raises(
        RuntimeError, match=f"graft::{function} has no rule for torch.vmap: its first axis is the batch"
    ):
        run(inputs[0].unsqueeze(0))


def test_what_vmap_is_told_to_do_is_the_same():
    images = torch.randn(3, 2, 4, 6, 5)  # the mapped axis and the batch
    y = graft.torch.l2_normalize(images.flatten(0, 1), axes=[1]).unflatten(0, images.shape[:2])
    expected = torch.func.vmap(lambda x: F.normalize(x, dim=1))(images)
    torch.testing.assert_close(y, expected)


@each_device
@each_sample
def test_transforms_of_torch_func(sample, device):
    """Gradients, and gradients of gradients where PyTorch's own operators have them, equal those of plain PyTorch."""
    inputs = sample.inputs("f32", device)
    weights = torch.randn(call(sample, inputs).shape, generator=torch.Generator().manual_seed(1)).to(device)
    which = tuple(range(len(inputs)))

    def loss(run):
        return lambda *given: (run(*given) * weights).sum()

    found = torch.func.grad(loss(lambda *given: call(sample, given)), which)(*inputs)
    expected = torch.func.grad(loss(sample.plain), which)(*inputs)
    for each, exact in zip(found, expected):
        assert difference(each, exact) < 4 * TOLERANCES["f32"]
    y, pull_back = torch.func.vjp(lambda x: call(sample, [x, *inputs[1:]]), inputs[0])
    assert difference(y, call(sample, inputs)) == 0
    assert difference(pull_back(weights)[0], expected[0]) < 4 * TOLERANCES["f32"]


def test_gradients_within_gradients():
    x = torch.randn(1, 3, 4, 4)

    def penalty(run):
        def loss(x):
            return torch.func.grad(lambda each: run(each).square().sum())(x).square().sum()

        return torch.func.grad(loss)(x)

    found = penalty(lambda each: graft.torch.l2_normalize(each, axes=[1], epsilon_mode="norm") * each)
    assert difference(found, penalty(lambda each: F.normalize(each, dim=1) * each)) < 1e-4


@pytest.mark.parametrize("function", FIXED_SIZE_DEFINITIONS)
def test_forward_mode_is_refused(function):
    """Without the refusal, PyTorch would return a derivative of zero."""
    inputs, attributes = example(function)
    tangent = torch.ones_like(inputs[0])

    def run(x):
        return first(getattr(graft.torch, function)(x, *inputs[1:], **attributes))

    def run_operator(x):
        return first(operator(function)(x, *inputs[1:], **attributes))

    for each in (run, run_operator):
        with pytest.raises(NotImplementedError, match=f"graft::{function} has no forward-mode derivative"):
            torch.func.jvp(each, (inputs[0],), (tangent,))
        forward_mode = torch.autograd.forward_ad
        with forward_mode.dual_level(), pytest.raises(NotImplementedError, match="Use reverse mode"):
            each(forward_mode.make_dual(inputs[0], tangent))
    assert run(inputs[0]).shape == run_operator(inputs[0]).shape, "afterwards all is as before"


@each_device
def test_refused(device):
    x = torch.randn(2, 3, 4, device=device)
    with pytest.raises(ValueError, match="l2_normalize: input x is float64; it must be f32 or f16 or bf16 or i8"):
        graft.torch.l2_normalize(x.double())
    with pytest.raises(
        ValueError, match="L2Normalize: attribute `axes` contains 5; each axis must be between -3 and 2 for rank 3"
    ):
        graft.torch.l2_normalize(x, axes=[5])
    with pytest.raises(ValueError, match="instance_norm: input scale is f16; it must be f32"):
        graft.torch.instance_norm(x, torch.ones(3, device=device, dtype=torch.float16))
    with pytest.raises(ValueError, match="is missing: pass it, or omit bias too"):
        graft.torch.instance_norm(x, None, torch.ones(3, device=device))
