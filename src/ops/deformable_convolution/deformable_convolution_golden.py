# Golden values of DeformableConvolution, see tests/golden/generators/make_goldens.py: torchvision computes them.
from golden_cases import FLOAT_TYPES, Golden, random_values, rounded
from torchvision.ops import deform_conv2d


def deform(x, attributes, weight, offset, bias=None, mask=None):
    more = [None if each is None else each.double() for each in (bias, mask)]
    return deform_conv2d(
        x,
        offset.double(),
        weight.double(),
        more[0],
        attributes.get("strides", [1, 1]),
        attributes["pads"][:2],
        attributes.get("dilations", [1, 1]),
        more[1],
    )


# Positions of up to 16 pixels are rounded to float32. Between two pixels values change by up to 6, and a result adds up
# to 54 samples.
ABSOLUTE = 5e-5


def make(out):
    golden = Golden("DeformableConvolution", deform)
    # Shape of x, filters, window, optional inputs, attributes.
    cases = {
        "first": ((2, 3, 7, 8), 4, (3, 3), 0, {"pads": [1, 1, 1, 1]}),
        "biased": ((1, 2, 6, 5), 3, (3, 3), 1, {"pads": [1, 1, 1, 1]}),
        "modulated": ((2, 4, 6, 7), 4, (3, 3), 2, {"pads": [1, 1, 1, 1]}),
        "strided": ((1, 3, 9, 10), 2, (3, 2), 2, {"pads": [1, 2, 1, 2], "strides": [2, 3]}),
        "dilated": ((1, 2, 9, 10), 3, (2, 3), 2, {"pads": [2, 3, 2, 3], "dilations": [3, 2]}),
        "grouped": ((1, 6, 5, 6), 4, (3, 3), 2, {"pads": [1, 1, 1, 1], "group": 2}),
        "offset_grouped": ((1, 6, 5, 6), 4, (3, 3), 2, {"pads": [1, 1, 1, 1], "offset_group": 3}),
        "both_grouped": ((1, 6, 5, 6), 4, (2, 2), 2, {"pads": [1, 0, 1, 0], "group": 2, "offset_group": 3}),
        "one_pixel": ((1, 2, 1, 1), 3, (3, 3), 2, {"pads": [1, 1, 1, 1]}),
        "one_element": ((2, 5, 4, 4), 3, (1, 1), 2, {"pads": [0, 0, 0, 0]}),
    }
    for dtype in FLOAT_TYPES:
        for shape_name, (shape, outputs, window, optional, attributes) in cases.items():
            name = f"{dtype}_{shape_name}"
            strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
            size = [
                (shape[2 + i] + 2 * attributes["pads"][i] - (window[i] - 1) * dilations[i] - 1) // strides[i] + 1
                for i in range(2)
            ]
            samples = attributes.get("offset_group", 1) * window[0] * window[1]

            def values(what, of, scale=1.0, name=name, dtype=dtype):
                return golden.x(f"{name}.{what}", rounded(random_values(f"{name} {what}", of, scale), dtype))

            x = values("x", shape)
            more = [
                values("weight", (outputs, shape[1] // attributes.get("group", 1), *window)),
                values("offset", (shape[0], 2 * samples, *size), 2.0),
            ]
            if optional > 0:
                more.append(values("bias", (outputs,)))
            if optional > 1:
                more.append(values("mask", (shape[0], samples, *size)))
            golden.add(name, dtype, x, attributes, more=more, absolute=ABSOLUTE)
    golden.write(out, "deformable_convolution")
