# Models of one node that TensorRT refuses and Graft lowers, with seeded attributes and sizes; and similar models that
# must not be lowered.
from collections import namedtuple

import numpy as np
from onnx import TensorProto, helper, numpy_helper

# feeds: inputs by name. limit: maximum difference relative to the largest number of the result.
Sample = namedtuple("Sample", "model feeds limit")

F32 = 2.0**-23
TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.bool_): TensorProto.BOOL,
}


def sample(op, arguments, outputs, limit=0.0, opset=20, domain="", **attributes):
    """Returns a sample. `arguments`: an array is an input, ("constant", array) an initializer, ("open", array) an
    input with a dynamic first size, ("long", array) one whose next-to-last size is dynamic too, None an absent one.
    `outputs`: the type of each output, None for an absent one."""
    names, inputs, constants, feeds = [], [], [], {}
    for i, argument in enumerate(arguments):
        name = "" if argument is None else f"in{i}"
        names.append(name)
        if argument is None:
            continue
        kind, array = argument if isinstance(argument, tuple) else ("input", argument)
        if kind == "constant":
            constants.append(numpy_helper.from_array(np.array(array, order="C"), name))
            continue
        shape = list(array.shape)
        if kind in ("open", "long"):
            shape[0] = "N"
        if kind == "long":
            shape[-2] = f"length{shape[-2]}"
        inputs.append(helper.make_tensor_value_info(name, TYPES[array.dtype], shape))
        feeds[name] = array
    results = ["" if kind is None else f"out{i}" for i, kind in enumerate(outputs)]
    node = helper.make_node(op, names, results, name="node", domain=domain, **attributes)
    ends = [helper.make_tensor_value_info(n, k, None) for n, k in zip(results, outputs, strict=True) if n]
    graph = helper.make_graph([node], "lowered", inputs, ends, constants)
    imports = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return Sample(helper.make_model(graph, opset_imports=imports, ir_version=10), feeds, limit)


def constant(values, dtype=np.int64):
    return ("constant", np.array(values, dtype))


def real(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


FLOAT, INT64, INT32, UINT8, INT8, BOOL, FLOAT16 = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.INT32,
    TensorProto.UINT8,
    TensorProto.INT8,
    TensorProto.BOOL,
    TensorProto.FLOAT16,
)


def top_k(rng):
    count = int(rng.integers(3841, 9000))
    shape = [count + int(rng.integers(0, 500)), 2]
    axis = 0
    if rng.integers(2):
        shape, axis = [2, *shape[:1]], pick(rng, 1, -1)
    x = real(rng, *shape)
    # distinct values, many equal ones, infinite ones
    x = pick(rng, x, np.round(x * 4), np.where(x < -1, np.float32(-np.inf), x))
    return sample("TopK", [x, constant([count])], [FLOAT, INT64], axis=axis, largest=int(rng.integers(2)))


def dft(rng):
    length = int(rng.integers(2, 65))
    inverse = int(rng.integers(2))
    onesided = 0 if inverse else int(rng.integers(2))
    x = real(rng, *pick(rng, [2], [2, 3]), length, 2 if inverse or (not onesided and rng.integers(2)) else 1)
    axis = pick(rng, x.ndim - 2, 1)
    asked = pick(rng, None, constant(x.shape[axis], np.int64), constant(x.shape[axis] - 1), constant(x.shape[axis] + 3))
    size = x.shape[axis] + 3
    given = [pick(rng, ("open", x), x), asked, constant(axis)]
    return sample("DFT", given, [FLOAT], limit=4 * size * F32, inverse=inverse, onesided=onesided)


def col2im(rng):
    axes = pick(rng, 1, 2, 2)
    kernel = rng.integers(1, 4, axes)
    stride = rng.integers(1, 4, axes)
    dilation = rng.integers(1, 3, axes)
    pads = rng.integers(0, 2, 2 * axes)
    if rng.integers(3) == 0:  # tiles
        stride, dilation, pads = kernel, np.ones(axes, int), np.zeros(2 * axes, int)
    extent = dilation * (kernel - 1) + 1
    image = extent + rng.integers(3, 9, axes)
    if np.array_equal(stride, kernel):
        image = kernel * rng.integers(2, 5, axes)
    blocks = (image + pads[:axes] + pads[axes:] - extent) // stride + 1
    x = real(rng, 2, 3 * int(np.prod(kernel)), int(np.prod(blocks)))
    return sample(
        "Col2Im",
        [("open", x), constant(image), constant(kernel)],
        [FLOAT],
        limit=int(np.prod(kernel)) * F32,
        strides=stride.tolist(),
        dilations=dilation.tolist(),
        pads=pads.tolist(),
    )


def windows(rng, axes, dilated):
    kernel = rng.integers(2, 4, axes)
    return {
        "kernel_shape": kernel.tolist(),
        "strides": rng.integers(1, 4, axes).tolist(),
        "pads": np.minimum(rng.integers(0, 2, 2 * axes), np.tile(kernel - 1, 2)).tolist(),
        **({"dilations": rng.integers(2, 4, axes).tolist()} if dilated else {}),
    }


def dilated_max_pool(rng):
    axes = pick(rng, 1, 2, 3)
    x = real(rng, 2, 3, *rng.integers(8, 12, axes))
    return sample("MaxPool", [("open", x)], [FLOAT], **windows(rng, axes, True))


def dilated_average_pool(rng):
    axes = pick(rng, 1, 2)
    x = real(rng, 2, 3, *rng.integers(8, 12, axes))
    counts = {"count_include_pad": int(rng.integers(2))}
    return sample("AveragePool", [("open", x)], [FLOAT], limit=16 * F32, **counts, **windows(rng, axes, True))


