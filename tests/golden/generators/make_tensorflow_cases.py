# make_tensorflow_cases.py - writes small frozen graphs of TensorFlow with inputs and TensorFlow's own results.
"""Usage: python tests/golden/generators/make_tensorflow_cases.py FOLDER, in an environment with TensorFlow. It writes
cases.npz, corner_cases.npz and cell_cases.npz; with a second argument, the name of one of them, only that.

Each case is one graph: its GraphDef as bytes under `<case>/graph`, its inputs under `<case>/in/<name>` and what
TensorFlow computes under `<case>/out/<tensor>`. tests/import/test_tensorflow.py reads them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2  # noqa: E402

v1 = tf.compat.v1
raw = tf.raw_ops
ARRAYS: dict[str, np.ndarray] = {}
RANDOM = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype("float32")


def case(name: str, inputs: dict[str, np.ndarray], build: Callable, dynamic: bool = False) -> None:
    """Adds a case. `build` gets a placeholder for each input and returns one or several tensors."""
    graph = tf.Graph()
    with graph.as_default():
        holders = {}
        for key, value in inputs.items():
            shape = [None] * value.ndim if dynamic else list(value.shape)
            holders[key] = v1.placeholder(value.dtype, shape, name=key)
        results = build(**holders)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        results = [tf.identity(result, name=f"result_{i}") for i, result in enumerate(results)]
        with v1.Session(graph=graph) as session:
            values = session.run(results, {holders[key]: value for key, value in inputs.items()})
        definition = graph.as_graph_def().SerializeToString()
    ARRAYS[f"{name}/graph"] = np.frombuffer(definition, dtype=np.uint8)
    for key, value in inputs.items():
        ARRAYS[f"{name}/in/{key}"] = value
    for i, value in enumerate(values):
        ARRAYS[f"{name}/out/result_{i}"] = np.asarray(value)


def convolutions() -> None:
    x = normal(2, 9, 7, 4)
    for padding in ("SAME", "VALID"):
        for stride in (1, 2):
            for size in (1, 2, 3):
                w = normal(size, size, 4, 6)
                case(
                    f"conv2d_{padding}_{stride}_{size}",
                    {"x": x},
                    lambda x, w=w, s=stride, p=padding: tf.nn.conv2d(x, w, s, p),
                )
    w = normal(3, 3, 4, 6)
    case(
        "conv2d_open_sizes",
        {"x": x},
        lambda x: tf.nn.conv2d(tf.ensure_shape(x, [None, None, None, 4]), w, 2, "SAME"),
        True,
    )
    case("conv2d_dilated", {"x": x}, lambda x: tf.nn.conv2d(x, w, 1, "SAME", dilations=2))
    pads = [[0, 0], [1, 2], [0, 3], [0, 0]]
    case("conv2d_explicit", {"x": x}, lambda x: tf.nn.conv2d(x, w, 1, pads))
    grouped = normal(3, 3, 2, 6)
    case(
        "conv2d_grouped",
        {"x": x},
        lambda x: raw.Conv2D(input=tf.transpose(x, [0, 1, 2, 3]), filter=grouped, strides=[1] * 4, padding="SAME"),
    )
    for stride in (1, 2):
        deep = normal(3, 2, 4, 3)
        case(
            f"depthwise_{stride}",
            {"x": x},
            lambda x, s=stride, w=deep: tf.nn.depthwise_conv2d(x, w, [1, s, s, 1], "SAME"),
        )
    for padding, size, stride, output in (
        ("SAME", 3, 2, (18, 14)),
        ("SAME", 3, 2, (17, 13)),
        ("SAME", 2, 3, (27, 21)),
        ("VALID", 3, 2, (19, 15)),
        ("VALID", 3, 2, (20, 16)),
        ("SAME", 4, 2, (18, 14)),
    ):
        back = normal(size, size, 5, 4)
        case(
            f"transposed_{padding}_{size}_{stride}_{output[0]}",
            {"x": x},
            lambda x, w=back, s=stride, p=padding, o=output: tf.nn.conv2d_transpose(x, w, [2, *o, 5], s, p),
        )
    volume = normal(1, 5, 6, 4, 2)
    case("conv3d", {"x": volume}, lambda x: tf.nn.conv3d(x, normal(3, 2, 3, 2, 3), [1, 1, 2, 1, 1], "SAME"))
    case("bias", {"x": x}, lambda x: tf.nn.bias_add(x, normal(4)))
    case(
        "atrous_by_batches",
        {"x": normal(1, 8, 8, 3)},
        lambda x: tf.batch_to_space(
            tf.nn.conv2d(tf.space_to_batch(x, [2, 2], [[2, 2], [2, 2]]), normal(3, 3, 3, 3), 1, "VALID"),
            [2, 2],
            [[0, 0], [0, 0]],
        ),
    )
    case("space_to_batch", {"x": normal(2, 6, 4, 3)}, lambda x: tf.space_to_batch(x, [3, 2], [[1, 2], [0, 2]]))
    case("batch_to_space", {"x": normal(12, 2, 3, 3)}, lambda x: tf.batch_to_space(x, [3, 2], [[1, 2], [0, 2]]))


def pools_and_norms() -> None:
    x = normal(2, 9, 7, 4)
    for padding in ("SAME", "VALID"):
        case(f"max_pool_{padding}", {"x": x}, lambda x, p=padding: tf.nn.max_pool2d(x, [3, 2], [2, 1], p))
        case(f"average_pool_{padding}", {"x": x}, lambda x, p=padding: tf.nn.avg_pool2d(x, [3, 2], [2, 1], p))
    case(
        "max_pool_v2",
        {"x": x},
        lambda x: raw.MaxPoolV2(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
    )
    case("max_pool_3d", {"x": normal(1, 4, 5, 6, 2)}, lambda x: tf.nn.max_pool3d(x, 2, 2, "SAME"))
    case("average_pool_3d", {"x": normal(1, 4, 5, 6, 2)}, lambda x: tf.nn.avg_pool3d(x, 2, 2, "SAME"))
    parts = [normal(4), normal(4), normal(4), np.abs(normal(4)) + 0.5]
    for op in (raw.FusedBatchNorm, raw.FusedBatchNormV2, raw.FusedBatchNormV3):
        arguments = {} if op is raw.FusedBatchNorm else {}
        case(
            op.__name__,
            {"x": x},
            lambda x, op=op, a=arguments: op(
                x=x,
                scale=parts[0],
                offset=parts[1],
                mean=parts[2],
                variance=parts[3],
                epsilon=1e-3,
                is_training=False,
                **a,
            )[0],
        )
    case("lrn", {"x": normal(1, 4, 4, 9)}, lambda x: tf.nn.lrn(x, 2, 1.5, 0.3, 0.6))
    for epsilon in (1e-12, 0.5):
        case(f"l2_normalize_{epsilon}", {"x": normal(3, 4, 5) * 0.1}, lambda x, e=epsilon: tf.nn.l2_normalize(x, 2, e))
    case("moments", {"x": x}, lambda x: tf.nn.moments(x, [1, 2], keepdims=True))


def resizing() -> None:
    x = normal(2, 5, 4, 3)
    for op in (raw.ResizeBilinear, raw.ResizeNearestNeighbor, raw.ResizeBicubic):
        for corners, half in ((False, False), (True, False), (False, True)):
            for size in ((10, 8), (7, 9), (3, 2)):
                case(
                    f"{op.__name__}_{int(corners)}{int(half)}_{size[0]}",
                    {"x": x},
                    lambda x, o=op, c=corners, h=half, s=size: o(
                        images=x, size=s, align_corners=c, half_pixel_centers=h
                    ),
                )
    case("resize_by_shape", {"x": x}, lambda x: raw.ResizeBilinear(images=x, size=tf.shape(x)[1:3] * 2), True)
    case("depth_to_space", {"x": normal(1, 3, 2, 8)}, lambda x: tf.nn.depth_to_space(x, 2))
    case("space_to_depth", {"x": normal(1, 4, 6, 3)}, lambda x: tf.nn.space_to_depth(x, 2))


def activations() -> None:
    x = np.concatenate([normal(30) * 3, np.float32([0, -0.0, 1, -1, 6, 7])]).reshape(4, 9)
    for op in (
        tf.nn.relu,
        tf.nn.relu6,
        tf.nn.elu,
        tf.nn.selu,
        tf.nn.softplus,
        tf.nn.softsign,
        tf.sigmoid,
        tf.tanh,
        tf.nn.leaky_relu,
        tf.nn.softmax,
        tf.nn.log_softmax,
        tf.nn.swish,
        tf.nn.gelu,
    ):
        case(f"activation_{op.__name__}", {"x": x}, lambda x, op=op: op(x))
    case("leaky_relu_alpha", {"x": x}, lambda x: tf.nn.leaky_relu(x, 0.05))


def elementwise() -> None:
    x = normal(3, 4)
    positive = np.abs(x) + 0.1
    unit = np.tanh(x).astype("float32")
    for op in (
        "Abs",
        "Atan",
        "Asinh",
        "Ceil",
        "Cos",
        "Cosh",
        "Erf",
        "Exp",
        "Expm1",
        "Floor",
        "Neg",
        "Sign",
        "Sin",
        "Sinh",
        "Square",
        "Tan",
        "Rint",
        "Round",
    ):
        case(op, {"x": x * 2}, lambda x, op=op: getattr(raw, op)(x=x))
    for op in ("Log", "Log1p", "Reciprocal", "Rsqrt", "Sqrt", "Inv"):
        case(op, {"x": positive}, lambda x, op=op: getattr(raw, op)(x=x))
    for op in ("Acos", "Asin", "Atanh"):
        case(op, {"x": unit * 0.9}, lambda x, op=op: getattr(raw, op)(x=x))
    case("Acosh", {"x": positive + 1}, lambda x: raw.Acosh(x=x))
    case(
        "round_half", {"x": np.float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5])}, lambda x: [tf.round(x), raw.Rint(x=x)]
    )
    y = normal(4) + np.float32(0.2)
    for op in (
        "Add",
        "AddV2",
        "Sub",
        "Mul",
        "RealDiv",
        "Maximum",
        "Minimum",
        "SquaredDifference",
        "FloorDiv",
        "FloorMod",
        "TruncateMod",
        "DivNoNan",
        "Xdivy",
        "Greater",
        "GreaterEqual",
        "Less",
        "LessEqual",
    ):
        case(op, {"x": x, "y": y}, lambda x, y, op=op: getattr(raw, op)(x=x, y=y))
    case("Pow", {"x": positive, "y": y}, lambda x, y: raw.Pow(x=x, y=y))
    case(
        "division_by_zero",
        {"x": np.float32([1, 0, 2]), "y": np.float32([0, 0, 4])},
        lambda x, y: [raw.DivNoNan(x=x, y=y), raw.Xdivy(x=x, y=y + 1)],
    )
    whole = np.int32([[-7, 7, -7, 7], [0, 5, -1, 9]])
    by = np.int32([3, -3, -3, 3])
    for op in ("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Div", "Mul", "Equal", "NotEqual", "Maximum"):
        case(f"whole_{op}", {"x": whole, "y": by}, lambda x, y, op=op: getattr(raw, op)(x=x, y=y))
    case("AddN", {"x": x, "y": x * 2}, lambda x, y: tf.add_n([x, y, x]))
    case("clip", {"x": x}, lambda x: tf.clip_by_value(x, -0.5, 0.25))
    flags = x > 0
    other = normal(3, 4) > 0
    case(
        "logic",
        {"x": flags, "y": other},
        lambda x, y: [tf.logical_and(x, y), tf.logical_or(x, y), tf.logical_not(x), tf.math.logical_xor(x, y)],
    )
    case("select", {"c": flags, "x": x, "y": -x}, lambda c, x, y: raw.Select(condition=c, x=x, y=y))
    case(
        "select_rows",
        {"c": np.array([True, False, True]), "x": x, "y": -x},
        lambda c, x, y: raw.Select(condition=c, x=x, y=y),
    )
    case("select_v2", {"c": flags, "x": x}, lambda c, x: tf.where(c, x, 0.0))
    special = np.float32([np.nan, np.inf, -np.inf, 0])
    case("special", {"x": special}, lambda x: [tf.math.is_nan(x), tf.math.is_inf(x)])
    case("cast", {"x": x * 5}, lambda x: [tf.cast(x, tf.int32), tf.cast(x, tf.float64), tf.cast(x, tf.float16)])


def reductions_and_products() -> None:
    x = normal(3, 4, 5)
    for name in ("mean", "sum", "max", "min", "prod"):
        op = getattr(tf, f"reduce_{name}")
        case(f"reduce_{name}", {"x": x}, lambda x, op=op: [op(x, 1), op(x, [0, 2], keepdims=True), op(x), op(x, -1)])
    flags = x > 0.3
    case("all_any", {"x": flags}, lambda x: [tf.reduce_all(x, 1), tf.reduce_any(x, [0, 2])])
    case("arg", {"x": x}, lambda x: [tf.argmax(x, 1), tf.argmin(x, 2, output_type=tf.int32)])
    case("top_k", {"x": x}, lambda x: tf.math.top_k(x, 3))
    case("cumsum", {"x": x}, lambda x: [tf.cumsum(x, 1), tf.cumsum(x, 2, exclusive=True, reverse=True)])
    a, b = normal(4, 3), normal(3, 5)
    case("matmul", {"a": a, "b": b}, lambda a, b: tf.matmul(a, b))
    case(
        "matmul_transposed",
        {"a": a.T.copy(), "b": b.T.copy()},
        lambda a, b: tf.matmul(a, b, transpose_a=True, transpose_b=True),
    )
    case("matmul_constant", {"a": a}, lambda a: raw.MatMul(a=a, b=b.T.copy(), transpose_b=True))
    case("batch_matmul", {"a": normal(2, 4, 3), "b": normal(2, 5, 3)}, lambda a, b: tf.matmul(a, b, transpose_b=True))
    case("einsum", {"a": normal(2, 4, 3), "b": normal(3, 6)}, lambda a, b: tf.einsum("bij,jk->bik", a, b))


def arrays() -> None:
    x = normal(2, 3, 4)
    case("reshape", {"x": x}, lambda x: [tf.reshape(x, [6, 4]), tf.reshape(x, [-1, 2]), tf.reshape(x, [-1])])
    case("reshape_batch", {"x": x}, lambda x: tf.reshape(x, tf.stack([tf.shape(x)[0], 12])), True)
    case("reshape_empty", {"x": np.zeros((0, 3), "float32")}, lambda x: tf.reshape(x, [3, 0]))
    case(
        "flatten_then_weights",
        {"x": normal(2, 4, 3, 5)},
        lambda x: tf.matmul(
            tf.reshape(tf.nn.relu(tf.nn.conv2d(x, normal(1, 1, 5, 2), 1, "SAME")), [-1, 24]), normal(24, 3)
        ),
    )
    case("transpose", {"x": x}, lambda x: tf.transpose(x, [2, 0, 1]))
    case(
        "concat",
        {"x": x, "y": normal(2, 1, 4)},
        lambda x, y: [tf.concat([x, y], 1), raw.Concat(concat_dim=1, values=[x, y])],
    )
    case("split", {"x": x}, lambda x: tf.split(x, 2, 2))
    case("split_v", {"x": x}, lambda x: tf.split(x, [1, -1], 1))
    case("slice", {"x": x}, lambda x: tf.slice(x, [0, 1, 1], [2, -1, 2]))
    case(
        "strided_slice",
        {"x": x},
        lambda x: [
            x[0],
            x[:, 1:],
            x[..., -1],
            x[:, ::2, ::-1],
            x[-1, -1],
            x[:, tf.newaxis, 1],
            x[1:2, ..., tf.newaxis],
            x[:, -2:-1],
        ],
    )
    case("strided_slice_computed", {"x": x, "n": np.int32(1)}, lambda x, n: [x[:, n], x[:, n:, :3]])
    case(
        "gather",
        {"x": x, "i": np.int32([[2, 0], [1, 1]])},
        lambda x, i: [tf.gather(x, i, axis=1), tf.gather(x, i, axis=1, batch_dims=1)],
    )
    case("gather_nd", {"x": x, "i": np.int32([[1, 2], [0, 1]])}, lambda x, i: tf.gather_nd(x, i))
    case("pack", {"x": x, "y": -x}, lambda x, y: [tf.stack([x, y], 0), tf.stack([x, y], -1)])
    case("unpack", {"x": x}, lambda x: tf.unstack(x, axis=1))
    case("tile", {"x": x}, lambda x: tf.tile(x, [2, 1, 3]))
    case(
        "expand_squeeze",
        {"x": x},
        lambda x: [
            tf.expand_dims(x, 1),
            tf.expand_dims(x, -1),
            tf.squeeze(tf.expand_dims(x, 1)),
            tf.squeeze(tf.expand_dims(x, 1), [1]),
        ],
    )
    case("shapes", {"x": x}, lambda x: [tf.shape(x), tf.size(x), tf.rank(x), tf.shape(x, out_type=tf.int64)], True)
    case("fill_range", {"n": np.int32(3)}, lambda n: [tf.fill([2, n], 1.5), tf.range(0, n * 2, 2), tf.range(n)])
    case("like", {"x": x}, lambda x: [tf.zeros_like(x) + x, tf.ones_like(x) * x], True)
    case(
        "pad",
        {"x": x},
        lambda x: [tf.pad(x, [[0, 1], [2, 0], [1, 1]]), tf.pad(x, [[0, 1], [2, 0], [1, 1]], constant_values=3.0)],
    )
    case(
        "mirror_pad",
        {"x": x},
        lambda x: [tf.pad(x, [[0, 1], [2, 0], [1, 1]], "REFLECT"), tf.pad(x, [[0, 1], [2, 0], [1, 1]], "SYMMETRIC")],
    )
    case("reverse", {"x": x}, lambda x: tf.reverse(x, [1, 2]))
    case("one_hot", {"x": np.int32([0, 2, 3, -1])}, lambda x: [tf.one_hot(x, 3), tf.one_hot(x, 4, 5.0, -1.0, axis=0)])
    case("broadcast_to", {"x": normal(3, 1)}, lambda x: tf.broadcast_to(x, [2, 3, 4]))
    case("where", {"x": x > 0}, lambda x: tf.where(x))
    case("scatter_nd", {"u": normal(4)}, lambda u: tf.scatter_nd(np.int32([[4], [3], [1], [7]]), u, [8]))
    case(
        "fake_quant",
        {"x": normal(3, 4) * 3},
        lambda x: [
            tf.quantization.fake_quant_with_min_max_args(x, -6, 6),
            tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 3.0, narrow_range=True),
            tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [-1.0, -2, -3, -4], [1.0, 1, 2, 2]),
        ],
    )
    case("many_constants", {"x": x}, lambda x: x + tf.zeros([2, 3, 4]) + tf.constant(0.5, shape=[3, 4]))


def functions_and_flow() -> None:
    @tf.function
    def inner(a, b):
        values, _ = tf.math.top_k(a + b, 2)
        return values, a * b

    @tf.function
    def outer(a):
        first, second = inner(a, a * 2)
        return second - 1, tf.reduce_sum(first)

    case("function_calls", {"x": normal(2, 5)}, lambda x: outer(x))

    def dropout(x):
        training = v1.placeholder_with_default(False, [], name="is_training")
        return v1.cond(training, lambda: x * 2 + 1, lambda: x - 3)

    with_v1_control_flow("conditional_fixed", {"x": normal(2, 3)}, dropout)
    with_v1_control_flow(
        "conditional_open",
        {"x": normal(2, 3), "flag": np.array(True)},
        lambda x, flag: v1.cond(flag, lambda: x * 2 + 1, lambda: x - 3),
    )
    case(
        "keep_probability",
        {"x": normal(2, 3)},
        lambda x: x * v1.placeholder_with_default(np.float32(0.5), [], name="keep"),
    )


def with_v1_control_flow(name: str, inputs: dict[str, np.ndarray], build: Callable) -> None:
    v1.disable_control_flow_v2()
    case(name, inputs, build)
    v1.enable_control_flow_v2()


def frozen(
    name: str, inputs: dict[str, np.ndarray], build: Callable, lowered: bool = False, dynamic: bool = False
) -> None:
    """Adds a frozen function of TensorFlow 2; `lowered` replaces While and If by the frames of TensorFlow 1."""
    batch = [
        tf.TensorSpec([None, *value.shape[1:]] if dynamic else value.shape, value.dtype, name=key)
        for key, value in inputs.items()
    ]
    concrete = tf.function(build).get_concrete_function(*batch)
    function = convert_variables_to_constants_v2(concrete, lower_control_flow=lowered)
    definition = function.graph.as_graph_def()
    outputs = [tensor.name.split(":")[0] for tensor in function.outputs]
    values = concrete(*[tf.constant(value) for value in inputs.values()])
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    for node in definition.node:
        for attribute in [key for key in node.attr if key.startswith("_")]:
            del node.attr[attribute]
    ARRAYS[f"{name}/graph"] = np.frombuffer(definition.SerializeToString(), dtype=np.uint8)
    for key, value in inputs.items():
        ARRAYS[f"{name}/in/{key}"] = value
    for key, value in zip(outputs, values, strict=True):
        ARRAYS[f"{name}/out/{key}"] = value.numpy()


def loops_and_branches() -> None:
    layers = tf.keras.layers
    x = normal(2, 5, 3)
    tf.keras.utils.set_random_seed(7)
    recurrent = {
        "lstm": layers.LSTM(4, return_sequences=True, bias_initializer="random_normal"),
        "gru": layers.GRU(4, bias_initializer="random_normal"),
        "bidirectional": layers.Bidirectional(layers.SimpleRNN(3, return_sequences=True)),
        "lstm_states": layers.LSTM(3, return_state=True, go_backwards=True),
    }
    for name, layer in recurrent.items():
        for lowered in (False, True):
            frozen(
                f"{name}_{'frames' if lowered else 'while'}",
                {"x": x},
                lambda x, layer=layer: layer(x),
                lowered,
                dynamic=True,
            )

    def collatz(n):  # the number of iterations depends on data, and a list grows
        def body(n, turns, all_of_them):
            return tf.where(n % 2 == 0, n // 2, 3 * n + 1), turns + 1, tf.concat([all_of_them, [n]], 0)

        shapes = [tf.TensorShape([]), tf.TensorShape([]), tf.TensorShape([None])]
        return tf.while_loop(lambda n, *_: n > 1, body, [n, 0, tf.zeros([0], tf.int32)], shape_invariants=shapes)

    frozen("loop_open", {"n": np.int32(6)}, collatz)
    frozen("loop_open_frames", {"n": np.int32(6)}, collatz, lowered=True)

    def nested(x, n):
        total = tf.constant(0.0)
        for i in tf.range(n):
            row = x
            for k in tf.range(i + 1):
                row = row * 0.5 + tf.cast(k, tf.float32)
            if tf.reduce_sum(row) > 2.0:
                total += tf.reduce_max(row)
            else:
                total -= 1.0
        return total

    nested = tf.autograph.to_graph(nested)
    frozen("loop_nested", {"x": normal(4), "n": np.int32(3)}, nested)
    frozen("loop_nested_frames", {"x": normal(4), "n": np.int32(3)}, nested, lowered=True)

    def choose(x, flag):
        w = tf.constant(normal(3, 3))
        return tf.cond(
            flag,
            lambda: tf.nn.relu(tf.matmul(x, w)),
            lambda: tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1, lambda: x[:, ::-1]),
        )

    for flag in (True, False):
        frozen(f"branch_{flag}", {"x": normal(2, 3), "flag": np.array(flag)}, choose)

    def by_element(x):
        return tf.map_fn(lambda row: tf.reduce_sum(row) * row, x)

    frozen("map_fn", {"x": normal(3, 4)}, by_element)
    frozen("map_fn_frames", {"x": normal(3, 4)}, by_element, lowered=True)

    def arrays_of_v1(x):
        source = v1.TensorArray(tf.float32, 4).unstack(x)
        target = v1.TensorArray(tf.float32, 4)

        def body(i, state, target):
            state = tf.tanh(state + source.read(i))
            return i + 1, state, target.write(i, state)

        _, state, target = v1.while_loop(lambda i, *_: i < 4, body, (0, tf.zeros([3]), target))
        return [state, target.stack()]

    v1.disable_tensor_equality()
    with_v1_control_flow("tensor_array_v1", {"x": normal(4, 3)}, arrays_of_v1)
    v1.enable_tensor_equality()


def traps() -> None:
    """Adds cases of known faults of importers."""
    x = normal(2, 6, 5, 4)
    w = normal(3, 3, 4, 2)
    dense = normal(60, 3)

    def flatten_by_shape(x):
        y = tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME"))
        return tf.matmul(tf.reshape(y, tf.stack([tf.shape(y)[0], -1])), dense)

    batch = lambda x: tf.ensure_shape(x, [None, 6, 5, 4])  # noqa: E731
    case("flatten_open_batch", {"x": x}, lambda x: flatten_by_shape(batch(x)), dynamic=True)
    case(
        "flatten_by_sizes",
        {"x": x},
        lambda x: tf.matmul(
            tf.reshape(tf.nn.conv2d(x, w, 1, "SAME"), [tf.shape(x)[0], tf.shape(x)[1] * tf.shape(x)[2] * 2]), dense
        ),
    )
    case(
        "reshape_many_open",
        {"x": normal(2, 3, 4, 5)},
        lambda x: tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1], 2, 2, tf.shape(x)[3]]),
        dynamic=True,
    )
    case(
        "reshape_and_back",
        {"x": x},
        lambda x: tf.reshape(tf.reshape(tf.nn.conv2d(batch(x), w, 1, "SAME"), [-1, 30, 2]), [-1, 6, 5, 2]),
        dynamic=True,
    )
    for height, width in ((8, 7), (7, 8)):
        for stride in (2, 3):
            images = normal(1, height, width, 3)
            deep = normal(3, 3, 3, 2)
            dense_filter = normal(4, 2, 3, 5)

            def same(x, s=stride, w=deep, v=dense_filter):
                return [
                    tf.nn.conv2d(x, v, s, "SAME"),
                    tf.nn.depthwise_conv2d(x, w, [1, s, s, 1], "SAME"),
                    tf.nn.max_pool2d(x, 2, s, "SAME"),
                    tf.nn.avg_pool2d(x, [3, 2], s, "SAME"),
                ]

            case(f"same_{height}{width}_{stride}", {"x": images}, same)
            case(
                f"same_open_{height}{width}_{stride}",
                {"x": images},
                lambda x, s=same: s(tf.ensure_shape(x, [None, None, None, 3])),
                dynamic=True,
            )
    case(
        "depthwise_dilated",
        {"x": x},
        lambda x: tf.nn.depthwise_conv2d(x, normal(3, 3, 4, 1), [1, 1, 1, 1], "SAME", dilations=[2, 2]),
    )

    def atrous(x, rate, pads, crops):
        blocks = raw.SpaceToBatchND(input=x, block_shape=rate, paddings=pads)
        return raw.BatchToSpaceND(input=tf.nn.conv2d(blocks, w, 1, "VALID"), block_shape=rate, crops=crops)

    for name, rate, pads, crops in (
        ("even", [2, 2], [[2, 2], [2, 3]], [[0, 0], [0, 1]]),
        ("uneven", [2, 3], [[2, 2], [4, 3]], [[0, 0], [1, 0]]),
        ("cropped", [2, 2], [[2, 2], [2, 3]], [[3, 0], [0, 1]]),
    ):
        case(f"atrous_{name}", {"x": x}, lambda x, a=(rate, pads, crops): atrous(x, *a))
    case(
        "atrous_open_batch",
        {"x": x},
        lambda x: atrous(batch(x), [2, 2], [[2, 2], [2, 3]], [[0, 0], [0, 1]]),
        dynamic=True,
    )
    case(
        "space_to_batch_open",
        {"x": normal(2, 6, 4, 3)},
        lambda x: [
            tf.space_to_batch(x, [3, 2], [[1, 2], [0, 2]]),
            tf.batch_to_space(tf.space_to_batch(x, [3, 2], [[1, 2], [0, 2]]), [3, 2], [[1, 0], [0, 0]]),
        ],
        dynamic=True,
    )
    whole = RANDOM.integers(0, 255, (1, 4, 5, 3)).astype("uint8")
    case(
        "resize_integers",
        {"x": whole},
        lambda x: [
            raw.ResizeBilinear(images=x, size=[7, 9]),
            raw.ResizeBilinear(images=x, size=[8, 10], half_pixel_centers=True),
            raw.ResizeNearestNeighbor(images=x, size=[7, 9]),
        ],
    )
    case(
        "resize_to_one",
        {"x": normal(1, 5, 4, 2)},
        lambda x: [
            raw.ResizeBilinear(images=x, size=[1, 1], align_corners=True),
            raw.ResizeNearestNeighbor(images=x, size=[1, 3], align_corners=True),
            raw.ResizeBilinear(images=x, size=[1, 3], half_pixel_centers=True),
        ],
    )
    y = normal(3, 5) * 0.1
    case(
        "l2_kinds",
        {"x": y},
        lambda x: [
            x * tf.math.rsqrt(tf.maximum(tf.reduce_sum(x * x, 1, keepdims=True), 0.01)),
            x / tf.sqrt(tf.reduce_sum(tf.square(x), -1, keepdims=True) + 0.01),
            x / tf.maximum(tf.norm(x, axis=-1, keepdims=True), 0.1),
            tf.math.divide_no_nan(x, tf.norm(x, axis=1, keepdims=True)),
        ],
    )
    parts = [normal(4), normal(4), normal(4), np.abs(normal(4)) + 0.5]
    case(
        "batch_norm_training",
        {"x": x},
        lambda x: raw.FusedBatchNormV3(x=x, scale=parts[0], offset=parts[1], mean=[], variance=[], epsilon=0.02)[0],
    )
    case(
        "batch_norm_old", {"x": x}, lambda x: tf.nn.batch_normalization(x, parts[2], parts[3], parts[1], parts[0], 0.01)
    )
    case("lrn_radii", {"x": normal(1, 3, 3, 8)}, lambda x: [tf.nn.lrn(x, r, 1.0, 0.2, 0.75) for r in (1, 3, 5)])
    case(
        "mirror_pad_more",
        {"x": normal(1, 4, 4, 2)},
        lambda x: [tf.pad(x, [[0, 0], [3, 2], [1, 3], [0, 0]], mode) for mode in ("REFLECT", "SYMMETRIC")],
    )
    case(
        "max_pool_indices",
        {"x": normal(2, 6, 4, 3)},
        lambda x: [
            *tf.nn.max_pool_with_argmax(x, 2, 2, "SAME"),
            *tf.nn.max_pool_with_argmax(x, 2, 2, "VALID", include_batch_in_index=True),
        ],
    )
    case(
        "patches",
        {"x": normal(1, 6, 7, 2)},
        lambda x: [
            tf.image.extract_patches(x, [1, 2, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
            tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 1, 1], [1, 2, 1, 1], "SAME"),
        ],
    )


def fused_by_grappler() -> None:
    x = normal(2, 5, 4, 3)
    w = normal(3, 3, 3, 4)
    deep = normal(3, 3, 3, 1)
    four = [normal(4), normal(4), normal(4), np.abs(normal(4)) + 0.5]

    def make(op, inputs, extra, types=(), **attributes):
        graph = v1.get_default_graph()
        wrap = {}
        for key, value in {"T": tf.float32, **attributes}.items():
            attribute = v1.AttrValue()
            if isinstance(value, tf.DType):
                attribute.type = value.as_datatype_enum
            elif isinstance(value, bool):
                attribute.b = value
            elif isinstance(value, int):
                attribute.i = value
            elif isinstance(value, float):
                attribute.f = value
            elif isinstance(value, str):
                attribute.s = value.encode()
            elif isinstance(value[0], int):
                attribute.list.i.extend(value)
            elif isinstance(value[0], tf.DType):
                attribute.list.type.extend([each.as_datatype_enum for each in value])
            else:
                attribute.list.s.extend([each.encode() for each in value])
            wrap[key] = attribute
        tensors = [tf.convert_to_tensor(each) for each in (*inputs, *extra)]
        return graph.create_op(op, tensors, [tf.float32, *types], attrs=wrap, name="fused").outputs

    convolution = {"strides": [1, 1, 1, 1], "padding": "SAME", "num_args": 1, "TArgs": [tf.float32], "num_host_args": 0}
    for activation in ("", "Relu", "Relu6", "Elu", "LeakyRelu"):
        fused = ["BiasAdd", activation] if activation else ["BiasAdd"]
        case(
            f"fused_conv_{activation}",
            {"x": x},
            lambda x, f=fused: make(
                "_FusedConv2D", [x, w], [normal(4)], fused_ops=f, leakyrelu_alpha=0.3, **convolution
            )[0],
        )
    case(
        "fused_conv_norm",
        {"x": x},
        lambda x: make(
            "_FusedConv2D",
            [x, w],
            four,
            fused_ops=["FusedBatchNorm", "Relu"],
            epsilon=0.01,
            **{**convolution, "num_args": 4, "TArgs": [tf.float32] * 4},
        )[0],
    )
    for activation in ("Relu", "Tanh", "Sigmoid"):
        case(
            f"fused_matmul_{activation}",
            {"x": normal(3, 5)},
            lambda x, a=activation: make(
                "_FusedMatMul", [x, normal(5, 4)], [normal(4)], fused_ops=["BiasAdd", a], num_args=1
            )[0],
        )

    # TensorFlow has no CPU kernel for these operators: the results are those of their decompositions.
    def as_parts(name, inputs, parts, whole):
        case(name, inputs, parts)
        graph = tf.Graph()
        with graph.as_default():
            tf.identity(
                whole(*[v1.placeholder(value.dtype, value.shape, name=key) for key, value in inputs.items()]),
                name="result_0",
            )
        ARRAYS[f"{name}/graph"] = np.frombuffer(graph.as_graph_def().SerializeToString(), dtype=np.uint8)

    bias = normal(4)
    factor = normal(5, 4)
    as_parts(
        "fused_depthwise",
        {"x": x},
        lambda x: tf.nn.relu6(tf.nn.bias_add(tf.nn.depthwise_conv2d(x, deep, [1, 2, 2, 1], "SAME"), bias[:3])),
        lambda x: make(
            "_FusedDepthwiseConv2dNative",
            [x, deep],
            [bias[:3]],
            fused_ops=["BiasAdd", "Relu6"],
            strides=[1, 2, 2, 1],
            padding="SAME",
            num_args=1,
        )[0],
    )
    for activation, approximate in (("GeluApproximate", True), ("GeluExact", False)):
        as_parts(
            f"fused_matmul_{activation}",
            {"x": normal(3, 5)},
            lambda x, a=approximate: tf.nn.gelu(tf.matmul(x, factor) + bias, a),
            lambda x, a=activation: make("_FusedMatMul", [x, factor], [bias], fused_ops=["BiasAdd", a], num_args=1)[0],
        )
    as_parts(
        "fused_norm",
        {"x": normal(2, 3, 3, 4), "y": normal(2, 3, 3, 4)},
        lambda x, y: tf.nn.relu(y + tf.nn.batch_normalization(x, four[2], four[3], four[1], four[0], 0.01)),
        lambda x, y: make(
            "_FusedBatchNormEx",
            [x, *four[:3], four[3]],
            [y],
            [tf.float32] * 5,
            U=tf.float32,
            epsilon=0.01,
            is_training=False,
            num_side_inputs=1,
            activation_mode="Relu",
        )[0],
    )


def quantized() -> None:
    x = np.linspace(-7.3, 7.9, 60).astype("float32").reshape(5, 12)
    q = tf.quantization

    def fakes(x):
        results = []
        for low, high in ((-6.0, 6.0), (-1.0, 3.0), (0.0, 6.0), (0.5, 5.0), (-7.3, -0.1), (-0.3, 7.1)):
            for narrow in (False, True):
                results.append(q.fake_quant_with_min_max_vars(x, low, high, narrow_range=narrow))
        results.append(q.fake_quant_with_min_max_args(x, -3, 5, num_bits=4))
        results.append(q.fake_quant_with_min_max_vars(x, -3.0, 5.0, num_bits=16))
        results.append(
            q.fake_quant_with_min_max_vars_per_channel(
                x, np.linspace(-8, -1, 12).astype("float32"), np.linspace(1, 7, 12).astype("float32"), narrow_range=True
            )
        )
        return results

    case("quantum_fake", {"x": x}, fakes)

    def there_and_back(x):
        results = []
        for signed in (True, False):
            for narrow in (False, True):
                results.append(q.quantize_and_dequantize_v2(x, -4.0, 5.0, signed, 8, True, narrow_range=narrow))
        results.append(q.quantize_and_dequantize_v2(x, 0.0, 0.0, range_given=False))
        results.append(q.quantize_and_dequantize_v2(x, -4.0, 5.0, num_bits=5, range_given=True))
        results.append(
            raw.QuantizeAndDequantizeV3(input=x, input_min=-4.0, input_max=5.0, num_bits=8, range_given=True)
        )
        return results

    case("quantum_there_and_back", {"x": x}, there_and_back)
    stored = RANDOM.integers(-128, 127, (4, 5)).astype("int8")

    def stored_numbers(x):
        results = []
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            signed, low, high = raw.QuantizeV2(input=x, min_range=-3.0, max_range=6.5, T=tf.qint8, mode=mode)
            results.append(raw.Dequantize(input=signed, min_range=low, max_range=high, mode=mode))
            results.append(
                raw.Dequantize(
                    input=tf.bitcast(tf.constant(stored), tf.qint8), min_range=-3.0, max_range=6.5, mode=mode
                )
                + tf.reduce_mean(x) * 0
            )
        return results

    case("quantum_stored", {"x": x}, stored_numbers)


def indices_and_boxes() -> None:
    x = normal(2, 3, 4, 5)
    two = np.int32([[1, 0], [3, 2]])
    case(
        "gather_batches",
        {"x": x, "i": two},
        lambda x, i: [
            tf.gather(x, i, axis=2, batch_dims=1),
            tf.gather(x, i % 3, axis=1, batch_dims=1),
            tf.gather(x, i, axis=-1, batch_dims=1),
            tf.gather(x, i % 2, axis=0),
            tf.gather(x[:, :2], i, axis=2, batch_dims=2),
        ],
    )
    case(
        "gather_nd_batches",
        {"x": x, "i": np.int32([[[0, 1]], [[2, 3]]])},
        lambda x, i: tf.gather_nd(x, i, batch_dims=1),
    )
    case(
        "tensor_scatter",
        {"x": normal(6, 2), "i": np.int32([[4], [1], [4]]), "u": normal(3, 2)},
        lambda x, i, u: [
            tf.tensor_scatter_nd_update(x, i[:2], u[:2]),
            tf.tensor_scatter_nd_add(x, i, u),
            tf.tensor_scatter_nd_sub(x, i, u),
        ],
    )
    case("roll", {"x": x}, lambda x: [tf.roll(x, 1, 1), tf.roll(x, [-2, 7], [2, 3])])
    case(
        "reverse_sequence",
        {"x": normal(3, 4, 2), "n": np.int32([2, 4, 1])},
        lambda x, n: [
            tf.reverse_sequence(x, n, seq_axis=1, batch_axis=0),
            tf.reverse_sequence(tf.transpose(x, [2, 1, 0]), n, seq_axis=1, batch_axis=2),
            tf.reverse_sequence(tf.transpose(x, [1, 0, 2]), n, seq_axis=0, batch_axis=1),
        ],
    )
    case("unravel", {"i": np.int32([0, 7, 23])}, lambda i: tf.unravel_index(i, [2, 3, 4]))
    case("unique", {"x": np.int32([4, 1, 4, 4, 2, 1])}, lambda x: [*tf.unique(x), *tf.unique_with_counts(x)])
    case("stitch", {"a": normal(2, 3), "b": normal(3, 3)}, lambda a, b: tf.dynamic_stitch([[0, 3], [4, 1, 2]], [a, b]))
    case("partition", {"x": normal(5, 2), "p": np.int32([1, 0, 1, 2, 0])}, lambda x, p: tf.dynamic_partition(x, p, 3))
    y = normal(4, 6, 3)
    case(
        "strided_masks",
        {"x": y, "b": np.int64([1, 2]), "e": np.int64([3, 5])},
        lambda x, b, e: [
            x[::-1, -1:1:-2],
            x[tf.newaxis, ..., 1, tf.newaxis],
            x[3:0:-1, 2],
            x[..., tf.newaxis, ::2],
            x[-3:, :-1, ...],
            x[1, tf.newaxis, ..., -2:],
            tf.strided_slice(x, b, e),
            tf.strided_slice(x, b, e, [2, 1], begin_mask=2, end_mask=1),
            tf.strided_slice(x, np.int64([3, 5]), np.int64([0, 1]), np.int64([-1, -2]), end_mask=1),
            x[b[0], : e[1]],
        ],
    )
    case("strided_open", {"x": y}, lambda x: [x[:, -1], x[:, 1:-1, 0], x[..., ::-1], x[:, :, tf.newaxis]], dynamic=True)
    case(
        "slices",
        {"x": y, "n": np.int32(2)},
        lambda x, n: [
            tf.slice(x, [1, 0, 2], [-1, 3, -1]),
            tf.slice(x, tf.stack([n, 1, 0]), [-1, 2, -1]),
            tf.slice(x, [0, 0, 0], tf.stack([n, -1, 2])),
        ],
    )
    case(
        "shape_arithmetic",
        {"x": x},
        lambda x: [
            tf.broadcast_to(x[:, :1], tf.broadcast_dynamic_shape(tf.shape(x), [3, 1, 1])),
            tf.reshape(x, tf.concat([tf.shape(x)[:2], [-1]], 0)),
            tf.tile(x, tf.stack([1, 2, 1, tf.shape(x)[0]])),
            tf.fill(tf.shape(x)[1:3], 2.0),
        ],
        dynamic=True,
    )
    case(
        "ranges",
        {"n": np.int32(7), "s": np.float32(0.5)},
        lambda n, s: [
            tf.range(2, n, 2),
            tf.range(n, 0, -3),
            tf.range(0.0, 2.0, s),
            tf.linspace(s, 3.0, 5),
            tf.linspace(s, 3.0, 1),
            raw.LinSpace(start=s, stop=4.0, num=7),
        ],
    )
    boxes = np.sort(RANDOM.uniform(0, 1, (12, 2, 2)), 1).reshape(12, 4).astype("float32")
    boxes[3] = boxes[3][[2, 3, 0, 1]]
    boxes[5] = boxes[1] + 0.01
    scores = RANDOM.permutation(np.linspace(0.05, 0.95, 12)).astype("float32")
    case(
        "suppression",
        {"b": boxes, "s": scores},
        lambda b, s: [
            raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=5, iou_threshold=0.3),
            raw.NonMaxSuppressionV3(boxes=b, scores=s, max_output_size=20, iou_threshold=0.2, score_threshold=0.4),
            *raw.NonMaxSuppressionV4(
                boxes=b,
                scores=s,
                max_output_size=10,
                iou_threshold=0.3,
                score_threshold=0.5,
                pad_to_max_output_size=True,
            ),
            *raw.NonMaxSuppressionV5(
                boxes=b, scores=s, max_output_size=6, iou_threshold=0.4, score_threshold=0.3, soft_nms_sigma=0.0
            ),
            tf.gather(b, tf.image.non_max_suppression(b, s, 4)),
        ],
    )
    many = np.stack([boxes, boxes[::-1] * 1.2])[:, :, None]
    case(
        "suppression_combined",
        {
            "b": many.astype("float32"),
            "s": RANDOM.permutation(np.linspace(0.02, 0.98, 72)).astype("float32").reshape(2, 12, 3),
        },
        lambda b, s: [
            *tf.image.combined_non_max_suppression(b, s, 4, 9, 0.3, 0.4),
            *tf.image.combined_non_max_suppression(b, s, 2, 50, 0.5, 0.6, pad_per_class=True, clip_boxes=False),
        ],
    )
    images = normal(2, 6, 7, 3)
    some = np.float32([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.95], [-0.2, 0.3, 1.3, 0.6], [0.8, 0.9, 0.1, 0.2]])
    case(
        "crops",
        {"x": images, "b": some},
        lambda x, b: [
            tf.image.crop_and_resize(x, b, [0, 1, 1, 0], [4, 5]),
            tf.image.crop_and_resize(x, b, [0, 1, 1, 0], [1, 3], extrapolation_value=-2.0),
            tf.image.crop_and_resize(x, b, [1, 1, 0, 0], [5, 4], method="nearest"),
        ],
    )


def matrices_and_signals() -> None:
    x = normal(2, 4, 4)
    wide = normal(3, 5)
    case(
        "diagonals",
        {"x": x, "w": wide},
        lambda x, w: [
            tf.linalg.diag(w),
            tf.linalg.diag_part(x),
            tf.linalg.set_diag(x, normal(2, 4)),
            raw.MatrixDiag(diagonal=w),
            raw.MatrixDiagPart(input=w),
            raw.MatrixDiagPart(input=tf.transpose(w)),
            raw.MatrixSetDiag(input=x, diagonal=normal(2, 4)),
        ],
    )
    case(
        "bands",
        {"x": x, "w": wide},
        lambda x, w: [
            tf.linalg.band_part(x, -1, 0),
            tf.linalg.band_part(x, 0, -1),
            tf.linalg.band_part(w, 1, 2),
            tf.linalg.band_part(w, -1, -1),
        ],
    )
    case("determinant", {"x": x}, lambda x: tf.linalg.det(x))
    ids = np.int32([0, 0, 2, 2, 2, 3])
    data = normal(6, 3)
    case(
        "segments",
        {"x": data, "i": ids},
        lambda x, i: [
            tf.math.segment_sum(x, i),
            tf.math.segment_mean(x, i),
            tf.math.unsorted_segment_sum(x, tf.reverse(i, [0]), 5),
            tf.sparse.segment_sum(x, [5, 0, 1], [0, 1, 1]),
            tf.sparse.segment_mean(x, [5, 0, 1], [0, 1, 1], num_segments=4),
            tf.sparse.segment_sqrt_n(x, [5, 0, 1], [0, 1, 1]),
        ],
    )
    y = normal(3, 4)
    z = np.float32([[0, 1, -1, 0.5], [0, -0.5, 2, 0], [1, 0, 0, -3]])
    case(
        "rare_maths",
        {"x": np.abs(y) + 0.2, "z": z},
        lambda x, z: [
            tf.math.atan2(z, x - 0.9),
            tf.math.is_finite(x / z),
            tf.nn.l2_loss(x),
            tf.norm(x, axis=1),
            tf.math.xlogy(z, x),
            tf.math.xlog1py(z, x),
            tf.math.multiply_no_nan(x, z),
            raw.Bucketize(input=x, boundaries=[0.3, 0.9, 1.5]),
            tf.linalg.cross(x[:, :3], z[:, 1:]),
            raw.EuclideanNorm(input=x, axis=[0, 1], keep_dims=True),
            tf.math.erf(z),
            tf.math.erfc(z),
            tf.math.floormod(z, x),
            tf.math.mod(tf.cast(z * 3, tf.int32), 2),
        ],
    )
    case(
        "einsums",
        {"a": normal(2, 3, 4, 5), "b": normal(2, 6, 4, 5)},
        lambda a, b: [
            tf.einsum("btnh,bsnh->bnts", a, b),
            tf.einsum("abcd,cde->abe", a, normal(4, 5, 3)),
            tf.einsum("...hd,dk->...hk", a, normal(5, 2)),
        ],
    )
    signal = normal(2, 50)

    def spectrum(x):
        z = tf.signal.stft(x, 16, 8, 20)
        return [
            tf.abs(z),
            tf.math.real(z),
            tf.math.imag(z),
            tf.abs(tf.signal.rfft(x)),
            tf.math.log(tf.abs(z) ** 2 + 1e-3),
        ]

    case("spectrum", {"x": signal}, spectrum)


def branches_in_branches() -> None:
    def in_true(a, b, x):
        return tf.cond(a, lambda: tf.cond(b, lambda: x + 1.0, lambda: x * 2.0), lambda: x - 10.0)

    def in_false(a, b, x):
        return tf.cond(a, lambda: x - 10.0, lambda: tf.cond(b, lambda: x + 1.0, lambda: x * 2.0))

    def in_both(a, b, x):
        inner = [tf.constant([1.0, 2.0, 3.0]), tf.constant([4.0, 5.0, 6.0])]
        return tf.cond(
            a,
            lambda: tf.cond(b, lambda: tf.identity(inner[0]), lambda: tf.cond(a, lambda: x, lambda: -x)),
            lambda: tf.cond(b, lambda: x * x, lambda: tf.constant([7.0, 8.0, 9.0])) + 0.5,
        )

    def with_loop(a, b, x):
        def summed():
            return tf.while_loop(
                lambda i, y: i < 3, lambda i, y: (i + 1, tf.cond(b, lambda: y * 2, lambda: y + x)), (0, x)
            )[1]

        return tf.cond(a, summed, lambda: x - 10.0)

    for build in (in_true, in_false, in_both, with_loop):
        for a in (False, True):
            for b in (False, True):
                inputs = {"a": np.array(a), "b": np.array(b), "x": np.float32([0.5, -2, 3])}
                frozen(f"branches_{build.__name__}_{a:d}{b:d}", inputs, build, lowered=True)


def corners_of_operators() -> None:
    x = normal(5, 4)
    frozen("sizes_of_another_input", {"x": x, "y": x[:1]}, lambda x, y: tf.broadcast_to(y, tf.shape(x)), dynamic=True)
    case(
        "segments_left_out",
        {"x": np.where(np.arange(20).reshape(5, 4) == 5, np.nan, x), "i": np.int32([0, -1, 1, -1, 0])},
        lambda x, i: [tf.math.unsorted_segment_sum(x, i, 3), tf.math.unsorted_segment_sum(x[:, 0], i, 2)],
    )
    case(
        "remainders",
        {
            "x": np.float32([-7.5, 7.5, -6, 6, 0, -7.5, 1]),
            "y": np.float32([2, -2, 3, -3, -1, -2, -8]),
        },
        lambda x, y: tf.math.floormod(x, y),
    )
    case(
        "remainders_of_far_numbers",
        {"x": np.float32([1e8 + 8, 5, 3e7, -3e7]), "y": np.float32([3, np.inf, 0.7, 0.7])},
        lambda x, y: tf.math.floormod(x, y),
    )
    whole = np.int32([1, -2, 3])
    case(
        "sum_of_integers",
        {"a": whole, "b": whole, "c": whole},
        lambda a, b, c: [tf.add_n([a, b, c]), raw.AddN(inputs=[a])],
    )
    halves = np.float32([-129, -3.5, -2.5, -0.5, 0, 0.5, 1.5, 2.5, 127.5, 300])
    for low, high in ((1, 5), (-5, -1), (-2, 2), (0, 1e-3), (0, 255), (-128, 127)):
        steps = halves if high > 100 else np.float32([-3.1, -1.51, -0.43, -0.2, 0, 0.1, 0.52, 1.47, 2.53, 4.1, 6])
        for mode, rounding in (
            ("MIN_COMBINED", "HALF_AWAY_FROM_ZERO"),
            ("MIN_FIRST", "HALF_AWAY_FROM_ZERO"),
            ("SCALED", "HALF_AWAY_FROM_ZERO"),
            ("SCALED", "HALF_TO_EVEN"),
        ):
            for type in (tf.quint8, tf.qint8):
                case(
                    f"quantize_{low:g}_{high:g}_{mode}_{rounding}_{type.name}",
                    {"x": steps},
                    lambda x, low=low, high=high, mode=mode, rounding=rounding, type=type: [
                        tf.cast(result, tf.int32) if i == 0 else result
                        for i, result in enumerate(tf.quantization.quantize(x, low, high, type, mode, rounding))
                    ],
                )

    @tf.function
    def counts(x):
        return tf.unique_with_counts(x).count

    @tf.function
    def scores(boxes, scores):
        return tf.image.combined_non_max_suppression(boxes, scores, 3, 3).nmsed_scores

    case("function_output_count", {"x": np.int32([7, 7, 9, 7, 9])}, lambda x: counts(x))
    corner = np.abs(normal(1, 6, 1, 2))
    case(
        "function_output_scores",
        {"b": np.concatenate([corner, corner + 0.3], -1), "s": np.abs(normal(1, 6, 2))},
        lambda b, s: scores(b, s),
    )

    def transposed(x, kernel, padding, more):
        sizes = tf.shape(x)
        weights = tf.reshape(tf.range(kernel * kernel * 6, dtype=tf.float32), [kernel, kernel, 3, 2]) * 0.1
        result = [sizes[0], sizes[1] * 2 + more, sizes[2] * 2 + more, 3]
        return tf.nn.conv2d_transpose(tf.ensure_shape(x, [None, None, None, 2]), weights, result, 2, padding)

    case("transposed_open", {"x": normal(1, 4, 5, 2)}, lambda x: transposed(x, 3, "SAME", 0), dynamic=True)
    case("transposed_open_odd", {"x": normal(1, 4, 5, 2)}, lambda x: transposed(x, 3, "SAME", -1), dynamic=True)
    case("transposed_open_valid", {"x": normal(1, 4, 5, 2)}, lambda x: transposed(x, 3, "VALID", 1), dynamic=True)


def dynamic_sizes() -> None:
    """Sizes that a graph computes from the shapes of its dynamic tensors."""
    random = np.random.default_rng(48)

    def numbers(*shape):
        return random.normal(size=shape).astype("float32")

    def with_channels(x, channels):
        return tf.ensure_shape(x, [None, None, None, channels])

    def dilated(x, rate, weights, depthwise=False):
        """Computes a dilated convolution with SAME by blocks, as TensorFlow 1 exported it."""

        def convolved(blocks, *_):
            if depthwise:
                return raw.DepthwiseConv2dNative(input=blocks, filter=weights, strides=[1] * 4, padding="VALID")
            return raw.Conv2D(input=blocks, filter=weights, strides=[1] * 4, padding="VALID")

        return v1.nn.with_space_to_batch(x, rate, "SAME", convolved, filter_shape=weights.shape[:2])

    square = numbers(3, 3, 2, 3)
    deep = numbers(3, 3, 2, 1)
    for height, width in ((7, 5), (8, 6), (6, 9)):
        case(
            f"dilated_open_{height}{width}",
            {"x": numbers(2, height, width, 2)},
            lambda x: [
                dilated(with_channels(x, 2), [2, 2], square),
                dilated(with_channels(x, 2), [2, 3], square),
                dilated(with_channels(x, 2), [3, 3], deep, True),
            ],
            dynamic=True,
        )

    def after_strides(x):
        x = with_channels(x, 2)
        for _ in range(4):
            x = tf.nn.max_pool2d(x, 3, 2, "SAME")
        return dilated(x, [2, 4], square)

    case("dilated_open_after_strides", {"x": numbers(1, 37, 53, 2)}, after_strides, dynamic=True)

    def blocks(x):
        x = with_channels(x, 2)
        shape = tf.shape(x)
        end = tf.math.floormod(-shape[1:3], 2)
        pads = tf.stack([tf.zeros_like(end), end], 1)
        y = tf.nn.relu(raw.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=pads))
        return [y, raw.BatchToSpaceND(input=y + 1, block_shape=[2, 2], crops=pads)]

    case("blocks_open", {"x": numbers(1, 5, 6, 2)}, blocks, dynamic=True)

    def back_to_skip(x, kernel, stride, padding):
        x = with_channels(x, 2)
        weights = tf.reshape(tf.range(kernel * kernel * 6, dtype=tf.float32), [kernel, kernel, 3, 2]) * 0.1 - 1
        y = tf.nn.avg_pool2d(x, kernel, stride, padding)
        shape = tf.shape(x)
        size = tf.concat([shape[:3], [3]], 0)
        return tf.concat([x, tf.nn.conv2d_transpose(y, weights, size, stride, padding)], 3)

    for padding, kernel, stride in (
        ("SAME", 3, 2),
        ("SAME", 2, 2),
        ("SAME", 4, 2),
        ("SAME", 1, 2),
        ("SAME", 3, 3),
        ("VALID", 3, 2),
        ("VALID", 2, 3),
    ):
        for height, width in ((7, 6), (9, 8)):
            case(
                f"transposed_to_skip_{padding}_{kernel}_{stride}_{height}{width}",
                {"x": numbers(1, height, width, 2)},
                lambda x, k=kernel, s=stride, p=padding: back_to_skip(x, k, s, p),
                dynamic=True,
            )
    weights = numbers(3, 3, 2, 2)
    case(
        "transposed_to_other_input",
        {"x": numbers(1, 4, 3, 2), "skip": numbers(1, 7, 6, 2)},
        lambda x, skip: skip + tf.nn.conv2d_transpose(with_channels(x, 2), weights, tf.shape(skip), 2, "SAME"),
        dynamic=True,
    )
    case(
        "shape_in_parts",
        {"x": numbers(2, 3, 4)},
        lambda x: tf.reshape(x, [tf.unstack(tf.shape(tf.ensure_shape(x, [None, None, 4])))[0], -1]),
        dynamic=True,
    )


def cells() -> None:
    random = np.random.default_rng(49)

    def numbers(*shape):
        return (random.normal(size=shape) * 0.5).astype("float32")

    batch, inputs, units, steps = 2, 3, 4, 5
    names = ("i", "cs", "f", "o", "ci", "co", "h")
    weights = {
        "w": numbers(inputs + units, 4 * units),
        "wci": numbers(units),
        "wcf": numbers(units),
        "wco": numbers(units),
        "b": numbers(4 * units),
    }
    state = {"cs": numbers(batch, units) * 2, "h": numbers(batch, units)}
    x = numbers(batch, inputs)
    sequence = numbers(steps, batch, inputs)
    for name, attributes in (
        ("plain", {"cell_clip": -1.0}),
        ("clipped", {"cell_clip": 0.3, "forget_bias": 0.0}),
        ("peephole", {"use_peephole": True, "cell_clip": 0.0, "forget_bias": 0.5}),
    ):
        case(
            f"lstm_block_cell_{name}",
            {"x": x, **state},
            lambda x, cs, h, a=attributes: list(
                raw.LSTMBlockCell(x=x, cs_prev=cs, h_prev=h, **weights, **a)._asdict().values()
            ),
        )

    def layer(x, cs, h, attributes, is_new, length=None):
        length = tf.cast(tf.shape(x)[0], tf.int64) if length is None else tf.constant(length, tf.int64)
        kind = raw.BlockLSTMV2 if is_new else raw.BlockLSTM
        return kind(seq_len_max=length, x=x, cs_prev=cs, h_prev=h, **weights, **attributes)._asdict()

    for name, attributes, is_new, length in (
        ("plain", {"cell_clip": -1.0}, False, None),
        ("peephole", {"cell_clip": 0.0, "use_peephole": True, "forget_bias": 0.0}, False, None),
        ("new", {"cell_clip": 0.0, "use_peephole": True}, True, None),
        ("short", {"cell_clip": 0.0}, True, 3),
        ("clipped", {"cell_clip": 0.3}, False, None),
        ("clipped_short", {"cell_clip": 0.3}, False, 3),
    ):

        def outputs(x, cs, h, a=attributes, n=is_new, length=length):
            return layer(x, cs, h, a, n, length)["h"]

        def outputs_and_last(x, cs, h, a=attributes, n=is_new, length=length):
            parts = layer(x, cs, h, a, n, length)
            return [parts["h"], parts["cs"][-1], parts["cs"][-1, :, 1:]]

        def all_parts(x, cs, h, a=attributes, n=is_new, length=length):
            parts = layer(x, cs, h, a, n, length)
            # TensorFlow sets only the states and the outputs after the sequences; the gates are uninitialized there.
            return [parts[part] for part in (names if length is None else ("cs", "h"))]

        for kind, build in (("h", outputs), ("last", outputs_and_last), ("all", all_parts)):
            case(f"block_lstm_{name}_{kind}", {"x": sequence, **state}, build)
    case(
        "block_lstm_open",
        {"x": sequence, **state},
        lambda x, cs, h: [
            result
            for attributes in ({"cell_clip": 0.0}, {"cell_clip": 0.3})
            for result in layer(
                tf.ensure_shape(x, [None, None, inputs]),
                tf.ensure_shape(cs, [None, units]),
                tf.ensure_shape(h, [None, units]),
                attributes,
                False,
            ).values()
        ],
        dynamic=True,
    )
    case(
        "gru_block_cell",
        {"x": x, "h": state["h"]},
        lambda x, h: list(
            raw.GRUBlockCell(
                x=x,
                h_prev=h,
                w_ru=weights["w"][:, : 2 * units],
                w_c=weights["w"][:, 2 * units : 3 * units],
                b_ru=weights["b"][: 2 * units],
                b_c=weights["wci"],
            )
            ._asdict()
            .values()
        ),
    )


def resampling() -> None:
    random = np.random.default_rng(50)
    x = random.normal(size=(2, 6, 9, 3)).astype("float32")
    for height, width in ((3, 3), (4, 5), (6, 1), (9, 12)):
        case(
            f"resize_area_{height}_{width}",
            {"x": x},
            lambda x, size=(height, width): [
                raw.ResizeArea(images=x, size=size),
                raw.ResizeArea(images=x, size=size, align_corners=True),
            ],
        )
    case(
        "resize_area_open",
        {"x": (x * 40).astype("int32"), "size": np.int32([4, 14])},
        lambda x, size: raw.ResizeArea(images=tf.ensure_shape(x, [None, None, None, 3]), size=size),
        dynamic=True,
    )
    kernels = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
    for kernel in kernels:
        case(
            f"scale_and_translate_{kernel}",
            {"x": x},
            lambda x, kernel=kernel: [
                raw.ScaleAndTranslate(
                    images=x, size=size, scale=scale, translation=shift, kernel_type=kernel, antialias=antialias
                )
                for size, scale, shift in (
                    ((4, 5), (4 / 6, 5 / 9), (0.0, 0.0)),
                    ((7, 20), (1.5, 2.0), (-1.25, 3.0)),
                )
                for antialias in (True, False)
            ],
        )
    case(
        "resize_antialias",
        {"x": x},
        lambda x: [tf.image.resize(x, (4, 4), method, antialias=True) for method in ("bilinear", "lanczos3", "area")],
    )
    case(
        "resize_antialias_open",
        {"x": x},
        lambda x: tf.image.resize(tf.ensure_shape(x, [None, None, None, 3]), (4, 11), antialias=True),
        dynamic=True,
    )


def products_and_segments() -> None:
    random = np.random.default_rng(51)
    x = random.normal(size=(2, 5, 3)).astype("float32")
    whole = random.integers(-3, 4, size=(2, 5, 3)).astype("int32")
    flags = [(exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]

    def products(x):
        return [tf.math.cumprod(x, axis, e, r) for axis in (1, -1) for e, r in flags]

    case("cumprod", {"x": x}, products)
    case("cumprod_of_integers", {"x": whole}, products)
    case("cumprod_open", {"x": x}, products, dynamic=True)
    case("cumprod_of_one", {"x": x[:, :1]}, lambda x: [tf.math.cumprod(x, 1), tf.math.cumprod(x, 1, True)])
    rows = random.normal(size=(6, 3)).astype("float32")
    numbers = np.int32([0, 0, 2, 2, 2, 4])
    for kind in ("max", "min", "prod"):
        reduce = getattr(tf.math, f"segment_{kind}")
        reduce_unsorted = getattr(tf.math, f"unsorted_segment_{kind}")

        def sorted_segments(x, i, reduce=reduce):
            return [reduce(x, i), reduce(x[:, 0], i), reduce(tf.cast(x * 9, tf.int32), i)]

        def unsorted_segments(x, i, reduce=reduce_unsorted):
            return [
                reduce(x, i - 1, 4),
                reduce(x[:, 0], i, 5),
                reduce(tf.reshape(x, [2, 3, 3]), tf.reshape(i, [2, 3]), 6),
                reduce(x, tf.stack([i, i - 2, i], 1), 5),
                reduce(tf.cast(x * 9, tf.int32), i, 5),
                reduce(tf.cast(x * 9, tf.int64), i, 5),
            ]

        case(f"segment_{kind}", {"x": rows, "i": numbers}, sorted_segments)
        case(f"segment_{kind}_constant", {"x": rows}, lambda x, r=sorted_segments: r(x, numbers))
        case(f"unsorted_segment_{kind}", {"x": rows, "i": numbers[[3, 5, 0, 2, 4, 1]]}, unsorted_segments)
        case(
            f"unsorted_segment_{kind}_open",
            {"x": rows, "i": numbers},
            lambda x, i, reduce=reduce_unsorted: reduce(x, i, 5),
            dynamic=True,
        )


FILES = {
    "cases.npz": (
        convolutions,
        pools_and_norms,
        resizing,
        activations,
        elementwise,
        reductions_and_products,
        arrays,
        functions_and_flow,
        loops_and_branches,
        traps,
        fused_by_grappler,
        quantized,
        indices_and_boxes,
        matrices_and_signals,
    ),
    "corner_cases.npz": (branches_in_branches, corners_of_operators),
    "cell_cases.npz": (dynamic_sizes, cells, resampling, products_and_segments),
}


def main() -> int:
    for name in sys.argv[2:] or FILES:
        ARRAYS.clear()
        for part in FILES[name]:
            part()
        np.savez_compressed(os.path.join(sys.argv[1], name), **ARRAYS)
        cases = {key.split("/")[0] for key in ARRAYS}
        print(f"{name}: {len(cases)} cases by TensorFlow {tf.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
