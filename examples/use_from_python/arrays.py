# Calls operators on NumPy arrays; the same calls accept tensors of PyTorch and CuPy.
import graft.ops
import ml_dtypes
import numpy as np

x = np.random.default_rng(0).standard_normal((2, 8, 5, 5), np.float32)
y = graft.ops.l2_normalize(x, axes=[1])
print("length of a vector", float(np.linalg.norm(y[0, :, 0, 0])))

half = graft.ops.instance_norm(x.astype(ml_dtypes.bfloat16), activation="relu")
print("type", half.dtype)

steps = np.clip(np.rint(x / 0.05), -128, 127).astype(np.int8)  # int8 with a scale of 0.05
print("int8", graft.ops.leaky_relu(steps, alpha=0.1, x_scale=0.05, y_scale=0.05).dtype)

out = np.empty((2, 8 * 5), np.float32)
graft.ops.spatial_pyramid_pooling(x, levels=[2, 1], out=out)

try:
    graft.ops.l2_normalize(x, axes=[4])
except ValueError as error:
    print(error)
