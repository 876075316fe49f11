# Models of one node of ONNX Runtime's own operators (domain com.microsoft), with seeded attributes, sizes and types; and
# nodes that Graft does not lower.
import math

import numpy as np
from lowering_models import FLOAT, FLOAT16, INT32, TYPES, constant, pick, real, sample
from onnx import helper
from onnx_judges import run_onnxruntime

DOMAIN = "com.microsoft"
# Relative to the largest number of the result: f16 has 11 bits, and its intermediate results are rounded too.
LIMITS = {FLOAT: 2e-6, FLOAT16: 4e-3}

OPSETS = 12, 15, 17, 20, 22  # of the model, on which these operators do not depend


def one(op, arguments, outputs=1, domain=DOMAIN, limit=None, **attributes):
    """Returns a sample whose outputs have the type of the first real argument. `outputs`: their number, or types."""
    arrays = [a[1] if isinstance(a, tuple) else a for a in arguments if a is not None]
    kind = next(TYPES[array.dtype] for array in arrays if array.dtype.kind == "f")
    kinds = [kind] * outputs if isinstance(outputs, int) else [kind if one == "T" else one for one in outputs]
    attributes = {name: value for name, value in attributes.items() if value is not None}
    opset = OPSETS[sum(array.size for array in arrays) % len(OPSETS)]
    return sample(op, arguments, kinds, limit or LIMITS[kind], opset=opset, domain=domain, **attributes)


def typed(rng):
    """Returns a function that makes arrays of one type."""
    kind = pick(rng, np.float32, np.float32, np.float16)
    return lambda *shape: real(rng, *shape).astype(kind)


def fixed(array):
    return ("constant", array)


def open_or_fixed(rng, array):
    return pick(rng, ("open", array), array)


def shape_of(rng, least=2, most=4):
    return rng.integers(2, 7, int(rng.integers(least, most + 1))).tolist()


def gelu(rng):
    new, shape = typed(rng), shape_of(rng, 1)
    return one("Gelu", [open_or_fixed(rng, new(*shape) * 3)])


def fast_gelu(rng):
    new, shape = typed(rng), shape_of(rng)
    bias = pick(rng, None, new(shape[-1]), fixed(new(shape[-1])))
    return one("FastGelu", [open_or_fixed(rng, new(*shape) * 3), *([] if bias is None else [bias])])


def quick_gelu(rng):
    return one("QuickGelu", [open_or_fixed(rng, typed(rng)(*shape_of(rng)) * 3)], alpha=pick(rng, None, 1.0, 0.5, -2.0))


def bias_gelu(rng):
    new, shape = typed(rng), shape_of(rng)
    return one("BiasGelu", [open_or_fixed(rng, new(*shape)), pick(rng, fixed, lambda x: x)(new(shape[-1]))])


def fused_matmul(rng):
    new, batch = typed(rng), rng.integers(1, 4, int(rng.integers(0, 3))).tolist()
    m, k, n = rng.integers(2, 7, 3).tolist()
    sides, attributes = [], {}
    for side, rows, columns in (("A", m, k), ("B", k, n)):
        last, first = int(rng.integers(2)), int(rng.integers(2)) if batch else 0
        rows, columns = (columns, rows) if last else (rows, columns)
        # transBatch: the axis of rows comes first, and the batch behind it
        sides.append(new(*([rows, *batch, columns] if first else [*batch, rows, columns])))
        attributes |= {f"trans{side}": last, f"transBatch{side}": first}
    if not batch and rng.integers(4) == 0:
        sides[0], attributes["transA"] = new(k), int(rng.integers(2))
    a, b = sides
    alpha = pick(rng, None, 0.125, -1.5, 3.0)
    is_open = not attributes.get("transBatchA") and a.ndim == 2 and not attributes["transA"]
    return one("FusedMatMul", [("open", a) if is_open else a, b], alpha=alpha, **attributes)


