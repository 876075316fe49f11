# Golden values of L2NormHelper, see tests/golden/generators/make_goldens.py.
import torch
from golden_cases import FLOAT_TYPES, INF, NAN, Golden, as_f32, random_values, rounded


def l2norm_helper(x, attributes):
    if attributes["op_type"] == 0:
        return torch.rsqrt(x)
    return torch.clamp_min(x, as_f32(attributes["eps"]))


def make(out):
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
