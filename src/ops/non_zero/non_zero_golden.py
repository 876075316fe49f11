# Golden values of NonZero, see tests/golden/generators/make_goldens.py.
import torch
from golden_cases import FLOAT_TYPES, INF, NAN, TORCH_TYPES, Golden, random_values, rounded

INTEGERS = {"i32": torch.int32, "i64": torch.int64}


def non_zero(x, _):
    return torch.nonzero(x).t().contiguous()


def sparse(name, shape):
    """Returns numbers of which about a third are not zero."""
    return random_values(name, shape, 3.0) * (random_values(name + " kept", shape) > 0.4)


def make(out):
    golden = Golden("NonZero", non_zero)
    shapes = [(0,), (1,), (31,), (32,), (33,), (1025,), (3, 5), (2, 3, 5, 7), (3, 0, 2), (2, 1, 3, 2, 1, 2, 3, 2)]
    for dtype in [*FLOAT_TYPES, *INTEGERS]:
        for shape in shapes:
            name = f"{dtype}_{'x'.join(map(str, shape))}"
            values = sparse(name, shape)
            x = (values * 1e3).to(INTEGERS[dtype]) if dtype in INTEGERS else rounded(values, dtype)
            golden.add(name, dtype, golden.x(f"{name}.x", x), {})
        x = torch.zeros((4, 9), dtype=INTEGERS.get(dtype, torch.float32))
        golden.add(f"{dtype}_none", dtype, golden.x(f"{dtype}_none.x", x), {})
        golden.add(f"{dtype}_all", dtype, golden.x(f"{dtype}_all.x", x + 1), {})
    for dtype in FLOAT_TYPES:
        info = torch.finfo(TORCH_TYPES[dtype])
        edges = [0.0, -0.0, INF, -INF, NAN, info.max, info.tiny, info.tiny * info.eps, -info.tiny * info.eps]
        x = golden.x(f"{dtype}_edges.x", rounded(torch.tensor(edges, dtype=torch.float64), dtype))
        golden.add(f"{dtype}_edges", dtype, x, {}, "NaN and the smallest subnormal number are not zero, -0 is")
    x = golden.x("i64_edges.x", torch.tensor([0, 1 << 32, -(1 << 63), 1, -1, 1 << 40]))
    golden.add("i64_edges", "i64", x, {}, "numbers whose low half is zero")
    golden.write(out, "non_zero")
