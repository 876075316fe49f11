# The generated pages: up to date, and about every operator and command.
import subprocess
import sys

from conftest import PROGRAM, SOURCE


def test_committed_pages_are_what_the_program_says():
    done = subprocess.run(
        [sys.executable, SOURCE / "tools" / "generate_docs.py", "--check", "--graft", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_each_operator_has_a_page(graft):
    index = (SOURCE / "docs" / "ops" / "README.md").read_text()
    for op in graft("ops", "--json").json["operators"]:
        assert f"[{op['name']}](" in index
