# to_engine.py GRAPH.pb IMAGES.npz ENGINE: builds an int8 engine from a frozen TensorFlow graph.
import sys

import graft
import numpy as np

network = graft.load(sys.argv[1])
(image,) = network.inputs
images = np.load(sys.argv[2])["images"].reshape(-1, 8, 8, 1)  # the graph has channels last (one channel)

converted = graft.convert(network)
compared = graft.verify(network, converted.model, data=images)
print(f"{len(converted.rewrites)} rewrites, {compared.verdict}")

int8 = graft.quantize(converted.model, precision="int8", data=images)
logits = graft.Session(int8.model).run(images)[int8.model.outputs[0].name]
print(f"the same digit in {(logits.argmax(1) == graft.Session(network).run(images)['Identity'].argmax(1)).mean():.1%}")

shapes = {image.name: ([1, 8, 8, 1], [8, 8, 8, 1], [64, 8, 8, 1])}
print(graft.build(int8.model, sys.argv[3], targets=["sm120"], shapes=shapes))
sys.exit(0 if compared.same else 1)
