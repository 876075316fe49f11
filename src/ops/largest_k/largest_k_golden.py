# Golden values of LargestK, see tests/golden/generators/make_goldens.py: the first k elements of a stable sort.
import torch
from golden_cases import FLOAT_TYPES, INF, NAN, Golden, random_values, rounded


def first_k(x, attributes):
    axis = attributes.get("axis", -1)
    found = torch.sort(x, dim=axis, descending=attributes.get("largest", 1) == 1, stable=True)
    return found.values.narrow(axis, 0, attributes["k"])


def make(out):
    golden = Golden("LargestK", first_k)
    cases = [((7,), 7, {}), ((1,), 1, {}), ((3, 100), 40, {}), ((3, 100), 40, {"largest": 0})]
    cases += [
        ((4, 5, 6), 2, {"axis": 1}),
        ((4, 5, 6), 3, {"axis": -3, "largest": 0}),
        ((2, 50), 0, {}),
        ((0, 5), 2, {}),
    ]
    for dtype in [*FLOAT_TYPES, "i64"]:
        for shape, k, attributes in cases:
            name = f"{dtype}_{'x'.join(map(str, shape))}_{k}" + "".join(f"_{n}_{v}" for n, v in attributes.items())
            values = random_values(name, shape)
            x = (values * 5).to(torch.int64) if dtype == "i64" else rounded(values, dtype)
            golden.add(name.replace("-", "m"), dtype, golden.x(f"{name}.x", x), {"k": k} | attributes)
    for dtype in FLOAT_TYPES:
        x = golden.x(f"{dtype}_edges.x", torch.tensor([0.0, NAN, -INF, INF, -1.0, NAN, 1.0]))
        golden.add(f"{dtype}_edges", dtype, x, {"k": 5}, "NaN is the largest")
        golden.add(f"{dtype}_edges_smallest", dtype, x, {"k": 7, "largest": 0}, "NaN is the largest")
    golden.write(out, "largest_k")
