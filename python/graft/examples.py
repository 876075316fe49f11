# A trained network to try Graft with, which comes with the package.
"""DIGITS tells handwritten digits of 8 x 8 pixels apart (99.3 % of those that training never saw): a frozen TensorFlow graph
with the input `image`, f32[batch, 8, 8, 1], and the outputs `Identity`, f32[batch, 10] before a softmax, and `Identity_1`, an
embedding. DIGITS_ONNX has the same weights as PyTorch exported them, with f32[batch, 1, 8, 8] and the outputs `logits` and
`embedding`. DIGITS_IMAGES has `images`, f32[450, 1, 8, 8] from 0 to 1, and `labels`, i64[450].

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
            sys.exit(f"{copy}: a file of that name is here already, with other contents\nChoose another folder")
        if not is_there:
            with copy.open("xb") as written:
                written.write(file.read_bytes())
        print(f"wrote {copy}")


if __name__ == "__main__":
    main()
