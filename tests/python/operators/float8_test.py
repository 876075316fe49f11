# Tests operators on all 256 values of f8e4m3fn, compared with ml_dtypes and NumPy.
import graft.ops
import ml_dtypes
import numpy as np
import pytest

F8 = ml_dtypes.float8_e4m3fn
EVERY = np.arange(256, dtype=np.uint8).view(F8)


def rounded(values):
    """Rounds and saturates as QuantizeLinear does; ml_dtypes converts values that are too large to NaN."""
    return np.clip(values, -448, 448).astype(F8)


def assert_same_bits(found, expected):
    assert found.dtype == F8
    nan = np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), nan)
    np.testing.assert_array_equal(found.view(np.uint8)[~nan], expected.view(np.uint8)[~nan])


@pytest.mark.parametrize("scales", [(1, 1), (0.5, 0.125), (1, 512), (2.0**-9, 1), (2.0**8, 2.0**-8)])
@pytest.mark.parametrize("alpha", [1.0, 0.25, -1.0, 0.0])
def test_elementwise_rounds_as_ml_dtypes(scales, alpha):
    x_scale, y_scale = scales
    x = EVERY.astype(np.float64) * x_scale
    with np.errstate(invalid="ignore"):
        expected = rounded(np.where(x >= 0, x, alpha * x) / y_scale)
    assert_same_bits(graft.ops.leaky_relu(EVERY, alpha=alpha, x_scale=x_scale, y_scale=y_scale), expected)


def test_every_tie_goes_to_even():
    finite = np.sort(EVERY.astype(np.float64)[np.isfinite(EVERY.astype(np.float64))])
    # 1.5, 0.75 and 1.25 produce ties between normal numbers, 0.5 and 2^-7 between subnormal ones.
    for factor in (0.5, 1.5, 0.75, 1.25, 2.0**-7):
        found = graft.ops.leaky_relu(finite.astype(F8), alpha=1.0, x_scale=factor, y_scale=1.0)
        assert_same_bits(found, rounded(finite * factor))


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap", "symmetric"])
def test_padding_moves_every_bit(mode):
    x = EVERY.reshape(1, 16, 16)
    found = graft.ops.padding(x, mode=mode, pads=[0, 2, 3, 0, 1, 4], x_scale=0.3, y_scale=0.3)
    expected = np.pad(x.view(np.uint8), [(0, 0), (2, 1), (3, 4)], mode=mode)
    assert_same_bits(found, expected.view(F8))


def test_padding_with_a_value_scales_it():
    found = graft.ops.padding(EVERY[:4], mode="constant", value=1.0, pads=[1, 1], x_scale=0.5, y_scale=0.5)
    assert found.astype(np.float32)[[0, -1]].tolist() == [2, 2]
    found = graft.ops.padding(EVERY[:4], mode="constant", value=-np.inf, pads=[1, 1])
    assert found.astype(np.float32)[[0, -1]].tolist() == [-448, -448]


def test_upsampling_takes_the_nearest():
    x = EVERY.reshape(1, 2, 8, 16)
    found = graft.ops.upsampling(x, mode="nearest", scales=[2.5], coordinate_mode="asymmetric", nearest_mode="floor")
    rows, columns = (np.floor(np.arange(size) / 2.5).astype(int) for size in (20, 40))
    expected = x[:, :, rows][:, :, :, columns]
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: graft.ops.padding(EVERY, pads=[1, 1], x_scale=1.0, y_scale=2.0), "f8e4m3fn"),
        (lambda: graft.ops.upsampling(EVERY.reshape(1, 1, 256), mode="linear", scales=[2.0]), "f8e4m3fn"),
        (lambda: graft.ops.l2_normalize(EVERY, axes=[0]), "f8e4m3fn"),
    ],
)
def test_what_does_not_take_it_says_so(call, words):
    with pytest.raises(ValueError, match=words):
        call()
