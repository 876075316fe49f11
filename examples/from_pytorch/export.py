"""export.py FOLDER: exports the network of operators.py, with an image and PyTorch's result for it."""

import sys
from pathlib import Path

import numpy as np
import torch
from operators import Network

folder = Path(sys.argv[1])
torch.manual_seed(0)
network = Network().eval()
image = torch.rand(2, 3, 20, 24)
batch = torch.export.Dim("batch")
program = torch.onnx.export(
    network, (image,), dynamo=True, dynamic_shapes={"image": {0: batch}}, output_names=["features"]
)
for node in program.model.graph:
    node.metadata_props.clear()  # removes stack traces, which contain folders of this machine
program.save(folder / "operators.onnx", external_data=False)
with torch.no_grad():
    np.savez(folder / "operators.npz", image=image.numpy(), features=network(image).numpy())
