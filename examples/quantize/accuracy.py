# accuracy.py MODEL.onnx: prints the share of digits that a model classifies correctly in ONNX Runtime; a metric for
# graft quantize.
import pathlib
import sys

import numpy as np
import onnxruntime

DATA = pathlib.Path(__file__).parents[1] / "digits" / "digits_test.npz"


def accuracy(model: str | bytes) -> float:
    data = np.load(DATA)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"image": data["images"]})
    return float((logits.argmax(axis=1) == data["labels"]).mean())


if __name__ == "__main__":
    print(accuracy(sys.argv[1]))
