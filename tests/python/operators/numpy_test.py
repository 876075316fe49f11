# Tests graft.ops on NumPy arrays: the golden data of every operator, `out`, and errors.
import inspect

import graft.ops
import numpy as np
import pytest
from golden_operators import NUMPY_TYPES, assert_close, cases
from graft._definitions import DEFINITIONS

# The reference computes in double and keeps sums in f32: half an f32 rounding.
REFERENCE_ERROR = 2.0**-24


@pytest.mark.parametrize("function", DEFINITIONS)
def test_golden_data(function):
    dtypes = set()
    for case in cases(function):
        y = getattr(graft.ops, function)(*case.inputs, **case.attributes)
        dtypes.add(case.dtype)
        if DEFINITIONS[function].has_data_sizes:
            y, count = y
            assert count.shape == ()
            assert count in case.expected.shape
            np.testing.assert_array_equal(y.ravel()[: case.expected.size].reshape(case.expected.shape), case.expected)
            continue
        outputs = y if isinstance(y, tuple) else (y,)
        assert NUMPY_TYPES[case.dtype] in {each.dtype.type for each in outputs}
        assert_close(outputs, case, REFERENCE_ERROR)
    assert dtypes >= {"f32", "f16"}
    assert "i8" in dtypes or all("i8" not in row for row in DEFINITIONS[function].rows)


def test_weights_as_inputs_are_those_of_attributes():
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 3, 5, 6), np.float32)
    weight = random.standard_normal((4, 3, 3, 2), np.float32)
    bias = random.standard_normal(4, np.float32)
    as_inputs = graft.ops.convolution(x, weight, bias, pad=[1, 0])
    as_attributes = graft.ops.convolution(
        x, num_output=4, kernel=[3, 2], kernel_weights=weight.ravel(), bias_weights=bias, pad=[1, 0]
    )
    np.testing.assert_array_equal(as_inputs, as_attributes)
    np.testing.assert_array_equal(graft.ops.convolution(x, weight=weight, bias=bias, pad=(1, 0)), as_inputs)


def test_out_takes_the_result():
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    out = np.full_like(x, 7)
    assert graft.ops.leaky_relu(x, alpha=0.5, out=out) is out
    np.testing.assert_array_equal(out, np.where(x >= 0, x, x * np.float32(0.5)))


def test_infinity_is_an_attribute():
    y = graft.ops.padding(np.zeros(1, np.float32), pads=[1, 1], value=-np.inf)
    np.testing.assert_array_equal(y, np.array([-np.inf, 0, -np.inf], np.float32))


X = np.ones((2, 3, 4), np.float32)

REFUSED = [
    (TypeError, "l2_normalize: input x is list; it must be numpy.ndarray, torch.Tensor or cupy.ndarray",
     lambda: graft.ops.l2_normalize([1.0])),
    (ValueError, "l2_normalize: input x is float64; it must be f32 or f16 or bf16 or i8",
     lambda: graft.ops.l2_normalize(X.astype(float))),
    (ValueError, "L2Normalize: attribute `axes` contains 5; each axis must be between -3 and 2 for rank 3",
     lambda: graft.ops.l2_normalize(X, axes=[5])),
    (TypeError, r"l2_normalize: attribute axes is \[1.5\]; it must be a sequence of integers",
     lambda: graft.ops.l2_normalize(X, axes=[1.5])),
    (TypeError, "l2_normalize: attribute epsilon_mode is 3; it must be max or norm or add",
     lambda: graft.ops.l2_normalize(X, epsilon_mode=3)),
    (ValueError, 'L2Normalize: attribute `epsilon_mode` is "mix"; it must be one of max, norm, add',
     lambda: graft.ops.l2_normalize(X, epsilon_mode="mix")),
    (TypeError, "leaky_relu: attribute alpha is '1'; it must be a number", lambda: graft.ops.leaky_relu(X, alpha="1")),
    (TypeError, "leaky_relu: attribute alpha is nan; it must be a number", lambda: graft.ops.leaky_relu(X, alpha=np.nan)),
    (TypeError, "unexpected keyword argument 'slope'", lambda: graft.ops.leaky_relu(X, slope=1)),
    (TypeError, "missing 1 required keyword-only argument: 'pads'", lambda: graft.ops.padding(X)),
    (ValueError, "Padding: attribute `pads` has 2 elements; it must have 6 for rank 3",
     lambda: graft.ops.padding(X, pads=[0, 1])),
    (ValueError, "leaky_relu: input x is not contiguous; make it contiguous with numpy.ascontiguousarray",
     lambda: graft.ops.leaky_relu(X.T)),
    (ValueError, "InstanceNorm: scale has shape 4; it must have one value for each of 3 channels",
     lambda: graft.ops.instance_norm(X, np.ones(4, np.float32))),
    (ValueError, "instance_norm: input scale is missing: pass it, or omit bias too",
     lambda: graft.ops.instance_norm(X, None, np.ones(3, np.float32))),
    (ValueError, "instance_norm: input scale is f16; it must be f32",
     lambda: graft.ops.instance_norm(X, np.ones(3, np.float16))),
    (ValueError, "leaky_relu: out for y overlaps an input", lambda: graft.ops.leaky_relu(X, out=X)),
    (ValueError, r"leaky_relu: out for y is f16 \(2, 3, 4\) on cpu; it must be f32 \(2, 3, 4\) on cpu",
     lambda: graft.ops.leaky_relu(X, out=np.empty((2, 3, 4), np.float16))),
    (ValueError, "out for y is not contiguous or not writable",
     lambda: graft.ops.leaky_relu(X, out=np.empty((4, 3, 2), np.float32).T)),
    (TypeError, "leaky_relu: out for y is list; it must be numpy.ndarray", lambda: graft.ops.leaky_relu(X, out=[[]])),
    (ValueError, "a tensor has rank 9, allowed is 0 to 8", lambda: graft.ops.leaky_relu(np.ones([1] * 9, np.float32))),
]  # fmt: skip


@pytest.mark.parametrize(("error", "message", "call"), REFUSED, ids=[message[:40] for _, message, _ in REFUSED])
def test_refused(error, message, call):
    with pytest.raises(error, match=message.replace("`", "\\`")):
        call()


@pytest.mark.parametrize("function", DEFINITIONS)
def test_functions_say_what_they_take(function):
    definition = DEFINITIONS[function]
    documented = getattr(graft.ops, function)
    names = [*(port.name for port in definition.inputs), *(info.name for info in definition.attributes), "out"]
    assert list(inspect.signature(documented).parameters) == names
    for info in definition.attributes:
        assert f"{info.name}: {info.doc}" in documented.__doc__
