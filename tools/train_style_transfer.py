# Trains the network of examples/style_transfer and exports it to ONNX.
"""Trains a small fast-style-transfer network with PyTorch and writes examples/style_transfer/*.onnx.

The network is that of Johnson et al. 2016, Perceptual Losses for Real-Time Style Transfer, with few channels: reflection
padding before every convolution, instance normalization after it, residual blocks, nearest-neighbor upsampling.

There is no pretrained network to compare features with, so the losses are made by hand:
- style: patches of the result, on three scales, have the distribution of patches of a painting (sliced Wasserstein distance
  over random projections, new ones in each step; Elnekave and Weiss 2022 do the same without a network);
- content: edges of the result's brightness are those of the picture's brightness.
Painting and pictures are drawn by code, so nothing here comes from anybody else.

Both exporters of PyTorch write the network, and nothing is cleaned up afterwards but stack traces.

Made with (Python 3.11, CPU, one thread): torch==2.8.0 onnx==1.18.0 onnxscript==0.5.4 numpy==2.1.3
Run: python tools/train_style_transfer.py [--out examples/style_transfer] [--steps 350]
"""

import argparse
import pathlib
import sys
import time
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "examples" / "style_transfer"))
import pictures  # noqa: E402

SEED = 11
CHANNELS = 8, 16, 24
BLOCKS = 3
CROP = 96
BATCH = 2
SCENES = 12
PROJECTIONS = 32
PATCH = 7
STROKES = 8.0  # weight of the strokes relative to the colors


class ConvLayer(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride=1):
        super().__init__()
        self.pad = nn.ReflectionPad2d(kernel // 2)
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride)

    def forward(self, x):
        return self.conv(self.pad(x))


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = ConvLayer(channels, channels, 3)
        self.norm1 = nn.InstanceNorm2d(channels, affine=True)
        self.conv2 = ConvLayer(channels, channels, 3)
        self.norm2 = nn.InstanceNorm2d(channels, affine=True)

    def forward(self, x):
        return x + self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))


class UpsampleLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layer = ConvLayer(inputs, outputs, 3)

    def forward(self, x):
        return self.layer(F.interpolate(x, scale_factor=2, mode="nearest"))


class StyleNet(nn.Module):
    """The network: batch x 3 x height x width in 0..1, with sides divisible by 4 -> a painting of the same shape."""

    def __init__(self):
        super().__init__()
        c1, c2, c3 = CHANNELS
        self.encoder = nn.Sequential(
            *(ConvLayer(3, c1, 9), nn.InstanceNorm2d(c1, affine=True), nn.ReLU()),
            *(ConvLayer(c1, c2, 3, 2), nn.InstanceNorm2d(c2, affine=True), nn.ReLU()),
            *(ConvLayer(c2, c3, 3, 2), nn.InstanceNorm2d(c3, affine=True), nn.ReLU()),
        )
        self.blocks = nn.Sequential(*[ResidualBlock(c3) for _ in range(BLOCKS)])
        self.decoder = nn.Sequential(
            *(UpsampleLayer(c3, c2), nn.InstanceNorm2d(c2, affine=True), nn.ReLU()),
            *(UpsampleLayer(c2, c1), nn.InstanceNorm2d(c1, affine=True), nn.ReLU()),
            ConvLayer(c1, 3, 9),
        )

    def forward(self, image):
        return torch.sigmoid(self.decoder(self.blocks(self.encoder(image))))


def paint_style(size=256):
    """Returns a painting of thick strokes along whirls, in blue, teal and gold."""
    random = np.random.default_rng(SEED)
    height_map = pictures.smooth_noise((size, size), size / 2.5, random)
    slope_y, slope_x = np.gradient(height_map)
    colors = (
        np.array([[12, 22, 70], [20, 60, 140], [40, 120, 180], [90, 190, 190], [240, 200, 70], [250, 240, 170]]) / 255
    )
    light = pictures.smooth_noise((size, size), size / 3, random)
    picture = np.tile(colors[1], (size, size, 1))
    offsets = np.stack(np.mgrid[-3:4, -3:4], -1).reshape(-1, 2)
    for radius, count in [(3.0, 3000), (2.0, 4500)]:
        brush = offsets[np.hypot(*offsets.T) <= radius]
        for _ in range(count):
            y, x = random.uniform(0, size, 2)
            at = int(y), int(x)
            tone = np.clip(2.2 + 1.35 * light[at] + random.normal(0, 0.55), 0, 4.99)
            color = colors[int(tone)] * (1 - tone % 1) + colors[int(tone) + 1] * (tone % 1)
            color = np.clip(color + random.normal(0, 0.03, 3), 0, 1)
            for _ in range(13):
                at = int(y) % size, int(x) % size
                along = np.array([slope_x[at], -slope_y[at]])
                along /= np.hypot(*along) + 1e-9
                spots = (np.array([y, x]) + brush).astype(int) % size
                edge = (brush @ np.array([along[1], -along[0]])) / radius
                shade = 1 + 0.22 * edge[:, None]
                picture[spots[:, 0], spots[:, 1]] = np.clip(color * shade, 0, 1)
                y, x = np.array([y, x]) + 1.3 * along
    return torch.from_numpy(picture.transpose(2, 0, 1)[None].astype(np.float32))


