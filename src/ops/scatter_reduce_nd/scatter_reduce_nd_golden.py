# Golden values of ScatterReduceND, see tests/golden/generators/make_goldens.py: ONNX Runtime computes them.
import torch
from golden_cases import FLOAT_TYPES, INF, NAN, Golden, random_values, rounded
from scatter_cases import numbers, scatter


def indices_of(name, shape, sizes):
    """Returns random indices from -size to size - 1 for axes of the sizes `sizes`."""
    columns = [
        torch.remainder((1e6 * random_values(f"{name} {i}", shape)).to(torch.int64), 2 * size) - size
        for i, size in enumerate(sizes)
    ]
    return torch.stack(columns, -1)


def make(out):
    golden = Golden("ScatterReduceND", scatter("ScatterND"))
    shapes = [
        ("one_index", (5, 6), 1, (12,)),
        ("whole_index", (3, 4, 2), 3, (5, 6)),
        ("two_indices", (3, 4, 5), 2, (30,)),
        ("no_updates", (3, 4), 1, (0,)),
        ("one_place", (1, 7), 1, (40,)),
    ]
    for dtype in [*FLOAT_TYPES, "i64"]:
        for reduction in ("add", "mul", "min", "max"):
            for what, shape, depth, count in shapes:
                name = f"{dtype}_{reduction}_{what}"
                tensors = {"x": shape, "updates": (*count, *shape[depth:])}
                for each, size in tensors.items():
                    values = numbers(f"{name} {each}", size, dtype, reduction)
                    if dtype == "i64":
                        values = torch.round(values).to(torch.int64)
                    tensors[each] = golden.x(f"{name}.{each}", values if dtype == "i64" else rounded(values, dtype))
                indices = golden.x(f"{name}.indices", indices_of(name, count, shape[:depth]))
                golden.add(name, dtype, tensors["x"], {"reduction": reduction}, more=[indices, tensors["updates"]])
    for reduction in ("add", "mul", "min", "max"):
        name = f"f32_{reduction}_edges"
        x = golden.x(f"{name}.x", torch.tensor([0.0, NAN, 1.0, INF, 2.0], dtype=torch.float32))
        indices = golden.x(f"{name}.indices", torch.tensor([[0], [0], [1], [2], [2], [3], [4], [4]]))
        updates = torch.tensor([NAN, 3.0, 4.0, 5.0, NAN, -INF, INF, 0.5], dtype=torch.float32)
        updates = golden.x(f"{name}.updates", updates)
        golden.add(name, "f32", x, {"reduction": reduction}, "NaN in data and updates", more=[indices, updates])
    golden.write(out, "scatter_reduce_nd")
