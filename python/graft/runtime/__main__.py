"""`python -m graft.runtime`: the entry point of the process. The implementation is in worker.py."""

import os
import sys


def main() -> int:
    # NumPy starts one thread per core for its matrix products, which doubles the time of its import; onnxruntime has
    # its own threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from graft.runtime.worker import main as answer

    return answer()


if __name__ == "__main__":
    sys.exit(main())
