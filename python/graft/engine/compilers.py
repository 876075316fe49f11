# The tools that compile a library of operators: whether CMake finds each tool, and its version.
from __future__ import annotations

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from typing import Any

# The minimum versions in deps.toml and in the projects of `graft new`.
NVCC_MINIMUM = "12.8"
CMAKE_MINIMUM = "3.25"
# The first compilers that support every C++20 feature in operator definitions; `using enum` came last.
GCC_MINIMUM = "11"
CLANG_MINIMUM = "13"


def version_of(program: str, pattern: str) -> str | None:
    """Returns the version that a program prints, which is the first group of the regular expression `pattern`. Returns
    None where the program does not run or prints no version."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(pattern, done.stdout)
    return found[1] if done.returncode == 0 and found else None


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def first_of(programs: list[str | None], pattern: str, minimum: str = "") -> dict[str, Any]:
    """Returns `path` and `version` of the first program that exists and has at least the version `minimum`. If no
    program has, `path` is empty, and `too_old` is the path of the first program that exists. `pattern` finds the
    version as in version_of()."""
    too_old: dict[str, Any] = {}
    for program in programs:
        path = shutil.which(program) if program else None
        version = version_of(path, pattern) if path else None
        if path and version and numbers(version) >= numbers(minimum or "0"):
            return {"path": path, "version": version, "minimum": minimum}
        if path and version and not too_old:
            too_old = {"too_old": path, "version": version}
    return {"path": "", "minimum": minimum} | too_old


def compiler() -> dict[str, Any]:
    """Returns the C++ compiler that CMake uses, as first_of() returns a program; `unknown` is the path of a compiler
    that is neither GCC nor Clang. CMake tries no other compiler if this one is too old."""
    # CMake accepts CXX with arguments. After a launcher, as in "ccache g++", the compiler is the last word that is a
    # program.
    named = reversed(shlex.split(os.environ.get("CXX", "")))
    programs = list(named) or ["c++", "g++", "clang++"]
    taken = next((program for program in programs if shutil.which(program)), None)
    gcc = first_of([taken], r"\) (\d+(?:\.\d+)+)", GCC_MINIMUM)
    clang = first_of([taken], r"clang version (\d+(?:\.\d+)+)", CLANG_MINIMUM)
    if clang["path"] or "too_old" in clang:
        return clang
    path = shutil.which(taken) if taken else None
    return gcc if gcc["path"] or "too_old" in gcc or path is None else gcc | {"unknown": path}


def build_tool() -> dict[str, Any]:
    """Returns the build tool of CMake's default generator, Make or Ninja, as first_of() returns a program. `install` is
    the command that installs the tool."""
    with_ninja = "Ninja" in os.environ.get("CMAKE_GENERATOR", "")
    # The names that CMake looks for; ninja-build is the name in Fedora's package.
    found = first_of(["ninja-build", "ninja", "samu"] if with_ninja else ["gmake", "make"], r"(\d+(?:\.\d+)+)")
    return found | {"install": "apt-get install ninja-build" if with_ninja else "apt-get install make"}


def find_eigen() -> str:
    """Returns the folder of Eigen's CMake package that find_package finds without further settings, or an empty
    string."""
    prefixes = [pathlib.Path(text) for text in os.environ.get("CMAKE_PREFIX_PATH", "").split(":") if text]
    programs = [pathlib.Path(text) for text in os.environ.get("PATH", "").split(":") if text]
    prefixes += [folder.parent if folder.name in ("bin", "sbin") else folder for folder in programs]
    folders = [pathlib.Path(text) for text in [os.environ.get("Eigen3_DIR", "")] if text]  # noqa: SIM112 (CMake's)
    for prefix in [*prefixes, pathlib.Path("/usr/local"), pathlib.Path("/usr")]:
        folders += [prefix / "share" / "eigen3" / "cmake", prefix / "lib" / "cmake" / "eigen3"]
    return next((str(folder) for folder in folders if (folder / "Eigen3Config.cmake").is_file()), "")


def compilers() -> dict[str, Any]:
    # The order of cmake/FindCudaCompiler.cmake. The last two paths are for a checkout and for the wheel's extra
    # `[cuda]`.
    checkout = pathlib.Path(sys.prefix).parent / "cuda" / "bin" / "nvcc"
    wheel = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin" / "nvcc"
    nvcc = [os.environ.get("CUDACXX"), "nvcc", "/usr/local/cuda/bin/nvcc", str(checkout), str(wheel)]
    eigen = find_eigen()
    return {
        "cmake": first_of(["cmake"], r"version (\d+(?:\.\d+)+)", CMAKE_MINIMUM),
        "compiler": compiler(),
        "eigen": {"path": eigen},
        "make": build_tool(),
        "nvcc": first_of(nvcc, r"release (\d+\.\d+)", NVCC_MINIMUM),
    }
