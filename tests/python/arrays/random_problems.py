# Random problems of operators, small and with edge cases, for the tests against ONNX Runtime on the CPU and for those
# on a GPU.
"""Each function draws a random problem, which a test runs in ONNX Runtime."""

import numpy as np

DTYPES = [np.float32, np.int32, np.int64]  # types of ONNX Runtime's CPU kernels
REDUCTIONS = ["add", "mul", "min", "max"]


def in_order(arrays, names):
    """Returns the inputs in the operator's order; an input that is left out before another one is a tensor without
    elements."""
    count = max(names.index(name) for name in arrays) + 1
    return [arrays.get(name, np.zeros(0, arrays[names[0]].dtype)) for name in names[:count]]


def deformable_convolution(random):
    """Draws a problem. Half of the offsets are multiples of 0.5, so that positions hit pixels and the edges; some
    lie far away."""
    window = [int(random.integers(1, 4)) for _ in range(2)]
    strides = [int(random.integers(1, 4)) for _ in range(2)]
    dilations = [int(random.integers(1, 3)) for _ in range(2)]
    pads = [int(random.integers(0, 3)) for _ in range(4)]
    group, offset_group = (int(random.integers(1, 4)) for _ in range(2))
    channels = int(np.lcm(group, offset_group)) * int(random.integers(1, 3))
    outputs = group * int(random.integers(1, 4))
    items = int(random.integers(1, 3))
    reach = [(window[i] - 1) * dilations[i] + 1 for i in range(2)]
    image = [max(int(random.integers(1, 9)), reach[i] - pads[i] - pads[2 + i]) for i in range(2)]
    size = [(image[i] + pads[i] + pads[2 + i] - reach[i]) // strides[i] + 1 for i in range(2)]
    samples = offset_group * window[0] * window[1]
    arrays = {
        "x": random.standard_normal((items, channels, *image), np.float32),
        "weight": random.standard_normal((outputs, channels // group, *window), np.float32),
        "offset": random.standard_normal((items, 2 * samples, *size), np.float32) * float(random.choice([1, 2, 8])),
        "bias": random.standard_normal(outputs, np.float32),
        "mask": random.standard_normal((items, samples, *size), np.float32),
    }
    if random.integers(2):
        arrays["offset"] = np.round(arrays["offset"] * 2) / 2
    for name in ("bias", "mask"):
        if random.integers(2):
            del arrays[name]
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "group": group,
        "offset_group": offset_group,
    }
    if random.integers(2):
        attributes["kernel_shape"] = window
    return attributes, arrays


def non_max_suppression(random):
    """Draws a problem. Half of the problems have boxes on a coarse grid, so that overlaps hit the threshold and
    scores are equal."""
    items, classes, boxes = random.integers(1, 4), random.integers(1, 4), random.integers(0, 90)
    is_center = int(random.integers(2))
    shape = (items, boxes, 4)
    if random.integers(2):
        given = random.integers(-4, 5, shape).astype(np.float32) / 4
        scores = random.integers(-3, 4, (items, classes, boxes)).astype(np.float32) / 4
    else:
        given = random.standard_normal(shape, np.float32)
        scores = random.standard_normal((items, classes, boxes), np.float32)
    most = np.array([random.choice([0, 1, 3, 20, 10**9, 2**63 - 1])], np.int64)
    overlap = np.array([random.choice([0, 0.25, 1 / 3, 0.5, 0.7, 1])], np.float32)
    score = np.array([random.choice([-10, 0, 0.25, 0.5, 10])], np.float32)
    return is_center, [given, scores, most, overlap, score][: random.integers(2, 6)]


def detections(random, dtype, items, per_class):
    """Draws a problem of CombinedNonMaxSuppression as EfficientNMS_TRT or, if `per_class`, BatchedNMS_TRT has it. Half of
    the problems are on a coarse grid, so that scores are equal, that overlaps and scores hit thresholds, and that boxes
    have no area; some scores and coordinates are NaN or infinite."""
    boxes, classes = int(random.integers(0, 14)), int(random.integers(1, 4))
    shape = (items, boxes, 4) if random.integers(3) else (items, boxes, classes, 4)
    if random.integers(2):
        given = random.integers(0, 6, shape) / 4
        scores = random.integers(-2, 5, (items, boxes, classes)) / 4
    else:
        given = random.uniform(0, 1.5, shape)
        scores = random.uniform(-0.5, 1, (items, boxes, classes))
    if len(shape) == 3 and random.integers(4) == 0:
        given = given[:, :, None]
    inputs = [given.astype(dtype), scores.astype(dtype)]
    if random.integers(3) == 0:
        for array in inputs:
            array[random.random(array.shape) < 0.1] = random.choice([np.nan, np.inf, -np.inf])
    attributes = {
        "score_threshold": float(np.float32(random.choice([-1, 0, 0.25, 0.3, 0.5, 1]))),
        "iou_threshold": float(random.choice([0, 0.25, 1 / 3, 0.5, 0.7, 1])),
        "max_output_boxes": int(random.choice([1, 3, 10, 60])),
        "background_class": int(random.choice([-1, 0, 1])),
        "clip_boxes": int(random.integers(2)),
    }
    if per_class:
        attributes |= {"top_k_per_class": 1, "empty_class": -1, "top_k": int(random.choice([1, 2, 5, 100, 0]))}
        attributes["pixel_boxes"] = 0 if attributes["clip_boxes"] else int(random.integers(2))
        return inputs, attributes
    attributes |= {
        "max_output_boxes_per_class": int(random.choice([-1, -1, 1, 2])),
        "score_activation": int(random.integers(4) == 0),
        "class_agnostic": int(random.integers(2)),
        "box_coding": int(random.integers(2)),
    }
    if random.integers(4) == 0:
        anchors = random.uniform(0, 1, (int(random.choice([1, items])), boxes, 4))
        inputs.append(anchors.astype(dtype))
        inputs[0] = np.nan_to_num(inputs[0], posinf=1, neginf=0)  # which corner of NaN is the lower one is not defined
    return inputs, attributes


def largest_k(random):
    """Draws a problem. Half of the problems have a few different values, so that many are equal."""
    dtype = DTYPES[random.integers(len(DTYPES))]
    shape = tuple(random.integers(1, 40, random.integers(1, 4)))
    axis = int(random.integers(-len(shape), len(shape)))
    x = random.integers(-3, 4, shape) if random.integers(2) else random.standard_normal(shape) * 1e6
    return x.astype(dtype), int(random.integers(1, shape[axis] + 1)), axis, int(random.integers(2))


def region_align(random):
    """Draws a problem. Half of the regions have corners on multiples of half a pixel, so that samples hit pixels and
    the ends of the map."""
    items, channels, height, width = (int(random.integers(1, most)) for most in (3, 4, 20, 20))
    regions = int(random.integers(0, 5))
    scale = float(random.choice([1, 0.5, 0.25, 2, 1 / 3]))
    attributes = {
        "output_height": int(random.integers(1, 5)),
        "output_width": int(random.integers(1, 5)),
        "sampling_ratio": int(random.choice([0, 0, 1, 2, 3])),
        "spatial_scale": scale,
        "mode": str(random.choice(["avg", "max"])),
        "coordinate_transformation_mode": str(random.choice(["half_pixel", "output_half_pixel"])),
    }
    x = random.standard_normal((items, channels, height, width), np.float32)
    rois = (random.random((regions, 4), np.float32) * 1.6 - 0.3) * np.array([width, height] * 2, np.float32)
    if random.integers(2):
        rois = np.round(rois * 2) / 2
    # Without this, some regions are inverted, and ONNX Runtime cannot count their samples.
    if attributes["sampling_ratio"] == 0 or random.integers(8):
        rois = np.concatenate([np.minimum(rois[:, :2], rois[:, 2:]), np.maximum(rois[:, :2], rois[:, 2:])], axis=1)
    if random.integers(16) == 0:
        rois = rois * 40
    items_of = random.integers(0, items, regions).astype(np.int64)
    return attributes, [x, (rois / np.float32(scale)).astype(np.float32), items_of]


def multi_scale_deformable_attention(random):
    """Draws a problem. In half of the problems the points lie on multiples of half a pixel of some map, so that they
    hit its pixels and edges."""
    items, heads, channels, queries = (int(random.integers(1, most)) for most in (3, 4, 6, 5))
    levels = int(random.integers(1, 5))
    shapes = random.integers(1, 12, (levels, 2)).astype(np.int64)
    is_split = bool(random.integers(2))
    points = [int(random.integers(1, 5))] * levels if is_split else random.integers(1, 6, levels).tolist()
    pixels = int(shapes.prod(1).sum()) + int(random.integers(2)) * 3  # some pixels may belong to no map
    value = random.standard_normal((items, pixels, heads, channels), np.float32)
    of_points = (levels, points[0]) if is_split else (sum(points),)
    locations = random.random((items, queries, heads, *of_points, 2)) * 1.6 - 0.3
    if random.integers(2):
        size = shapes[random.integers(levels), ::-1]
        locations = np.round(locations * size * 2) / 2 / size
    weights = random.standard_normal((items, queries, heads, *of_points), np.float32)
    return points, [value, shapes, locations.astype(np.float32), weights]


def causal_conv_with_state(random):
    """Draws a problem with a bias, a state, both or neither."""
    items, channels, length = (int(random.integers(1, most)) for most in (4, 6, 24))
    taps = int(random.integers(1, 10))
    shapes = {"x": (items, channels, length), "weight": (channels, 1, taps)}
    if random.integers(2):
        shapes["bias"] = (channels,)
    if random.integers(2) and taps > 1:
        shapes["past_state"] = (items, channels, taps - 1)
    inputs = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    return inputs, str(random.choice(["none", "silu", "swish"]))


def values(random, shape, dtype):
    """Draws values: integers that may overflow; floating-point numbers that sometimes include infinities, NaN and
    both zeros."""
    if dtype != np.float32:
        large = random.integers(3) == 0
        limits = np.iinfo(dtype)
        return random.integers(limits.min if large else -9, limits.max if large else 10, shape, dtype)
    numbers = random.standard_normal(shape, np.float32)
    if random.integers(2):
        edges = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, 1e-45], np.float32)
        chosen = random.random(shape) < 0.2
        numbers = np.where(chosen, random.choice(edges, shape), numbers).astype(np.float32)
    return numbers


def scatter_reduce_nd(random, dtype):
    shape = random.integers(1, 6, random.integers(1, 5))
    depth = random.integers(1, len(shape) + 1)
    count = random.integers(0, 9, random.integers(0, 3))
    columns = [random.integers(-size, size, count) for size in shape[:depth]]
    return {}, shape, np.stack(columns, -1).astype(np.int64), (*count, *shape[depth:])


def scatter_reduce_elements(random, dtype):
    shape = random.integers(1, 6, random.integers(1, 5))
    axis = int(random.integers(-len(shape), len(shape)))
    count = np.array([random.integers(0, size + 1) for size in shape])
    count[axis] = random.integers(0, 20)
    indices = random.integers(-shape[axis], shape[axis], count).astype(random.choice([np.int32, np.int64]))
    return {"axis": axis}, shape, indices, tuple(count)


def reduced(make, random):
    """Draws a problem of a scatter: its shapes by `make`, and its updates."""
    dtype = DTYPES[random.integers(len(DTYPES))]
    attributes, shape, indices, updates_shape = make(random, dtype)
    attributes["reduction"] = REDUCTIONS[random.integers(len(REDUCTIONS))]
    return attributes, [values(random, tuple(shape), dtype), indices, values(random, updates_shape, dtype)]
