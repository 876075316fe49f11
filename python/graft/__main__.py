"""The command `graft` of the wheel, and `python -m graft`. Replaces this process by the program of this package.
GRAFT_PYTHON passes this interpreter, and so its TensorRT, to the program."""

from __future__ import annotations

import os
import pathlib
import sys

# The program in a wheel or a build, and in an installation, relative to the folder of this package.
PROGRAMS = ("bin/graft", "../../../../bin/graft")


def main() -> None:
    folder = pathlib.Path(__file__).absolute().parent  # not resolved: in a build this file is a link into the sources
    programs = [pathlib.Path(os.path.normpath(folder / program)) for program in PROGRAMS]
    program = next((path for path in programs if path.is_file()), None)
    if program is None:
        sys.exit(f"error: the program graft was not found with this package ({' or '.join(map(str, programs))})")
    os.environ.setdefault("GRAFT_PYTHON", sys.executable)
    os.execv(program, ["graft", *sys.argv[1:]])


if __name__ == "__main__":
    main()
