# Networks that resemble Upsampling but compute something else, or must not be fused: see
# tests/golden/generators/make_near_misses.py.
import numpy as np
from near_miss_cases import miss, same

PREFIX = "upsampling"
OPERATOR = "Upsampling"
WIDE = "(float[N,4,3,5] x) => (float[N,4,3,{}] y)"
LARGER = "(float[N,4,3,5] x) => (float[N,4,{},{}] y)"


def numbers(values):
    return "{" + ", ".join(f"{float(v):.9g}" for v in np.ravel(values)) + "}"


def kernel(size, factor):
    line = [1 - abs(i - (size - 1) / 2) / factor for i in range(size)]
    return np.outer(line, line)


def weights(channels, one, outputs=1):
    return np.broadcast_to(one, (channels, outputs, *one.shape))


def diagonal(channels, one):
    full = np.zeros((channels, channels, *one.shape))
    for i in range(channels):
        full[i, i] = one
    return full


def tensor(name, array):
    return f"float[{','.join(str(d) for d in array.shape)}] {name} = {numbers(array)}"


mixing = diagonal(4, kernel(4, 2))
mixing[1, 2] = 0.25 * kernel(4, 2)
rounded = np.round(kernel(4, 2), 1)

CONSTANTS = {
    "i2": "int64[1] i2 = {2}",
    "i3": "int64[1] i3 = {3}",
    "i4": "int64[1] i4 = {4}",
    "uneven": "int64[9] uneven = {0, 0, 1, 1, 2, 2, 3, 3, 4}",
    "wider": "int64[4] wider = {0, 4, 3, 10}",
    "taller": "int64[4] taller = {0, 8, 3, 5}",
    "repeats_channels": "int64[5] repeats_channels = {1, 1, 2, 1, 1}",
    "repeats_columns": "int64[5] repeats_columns = {1, 1, 1, 1, 2}",
    "repeats_before": "int64[5] repeats_before = {1, 1, 1, 2, 1}",
    "bilinear": tensor("bilinear", weights(4, kernel(4, 2))),
    "rounded": tensor("rounded", weights(4, rounded)),
    "doubled": tensor("doubled", weights(4, 2 * kernel(4, 2))),
    "mixing": tensor("mixing", mixing),
    "multiplied": tensor("multiplied", weights(4, kernel(4, 2), 2)),
    "bias4": "float[4] bias4 = {0.5, 0, 0, 0}",
}


# fmt: off
MISSES = [
    miss("tiled", "the whole row is repeated, not each element", "upsampling repeats each element next to itself",
         WIDE.format(10), "u = Unsqueeze(x, i3) t = Tile(u, repeats_before) y = Reshape(t, wider)"),
    miss("channels", "each channel is repeated, as grouped attention repeats its heads", "repeated [1, 2, 1, 1] times",
         "(float[N,4,3,5] x) => (float[N,8,3,5] y)",
         "u = Unsqueeze(x, i2) t = Tile(u, repeats_channels) y = Reshape(t, taller)"),
    miss("uneven", "the last column is there once only", "becomes [0, 0, 1, 1, 2, 2, 3, 3, 4]",
         WIDE.format(9), "y = Gather<axis=3>(x, uneven)"),
    same("repeat_used_elsewhere", "the repeated elements are needed by another node as well",
         "is used by node 'Sigmoid", "(float[N,4,3,5] x) => (float[N,4,3,10] y, float[N,4,3,5,2] other)",
         "u = Unsqueeze(x, i4) t = Tile(u, repeats_columns) y = Reshape(t, wider) other = Sigmoid(t)"),
    miss("of_two", "two tensors alternate", None, "(float[N,4,3,5] x, float[N,4,3,5] z) => (float[N,4,3,10] y)",
         "a = Unsqueeze(x, i4) b = Unsqueeze(z, i4) t = Concat<axis=4>(a, b) y = Reshape(t, wider)"),
    miss("weights_rounded", "deconvolution: the weights are bilinear to one digit only",
         "differ from the weights of linear interpolation", LARGER.format(6, 10),
         "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, rounded)"),
    miss("weights_doubled", "deconvolution: the weights are twice the bilinear ones",
         "differ from the weights of linear interpolation", LARGER.format(6, 10),
         "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, doubled)"),
    miss("wrong_stride", "deconvolution: a kernel of 4 for stride 3", "with stride [3, 3] is not an interpolation",
         LARGER.format(8, 14), "y = ConvTranspose<strides=[3,3], pads=[1,1,1,1], group=4>(x, bilinear)"),
    miss("channels_mixed", "deconvolution: one channel takes a part of another",
         "differ from the weights of linear interpolation", LARGER.format(6, 10),
         "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1]>(x, mixing)"),
    miss("channels_multiplied", "deconvolution: each channel becomes two", "4 channels become 8",
         "(float[N,4,3,5] x) => (float[N,8,6,10] y)",
         "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, multiplied)"),
    miss("with_bias", "deconvolution: a bias is added", "it has a bias",
         LARGER.format(6, 10), "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, bilinear, bias4)"),
    miss("dilated", "deconvolution: the kernel is dilated", "it is dilated", LARGER.format(9, 13),
         "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], dilations=[2,2], group=4>(x, bilinear)"),
    same("weights_at_run_time", "deconvolution: the weights are an input of the network", None,
         "(float[N,4,3,5] x, float[4,1,4,4] w) => (float[N,4,6,10] y)",
         "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, w)"),
]

CONTROLS = [
    ("upsampling_repeat", {"mode": "nearest", "scales": [1.0, 2.0]}, WIDE.format(10),
     "u = Unsqueeze(x, i4) t = Tile(u, repeats_columns) y = Reshape(t, wider)"),
    ("upsampling_deconvolution", {"mode": "linear", "scales": [2.0, 2.0], "coordinate_mode": "half_pixel"},
     LARGER.format(6, 10), "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, bilinear)"),
]
# fmt: on


# The inputs of the network besides x.
INPUTS = {"w": weights(4, kernel(4, 2))}


def deconvolved(x, factor, size, pads):
    """Returns the deconvolution of x with bilinear weights, `factor` as stride, and `pads` removed on each side."""
    line = np.array([1 - abs(i - (size - 1) / 2) / factor for i in range(size)])
    for axis in (2, 3):
        count = x.shape[axis]
        full = np.zeros((count, factor * (count - 1) + size))
        for i in range(count):
            full[i, factor * i : factor * i + size] = line
        x = np.moveaxis(np.tensordot(x, full[:, pads : full.shape[1] - pads], (axis, 0)), -1, axis)
    return x


def resembled(x):
    x = x.astype(np.float64)
    both = np.repeat(np.repeat(x, 2, axis=2), 2, axis=3)
    return [np.repeat(x, 2, axis=3), both, deconvolved(x, 2, 4, 1), deconvolved(x, 3, 4, 1)]
