# u8_network.py FILE.onnx: a convolution that reads and returns u8 activations, as ONNX Runtime's quantizer writes it.
import sys

import numpy as np
import onnx
from onnx import numpy_helper

TEXT = """
<ir_version: 8, opset_import: ["" : 13]>
u8_network (float[n, 3, 8, 8] x) => (float[n, 4, 8, 8] y) {
  x_u8 = QuantizeLinear (x, x_scale, x_zero)
  x_real = DequantizeLinear (x_u8, x_scale, x_zero)
  w_real = DequantizeLinear <axis = 0> (w, w_scale, w_zero)
  b_real = DequantizeLinear (b, b_scale)
  conv = Conv <pads = [1, 1, 1, 1]> (x_real, w_real, b_real)
  y_u8 = QuantizeLinear (conv, y_scale, y_zero)
  y = DequantizeLinear (y_u8, y_scale, y_zero)
}
"""

rng = np.random.default_rng(0)
constants = {
    "x_scale": np.float32(0.025),
    "x_zero": np.uint8(114),
    "w": rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
    "w_scale": np.array([0.004, 0.005, 0.006, 0.007], np.float32),
    "w_zero": np.zeros(4, np.int8),
    "b": np.array([1000, -2000, 3000, 0], np.int32),
    "b_scale": np.float32(0.0001),
    "y_scale": np.float32(0.06),
    "y_zero": np.uint8(128),
}
model = onnx.parser.parse_model(TEXT)
model.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items())
onnx.save(model, sys.argv[1])
