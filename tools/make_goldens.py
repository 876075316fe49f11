# make_goldens.py - writes the golden values of Graft's operators, computed by PyTorch, to tests/golden/ops.
"""Writes tests/golden/ops/<operator>.npz and <operator>.json.

Nothing here uses Graft: PyTorch computes every result, and TensorFlow's own tf.math.l2_normalize is run beside it where
it defines the meaning (epsilon_mode "max"). The script stops if the two disagree.

The JSON lists the cases; each has
  name         unique within the file
  dtype        f32, f16, bf16 or i8
  shape        of x; y has that of its array
  attributes   as Graft spells them; x_scale and y_scale are there for i8 only
  x, y         names of arrays in the .npz (several cases may share one x)
  y_f32        only where float32 arithmetic cannot give y (a square overflows or underflows): what the framework
               gives in float32
  note         what the case is about, if it is not plain

x is float32 for f32, f16 and bf16 (each value exactly representable in the dtype) and int8 for i8. y is float64: the
operator in double precision on that x, not yet rounded to the dtype; attributes are rounded to float32 first, since that
is how they are stored. For i8, y is int8: op(x * x_scale) / y_scale, rounded half to even and saturated; no value lies
so near to a rounding boundary that float32 arithmetic could land on the other side, except where both are exact.

Made with (Python 3.11, CPU): torch==2.8.0 tensorflow-cpu==2.19.1 numpy==2.1.3 onnx==1.18.0 onnxruntime==1.22.1
Run: python tools/make_goldens.py [--out tests/golden/ops]
"""

import argparse
import json
import pathlib
import zlib

import numpy as np
import onnx
import onnxruntime
import tensorflow as tf
import torch
import torch.nn.functional as F

TORCH_TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
FLOAT_TYPES = list(TORCH_TYPES)
INF, NAN = float("inf"), float("nan")
TIE_MARGIN = 1e-3  # int8 steps; float32 arithmetic on values up to 128 errs by about 1e-5


def as_f32(value):
    return float(np.float32(value))


def random_values(name, shape, scale=1.0):
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def rounded(values, dtype):
    """Nearest values that dtype can hold, as float32."""
    return values.to(TORCH_TYPES[dtype]).to(torch.float32)


def quantized(values, scale):
    """int8 of values / scale, and how far the nearest inexact rounding decision is from a tie."""
    steps = values / scale
    fraction = (steps - steps.floor() - 0.5).abs()
    inside = (steps.abs() < 128.5) & (fraction > 0)
    margin = float(fraction[inside].min()) if bool(inside.any()) else 0.5
    return torch.clamp(torch.round(steps), -128, 127).to(torch.int8), margin


class Golden:
    """The cases of one operator on their way to disk."""

    def __init__(self, operator, function):
        self.operator, self.function = operator, function
        self.arrays, self.cases = {}, []

    def x(self, name, values):
        self.arrays[name] = values.numpy()
        return name

    def add(self, name, dtype, x_name, attributes, note=None, y_f32=None):
        x = torch.from_numpy(self.arrays[x_name])
        case = {"name": name, "dtype": dtype, "shape": list(x.shape), "attributes": attributes}
        case |= {"x": x_name, "y": f"{name}.y"}
        assert all(case["name"] != other["name"] for other in self.cases), name
        if dtype == "i8":
            y = self.function(x.to(torch.float64) * as_f32(attributes["x_scale"]), attributes)
            y, margin = quantized(y, as_f32(attributes["y_scale"]))
            assert margin > TIE_MARGIN, f"{name}: a result lies {margin:.1e} from a rounding tie, choose other values"
        else:
            y = self.function(x.to(torch.float64), attributes)
        self.arrays[case["y"]] = y.numpy()
        if y_f32 is not None:
            case["y_f32"] = f"{name}.y_f32"
            self.arrays[case["y_f32"]] = y_f32.numpy()
        if note:
            case["note"] = note
        self.cases.append(case)

    def write(self, out, stem):
        np.savez_compressed(out / f"{stem}.npz", **self.arrays)
        lines = ",\n".join("    " + json.dumps(case) for case in self.cases)
        made_with = {"torch": torch.__version__.split("+")[0], "tensorflow": tf.__version__, "numpy": np.__version__}
        (out / f"{stem}.json").write_text(
            f'{{\n  "operator": "{self.operator}",\n  "made_by": "tools/make_goldens.py",\n'
            f'  "made_with": {json.dumps(made_with)},\n  "cases": [\n{lines}\n  ]\n}}\n'
        )
        size = (out / f"{stem}.npz").stat().st_size
        print(f"{stem}: {len(self.cases)} cases, {len(self.arrays)} arrays, {size} bytes")


def leaky_relu(x, attributes):
    return F.leaky_relu(x, as_f32(attributes["alpha"]))


