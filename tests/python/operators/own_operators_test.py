# Tests graft.ops with the operators of a user's library: lists of tensors, integers that are sizes, several outputs.
# The expected results are those of NumPy and ONNX Runtime.
import inspect
import os
import pathlib
import subprocess
import sys

import graft
import graft.ops
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from graft._definitions import load_definitions, signature
from onnx import TensorProto, helper

LIBRARIES = pathlib.Path(os.environ["GRAFT_OPERATOR_LIBRARIES"])
LIBRARY = LIBRARIES / "libmy_operators.so"
RANDOM = np.random.default_rng(5)
my = graft.ops.load_operators(LIBRARY)


def output_of(code, library=LIBRARY):
    """Runs code in a process of its own and returns its output, since a loaded library stays loaded; sys.argv[1] is
    the library."""
    done = subprocess.run([sys.executable, "-c", code, library], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def affine_grid(theta, size, corners):
    node = helper.make_node("AffineGrid", ["theta", "size"], ["grid"], align_corners=corners)
    inputs = [
        helper.make_tensor_value_info("theta", TensorProto.FLOAT, theta.shape),
        helper.make_tensor_value_info("size", TensorProto.INT64, [len(size)]),
    ]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("grid", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"theta": theta, "size": np.array(size, np.int64)})[0]


def fused(w, maps, epsilon=1e-4):
    w = np.maximum(np.asarray(w, np.float64), 0)
    return sum(share * each.astype(np.float64) for share, each in zip(w, maps)) / (w.sum() + epsilon)


