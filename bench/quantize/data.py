# data.py - writes the networks of accuracy.py, each with calibration data and test data.
"""Usage: python bench/quantize/data.py FOLDER --wheel rapidocr_onnxruntime-1.4.4-py3-none-any.whl [--box3d NAME.pb]

Writes FOLDER/NETWORK/ for each of these, with the network as it came, task.json, calibration.npz (or a folder of them, where
sizes differ) and test.npz:

digits        examples/digits: 450 held-out scans of scikit-learn's, and 300 of those that it was trained with.
sized_digits  tests/golden/quantize: the same held-out scans stretched to nine sizes, through spatial pyramid pooling.
recognition   PP-OCRv4's recognition of text (Chinese and English, 6,625 signs, 10.8 MB), trained by its makers: from the wheel
              `pip download --no-deps rapidocr-onnxruntime==1.4.4`. Lines of English words and numbers are drawn with
              Debian's fonts-dejavu in random sizes, faces, colors, angles, blur and noise; the text is the label.
direction     PP-OCR's classifier of upright and turned text (0.6 MB) from the same wheel; half of the lines are turned.
box3d         tests/golden/generators/make_tensorflow_networks.py's 3-D boxes from VGG-16 at full size, for which
              weights are random and no labels exist: images are of shapes and gradients, and the f32 network is the
              measure.

Everything is seeded. Calibration and test lines are drawn apart, with different words, seeds and noise. Needs numpy, Pillow
and scikit-learn: pip install pillow==13.0.0 scikit-learn==1.9.1.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import zipfile

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = (pathlib.Path(__file__).parent / "words.txt").read_text().split()
FACES = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSansCondensed",
    "DejaVuSansCondensed-Bold",
    "DejaVuSansMono",
    "DejaVuSansMono-Bold",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-Italic",
    "DejaVuSerifCondensed",
)


def line_of_text(random: np.random.Generator, words: list[str]) -> str:
    parts = []
    for _ in range(int(random.integers(1, 4))):
        word = str(random.choice(words))
        kind = random.integers(5)
        if kind == 0:
            word = word.upper()
        elif kind == 1:
            word = word.capitalize()
        elif kind == 2:
            word = str(random.integers(10, 100000))
        if sum(map(len, parts)) + len(word) > 18:
            break
        parts.append(word)
    return " ".join(parts)


def draw(text: str, random: np.random.Generator, fonts: pathlib.Path) -> Image.Image:
    face = fonts / f"{random.choice(FACES)}.ttf"
    font = ImageFont.truetype(str(face), int(random.integers(14, 56)))
    paper = random.integers(120, 256, 3)
    ink = np.clip(paper - random.integers(45, 200) + random.integers(-20, 21, 3), 0, 255)
    if random.random() < 0.3:
        paper, ink = ink, paper
    left, top, right, bottom = font.getbbox(text)
    margin = random.integers(2, 9, 4)
    size = (int(right - left + margin[0] + margin[1]), int(bottom - top + margin[2] + margin[3]))
    image = Image.new("RGB", size, tuple(map(int, paper)))
    ImageDraw.Draw(image).text((int(margin[0] - left), int(margin[2] - top)), text, tuple(map(int, ink)), font)
    image = image.rotate(random.uniform(-2.5, 2.5), Image.Resampling.BICUBIC, True, None, None, tuple(map(int, paper)))
    image = image.filter(ImageFilter.GaussianBlur(random.uniform(0, 0.04) * font.size))
    noise = random.normal(0, random.uniform(0, 30), (image.height, image.width, 3))
    light = np.linspace(random.uniform(0.75, 1.1), random.uniform(0.75, 1.1), image.width)[None, :, None]
    return Image.fromarray(np.clip(np.asarray(image) * light + noise, 0, 255).astype("uint8"))


def as_network_wants(image: Image.Image, width: int) -> np.ndarray:
    """Prepares a line as PP-OCR does: 48 pixels high, blue first, -1 to 1, with zeros after the line."""
    scaled = image.resize((min(width, -(-48 * image.width // image.height)), 48), Image.Resampling.BILINEAR)
    pixels = np.asarray(scaled, "float32")[:, :, ::-1].transpose(2, 0, 1) / 127.5 - 1
    result = np.zeros((3, 48, width), "float32")
    result[:, :, : pixels.shape[2]] = pixels
    return result


def lines(count: int, width: int, seed: int, words: list[str], fonts: pathlib.Path, turned: bool) -> dict:
    random = np.random.default_rng(seed)
    images, labels = [], []
    for _ in range(count):
        text = line_of_text(random, words)
        image = draw(text, random, fonts)
        is_turned = turned and random.random() < 0.5
        images.append(as_network_wants(image.rotate(180) if is_turned else image, width))
        labels.append(int(is_turned) if turned else text)
    return {"images": np.stack(images), "labels": np.array(labels)}


def shapes(count: int, side: int, seed: int) -> np.ndarray:
    """Returns N x side x side x 3 with mean 0: gradients, with ellipses and boxes in front, and noise."""
    random = np.random.default_rng(seed)
    result = []
    for _ in range(count):
        corners = random.uniform(0, 255, (2, 2, 3)).astype("uint8")
        image = Image.fromarray(corners).resize((side, side), Image.Resampling.BILINEAR)
        pen = ImageDraw.Draw(image)
        for _ in range(int(random.integers(4, 12))):
            x, y = random.integers(0, side, 2)
            width, height = random.integers(side // 16, side // 2, 2)
            shape = pen.ellipse if random.random() < 0.5 else pen.rectangle
            shape((int(x), int(y), int(x + width), int(y + height)), tuple(map(int, random.integers(0, 256, 3))))
        pixels = np.asarray(image, "float32") + random.normal(0, 8, (side, side, 3))
        result.append((np.clip(pixels, 0, 255) / 127.5 - 1).astype("float32"))
    return np.stack(result)


def write(folder: pathlib.Path, network: bytes | pathlib.Path, task: dict, calibration: dict, test: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(network, bytes):
        (folder / task["network"]).write_bytes(network)
    else:
        shutil.copyfile(network, folder / task["network"])
    (folder / "task.json").write_text(json.dumps(task, indent=1) + "\n")
    np.savez(folder / "calibration.npz", **calibration)
    np.savez(folder / "test.npz", **test)
    print(f"{folder.name}: {', '.join(f'{key} {list(value.shape)}' for key, value in test.items())}")


def digits(folder: pathlib.Path) -> None:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    # The split of tools/train_digits.py.
    data = load_digits()
    images = (data.images / 16.0).astype("float32")[:, None]
    train, test, _, labels = train_test_split(
        images, data.target.astype("int64"), test_size=450, random_state=20, stratify=data.target
    )
    held_out = np.load(ROOT / "examples" / "digits" / "digits_test.npz")
    if not np.array_equal(test, held_out["images"]):
        raise SystemExit(
            "scikit-learn's split is not the one of examples/digits/digits_test.npz: training data is unknown"
        )
    task = {"network": "digits.onnx", "kind": "classes", "input": "image", "output": "logits"}
    write(
        folder / "digits",
        ROOT / "examples" / "digits" / "digits.onnx",
        task,
        {"image": train[:300]},
        {"image": test, "labels": labels},
    )


def sized_digits(folder: pathlib.Path) -> None:
    source = ROOT / "tests" / "golden" / "quantize"
    arrays = np.load(source / "sized_digits.npz")
    target = folder / "sized_digits"
    inputs = target / "calibration"
    inputs.mkdir(parents=True, exist_ok=True)
    task = {"network": "sized_digits.onnx", "kind": "classes", "input": "image", "output": "logits"}
    test = {}
    for key in arrays.files:
        values = arrays[key]
        if key.startswith("calibration_"):
            for i, image in enumerate(values):
                size = key.removeprefix("calibration_")
                np.savez(inputs / f"{i:02}_{size}.npz", image=image[None].astype("float32") / 16)
        elif key.startswith("test_"):
            test[key.replace("test_", "image_")] = values.astype("float32") / 16
        else:
            test[key] = values
    shutil.copyfile(source / task["network"], target / task["network"])
    (target / "task.json").write_text(json.dumps(task, indent=1) + "\n")
    np.savez(target / "test.npz", **test)
    print(f"sized_digits: {len(list(inputs.iterdir()))} to calibrate with")


def read_text(folder: pathlib.Path, wheel: pathlib.Path, fonts: pathlib.Path) -> None:
    models = "rapidocr_onnxruntime/models"
    with zipfile.ZipFile(wheel) as archive:
        recognition = archive.read(f"{models}/ch_PP-OCRv4_rec_infer.onnx")
        direction = archive.read(f"{models}/ch_ppocr_mobile_v2.0_cls_infer.onnx")
    known, unknown = WORDS[::2], WORDS[1::2]
    for name, network, kind, width, turned in (
        ("recognition", recognition, "text", 320, False),
        ("direction", direction, "classes", 192, True),
    ):
        task = {
            "network": f"{name}.onnx",
            "kind": kind,
            "input": "x",
            "shape": f"?x3x48x{width}",
            "output": None,
            "from": wheel.name,
        }
        calibration = lines(64, width, 1, known, fonts, turned)
        test = lines(2000 if turned else 500, width, 2, unknown, fonts, turned)
        test["x"] = test.pop("images")
        write(folder / name, network, task, {"x": calibration["images"]}, test)


def box3d(folder: pathlib.Path, network: pathlib.Path) -> None:
    task = {"network": "box3d.pb", "kind": "boxes", "input": "image", "output": None}
    write(folder / "box3d", network, task, {"image": shapes(24, 224, 1)}, {"image": shapes(24, 224, 2)})


def main() -> None:
    parser = argparse.ArgumentParser(description="networks and data for bench/quantize/accuracy.py")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--wheel", type=pathlib.Path, help="of rapidocr-onnxruntime 1.4.4; without it, no text")
    parser.add_argument("--fonts", type=pathlib.Path, default="/usr/share/fonts/truetype/dejavu")
    parser.add_argument(
        "--box3d",
        type=pathlib.Path,
        help="what tests/golden/generators/make_tensorflow_networks.py made; without it, no boxes",
    )
    arguments = parser.parse_args()
    digits(arguments.folder)
    sized_digits(arguments.folder)
    if arguments.wheel:
        read_text(arguments.folder, arguments.wheel, arguments.fonts)
    if arguments.box3d:
        box3d(arguments.folder, arguments.box3d)


if __name__ == "__main__":
    main()
