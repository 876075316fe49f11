"""Reads facts about a shared library from its ELF file, and finds the reason why the loader refuses the library. The
ELF file has the library's machine, dependencies, exports and imports. Reading the file runs no code of the library;
opening the library does."""

from __future__ import annotations

import os
import pathlib
import platform
import re
import struct
import subprocess
from dataclasses import dataclass
from typing import Any

from graft.engine.events import EngineError
from graft.engine.files import which

# The functions through which TensorRT finds a library's creators. The second one lists only V2 plugins, and
# TensorRT-RTX and TensorRT 11 do not call it.
ENTRY_POINTS = ("getCreators", "getPluginCreators")
# A library of operators exports this function for graft's commands. A library that was built without CUDA exports
# nothing else.
OPERATORS_FUNCTION = "graft_operators"
# REGISTER_TENSORRT_PLUGIN calls this function while the library is opened.
REGISTRY_FUNCTION = "getPluginRegistry"

# The loader's message about a missing symbol version.
VERSION_NOT_FOUND = re.compile(r"(\S+): version `([^']+)' not found \(required by ([^)]+)\)")

MACHINES = {3: "x86", 40: "32-bit ARM", 62: "x86_64", 183: "aarch64", 21: "ppc64", 243: "riscv"}
ELF_MAGIC = b"\x7fELF"
SHARED_OBJECT = 3
LOADED_SEGMENT, DYNAMIC_SEGMENT = 1, 2
DYNAMIC_SECTION, DYNAMIC_SYMBOLS = 6, 11
NEEDED_TAG, FLAGS_TAG = 1, 0x6FFFFFFB
IS_PROGRAM_FLAG = 0x08000000


@dataclass(frozen=True)
class Library:
    """The facts of an ELF file. `exports` and `imports` are names of symbols, mangled for functions of C++."""

    machine: str
    is_shared: bool
    needs: tuple[str, ...] = ()
    exports: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    is_program: bool = False  # a position-independent program, which has the ELF type of a library

    @property
    def registers_itself(self) -> bool:
        """Whether the library uses TensorRT's registry itself, as V2 plugins with REGISTER_TENSORRT_PLUGIN do."""
        return REGISTRY_FUNCTION in self.imports

    @property
    def has_plugins(self) -> bool:
        return self.registers_itself or any(name in self.exports for name in ENTRY_POINTS)

    @property
    def may_bring_plugins(self) -> bool:
        """Whether the library has plugins, or may open another library that has plugins."""
        return self.has_plugins or "dlopen" in self.imports


