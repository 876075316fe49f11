# A trained network and its test data, which come with the package.
"""DIGITS is a frozen TensorFlow graph that classifies handwritten digits of 8 x 8 pixels, with a top-1 accuracy of
99.3 % on its test set. Its input is `image`, f32[batch, 8, 8, 1]; its outputs are `Identity`, f32[batch, 10] before the
softmax, and `Identity_1`, an embedding. DIGITS_ONNX is the network with the same weights as PyTorch exported it, with
the input f32[batch, 1, 8, 8] and the outputs `logits` and `embedding`. DIGITS_IMAGES is the test set: `images`,
f32[450, 1, 8, 8] from 0 to 1, and `labels`, i64[450].

    python -m graft.examples        # copies these files into the current folder
"""

from __future__ import annotations

import pathlib
import sys

_DATA = pathlib.Path(__file__).with_name("data")

DIGITS = _DATA / "digits.pb"
DIGITS_ONNX = _DATA / "digits.onnx"
DIGITS_IMAGES = _DATA / "digits_test.npz"


def main() -> None:
    for file in (DIGITS, DIGITS_ONNX, DIGITS_IMAGES):
        copy = pathlib.Path(file.name)
        is_there = copy.is_symlink() or copy.exists()
        if is_there and (not copy.is_file() or copy.read_bytes() != file.read_bytes()):
            sys.exit(f"{copy}: this file already exists and has other contents\nChoose another folder")
        if not is_there:
            with copy.open("xb") as written:
                written.write(file.read_bytes())
        print(f"wrote {copy}")


if __name__ == "__main__":
    main()
