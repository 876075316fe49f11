# Golden values of Padding, see tests/golden/generators/make_goldens.py.
import numpy as np
import torch
import torch.nn.functional as F
from golden_cases import FLOAT_TYPES, INF, NAN, Golden, as_f32, random_values, rounded

NUMPY_MODES = {"constant": "constant", "reflect": "reflect", "symmetric": "symmetric", "edge": "edge", "wrap": "wrap"}
TORCH_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def padding(x, attributes):
    """Computes Padding by numpy.pad, and by a slice for negative pads.

    Compares the result with torch.nn.functional.pad where PyTorch supports the pads and the mode.
    """
    pads, mode, value = attributes["pads"], attributes["mode"], as_f32(attributes["value"])
    rank = x.dim()
    around = [(pads[axis], pads[axis + rank]) for axis in range(rank)]
    grown = [(max(begin, 0), max(end, 0)) for begin, end in around]
    outside = {"constant_values": value} if mode == "constant" else {}
    y = np.pad(x.numpy(), grown, mode=NUMPY_MODES[mode], **outside)
    y = y[tuple(slice(max(-begin, 0), y.shape[a] - max(-end, 0)) for a, (begin, end) in enumerate(around))]
    y = torch.from_numpy(np.ascontiguousarray(y))
    last_two = rank == 4 and around[:2] == [(0, 0), (0, 0)] and min(pads) >= 0 and x.numel() > 0
    small = all(max(around[axis]) < x.shape[axis] for axis in range(rank))
    if last_two and small and mode in TORCH_MODES:
        flat = (*around[3], *around[2])
        expected = F.pad(x, flat, mode=TORCH_MODES[mode], **({"value": value} if mode == "constant" else {}))
        torch.testing.assert_close(y, expected, rtol=0, atol=0, equal_nan=True)
    return y


def make(out):
    golden = Golden("Padding", padding)
    shapes = {
        (1,): [[1, 0], [3, 4]],
        (5,): [[4, 4], [3, 0], [13, 17], [-1, -2], [-2, 3], [2, -4]],
        (3, 4): [[1, 2, 2, 1], [-1, 5, 0, -2]],
        (2, 3, 5): [[0, 0, 2, 0, 0, 3], [1, 2, 1, 0, 1, 9]],
        (2, 3, 4, 7): [
            [0, 0, 3, 3, 0, 0, 3, 3],
            [0, 0, 1, 2, 0, 0, 3, 4],
            [0, 1, 0, 0, 0, 2, 0, 0],
            [1, 0, 0, -2, 0, 0, 0, 3],
        ],
        (1, 2, 3, 2, 5): [[0, 0, 1, 1, 2, 0, 0, 2, 1, 3]],
        (1, 2, 1, 2, 1, 2, 1, 3): [[0, 1, 0, 0, 1, 0, 0, 2, 0, 0, 1, 0, 0, 1, 0, 1]],
    }
    for dtype in FLOAT_TYPES:
        for shape, all_pads in shapes.items():
            base = f"{dtype}_{'x'.join(map(str, shape))}"
            x = golden.x(f"{base}.x", rounded(random_values(base, shape), dtype))
            for i, pads in enumerate(all_pads):
                for mode in NUMPY_MODES:
                    if dtype != "f32" and (i > 0 or mode == "wrap"):
                        continue
                    golden.add(f"{base}_{mode}_{i}", dtype, x, {"mode": mode, "pads": pads, "value": 0.3})
    edges = torch.tensor([[NAN, INF, -0.0], [1.0, -INF, 0.0]], dtype=torch.float64)
    x = golden.x("f32_edges.x", rounded(edges, "f32"))
    for mode in NUMPY_MODES:
        golden.add(f"f32_edges_{mode}", "f32", x, {"mode": mode, "pads": [1, 1, 1, 1], "value": -3e38})
    x = golden.x("f32_empty.x", torch.zeros((0, 3)))
    golden.add("f32_empty_reflect", "f32", x, {"mode": "reflect", "pads": [0, 2, 0, 1], "value": 0.0})
    golden.add("f32_empty_constant", "f32", x, {"mode": "constant", "pads": [1, 2, 0, 1], "value": 2.5})
    every = golden.x("i8_every.x", torch.arange(-128, 128).to(torch.int8).reshape(1, 2, 8, 16))
    for mode in NUMPY_MODES:
        given = {"mode": mode, "pads": [0, 0, 3, 3, 0, 0, 3, 3], "value": 0.7}
        golden.add(f"i8_every_{mode}", "i8", every, given | {"x_scale": 0.0517, "y_scale": 0.0431})
        golden.add(f"i8_same_{mode}", "i8", every, given | {"x_scale": 0.0517, "y_scale": 0.0517})
    golden.write(out, "padding")
