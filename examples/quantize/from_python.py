# from_python.py MODEL OUTPUT.onnx: quantizes the digits network to int8, with samples from a generator and a metric in
# Python.
import sys
from collections.abc import Iterator

import graft
import numpy as np
from accuracy import DATA, accuracy


def samples() -> Iterator[dict[str, np.ndarray]]:
    """Yields the inputs of one run at a time. An application would read files or use a data loader."""
    for image in np.load(DATA)["images"][:128]:
        yield {"image": image[np.newaxis]}


def metric(tried: graft.Model) -> float:
    return accuracy(tried.serialize())


result = graft.quantize(sys.argv[1], precision="int8", data=samples(), metric=metric, max_drop=0.005)
result.model.save(sys.argv[2])
print(f"accuracy: {result.metric_f32:.4f} in f32, {result.metric_int8:.4f} in int8")
