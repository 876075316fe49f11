# Networks whose exports contain Padding, with the expected result of Graft: see
# tests/golden/generators/make_exports.py.
from export_cases import ANY_SIZE, IMAGE, NATIVE, NHWC, fused, left

OPERATOR = "Padding"
KINDS = [{"attributes": {"mode": mode}} for mode in ("reflect", "symmetric", "edge", "wrap", "constant")]


def pad(mode, pads, **more):
    return fused(OPERATOR, {"mode": mode, "pads": pads}, **more)


def is_left_out(exporter, nodes):
    """Returns whether to leave out a case because the dynamo exporter writes it as a single Pad.

    The TorchScript exporter writes slices instead. The CPU engine does not support all modes of Pad.
    """
    return exporter == "dynamo" and nodes == ["Pad"]


def torch_cases(case):
    cat = "torch.cat([x[..., 1:3].flip(-1), x, x[..., -3:-1].flip(-1)], -1)"
    both = "(lambda y: torch.cat([y[:, :, 1:3].flip(2), y, y[:, :, -3:-1].flip(2)], 2))(" + cat + ")"
    # fmt: off
    return [
        case("reflection_pad", IMAGE, left(OPERATOR, NATIVE), "F.pad(x, (2, 1, 1, 2), mode='reflect')"),
        case("reflect_cat", IMAGE, pad("reflect", [0, 0, 0, 2, 0, 0, 0, 2], lowered="Pad"), cat, opsets=(11, 17)),
        case("reflect_cat_both", IMAGE, pad("reflect", [0, 0, 2, 2, 0, 0, 2, 2], lowered="Pad"), both),
        case("reflect_cat_dynamic", IMAGE,
             left(OPERATOR, "on an axis of one element slices give less, and a reflection does not exist"), both,
             dynamic=(0, 2, 3)),
        case("edge_cat_dynamic", IMAGE, pad("edge", [0, 0, 0, 1, 0, 0, 0, 1], lowered="Pad"),
             "torch.cat([x[..., :1], x, x[..., -1:]], -1)", dynamic=(0, 2, 3)),
        case(
            "reflect_index",
            IMAGE,
            pad("reflect", [0, 0, 2, 1, 0, 0, 2, 1], lowered="Pad"),
            "x[:, :, torch.tensor([2, 1, 0, 1, 2, 3, 4, 5, 4, 3])][:, :, :, torch.tensor([1, 0, 1, 2, 3, 4, 5, 6, 7, 6])]",
        ),
        case("reflect_chain", IMAGE, pad("reflect", [0, 0, 2, 2, 0, 0, 2, 2], lowered="Pad"),
             "F.pad(F.pad(x, (2, 2, 0, 0), mode='reflect'), (0, 0, 2, 2), mode='reflect')"),
        case("symmetric_cat", IMAGE, pad("symmetric", [0, 0, 0, 2, 0, 0, 0, 2]),
             cat.replace("1:3", ":2").replace("-3:-1", "-2:")),
        case("wrap_cat", IMAGE, pad("wrap", [0, 0, 0, 2, 0, 0, 0, 2]), "torch.cat([x[..., -2:], x, x[..., :2]], -1)"),
        case("circular", IMAGE, pad("wrap", [0, 0, 2, 1, 0, 0, 1, 2]), "F.pad(x, (1, 2, 2, 1), mode='circular')"),
        case("edge_cat", IMAGE, pad("edge", [0, 0, 0, 3, 0, 0, 0, 3], lowered="Pad"),
             "torch.cat([x[..., :1].expand(-1, -1, -1, 3), x, x[..., -1:].expand(-1, -1, -1, 3)], -1)"),
        case("zeros_cat", IMAGE, pad("constant", [0, 0, 0, 1, 0, 0, 0, 0], lowered="Pad"),
             "torch.cat([x.new_zeros(x.shape[0], 4, 6, 1), x], -1)"),
    ]
    # fmt: on


