# Trains, compiles and exports a PyTorch network with Graft's operators and their ONNX functions.
import sys

import graft.torch
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3)

    def forward(self, image):
        x = graft.torch.padding(image, pads=[0, 0, 1, 1, 0, 0, 1, 1], mode="reflect")
        x = graft.torch.leaky_relu(self.convolution(x), alpha=0.1)
        x = graft.torch.spatial_pyramid_pooling(x, levels=[4, 2, 1])
        return graft.torch.l2_normalize(x, axes=[1], epsilon_mode="norm")


network = Network()
optimizer = torch.optim.SGD(network.parameters(), 0.1)
images = torch.rand(4, 3, 16, 16)
for _ in range(3):
    loss = network(images).square().mean() - network(images).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

sizes = {"image": {0: torch.export.Dim("batch")}}
graft.torch.export(network.eval(), (images,), sys.argv[1], dynamic_shapes=sizes, output_names=["features"])
