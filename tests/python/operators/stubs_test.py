# Tests that the type stubs agree with the operators' definitions.
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("GRAFT_SOURCE_DIR", pathlib.Path(__file__).parents[3]))


def test_stubs_are_up_to_date():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "generate_stubs.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
