# operators.py: Graft's operators on NumPy arrays.
import graft
import numpy as np

boxes = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
unit = graft.ops.l2_normalize(boxes, axes=[1])
print(f"vectors of length {np.sqrt((unit**2).sum(1)).mean():.3f}")

try:
    graft.ops.l2_normalize(boxes, axes=[7])
except ValueError as error:
    print(error)