def tensorflow_cases(case):
    # fmt: off
    return [
        case("mirror_pad", NHWC, left(OPERATOR, NATIVE),
             "tf.pad(x, [[0, 0], [2, 2], [1, 3], [0, 0]], 'REFLECT')", (11, 13)),
        case("wrap_concat", NHWC, pad("wrap", [0, 2, 0, 0, 0, 2, 0, 0]), "tf.concat([x[:, -2:], x, x[:, :2]], 1)"),
        case("reflect_gather", NHWC, pad("reflect", [0, 2, 0, 0, 0, 1, 0, 0], lowered="Pad"),
             "tf.gather(x, [2, 1, 0, 1, 2, 3, 4, 5, 4], axis=1)"),
        case("edge_concat", NHWC, pad("edge", [0, 0, 1, 0, 0, 0, 1, 0], lowered="Pad"),
             "tf.concat([x[:, :, :1], x, x[:, :, -1:]], 2)"),
    ]
    # fmt: on


def paddle_cases(case):
    """Returns the cases of PaddlePaddle.

    PaddlePaddle exports F.pad as a Pad of five dimensions between Unsqueeze and Squeeze.
    """
    flipped = "paddle.concat([x[:, :, :, 1:3].flip(-1), x, x[:, :, :, -3:-1].flip(-1)], -1)"
    not_run = {"not_on_cpu_engine": "OpenVINO does not wrap"}
    # fmt: off
    return [
        case("reflect", IMAGE, left(OPERATOR, NATIVE), "F.pad(x, [2, 1, 1, 2], mode='reflect')"),
        case("reflect_any_size", IMAGE, left(OPERATOR, NATIVE),
             "F.pad(x, [2, 1, 1, 2], mode='reflect')", dynamic=ANY_SIZE),
        case("replicate_any_size", IMAGE, left(OPERATOR, NATIVE),
             "F.pad(x, [2, 1, 1, 2], mode='replicate')", dynamic=ANY_SIZE),
        case("circular", IMAGE, left(OPERATOR, NATIVE) | not_run, "F.pad(x, [2, 1, 1, 2], mode='circular')"),
        case("constant_any_size", IMAGE, left(OPERATOR, NATIVE), "F.pad(x, [2, 1, 1, 2], value=0.5)", dynamic=ANY_SIZE),
        case("reflect_chain", IMAGE, pad("reflect", [0, 0, 2, 2, 0, 0, 2, 2], lowered="Pad"),
             "F.pad(F.pad(x, [2, 2, 0, 0], mode='reflect'), [0, 0, 2, 2], mode='reflect')"),
        case("reflect_concat", IMAGE, pad("reflect", [0, 0, 0, 2, 0, 0, 0, 2], lowered="Pad"), flipped),
        case("symmetric_concat", IMAGE, pad("symmetric", [0, 0, 0, 2, 0, 0, 0, 2]),
             flipped.replace("1:3", ":2").replace("-3:-1", "-2:")),
        case("reflect_index", IMAGE, pad("reflect", [0, 0, 2, 0, 0, 0, 2, 0], lowered="Pad"),
             "paddle.index_select(x, paddle.to_tensor([2, 1, 0, 1, 2, 3, 4, 5, 4, 3]), axis=2)"),
        case("wrap_concat", IMAGE, pad("wrap", [0, 0, 0, 2, 0, 0, 0, 2]),
             "paddle.concat([x[:, :, :, -2:], x, x[:, :, :, :2]], -1)"),
        case("edge_concat_any_size", IMAGE, pad("edge", [0, 0, 0, 1, 0, 0, 0, 1], lowered="Pad"),
             "paddle.concat([x[:, :, :, :1], x, x[:, :, :, -1:]], -1)", dynamic=ANY_SIZE),
        case("roll", IMAGE, left(OPERATOR, "nothing is added: the elements go round"), "paddle.roll(x, 1, 3)"),
    ]
    # fmt: on
