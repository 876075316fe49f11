"""`python -m graft.bench`: the entry point of `graft bench --op`. The implementation is in cli.py."""

import sys

from graft.bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