def pool_that_rounds_up(rng):
    """Returns a pool whose last windows begin inside and end beyond the padding."""
    op, counts = pick(rng, ("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1}))
    sizes = rng.integers(8, 12, 2)
    pads = {"kernel_shape": [3, 3], "dilations": [2, 1], "strides": [2, 3], "pads": rng.integers(0, 2, 4).tolist()}
    return sample(op, [("open", real(rng, 2, 3, *sizes))], [FLOAT], limit=16 * F32, ceil_mode=1, **pads, **counts)


def dilated_lp_pool(rng):
    x = real(rng, 2, 3, *rng.integers(8, 12, 2))
    p = int(pick(rng, 1, 2, 3, 4, 7))
    return sample("LpPool", [("open", x)], [FLOAT], limit=32 * F32, p=p, **windows(rng, 2, True))


def lp_pool_of_high_powers(rng):
    axes = pick(rng, 1, 2, 3)
    x = real(rng, 2, 3, *rng.integers(8, 12, axes))
    p = int(pick(rng, 3, 4, 7))
    return sample("LpPool", [("open", x)], [FLOAT], limit=32 * F32, p=p, **windows(rng, axes, False))


def lp_pool_with_wide_padding(rng):
    """Returns a pool that has windows in the padding alone."""
    x = real(rng, 2, 3, *rng.integers(8, 12, 2))
    attributes = {**windows(rng, 2, False), "pads": [int(size) for size in rng.integers(2, 5, 4)]}
    return sample("LpPool", [("open", x)], [FLOAT], limit=32 * F32, p=int(pick(rng, 3, 4)), **attributes)


def max_pool_indices(rng):
    axes = pick(rng, 1, 2, 3)
    x = np.round(real(rng, 2, 3, *rng.integers(8, 12, axes)) * pick(rng, 1, 100))
    return sample("MaxPool", [("open", x)], [FLOAT, INT64], **windows(rng, axes, bool(rng.integers(2))))


def max_unpool(rng):
    pooled = rng.integers(2, 5, 2)
    kernel = rng.integers(2, 4, 2)
    height, width = (pooled * kernel).tolist()
    n, c = 2, 3
    image = np.arange(n * c * height * width).reshape(n, c, height, width)
    indices = np.zeros((n, c, *pooled), np.int64)
    for at in np.ndindex(*indices.shape):
        i, j = rng.integers(kernel)
        indices[at] = image[at[0], at[1], at[2] * kernel[0] + i, at[3] * kernel[1] + j]
    x = real(rng, *indices.shape)
    attributes = {"kernel_shape": kernel.tolist(), "strides": kernel.tolist()}
    return sample("MaxUnpool", [("open", x), ("open", indices)], [FLOAT], **attributes)


def deform_conv(rng):
    groups, offset_groups = int(pick(rng, 1, 2)), int(pick(rng, 1, 2))
    kernel = rng.integers(1, 4, 2)
    stride, dilation, pads = rng.integers(1, 3, 2), rng.integers(1, 3, 2), rng.integers(0, 3, 4)
    size = rng.integers(8, 12, 2)
    out = (size + pads[:2] + pads[2:] - dilation * (kernel - 1) - 1) // stride + 1
    places = int(np.prod(kernel))
    x = real(rng, 2, 4, *size)
    w = real(rng, 6, 4 // groups, *kernel)
    offset = real(rng, 2, 2 * offset_groups * places, *out) * 3
    bias = pick(rng, None, ("constant", real(rng, 6)))
    mask = pick(rng, None, real(rng, 2, offset_groups * places, *out))
    arguments = [x, pick(rng, w, ("constant", w)), offset, bias, mask]
    while arguments[-1] is None:
        arguments.pop()
    # The coordinates of a sample have the rounding error of the grid: 8 steps of 12 pixels.
    return sample(
        "DeformConv",
        arguments,
        [FLOAT],
        limit=4 * places * 12 * 8 * F32,
        group=groups,
        offset_group=offset_groups,
        kernel_shape=kernel.tolist(),
        strides=stride.tolist(),
        dilations=dilation.tolist(),
        pads=pads.tolist(),
    )


def resize(rng):
    mode = pick(rng, "linear", "cubic")
    x = real(rng, 2, 3, *rng.integers(5, 20, 2))
    coordinates = pick(rng, "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
    # Where no axis shrinks, another rewrite removes antialias.
    sizes = [int(rng.integers(2, x.shape[2])), int(rng.integers(3, 20))]
    given = [("open", x), None, None, constant(sizes)]
    if rng.integers(2):
        scales = constant([1, 1, *(np.array(sizes) / x.shape[2:])], np.float32)
        attributes, given = {}, [("open", x), None, scales]
    else:
        attributes = {"axes": [2, 3]}
    return sample(
        "Resize",
        given,
        [FLOAT],
        limit=64 * F32,
        mode=mode,
        antialias=1,
        coordinate_transformation_mode=coordinates,
        **attributes,
    )


def crop_and_resize(rng):
    x = real(rng, 1, 2, *rng.integers(9, 14, 2))
    begin, end = rng.uniform(-0.2, 0.5, 2), rng.uniform(0.6, 1.2, 2)
    roi = constant([0, 0, *begin, 1, 1, *end], np.float32)
    sizes = constant([1, 2, *rng.integers(3, 9, 2)])
    return sample(
        "Resize",
        [x, roi, None, sizes],
        [FLOAT],
        limit=64 * F32,
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=float(np.float32(rng.uniform(-5, 5))),
    )


def attention(rng):
    heads, shared = pick(rng, (4, 4), (4, 2), (3, 1))
    queries, keys, size = (int(n) for n in rng.integers(2, 9, 3))
    past = int(pick(rng, 0, 0, 3))
    q, k, v = real(rng, 2, heads, queries, size), real(rng, 2, shared, keys, size), real(rng, 2, shared, keys, size + 1)
    is_causal = int(rng.integers(2))
    mask = pick(
        rng,
        None,
        real(rng, queries, keys + past),
        rng.integers(0, 2, (2, 1, queries, keys + past)).astype(bool) | (np.arange(keys + past) == 0),
    )
    attributes = {"is_causal": is_causal}
    if rng.integers(2):
        attributes["scale"] = float(np.float32(rng.uniform(0.1, 1)))
    if rng.integers(3) == 0:
        attributes["softcap"] = 2.0
    arguments, outputs = [q, k, v, mask], [FLOAT]
    if past:
        arguments += [real(rng, 2, shared, past, size), real(rng, 2, shared, past, size + 1)]
        outputs += [FLOAT, FLOAT]
    elif rng.integers(2):
        arguments = [a.transpose(0, 2, 1, 3).reshape(2, a.shape[2], -1) for a in (q, k, v)] + [mask]
        attributes |= {"q_num_heads": heads, "kv_num_heads": shared}
    while arguments[-1] is None:
        arguments.pop()
    return sample("Attention", arguments, outputs, limit=64 * F32, opset=23, **attributes)


def attention_of_padded_keys(rng):
    """Returns an Attention whose masks depend on the number of valid keys in each sample of the batch."""
    heads, shared = pick(rng, (4, 4), (4, 2))
    queries, size = int(rng.integers(2, 6)), int(rng.integers(2, 9))
    keys = queries + int(rng.integers(2, 6))
    dtype, limit = pick(rng, (np.float32, 64 * F32), (np.float16, 2.0**-8))
    kind = pick(rng, "long", "open")
    q, k, v = (real(rng, 2, *shape, size).astype(dtype) for shape in ((heads, queries), (shared, keys), (shared, keys)))
    valid = rng.integers(1, keys + 1, 2)
    mask = pick(
        rng, None, real(rng, heads, queries, keys).astype(dtype), rng.integers(0, 2, (queries, keys)).astype(bool)
    )
    arguments = [(kind, q), (kind, k), (kind, v), mask, None, None, pick(rng, valid, constant(valid))]
    attributes = {"is_causal": int(rng.integers(2)), "softcap": float(pick(rng, 0, 2))}
    opset = pick(rng, 24, 25)
    if opset == 25:
        attributes |= {"left_window_size": int(rng.integers(-1, 3)), "right_window_size": int(rng.integers(-1, 2))}
    return sample("Attention", arguments, [TYPES[q.dtype]], limit=limit, opset=opset, **attributes)


def attention_to_a_window(rng):
    """Returns an Attention to a window of keys, without padding, with dynamic lengths."""
    heads, size = int(pick(rng, 1, 3)), int(rng.integers(2, 9))
    queries, keys, past = (int(n) for n in rng.integers(2, 7, 3))
    q, k, v = real(rng, 2, heads, queries, size), real(rng, 2, heads, keys, size), real(rng, 2, heads, keys, size + 2)
    windows = {"left_window_size": int(rng.integers(0, 4)), "right_window_size": int(rng.integers(-1, 3))}
    arguments, outputs = [("long", q), ("long", k), ("long", v), None], [FLOAT]
    if rng.integers(2):
        arguments += [("long", real(rng, 2, heads, past, size)), ("long", real(rng, 2, heads, past, size + 2))]
        outputs += [FLOAT, FLOAT]
    while arguments[-1] is None:
        arguments.pop()
    windows["is_causal"] = int(rng.integers(2))
    return sample("Attention", arguments, outputs, limit=64 * F32, opset=25, **windows)


def attention_with_scores(rng):
    """Returns an Attention with its scores as an output, and a mask that may be shorter than the keys."""
    queries, keys, size = int(rng.integers(2, 6)), int(rng.integers(3, 7)), int(rng.integers(2, 9))
    q, k, v = real(rng, 2, 3, queries, size), real(rng, 2, 3, keys, size), real(rng, 2, 3, keys, size)
    mode = int(rng.integers(4))
    # Scores of -inf, which a longer mask avoids, are the lowest number in ONNX Runtime.
    width = keys if mode == 2 else keys - int(rng.integers(2))
    mask = real(rng, queries, width)
    kind = pick(rng, "long", "open")
    arguments = [("open", q), (kind, k), (kind, v), mask]
    attributes = {"qk_matmul_output_mode": mode, "softmax_precision": int(pick(rng, FLOAT, TensorProto.DOUBLE))}
    # ONNX Runtime refuses a short mask, and the reference implementation returns capped scores in mode 0.
    if mode > 0 or width == keys:
        attributes["softcap"] = float(pick(rng, 0, 2))
    return sample("Attention", arguments, [FLOAT, None, None, FLOAT], limit=64 * F32, opset=24, **attributes)


def linear_attention(rng):
    """Returns a LinearAttention whose sequence is short, or dynamic, or too long for copies of the steps."""
    heads, groups = int(pick(rng, 1, 2)), int(pick(rng, 1, 2))
    k_size, v_size = (int(n) for n in rng.integers(2, 6, 2))
    kind, length = pick(rng, ("open", 1), ("open", 5), ("open", 200), ("long", 5))
    rule = pick(rng, "linear", "gated", "delta", "gated_delta")
    dtype, limit = pick(rng, (np.float32, 2.0**-18), (np.float16, 2.0**-9))

    def made(*shape, scale=1.0):
        return (kind, (real(rng, 2, length, *shape) * scale).astype(dtype))

    key = real(rng, 2, length, heads, k_size)
    key = (key / np.linalg.norm(key, axis=-1, keepdims=True)).reshape(2, length, -1).astype(dtype)
    state = ("open", real(rng, 2, heads, k_size, v_size).astype(pick(rng, dtype, np.float32)))
    state = pick(rng, None, state)
    decay = beta = None
    if "gated" in rule:
        decay = (kind, -abs(made(pick(rng, heads, heads * k_size))[1]))
    if "delta" in rule:
        beta = (kind, rng.uniform(0, 1, (2, length, pick(rng, heads, 1))).astype(dtype))
    arguments = [made(heads * groups * k_size), (kind, key), made(heads * v_size, scale=0.1), state, decay, beta]
    attributes = {"q_num_heads": heads * groups, "kv_num_heads": heads, "update_rule": rule}
    if rng.integers(2):
        attributes["scale"] = float(np.float32(rng.uniform(0.1, 1)))
    while arguments[-1] is None:
        arguments.pop()
    outputs = [TYPES[np.dtype(dtype)], TYPES[(key if state is None else state[1]).dtype]]
    return sample("LinearAttention", arguments, outputs, limit=limit, opset=27, **attributes)


def modifier(rng, name, kind, factor):
    """Returns a graph for FlexAttention."""
    end = helper.make_tensor_value_info("modified", kind, ["b", "h", "l", "s"])
    nodes = [helper.make_node("Mul", ["given", "factor"], ["scaled"])]
    nodes += [helper.make_node("Tanh", ["scaled"], ["bent"])] * int(rng.integers(2))
    nodes.append(helper.make_node(pick(rng, "Relu", "Identity"), [nodes[-1].output[0]], ["modified"]))
    start = helper.make_tensor_value_info("given", kind, ["b", "h", "l", "s"])
    factor = factor.astype(helper.tensor_dtype_to_np_dtype(kind))
    return helper.make_graph(nodes, name, [start], [end], [numpy_helper.from_array(factor, "factor")])


def flex_attention(rng):
    heads, shared = pick(rng, (4, 4), (4, 2), (3, 1))
    queries, keys, size, width = (int(n) for n in rng.integers(2, 9, 4))
    dtype, limit = pick(rng, (np.float32, 64 * F32), (np.float16, 2.0**-8))
    q, k, v = (real(rng, 2, *shape).astype(dtype) for shape in (
        (heads, queries, size), (shared, keys, size), (shared, keys, width)))  # fmt: skip
    kind = pick(rng, "open", "long")
    attributes, precise = {}, FLOAT
    if rng.integers(2):
        attributes["scale"] = float(np.float32(rng.uniform(0.1, 1)))
    if rng.integers(3) == 0:
        precise = attributes["softmax_precision"] = int(pick(rng, FLOAT, TYPES[np.dtype(dtype)]))
    factor = (np.arange(heads, dtype=np.float32) + 1).reshape(heads, 1, 1) / heads
    for name in ("score_mod", "prob_mod"):
        if rng.integers(3):
            attributes[name] = modifier(rng, name, precise, factor)
    return sample("FlexAttention", [(kind, q), (kind, k), (kind, v)], [TYPES[q.dtype]], limit=limit, opset=26,
                  domain="ai.onnx.preview", **attributes)  # fmt: skip


def layer_normalization(rng):
    shape = rng.integers(3, 8, 3)
    axis = int(rng.integers(-2, 3))
    x = real(rng, *shape)
    scale = real(rng, *shape[axis:])
    bias = pick(rng, None, ("constant", real(rng, *shape[axis:])))
    arguments = [x, ("constant", scale)] + ([] if bias is None else [bias])
    return sample("LayerNormalization", arguments, [FLOAT, FLOAT, FLOAT], limit=512 * F32, axis=axis)


def scatter_nd(rng):
    data = real(rng, 5, 4, 3)
    depth = int(rng.integers(1, 4))
    count = int(rng.integers(2, 9))
    indices = np.stack([rng.integers(-data.shape[axis], data.shape[axis], count) for axis in range(depth)], -1)
    updates = real(rng, count, *data.shape[depth:])
    reduction = pick(rng, "add", "mul", "max", "min")
    return sample("ScatterND", [data, constant(indices), updates], [FLOAT], limit=16 * F32, reduction=reduction)


def scatter_elements(rng):
    data = real(rng, 5, 4)
    axis = int(rng.integers(-2, 2))
    shape = (int(rng.integers(1, 6)), int(rng.integers(1, 5)))
    indices = rng.integers(-data.shape[axis], data.shape[axis], shape)
    reduction = pick(rng, "add", "mul", "max", "min")
    arguments = [data, constant(indices), real(rng, *shape)]
    return sample("ScatterElements", arguments, [FLOAT], limit=16 * F32, axis=axis, reduction=reduction)


def scatter_nd_of_an_input(rng):
    """Returns a ScatterND with computed indices: some negative, some equal, some of several axes."""
    data = real(rng, 5, 4, 3)
    depth = int(rng.integers(1, 4))
    shape = pick(rng, (7,), (40,), (3, 4))
    indices = np.stack([rng.integers(-data.shape[axis], data.shape[axis], shape) for axis in range(depth)], -1)
    updates = real(rng, *shape, *data.shape[depth:])
    reduction = pick(rng, "add", "mul", "max", "min")
    return sample("ScatterND", [data, indices, updates], [FLOAT], limit=64 * F32, reduction=reduction)


def scatter_to_one_place(rng):
    """Returns a scatter with more equal constant indices than the lowering repeats."""
    count = int(rng.integers(17, 40))
    if rng.integers(2):
        arguments = [real(rng, 4, 2), constant(np.zeros((count, 1))), real(rng, count, 2)]
        return sample("ScatterND", arguments, [FLOAT], limit=64 * F32, reduction=pick(rng, "add", "max"))
    arguments = [real(rng, 4), constant(np.zeros(count)), real(rng, count)]
    return sample("ScatterElements", arguments, [FLOAT], limit=64 * F32, reduction=pick(rng, "add", "min"))


def scatter_elements_of_an_input(rng):
    data = real(rng, 5, 4, 3)
    axis = int(rng.integers(-3, 3))
    shape = [int(rng.integers(1, size + 1)) for size in data.shape]
    shape[axis] = int(rng.integers(1, 12))
    indices = rng.integers(-data.shape[axis], data.shape[axis], shape).astype(pick(rng, np.int32, np.int64))
    reduction = pick(rng, "add", "mul", "max", "min")
    arguments = [data, indices, real(rng, *shape)]
    return sample("ScatterElements", arguments, [FLOAT], limit=16 * F32, axis=axis, reduction=reduction)


def scatter_more_than_fit(rng):
    """Returns equal indices, so that an update is overwritten: the reference runtimes keep the last."""
    data = pick(rng, real(rng, 5, 4, 3), rng.integers(-9, 9, (5, 4, 3)))
    axis = int(rng.integers(-3, 3))
    shape = list(data.shape)
    shape[axis] += int(rng.integers(1, 5))
    indices = rng.integers(-data.shape[axis], data.shape[axis], shape)
    updates = real(rng, *shape) if data.dtype == np.float32 else rng.integers(-9, 9, shape)
    return sample("ScatterElements", [data, indices, updates], [TYPES[data.dtype]], axis=axis)


def bytes_of(rng, dtype, *shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def matmul_integer(rng):
    inner = int(pick(rng, 3, 64, 700))
    a_type, b_type = pick(rng, np.uint8, np.int8), pick(rng, np.uint8, np.int8)
    a, b = bytes_of(rng, a_type, 2, 4, inner), bytes_of(rng, b_type, inner, 5)
    zeros = [constant(bytes_of(rng, a_type), a_type), constant(bytes_of(rng, b_type), b_type)]
    return sample("MatMulInteger", [a, ("constant", b), *zeros], [INT32])


def conv_integer(rng):
    x, w = bytes_of(rng, np.uint8, 2, 4, 8, 9), bytes_of(rng, np.uint8, 6, 4 // 2, 3, 2)
    zeros = [constant(bytes_of(rng, np.uint8), np.uint8), constant(bytes_of(rng, np.uint8), np.uint8)]
    pads = rng.integers(0, 2, 4).tolist()
    arguments = [x, ("constant", w), *zeros]
    return sample("ConvInteger", arguments, [INT32], group=2, pads=pads, strides=rng.integers(1, 3, 2).tolist())


def scale_of(rng, *shape):
    return ("constant", rng.uniform(0.01, 0.1, shape).astype(np.float32))


def qlinear_conv(rng):
    w_type = pick(rng, np.uint8, np.int8)
    x, w = bytes_of(rng, np.uint8, 2, 4, 8, 9), bytes_of(rng, w_type, 6, 4, 3, 2)
    # ONNX Runtime adds two products of u8 and i8 in 16 bits, which saturates unless the weights have 7 bits.
    w = w // 2 if w_type == np.int8 else w
    per_channel = w_type == np.int8 and rng.integers(2)
    w_zero = np.zeros(6, np.int8) if per_channel else bytes_of(rng, w_type)
    y_scale = constant(pick(rng, 2.5, 10.0), np.float32)
    bias = ("constant", rng.integers(-5000, 5000, 6).astype(np.int32))
    arguments = [x, scale_of(rng), constant(bytes_of(rng, np.uint8), np.uint8)]
    arguments += [("constant", w), scale_of(rng, *([6] if per_channel else [])), ("constant", w_zero)]
    arguments += [y_scale, constant(bytes_of(rng, np.uint8), np.uint8), bias]
    # The factor is rounded once or twice, so a tie may be rounded either way.
    return sample("QLinearConv", arguments, [UINT8], limit=1 / 255, pads=[1, 0, 0, 1])


def qlinear_matmul(rng):
    kind = pick(rng, np.uint8, np.int8)
    inner = int(pick(rng, 8, 700))
    a, b = bytes_of(rng, kind, 2, 4, inner), bytes_of(rng, kind, inner, 5)
    zero = constant(bytes_of(rng, kind), kind)
    arguments = [a, scale_of(rng), zero, ("constant", b), scale_of(rng), zero, constant(20.0, np.float32), zero]
    return sample("QLinearMatMul", arguments, [UINT8 if kind == np.uint8 else INT8], limit=1 / 127)


def dynamic_quantize(rng):
    x = real(rng, 4, 5) * pick(rng, 1, 100) + pick(rng, 0, 5, -5)
    return sample("DynamicQuantizeLinear", [x.astype(np.float32)], [UINT8, FLOAT, UINT8], limit=1 / 255)


def affine_grid(rng):
    axes = pick(rng, 2, 3)
    theta = real(rng, 2, axes, axes + 1)
    size = constant([2, 3, *rng.integers(2, 7, axes)])
    return sample("AffineGrid", [("open", theta), size], [FLOAT], limit=16 * F32, align_corners=int(rng.integers(2)))


def center_crop_pad(rng):
    x = real(rng, 2, *rng.integers(3, 12, 2))
    return sample("CenterCropPad", [("open", x), constant(rng.integers(3, 12, 2))], [FLOAT], axes=[1, -1])


def determinant(rng):
    size = int(rng.integers(1, 5))
    x = real(rng, *pick(rng, [], [3], [2, 3]), size, size)
    return sample("Det", [x], [FLOAT], limit=256 * F32)


def compress(rng):
    x = real(rng, 3, 6)
    attributes = pick(rng, {"axis": 1}, {"axis": 0}, {})
    length = {1: 6, 0: 3}.get(attributes.get("axis"), 18)
    condition = rng.integers(0, 2, length).astype(bool)
    condition[0] = True
    return sample("Compress", [x, ("constant", condition)], [FLOAT], **attributes)


def non_zero(rng):
    mask = rng.integers(0, 2, (3, 4)).astype(bool)
    mask[1, 2] = True
    sampled = sample("NonZero", [("constant", mask)], [INT64])
    # A network needs an input.
    model = sampled.model
    model.graph.input.append(helper.make_tensor_value_info("x", INT64, [2, int(mask.sum())]))
    model.graph.node[0].output[0] = "places"
    model.graph.node.append(helper.make_node("Add", ["places", "x"], ["out0"]))
    return Sample(model, {"x": np.ones((2, int(mask.sum())), np.int64)}, 0)


def mel_weight_matrix(rng):
    bins, length = int(rng.integers(4, 12)), int(rng.integers(64, 257))
    edges = [constant(rng.uniform(0, 100), np.float32), constant(rng.uniform(2000, 4000), np.float32)]
    arguments = [constant(bins), constant(length), constant(8192), *edges]
    model = sample("MelWeightMatrix", arguments, [FLOAT]).model
    x = real(rng, length // 2 + 1, bins)
    model.graph.input.append(helper.make_tensor_value_info("x", FLOAT, x.shape))
    model.graph.node[0].output[0] = "filters"
    model.graph.node.append(helper.make_node("Add", ["filters", "x"], ["out0"]))
    return Sample(model, {"x": x}, 4 * F32)


def bitwise(rng):
    op = pick(rng, "BitwiseAnd", "BitwiseOr", "BitwiseXor")
    dtype, kind = pick(rng, (np.int32, INT32), (np.uint8, UINT8), (np.int8, INT8))
    a = bytes_of(rng, dtype, 3, 4)
    b = pick(rng, bytes_of(rng, dtype, 3, 4), ("constant", bytes_of(rng, dtype)))
    return sample(op, [a, b], [kind])


def bitwise_not(rng):
    dtype, kind = pick(rng, (np.int32, INT32), (np.uint8, UINT8), (np.int8, INT8))
    return sample("BitwiseNot", [bytes_of(rng, dtype, 3, 4)], [kind])


def bit_shift(rng):
    x, by = bytes_of(rng, np.uint8, 3, 4), rng.integers(0, 10, (3, 4)).astype(np.uint8)
    return sample("BitShift", [x, by], [UINT8], direction=pick(rng, "LEFT", "RIGHT"))


def signed_shift(rng):
    dtype = pick(rng, np.int32, np.int64)
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, (40, 12), dtype, endpoint=True)
    x[:, 0] = np.resize([limits.min, limits.max, -1, 0, 1], 40)
    by = rng.integers(-3, limits.bits + 3, (40, 1)).astype(dtype)
    arguments = [("open", x), pick(rng, by, ("constant", by[0]))]
    return sample("BitShift", arguments, [TYPES[x.dtype]], opset=28, direction=pick(rng, "LEFT", "RIGHT"))


def cumulative_product(rng):
    shape = rng.integers(2, 40, int(rng.integers(1, 4)))
    axis = int(rng.integers(-len(shape), len(shape)))
    attributes = {"exclusive": int(rng.integers(2)), "reverse": int(rng.integers(2))}
    x = rng.integers(-9, 9, shape).astype(pick(rng, np.int32, np.int64))
    limit = 0
    if rng.integers(2):
        dtype, limit = pick(rng, (np.float32, 16 * F32), (np.float16, 2.0**-6))
        x = rng.uniform(0.7, 1.4, shape).astype(dtype)
    else:  # without overflow, which ONNX does not define
        x = np.where(rng.integers(0, 4, shape) == 0, x, 1).astype(x.dtype)
        x = np.where(np.arange(len(x)).reshape(-1, *[1] * (x.ndim - 1)) % 13 == 12, 0, np.clip(x, -3, 3)).astype(
            x.dtype
        )
    kind = "open" if axis % len(shape) else "input"
    return sample("CumProd", [(kind, x), constant(axis)], [TYPES[x.dtype]], limit=limit, opset=26, **attributes)


def unique(rng):
    dtype = pick(rng, np.float32, np.int64)
    shape = [int(n) for n in rng.integers(1, 5, int(rng.integers(1, 4)))]
    attributes = {"sorted": int(rng.integers(2))}
    if rng.integers(2):
        attributes["axis"] = int(rng.integers(-len(shape), len(shape)))
        shape[attributes["axis"]] = int(rng.integers(1, 20))
    x = rng.integers(-2, pick(rng, 0, 3), shape).astype(dtype)
    if x.dtype.kind == "f":
        x = np.where(x == 2, np.inf, x / 2).astype(dtype)
    return sample("Unique", [x], [TYPES[x.dtype], INT64, INT64, INT64], **attributes)


def recurrent_layout(rng):
    op = pick(rng, "LSTM", "GRU", "RNN")
    direction = pick(rng, "forward", "reverse", "bidirectional")
    directions = 2 if direction == "bidirectional" else 1
    gates, batch, hidden = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], int(rng.integers(2, 5)), int(rng.integers(4, 8))
    weights = [real(rng, directions, gates * hidden, size) / 2 for size in (3, hidden)]
    arguments = [real(rng, batch, int(rng.integers(1, 7)), 3), *[("constant", one) for one in weights]]
    arguments += [("constant", real(rng, directions, 2 * gates * hidden)), None]
    states = 2 if op == "LSTM" else 1
    if rng.integers(2):
        arguments += [real(rng, batch, directions, hidden) for _ in range(states)]
    outputs = [pick(rng, None, FLOAT), FLOAT, FLOAT][: 1 + states]
    return sample(op, arguments, outputs, 8 * F32, hidden_size=hidden, direction=direction, layout=1)


def boolean_blocks(rng):
    x = ("open", rng.integers(0, 2, (2, 8, 4, 6)).astype(bool))
    if rng.integers(2):
        return sample("SpaceToDepth", [x], [BOOL], blocksize=2)
    return sample("DepthToSpace", [x], [BOOL], blocksize=2, mode=str(pick(rng, "DCR", "CRD")))


def coupled_gates(rng):
    direction = pick(rng, "forward", "reverse", "bidirectional")
    directions = 2 if direction == "bidirectional" else 1
    batch, hidden = int(rng.integers(2, 5)), int(rng.integers(4, 8))
    weights = [real(rng, directions, 4 * hidden, size) / 2 for size in (3, hidden)]
    x = real(rng, int(rng.integers(1, 7)), batch, 3)
    arguments = [x, *[("constant", one) for one in weights], ("constant", real(rng, directions, 8 * hidden)), None]
    arguments += [real(rng, directions, batch, hidden) for _ in range(2)]
    if rng.integers(2):
        arguments.append(("constant", real(rng, directions, 3 * hidden)))
    more = pick(rng, {}, {"activations": ["HardSigmoid", "Tanh", "Tanh"] * directions})
    outputs = [pick(rng, None, FLOAT), FLOAT, FLOAT]
    return sample("LSTM", arguments, outputs, 32 * F32, hidden_size=hidden, direction=direction, input_forget=1, **more)


def einsum_capitals(rng):
    sizes = dict(zip("BHQKDbhqkd", rng.integers(1, 5, 10), strict=True))
    equation = pick(rng, "BHQD,BHKD->BHQK", "bHQd, bHKd -> bHQK", "QK,KD", "KQ", "BQD->B", "bB,Bd")
    operands = equation.replace(" ", "").split("->")[0].split(",")
    arrays = [real(rng, *[sizes[letter] for letter in operand]) for operand in operands]
    return sample("Einsum", arrays, [FLOAT], 16 * F32, equation=equation)


def vector_times_matrices(rng):
    inner, shape = int(rng.integers(1, 9)), rng.integers(1, 5, int(rng.integers(1, 4)))
    dtype, limit = pick(rng, (np.float32, inner * F32), (np.float16, inner * 2.0**-10))
    vector, matrices = real(rng, inner).astype(dtype), real(rng, *shape, inner, int(rng.integers(1, 6))).astype(dtype)
    arguments = [pick(rng, vector, ("constant", vector)), ("open", matrices)]
    return sample("MatMul", arguments, [TYPES[matrices.dtype]], limit)


def loss_arguments(rng, x):
    """Returns the arguments of a loss of the scores or probabilities `x`, N,C,d1..dk, and its attributes. Some targets are
    ignore_index, which is no class in half of the cases."""
    classes = x.shape[1]
    targets = rng.integers(0, classes, (x.shape[0], *x.shape[2:])).astype(pick(rng, np.int32, np.int64))
    attributes = {"reduction": pick(rng, "none", "sum", "mean")}
    if rng.integers(3):
        attributes["ignore_index"] = int(pick(rng, -1, 100, 0, 1))
        targets[rng.random(targets.shape) < 0.3] = attributes["ignore_index"]
    weights = [rng.uniform(0.1, 2, classes).astype(x.dtype)] if rng.integers(2) else []
    return [("open", x), ("open", targets), *weights], attributes


def softmax_loss(rng):
    sizes = rng.integers(2, 5, rng.integers(0, 3))
    x = 3 * real(rng, 3, int(rng.integers(2, 7)), *sizes)
    arguments, attributes = loss_arguments(rng, x)
    return sample(
        "SoftmaxCrossEntropyLoss", arguments, pick(rng, [FLOAT], [FLOAT, FLOAT]), limit=16 * F32, **attributes
    )


def likelihood_loss(rng):
    sizes = rng.integers(2, 5, rng.integers(0, 4))
    x = -rng.uniform(0, 5, (3, int(rng.integers(2, 7)), *sizes)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = -np.inf  # The logarithm of the probability 0.
    arguments, attributes = loss_arguments(rng, x)
    attributes["reduction"] = "none"
    return sample("NegativeLogLikelihoodLoss", arguments, [FLOAT], limit=16 * F32, **attributes)


def tensor_scatter(rng):
    mode = pick(rng, "linear", "circular")
    rank = 3 if mode == "linear" else int(rng.integers(2, 5))
    axis = int(rng.integers(1, rank))
    shape = [int(size) for size in rng.integers(2, 6, rank)]
    added = int(rng.integers(1, shape[axis] + 1))
    update = [*shape[:axis], added, *shape[axis + 1 :]]
    last = shape[axis] if mode == "circular" else shape[axis] - added + 1
    first = rng.integers(0, last, shape[0])
    arguments = [real(rng, *shape), real(rng, *update), *pick(rng, [], [first], [constant(first)])]
    return sample("TensorScatter", arguments, [FLOAT], opset=24, mode=mode, axis=pick(rng, axis, axis - rank))


def resize_with_one_scale(rng):
    """Returns a Resize to the nearest elements with a policy by which the sizes are limits of one common scale."""
    x = real(rng, 1, 2, *rng.integers(4, 12, 2))
    x[rng.random(x.shape) < 0.1] = np.inf
    return sample(
        "Resize",
        [x, None, None, constant(rng.integers(3, 16, 2))],
        [FLOAT],
        mode="nearest",
        axes=[2, 3],
        keep_aspect_ratio_policy=pick(rng, "not_larger", "not_smaller"),
        coordinate_transformation_mode=pick(rng, "half_pixel", "asymmetric"),
        nearest_mode=pick(rng, "round_prefer_floor", "floor"),
    )


LOWERED = {f.__name__: f for f in (
    top_k, dft, col2im, dilated_max_pool, dilated_average_pool, pool_that_rounds_up, dilated_lp_pool,
    lp_pool_of_high_powers,
    lp_pool_with_wide_padding, max_pool_indices, max_unpool,
    deform_conv, resize, crop_and_resize, attention, attention_of_padded_keys, attention_to_a_window,
    attention_with_scores, linear_attention, flex_attention, layer_normalization, scatter_nd, scatter_elements,
    scatter_nd_of_an_input, scatter_to_one_place, scatter_elements_of_an_input, scatter_more_than_fit, matmul_integer,
    conv_integer, qlinear_conv, qlinear_matmul, dynamic_quantize, affine_grid, center_crop_pad, determinant, compress,
    unique, non_zero, mel_weight_matrix, bitwise, bitwise_not, bit_shift, signed_shift, cumulative_product,
    recurrent_layout, boolean_blocks, coupled_gates, einsum_capitals, vector_times_matrices, softmax_loss,
    likelihood_loss, tensor_scatter, resize_with_one_scale,
)}  # fmt: skip


def network(nodes, inputs, outputs, constants, feeds, limit, opset=20):
    ends = [[helper.make_tensor_value_info(*end) for end in side] for side in (inputs, outputs)]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph([helper.make_node(*n[:3], **n[3]) for n in nodes], "chain", *ends, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return Sample(model, feeds, limit)


def dynamic_quantization(rng):
    """Returns a fully connected layer as ONNX Runtime's dynamic quantization writes it."""
    nodes = [
        ("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"], {}),
        ("MatMulInteger", ["xq", "w", "xz", "wz"], ["sums"], {}),
        ("Cast", ["sums"], ["real"], {"to": FLOAT}),
        ("Mul", ["xs", "ws"], ["scale"], {}),
        ("Mul", ["real", "scale"], ["y"], {}),
    ]
    constants = {"w": bytes_of(rng, np.int8, 300, 5) // 2, "wz": np.int8(0), "ws": np.float32(0.02)}
    # A number that is rounded the other way changes a sum by 127 steps; sums are about 30,000.
    return network(
        nodes, [("x", FLOAT, ["N", 300])], [("y", FLOAT, None)], constants, {"x": real(rng, 3, 300)}, limit=0.02
    )


def quantized_layers(rng):
    """Returns two convolutions and a matrix product in 8 bits, one after the other."""
    nodes = [
        ("QLinearConv", ["x", "s", "z", "w", "s", "wz", "t", "z"], ["a"], {"pads": [1, 1, 1, 1]}),
        ("QLinearConv", ["a", "t", "z", "w", "s", "wz", "t", "z"], ["b"], {"pads": [1, 1, 1, 1]}),
        ("Reshape", ["b", "flat"], ["c"], {}),
        ("QLinearMatMul", ["c", "t", "z", "v", "s", "wz", "t", "z"], ["y"], {}),
    ]
    constants = {"s": np.float32(0.02), "t": np.float32(0.5), "z": np.uint8(128), "wz": np.int8(0)}
    constants |= {
        "w": bytes_of(rng, np.int8, 4, 4, 3, 3) // 2,
        "v": bytes_of(rng, np.int8, 144, 5) // 2,
        "flat": [-1, 144],
    }
    # A step in one layer is at most a few steps in the next.
    feeds = {"x": bytes_of(rng, np.uint8, 2, 4, 6, 6)}
    return network(nodes, [("x", UINT8, ["N", 4, 6, 6])], [("y", UINT8, None)], constants, feeds, limit=4 / 255)


def sequences(rng):
    nodes = [
        ("SplitToSequence", ["x", "two"], ["parts"], {"axis": 1}),
        ("SequenceAt", ["parts", "one"], ["a"], {}),
        ("SplitToSequence", ["x"], ["columns"], {"axis": 1, "keepdims": 0}),
        ("SequenceAt", ["columns", "last"], ["b"], {}),
        ("Unsqueeze", ["b", "axis"], ["c"], {}),
        ("SequenceConstruct", ["a", "c", "x"], ["made"], {}),
        ("ConcatFromSequence", ["made"], ["y"], {"axis": -1}),
        ("SequenceConstruct", ["b", "b"], ["pair"], {}),
        ("ConcatFromSequence", ["pair"], ["z"], {"axis": 0, "new_axis": 1}),
    ]
    constants = {"two": 2, "one": 1, "last": -1, "axis": [1]}
    outputs = [("y", FLOAT, None), ("z", FLOAT, None)]
    return network(nodes, [("x", FLOAT, ["N", 7])], outputs, constants, {"x": real(rng, 3, 7)}, limit=0)


def optionals(rng):
    nodes = [
        ("Optional", ["x"], ["given"], {}),
        ("OptionalHasElement", ["given"], ["has_element"], {}),
        ("OptionalGetElement", ["given"], ["element"], {}),
        ("OptionalGetElement", ["x"], ["same"], {}),
        ("SequenceConstruct", ["element", "same"], ["made"], {}),
        ("Optional", ["made"], ["list"], {}),
        ("OptionalGetElement", ["list"], ["tensors"], {}),
        ("SequenceAt", ["tensors", "one"], ["second"], {}),
        ("Add", ["element", "second"], ["y"], {}),
    ]
    outputs = [("y", FLOAT, None), ("has_element", BOOL, None)]
    return network(nodes, [("x", FLOAT, ["N", 7])], outputs, {"one": 1}, {"x": real(rng, 3, 7)}, limit=0)


def added_features(rng):
    """Returns the addition of feature rows to the nodes of a graph, as torch.Tensor.scatter_add is exported: the
    indices are expanded."""
    nodes = [
        ("Unsqueeze", ["to", "last"], ["column"], {}),
        ("Expand", ["column", "shape"], ["indices"], {}),
        ("ScatterElements", ["x", "indices", "features"], ["sums"], {"axis": 0, "reduction": "add"}),
        ("ScatterElements", ["x", "indices", "features"], ["largest"], {"axis": 0, "reduction": "max"}),
        ("Add", ["sums", "largest"], ["y"], {}),
    ]
    constants = {"last": np.array([1]), "shape": np.array([9, 4])}
    return network(
        nodes,
        [("x", FLOAT, [5, 4]), ("to", INT64, [9]), ("features", FLOAT, [9, 4])],
        [("y", FLOAT, [5, 4])],
        constants,
        {"x": real(rng, 5, 4), "to": rng.integers(-5, 5, 9), "features": real(rng, 9, 4)},
        16 * F32,
    )


# Name -> (function that returns the network, operators that may remain).
NETWORKS = {
    "dynamic_quantization": dynamic_quantization,
    "quantized_layers": quantized_layers,
    "sequences": sequences,
    "optionals": optionals,
    "added_features": added_features,
}


def near_misses():
    """Returns name -> (sample, words of the reason; "" where TensorRT runs the node and there is no message)."""
    rng = np.random.default_rng(0)
    image = real(rng, 1, 2, 8, 8)
    half = image.astype(np.float16)
    q64 = real(rng, 1, 2, 16, 64)
    unsigned = np.arange(12, dtype=np.uint8).reshape(3, 4)
    long_sum = np.full((2, 80, 3, 3), 255, np.uint8)
    recurrent = [real(rng, 4, 1, 3), constant(real(rng, 1, 2, 3), np.float32), constant(real(rng, 1, 2, 2), np.float32)]
    return {
        "loss_of_targets_of_another_rank": (
            sample("NegativeLogLikelihoodLoss", [real(rng, 2, 2), np.zeros((2, 2), np.int64)], [FLOAT]),
            "does not have the shape of its input without the axis of the classes",
        ),
        "tensor_scatter_that_tensorrt_has": (
            sample("TensorScatter", [real(rng, 2, 3, 5, 4), real(rng, 2, 3, 2, 4)], [FLOAT], opset=24),
            "",
        ),
        "recurrent_with_time_first": (sample("RNN", recurrent, [FLOAT], hidden_size=2, layout=0), ""),
        "top_k_at_the_limit": (sample("TopK", [real(rng, 5000), constant([3840])], [FLOAT, INT64]), ""),
        "top_k_of_an_input": (sample("TopK", [real(rng, 5000), np.array([4000])], [FLOAT, INT64]), ""),
        "top_k_of_integers": (
            sample("TopK", [np.arange(5000, dtype=np.int32), constant([4000])], [INT32, INT64]),
            "only f32, f16 and bf16 are supported",
        ),
        "dft_of_open_length": (sample("DFT", [("open", real(rng, 8, 1))], [FLOAT]), "dynamic"),
        "dft_along_an_input": (sample("DFT", [real(rng, 2, 8, 1), None, np.array(1)], [FLOAT]), "axis"),
        "col2im_of_inputs": (
            sample("Col2Im", [real(rng, 1, 4, 4), np.array([4, 4]), constant([2, 2])], [FLOAT]),
            "not constants",
        ),
        "max_pool": (sample("MaxPool", [image], [FLOAT], kernel_shape=[2, 2]), ""),
        "lp_pool_of_the_power_2": (sample("LpPool", [image], [FLOAT], kernel_shape=[2, 2]), ""),
        "lp_pool_of_the_power_0": (sample("LpPool", [image], [FLOAT], kernel_shape=[2, 2], p=0), "p is 0"),
        "coupled_gates_of_tanh": (
            sample(
                "LSTM",
                [
                    real(rng, 4, 1, 3),
                    constant(real(rng, 1, 8, 3), np.float32),
                    constant(real(rng, 1, 8, 2), np.float32),
                ],
                [FLOAT],
                hidden_size=2,
                input_forget=1,
                activations=["Tanh", "Tanh", "Tanh"],
            ),
            "the activation of its gates is Tanh",
        ),
        "dilated_lp_pool_of_the_power_0": (
            sample("LpPool", [image], [FLOAT], kernel_shape=[2, 2], dilations=[2, 2], p=0),
            "p is 0",
        ),
        "average_pool_without_dilations": (sample("AveragePool", [image], [FLOAT], kernel_shape=[2, 2]), ""),
        "indices_of_an_open_batch": (
            sample("MaxPool", [("open", image)], [FLOAT, INT64], kernel_shape=[2, 2]),
            None,  # the dynamic size is the batch, so this one is lowered
        ),
        "resize_without_antialias": (
            sample("Resize", [image, None, constant([1, 1, 0.5, 0.5], np.float32)], [FLOAT], mode="linear"),
            "",
        ),
        "antialias_to_an_input": (
            sample("Resize", [image, None, None, np.array([1, 2, 4, 4])], [FLOAT], mode="linear", antialias=1),
            "its sizes are not a constant",
        ),
        "scatter_without_reduction": (
            sample("ScatterND", [real(rng, 4, 3), constant([[0], [2]]), real(rng, 2, 3)], [FLOAT]),
            "",
        ),
        "scatter_of_integers": (
            sample("ScatterND", [unsigned, np.array([[0], [2]]), unsigned[:2]], [UINT8], reduction="add"),
            "only f32, f16 and bf16 are supported",
        ),
        "scatter_of_an_open_size": (
            sample("ScatterND", [("open", real(rng, 4)), np.array([[0], [2]]), real(rng, 2)], [FLOAT], reduction="add"),
            "dynamic",
        ),
        "scatter_of_very_many": (
            sample(
                "ScatterND",
                [real(rng, 5000), rng.integers(0, 5000, (4000, 1)), real(rng, 4000)],
                [FLOAT],
                reduction="add",
            ),
            "16 M",
        ),
        "scatter_of_very_many_elements": (
            sample(
                "ScatterElements",
                [real(rng, 5000), rng.integers(0, 5000, 4000), real(rng, 4000)],
                [FLOAT],
                reduction="max",
            ),
            "16 M",
        ),
        "scatter_of_as_many_as_fit": (
            sample(
                "ScatterElements", [real(rng, 4, 3), rng.permutation(12).reshape(4, 3) % 4, real(rng, 4, 3)], [FLOAT]
            ),
            "",
        ),
        "scatter_more_to_a_part": (
            sample("ScatterElements", [real(rng, 2, 3), np.array([[0], [1], [1]]), real(rng, 3, 1)], [FLOAT]),
            "other axes",
        ),
        "layer_normalization": (sample("LayerNormalization", [image, constant(np.ones(8), np.float32)], [FLOAT]), ""),
        "attention_in_f16": (
            sample("Attention", [a.astype(np.float16) for a in (q64, q64, q64)], [FLOAT16], opset=23),
            "",
        ),
        "attention_with_integers_as_mask": (
            sample("Attention", [q64, q64, q64, np.ones((16, 16), np.int32)], [FLOAT], opset=24),
            "the type of its mask differs",
        ),
        "linear_attention_with_a_decay_too_many": (
            sample(
                "LinearAttention",
                [real(rng, 1, 3, 4), real(rng, 1, 3, 4), real(rng, 1, 3, 4), None, real(rng, 1, 3, 2)],
                [FLOAT, FLOAT],
                opset=27,
                q_num_heads=2,
                kv_num_heads=2,
                update_rule="linear",
            ),
            "do not fit its update_rule",
        ),
        "flex_attention_in_f64": (
            sample("FlexAttention", [q64, q64, q64], [FLOAT], opset=26, domain="ai.onnx.preview", softmax_precision=11),
            "its softmax_precision is f64",
        ),
        "conv_integer_beyond_f32": (
            sample("ConvInteger", [bytes_of(rng, np.uint8, 1, 160, 5, 5), ("constant", long_sum)], [INT32], group=2),
            "2^24",
        ),
        "affine_grid_of_an_input": (
            sample("AffineGrid", [real(rng, 1, 2, 3), np.array([1, 1, 4, 4])], [FLOAT]),
            "not a constant",
        ),
        "crop_of_an_open_size": (
            sample("CenterCropPad", [("open", image), constant([1])], [FLOAT], axes=[0]),
            "dynamic",
        ),
        "einsum_of_27_letters": (
            sample(
                "Einsum",
                [real(rng, *[1] * 26), real(rng, 1)],
                [FLOAT],
                equation="abcdefghijklmnopqrstuvwxyz,A->A",
            ),
            "27 letters",
        ),
        "einsum_of_small_letters": (sample("Einsum", [image, image], [FLOAT], equation="abcd,abed->abce"), ""),
        "vector_times_one_matrix": (sample("MatMul", [real(rng, 4), real(rng, 4, 3)], [FLOAT]), ""),
        "matrices_times_vector": (sample("MatMul", [image, real(rng, 8)], [FLOAT]), ""),
        "integers_times_matrices": (
            sample("MatMul", [np.arange(4, dtype=np.int32), np.ones((2, 4, 3), np.int32)], [INT32]),
            "only f32, f16 and bf16 are supported",
        ),
        "det_of_5": (sample("Det", [real(rng, 5, 5)], [FLOAT]), "5 x 5"),
        "compress_by_an_input": (
            sample("Compress", [unsigned, np.array([True, False, True])], [UINT8], axis=0),
            "not a constant",
        ),
        "unique_of_an_open_size": (sample("Unique", [("open", real(rng, 4))], [FLOAT]), "dynamic"),
        "unique_of_very_many": (sample("Unique", [real(rng, 5000)], [FLOAT]), "more than 16777216 comparisons"),
        "bits_of_64": (sample("BitwiseNot", [np.arange(3)], [INT64]), "i64"),
        "mod_of_integers": (sample("Mod", [np.arange(6, dtype=np.int32), constant([4], np.int32)], [INT32]), ""),
        "fmod_of_halves": (sample("Mod", [half, constant([3], np.float16)], [FLOAT16], fmod=1), ""),
    }
