# Golden values of ScatterReduceElements, see tests/golden/generators/make_goldens.py: ONNX Runtime computes them.
import torch
from golden_cases import FLOAT_TYPES, INF, NAN, Golden, random_values, rounded
from scatter_cases import numbers, scatter


def make(out):
    golden = Golden("ScatterReduceElements", scatter("ScatterElements"))
    shapes = [
        ("rows", (5, 6), 0, (12, 4)),
        ("columns", (5, 6), 1, (3, 20)),
        ("last", (3, 4, 5), -1, (3, 2, 9)),
        ("middle", (3, 4, 5), -2, (2, 30, 5)),
        ("no_updates", (3, 4), 0, (0, 4)),
        ("one_place", (1,), 0, (40,)),
    ]
    for dtype in [*FLOAT_TYPES, "i64"]:
        for reduction in ("add", "mul", "min", "max"):
            for what, shape, axis, count in shapes:
                name = f"{dtype}_{reduction}_{what}"
                tensors = {"x": shape, "updates": count}
                for each, size in tensors.items():
                    values = numbers(f"{name} {each}", size, dtype, reduction)
                    if dtype == "i64":
                        values = torch.round(values).to(torch.int64)
                    tensors[each] = golden.x(f"{name}.{each}", values if dtype == "i64" else rounded(values, dtype))
                indices = (1e6 * random_values(f"{name} indices", count)).to(torch.int64)
                indices = torch.remainder(indices, 2 * shape[axis]) - shape[axis]
                indices = golden.x(f"{name}.indices", indices.to(torch.int32 if what == "columns" else torch.int64))
                attributes = {"reduction": reduction, "axis": axis}
                golden.add(name, dtype, tensors["x"], attributes, more=[indices, tensors["updates"]])
    for reduction in ("add", "mul", "min", "max"):
        name = f"f32_{reduction}_edges"
        x = golden.x(f"{name}.x", torch.tensor([0.0, NAN, 1.0, INF, 2.0], dtype=torch.float32))
        indices = golden.x(f"{name}.indices", torch.tensor([0, 0, 1, 2, 2, 3, 4, 4]))
        updates = torch.tensor([NAN, 3.0, 4.0, 5.0, NAN, -INF, INF, 0.5], dtype=torch.float32)
        updates = golden.x(f"{name}.updates", updates)
        attributes = {"reduction": reduction, "axis": 0}
        golden.add(name, "f32", x, attributes, "NaN in data and updates", more=[indices, updates])
    golden.write(out, "scatter_reduce_elements")
