# Runs detectors, segmenters and sequence models ten times each: results are bitwise equal, and those of ONNX Runtime.
"""Each run is a process of its own. Tensors whose size is known only at run time share memory, and threads run in a
different order in each process, so a fault in OpenVINO's plugin does not show in every run."""

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from test_against_onnxruntime import assert_same, run_alone, run_graft, run_onnxruntime, runner

golden = Path(os.environ["GRAFT_GOLDEN_DIR"])
RUNS = 10


def ten_times(path, inputs, folder):
    """Runs a model several times, checks that the outputs are bitwise equal, and returns them."""
    first = run_graft("functions", path, inputs, folder, run=run_alone)
    for _ in range(RUNS - 1):
        again = run_graft("functions", path, inputs, folder, run=run_alone)
        assert again.keys() == first.keys()
        for name, value in first.items():
            assert again[name].tobytes() == value.tobytes(), name
    return first


def test_two_stage_detector(tmp_path):
    path = golden / "detectors" / "two_stage.onnx"
    with np.load(path.with_suffix(".npz")) as archive:
        inputs = {name[3:]: archive[name] for name in archive.files if name.startswith("in:")}
        results = {name[4:]: archive[name] for name in archive.files if name.startswith("out:")}
    found = ten_times(path, inputs, tmp_path)
    assert_same(found, results, rtol=1e-5, atol=1e-5)  # PyTorch's
    assert_same(found, run_onnxruntime(path, inputs), rtol=1e-5, atol=1e-5)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def boxes(count, seed=0):
    generator = np.random.default_rng(seed)
    corner = generator.random((count, 2)) * 60
    return np.concatenate([corner, corner + 4 + generator.random((count, 2)) * 30], 1).astype("f4")


SCORES = np.random.default_rng(5).permutation(300).astype("f4") / 300
FEATURES = numbers(1, 6, 24, 24)