def leaves(random):
    """Returns a picture of overlapping discs of all sizes, with edges as frequent as in photographs."""
    y, x = np.mgrid[:CROP, :CROP]
    picture = np.tile(random.uniform(0, 1, 3), (CROP, CROP, 1))
    for radius in np.sort(CROP * 0.5 / random.uniform(1, 12, 60))[::-1]:
        center_y, center_x = random.uniform(0, CROP, 2)
        shading = random.uniform(-0.3, 0.3) * (x - center_x) / radius
        disc = np.hypot(y - center_y, (x - center_x) * random.uniform(0.5, 2)) < radius
        picture[disc] = np.clip(random.uniform(0, 1, 3) + shading[disc][:, None], 0, 1)
    return picture.astype(np.float32)


def content_pictures(random):
    scenes = [pictures.draw_content(seed=100 + i) for i in range(SCENES)]
    discs = [leaves(random) for _ in range(SCENES)]
    return [torch.from_numpy(p.transpose(2, 0, 1).copy()) for p in scenes + discs]


def crop(picture, generator):
    top = int(torch.randint(0, picture.shape[-2] - CROP + 1, (), generator=generator))
    left = int(torch.randint(0, picture.shape[-1] - CROP + 1, (), generator=generator))
    cut = picture[..., top : top + CROP, left : left + CROP]
    return cut.flip(-1) if torch.rand((), generator=generator) < 0.5 else cut


def style_loss(result, style, generator):
    total = 0.0
    for scale in (1, 2, 4):
        small, wanted = (F.avg_pool2d(p, scale) if scale > 1 else p for p in (result, style))
        for size, count, weight in ((1, 8, 1.0), (PATCH, PROJECTIONS, STROKES)):
            filters = torch.randn(count, 3, size, size, generator=generator)
            if size > 1:
                filters -= filters.mean((2, 3), keepdim=True)  # strokes only; single pixels determine the colors
            filters /= filters.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
            have = F.conv2d(small, filters).flatten(2).sort().values
            want = F.conv2d(wanted, filters).flatten(2).sort().values
            total = total + weight * F.mse_loss(have, want.expand_as(have))
    return total


def brightness_edges(picture, scale):
    gray = F.avg_pool2d((picture * torch.tensor([0.3, 0.6, 0.1]).view(1, 3, 1, 1)).sum(1, keepdim=True), scale)
    return gray[..., 1:, :-1] - gray[..., :-1, :-1], gray[..., :-1, 1:] - gray[..., :-1, :-1]


def content_loss(result, content):
    total = 0.0
    for scale in (4, 8):
        for have, want in zip(brightness_edges(result, scale), brightness_edges(content, scale)):
            total = total + F.smooth_l1_loss(have, 1.2 * want, beta=0.05)
    return total


def train(steps, content_weight, look):
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    style = paint_style()
    contents = content_pictures(np.random.default_rng(SEED))
    model = StyleNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps, pct_start=0.1)
    started = time.monotonic()
    for step in range(steps):
        chosen = torch.randint(0, len(contents), (BATCH,), generator=generator).tolist()
        content = torch.stack([crop(contents[i], generator) for i in chosen])
        result = model(content)
        style_part = style_loss(result, crop(style, generator), generator)
        content_part = content_weight * content_loss(result, content)
        optimizer.zero_grad()
        (style_part + content_part).backward()
        optimizer.step()
        schedule.step()
        if (step + 1) % 100 == 0:
            print(
                f"step {step + 1}: style {style_part:.4f}, content {content_part:.4f}, "
                f"{time.monotonic() - started:.0f} s",
                flush=True,
            )
            if look:
                with torch.no_grad():
                    scene = torch.from_numpy(pictures.draw_content().transpose(2, 0, 1)[None].copy())
                    shown = torch.cat([scene, model(scene), style[..., :192, :]], 3)
                pictures.write_png(look, pictures.pixels(shown.numpy()))
    return model.eval()


def delete_stack_traces(path):
    """Removes the source locations that the newer exporter stores for each node, with folders of this machine."""
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [note for note in node.metadata_props if note.key != "pkg.torch.onnx.stack_trace"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, path)


def export(model, out):
    """Exports the network as PyTorch's documentation shows, with each exporter; f16 after a cast by half()."""
    example = torch.zeros(1, 3, 64, 96)
    names = {"input_names": ["image"], "output_names": ["painting"]}
    axes = {0: "batch", 2: "height", 3: "width"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (example,),
            str(out / "style.onnx"),
            dynamo=False,
            opset_version=17,
            **names,
            dynamic_axes={"image": axes, "painting": axes},
        )
        batch, height, width = (torch.export.Dim(axes[i]) for i in (0, 2, 3))
        torch.onnx.export(
            model,
            (torch.zeros(2, 3, 64, 96),),
            str(out / "style_dynamo.onnx"),
            dynamo=True,
            external_data=False,
            **names,
            dynamic_shapes={"image": {0: batch, 2: 4 * height, 3: 4 * width}},
        )
        delete_stack_traces(out / "style_dynamo.onnx")
        torch.onnx.export(
            model.half(),
            (example.half(),),
            str(out / "style_f16.onnx"),
            dynamo=False,
            opset_version=17,
            **names,
            dynamic_axes={"image": axes, "painting": axes},
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "examples" / "style_transfer")
    parser.add_argument("--steps", type=int, default=350)
    parser.add_argument("--content-weight", type=float, default=2.0)
    parser.add_argument("--look", type=pathlib.Path, help="a PNG file to write while training")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    model = train(arguments.steps, arguments.content_weight, arguments.look)
    export(model, arguments.out)
    for path in sorted(arguments.out.glob("*.onnx")):
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
