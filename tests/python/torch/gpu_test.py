# Tests graft.torch and graft.ops on a GPU: streams, CUDA graphs, no synchronization, CuPy.
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

import graft.ops  # noqa: E402
import graft.torch  # noqa: E402
from samples import DTYPES, NAMES, SAMPLES  # noqa: E402

each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)


def call(sample, inputs, dtype="f32"):
    return getattr(torch.ops.graft, sample.function).default(*inputs, **sample.named(dtype))


@each_dtype
@each_sample
def test_nothing_synchronizes(sample, dtype):
    inputs = sample.inputs(dtype, "cuda")
    call(sample, inputs, dtype)
    torch.cuda.set_sync_debug_mode("error")
    try:
        call(sample, inputs, dtype)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@each_sample
def test_the_host_does_not_wait_for_the_stream(sample):
    """The stream is blocked for about a second; after a call that waits, the stream would be idle."""
    inputs = sample.inputs("f32", "cuda")
    call(sample, inputs)
    torch.cuda.synchronize()
    torch.cuda._sleep(1_000_000_000)
    call(sample, inputs)
    assert not torch.cuda.current_stream().query()
    torch.cuda.synchronize()


@each_dtype
@each_sample
def test_graph_capture_and_replay(sample, dtype):
    inputs = sample.inputs(dtype, "cuda")
    call(sample, inputs, dtype)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = call(sample, inputs, dtype)
    for seed in (1, 2):
        for given, new in zip(inputs, sample.inputs(dtype, "cuda", seed)):
            given.copy_(new)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, call(sample, inputs, dtype))


@each_sample
def test_streams_are_the_callers(sample):
    """The input is written late on each stream; a kernel on another stream would read the old content."""
    plain = sample.inputs("f32", "cuda")
    expected = call(sample, plain)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(2)]
    results = []
    for stream in streams:
        with torch.cuda.stream(stream):
            x = torch.zeros_like(plain[0])
            torch.cuda._sleep(20_000_000)
            x.copy_(plain[0])
            results.append(call(sample, [x, *plain[1:]]))
    torch.cuda.synchronize()
    for found in results:
        assert torch.equal(found, expected)


@each_sample
def test_two_threads(sample):
    import concurrent.futures

    inputs = sample.inputs("f16", "cuda")
    expected = call(sample, inputs, "f16")

    def run(_):
        with torch.cuda.stream(torch.cuda.Stream()):
            found = [call(sample, inputs, "f16") for _ in range(20)]
            torch.cuda.current_stream().synchronize()
        return all(torch.equal(each, expected) for each in found)

    torch.cuda.synchronize()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(4)))


@each_dtype
@each_sample
def test_graft_ops_runs_the_same_kernels(sample, dtype):
    inputs = sample.inputs(dtype, "cuda")
    attributes = sample.named(dtype)
    found = getattr(graft.ops, sample.function)(*inputs, **attributes)
    assert torch.equal(found, getattr(graft.torch, sample.function)(*inputs, **attributes))


@each_sample
def test_cupy(sample):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    inputs = sample.inputs("f32", "cuda")
    attributes = sample.named("f32")
    expected = getattr(graft.ops, sample.function)(*inputs, **attributes)
    torch.cuda.synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        arrays = [cupy.asarray(each.cpu().numpy()) for each in inputs]
        y = getattr(graft.ops, sample.function)(*arrays, **attributes)
        assert isinstance(y, cupy.ndarray)
        stream.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(y), expected.cpu().numpy())


def test_weights_of_attributes_in_a_graph():
    """The first call copies the weights to the device, which capture does not allow; later calls may be captured."""
    x = torch.randn(2, 3, 8, 8, device="cuda")
    expected = graft.torch.instance_norm(x, scales=[1.0, 2.0, 3.0])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = graft.torch.instance_norm(x, scales=[1.0, 2.0, 3.0])
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, expected)


@pytest.mark.parametrize(
    ("function", "attributes"),
    [
        ("leaky_relu", {"alpha": 0.2, "x_scale": 0.5, "y_scale": 0.25}),
        ("padding", {"mode": "reflect", "pads": [0, 0, 2, 1, 0, 0, 1, 3], "x_scale": 0.5, "y_scale": 0.5}),
        ("upsampling", {"mode": "nearest", "scales": [2.0]}),
    ],
)
def test_every_f8_is_as_on_the_cpu(function, attributes):
    x = torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn).reshape(1, 4, 8, 8)
    call = getattr(graft.torch, function)
    found, expected = call(x.cuda(), **attributes).cpu(), call(x, **attributes)
    assert found.dtype == torch.float8_e4m3fn
    torch.testing.assert_close(found.float(), expected.float(), rtol=0, atol=0, equal_nan=True)
