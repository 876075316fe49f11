# make_goldens.py - writes the golden values of Graft's operators, computed by PyTorch, to tests/golden/ops.
"""Writes tests/golden/ops/<operator>.npz and <operator>.json.

src/ops/<operator>/<operator>_golden.py has the parts of an operator: its maths and its cases, which `make(out)` writes.
It does not use Graft: PyTorch computes every result, and where TensorFlow's own tf.math.l2_normalize defines the
meaning (epsilon_mode "max"), it runs too. A generator stops if the two disagree.

The JSON lists the cases; each has
  name         unique within the file
  dtype        f32, f16, bf16, i8, i32 or i64
  shape        of x; y has that of its array
  attributes   with Graft's names; x_scale and y_scale for i8 only
  x, y         names of arrays in the .npz (several cases may share one x)
  more         of an operator with several inputs: the names of the others, integers in their types
               and otherwise as x
  more_y       of an operator with several outputs that are compared: the names of the others
  y_f32        only where float32 arithmetic cannot compute y (a square overflows or underflows): the framework's
               result in float32
  absolute     only where the operator's own definition is in float32, as that of positions: its tolerance for y
  note         the purpose of the case, if it is not obvious

x is float32 for f32, f16 and bf16 (each value exactly representable in the dtype) and otherwise of its own type. y is
float64: the operator in double precision on that x, not yet rounded to the dtype, or int64 where it computes indices;
attributes are rounded to float32 first, as they are stored. For i8, y is int8: op(x * x_scale) / y_scale, rounded half
to even and saturated; no value lies so near to a rounding boundary that float32 arithmetic could land on the other
side, except where both are exact.

Made with (Python 3.11, CPU): torch==2.8.0 tensorflow-cpu==2.19.1 numpy==2.1.3 onnx==1.18.0 onnxruntime==1.22.1
Run: python tests/golden/generators/make_goldens.py [--out tests/golden/ops] [OPERATOR...]
"""

import argparse
import pathlib

from operator_files import load, operator_folders


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/golden/ops"))
    parser.add_argument(
        "operators", nargs="*", metavar="OPERATOR", help="folders in src/ops; all of them where none is named"
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for folder in arguments.operators or operator_folders():
        load(folder, "golden").make(arguments.out)


if __name__ == "__main__":
    main()
