# tiny_yolo.py MODEL.onnx PICTURE.npz: writes a network with the output of an exported YOLO11, and a picture for it, also
# as PICTURE.png.
"""The network finds red, green and blue squares of 32 pixels. For each cell of 8 pixels it has a box around the cell and
a score for each color, and the output has the layout of Ultralytics: N, 4 + classes, boxes."""

import pathlib
import struct
import sys
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

SIZE, SQUARE, STRIDE = 160, 32, 8
cells = (SIZE - SQUARE) // STRIDE + 1

# A cell has the score 1 for a class if its box has only that color, and 0 if the box has half of it or less.
weights = np.full((3, 3, SQUARE, SQUARE), -2 / SQUARE**2, np.float32)
weights[range(3), range(3)] = 2 / SQUARE**2
center = np.arange(cells, dtype=np.float32) * STRIDE + SQUARE / 2
x, y = (each.ravel() for each in np.meshgrid(center, center))
boxes = np.stack([x, y, np.full_like(x, SQUARE), np.full_like(x, SQUARE)])[None]  # center x, center y, width, height
constants = {"weights": weights, "bias": np.full(3, -1, np.float32), "boxes": boxes, "flat": np.array([0, 3, -1])}
nodes = [
    helper.make_node("Conv", ["images", "weights", "bias"], ["colors"], strides=[STRIDE, STRIDE]),
    helper.make_node("Relu", ["colors"], ["heat"]),
    helper.make_node("Reshape", ["heat", "flat"], ["scores"]),
    helper.make_node("Concat", ["boxes", "scores"], ["output0"], axis=1),
]
graph = helper.make_graph(
    nodes,
    "tiny_yolo",
    [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIZE, SIZE])],
    [helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, 7, cells**2])],
    [numpy_helper.from_array(array, name) for name, array in constants.items()],
)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])

picture = np.zeros((1, 3, SIZE, SIZE), np.float32)
for color, left, top in ((0, 16, 24), (2, 96, 32), (1, 56, 104)):
    picture[0, color, top : top + SQUARE, left : left + SQUARE] = 1
np.savez(sys.argv[2], images=picture)


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


pixels = (picture[0].transpose(1, 2, 0) * 255).astype(np.uint8).reshape(SIZE, -1)
rows = np.pad(pixels, ((0, 0), (1, 0))).tobytes()  # a byte before each row names its filter, none
header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)  # 8 bits for each of three colors
chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
pathlib.Path(sys.argv[2]).with_suffix(".png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