# Where one pixel is both corners, the operator uses its center, as PyTorch does; ONNX Runtime uses its edge.
@pytest.mark.parametrize(
    ("size", "corners"),
    [((1, 1, 1, 1), 0), ((3, 2, 1, 300), 0), *((size, c) for size in [(2, 3, 5, 7), (2, 1, 3, 4, 5)] for c in (0, 1))],
)
def test_integers_say_the_size(size, corners):
    axes = len(size) - 2
    theta = RANDOM.standard_normal((size[0], axes, axes + 1)).astype(np.float32)
    expected = affine_grid(theta, size, corners)
    for given in (size, list(size), np.array(size), np.array(size, np.int32), [np.int64(each) for each in size]):
        found = my.affine_sampling(theta, given, align_corners=corners)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    out = np.full_like(expected, 7)
    assert my.affine_sampling(theta, size=size, align_corners=corners, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_each_size_has_a_result_of_its_own():
    """Data that are cached between calls depend on the sizes."""
    theta = np.ones((1, 2, 3), np.float32)
    for width in (3, 5, 3):
        assert my.affine_sampling(theta, [1, 1, 2, width]).shape == (1, 2, width, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_a_list_of_tensors(count, dtype):
    maps = [RANDOM.standard_normal((2, 3, 5)).astype(dtype) for _ in range(count)]
    w = RANDOM.uniform(0.1, 1, count).astype(dtype)
    found = my.fast_normalized_fusion(w, maps, epsilon=1e-3)
    assert found.dtype == dtype
    expected = fused(w, maps, 1e-3)
    tolerance = {4: 1e-6, 2: 2.0 ** (-11 if dtype == np.float16 else -8)}[found.itemsize]
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(my.fast_normalized_fusion(w, tuple(maps), epsilon=1e-3), found)


def test_several_outputs_and_other_shapes():
    x = RANDOM.standard_normal((2, 3, 4, 6)).astype(np.float32)
    positive, negative = my.split_sign(x)
    np.testing.assert_array_equal(positive, np.maximum(x, 0))
    np.testing.assert_array_equal(negative, np.minimum(x, 0))
    outs = (np.empty_like(x), np.empty_like(x))
    assert my.split_sign(x, out=outs)[1] is outs[1]
    np.testing.assert_array_equal(outs[1], negative)
    np.testing.assert_allclose(my.snake(x, alpha=2.0), x + np.sin(2 * x) ** 2 / 2, rtol=1e-6, atol=1e-6)
    pieces = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3)
    np.testing.assert_array_equal(my.pixel_unshuffle(x, factor=2), pieces)


def test_sizes_from_data():
    x = np.array([[1, 1], [5, 5], [0, 0], [7, 7]], np.float32)
    score = np.array([0.1, 0.9, 0.2, 0.8], np.float32)
    definition = load_definitions(LIBRARY)["select_rows"]
    assert definition.has_data_sizes
    y, *_, count = my.select_rows(x, score, threshold=0.5)
    assert count == 2
    np.testing.assert_array_equal(y.ravel()[:4].reshape(2, 2), x[[1, 3]])


X = np.ones((2, 3), np.float32)
W = np.ones(2, np.float32)
THETA = np.ones((1, 2, 3), np.float32)

REFUSED = [
    (TypeError, "affine_sampling: input size is 'wide'; it must be a list of integers", lambda: my.affine_sampling(THETA, "wide")),
    (TypeError, r"input size is \[1, 1, 2.5, 2\]; it must be a list of integers", lambda: my.affine_sampling(THETA, [1, 1, 2.5, 2])),
    (TypeError, "affine_sampling: input size is int; it must be a list of integers", lambda: my.affine_sampling(THETA, 4)),
    (TypeError, r"input size is float32 \(4,\) on cpu; it must be a list of integers, or an integer array with one axis on the CPU",
     lambda: my.affine_sampling(THETA, np.ones(4, np.float32))),
    (TypeError, r"input size is int64 \(1, 4\) on cpu", lambda: my.affine_sampling(THETA, np.ones((1, 4), np.int64))),
    (ValueError, "input size has 9 values; it must have at most 8", lambda: my.affine_sampling(THETA, [1] * 9)),
    (ValueError, "AffineSampling: .*`size` 3 values, allowed are 3, and 4 or 5",
     lambda: my.affine_sampling(THETA, [1, 2, 3])),
    (ValueError, "AffineSampling: .*-2", lambda: my.affine_sampling(THETA, [1, 1, -2, 2])),
    (ValueError, "AffineSampling: `theta` is 1x2x3 and `grid` 1x2x2x2x3, allowed are N,2,3 and N,H,W,2",
     lambda: my.affine_sampling(THETA, [1, 1, 2, 2, 2])),
    (TypeError, "missing 1 required positional argument: 'size'", lambda: my.affine_sampling(THETA)),
    (TypeError, "fast_normalized_fusion: input x is ndarray; it must be a list of at least one tensor",
     lambda: my.fast_normalized_fusion(W, X)),
    (ValueError, "fast_normalized_fusion: input x is an empty list; it must have at least one tensor",
     lambda: my.fast_normalized_fusion(W, [])),
    (TypeError, "fast_normalized_fusion: input x_2 is list; it must be numpy.ndarray",
     lambda: my.fast_normalized_fusion(W, [X, [1.0]])),
    (ValueError, "fast_normalized_fusion: input x_2 is uint8; it must be f32 or f16 or bf16",
     lambda: my.fast_normalized_fusion(W, [X, X.astype(np.uint8)])),
    (ValueError, "FastNormalizedFusion: input x_2 has type f16; the supported types are f32",
     lambda: my.fast_normalized_fusion(W, [X, X.astype(np.float16)])),
    (ValueError, "fast_normalized_fusion: input x_2 is not contiguous; make it contiguous with numpy.ascontiguousarray",
     lambda: my.fast_normalized_fusion(W, [X, X.T])),
    (ValueError, "FastNormalizedFusion: `x_2` is 3x2, allowed is the shape of `x_1`, 2x3",
     lambda: my.fast_normalized_fusion(W, [X, np.ones((3, 2), np.float32)])),
    (ValueError, "FastNormalizedFusion: `w` has 2 elements, allowed is one for each x: 3",
     lambda: my.fast_normalized_fusion(W, [X, X, X])),
    (ValueError, "FastNormalizedFusion takes 2 to 31 inputs, found 42",
     lambda: my.fast_normalized_fusion(np.ones(41, np.float32), [X] * 41)),
    (ValueError, "fast_normalized_fusion: out for y overlaps an input",
     lambda: my.fast_normalized_fusion(W, [X, X], out=X)),
]  # fmt: skip


@pytest.mark.parametrize(("error", "message", "call"), REFUSED, ids=[message[:50] for _, message, _ in REFUSED])
def test_refused(error, message, call):
    with pytest.raises(error, match=message.replace("`", "\\`")):
        call()


def test_functions_say_what_they_take():
    definitions = load_definitions(LIBRARY)
    assert set(vars(my)) == set(definitions)
    sampling, fusion = definitions["affine_sampling"], definitions["fast_normalized_fusion"]
    assert list(inspect.signature(my.affine_sampling).parameters) == ["theta", "size", "align_corners", "out"]
    assert signature(sampling, "Array").startswith("theta: Array, size: Sequence[int] | Array, *, align_corners: int")
    assert signature(fusion, "Array").startswith("w: Array, x: Sequence[Array], *, epsilon: float")
    assert "size: integers: of the images: N,C,H,W or N,C,D,H,W (4 or 5)" in my.affine_sampling.__doc__
    assert "x: a list: the tensors, all of one shape (any)" in my.fast_normalized_fusion.__doc__


def test_a_library_is_loaded_once():
    again = graft.ops.load_operators(os.path.relpath(LIBRARY))
    assert set(vars(again)) == set(vars(my))
    theta = np.ones((1, 2, 3), np.float32)
    np.testing.assert_array_equal(again.affine_sampling(theta, [1, 1, 2, 2]), my.affine_sampling(theta, [1, 1, 2, 2]))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("nowhere.so", "no such file"),
        (onnx.__file__, "it is not a shared library"),
        (LIBRARIES / "libwrong_headers.so", "it was built with different headers"),
        (LIBRARIES / "libwrong_version.so", "it was built for version 99 of the library interface"),
        (LIBRARIES / "libwrong_name.so", "operator LeakyReLU: an operator of Graft already has this name"),
    ],
)
def test_what_is_no_such_library_is_refused(file, message):
    with pytest.raises(graft.Error, match=message):
        graft.ops.load_operators(file)


