# plugin_names_test.py - Tests that plugins of other libraries become native layers that compute the same.
"""No runtime on a CPU has these plugins, so NumPy computes the expected results from their documentation. ONNX Runtime
runs the converted networks."""

import json
import math

import graft
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

SEEDS = range(10)
KINDS = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32}


def network_of(op, inputs, outputs, domain="", **attributes):
    """Returns a network of one node. `outputs`: the types and ranks of its outputs."""
    names = [f"x{i}" for i in range(len(inputs))]
    results = [f"y{i}" for i in range(len(outputs))]
    node = helper.make_node(op, names, results, domain=domain, name="stranger", **attributes)
    values = [
        helper.make_tensor_value_info(name, KINDS[array.dtype], array.shape)
        for name, array in zip(names, inputs, strict=True)
    ]
    shown = [
        helper.make_tensor_value_info(name, kind, [None] * rank)
        for name, (kind, rank) in zip(results, outputs, strict=True)
    ]
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    graph = helper.make_graph([node], "g", values, shown)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def convert(network, folder):
    onnx.save(network, folder / "in.onnx")
    report = graft.convert(folder / "in.onnx", check=False, plugins="never")
    report.model.save(folder / "out.onnx")
    converted = onnx.load(folder / "out.onnx")
    onnx.checker.check_model(converted)
    return converted


def run_converted(network, inputs, folder):
    converted = convert(network, folder)
    assert {node.domain for node in converted.graph.node} <= {""}
    session = onnxruntime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {f"x{i}": array for i, array in enumerate(inputs)})


def check(folder, op, inputs, expected, domain="mmdeploy", kinds=None, limit=2e-5, **attributes):
    kinds = kinds or [TensorProto.FLOAT] * len(expected)
    outputs = [(kind, np.ndim(array)) for kind, array in zip(kinds, expected, strict=True)]
    found = run_converted(network_of(op, inputs, outputs, domain, **attributes), inputs, folder)
    for one, other in zip(expected, found, strict=True):
        assert other.shape == one.shape
        np.testing.assert_allclose(
            other, one, rtol=limit, atol=limit * max(1.0, float(np.abs(one[np.isfinite(one)]).max(initial=0)))
        )


