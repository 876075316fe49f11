# Golden values of Upsampling, see tests/golden/generators/make_goldens.py.
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from golden_cases import FLOAT_TYPES, TIE_MARGIN, Golden, as_f32, quantized, random_values, rounded


def onnx_resize(x, attributes):
    """Computes ONNX Runtime's Resize in float32, for the modes that PyTorch does not support."""
    spatial = x.dim() - 2
    constants = [onnx.helper.make_tensor("none", onnx.TensorProto.FLOAT, [0], [])]
    if "sizes" in attributes:
        inputs = ["x", "none", "none", "target"]
        target = [*x.shape[:2], *attributes["sizes"]]
        constants.append(onnx.helper.make_tensor("target", onnx.TensorProto.INT64, [len(target)], target))
    else:
        inputs = ["x", "none", "target"]
        scales = attributes["scales"]
        target = [1.0, 1.0, *(scales * spatial if len(scales) == 1 else scales)]
        constants.append(onnx.helper.make_tensor("target", onnx.TensorProto.FLOAT, [len(target)], target))
    node = onnx.helper.make_node(
        "Resize",
        inputs,
        ["y"],
        mode=attributes["mode"],
        coordinate_transformation_mode=attributes["coordinate_mode"],
        nearest_mode=attributes.get("nearest_mode", "floor"),
        cubic_coeff_a=attributes.get("cubic_a", -0.75),
    )
    f32 = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [node],
        "resize",
        [onnx.helper.make_tensor_value_info("x", f32, list(x.shape))],
        [onnx.helper.make_tensor_value_info("y", f32, None)],
        constants,
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"x": x.to(torch.float32).numpy()})[0]).to(torch.float64)


TORCH_NEAREST = {("asymmetric", "floor"): "nearest", ("half_pixel", "round_prefer_ceil"): "nearest-exact"}


def upsampling(x, attributes):
    mode, coordinates, spatial = attributes["mode"], attributes["coordinate_mode"], x.dim() - 2
    name = {"linear": ["linear", "bilinear", "trilinear"][spatial - 1], "cubic": "bicubic" if spatial == 2 else None}
    name = TORCH_NEAREST.get((coordinates, attributes["nearest_mode"])) if mode == "nearest" else name[mode]
    if name is None or "cubic_a" in attributes or (mode != "nearest" and coordinates == "asymmetric"):
        return onnx_resize(x, attributes)
    scales = attributes.get("scales")
    given = {
        "size": attributes.get("sizes"),
        "scale_factor": scales * spatial if scales and len(scales) == 1 else scales,
    }
    corners = None if mode == "nearest" else coordinates == "align_corners"
    return F.interpolate(x, mode=name, align_corners=corners, **given)


def make(out):
    golden = Golden("Upsampling", upsampling)

    def attributes(mode, coordinates, nearest_mode=None, **more):
        return (
            {"mode": mode, "coordinate_mode": coordinates}
            | ({"nearest_mode": nearest_mode} if nearest_mode else {})
            | more
        )

    def label(given):
        parts = [given["mode"], given["coordinate_mode"], given.get("nearest_mode", "")]
        numbers = [("x", given.get("scales", [])), ("to", given.get("sizes", []))]
        parts += [kind + "_".join(f"{n:g}".replace(".", "p") for n in values) for kind, values in numbers if values]
        return "_".join(part for part in parts if part)

    # PyTorch copies an axis whose size does not change, whatever its scale, so every size changes here.
    smooth = [
        ("linear", "half_pixel"),
        ("linear", "align_corners"),
        ("cubic", "half_pixel"),
        ("cubic", "align_corners"),
    ]
    nearest = [("nearest", *how) for how in TORCH_NEAREST]
    for dtype in FLOAT_TYPES:
        for shape, resizings in {
            (1, 2, 7): [{"scales": [2.0]}, {"scales": [1.75]}, {"sizes": [3]}],
            (2, 2, 3, 5): [
                {"scales": [2.0]},
                {"scales": [1.4, 0.6]},
                {"sizes": [7, 4]},
                {"sizes": [1, 1]},
                {"scales": [3.0]},
            ],
            (1, 1, 1, 1): [{"scales": [2.0]}],
            (1, 2, 2, 3, 4): [{"scales": [2.0]}, {"scales": [1.5, 2.0, 0.5]}, {"sizes": [3, 2, 7]}],
        }.items():
            base = f"{dtype}_{'x'.join(map(str, shape))}"
            x = golden.x(f"{base}.x", rounded(random_values(f"upsampled {base}", shape), dtype))
            for resizing in resizings[: None if dtype == "f32" else 1]:
                for how in smooth + nearest:
                    if how[0] == "cubic" and len(shape) != 4:
                        continue
                    given = attributes(*how, **resizing)
                    golden.add(f"{base}_{label(given)}", dtype, x, given)

    # With small integers and scales that are powers of two, float32 is exact.
    whole = torch.round(random_values("whole", (1, 2, 4, 6), 4.0))
    x = golden.x("whole.x", rounded(whole, "f32"))
    for scales in ([2.0], [4.0, 0.5]):
        golden.add(
            f"whole_{label(attributes('linear', 'asymmetric', scales=scales))}",
            "f32",
            x,
            attributes("linear", "asymmetric", scales=scales),
        )
        golden.add(
            f"whole_{label(attributes('cubic', 'asymmetric', scales=scales))}",
            "f32",
            x,
            attributes("cubic", "asymmetric", scales=scales, cubic_a=-0.75),
        )
        for a in (-0.5, 0.0):
            given = attributes("cubic", "half_pixel", scales=scales, cubic_a=a)
            golden.add(f"whole_{label(given)}_a{-10 * a:g}", "f32", x, given)
    for coordinates in ("half_pixel", "asymmetric", "align_corners"):
        for nearest_mode in ("floor", "round_prefer_floor", "round_prefer_ceil", "ceil"):
            if (coordinates, nearest_mode) in TORCH_NEAREST:
                continue
            for resizing in ({"scales": [2.0]}, {"sizes": [9, 4]}, {"scales": [0.5, 1.25]}):
                given = attributes("nearest", coordinates, nearest_mode, **resizing)
                golden.add(f"whole_{label(given)}", "f32", x, given)

    every = golden.x("i8_every.x", torch.arange(-128, 128).to(torch.int8).reshape(1, 2, 8, 16))
    given = attributes("nearest", "asymmetric", "floor", scales=[2.0])
    golden.add("i8_nearest", "i8", every, given | {"x_scale": 0.0517, "y_scale": 0.0431})
    golden.add("i8_nearest_same_scale", "i8", every, given | {"x_scale": 0.0517, "y_scale": 0.0517})
    golden.add(
        "i8_linear_ties",
        "i8",
        every,
        attributes("linear", "half_pixel", scales=[2.0], x_scale=0.5, y_scale=0.5),
        "weights are multiples of 1/16, so there are exact ties",
    )
    for how in smooth:
        given = attributes(*how, scales=[2.0], x_scale=0.0517, y_scale=0.0431)
        for attempt in range(500):
            x = torch.clamp(torch.round(random_values(f"i8{attempt}", (1, 2, 4, 3), 60.0)), -128, 127).to(torch.int8)
            if quantized(upsampling(x * as_f32(0.0517), given), as_f32(0.0431))[1] > TIE_MARGIN:
                golden.add(f"i8_{label(given)}", "i8", golden.x(f"i8_{label(given)}.x", x), given)
                break
        else:
            raise RuntimeError(f"{label(given)}: no values without a near tie")
    golden.write(out, "upsampling")
