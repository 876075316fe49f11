# Networks whose exports contain MultiScaleDeformableAttention, with the expected result of Graft: see
# tests/golden/generators/make_exports.py.
import functools

from export_cases import fused, left

OPERATOR = "MultiScaleDeformableAttention"
# The exports are of PyTorch 2.15 only, whose two exporters count as one.
KINDS = [{"attributes": {"points": [4, 4, 4]}, "exporters": 1}, {"attributes": {"points": [3, 6, 3]}, "exporters": 1}]
SHAPES = [(6, 8), (3, 4), (2, 2)]
MEMORY = (2, sum(height * width for height, width in SHAPES), 16)


def sample_padded(image, grid, align_corners=False):
    """Computes grid_sample by gathers from an image padded with zeros, as mmcv's bilinear_grid_sample does."""
    import torch
    import torch.nn.functional as F

    items, channels, height, width = image.shape

    def place(coordinate, size):
        place = (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2
        return place.reshape(items, -1)

    x, y = place(grid[..., 0], width), place(grid[..., 1], height)
    left, top = torch.floor(x).long(), torch.floor(y).long()
    right, bottom = left + 1, top + 1
    pixels = F.pad(image, [1, 1, 1, 1]).reshape(items, channels, -1)

    def corner(column, row, weight):
        column = (column + 1).clamp(0, width + 1)
        row = torch.where(row + 1 < 0, torch.tensor(0), row + 1)
        row = torch.where(row > height + 1, torch.tensor(height + 1), row)
        indices = (column + row * (width + 2)).unsqueeze(1).expand(items, channels, -1)
        return torch.gather(pixels, 2, indices) * weight.unsqueeze(1)

    samples = corner(left, top, (right - x) * (bottom - y)) + corner(left, bottom, (right - x) * (y - top))
    samples = samples + corner(right, top, (x - left) * (bottom - y)) + corner(right, bottom, (x - left) * (y - top))
    return samples.reshape(items, channels, *grid.shape[1:3])


def sample_masked(image, grid, align_corners=False):
    """Computes grid_sample by gathers with masks that drop corners outside the image, as RF-DETR does."""
    items, channels, height, width = image.shape

    def place(coordinate, size):
        return (coordinate + 1) * (size - 1) / 2 if align_corners else (coordinate + 1) * size / 2 - 0.5

    x, y = place(grid[..., 0], width), place(grid[..., 1], height)
    left, top = x.floor().long(), y.floor().long()
    to_right, down = (x - left).unsqueeze(1), (y - top).unsqueeze(1)
    pixels = image.flatten(2)

    def corner(column, row):
        is_inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        indices = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).flatten(1)
        values = pixels.gather(2, indices.unsqueeze(1).expand(items, channels, -1))
        return values.view(items, channels, *grid.shape[1:3]) * is_inside.unsqueeze(1)

    above = (1 - to_right) * (1 - down) * corner(left, top) + to_right * (1 - down) * corner(left + 1, top)
    return above + (1 - to_right) * down * corner(left, top + 1) + to_right * down * corner(left + 1, top + 1)


def sample_indexed(image, grid, align_corners=False):
    """Computes grid_sample by indexing with one index per axis. Interpolates between columns first, then between rows."""
    import torch

    items, _, height, width = image.shape
    size = torch.tensor([width, height], dtype=image.dtype)
    places = (grid + 1) / 2 * (size - 1) if align_corners else (grid + 1) * size / 2 - 0.5
    corners = places.floor()
    (left, top), (to_right, down) = corners.long().unbind(-1), (places - corners).unsqueeze(1).unbind(-1)
    item = torch.arange(items)[:, None, None]

    def corner(column, row):
        is_inside = (column >= 0) & (column <= width - 1) & (row >= 0) & (row <= height - 1)
        values = image[item, :, row.clamp(0, height - 1), column.clamp(0, width - 1)]
        return torch.where(is_inside[..., None], values, 0.0).permute(0, 3, 1, 2)

    above = corner(left, top) * (1 - to_right) + corner(left + 1, top) * to_right
    below = corner(left, top + 1) * (1 - to_right) + corner(left + 1, top + 1) * to_right
    return above * (1 - down) + below * down


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
    sample=None,
):
    """Returns a module with attention layers, whose queries attend to its input x, the pixels of all maps.

    With `levels_apart` the levels have an axis of their own, as in Deformable DETR and Grounding DINO; otherwise the points
    of all levels lie on one axis, as in RT-DETR v2 and in D-FINE, whose levels differ in their number of points. With
    `shares_maps`, as in D-FINE, all layers share the nodes that split x into maps. With `fixed_queries`, as in the
    first layer of a single-stage decoder, points and weights do not depend on x. `sample` replaces grid_sample.
    """
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
            """Returns a map of shape [batch * heads, channels, height, width] for each level."""
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
            sampler = sample or functools.partial(F.grid_sample, mode="bilinear", padding_mode="zeros")
            samples = [
                sampler(part, grid, align_corners=align_corners)
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
    def attend(name, text, expected, points, dynamic=(0,), **more):
        module = attention(SHAPES, points, **more)
        return case(name, MEMORY, expected, text, module, dynamic=dynamic, also_static=bool(dynamic))

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
        attend(
            "gathered_deformable_detr",
            "a decoder layer as of Deformable DETR, sampled as by mmcv's bilinear_grid_sample",
            found([4, 4, 4]),
            [4, 4, 4],
            sample=sample_padded,
        ),
        attend(
            "gathered_grounding_dino",
            "two decoder layers as of Grounding DINO, sampled by gathers, what lies outside masked",
            found([2, 2, 2], 2),
            [2, 2, 2],
            layers=2,
            sample=sample_masked,
        ),
        attend(
            "gathered_rt_detr_v2",
            "a decoder layer as of RT-DETR v2, sampled by gathers, what lies outside masked",
            found([4, 4, 4]),
            [4, 4, 4],
            levels_apart=False,
            heads=4,
            sample=sample_masked,
        ),
        attend(
            "gathered_d_fine",
            "two decoder layers as of D-FINE that share maps, sampled as by mmcv's bilinear_grid_sample",
            found([3, 6, 3], 2),
            [3, 6, 3],
            layers=2,
            levels_apart=False,
            shares_maps=True,
            sample=sample_padded,
        ),
        attend(
            "indexed_deformable_detr",
            "a decoder layer as of Deformable DETR, maps indexed by item, row and column",
            found([4, 4, 4]),
            [4, 4, 4],
            dynamic=(),
            sample=sample_indexed,
        ),
        attend(
            "gathered_align_corners",
            "corners of maps are aligned, sampled as by mmcv's bilinear_grid_sample",
            left(OPERATOR, "corners of maps are aligned, not their edges"),
            [4, 4, 4],
            align_corners=True,
            sample=sample_padded,
        ),
    ]


def tensorflow_cases(_):
    return []


def paddle_cases(_):
    return []