def real(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("seed", SEEDS)
def test_grid_sampler(tmp_path, seed):
    rng = np.random.default_rng(seed)
    x, grid = real(rng, 2, 3, 5, 6), real(rng, 2, 4, 3, 2)
    mode, padding, corners = seed % 3, seed // 3 % 3, seed % 2
    standard = helper.make_node(
        "GridSample",
        ["x0", "x1"],
        ["y"],
        mode=("bilinear", "nearest", "bicubic")[mode],
        padding_mode=("zeros", "border", "reflection")[padding],
        align_corners=corners,
    )
    model = network_of("Add", [x, grid], [(TensorProto.FLOAT, 4)])
    model.graph.node[0].CopyFrom(standard)
    model.graph.output[0].name = "y"
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x0": x, "x1": grid})
    domain = ("mmdeploy", "mmcv", "")[seed % 3]
    check(
        tmp_path, "grid_sampler", [x, grid], expected, domain,
        interpolation_mode=mode, padding_mode=padding, align_corners=corners,
    )  # fmt: skip


def running_extreme(x, axis, wins):
    """The last of equal elements is the extreme, and NaN is more extreme than every number, as in PyTorch."""
    x = np.moveaxis(x, axis, 0)
    values, positions = x.copy(), np.zeros(x.shape, np.int64)
    for place in np.ndindex(x.shape[1:]):
        best = 0
        for i in range(len(x)):
            new, old = x[(i, *place)], x[(best, *place)]
            if np.isnan(new) or (not np.isnan(old) and wins(new, old)):
                best = i
            values[(i, *place)], positions[(i, *place)] = x[(best, *place)], best
    return np.moveaxis(values, 0, axis), np.moveaxis(positions, 0, axis)


@pytest.mark.parametrize("seed", SEEDS)
def test_cummax_and_cummin(tmp_path, seed):
    rng = np.random.default_rng(seed)
    shape = [int(n) for n in rng.integers(1, 8, rng.integers(1, 4))]
    x = rng.integers(-3, 4, shape).astype(np.float32)
    if seed % 2:
        x[rng.random(shape) < 0.1] = np.nan
    axis = int(rng.integers(-len(shape), len(shape)))
    for op, wins in (("cummax", np.greater_equal), ("cummin", np.less_equal)):
        kinds = [TensorProto.FLOAT, TensorProto.INT64]
        check(tmp_path, op, [x], running_extreme(x, axis, wins), kinds=kinds, dim=axis)


def bilinear(plane, y, x):
    height, width = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = max(y, 0.0), max(x, 0.0)
    top, left = int(y), int(x)
    if top >= height - 1:
        y = top = height - 1
    if left >= width - 1:
        x = left = width - 1
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, over = y - top, x - left
    upper = plane[top, left] * (1 - over) + plane[top, right] * over
    lower = plane[bottom, left] * (1 - over) + plane[bottom, right] * over
    return upper * (1 - down) + lower * down


def roi_align(x, roi, scale, size, samples, aligned):
    """The mean of bilinear samples in each bin, as mmcv documents it."""
    offset = 0.5 if aligned else 0.0
    left, top, right, bottom = (corner * scale - offset for corner in roi[1:])
    width, height = right - left, bottom - top
    if not aligned:
        width, height = max(width, 1.0), max(height, 1.0)
    bin_height, bin_width = height / size[0], width / size[1]
    rows = samples if samples > 0 else math.ceil(bin_height)
    columns = samples if samples > 0 else math.ceil(bin_width)
    result = np.zeros((x.shape[1], *size), np.float32)
    for c, i, j in np.ndindex(result.shape):
        total = 0.0
        for a, b in np.ndindex(rows, columns):
            y = top + i * bin_height + (a + 0.5) * bin_height / rows
            total += bilinear(x[int(roi[0]), c], y, left + j * bin_width + (b + 0.5) * bin_width / columns)
        result[c, i, j] = total / max(rows * columns, 1)
    return result


def regions(rng, count, items, size):
    corners = np.sort(rng.uniform(0, size, (count, 2, 2)), axis=1).reshape(count, 4)
    return np.hstack([rng.integers(0, items, (count, 1)), corners]).astype(np.float32)


@pytest.mark.parametrize("seed", SEEDS)
def test_mmcv_roi_align(tmp_path, seed):
    rng = np.random.default_rng(seed)
    x, rois = real(rng, 2, 2, 9, 8), regions(rng, 4, 2, 30)
    samples, aligned = seed % 3, seed % 2
    expected = np.stack([roi_align(x, roi, 0.25, (2, 3), samples, aligned) for roi in rois])
    check(
        tmp_path, "MMCVRoiAlign", [x, rois], [expected], ("mmcv", "mmdeploy")[seed % 2],
        output_height=2, output_width=3, spatial_scale=0.25, sampling_ratio=samples, mode="avg", aligned=aligned,
    )  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_mmcv_multi_level_roi_align(tmp_path, seed):
    rng = np.random.default_rng(seed)
    strides, finest, factor, aligned = [4.0, 8.0, 16.0], 8, (-1.0, 1.5)[seed % 2], seed // 2 % 2
    maps = [real(rng, 2, 2, int(96 / stride), int(80 / stride)) for stride in strides]
    rois = regions(rng, 6, 2, 64)
    expected = []
    for roi in rois.astype(np.float64):
        side = math.sqrt((roi[3] - roi[1]) * (roi[4] - roi[2]))
        level = min(max(math.floor(math.log2(side / finest + 1e-6)), 0), 2)
        if factor > 0:
            for low, high in ((1, 3), (2, 4)):
                center, reach = (roi[low] + roi[high]) / 2, ((roi[high] - roi[low] + 1) * factor - 1) / 2
                roi[low], roi[high] = center - reach, center + reach
        expected.append(roi_align(maps[level], roi, 1 / strides[level], (2, 2), 2, aligned))
    check(
        tmp_path, "MMCVMultiLevelRoiAlign", [rois, *maps], [np.stack(expected)],
        output_height=2, output_width=2, pool_mode=1, sampling_ratio=2, featmap_strides=strides,
        roi_scale_factor=factor, finest_scale=finest, aligned=aligned,
    )  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_gather_topk(tmp_path, seed):
    rng = np.random.default_rng(seed)
    shape = [int(n) for n in rng.integers(1, 5, 2 + seed % 3)]
    x = real(rng, *shape)
    axis = seed % len(shape)
    indices = rng.integers(0, shape[axis], (*shape[:axis], 3)).astype(np.int32)
    expected = np.take_along_axis(x, indices.reshape(*indices.shape, *[1] * (x.ndim - axis - 1)), axis)
    check(tmp_path, "GatherTopk", [x, indices], [expected])


@pytest.mark.parametrize("seed", SEEDS)
def test_norms(tmp_path, seed):
    rng = np.random.default_rng(seed)
    x, scale, bias = real(rng, 2, 6, 4, 5), real(rng, 6), real(rng, 6)

    def normalized(groups):
        parts = x.reshape(2, groups, -1).astype(np.float64)
        parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + 1e-3)
        return (parts.reshape(x.shape) * scale[:, None, None] + bias[:, None, None]).astype(np.float32)

    for op in ("TRTInstanceNormalization", "MMCVInstanceNormalization"):
        check(tmp_path, op, [x, scale, bias], [normalized(6)], epsilon=1e-3)
    groups = (1, 2, 3, 6)[seed % 4]
    check(
        tmp_path,
        "GroupNormalizationPlugin",
        [x, scale, bias],
        [normalized(groups)],
        "",
        num_groups=groups,
        epsilon=1e-3,
    )