def read_library(path: pathlib.Path) -> Library | None:
    """Returns the facts of an ELF file, or None for a file that is not ELF, is damaged or cannot be read. Dependencies
    and symbols are read only from 64-bit little-endian files."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if data[:4] != ELF_MAGIC or len(data) < 64:
        return None
    is_64_bit, is_little_endian = data[4] == 2, data[5] == 1
    kind, machine = struct.unpack_from("<HH" if is_little_endian else ">HH", data, 16)
    name = MACHINES.get(machine, f"machine {machine}")
    if not (is_64_bit and is_little_endian):
        return Library(name, kind == SHARED_OBJECT)
    try:
        return Library(name, kind == SHARED_OBJECT, *dynamic_tables(data))
    except (struct.error, IndexError, UnicodeDecodeError):
        return None


def dynamic_tables(data: bytes) -> tuple[tuple[str, ...], frozenset[str], frozenset[str], bool]:
    """Returns the file's dependencies, exports and imports, and whether it is a program, from the sections of the
    dynamic linker."""
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + index * size) for index in range(count)]
    needs: list[str] = []
    exports, imports = set(), set()
    is_program = False
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind not in (DYNAMIC_SECTION, DYNAMIC_SYMBOLS):
            continue
        names = sections[link][4]
        if kind == DYNAMIC_SECTION:
            entries = list(struct.iter_unpack("<qQ", data[offset : offset + length]))
            is_program = any(tag == FLAGS_TAG and value & IS_PROGRAM_FLAG for tag, value in entries)
            needs += [text_at(data, names + value) for tag, value in entries if tag == NEEDED_TAG]
            continue
        for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", data[offset : offset + length]):
            (exports if section else imports).add(text_at(data, names + name))
    return tuple(needs), frozenset(exports - {""}), frozenset(imports - {""}), is_program


def whole_size(head: bytes) -> int:
    """Returns the size in bytes that a 64-bit little-endian ELF file needs to contain all its loaded segments; 0 for
    other files."""
    if head[:4] != ELF_MAGIC or head[4:6] != b"\x02\x01" or len(head) < 64:
        return 0
    (table,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    ends = [table + size * count]
    if size >= 56 and len(head) >= ends[0]:
        for index in range(count):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", head, table + index * size)
            if kind == LOADED_SEGMENT:
                ends.append(offset + length)
    return max(ends)


def damage(path: pathlib.Path) -> dict[str, str] | None:
    """Returns `cause` (a keyword), `why` (a clause) and `next_step` if the path cannot be a library, otherwise None.
    Opens the file only for reading, because loading a truncated library may end the process."""
    if path.is_dir():
        return {
            "cause": "folder",
            "why": "it is a folder",
            "next_step": "Pass the .so files in it, each library by itself",
        }
    if not path.is_file():
        return {
            "cause": "no_file",
            "why": "it is not a regular file" if path.exists() else "no such file",
            "next_step": "Check the path; `graft doctor` prints the path of Graft's library",
        }
    try:
        with path.open("rb") as file:
            head = file.read(65536)
        there = path.stat().st_size
    except OSError as error:
        return {"cause": "no_file", "why": f"it cannot be read: {error.strerror}", "next_step": "Check its permissions"}
    whole = whole_size(head)
    if there != 0 and there >= whole:
        return None
    why = f"it is truncated: it has {there} bytes and needs at least {whole}" if there != 0 else "the file is empty"
    return {"cause": "truncated", "why": why, "next_step": "Copy or download it again"}


def check_damage(path: str) -> None:
    if found := damage(pathlib.Path(path)):
        message = f"plugin library {path}: {found['why']}"
        raise EngineError("plugin_library", message, found["next_step"], library=path, cause=found["cause"])


def check_library(path: str) -> None:
    """Raises EngineError for a file that has no plugin, as far as the ELF files of the library and of its dependencies
    show it. TensorRT is not started, and no code of the library runs."""
    check_damage(path)
    library = read_library(pathlib.Path(path))
    is_openable = library is not None and library.machine == platform.machine() and library.is_shared
    if library is None or not is_openable or library.is_program or library.may_bring_plugins:
        return  # the loader's message has the reason for a file that is not a library of this machine
    found = dependencies(pathlib.Path(path))
    needed = [read_library(pathlib.Path(name)) for name in found.values() if name is not None]
    is_known = bool(found or not library.needs) and all(name is not None for name in found.values())
    if is_known and not any(each is None or each.has_plugins for each in needed):
        raise without_plugins(path)


def without_plugins(path: str) -> EngineError:
    """Returns the error for a library without an entry point that registers no plugins while it is opened."""
    library = read_library(pathlib.Path(path))
    message = (
        f"plugin library {path}: it exports neither {' nor '.join(ENTRY_POINTS)}, and registers no plugin when it is "
        "opened"
    )
    next_step = 'A TensorRT plugin library exports getCreators and setLoggerFinder as extern "C"'
    if library is not None and OPERATORS_FUNCTION in library.exports:
        message = (
            f"plugin library {path}: it has operators for Graft's commands on the CPU, but no plugins, because it was "
            "built without CUDA"
        )
        next_step = "Build it again on a machine with nvcc; cmake prints the compiler that it found"
    mangled = sorted(name for name in library.exports if ENTRY_POINTS[0] in name) if library is not None else []
    if mangled:
        message += f"; it has {mangled[0]}, a C++ function with a mangled name"
        next_step = 'Declare it extern "C"'
    facts = {"cause": "exports", "exports": sorted(library.exports)[:20] if library is not None else []}
    if library is not None and library.registers_itself:
        why = self_registration("but in the registry of another TensorRT library")
        message, next_step = f"{message}; {why['why']}", why["next_step"]
        facts["cause"] = why["cause"]
    return EngineError("plugin_library", message, next_step, library=path, **facts)


def text_at(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()


def dependencies(path: pathlib.Path) -> dict[str, str | None]:
    """Returns for each direct or indirect dependency the path where the loader finds it, or None. Empty without the
    program ldd."""
    tool = which("ldd")
    if tool is None:
        return {}
    done = subprocess.run([tool, str(path)], capture_output=True, text=True, check=False)
    lines = re.findall(r"^\s*(\S+) => (not found|\S+)", done.stdout, re.M)
    by_path = re.findall(r"^\s*(/\S+) \(", done.stdout, re.M)
    return {name: None if found == "not found" else found for name, found in lines} | {path: path for path in by_path}


def missing_libraries(path: pathlib.Path, needs: tuple[str, ...]) -> list[str]:
    """Returns the direct and indirect dependencies of the library that the loader does not find, the direct ones, which
    are in `needs`, first. Libraries that this process has loaded count as found."""
    missing = [name for name, found in dependencies(path).items() if found is None]
    loaded = {
        pathlib.PurePath(line.split()[-1]).name for line in pathlib.Path("/proc/self/maps").read_text().splitlines()
    }
    direct = [name for name in needs if name in missing]
    return [name for name in dict.fromkeys([*direct, *missing]) if name not in loaded]


def refusal_by_loader(path: pathlib.Path, reason: str) -> dict[str, Any]:
    """Returns why the loader refuses a library: `cause` (a keyword), `why` (a sentence), `next_step`, and facts about
    the cause. `reason` is the loader's message."""
    library = read_library(path)
    if library is None:
        return {
            "cause": "not_elf",
            "why": "it is not an ELF file, the format of shared libraries on Linux",
            "next_step": "Pass the .so file itself, not an archive, a linker script, a Git LFS pointer or a .dll",
        }
    if library.machine != platform.machine():
        return {
            "cause": "architecture",
            "why": f"it is built for {library.machine}; this process is {platform.machine()}",
            "next_step": f"Build the library for {platform.machine()}, or use it on a machine with {library.machine}",
            "machine": library.machine,
        }
    if not library.is_shared or library.is_program:
        return {
            "cause": "not_elf",
            "why": "it is an object file or a program, not a shared library",
            "next_step": "Link it with -shared",
        }
    missing = missing_libraries(path, library.needs)
    if missing:
        return missing_dependencies(library, missing)
    if REGISTRY_FUNCTION in reason:
        return self_registration("but it is not linked with a TensorRT library that has this function")
    version = VERSION_NOT_FOUND.search(reason)
    if version:
        return missing_version(path, *version.groups())
    symbol = re.search(r"undefined symbol: (\w+)", reason)
    return {
        "cause": "symbol" if symbol else "loader",
        "why": f"none of the libraries that it is linked with has the symbol {symbol[1]}" if symbol else "",
        "next_step": "A library that it was built with is missing or has another version"
        if symbol
        else "The loader's message has the reason; `LD_DEBUG=all` prints details",
    }


