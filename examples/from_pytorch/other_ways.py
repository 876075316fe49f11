"""other_ways.py FOLDER: exports LeakyReLU as a Graft node, by a translation table and by TorchScript."""

import sys
from pathlib import Path

import onnx
import onnxscript
import torch
from torch import nn

folder = Path(sys.argv[1])
x = torch.randn(2, 3)


# The translation table maps PyTorch's operator to the function that writes a node in its place. The network stays
# unchanged. onnxscript writes only nodes with a known schema.
def leaky_relu(x, negative_slope=0.01):
    return onnxscript.values.Opset("graft", 1).LeakyReLU(x, alpha=negative_slope)


port = onnx.defs.OpSchema.FormalParameter
alpha = onnx.defs.OpSchema.Attribute("alpha", onnx.helper.make_attribute("alpha", 0.01))
types = [("T", ["tensor(float)", "tensor(float16)", "tensor(bfloat16)"], "")]
schema = onnx.defs.OpSchema(
    "LeakyReLU",
    "graft",
    1,
    inputs=[port("x", "T")],
    outputs=[port("y", "T")],
    attributes=[alpha],
    type_constraints=types,
)
onnx.defs.register_schema(schema)
table = {torch.ops.aten.leaky_relu.default: leaky_relu}
program = torch.onnx.export(nn.LeakyReLU(0.2), (x,), dynamo=True, custom_translation_table=table, output_names=["y"])
program.save(folder / "table.onnx")


# TorchScript: `symbolic` of an autograd function. The suffix of an attribute's name is its type: _f float, _i int, _s
# string.
class LeakyReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        return torch.where(x >= 0, x, x * slope)

    @staticmethod
    def symbolic(g, x, slope):
        return g.op("graft::LeakyReLU", x, alpha_f=slope).setType(x.type())


class Network(nn.Module):
    def forward(self, x):
        return LeakyReLU.apply(x, 0.2)


torch.onnx.export(Network(), (x,), folder / "torchscript.onnx", dynamo=False, output_names=["y"])

for name in ("table", "torchscript"):
    for node in onnx.load(folder / f"{name}.onnx").graph.node:
        slope = next(attribute.f for attribute in node.attribute if attribute.name == "alpha")
        print(f"{name}.onnx: {node.domain}::{node.op_type}, alpha {slope:.2f}")
