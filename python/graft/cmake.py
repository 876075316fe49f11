# The folder of Graft's CMake package, with which libraries of operators and C++ programs are compiled.
from __future__ import annotations

import pathlib

from graft.errors import Error

PACKAGE = pathlib.Path(__file__).resolve().parent
# The prefixes of a wheel and of an installation.
PREFIXES = (PACKAGE, PACKAGE.parents[3])
LIBRARIES = ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")


def cmake_prefix() -> str:
    """Returns the folder for CMAKE_PREFIX_PATH in which `find_package(graft)` finds Graft's headers and libraries.

    In a shell, where the second command runs only if Graft was found:
    prefix="$(python3 -c 'import graft; print(graft.cmake_prefix())')" && cmake -S program -B build -DCMAKE_PREFIX_PATH="$prefix"

    The projects of `graft new` call this function themselves.

    Raises graft.Error where this package is neither in a wheel nor installed, for example in Graft's build folder.
    """
    for prefix in PREFIXES:
        if any((prefix / library / "cmake" / "graft" / "graftConfig.cmake").is_file() for library in LIBRARIES):
            return str(prefix)
    raise Error(
        f"{PACKAGE}: Graft's CMake package is not installed with this Python package; install Graft's wheel, or run "
        "`make install` in "
        "Graft's checkout"
    )