def test_the_toolkit_does_not_know_the_operators():
    code = (
        "import sys, graft, graft.ops, onnx.helper as make\n"
        "graft.ops.load_operators(sys.argv[1])\n"
        "ports = [make.make_tensor_value_info(name, 1, [3]) for name in 'xy']\n"
        "node = make.make_node('Snake', ['x'], ['y'], domain='my')\n"
        "graph = make.make_graph([node], 'g', ports[:1], ports[1:])\n"
        "domains = [make.make_opsetid('', 17), make.make_opsetid('my', 1)]\n"
        "model = make.make_model(graph, opset_imports=domains, ir_version=9)\n"
        "print([each.reason for each in graft.inspect(model).nodes])\n"
        "graft.load_operators(sys.argv[1])\n"
        "print([each.reason for each in graft.inspect(model).nodes])\n"
    )
    before, after = output_of(code).splitlines()
    assert before != after


@pytest.mark.parametrize("library", ["libwrong_empty_fusion.so", "libwrong_fusion.so"])
def test_a_library_that_is_refused_leaves_nothing_behind(library):
    code = (
        "import sys, graft, onnx.helper as make\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        graft.load_operators(sys.argv[1])\n"
        "    except graft.Error as error:\n"
        "        assert 'fine_fusion.yaml' in str(error), error\n"
        "    else:\n"
        "        raise SystemExit('it was not refused')\n"
        "ports = [make.make_tensor_value_info(name, 1, [3]) for name in 'xy']\n"
        "graph = make.make_graph([make.make_node('Relu', ['x'], ['y'])], 'g', ports[:1], ports[1:])\n"
        "model = make.make_model(graph, opset_imports=[make.make_opsetid('', 17)], ir_version=9)\n"
        "graft.convert(model)\n"
    )
    output_of(code, LIBRARIES / library)


def test_the_rest_of_the_package_may_load_it_too():
    code = (
        "import sys, graft, graft.ops, numpy as np\n"
        "assert 'Snake' in graft.load_operators(sys.argv[1])\n"
        "my = graft.ops.load_operators(sys.argv[1])\n"
        "print(my.snake(np.zeros(3, np.float32)).tolist())\n"
    )
    assert output_of(code) == "[0.0, 0.0, 0.0]\n"
