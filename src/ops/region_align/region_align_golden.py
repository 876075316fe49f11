# Golden values of RegionAlign, see tests/golden/generators/make_goldens.py: torchvision computes means, ONNX Runtime
# computes maxima, which torchvision does not support.
import onnxruntime
import torch
from golden_cases import FLOAT_TYPES, Golden, random_values, rounded
from onnx import TensorProto, helper
from torchvision.ops import roi_align


def largest(x, attributes, rois, items):
    node = helper.make_node("RoiAlign", ["x", "rois", "items"], ["y"], **attributes)
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.DOUBLE, [None] * 4),
        helper.make_tensor_value_info("rois", TensorProto.DOUBLE, [None, 4]),
        helper.make_tensor_value_info("items", TensorProto.INT64, [None]),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)
    graph = helper.make_graph([node], "align", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"x": x.numpy(), "rois": rois.double().numpy(), "items": items.numpy()}
    return torch.from_numpy(session.run(None, feeds)[0])


def align(x, attributes, rois, items):
    if attributes["mode"] == "max":
        return largest(x, attributes, rois, items)
    return roi_align(
        x,
        torch.cat([items.double()[:, None], rois.double()], dim=1),
        (attributes["output_height"], attributes["output_width"]),
        attributes["spatial_scale"],
        attributes["sampling_ratio"] or -1,
        attributes["coordinate_transformation_mode"] == "half_pixel",
    )


def regions_of(name, count, width, height):
    """Returns regions, some of which extend outside the map."""
    centers = random_values(name, (count, 2), 0.3) + 0.5
    halves = random_values(name + " sizes", (count, 2), 0.2).abs()
    return torch.cat([centers - halves, centers + halves], dim=1) * torch.tensor([width, height] * 2)


# Positions of up to 64 pixels are rounded to float32, and the values of neighboring pixels differ by up to 6.
ABSOLUTE = 5e-5


def make(out):
    golden = Golden("RegionAlign", align)
    cases = [
        ("box_head", (1, 2, 25, 38), 6, 7, 7, 2, 0.25),
        ("mask_head", (1, 1, 25, 38), 3, 14, 14, 2, 0.125),
        ("adaptive", (2, 2, 20, 30), 5, 7, 7, 0, 0.5),
        ("one_bin", (3, 2, 9, 7), 8, 1, 1, 0, 1.0),
        ("one_sample", (2, 2, 9, 7), 8, 3, 2, 1, 1.0),
        ("unequal", (1, 3, 12, 40), 6, 2, 9, 3, 1.0),
        ("one_pixel", (1, 2, 1, 1), 4, 2, 2, 2, 1.0),
        ("larger_than_the_map", (1, 2, 6, 5), 4, 3, 3, 0, 8.0),
    ]
    for dtype in FLOAT_TYPES:
        for shape_name, (items, channels, height, width), count, rows, columns, ratio, scale in cases:
            name = f"{dtype}_{shape_name}"
            size = 1 if shape_name == "larger_than_the_map" else 1 / scale
            x = golden.x(f"{name}.x", rounded(random_values(name, (items, channels, height, width)), dtype))
            boxes = regions_of(name + " rois", count, width * size, height * size)
            more = [
                golden.x(f"{name}.rois", rounded(boxes, dtype)),
                golden.x(f"{name}.of", torch.arange(count) % items),
            ]
            sizes = {"output_height": rows, "output_width": columns, "sampling_ratio": ratio, "spatial_scale": scale}
            for mode in ("avg", "max"):
                for coordinates in ("half_pixel", "output_half_pixel"):
                    attributes = sizes | {"mode": mode, "coordinate_transformation_mode": coordinates}
                    golden.add(f"{name}_{mode}_{coordinates}", dtype, x, attributes, more=more, absolute=ABSOLUTE)
    golden.write(out, "region_align")
