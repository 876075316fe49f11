# The command `graft` of the wheel.
"""Replaces this process by the program of the wheel. GRAFT_PYTHON passes this interpreter, and so its TensorRT, to the
program."""

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
