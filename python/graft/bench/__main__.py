# `python -m graft.bench`: the implementation of `graft bench --op` as a program.
"""Entry point; the implementation is in cli.py."""

import sys

from graft.bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