def make_leaky_relu(out):
    golden = Golden("LeakyReLU", leaky_relu)
    shapes = [(1,), (3,), (4,), (5,), (7,), (8,), (9,), (15,), (16,), (17,), (127,), (257,)]
    shapes += [(3, 5), (2, 3, 5), (2, 3, 5, 7), (1, 2, 3, 2, 5), (0, 3, 4), (2, 0)]
    alphas = [0.01, 0.1, 0.2, 0.3]
    for dtype in FLOAT_TYPES:
        for i, shape in enumerate(shapes):
            name = f"{dtype}_{'x'.join(map(str, shape))}"
            golden.x(f"{name}.x", rounded(random_values(name, shape, 3.0), dtype))
            golden.add(name, dtype, f"{name}.x", {"alpha": alphas[i % len(alphas)]})
        x = golden.x(f"{dtype}_alphas.x", rounded(random_values("alphas", (2, 9), 2.0), dtype))
        for alpha, label in [(0.0, "zero"), (1.0, "one"), (2.5, "above_one"), (-0.5, "negative"), (1e-6, "tiny")]:
            golden.add(f"{dtype}_alpha_{label}", dtype, x, {"alpha": alpha})
        info = torch.finfo(TORCH_TYPES[dtype])
        smallest = info.tiny * info.eps
        edges = [0.0, -0.0, INF, -INF, NAN, info.max, -info.max, info.tiny, -info.tiny, smallest * 8, -smallest * 8]
        golden.x(f"{dtype}_edges.x", rounded(torch.tensor(edges, dtype=torch.float64), dtype))
        note = "signed zeros, infinities, NaN, the largest values, the smallest normal and a subnormal one"
        golden.add(f"{dtype}_edges", dtype, f"{dtype}_edges.x", {"alpha": 0.25}, note)
        note = "as above, with alpha 0: 0 * -inf is NaN"
        golden.add(f"{dtype}_edges_alpha_zero", dtype, f"{dtype}_edges.x", {"alpha": 0.0}, note)
    every = golden.x("i8_every.x", torch.arange(-128, 128).to(torch.int8).reshape(2, 128))
    i8 = [
        ("i8_every", 0.0517, 0.0431, 0.1, "every int8 value"),
        ("i8_every_small_alpha", 0.0391, 0.0333, 0.01, "every int8 value"),
        ("i8_same_scale_ties", 0.5, 0.5, 0.25, "exact ties: all numbers are powers of two, round half to even"),
        ("i8_saturates", 0.25, 0.0625, 0.5, "most results saturate"),
        ("i8_alpha_negative", 0.0625, 0.0625, -1.0, "-128 becomes +128 and saturates to 127"),
    ]
    for name, x_scale, y_scale, alpha, note in i8:
        golden.add(name, "i8", every, {"alpha": alpha, "x_scale": x_scale, "y_scale": y_scale}, note)
    odd = golden.x("i8_odd.x", torch.arange(-52, 53).to(torch.int8).reshape(3, 5, 7))
    golden.add("i8_odd", "i8", odd, {"alpha": 0.2, "x_scale": 0.0713, "y_scale": 0.0617})
    empty = golden.x("i8_empty.x", torch.zeros((0, 3), dtype=torch.int8))
    golden.add("i8_empty", "i8", empty, {"alpha": 0.2, "x_scale": 0.5, "y_scale": 0.5})
    golden.write(out, "leaky_relu")


def l2_normalize(x, attributes):
    axes, epsilon, mode = tuple(attributes["axes"]), as_f32(attributes["epsilon"]), attributes["epsilon_mode"]
    if mode == "norm":
        return F.normalize(x, p=2.0, dim=axes, eps=epsilon)
    total = (x * x).sum(dim=axes, keepdim=True)
    if mode == "add":
        return x / torch.sqrt(total + epsilon)
    assert mode == "max"
    y = x * torch.rsqrt(torch.clamp_min(total, epsilon))
    expected = tf.math.l2_normalize(tf.constant(x.numpy()), axis=list(axes), epsilon=epsilon).numpy()
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6 if x.dtype == torch.float32 else 1e-12, atol=0)
    return y


MODES = ["max", "norm", "add"]


