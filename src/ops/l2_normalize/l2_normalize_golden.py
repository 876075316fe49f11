# Golden values of L2Normalize, see tests/golden/generators/make_goldens.py.
import numpy as np
import tensorflow as tf
import torch
import torch.nn.functional as F
from golden_cases import FLOAT_TYPES, INF, NAN, TIE_MARGIN, Golden, as_f32, quantized, random_values, rounded


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


def make(out):
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