def test_coord_conv(tmp_path):
    """For square images the first map has the rows and the second the columns, from -1 to 1."""
    x = real(np.random.default_rng(0), 2, 3, 5, 5)
    line = np.linspace(-1, 1, 5, dtype=np.float32)
    rows, columns = np.meshgrid(line, line, indexing="ij")
    maps = np.broadcast_to(np.stack([rows, columns]), (2, 2, 5, 5))
    check(tmp_path, "CoordConvAC", [x], [np.concatenate([x, maps], axis=1)], "")


def test_batch_tile_and_special_slice(tmp_path):
    rng = np.random.default_rng(0)
    x, tile = real(rng, 3, 1, 2, 2), real(rng, 1, 2, 3, 4)
    check(tmp_path, "BatchTilePlugin_TRT", [x, tile], [np.tile(tile, (3, 1, 1, 1))], "")
    detections = real(rng, 2, 5, 6)
    check(tmp_path, "SpecialSlice_TRT", [detections], [detections[..., :4]], "")


def test_clip_and_flatten_concat(tmp_path):
    rng = np.random.default_rng(0)
    x, other = real(rng, 2, 3, 2, 2), real(rng, 2, 1, 4, 3)
    check(tmp_path, "Clip_TRT", [x], [x.clip(-0.5, 0.25)], "", clipMin=-0.5, clipMax=0.25)
    joined = np.concatenate([x.reshape(2, -1), other.reshape(2, -1)], axis=1)[:, :, None, None]
    check(tmp_path, "FlattenConcat_TRT", [x, other], [joined], "", axis=1, ignoreBatch=0)


def test_reorg(tmp_path):
    """The documentation of the plugin shows the numbers of a 2x4x6x6 tensor after a stride of 2."""
    x = np.arange(2 * 4 * 6 * 6, dtype=np.float32).reshape(2, 4, 6, 6)
    network = network_of("Reorg_TRT", [x], [(TensorProto.FLOAT, 4)], stride=2)
    (found,) = run_converted(network, [x], tmp_path)
    assert found.shape == (2, 16, 3, 3)
    assert found[0, 0].tolist() == [[0, 2, 4], [6, 8, 10], [24, 26, 28]]
    assert found[0, 1].tolist() == [[30, 32, 34], [48, 50, 52], [54, 56, 58]]
    assert found[0, 4].tolist() == [[1, 3, 5], [7, 9, 11], [25, 27, 29]]
    assert found[0, 15].tolist() == [[115, 117, 119], [133, 135, 137], [139, 141, 143]]
    assert found[1, 8].tolist() == [[156, 158, 160], [162, 164, 166], [180, 182, 184]]