def make_l2_normalize(out):
    golden = Golden("L2Normalize", l2_normalize)

    def attributes(axes, mode, epsilon=1e-12, **more):
        return {"axes": axes, "epsilon": epsilon, "epsilon_mode": mode} | more

    def label(axes):
        return "axes" + "".join(f"_m{-a}" if a < 0 else f"_{a}" for a in axes)

    shapes = {
        (7,): [[0], [-1]],
        (3, 5): [[1], [-1], [0], [0, 1]],
        (1, 1): [[1]],
        (2, 3, 5): [[1], [-1], [0], [0, 2], [1, 2], [0, 1, 2]],
        (2, 3, 5, 7): [[1], [-1], [0], [1, 2, 3], [0, 2], [2, 3], [-2, -1], [3, 1], [0, 1, 2, 3]],
        (2, 3, 2, 3, 5): [[1], [-1], [0, 2], [2, 4], [-1, -3], [1, 2, 3, 4]],
        (0, 3, 5): [[1], [-1], [0]],
        (2, 0, 5): [[1], [2]],
        (3, 2): [[1]],
        (3, 4): [[1]],
        (3, 15): [[1]],
        (3, 16): [[1]],
        (3, 17): [[1]],
        (2, 31): [[1]],
        (2, 33): [[1]],
        (2, 127): [[1]],
        (1, 1025): [[1]],
        (2, 129, 3): [[1]],
        (1, 3, 1, 67): [[1]],
    }
    both_ways = {(2, 3, 5, 7), (2, 3, 5), (3, 5), (0, 3, 5), (3, 17)}
    turn = 0
    for dtype in FLOAT_TYPES:
        for shape, all_axes in shapes.items():
            if dtype != "f32" and np.prod(shape) > 300:
                continue
            base = f"{dtype}_{'x'.join(map(str, shape))}"
            x = golden.x(f"{base}.x", rounded(random_values(base, shape), dtype))
            for axes in all_axes:
                every_mode = dtype == "f32" and shape in both_ways or axes == [1] and shape in both_ways
                for mode in MODES if every_mode else [MODES[turn % 3]]:
                    golden.add(f"{base}_{label(axes)}_{mode}", dtype, x, attributes(axes, mode))
                turn += 1

        rows = random_values("rows", (4, 6))
        rows[1] = 0.0
        rows[2] *= 1e-4
        rows[3] = torch.tensor([0, 0, -1e-3, 0, 0, 0.0])
        x = golden.x(f"{dtype}_small_rows.x", rounded(rows, dtype))
        for mode in MODES:
            for epsilon in [1e-12, 1e-6, 1e-3, 0.5]:
                name = f"{dtype}_small_rows_eps{epsilon:g}_{mode}"
                note = "a row of zeros and rows shorter than epsilon: the three modes differ"
                golden.add(name, dtype, x, attributes([1], mode, epsilon), note)

        rows = random_values("not_finite", (5, 4))
        rows[1, 2], rows[2, 0], rows[3, 3], rows[4] = NAN, INF, -INF, torch.tensor([INF, -INF, NAN, 1.0])
        x = golden.x(f"{dtype}_not_finite.x", rounded(rows, dtype))
        for mode in MODES:
            note = "NaN makes its row NaN; infinity makes itself NaN and the rest of its row 0"
            golden.add(f"{dtype}_not_finite_{mode}", dtype, x, attributes([1], mode), note)

        x = golden.x(f"{dtype}_zeros.x", torch.zeros((2, 3)))
        for mode in MODES:
            golden.add(f"{dtype}_zeros_eps0_{mode}", dtype, x, attributes([1], mode, 0.0), "0 / 0 is NaN")

    rows = random_values("large_f16", (2, 40)).clamp(-1, 1) * 60000
    x = golden.x("f16_large.x", rounded(rows, "f16"))
    for mode in MODES:
        note = "squares and their sum are far beyond what f16 holds"
        golden.add(f"f16_large_{mode}", "f16", x, attributes([1], mode), note)
    rows = torch.full((1, 2049), 1.0, dtype=torch.float64)
    for dtype in ["f16", "bf16"]:
        x = golden.x(f"{dtype}_many_ones.x", rounded(rows, dtype))
        golden.add(f"{dtype}_many_ones", dtype, x, attributes([1], "max"), "the sum stalls if accumulated in the dtype")

    huge = rounded(random_values("huge", (2, 5)).sign() * torch.linspace(1e19, 9e19, 10).reshape(2, 5), "f32")
    x = golden.x("f32_overflow.x", huge)
    for mode in MODES:
        note = "squares overflow float32: the sum is inf and the frameworks give 0"
        y_f32 = l2_normalize(huge, attributes([1], mode))
        golden.add(f"f32_overflow_{mode}", "f32", x, attributes([1], mode), note, y_f32)
    huge[1, 1:] = 3.0
    x = golden.x("f32_overflow_one.x", huge)
    y_f32 = l2_normalize(huge, attributes([1], "max"))
    golden.add("f32_overflow_one", "f32", x, attributes([1], "max"), "one value alone overflows", y_f32)
    small = rounded(random_values("subnormal", (2, 5)) * 1e-39, "f32")
    x = golden.x("f32_subnormal.x", small)
    for mode in MODES:
        note = "subnormal x: the sum is 0 in float32, epsilon decides, y is a normal number"
        golden.add(f"f32_subnormal_{mode}", "f32", x, attributes([1], mode), note)
    small = rounded(random_values("underflow", (2, 5)).sign() * 1e-25, "f32")
    x = golden.x("f32_underflow.x", small)
    for mode in MODES:
        note = "squares underflow float32 and epsilon is smaller still"
        y_f32 = l2_normalize(small, attributes([1], mode, 1e-30))
        golden.add(f"f32_underflow_{mode}", "f32", x, attributes([1], mode, 1e-30), note, y_f32)

    def i8(name, shape, axes, mode, epsilon=1e-12, x_scale=0.037, y_scale=0.0078125, edit=None):
        given = attributes(axes, mode, epsilon, x_scale=x_scale, y_scale=y_scale)
        for attempt in range(200):
            values = random_values(f"{name}{attempt}", shape, 50.0)
            x = torch.clamp(torch.round(values), -128, 127).to(torch.int8)
            if edit:
                edit(x)
            y = l2_normalize(x.to(torch.float64) * as_f32(x_scale), given)
            if quantized(y, as_f32(y_scale))[1] > TIE_MARGIN:
                golden.add(name, "i8", golden.x(f"{name}.x", x), given)
                return
        raise RuntimeError(f"{name}: no values without a near tie")

    for mode in MODES:
        i8(f"i8_2x3x5x7_axes_1_{mode}", (2, 3, 5, 7), [1], mode)
        i8(f"i8_3x33_axes_m1_{mode}", (3, 33), [-1], mode, y_scale=0.0049)
        i8(f"i8_zero_row_{mode}", (3, 8), [1], mode, 0.5, edit=lambda x: x[1].zero_())
    i8("i8_2x3x5_axes_0_2", (2, 3, 5), [0, 2], "max")
    i8("i8_2x3x5_axes_1_2", (2, 3, 5), [1, 2], "norm")
    i8("i8_saturates", (4, 3), [1], "max", y_scale=0.00390625)
    i8("i8_extremes", (2, 6), [1], "max", edit=lambda x: x[0].copy_(torch.tensor([-128, 127, -128, 127, 0, 1])))
    i8("i8_empty", (0, 4), [1], "max")
    golden.write(out, "l2_normalize")


def l2norm_helper(x, attributes):
    if attributes["op_type"] == 0:
        return torch.rsqrt(x)
    return torch.clamp_min(x, as_f32(attributes["eps"]))


def make_l2norm_helper(out):
    golden = Golden("l2norm_helper", l2norm_helper)
    for dtype in FLOAT_TYPES:
        for shape in [(1,), (5,), (17,), (2, 3, 5), (2, 1, 3, 7), (0, 3)]:
            name = f"{dtype}_{'x'.join(map(str, shape))}"
            x = golden.x(f"{name}.x", rounded(random_values(name, shape).square() + 1e-3, dtype))
            golden.add(f"{name}_rsqrt", dtype, x, {"op_type": 0, "eps": 1e-12})
            golden.add(f"{name}_max", dtype, x, {"op_type": 1, "eps": 0.25})
        edges = [0.0, -0.0, INF, 1e-7, 6e4, -1.0, NAN]
        x = golden.x(f"{dtype}_edges.x", rounded(torch.tensor(edges, dtype=torch.float64), dtype))
        note = "rsqrt of +0 is inf, of -0 is -inf, of inf is 0, of a negative number NaN"
        golden.add(f"{dtype}_edges_rsqrt", dtype, x, {"op_type": 0, "eps": 1e-12}, note)
        x = golden.x(f"{dtype}_edges_max.x", rounded(torch.tensor([*edges[:-1], -INF]), dtype))
        golden.add(
            f"{dtype}_edges_max", dtype, x, {"op_type": 1, "eps": 1e-12}, "no NaN: fmaxf and PyTorch differ on it"
        )
    x = golden.x("i8_positive.x", torch.arange(1, 128).to(torch.int8))
    golden.add("i8_rsqrt", "i8", x, {"op_type": 0, "eps": 1e-12, "x_scale": 0.0513, "y_scale": 0.0371})
    x = golden.x("i8_every.x", torch.arange(-128, 128).to(torch.int8))
    golden.add("i8_max", "i8", x, {"op_type": 1, "eps": 0.3, "x_scale": 0.0513, "y_scale": 0.0437})
    golden.write(out, "l2norm_helper")


