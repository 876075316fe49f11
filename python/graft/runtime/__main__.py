# `python -m graft.runtime`: the process as a program.
"""Entry point; everything is in worker.py."""

import os
import sys


def main() -> int:
    # NumPy starts as many threads for its matrix products as there are cores, which doubles what its import takes, and
    # onnxruntime has its own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from graft.runtime.worker import main as answer

    return answer()


if __name__ == "__main__":
    sys.exit(main())
