# Golden values of Convolution, see tests/golden/generators/make_goldens.py.
import numpy as np
import torch
import torch.nn.functional as F
from golden_cases import FLOAT_TYPES, Golden, as_f32, random_values, rounded

ACTIVATIONS = {
    "none": lambda y, alpha: y,
    "relu": lambda y, alpha: F.relu(y),
    "relu6": lambda y, alpha: F.relu6(y),
    "leaky_relu": lambda y, alpha: F.leaky_relu(y, as_f32(alpha)),
}


def convolution(x, attributes):
    kernel = attributes["kernel"]
    axes = len(kernel)
    group = attributes.get("group", 1)
    weight = torch.tensor(attributes["kernel_weights"], dtype=torch.float64)
    weight = weight.reshape(attributes["num_output"], x.shape[1] // group, *kernel)
    bias = attributes.get("bias_weights")
    pads = attributes.get("pad", [0] * axes)
    before, after = pads[:axes], pads[-axes:]
    around = [side for axis in reversed(range(axes)) for side in (before[axis], after[axis])]
    y = [F.conv1d, F.conv2d, F.conv3d][axes - 1](
        F.pad(x, around),
        weight,
        None if bias is None else torch.tensor(bias, dtype=torch.float64),
        stride=attributes.get("stride", 1),
        dilation=attributes.get("dilation", 1),
        groups=group,
    )
    return ACTIVATIONS[attributes.get("activation", "none")](y, attributes.get("alpha", 0.01))


def make(out):
    """Writes the golden values. Weights and biases are attributes, multiples of 1/64 that every type holds exactly."""
    golden = Golden("Convolution", convolution)

    def attributes(x_shape, outputs, kernel, bias=True, **more):
        count = outputs * (x_shape[1] // more.get("group", 1)) * int(np.prod(kernel))
        given = {
            "num_output": outputs,
            "kernel": kernel,
            "kernel_weights": [(i * 37 % 127 - 63) / 64 for i in range(count)],
        }
        return given | ({"bias_weights": [(i * 5 % 9 - 4) / 4 for i in range(outputs)]} if bias else {}) | more

    problems = {
        "1d": ((2, 3, 9), 4, [3], {"pad": [1]}),
        "1d_all": ((1, 4, 11), 6, [2], {"stride": [2], "pad": [0, 3], "dilation": [3], "group": 2}),
        "1x1": ((2, 5, 3, 4), 7, [1, 1], {"bias": False}),
        "3x3": ((1, 3, 6, 5), 4, [3, 3], {"pad": [1, 1]}),
        "3x3_one_sided": ((1, 2, 5, 7), 3, [3, 3], {"pad": [0, 2, 1, 0], "activation": "relu"}),
        "strided": (
            (1, 2, 7, 8),
            3,
            [3, 2],
            {"stride": [2, 3], "pad": [1, 0], "activation": "leaky_relu", "alpha": 0.3},
        ),
        "dilated": ((1, 2, 8, 9), 2, [3, 3], {"dilation": [2, 3], "pad": [2, 2], "activation": "relu6"}),
        "grouped": ((1, 6, 4, 4), 4, [2, 2], {"group": 2}),
        "depthwise": ((2, 4, 5, 6), 4, [3, 3], {"group": 4, "pad": [1, 1]}),
        "multiplied": ((1, 3, 5, 5), 6, [3, 3], {"group": 3, "stride": [2, 2], "pad": [1, 1]}),
        "whole_image": ((2, 2, 3, 4), 5, [3, 4], {}),
        "empty": ((0, 2, 3, 4), 2, [3, 3], {"pad": [1, 1]}),
        "3d": ((1, 2, 3, 4, 5), 3, [2, 3, 2], {"pad": [1, 1, 0]}),
        "3d_all": (
            (1, 4, 5, 4, 6),
            2,
            [2, 2, 3],
            {"stride": [2, 1, 3], "pad": [1, 0, 2, 0, 1, 1], "dilation": [1, 2, 1], "group": 2},
        ),
    }
    for dtype in FLOAT_TYPES:
        for name, (shape, outputs, kernel, more) in problems.items():
            if dtype != "f32" and name not in ("1d_all", "strided", "3d"):
                continue
            x = golden.x(f"{dtype}_{name}.x", rounded(random_values(name, shape), dtype))
            golden.add(f"{dtype}_{name}", dtype, x, attributes(shape, outputs, kernel, **more))
    for name, y_scale in [
        ("1x1", 0.0375),
        ("3x3_one_sided", 0.0473),
        ("dilated", 0.0427),
        ("depthwise", 0.0391),
        ("3d", 0.0517),
    ]:
        shape, outputs, kernel, more = problems[name]
        steps = random_values(f"i8_{name}", shape, 40.0).round().clamp(-128, 127)
        x = golden.x(f"i8_{name}.x", steps.to(torch.int8))
        scales = {"x_scale": 0.0237, "y_scale": y_scale, "weight_scale": [1 / 64]}
        golden.add(f"i8_{name}", "i8", x, attributes(shape, outputs, kernel, **more) | scales)
    shape, outputs, kernel, more = problems["grouped"]
    # The scales are powers of two, so that the weights of every channel are integer multiples of its scale.
    scales = {"x_scale": 0.0237, "y_scale": 0.0333, "weight_scale": [1 / 64, 1 / 128, 1 / 64, 1 / 128]}
    x = golden.x("i8_by_channel.x", random_values("i8_by_channel", shape, 40.0).round().clamp(-128, 127).to(torch.int8))
    golden.add("i8_by_channel", "i8", x, attributes(shape, outputs, kernel, **more) | scales)
    golden.write(out, "convolution")