def fused_gemm(rng):
    new, (m, k, n) = typed(rng), rng.integers(2, 7, 3).tolist()
    trans_a, trans_b = rng.integers(2, size=2).tolist()
    activation = pick(rng, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "HardSigmoid", "Softplus", "Softsign")
    alpha = pick(rng, 0.1, 0.75) if activation in ("LeakyRelu", "Elu", "HardSigmoid") else None
    c = pick(rng, None, new(n), new(m, n), fixed(new(1)))
    return one(
        "FusedGemm",
        [
            new(*((k, m) if trans_a else (m, k))),
            fixed(new(*((n, k) if trans_b else (k, n)))),
            *([] if c is None else [c]),
        ],
        transA=trans_a,
        transB=trans_b,
        alpha=pick(rng, None, 0.5),
        beta=pick(rng, None, 2.0),
        activation=activation,
        activation_alpha=alpha,
        activation_beta=0.25 if activation == "HardSigmoid" else None,
    )


def fused_conv(rng):
    new, group = typed(rng), pick(rng, 1, 2)
    x = new(2, 2 * group, 9, 8)
    w = new(4, 2, 3, pick(rng, 1, 3))
    strides, pads = rng.integers(1, 3, 2).tolist(), rng.integers(0, 2, 4).tolist()
    dilations = rng.integers(1, 3, 2).tolist()
    auto_pad = pick(rng, None, None, "SAME_UPPER", "VALID")
    activation = pick(rng, None, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid")
    parameters = {"LeakyRelu": [0.1], "Clip": [-0.5, 1.5], "HardSigmoid": [0.3, 0.4]}.get(activation)
    arguments = [open_or_fixed(rng, x), fixed(w), pick(rng, None, fixed(new(4)))]
    if not auto_pad and rng.integers(2):
        size = [
            (n + pads[i] + pads[i + 2] - d * (k - 1) - 1) // s + 1
            for i, (n, d, k, s) in enumerate(zip(x.shape[2:], dilations, w.shape[2:], strides, strict=True))
        ]
        arguments.append(new(2, 4, *size))
    return one(
        "FusedConv",
        arguments,
        group=group,
        strides=strides,
        dilations=dilations if not auto_pad else None,
        pads=None if auto_pad else pads,
        auto_pad=auto_pad,
        activation=activation,
        activation_params=parameters,
    )


def skip_layer_normalization(rng):
    new, (batch, length, size) = typed(rng), rng.integers(2, 9, 3).tolist()
    skip = new(*pick(rng, (batch, length, size), (1, length, size), (length, size)))
    simple = int(rng.integers(2))
    arguments = [open_or_fixed(rng, new(batch, length, size)), skip, fixed(new(size))]
    if not simple:
        arguments.append(pick(rng, None, fixed(new(size))))
    if rng.integers(2):
        arguments.append(new(size))
    gives_sum = int(rng.integers(2))
    op = "SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization"
    return one(op, arguments, ["T", None, None, "T"] if gives_sum else 1, epsilon=pick(rng, None, 1e-5, 0.1))


def simplified_layer_normalization(rng):
    new, shape = typed(rng), shape_of(rng)
    axis = pick(rng, None, -1, len(shape) - 1, len(shape) - 2, -2)
    size = shape[-1:] if axis is None else shape[axis:]
    outputs = pick(rng, ["T"], ["T", FLOAT])
    epsilon = pick(rng, None, 1e-6, 0.1)
    x = open_or_fixed(rng, new(*shape))
    return one("SimplifiedLayerNormalization", [x, fixed(new(*size))], outputs, domain="", axis=axis, epsilon=epsilon)


def embed_layer_normalization(rng):
    new, (batch, length, size) = typed(rng), rng.integers(2, 7, 3).tolist()

    def ids(most):
        return rng.integers(0, most, (batch, length)).astype(np.int32)

    has_segments, has_mask = rng.integers(2, size=2).tolist()
    positions = rng.integers(0, 9, (pick(rng, 1, batch), length)).astype(np.int32)
    mask = (np.arange(length) < rng.integers(1, length + 1, (batch, 1))).astype(np.int32)
    arguments = [
        open_or_fixed(rng, ids(11)),
        ids(3) if has_segments else None,
        fixed(new(11, size)),
        fixed(new(9, size)),
        fixed(new(3, size)) if has_segments else None,
        fixed(new(size)),
        fixed(new(size)),
        mask if has_mask else None,
        *pick(rng, [], [positions]),
    ]
    outputs = pick(rng, ["T", INT32], ["T", INT32, "T"])
    return one("EmbedLayerNormalization", arguments, outputs, epsilon=pick(rng, None, 0.1))


def rotary_embedding(rng):
    new, heads, size, (batch, length) = typed(rng), pick(rng, 1, 2, 3), pick(rng, 8, 16), rng.integers(2, 6, 2).tolist()
    part = pick(rng, None, size // 2)
    half = (part or size) // 2
    x = new(batch, length, heads * size) if part or rng.integers(2) else new(batch, heads, length, size)
    positions = pick(rng, rng.integers(0, 9, (batch, length)), rng.integers(0, 3, 1))
    angles = rng.standard_normal((16, half))
    caches = [fixed(turn(angles).astype(x.dtype)) for turn in (np.cos, np.sin)]
    return one(
        "RotaryEmbedding",
        [open_or_fixed(rng, x) if positions.ndim == 1 else x, positions, *caches],
        interleaved=int(rng.integers(2)),
        num_heads=heads if part or rng.integers(2) else None,
        rotary_embedding_dim=part,
    )


def matmul_n_bits(rng):
    new, bits, block = typed(rng), pick(rng, 2, 4, 4, 8), pick(rng, 16, 32)
    rows, blocks = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    columns = blocks * block
    packed = rng.integers(0, 256, (rows, blocks, block * bits // 8)).astype(np.uint8)
    scales = np.abs(new(rows, blocks)) / 8
    zeros = rng.integers(0, 256, (rows, (blocks * bits + 7) // 8)).astype(np.uint8)
    # ONNX Runtime's CPU kernels take zero points as numbers only of 4 bits.
    zero_points = pick(rng, [], [fixed(zeros)])
    bias = [*(zero_points or [None]), None, fixed(new(rows))] if rng.integers(2) else zero_points
    x = new(*rng.integers(1, 5, int(rng.integers(1, 3))).tolist(), columns)
    return one(
        "MatMulNBits",
        [open_or_fixed(rng, x), fixed(packed), fixed(scales), *bias],
        N=rows,
        K=columns,
        bits=bits,
        block_size=block,
        limit=None if x.dtype == np.float16 else 2e-5,
    )


def padding_mask(rng, *shape):
    """Returns 0 and 1, the first number of each row 1."""
    mask = rng.integers(0, 2, shape).astype(np.int32)
    mask[..., 0] = 1
    return mask


def attention(rng):
    new, heads, (batch, length) = typed(rng), pick(rng, 1, 2, 4), rng.integers(2, 6, 2).tolist()
    size, v_size = heads * pick(rng, 2, 4), heads * 3
    has_past = rng.integers(3) == 0
    sizes = None if has_past or rng.integers(2) else [size, size, v_size]
    width = sum(sizes or [3 * size])
    past = 3 if has_past else 0
    keys = length + past
    mask = pick(
        rng,
        None,
        padding_mask(rng, batch, keys),
        padding_mask(rng, batch, length, keys),
        rng.integers(1, keys + 1, batch).astype(np.int32),
    )
    bias = pick(rng, None, new(pick(rng, 1, batch), pick(rng, 1, heads), length, keys))
    bias = None if has_past else bias  # which ONNX Runtime does not have together
    x = new(batch, length, 5)
    arguments = [x, fixed(new(5, width)), fixed(new(width)), mask]
    arguments.append(new(2, batch, heads, past, size // heads) if has_past else None)
    arguments.append(bias)
    return one(
        "Attention",
        arguments,
        2 if has_past else 1,
        num_heads=heads,
        unidirectional=int(rng.integers(2)),
        qkv_hidden_sizes=sizes,
        scale=pick(rng, None, 0.3),
        mask_filter_value=pick(rng, None, -1000.0),
        limit=None if x.dtype == np.float16 else 1e-5,
    )


def multi_head_attention(rng):
    new, heads, (batch, length) = typed(rng), pick(rng, 1, 2, 4), rng.integers(2, 6, 2).tolist()
    size = heads * pick(rng, 2, 4)
    form = pick(rng, "bias", "mask", "past", "causal", "value")
    v_size = heads * 3 if form in ("value", "bias") else size
    is_causal = form == "causal" or (form != "mask" and rng.integers(3) == 0)
    keys = length if is_causal or form in ("past", "bias") else int(rng.integers(2, 7))
    past = 3 if form == "past" else 0
    arguments = [new(batch, length, size), new(batch, keys, size), new(batch, keys, v_size)]
    arguments.append(fixed(new(2 * size + v_size)) if form == "bias" else None)
    arguments.append(padding_mask(rng, *pick(rng, (batch, keys), (batch, length, keys))) if form == "mask" else None)
    arguments.append(pick(rng, None, new(pick(rng, 1, batch), pick(rng, 1, heads), length, keys + past)))
    if past:
        arguments += [new(batch, heads, past, size // heads), new(batch, heads, past, size // heads)]
    return one(
        "MultiHeadAttention",
        arguments,
        3 if form == "past" or (form == "bias" and rng.integers(2)) else 1,
        num_heads=heads,
        unidirectional=1 if is_causal else None,
        # TensorRT refuses the attribute, and builds the node without it.
        mask_filter_value=-10000.0 if form == "causal" else None,
        scale=pick(rng, None, 0.3),
        limit=None if arguments[0].dtype == np.float16 else 1e-5,
    )


def group_query_attention(rng):
    new, kv_heads, (batch, length) = typed(rng), pick(rng, 1, 2), rng.integers(2, 6, 2).tolist()
    heads, size = kv_heads * pick(rng, 1, 2, 3), pick(rng, 16, 32)
    is_packed, rotates = rng.integers(2, size=2).tolist()
    lengths = np.full(batch, length - 1, np.int32)
    total = np.array(length, np.int32)
    width = heads * size
    qkv = [new(batch, length, width + 2 * kv_heads * size), None, None]
    if not is_packed:
        qkv = [new(batch, length, width), new(batch, length, kv_heads * size), new(batch, length, kv_heads * size)]
    angles = rng.standard_normal((16, size // 2))
    caches = [fixed(turn(angles).astype(qkv[0].dtype)) for turn in (np.cos, np.sin)] if rotates else []
    return one(
        "GroupQueryAttention",
        [*qkv, None, None, lengths, total, *caches],
        3,
        num_heads=heads,
        kv_num_heads=kv_heads,
        do_rotary=rotates,
        rotary_interleaved=int(rng.integers(2)) if rotates else None,
        scale=pick(rng, None, 0.3),
        softcap=pick(rng, None, 2.0),
        limit=None if qkv[0].dtype == np.float16 else 1e-5,
    )


def bytes_and_zero(rng, *shape):
    """Returns integers of 8 bits, and a function that returns a zero point for them."""
    kind = pick(rng, np.uint8, np.int8)
    least, most = np.iinfo(kind).min, np.iinfo(kind).max + 1
    return rng.integers(least, most, shape).astype(kind), lambda: fixed(np.array(rng.integers(least, most), kind))


def scale_of(rng):
    return fixed(np.array(rng.uniform(0.01, 0.1), np.float32))


def qlinear(op, arguments, kind, **attributes):
    # One step: a number halfway between two integers may be rounded to either.
    return sample(op, arguments, [TYPES[np.dtype(kind)]], 1 / 64, opset=17, domain=DOMAIN, **attributes)


def qlinear_pair(rng):
    shape = shape_of(rng)
    a, zero = bytes_and_zero(rng, *shape)
    b = rng.permutation(a.flatten()).reshape(shape)
    b = pick(rng, b, b[:1])
    inputs = [open_or_fixed(rng, a), scale_of(rng), zero(), b, scale_of(rng), zero()]
    return qlinear(pick(rng, "QLinearAdd", "QLinearMul"), [*inputs, scale_of(rng), zero()], a.dtype)


def qlinear_one(rng):
    x, zero = bytes_and_zero(rng, *shape_of(rng))
    op = pick(rng, "QLinearSigmoid", "QLinearLeakyRelu")
    attributes = {"alpha": 0.2} if op == "QLinearLeakyRelu" and rng.integers(2) else {}
    inputs = [open_or_fixed(rng, x), scale_of(rng), zero(), scale_of(rng), zero()]
    return qlinear(op, inputs, x.dtype, **attributes)


def qlinear_global_average_pool(rng):
    x = rng.integers(0, 256, (2, *rng.integers(2, 7, 3))).astype(np.uint8)

    def zero():
        return fixed(np.array(rng.integers(256), np.uint8))

    inputs = [open_or_fixed(rng, x), scale_of(rng), zero(), scale_of(rng), zero()]
    return qlinear("QLinearGlobalAveragePool", inputs, x.dtype, channels_last=int(rng.integers(2)))


def qlinear_concat(rng):
    a, zero = bytes_and_zero(rng, 2, 3, 4)
    axis = pick(rng, 0, 1, -1)
    parts = [part for _ in range(int(rng.integers(1, 4))) for part in (np.flip(a, axis), scale_of(rng), zero())]
    return qlinear("QLinearConcat", [scale_of(rng), zero(), *parts], a.dtype, axis=axis)


def dynamic_quantize_matmul(rng):
    k, n = rng.integers(2, 9, 2).tolist()
    x = real(rng, *rng.integers(1, 5, int(rng.integers(1, 3))).tolist(), k)
    w, zero = bytes_and_zero(rng, k, n)
    inputs = [x, fixed(w), scale_of(rng), pick(rng, None, zero()), pick(rng, None, fixed(real(rng, n)))]
    return one("DynamicQuantizeMatMul", inputs, limit=1e-5)


def matmul_integer_to_float(rng):
    m, k, n = rng.integers(2, 9, 3).tolist()
    a = rng.integers(0, 256, (m, k)).astype(np.uint8)
    w, zero = bytes_and_zero(rng, k, n)
    a_zero = pick(rng, None, fixed(np.array(rng.integers(256), np.uint8)))
    zeros = [a_zero, pick(rng, None, zero())]
    bias = pick(rng, None, fixed(real(rng, n)))
    return one("MatMulIntegerToFloat", [a, fixed(w), scale_of(rng), scale_of(rng), *zeros, bias], limit=1e-5)


def qlinear_softmax(rng):
    x, zero = bytes_and_zero(rng, *shape_of(rng))
    zero_of_y = fixed(np.array(0 if x.dtype == np.uint8 else -128, x.dtype))
    inputs = [open_or_fixed(rng, x), scale_of(rng), zero(), fixed(np.array(1 / 256, np.float32)), zero_of_y]
    made = qlinear("QLinearSoftmax", inputs, x.dtype, axis=pick(rng, -1, 1))
    made.model.graph.node[0].attribute.append(helper.make_attribute("opset", pick(rng, 11, 13)))
    return made


def qlinear_average_pool(rng):
    x, zero = bytes_and_zero(rng, 2, *rng.integers(4, 8, 3).tolist())
    inputs = [open_or_fixed(rng, x), scale_of(rng), zero(), scale_of(rng), zero()]
    return qlinear(
        "QLinearAveragePool",
        inputs,
        x.dtype,
        kernel_shape=[2, pick(rng, 2, 3)],
        strides=rng.integers(1, 3, 2).tolist(),
        pads=pick(rng, [0, 0, 0, 0], [1, 1, 1, 0]),
        count_include_pad=int(rng.integers(2)),
        channels_last=int(rng.integers(2)),
    )


def qlinear_where(rng):
    x, zero = bytes_and_zero(rng, *shape_of(rng))
    y = rng.permutation(x.flatten()).reshape(x.shape)
    condition = rng.integers(0, 2, x.shape).astype(bool)
    inputs = [condition, x, scale_of(rng), zero(), y, scale_of(rng), zero(), scale_of(rng), zero()]
    return qlinear("QLinearWhere", inputs, x.dtype)


def qlinear_conv_of_onnxruntime(rng):
    x = rng.integers(0, 256, (2, 6, 7, 4)).astype(np.uint8)
    w, zero_of_w = bytes_and_zero(rng, 3, 4, 3, 3)
    is_last = int(rng.integers(2))

    def zero():
        return fixed(np.array(rng.integers(256), np.uint8))

    scales = fixed(rng.uniform(0.01, 0.1, 3).astype(np.float32))
    zeros = fixed(np.full(3, zero_of_w()[1], w.dtype)) if w.dtype == np.uint8 else fixed(np.zeros(3, np.int8))
    bias = pick(rng, None, fixed(rng.integers(-9999, 9999, 3).astype(np.int32)))
    inputs = [x if is_last else x.transpose(0, 3, 1, 2).copy(), scale_of(rng), zero()]
    inputs += [fixed(w), scales, zeros, fixed(np.array(2.0, np.float32)), zero(), bias]
    return qlinear("QLinearConv", inputs, x.dtype, channels_last=is_last, pads=[1, 0, 1, 1], strides=[1, 2])


def qgemm(rng):
    m, k, n = rng.integers(2, 9, 3).tolist()
    trans_a, trans_b = rng.integers(2, size=2).tolist()
    a = rng.integers(0, 256, (k, m) if trans_a else (m, k)).astype(np.uint8)
    b, zero_of_b = bytes_and_zero(rng, *((n, k) if trans_b else (k, n)))
    by_column = rng.integers(2)
    b_scale = fixed(rng.uniform(0.01, 0.1, n).astype(np.float32)) if by_column else scale_of(rng)
    b_zero = fixed(np.full(n, zero_of_b()[1], b.dtype)) if by_column else zero_of_b()
    bias = pick(rng, None, fixed(rng.integers(-9999, 9999, n).astype(np.int32)))
    inputs = [a, scale_of(rng), fixed(np.array(rng.integers(256), np.uint8)), fixed(b), b_scale, b_zero, bias]
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": pick(rng, 1.0, 0.5)}
    if rng.integers(2):
        return sample("QGemm", inputs, [FLOAT], 1e-5, opset=17, domain=DOMAIN, **attributes)
    inputs += [fixed(np.array(0.5, np.float32)), fixed(np.array(rng.integers(256), np.uint8))]
    return qlinear("QGemm", inputs, a.dtype, **attributes)


def quantized_attention(rng):
    heads, (batch, length) = pick(rng, 1, 2), rng.integers(2, 6, 2).tolist()
    width = heads * pick(rng, 2, 4)
    x = rng.integers(0, 256, (batch, length, 5)).astype(np.uint8)
    w, zero = bytes_and_zero(rng, 5, 3 * width)
    mask = pick(rng, None, rng.integers(1, length + 1, batch).astype(np.int32))
    x_zero = fixed(np.array(rng.integers(256), np.uint8))
    bias = fixed(real(rng, 3 * width))
    inputs = [x, fixed(w), bias, scale_of(rng), scale_of(rng), mask, x_zero, zero()]
    is_causal = int(rng.integers(2))
    return one("QAttention", inputs, limit=2e-5, num_heads=heads, unidirectional=is_causal)


LOWERED = {
    make.__name__: make
    for make in (
        gelu,
        fast_gelu,
        quick_gelu,
        bias_gelu,
        fused_matmul,
        fused_gemm,
        fused_conv,
        skip_layer_normalization,
        simplified_layer_normalization,
        embed_layer_normalization,
        rotary_embedding,
        matmul_n_bits,
        attention,
        multi_head_attention,
        group_query_attention,
        qlinear_pair,
        qlinear_one,
        qlinear_global_average_pool,
        qlinear_concat,
        qlinear_softmax,
        qlinear_average_pool,
        qlinear_where,
        qlinear_conv_of_onnxruntime,
        qgemm,
        quantized_attention,
        dynamic_quantize_matmul,
        matmul_integer_to_float,
    )
}


# ONNX Runtime has the following operators on GPUs only, so NumPy computes what its documentation defines.


def bias_split_gelu(rng):
    batch, length, half = rng.integers(2, 7, 3).tolist()
    x, bias = real(rng, batch, length, 2 * half), real(rng, 2 * half)
    left, right = np.split(x + bias, 2, -1)
    erf = np.vectorize(math.erf)(right / 2**0.5)
    expected = left * right * (1 + erf) / 2
    inputs = [open_or_fixed(rng, x), fixed(bias)]
    return one("BiasSplitGelu", inputs, limit=1e-5), [expected.astype(np.float32)]


def bias_add(rng):
    x, skip = (real(rng, 2, 5, 8) for _ in range(2))
    bias = real(rng, 8)
    return one("BiasAdd", [("open", x), fixed(bias), skip]), [x + bias + skip]


def group_norm(rng):
    groups, each, batch, height, width = rng.integers(1, 5, 5).tolist()
    channels, is_last = groups * each, int(rng.integers(2))
    scale, shift, bias = (real(rng, channels) for _ in range(3))
    x = real(rng, batch, channels, height + 1, width + 1)
    has_skip, activation, epsilon = int(rng.integers(2)), int(rng.integers(2)), pick(rng, None, 0.1)
    skip = pick(rng, real(rng, *x.shape), real(rng, batch, channels, 1, 1), real(rng, batch, channels))
    total = x + (skip if skip.ndim == 4 else skip[:, :, None, None]) + bias[:, None, None] if has_skip else x
    parts = total.reshape(batch, groups, -1).astype(np.float64)
    parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + (epsilon or 1e-5))
    y = parts.reshape(x.shape) * scale[:, None, None] + shift[:, None, None]
    y = y / (1 + np.exp(-y)) if activation else y

    def laid_out(a):
        return np.ascontiguousarray(np.moveaxis(a, 1, -1)) if is_last and a.ndim == 4 else a

    inputs = [open_or_fixed(rng, laid_out(x)), fixed(scale), fixed(shift)]
    inputs += [laid_out(skip), fixed(bias)] if has_skip else []
    made = one(
        "SkipGroupNorm" if has_skip else "GroupNorm",
        inputs,
        2 if has_skip else 1,
        groups=groups,
        activation=activation,
        channels_last=is_last,
        epsilon=epsilon,
        limit=1e-5,
    )
    results = [y.astype(np.float32), total] if has_skip else [y.astype(np.float32)]
    return made, [laid_out(result) for result in results]


def nhwc_conv(rng):
    group = pick(rng, 1, 2)
    x, w, bias = real(rng, 1, 5, 6, 2 * group), real(rng, 4, 2, 2, 3), real(rng, 4)
    planes = np.moveaxis(x, -1, 1)
    pads = rng.integers(0, 2, 4).tolist()
    plain = sample("Conv", [planes, fixed(w), fixed(bias)], [FLOAT], opset=17, pads=pads, group=group)
    y = np.moveaxis(run_onnxruntime(plain.model, [planes])[0], 1, -1)
    inputs = [x, fixed(w), fixed(bias)]
    if rng.integers(2):
        return one("NhwcConv", inputs, pads=pads, group=group), [y]
    added = real(rng, *y.shape)
    fused = one("NhwcFusedConv", [*inputs, added], pads=pads, group=group, activation="Relu")
    return fused, [np.maximum(y + added, 0)]


WITHOUT_KERNEL = {make.__name__: make for make in (bias_split_gelu, bias_add, group_norm, nhwc_conv)}


def near_misses():
    """Returns name -> (sample, words of the reason; "" where TensorRT runs the node and there is no message)."""
    rng = np.random.default_rng(0)
    x, heads = real(rng, 2, 5, 8), real(rng, 2, 2, 3, 4)
    one_size = np.full(2, 4, np.int32)
    weights = rng.integers(0, 256, (4, 1, 8)).astype(np.uint8)
    return {
        "attention_that_tensorrt_builds": (one("MultiHeadAttention", [x, x, x], num_heads=2), ""),
        "attention_with_a_bias_that_tensorrt_builds": (
            one("MultiHeadAttention", [x, x, x, None, None, real(rng, 1, 2, 5, 5)], num_heads=2),
            "",
        ),
        "causal_attention_that_tensorrt_builds": (
            one("MultiHeadAttention", [x, x, x], num_heads=2, unidirectional=1),
            "",
        ),
        "packed_query": (one("MultiHeadAttention", [real(rng, 2, 5, 2, 3, 4)], num_heads=2), "packed in one tensor"),
        "shared_buffer": (
            one(
                "Attention",
                [x, fixed(real(rng, 8, 24)), fixed(real(rng, 24))],
                num_heads=2,
                past_present_share_buffer=1,
            ),
            "past_present_share_buffer",
        ),
        "rotary_in_attention": (
            one("Attention", [x, fixed(real(rng, 8, 24)), fixed(real(rng, 24))], num_heads=2, do_rotary=1),
            "do_rotary",
        ),
        "causal_with_more_keys": (
            one("MultiHeadAttention", [x, *[real(rng, 2, 7, 8)] * 2], num_heads=2, unidirectional=1),
            "may have different lengths",
        ),
        "huge_blocks": (
            one(
                "MatMulNBits",
                [real(rng, 2, 1), fixed(np.zeros((16, 1, 0), np.uint8)), fixed(real(rng, 16))],
                N=16,
                K=1,
                bits=8,
                block_size=2**60,
            ),
            "would have more than",
        ),
        "cache_of_width_0": (
            one("RotaryEmbedding", [x, rng.integers(0, 4, (2, 5)), *[fixed(real(rng, 4, 0))] * 2]),
            "cos_cache",
        ),
        "packed_batches": (
            one(
                "RotaryEmbedding",
                [x, rng.integers(0, 9, (2, 5)), fixed(real(rng, 16, 4)), fixed(real(rng, 16, 4))],
                is_packed_batching=1,
            ),
            "is_packed_batching",
        ),
        "cache_of_groups": (
            one(
                "GroupQueryAttention",
                [x, x, x, heads, heads, one_size, np.array(8, np.int32)],
                num_heads=2,
                kv_num_heads=2,
            ),
            "past_key",
        ),
        "mean_for_training": (one("SkipLayerNormalization", [x, x, fixed(real(rng, 8))], 2), "mean"),
        "unknown_activation": (
            one("FusedConv", [real(rng, 1, 3, 6, 6), fixed(real(rng, 4, 3, 3, 3))], activation="Wobble"),
            "'Wobble'",
        ),
        "weights_of_an_input": (
            one("MatMulNBits", [real(rng, 2, 16), weights, fixed(real(rng, 4))], N=4, K=16, block_size=16),
            "not constants",
        ),
        "group_index": (
            one(
                "MatMulNBits",
                [real(rng, 2, 16), fixed(weights), fixed(real(rng, 4)), None, constant([0] * 16, np.int32)],
                N=4,
                K=16,
                block_size=16,
            ),
            "g_idx",
        ),
    }
