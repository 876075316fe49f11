# Golden values of SpatialPyramidPooling, see tests/golden/generators/make_goldens.py.
import torch
import torch.nn.functional as F
from golden_cases import FLOAT_TYPES, INF, NAN, TIE_MARGIN, Golden, as_f32, quantized, random_values, rounded


def caffe_pool(x, bins, average):
    """Pools as Caffe's PoolingLayer does with the kernel and padding of its SPPLayer, window by window."""

    def windows(size):
        kernel = -(-size // bins)
        pad = (kernel * bins - size + 1) // 2
        assert pad < kernel, "Caffe refuses this"
        pooled = -(-(size + 2 * pad - kernel) // kernel) + 1
        if pad and (pooled - 1) * kernel >= size + pad:
            pooled -= 1
        assert pooled == bins
        for i in range(bins):
            start = i * kernel - pad
            end = min(start + kernel, size + pad)
            yield max(start, 0), min(end, size), end - start

    rows = []
    for top, bottom, height in windows(x.shape[2]):
        row = []
        for left, right, width in windows(x.shape[3]):
            window = x[:, :, top:bottom, left:right]
            row.append(window.sum(dim=(2, 3)) / (height * width) if average else window.amax(dim=(2, 3)))
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


def spatial_pyramid_pooling(x, attributes):
    average = attributes["mode"] == "average"
    levels = []
    for bins in attributes["levels"]:
        if attributes["binning"] == "adaptive":
            pooled = (F.adaptive_avg_pool2d if average else F.adaptive_max_pool2d)(x, bins)
        elif attributes["binning"] == "window":
            window = [-(-size // bins) for size in x.shape[2:]]
            stride = [size // bins for size in x.shape[2:]]
            pooled = (F.avg_pool2d if average else F.max_pool2d)(x, window, stride)[:, :, :bins, :bins]
        else:
            pooled = caffe_pool(x, bins, average)
        levels.append(pooled.flatten(1))
    return torch.cat(levels, dim=1)


def make(out):
    golden = Golden("SpatialPyramidPooling", spatial_pyramid_pooling)
    shapes = [(1, 1, 1, 1), (2, 3, 4, 4), (2, 3, 7, 9), (1, 2, 13, 16), (1, 2, 17, 6), (1, 1, 24, 40)]
    pyramids = [[1], [2, 1], [4, 2, 1], [1, 2, 3], [6, 3]]

    def attributes(mode, binning, levels, **more):
        return {"levels": levels, "mode": mode, "binning": binning} | more

    def can(binning, size, bins):
        kernel = -(-size // bins)
        if binning == "window":
            return size >= bins
        return binning == "adaptive" or (kernel * bins - size + 1) // 2 < kernel

    for dtype in FLOAT_TYPES:
        for i, shape in enumerate(shapes):
            base = f"{dtype}_{'x'.join(map(str, shape))}"
            x = golden.x(f"{base}.x", rounded(random_values(base, shape), dtype))
            for j, levels in enumerate(pyramids):
                if dtype != "f32" and (i + j) % 3 != 0:
                    continue
                for mode in ["max", "average"]:
                    for binning in ["adaptive", "window", "caffe"]:
                        if all(can(binning, size, bins) for size in shape[2:] for bins in levels):
                            name = f"{base}_{mode}_{binning}_{'_'.join(map(str, levels))}"
                            golden.add(name, dtype, x, attributes(mode, binning, levels))
    values = random_values("not_finite", (1, 3, 5, 6))
    values[0, 0, 1, 1], values[0, 1, 4, 5], values[0, 2, 2] = NAN, INF, -INF
    x = golden.x("f32_not_finite.x", rounded(values, "f32"))
    for mode in ["max", "average"]:
        golden.add(f"f32_not_finite_{mode}", "f32", x, attributes(mode, "adaptive", [3, 1]), "NaN stays in its bins")
    x = golden.x("f32_empty.x", torch.zeros((0, 2, 3, 3)))
    golden.add("f32_empty", "f32", x, attributes("max", "adaptive", [2, 1]))
    for mode, y_scale in [("max", 0.0431), ("average", 0.0193)]:
        for attempt in range(200):
            steps = torch.round(random_values(f"i8_{mode}{attempt}", (2, 2, 7, 8), 50.0))
            x = torch.clamp(steps, -128, 127).to(torch.int8)
            given = attributes(mode, "adaptive", [4, 2, 1], x_scale=0.0517, y_scale=y_scale)
            y = spatial_pyramid_pooling(x.to(torch.float64) * as_f32(0.0517), given)
            if quantized(y, as_f32(y_scale))[1] > TIE_MARGIN:
                golden.add(f"i8_{mode}", "i8", golden.x(f"i8_{mode}.x", x), given)
                break
        else:
            raise RuntimeError(f"i8_{mode}: no values without a near tie")
    golden.write(out, "spatial_pyramid_pooling")
