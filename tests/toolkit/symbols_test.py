"""Tests that libgraft.so exports only the symbols of the toolkit."""

import os
import re
import subprocess
from pathlib import Path

LIBRARY = Path(os.environ["GRAFT_BIN"]).parents[1] / "lib" / "libgraft.so"
HEADERS = Path(os.environ["GRAFT_SOURCE_DIR"]) / "include" / "graft" / "toolkit"


def exported() -> list[str]:
    listed = subprocess.run(
        ["nm", "-D", "-C", "--defined-only", "--format=posix", LIBRARY], capture_output=True, text=True, check=True
    )
    return [re.sub(r" \w [0-9a-f]+( [0-9a-f]+)?\s*$", "", line) for line in listed.stdout.splitlines()]


def test_only_the_toolkit_is_exported() -> None:
    names = exported()
    assert any(name.startswith("graft::toolkit::convert(") for name in names)
    assert [name for name in names if not name.startswith("graft::toolkit::")] == []


def test_public_headers_need_the_standard_library_and_public_headers_alone() -> None:
    for header in HEADERS.glob("*.hpp"):
        for included in re.findall(r'#include "(.*)"', header.read_text()):
            assert (HEADERS.parents[1] / included).is_file(), f"{header.name}: {included}"
        assert not re.search(r"#include <.*[./].*>", header.read_text()), header.name
