# Prints how many digits a network got right: accuracy.py NAME OUTPUTS.npz DATA.npz
import sys

import numpy as np

name, outputs, data = sys.argv[1:]
labels = np.load(data)["labels"]
right = int((np.load(outputs)["logits"].argmax(axis=1) == labels).sum())
print(f"  {name:<36} {right} of {len(labels)} right   {100 * right / len(labels):.2f} %")
