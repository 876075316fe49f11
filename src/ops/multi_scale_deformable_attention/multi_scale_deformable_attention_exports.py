# What exporters write of MultiScaleDeformableAttention, and what Graft makes of it: see
# tests/golden/generators/make_exports.py.
from export_cases import fused, left

OPERATOR = "MultiScaleDeformableAttention"
# Written for PyTorch 2.15 alone, whose two exporters count as one.
KINDS = [{"attributes": {"points": [4, 4, 4]}, "exporters": 1}, {"attributes": {"points": [3, 6, 3]}, "exporters": 1}]
SHAPES = [(6, 8), (3, 4), (2, 2)]
MEMORY = (2, sum(height * width for height, width in SHAPES), 16)


def attention(
    shapes,
    points,
    heads=2,
    queries=5,
    layers=1,
    levels_apart=True,
    align_corners=False,
    shares_maps=False,
    fixed_queries=False,
):
    """Layers of queries that attend to x, the pixels of all maps, as the papers describe them. `levels_apart` puts the
    points of a level on an axis of their own and takes each level from there, as Deformable DETR and Grounding DINO;
    otherwise all points lie on one axis, as in RT-DETR v2 and D-FINE, which has not as many in each level. With
    `shares_maps`, as in D-FINE, what splits x into maps is there once for all layers. With
    `fixed_queries`, as in the first layer of a decoder of one stage, points and weights do not depend on x."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    count = sum(points)

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
            self.offsets, self.weights = nn.Linear(width, heads * count * 2), nn.Linear(width, heads * count)

        def maps(self, x):
            """Of each level, as batch and heads, channels, height, width."""
            items, channels = x.shape[0], x.shape[2] // heads
            value = self.value(x).view(items, -1, heads, channels)
            sizes = [height * width for height, width in shapes]
            if levels_apart:
                maps = [part.flatten(2).transpose(1, 2) for part in value.split(sizes, dim=1)]
            else:
                maps = value.permute(0, 2, 3, 1).flatten(0, 1).split(sizes, dim=-1)
            return [
                part.reshape(items * heads, channels, height, width)
                for part, (height, width) in zip(maps, shapes, strict=True)
            ]

        def grids(self, locations):
            grids = 2 * locations - 1
            if levels_apart:
                return [grids[:, :, :, level].transpose(1, 2).flatten(0, 1) for level in range(len(shapes))]
            return grids.permute(0, 2, 1, 3, 4).flatten(0, 1).split(points, dim=-2)

        def forward(self, query, references, maps):
            items, length, width = query.shape
            weights = self.weights(query).view(items, length, heads, count).softmax(-1)
            offsets = self.offsets(query)
            if levels_apart:
                offsets = offsets.view(items, length, heads, len(shapes), points[0], 2)
                scale = torch.tensor([[w, h] for h, w in shapes], dtype=query.dtype)[None, None, None, :, None, :]
                locations = references[:, :, None, None, None, :] + offsets / scale
                weights = weights.view(items, length, heads, len(shapes), points[0])
                weights = weights.transpose(1, 2).reshape(items * heads, 1, length, count)
            else:
                offsets = offsets.view(items, length, heads, count, 2)
                scale = torch.tensor([1 / number for number in points for _ in range(number)], dtype=query.dtype)
                locations = references[:, :, None, None, :] + 0.5 * offsets * scale[None, None, None, :, None]
                weights = weights.permute(0, 2, 1, 3).reshape(items * heads, 1, length, count)
            samples = [
                F.grid_sample(part, grid, mode="bilinear", padding_mode="zeros", align_corners=align_corners)
                for part, grid in zip(maps, self.grids(locations), strict=True)
            ]
            side_by_side = torch.stack(samples, dim=-2).flatten(-2) if levels_apart else torch.cat(samples, dim=-1)
            sums = (side_by_side * weights).sum(-1).view(items, width, length)
            return self.out(sums.transpose(1, 2).contiguous())

    class Decoder(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.query, self.references = (
                nn.Parameter(torch.empty(queries, width)),
                nn.Parameter(torch.empty(queries, 2)),
            )
            self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
            generator = torch.Generator().manual_seed(7)
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)

        def forward(self, x):
            query = self.query[None].expand(x.shape[0], -1, -1)
            query = query if fixed_queries else query + x.mean(1, keepdim=True)
            references = self.references[None].sigmoid()
            maps = self.layers[0].maps(x) if shares_maps else None
            for layer in self.layers:
                query = query + layer(query, references, maps or layer.maps(x))
            return query

    return Decoder(MEMORY[2])


def torch_cases(case):
    def attend(name, text, expected, points, **more):
        return case(name, MEMORY, expected, text, attention(SHAPES, points, **more), also_static=True)

    def found(points, fusions=1):
        return fused(OPERATOR, {"points": points}, fusions)

    return [
        attend("deformable_detr", "a decoder layer as of Deformable DETR", found([4, 4, 4]), [4, 4, 4]),
        attend("first_layer", "the first layer of a decoder", found([4, 4, 4]), [4, 4, 4], fixed_queries=True),
        attend("grounding_dino", "two decoder layers as of Grounding DINO", found([2, 2, 2], 2), [2, 2, 2], layers=2),
        attend(
            "rt_detr_v2", "a decoder layer as of RT-DETR v2", found([4, 4, 4]), [4, 4, 4], levels_apart=False, heads=4
        ),
        attend("d_fine", "a decoder layer as of D-FINE", found([3, 6, 3]), [3, 6, 3], levels_apart=False),
        attend(
            "d_fine_layers",
            "two decoder layers as of D-FINE",
            found([3, 6, 3], 2),
            [3, 6, 3],
            layers=2,
            levels_apart=False,
            shares_maps=True,
        ),
        attend(
            "attention_align_corners",
            "corners of maps are aligned",
            left(OPERATOR, "corners of maps are aligned, not their edges"),
            [4, 4, 4],
            align_corners=True,
        ),
    ]


def tensorflow_cases(_):
    return []


def paddle_cases(_):
    return []
