# `python -m graft.engine`: the engine driver as a program.
"""Entry point; the implementation is in cli.py."""

import sys

from graft.engine.cli import main

if __name__ == "__main__":
    sys.exit(main())
