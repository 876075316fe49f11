# `python -m graft.runtime`: the process as a program.
"""Entry point; everything is in worker.py."""

import sys

from graft.runtime.worker import main

if __name__ == "__main__":
    sys.exit(main())
