# Golden values of InstanceNorm, see tests/golden/generators/make_goldens.py.
import torch
import torch.nn.functional as F
from golden_cases import FLOAT_TYPES, INF, NAN, TIE_MARGIN, Golden, as_f32, quantized, random_values, rounded


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


def make(out):
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
