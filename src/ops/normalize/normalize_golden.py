# Golden values of Normalize, see tests/golden/generators/make_goldens.py.
import numpy as np
import torch
from golden_cases import FLOAT_TYPES, INF, NAN, TIE_MARGIN, Golden, as_f32, quantized, random_values, rounded


def normalize(x, attributes):
    """Computes NormalizeLayer of SSD's branch of Caffe in NumPy."""
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


def make(out):
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
