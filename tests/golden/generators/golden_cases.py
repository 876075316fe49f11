# The shared parts of the operators' golden generators (src/ops/<op>/<op>_golden.py): values, types and files.
import json
import sys
import zlib

import numpy as np
import torch

TORCH_TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
FLOAT_TYPES = list(TORCH_TYPES)
INF, NAN = float("inf"), float("nan")
TIE_MARGIN = 1e-3  # int8 steps; the error of float32 arithmetic on values up to 128 is about 1e-5


def as_f32(value):
    return float(np.float32(value))


def random_values(name, shape, scale=1.0):
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def rounded(values, dtype):
    """Returns the nearest values that dtype represents, as float32."""
    return values.to(TORCH_TYPES[dtype]).to(torch.float32)


def quantized(values, scale):
    """Returns int8 of values / scale, and the smallest distance of an inexact rounding decision from a tie."""
    steps = values / scale
    fraction = (steps - steps.floor() - 0.5).abs()
    inside = (steps.abs() < 128.5) & (fraction > 0)
    margin = float(fraction[inside].min()) if bool(inside.any()) else 0.5
    return torch.clamp(torch.round(steps), -128, 127).to(torch.int8), margin


class Golden:
    """Collects the cases of an operator and writes them."""

    def __init__(self, operator, function):
        self.operator, self.function = operator, function
        self.arrays, self.cases = {}, []

    def x(self, name, values):
        self.arrays[name] = values.numpy()
        return name

    def add(self, name, dtype, x_name, attributes, note=None, y_f32=None, more=(), absolute=0):
        """Adds a case. `more` are names of arrays of further inputs, which the function takes after the attributes. The
        function returns the first output, or a tuple of the first outputs."""
        x = torch.from_numpy(self.arrays[x_name])
        case = {"name": name, "dtype": dtype, "shape": list(x.shape), "attributes": attributes}
        case |= {"x": x_name, "y": f"{name}.y"} | ({"more": list(more)} if more else {})
        assert all(case["name"] != other["name"] for other in self.cases), name
        if dtype == "i8":
            y = self.function(x.to(torch.float64) * as_f32(attributes["x_scale"]), attributes)
            y, margin = quantized(y, as_f32(attributes["y_scale"]))
            assert margin > TIE_MARGIN, f"{name}: a result lies {margin:.1e} from a rounding tie, choose other values"
        else:
            y = self.function(x.to(torch.float64), attributes, *(torch.from_numpy(self.arrays[each]) for each in more))
        y, *more_y = y if isinstance(y, tuple) else (y,)
        self.arrays[case["y"]] = y.numpy()
        if more_y:
            case["more_y"] = [f"{name}.y{number}" for number, _ in enumerate(more_y, 1)]
            self.arrays |= {key: other.numpy() for key, other in zip(case["more_y"], more_y, strict=True)}
        if y_f32 is not None:
            case["y_f32"] = f"{name}.y_f32"
            self.arrays[case["y_f32"]] = y_f32.numpy()
        if absolute:
            case["absolute"] = absolute
        if note:
            case["note"] = note
        self.cases.append(case)

    def write(self, out, stem):
        np.savez_compressed(out / f"{stem}.npz", **self.arrays)
        lines = ",\n".join("    " + json.dumps(case) for case in self.cases)
        frameworks = [name for name in ("torch", "tensorflow", "onnxruntime", "numpy") if name in sys.modules]
        made_with = {name: sys.modules[name].__version__.split("+")[0] for name in frameworks}
        (out / f"{stem}.json").write_text(
            f'{{\n  "operator": "{self.operator}",\n  "made_by": "tests/golden/generators/make_goldens.py",\n'
            f'  "made_with": {json.dumps(made_with)},\n  "cases": [\n{lines}\n  ]\n}}\n'
        )
        size = (out / f"{stem}.npz").stat().st_size
        print(f"{stem}: {len(self.cases)} cases, {len(self.arrays)} arrays, {size} bytes")
