# Golden values of MultiScaleDeformableAttention, see tests/golden/generators/make_goldens.py: PyTorch's grid_sample.
import torch
import torch.nn.functional as F
from golden_cases import FLOAT_TYPES, Golden, random_values, rounded


def attend(value, attributes, shapes, locations, weights):
    items, _, heads, channels = value.shape
    queries = locations.shape[1]
    shapes, points = shapes.tolist(), attributes["points"]
    grids = (2 * locations.double().flatten(3, -2) - 1).transpose(1, 2).flatten(0, 1).split(points, 2)
    maps = value.split([height * width for height, width in shapes], 1)
    sampled = [
        F.grid_sample(
            pixels.permute(0, 2, 3, 1).reshape(items * heads, channels, *shape), grid, "bilinear", "zeros", False
        )
        for pixels, shape, grid in zip(maps, shapes, grids, strict=True)
    ]
    parts = weights.double().flatten(3).transpose(1, 2).reshape(items * heads, 1, queries, sum(points))
    sums = (torch.cat(sampled, -1) * parts).sum(-1)
    return sums.view(items, heads, channels, queries).permute(0, 3, 1, 2)


# Positions of up to 20 pixels are rounded to float32, and the values of neighboring pixels differ by up to 6.
ABSOLUTE = 5e-5


def make(out):
    golden = Golden("MultiScaleDeformableAttention", attend)
    cases = [
        ("four_levels", 2, [(8, 12), (4, 6), (2, 3), (1, 2)], 5, 4, 8, [4, 4, 4, 4], True),
        ("three_levels", 1, [(10, 10), (5, 5), (3, 3)], 7, 2, 16, [4, 4, 4], False),
        ("unequal", 1, [(10, 10), (5, 5), (3, 3)], 7, 2, 16, [3, 6, 3], False),
        ("one_level", 2, [(20, 7)], 9, 1, 5, [8], True),
        ("one_pixel", 2, [(1, 1), (1, 1)], 6, 3, 4, [2, 3], False),
        ("a_column_and_a_row", 1, [(9, 1), (1, 9)], 6, 1, 3, [5, 4], False),
    ]
    for dtype in FLOAT_TYPES:
        for case_name, items, shapes, queries, heads, channels, points, is_split in cases:
            name = f"{dtype}_{case_name}"
            pixels = sum(height * width for height, width in shapes)
            value = random_values(name, (items, pixels, heads, channels))
            of_points = (len(points), points[0]) if is_split else (sum(points),)
            locations = 0.5 + random_values(name + " locations", (items, queries, heads, *of_points, 2), 0.4)
            weights = random_values(name + " weights", (items, queries, heads, sum(points))).softmax(-1)
            more = [
                golden.x(f"{name}.shapes", torch.tensor(shapes)),
                golden.x(f"{name}.locations", rounded(locations, dtype)),
                golden.x(f"{name}.weights", rounded(weights.reshape(*locations.shape[:-1]), dtype)),
            ]
            x = golden.x(f"{name}.x", rounded(value, dtype))
            golden.add(name, dtype, x, {"points": points}, more=more, absolute=ABSOLUTE)
    golden.write(out, "multi_scale_deformable_attention")