def missing_version(path: pathlib.Path, provider: str, version: str, needing: str) -> dict[str, Any]:
    """Returns the refusal, as refusal_by_loader does, where a library lacks a symbol version. `provider` is the
    installed library that lacks `version`. `needing` is the library that was linked against this version: the one at
    `path` or a dependency of it."""
    itself = os.path.realpath(needing) == os.path.realpath(path)
    who = "it needs" if itself else f"its dependency {needing} needs"
    name = pathlib.PurePath(provider).name
    return {
        "cause": "library_version",
        "why": f"{who} the version {version} of {name}, which {provider} does not have: it is older than the one that "
        "the library was built with",
        "next_step": f"Install a {name} that has {version}, or build the library on a system as old as this one; "
        f"`strings {provider} | grep {re.split(r'[_.0-9]', version)[0]}_` lists the available versions",
        "needed_by": needing,
        "provider": provider,
        "version": version,
    }


def missing_dependencies(library: Library, missing: list[str]) -> dict[str, Any]:
    facts: dict[str, Any] = {"cause": "dependency", "missing": missing}
    listed = ", ".join(missing)
    direct = [name for name in missing if name in library.needs]
    owner = "it needs" if direct else "one of its dependencies needs"
    facts["why"] = f"{owner} {listed}, which the loader cannot find"
    tensorrt = next((name for name in missing if name.startswith(("libnvinfer", "libtensorrt"))), None)
    facts["next_step"] = f"Install {listed}, or add its folder to LD_LIBRARY_PATH"
    if tensorrt is not None:
        facts["next_step"] += (
            f"; {tensorrt} is the TensorRT version that the library was built for: install it, or build the library "
            "for the installed TensorRT (a library with getCreators need not be linked with TensorRT)"
        )
    if library.registers_itself:
        facts["why"] += "; it registers its plugins while it is opened (REGISTER_TENSORRT_PLUGIN)"
    return facts


def self_registration(detail: str) -> dict[str, Any]:
    """Returns the refusal for a library with REGISTER_TENSORRT_PLUGIN, which works only with the TensorRT with which it
    was built. `detail` is a clause that ends the sentence about the cause."""
    return {
        "cause": "static_registration",
        "why": f"it registers its plugins itself when it is opened, with {REGISTRY_FUNCTION} (the macro "
        f"REGISTER_TENSORRT_PLUGIN), {detail}",
        "next_step": "Use the library with the TensorRT release that it was built for, or export getCreators and "
        "setLoggerFinder with IPluginV3 plugins instead, which TensorRT-RTX and every release of "
        "TensorRT from 10 on can load",
    }
