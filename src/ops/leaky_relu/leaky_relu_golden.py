# Golden values of LeakyReLU, see tests/golden/generators/make_goldens.py.
import torch
import torch.nn.functional as F
from golden_cases import FLOAT_TYPES, INF, NAN, TORCH_TYPES, Golden, as_f32, random_values, rounded


def leaky_relu(x, attributes):
    return F.leaky_relu(x, as_f32(attributes["alpha"]))


def make(out):
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
