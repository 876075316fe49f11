"""`python -m graft.engine`: the entry point of the engine driver. The implementation is in cli.py."""

import sys

from graft.engine.cli import main

if __name__ == "__main__":
    sys.exit(main())
