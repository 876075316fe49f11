"""Tests that libgraft.so exports only the symbols of the toolkit, and the names that docs/versions.md promises."""

import os
import re
import subprocess
from pathlib import Path

LIBRARY = Path(os.environ["GRAFT_BIN"]).parents[1] / "lib" / "libgraft.so"
SOURCE = Path(os.environ["GRAFT_SOURCE_DIR"])
HEADERS = SOURCE / "include" / "graft" / "toolkit"


def exported(library: Path = LIBRARY) -> list[str]:
    listed = subprocess.run(
        ["nm", "-D", "-C", "--defined-only", "--format=posix", library], capture_output=True, text=True, check=True
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


def test_the_soname_has_the_major_and_the_minor_version() -> None:
    listed = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
    version = re.search(r"project\(graft VERSION (\d+\.\d+)", (SOURCE / "CMakeLists.txt").read_text())
    assert version is not None and f"Library soname: [libgraft.so.{version[1]}]" in listed


def test_the_functions_of_c_are_exported() -> None:
    header = (SOURCE / "include" / "graft" / "graft_c.h").read_text()
    functions = set(re.findall(r"^GRAFT_API [^(]*?(graft_\w+)\(", header, re.M))
    names = [LIBRARY.with_name(name) for name in ("libgraft_plugins.so", "libgraft_c.so")]
    library = next(path for path in names if path.is_file())
    assert len(functions) > 15 and functions - set(exported(library)) == set()