# Name: the graph in ONNX's text, inputs, constants.
GRAPHS = {
    # Boxes above a score, then the best of those that do not overlap.
    "single_stage": (
        """(float[N, 4] b, float[N] s) => (float[K, 4] kept, float[K] best, int64[K] places) {
          high = Greater (s, limit)
          found = NonZero (high)
          i = Squeeze (found, axis0)
          hb = Gather <axis = 0> (b, i)
          hs = Gather <axis = 0> (s, i)
          b3 = Unsqueeze (hb, axis0)
          s2 = Unsqueeze (hs, axis0)
          s3 = Unsqueeze (s2, axis0)
          chosen = NonMaxSuppression (b3, s3, many, overlap)
          last = Gather <axis = 1> (chosen, two)
          places = Squeeze (last, axis1)
          kept = Gather <axis = 0> (hb, places)
          best = Gather <axis = 0> (hs, places)
        }""",
        {"b": boxes(300), "s": SCORES},
        {
            "limit": np.float32(0.3),
            "axis0": np.array([0]),
            "axis1": np.array([1]),
            "two": np.array([2]),
            "many": np.array([50]),
            "overlap": np.array([0.5], "f4"),
        },
    ),
    # TopK with at most K elements, which are gathered again by GatherND and GatherElements.
    "top_k": (
        """(float[N, C] s, float[N, 4] b) => (float[K, C] best, float[C, 4] first, float[K, C] again) {
          shape = Shape (s)
          n = Slice (shape, at0, at1)
          both = Concat <axis = 0> (n, most)
          k = ReduceMin <axes = [0], keepdims = 1> (both)
          best, places = TopK <axis = 0> (s, k)
          rows = Slice (places, at0, at1)
          columns = Reshape (rows, column)
          first = GatherND (b, columns)
          again = GatherElements <axis = 0> (s, places)
        }""",
        {"s": numbers(120, 7), "b": boxes(120)},
        {"at0": np.array([0]), "at1": np.array([1]), "most": np.array([40]), "column": np.array([-1, 1])},
    ),
    # Positions that a size selects from a table: all of this is constant, since the size is fixed.
    "relative_positions": (
        """(float[2, 12, 4, 8] x) => (float[2, 4, 12, 12] y) {
          size = Shape (x)
          rows = Gather (size, one)
          range = Range (zero, rows, one)
          column = Unsqueeze (range, last)
          place = Expand (column, wide)
          position = GatherElements <axis = 0> (table, place)
          key = Einsum <equation = "td,dnh->tnh"> (position, kernel)
          y = Einsum <equation = "binh,tnh->bnit"> (x, key)
        }""",
        {"x": numbers(2, 12, 4, 8)},
        {
            "zero": np.int64(0),
            "one": np.int64(1),
            "last": np.array([1]),
            "wide": np.array([12, 32]),
            "table": numbers(48, 32, seed=1),
            "kernel": numbers(32, 4, 8, seed=2) / 8,
        },
    ),
    # Regions from features at two scales, scattered to their positions.
    "regions": (
        """(float[1, 6, H, W] x, float[N, 4] b, int64[N] level) => (float[N, 6, 3, 3] y) {
          n = Shape (level)
          shape = Concat <axis = 0> (n, rest)
          empty = Expand (zero, shape)
          is0 = Equal (level, zero64)
          f0 = NonZero (is0)
          i0 = Squeeze (f0, axis0)
          b0 = Gather <axis = 0> (b, i0)
          n0 = Shape (i0)
          k0 = ConstantOfShape <value = int64[1] {0}> (n0)
          r0 = RoiAlign <output_height = 3, output_width = 3, sampling_ratio = 2, spatial_scale = 0.25> (x, b0, k0)
          c0 = Reshape (i0, column)
          s0 = Shape (r0)
          e0 = Expand (c0, s0)
          y0 = ScatterElements <axis = 0> (empty, e0, r0)
          is1 = Not (is0)
          f1 = NonZero (is1)
          i1 = Squeeze (f1, axis0)
          b1 = Gather <axis = 0> (b, i1)
          n1 = Shape (i1)
          k1 = ConstantOfShape <value = int64[1] {0}> (n1)
          r1 = RoiAlign <output_height = 3, output_width = 3, sampling_ratio = 2, spatial_scale = 0.125> (x, b1, k1)
          c1 = Reshape (i1, column)
          s1 = Shape (r1)
          e1 = Expand (c1, s1)
          y = ScatterElements <axis = 0> (y0, e1, r1)
        }""",
        {"x": FEATURES, "b": boxes(80), "level": np.arange(80) % 3 // 2},
        {
            "zero": np.float32(0),
            "zero64": np.int64(0),
            "rest": np.array([6, 3, 3]),
            "axis0": np.array([0]),
            "column": np.array([-1, 1, 1, 1]),
        },
    ),
    # Features of two sizes, resized to the image's size, and the class of each pixel.
    "segmenter": (
        """(float[1, 3, H, W] x) => (float[1, 5, H, W] y, int64[1, H, W] label) {
          a0 = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w0)
          a = Relu (a0)
          b0 = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (a, w1)
          b = Relu (b0)
          sa = Shape (a)
          hw = Slice (sa, at2, at4)
          nc = Slice (sa, at0, at2)
          to = Concat <axis = 0> (nc, hw)
          c = Resize <mode = "linear"> (b, , , to)
          d = Add (a, c)
          head = Conv (d, w2)
          sx = Shape (x)
          image = Slice (sx, at2, at4)
          full = Concat <axis = 0> (classes, image)
          y = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (head, , , full)
          label = ArgMax <axis = 1, keepdims = 0> (y)
        }""",
        {"x": numbers(1, 3, 50, 38)},
        {
            "w0": numbers(8, 3, 3, 3, seed=1),
            "w1": numbers(8, 8, 3, 3, seed=2) / 8,
            "w2": numbers(5, 8, 1, 1, seed=3),
            "at0": np.array([0]),
            "at2": np.array([2]),
            "at4": np.array([4]),
            "classes": np.array([1, 5]),
        },
    ),
    "lstm": (
        """(int64[T, N] tokens) => (float[T, N, 6] y, float[2, N, 8] h) {
          x = Gather <axis = 0> (table, tokens)
          r, h, c = LSTM <hidden_size = 8, direction = "bidirectional"> (x, w, r0, b)
          t = Transpose <perm = [0, 2, 1, 3]> (r)
          flat = Reshape (t, rows)
          y = MatMul (flat, head)
        }""",
        {"tokens": np.arange(7 * 3).reshape(7, 3) * 5 % 20},
        {
            "table": numbers(20, 4, seed=1),
            "w": numbers(2, 32, 4, seed=2) / 2,
            "r0": numbers(2, 32, 8, seed=3) / 3,
            "b": numbers(2, 64, seed=4) / 4,
            "rows": np.array([0, 0, 16]),
            "head": numbers(16, 6, seed=5),
        },
    ),
    "gru_of_lengths": (
        """(float[9, 4, 4] x, int32[4] lengths) => (float[9, 1, 4, 8] y, float[1, 4, 8] h) {
          y, h = GRU <hidden_size = 8, linear_before_reset = 1> (x, w, r0, b, lengths)
        }""",
        {"x": numbers(9, 4, 4), "lengths": np.array([9, 3, 7, 1], "i4")},
        {"w": numbers(1, 24, 4, seed=2) / 2, "r0": numbers(1, 24, 8, seed=3) / 3, "b": numbers(1, 48, seed=4) / 4},
    ),
    # Both branches compute tensors of different sizes; a tensor from before the If is read after it.
    "branches": (
        """(float[N] x) => (float[K] y, float[L, 40] z) {
          above = Greater (x, limit)
          f = NonZero (above)
          i = Squeeze (f, axis0)
          c = Reshape (i, column)
          n = Shape (c)
          to = Concat <axis = 0> (first, width)
          wide0 = Expand (c, to)
          wide = Cast <to = 1> (wide0)
          g = Gather <axis = 0> (x, i)
          count = Size (i)
          none = Equal (count, zero64)
          r = If (none) <
            then_branch = t () => (float[K] p) { p = Identity (g) },
            else_branch = e () => (float[K] q) {
              h = Greater (g, half)
              hn = NonZero (h)
              hi = Squeeze (hn, axis0)
              hg = Gather <axis = 0> (g, hi)
              hc = Reshape (hg, column)
              hw = MatMul (hc, ones)
              hs = Sin (hw)
              q = ReduceMax <axes = [1], keepdims = 0> (hs)
            }
          >
          y = Exp (r)
          top = ReduceMax <keepdims = 0> (y)
          z = Mul (wide, top)
        }""",
        {"x": numbers(600)},
        {
            "limit": np.float32(0),
            "axis0": np.array([0]),
            "column": np.array([-1, 1]),
            "first": np.array([1]),
            "width": np.array([40]),
            "zero64": np.int64(0),
            "half": np.float32(0.5),
            "ones": np.ones((1, 300), "f4"),
        },
    ),
    # A sum that grows by looked-up steps until it is large enough.
    "loop": (
        """(float[N] x, int64 steps) => (float total, float[M] each) {
          total, each = Loop (steps, go, zero) <
            body = b (int64 i, bool goes, float sum) => (bool on, float next, float out) {
              size = Size (x)
              at = Mod (i, size)
              step = Gather <axis = 0> (x, at)
              square = Mul (step, step)
              next = Add (sum, square)
              out = Identity (next)
              on = Less (next, enough)
            }
          >
        }""",
        {"x": numbers(11), "steps": np.int64(40)},
        {"go": np.array(True), "zero": np.float32(0), "enough": np.float32(20)},
    ),
    # Rows that are added at the positions of an index.
    "scatter": (
        """(float[N, 4] x, int64[M, 1] i, float[M, 4] u) => (float[N, 4] y, float[M, 4] z) {
          y = ScatterND (x, i, u)
          z = GatherND (y, i)
        }""",
        {"x": numbers(50, 4), "i": np.arange(49, 9, -2).reshape(20, 1), "u": numbers(20, 4, seed=1)},
        {},
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graph(name, tmp_path):
    text, inputs, constants = GRAPHS[name]
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {name} {text}')
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items())
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path))
    found = ten_times(path, {key: np.asarray(value) for key, value in inputs.items()}, tmp_path)
    assert_same(found, run_onnxruntime(path, {key: np.asarray(v) for key, v in inputs.items()}), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_lengths_of_sequences_are_kept_or_refused(op, tmp_path):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    inputs = {"x": numbers(9, 4, 4), "lengths": np.array([9, 3, 7, 1], "i4")}
    constants = {"w": numbers(1, gates * 8, 4, seed=2) / 2, "r": numbers(1, gates * 8, 8, seed=3) / 3}
    path = tmp_path / "model.onnx"
    for length, batch in (("9", "4"), ("9", "N"), ("T", "N")):
        model = onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["" : 17]>
            g (float[{length}, {batch}, 4] x, int32[{batch}] lengths) => (float[A, B, C, 8] y, float[B, C, 8] h) {{
              y, h = {op} <hidden_size = 8> (x, w, r, , lengths)
            }}"""
        )
        model.graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in constants.items())
        onnx.save(model, str(path))
        if batch == "4":
            assert_same(run_graft("functions", path, inputs, tmp_path), run_onnxruntime(path, inputs))
            continue
        np.savez(tmp_path / "in.npz", **inputs)
        paths = [path, tmp_path / "in.npz", tmp_path / "out.npz"]
        done = subprocess.run([runner, "functions", *paths], capture_output=True, text=True)
        assert done.returncode == 2
        assert "ignores `sequence_lens`" in done.stderr and "model.onnx" in done.stderr