def crop_and_resize(x, boxes, size):
    """The formula of TensorFlow's crop_and_resize, with 0 outside the image."""
    items, count = boxes.shape[:2]
    height, width = x.shape[2:]
    result = np.zeros((items, count, x.shape[1], *size), np.float32)

    def place(low, high, i, n, length):
        if n == 1:
            return 0.5 * (low + high) * (length - 1)
        return low * (length - 1) + i * (high - low) * (length - 1) / (n - 1)

    for n, r, c, i, j in np.ndindex(result.shape):
        y1, x1, y2, x2 = boxes[n, r].astype(np.float64).ravel()
        y, over = place(y1, y2, i, size[0], height), place(x1, x2, j, size[1], width)
        if 0 <= y <= height - 1 and 0 <= over <= width - 1:
            result[n, r, c, i, j] = bilinear(x[n, c], y, over)
    return result


@pytest.mark.parametrize("seed", SEEDS)
def test_crop_and_resize(tmp_path, seed):
    rng = np.random.default_rng(seed)
    x = real(rng, 2, 3, 7, 6)
    boxes = rng.uniform(-0.2, 1.2, (2, 4, 4, 1)).astype(np.float32)
    size = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    op = ("CropAndResize", "CropAndResizeDynamic")[seed % 2]
    check(tmp_path, op, [x, boxes], [crop_and_resize(x, boxes, size)], "", crop_height=size[0], crop_width=size[1])


@pytest.mark.parametrize(
    "op, shapes, attributes",
    [
        ("MMCVRoiAlign", [(1, 2, 8, 8), (3, 5)], {"mode": "max"}),
        ("MMCVRoiAlign", [(1, 2, 8, 8), (3, 4)], {}),
        ("grid_sampler", [(1, 2, 4, 4), (1, 2, 2, 2)], {"padding_mode": 3}),
        ("grid_sampler", [(1, 2, 4, 4)], {}),
        ("Reorg_TRT", [(1, 3, 4, 4)], {"stride": 2}),
        ("MMCVMultiLevelRoiAlign", [(3, 5), (1, 2, 8, 8)], {"pool_mode": 1}),
        ("FlattenConcat_TRT", [(1, 2, 4, 4)], {"axis": 2}),
        ("cummax", [(3, 4)], {"dim": 2}),
    ],
)
def test_other_forms_stay(tmp_path, op, shapes, attributes):
    inputs = [np.zeros(shape, np.float32) for shape in shapes]
    network = network_of(op, inputs, [(TensorProto.FLOAT, 4)], "mmdeploy", **attributes)
    converted = convert(network, tmp_path)
    assert [node.op_type for node in converted.graph.node] == [op]


def test_operators_of_onnxruntime_are_not_taken_for_plugins(tmp_path):
    """ONNX Runtime has another CropAndResize."""
    inputs = [np.zeros((1, 2, 4, 4), np.float32), np.zeros((1, 4, 4, 1), np.float32)]
    attributes = {"crop_height": 2, "crop_width": 2}
    network = network_of("CropAndResize", inputs, [(TensorProto.FLOAT, 5)], "com.microsoft", **attributes)
    assert [node.op_type for node in convert(network, tmp_path).graph.node] == ["CropAndResize"]


def test_inspect_says_what_convert_does(tmp_path):
    x = np.zeros((1, 2, 4, 4), np.float32)
    network = network_of("grid_sampler", [x, np.zeros((1, 2, 2, 2), np.float32)], [(TensorProto.FLOAT, 4)], "mmdeploy")
    onnx.save(network, tmp_path / "in.onnx")
    report = json.loads(graft.inspect(tmp_path / "in.onnx", judge="rule").to_json())
    assert [node["verdict"] for node in report["nodes"]] == ["lowered"]