NUMPY_MODES = {"constant": "constant", "reflect": "reflect", "symmetric": "symmetric", "edge": "edge", "wrap": "wrap"}
TORCH_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def padding(x, attributes):
    """numpy.pad, and a slice for negative pads; compared with torch.nn.functional.pad where that can do it."""
    pads, mode, value = attributes["pads"], attributes["mode"], as_f32(attributes["value"])
    rank = x.dim()
    around = [(pads[axis], pads[axis + rank]) for axis in range(rank)]
    grown = [(max(begin, 0), max(end, 0)) for begin, end in around]
    outside = {"constant_values": value} if mode == "constant" else {}
    y = np.pad(x.numpy(), grown, mode=NUMPY_MODES[mode], **outside)
    y = y[tuple(slice(max(-begin, 0), y.shape[a] - max(-end, 0)) for a, (begin, end) in enumerate(around))]
    y = torch.from_numpy(np.ascontiguousarray(y))
    last_two = rank == 4 and around[:2] == [(0, 0), (0, 0)] and min(pads) >= 0 and x.numel() > 0
    small = all(max(around[axis]) < x.shape[axis] for axis in range(rank))
    if last_two and small and mode in TORCH_MODES:
        flat = (*around[3], *around[2])
        expected = F.pad(x, flat, mode=TORCH_MODES[mode], **({"value": value} if mode == "constant" else {}))
        torch.testing.assert_close(y, expected, rtol=0, atol=0, equal_nan=True)
    return y


def make_padding(out):
    golden = Golden("Padding", padding)
    shapes = {
        (1,): [[1, 0], [3, 4]],
        (5,): [[4, 4], [3, 0], [13, 17], [-1, -2], [-2, 3], [2, -4]],
        (3, 4): [[1, 2, 2, 1], [-1, 5, 0, -2]],
        (2, 3, 5): [[0, 0, 2, 0, 0, 3], [1, 2, 1, 0, 1, 9]],
        (2, 3, 4, 7): [
            [0, 0, 3, 3, 0, 0, 3, 3],
            [0, 0, 1, 2, 0, 0, 3, 4],
            [0, 1, 0, 0, 0, 2, 0, 0],
            [1, 0, 0, -2, 0, 0, 0, 3],
        ],
        (1, 2, 3, 2, 5): [[0, 0, 1, 1, 2, 0, 0, 2, 1, 3]],
        (1, 2, 1, 2, 1, 2, 1, 3): [[0, 1, 0, 0, 1, 0, 0, 2, 0, 0, 1, 0, 0, 1, 0, 1]],
    }
    for dtype in FLOAT_TYPES:
        for shape, all_pads in shapes.items():
            base = f"{dtype}_{'x'.join(map(str, shape))}"
            x = golden.x(f"{base}.x", rounded(random_values(base, shape), dtype))
            for i, pads in enumerate(all_pads):
                for mode in NUMPY_MODES:
                    if dtype != "f32" and (i > 0 or mode == "wrap"):
                        continue
                    golden.add(f"{base}_{mode}_{i}", dtype, x, {"mode": mode, "pads": pads, "value": 0.3})
    edges = torch.tensor([[NAN, INF, -0.0], [1.0, -INF, 0.0]], dtype=torch.float64)
    x = golden.x("f32_edges.x", rounded(edges, "f32"))
    for mode in NUMPY_MODES:
        golden.add(f"f32_edges_{mode}", "f32", x, {"mode": mode, "pads": [1, 1, 1, 1], "value": -3e38})
    x = golden.x("f32_empty.x", torch.zeros((0, 3)))
    golden.add("f32_empty_reflect", "f32", x, {"mode": "reflect", "pads": [0, 2, 0, 1], "value": 0.0})
    golden.add("f32_empty_constant", "f32", x, {"mode": "constant", "pads": [1, 2, 0, 1], "value": 2.5})
    every = golden.x("i8_every.x", torch.arange(-128, 128).to(torch.int8).reshape(1, 2, 8, 16))
    for mode in NUMPY_MODES:
        given = {"mode": mode, "pads": [0, 0, 3, 3, 0, 0, 3, 3], "value": 0.7}
        golden.add(f"i8_every_{mode}", "i8", every, given | {"x_scale": 0.0517, "y_scale": 0.0431})
        golden.add(f"i8_same_{mode}", "i8", every, given | {"x_scale": 0.0517, "y_scale": 0.0517})
    golden.write(out, "padding")


