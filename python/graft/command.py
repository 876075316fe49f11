# The command `graft` of the wheel.
"""It becomes the program, which finds this interpreter and its TensorRT by GRAFT_PYTHON."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).parent / "bin" / "graft"
    os.environ.setdefault("GRAFT_PYTHON", sys.executable)
    os.execv(program, ["graft", *sys.argv[1:]])


if __name__ == "__main__":
    main()
