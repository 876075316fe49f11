# Golden values of CausalConvWithState, see tests/golden/generators/make_goldens.py: PyTorch's depthwise convolution of
# the past followed by x.
import torch
import torch.nn.functional as F
from golden_cases import FLOAT_TYPES, INF, NAN, Golden, random_values, rounded

# The reference kernel adds in double in another order, so sums that cancel differ by the rounding of their terms.
ABSOLUTE = 1e-12


def convolve(x, attributes, weight, bias=None, past_state=None):
    weight = weight.double()
    if past_state is None:
        past_state = torch.zeros((*x.shape[:2], weight.shape[2] - 1), dtype=x.dtype)
    bias = None if bias is None or bias.numel() == 0 else bias.double()
    y = F.conv1d(torch.cat([past_state.double(), x], 2), weight, bias, groups=x.shape[1])
    return y if attributes["activation"] == "none" else F.silu(y)


def make(out):
    golden = Golden("CausalConvWithState", convolve)
    shapes = [(1, 1, 1), (2, 3, 1), (2, 3, 2), (1, 4, 7), (2, 3, 40), (3, 2, 129)]
    for dtype in FLOAT_TYPES:
        for number, (shape, taps) in enumerate((shape, taps) for shape in shapes for taps in (1, 3, 4, 9)):
            name = f"{dtype}_{'x'.join(map(str, shape))}_{taps}"
            given = number % 4  # without a bias and a state, with a bias, with both, with a state alone
            inputs = {"weight": (shape[1], 1, taps)}
            if given > 0:
                inputs["bias"] = (0,) if given == 3 else (shape[1],)
            if given > 1:
                inputs["past_state"] = (*shape[:2], taps - 1)
            x = golden.x(f"{name}.x", rounded(random_values(f"{name}.x", shape), dtype))
            more = [
                golden.x(f"{name}.{each}", rounded(random_values(f"{name}.{each}", size), dtype))
                for each, size in inputs.items()
            ]
            attributes = {"activation": ("none", "silu", "swish")[number % 3]}
            golden.add(name, dtype, x, attributes, more=more, absolute=ABSOLUTE)
        x = golden.x(f"{dtype}_edges.x", torch.tensor([[[1.0, INF, 2.0, -INF, 0.0, NAN, 1.0, 3.0, -1.0]]]))
        weight = golden.x(f"{dtype}_edges.weight", torch.tensor([[[0.5, -2.0]]]))
        for activation in ("none", "silu"):
            name = f"{dtype}_edges_{activation}"
            golden.add(name, dtype, x, {"activation": activation}, "infinities and NaN", more=[weight])
    golden.write(out, "causal_conv_with_state")