def caffe_pool(x, bins, average):
    """Caffe's PoolingLayer with the kernel and padding of its SPPLayer, window by window."""

    def windows(size):
        kernel = -(-size // bins)
        pad = (kernel * bins - size + 1) // 2
        assert pad < kernel, "Caffe refuses this"
        pooled = -(-(size + 2 * pad - kernel) // kernel) + 1
        if pad and (pooled - 1) * kernel >= size + pad:
            pooled -= 1
        assert pooled == bins
        for i in range(bins):
            start = i * kernel - pad
            end = min(start + kernel, size + pad)
            yield max(start, 0), min(end, size), end - start

    rows = []
    for top, bottom, height in windows(x.shape[2]):
        row = []
        for left, right, width in windows(x.shape[3]):
            window = x[:, :, top:bottom, left:right]
            row.append(window.sum(dim=(2, 3)) / (height * width) if average else window.amax(dim=(2, 3)))
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


def spatial_pyramid_pooling(x, attributes):
    average = attributes["mode"] == "average"
    levels = []
    for bins in attributes["levels"]:
        if attributes["binning"] == "adaptive":
            pooled = (F.adaptive_avg_pool2d if average else F.adaptive_max_pool2d)(x, bins)
        elif attributes["binning"] == "window":
            window = [-(-size // bins) for size in x.shape[2:]]
            stride = [size // bins for size in x.shape[2:]]
            pooled = (F.avg_pool2d if average else F.max_pool2d)(x, window, stride)[:, :, :bins, :bins]
        else:
            pooled = caffe_pool(x, bins, average)
        levels.append(pooled.flatten(1))
    return torch.cat(levels, dim=1)


def make_spatial_pyramid_pooling(out):
    golden = Golden("SpatialPyramidPooling", spatial_pyramid_pooling)
    shapes = [(1, 1, 1, 1), (2, 3, 4, 4), (2, 3, 7, 9), (1, 2, 13, 16), (1, 2, 17, 6), (1, 1, 24, 40)]
    pyramids = [[1], [2, 1], [4, 2, 1], [1, 2, 3], [6, 3]]

    def attributes(mode, binning, levels, **more):
        return {"levels": levels, "mode": mode, "binning": binning} | more

    def can(binning, size, bins):
        kernel = -(-size // bins)
        if binning == "window":
            return size >= bins
        return binning == "adaptive" or (kernel * bins - size + 1) // 2 < kernel

    for dtype in FLOAT_TYPES:
        for i, shape in enumerate(shapes):
            base = f"{dtype}_{'x'.join(map(str, shape))}"
            x = golden.x(f"{base}.x", rounded(random_values(base, shape), dtype))
            for j, levels in enumerate(pyramids):
                if dtype != "f32" and (i + j) % 3 != 0:
                    continue
                for mode in ["max", "average"]:
                    for binning in ["adaptive", "window", "caffe"]:
                        if all(can(binning, size, bins) for size in shape[2:] for bins in levels):
                            name = f"{base}_{mode}_{binning}_{'_'.join(map(str, levels))}"
                            golden.add(name, dtype, x, attributes(mode, binning, levels))
    values = random_values("not_finite", (1, 3, 5, 6))
    values[0, 0, 1, 1], values[0, 1, 4, 5], values[0, 2, 2] = NAN, INF, -INF
    x = golden.x("f32_not_finite.x", rounded(values, "f32"))
    for mode in ["max", "average"]:
        golden.add(f"f32_not_finite_{mode}", "f32", x, attributes(mode, "adaptive", [3, 1]), "NaN stays in its bins")
    x = golden.x("f32_empty.x", torch.zeros((0, 2, 3, 3)))
    golden.add("f32_empty", "f32", x, attributes("max", "adaptive", [2, 1]))
    for mode, y_scale in [("max", 0.0431), ("average", 0.0193)]:
        for attempt in range(200):
            steps = torch.round(random_values(f"i8_{mode}{attempt}", (2, 2, 7, 8), 50.0))
            x = torch.clamp(steps, -128, 127).to(torch.int8)
            given = attributes(mode, "adaptive", [4, 2, 1], x_scale=0.0517, y_scale=y_scale)
            y = spatial_pyramid_pooling(x.to(torch.float64) * as_f32(0.0517), given)
            if quantized(y, as_f32(y_scale))[1] > TIE_MARGIN:
                golden.add(f"i8_{mode}", "i8", golden.x(f"i8_{mode}.x", x), given)
                break
        else:
            raise RuntimeError(f"i8_{mode}: no values without a near tie")
    golden.write(out, "spatial_pyramid_pooling")


def onnx_resize(x, attributes):
    """ONNX Runtime's Resize in float32, for what PyTorch does not have."""
    spatial = x.dim() - 2
    constants = [onnx.helper.make_tensor("none", onnx.TensorProto.FLOAT, [0], [])]
    if "sizes" in attributes:
        inputs = ["x", "none", "none", "target"]
        target = [*x.shape[:2], *attributes["sizes"]]
        constants.append(onnx.helper.make_tensor("target", onnx.TensorProto.INT64, [len(target)], target))
    else:
        inputs = ["x", "none", "target"]
        scales = attributes["scales"]
        target = [1.0, 1.0, *(scales * spatial if len(scales) == 1 else scales)]
        constants.append(onnx.helper.make_tensor("target", onnx.TensorProto.FLOAT, [len(target)], target))
    node = onnx.helper.make_node(
        "Resize",
        inputs,
        ["y"],
        mode=attributes["mode"],
        coordinate_transformation_mode=attributes["coordinate_mode"],
        nearest_mode=attributes.get("nearest_mode", "floor"),
        cubic_coeff_a=attributes.get("cubic_a", -0.75),
    )
    f32 = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [node],
        "resize",
        [onnx.helper.make_tensor_value_info("x", f32, list(x.shape))],
        [onnx.helper.make_tensor_value_info("y", f32, None)],
        constants,
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"x": x.to(torch.float32).numpy()})[0]).to(torch.float64)


TORCH_NEAREST = {("asymmetric", "floor"): "nearest", ("half_pixel", "round_prefer_ceil"): "nearest-exact"}


def upsampling(x, attributes):
    mode, coordinates, spatial = attributes["mode"], attributes["coordinate_mode"], x.dim() - 2
    name = {"linear": ["linear", "bilinear", "trilinear"][spatial - 1], "cubic": "bicubic" if spatial == 2 else None}
    name = TORCH_NEAREST.get((coordinates, attributes["nearest_mode"])) if mode == "nearest" else name[mode]
    if name is None or "cubic_a" in attributes or (mode != "nearest" and coordinates == "asymmetric"):
        return onnx_resize(x, attributes)
    scales = attributes.get("scales")
    given = {
        "size": attributes.get("sizes"),
        "scale_factor": scales * spatial if scales and len(scales) == 1 else scales,
    }
    corners = None if mode == "nearest" else coordinates == "align_corners"
    return F.interpolate(x, mode=name, align_corners=corners, **given)


def make_upsampling(out):
    golden = Golden("Upsampling", upsampling)

    def attributes(mode, coordinates, nearest_mode=None, **more):
        return (
            {"mode": mode, "coordinate_mode": coordinates}
            | ({"nearest_mode": nearest_mode} if nearest_mode else {})
            | more
        )

    def label(given):
        parts = [given["mode"], given["coordinate_mode"], given.get("nearest_mode", "")]
        numbers = [("x", given.get("scales", [])), ("to", given.get("sizes", []))]
        parts += [kind + "_".join(f"{n:g}".replace(".", "p") for n in values) for kind, values in numbers if values]
        return "_".join(part for part in parts if part)

    # PyTorch copies an axis whose size stays, whatever the scale: none does here.
    smooth = [
        ("linear", "half_pixel"),
        ("linear", "align_corners"),
        ("cubic", "half_pixel"),
        ("cubic", "align_corners"),
    ]
    nearest = [("nearest", *how) for how in TORCH_NEAREST]
    for dtype in FLOAT_TYPES:
        for shape, resizings in {
            (1, 2, 7): [{"scales": [2.0]}, {"scales": [1.75]}, {"sizes": [3]}],
            (2, 2, 3, 5): [
                {"scales": [2.0]},
                {"scales": [1.4, 0.6]},
                {"sizes": [7, 4]},
                {"sizes": [1, 1]},
                {"scales": [3.0]},
            ],
            (1, 1, 1, 1): [{"scales": [2.0]}],
            (1, 2, 2, 3, 4): [{"scales": [2.0]}, {"scales": [1.5, 2.0, 0.5]}, {"sizes": [3, 2, 7]}],
        }.items():
            base = f"{dtype}_{'x'.join(map(str, shape))}"
            x = golden.x(f"{base}.x", rounded(random_values(f"upsampled {base}", shape), dtype))
            for resizing in resizings[: None if dtype == "f32" else 1]:
                for how in smooth + nearest:
                    if how[0] == "cubic" and len(shape) != 4:
                        continue
                    given = attributes(*how, **resizing)
                    golden.add(f"{base}_{label(given)}", dtype, x, given)

    # Small integers and scales that are powers of two: float32 is exact.
    whole = torch.round(random_values("whole", (1, 2, 4, 6), 4.0))
    x = golden.x("whole.x", rounded(whole, "f32"))
    for scales in ([2.0], [4.0, 0.5]):
        golden.add(
            f"whole_{label(attributes('linear', 'asymmetric', scales=scales))}",
            "f32",
            x,
            attributes("linear", "asymmetric", scales=scales),
        )
        golden.add(
            f"whole_{label(attributes('cubic', 'asymmetric', scales=scales))}",
            "f32",
            x,
            attributes("cubic", "asymmetric", scales=scales, cubic_a=-0.75),
        )
        for a in (-0.5, 0.0):
            given = attributes("cubic", "half_pixel", scales=scales, cubic_a=a)
            golden.add(f"whole_{label(given)}_a{-10 * a:g}", "f32", x, given)
    for coordinates in ("half_pixel", "asymmetric", "align_corners"):
        for nearest_mode in ("floor", "round_prefer_floor", "round_prefer_ceil", "ceil"):
            if (coordinates, nearest_mode) in TORCH_NEAREST:
                continue
            for resizing in ({"scales": [2.0]}, {"sizes": [9, 4]}, {"scales": [0.5, 1.25]}):
                given = attributes("nearest", coordinates, nearest_mode, **resizing)
                golden.add(f"whole_{label(given)}", "f32", x, given)

    every = golden.x("i8_every.x", torch.arange(-128, 128).to(torch.int8).reshape(1, 2, 8, 16))
    given = attributes("nearest", "asymmetric", "floor", scales=[2.0])
    golden.add("i8_nearest", "i8", every, given | {"x_scale": 0.0517, "y_scale": 0.0431})
    golden.add("i8_nearest_same_scale", "i8", every, given | {"x_scale": 0.0517, "y_scale": 0.0517})
    golden.add(
        "i8_linear_ties",
        "i8",
        every,
        attributes("linear", "half_pixel", scales=[2.0], x_scale=0.5, y_scale=0.5),
        "weights are multiples of 1/16, so there are exact ties",
    )
    for how in smooth:
        given = attributes(*how, scales=[2.0], x_scale=0.0517, y_scale=0.0431)
        for attempt in range(500):
            x = torch.clamp(torch.round(random_values(f"i8{attempt}", (1, 2, 4, 3), 60.0)), -128, 127).to(torch.int8)
            if quantized(upsampling(x * as_f32(0.0517), given), as_f32(0.0431))[1] > TIE_MARGIN:
                golden.add(f"i8_{label(given)}", "i8", golden.x(f"i8_{label(given)}.x", x), given)
                break
        else:
            raise RuntimeError(f"{label(given)}: no values without a near tie")
    golden.write(out, "upsampling")


ACTIVATIONS = {
    "none": lambda y, alpha: y,
    "relu": lambda y, alpha: F.relu(y),
    "relu6": lambda y, alpha: F.relu6(y),
    "leaky_relu": lambda y, alpha: F.leaky_relu(y, as_f32(alpha)),
}


def convolution(x, attributes):
    kernel = attributes["kernel"]
    axes = len(kernel)
    group = attributes.get("group", 1)
    weight = torch.tensor(attributes["kernel_weights"], dtype=torch.float64)
    weight = weight.reshape(attributes["num_output"], x.shape[1] // group, *kernel)
    bias = attributes.get("bias_weights")
    pads = attributes.get("pad", [0] * axes)
    before, after = pads[:axes], pads[-axes:]
    around = [side for axis in reversed(range(axes)) for side in (before[axis], after[axis])]
    y = [F.conv1d, F.conv2d, F.conv3d][axes - 1](
        F.pad(x, around),
        weight,
        None if bias is None else torch.tensor(bias, dtype=torch.float64),
        stride=attributes.get("stride", 1),
        dilation=attributes.get("dilation", 1),
        groups=group,
    )
    return ACTIVATIONS[attributes.get("activation", "none")](y, attributes.get("alpha", 0.01))


def make_convolution(out):
    """Weights and biases are in the attributes, as multiples of 1/64 that every type holds exactly."""
    golden = Golden("Convolution", convolution)

    def attributes(x_shape, outputs, kernel, bias=True, **more):
        count = outputs * (x_shape[1] // more.get("group", 1)) * int(np.prod(kernel))
        given = {
            "num_output": outputs,
            "kernel": kernel,
            "kernel_weights": [(i * 37 % 127 - 63) / 64 for i in range(count)],
        }
        return given | ({"bias_weights": [(i * 5 % 9 - 4) / 4 for i in range(outputs)]} if bias else {}) | more

    problems = {
        "1d": ((2, 3, 9), 4, [3], {"pad": [1]}),
        "1d_all": ((1, 4, 11), 6, [2], {"stride": [2], "pad": [0, 3], "dilation": [3], "group": 2}),
        "1x1": ((2, 5, 3, 4), 7, [1, 1], {"bias": False}),
        "3x3": ((1, 3, 6, 5), 4, [3, 3], {"pad": [1, 1]}),
        "3x3_one_sided": ((1, 2, 5, 7), 3, [3, 3], {"pad": [0, 2, 1, 0], "activation": "relu"}),
        "strided": (
            (1, 2, 7, 8),
            3,
            [3, 2],
            {"stride": [2, 3], "pad": [1, 0], "activation": "leaky_relu", "alpha": 0.3},
        ),
        "dilated": ((1, 2, 8, 9), 2, [3, 3], {"dilation": [2, 3], "pad": [2, 2], "activation": "relu6"}),
        "grouped": ((1, 6, 4, 4), 4, [2, 2], {"group": 2}),
        "depthwise": ((2, 4, 5, 6), 4, [3, 3], {"group": 4, "pad": [1, 1]}),
        "multiplied": ((1, 3, 5, 5), 6, [3, 3], {"group": 3, "stride": [2, 2], "pad": [1, 1]}),
        "whole_image": ((2, 2, 3, 4), 5, [3, 4], {}),
        "empty": ((0, 2, 3, 4), 2, [3, 3], {"pad": [1, 1]}),
        "3d": ((1, 2, 3, 4, 5), 3, [2, 3, 2], {"pad": [1, 1, 0]}),
        "3d_all": (
            (1, 4, 5, 4, 6),
            2,
            [2, 2, 3],
            {"stride": [2, 1, 3], "pad": [1, 0, 2, 0, 1, 1], "dilation": [1, 2, 1], "group": 2},
        ),
    }
    for dtype in FLOAT_TYPES:
        for name, (shape, outputs, kernel, more) in problems.items():
            if dtype != "f32" and name not in ("1d_all", "strided", "3d"):
                continue
            x = golden.x(f"{dtype}_{name}.x", rounded(random_values(name, shape), dtype))
            golden.add(f"{dtype}_{name}", dtype, x, attributes(shape, outputs, kernel, **more))
    for name, y_scale in [
        ("1x1", 0.0375),
        ("3x3_one_sided", 0.0473),
        ("dilated", 0.0427),
        ("depthwise", 0.0391),
        ("3d", 0.0517),
    ]:
        shape, outputs, kernel, more = problems[name]
        steps = random_values(f"i8_{name}", shape, 40.0).round().clamp(-128, 127)
        x = golden.x(f"i8_{name}.x", steps.to(torch.int8))
        scales = {"x_scale": 0.0237, "y_scale": y_scale, "weight_scale": [1 / 64]}
        golden.add(f"i8_{name}", "i8", x, attributes(shape, outputs, kernel, **more) | scales)
    shape, outputs, kernel, more = problems["grouped"]
    # Powers of two: every channel's weights are integers of its own steps.
    scales = {"x_scale": 0.0237, "y_scale": 0.0333, "weight_scale": [1 / 64, 1 / 128, 1 / 64, 1 / 128]}
    x = golden.x("i8_by_channel.x", random_values("i8_by_channel", shape, 40.0).round().clamp(-128, 127).to(torch.int8))
    golden.add("i8_by_channel", "i8", x, attributes(shape, outputs, kernel, **more) | scales)
    golden.write(out, "convolution")


def instance_norm(x, attributes):
    values = {name: torch.tensor(attributes.get(name, []), dtype=torch.float64) for name in ["scales", "bias"]}
    y = F.instance_norm(
        x,
        weight=values["scales"] if len(values["scales"]) else None,
        bias=values["bias"] if len(values["bias"]) else None,
        eps=as_f32(attributes["epsilon"]),
    )
    if attributes["activation"] == "relu":
        return torch.relu(y)
    return F.leaky_relu(y, as_f32(attributes["alpha"])) if attributes["activation"] == "leaky_relu" else y


def make_instance_norm(out):
    golden = Golden("InstanceNorm", instance_norm)

    def attributes(activation="none", epsilon=1e-5, **more):
        return {"epsilon": epsilon, "activation": activation, "alpha": 0.25} | more

    def affine(channels):
        return {
            "scales": [0.5 + 0.25 * (i % 7) for i in range(channels)],
            "bias": [0.75 - 0.375 * (i % 5) for i in range(channels)],
        }

    shapes = [(2, 3, 2), (1, 5, 17), (3, 2, 33), (2, 3, 5, 7), (1, 4, 8, 8), (2, 1, 1, 9), (1, 2, 13, 31)]
    shapes += [(2, 3, 2, 3, 5), (1, 2, 4, 4, 8)]
    for dtype in FLOAT_TYPES:
        for shape in shapes:
            name = f"{dtype}_{'x'.join(map(str, shape))}"
            x = golden.x(f"{name}.x", rounded(random_values(name, shape, 2.0) + 0.5, dtype))
            golden.add(name, dtype, x, attributes())
            golden.add(f"{name}_affine", dtype, x, attributes(**affine(shape[1])))
        x = f"{dtype}_2x3x5x7.x"
        for activation in ["relu", "leaky_relu"]:
            golden.add(f"{dtype}_{activation}", dtype, x, attributes(activation))
            golden.add(f"{dtype}_{activation}_affine", dtype, x, attributes(activation, **affine(3)))
        golden.add(f"{dtype}_scales_alone", dtype, x, attributes(scales=affine(3)["scales"]))
        golden.add(f"{dtype}_bias_alone", dtype, x, attributes(bias=affine(3)["bias"]))
        golden.add(f"{dtype}_epsilon_large", dtype, x, attributes(epsilon=3.0))
        x = golden.x(f"{dtype}_constant.x", rounded(torch.full((1, 2, 3, 4), 7.0, dtype=torch.float64), dtype))
        golden.add(f"{dtype}_constant", dtype, x, attributes(**affine(2)), "a variance of 0: y is the bias")
        values = random_values("not_finite", (1, 4, 3, 3))
        values[0, 0, 1, 1], values[0, 1, 0, 0], values[0, 2, 2, 2] = NAN, INF, -INF
        x = golden.x(f"{dtype}_not_finite.x", rounded(values, dtype))
        golden.add(f"{dtype}_not_finite", dtype, x, attributes(), "NaN and infinity make their channel NaN")
    for dtype, mean in [("f32", 1e4), ("f16", 1e3), ("bf16", 1e2)]:
        x = golden.x(f"{dtype}_offset.x", rounded(random_values("offset", (2, 2, 16, 16)) + mean, dtype))
        note = "a mean that is large beside a variance of 1, as far as the type has digits for both"
        golden.add(f"{dtype}_offset", dtype, x, attributes(), note)
        golden.add(f"{dtype}_offset_affine", dtype, x, attributes(**affine(2)))

    def i8(name, shape, x_scale=0.037, y_scale=0.03125, **given):
        given = attributes(x_scale=x_scale, y_scale=y_scale, **given)
        for attempt in range(200):
            values = random_values(f"{name}{attempt}", shape, 50.0)
            x = torch.clamp(torch.round(values), -128, 127).to(torch.int8)
            y = instance_norm(x.to(torch.float64) * as_f32(x_scale), given)
            if quantized(y, as_f32(y_scale))[1] > TIE_MARGIN:
                golden.add(name, "i8", golden.x(f"{name}.x", x), given)
                return
        raise RuntimeError(f"{name}: no values without a near tie")

    i8("i8_2x3x5x7", (2, 3, 5, 7))
    i8("i8_2x3x17", (2, 3, 17))
    i8("i8_1x2x3x4x5", (1, 2, 3, 4, 5))
    i8("i8_affine", (1, 3, 6, 8), **affine(3))
    i8("i8_relu", (1, 3, 6, 8), activation="relu", **affine(3))
    i8("i8_leaky_relu", (1, 3, 6, 8), activation="leaky_relu", **affine(3))
    i8("i8_saturates", (1, 3, 6, 8), y_scale=0.0078125)
    golden.write(out, "instance_norm")


def normalize(x, attributes):
    """NormalizeLayer of SSD's branch of Caffe, in NumPy."""
    values = x.numpy()
    axes = tuple(range(1, values.ndim)) if attributes["across_spatial"] else (1,)
    norm = np.sqrt(np.sum(values * values, axis=axes, keepdims=True) + as_f32(attributes["epsilon"]))
    weights = np.float64(np.float32(attributes["weights"] or [1.0] * values.shape[1]))
    if not attributes["channel_shared"]:
        weights = weights.reshape((1, -1) + (1,) * (values.ndim - 2))
    elif not attributes["weights"]:
        weights = np.float64(1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return torch.from_numpy(values / norm * weights)


def make_normalize(out):
    golden = Golden("Normalize", normalize)

    def attributes(across, shared, channels, epsilon=1e-10, **more):
        weights = [20.0] if shared else [20.0 - 1.5 * (i % 9) for i in range(channels)]
        given = {"across_spatial": across, "channel_shared": shared, "epsilon": epsilon, "weights": weights}
        return given | more

    shapes = [(3, 5), (2, 16), (2, 7, 5), (2, 3, 5, 7), (1, 8, 4, 4), (1, 20, 1, 1), (1, 33, 3, 5), (2, 3, 2, 3, 4)]
    shapes += [(0, 3, 4, 4), (2, 3, 0, 4)]
    for dtype in FLOAT_TYPES:
        for shape in shapes:
            base = f"{dtype}_{'x'.join(map(str, shape))}"
            x = golden.x(f"{base}.x", rounded(random_values(base, shape, 2.0), dtype))
            for across in [0, 1]:
                for shared in [0, 1]:
                    name = base + ("_across" if across else "") + ("_shared" if shared else "")
                    golden.add(name, dtype, x, attributes(across, shared, shape[1]))
        x = f"{dtype}_2x3x5x7.x"
        for across in [0, 1]:
            label = f"{dtype}_across" if across else dtype
            golden.add(f"{label}_no_weights", dtype, x, attributes(across, 0, 3, weights=[]))
            golden.add(f"{label}_epsilon_large", dtype, x, attributes(across, 0, 3, 2.5))
        values = random_values("not_finite", (2, 3, 2, 2))
        values[0, 1, 0, 0], values[1, 2, 1, 1] = NAN, INF
        values[0, :, 1, 1] = 0.0
        x = golden.x(f"{dtype}_not_finite.x", rounded(values, dtype))
        for across in [0, 1]:
            note = "a pixel of zeros stays zero; NaN makes what it is summed with NaN; infinity makes itself NaN"
            golden.add(f"{dtype}_not_finite_{across}", dtype, x, attributes(across, 0, 3), note)

    def i8(name, shape, across, shared, x_scale=0.037, y_scale=0.125):
        given = attributes(across, shared, shape[1], x_scale=x_scale, y_scale=y_scale)
        for attempt in range(200):
            values = random_values(f"{name}{attempt}", shape, 50.0)
            x = torch.clamp(torch.round(values), -128, 127).to(torch.int8)
            y = normalize(x.to(torch.float64) * as_f32(x_scale), given)
            if quantized(y, as_f32(y_scale))[1] > TIE_MARGIN:
                golden.add(name, "i8", golden.x(f"{name}.x", x), given)
                return
        raise RuntimeError(f"{name}: no values without a near tie")

    i8("i8_2x3x5x7", (2, 3, 5, 7), 0, 0)
    i8("i8_2x3x5x7_across", (2, 3, 5, 7), 1, 0)
    i8("i8_1x9x4x4_shared", (1, 9, 4, 4), 0, 1)
    i8("i8_1x9x4x4_across_shared", (1, 9, 4, 4), 1, 1, y_scale=0.05)
    i8("i8_saturates", (1, 9, 4, 4), 0, 0, y_scale=0.03125)
    golden.write(out, "normalize")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/golden/ops"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    make_leaky_relu(out)
    make_l2_normalize(out)
    make_l2norm_helper(out)
    make_padding(out)
    make_spatial_pyramid_pooling(out)
    make_upsampling(out)
    make_convolution(out)
    make_instance_norm(out)
    make_normalize(out)


if __name__ == "__main__":
    main()
