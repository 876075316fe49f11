"""Adds a second name for a shared library that this process has loaded. The loader compares a name without a folder
with the names of the loaded libraries before it searches any folder. This module therefore loads a library without code
under the second name; that library depends on the first one, so its functions are found through it."""

from __future__ import annotations

import ctypes
import os
import pathlib
import struct

from graft.engine.libraries import DYNAMIC_SEGMENT, ELF_MAGIC, LOADED_SEGMENT, MACHINES, NEEDED_TAG, SHARED_OBJECT

HEADER_BYTES, SEGMENT_BYTES, TAG_BYTES = 64, 56, 16
STRINGS_TAG, SYMBOLS_TAG, STRINGS_SIZE_TAG, NAME_TAG = 5, 6, 10, 14
READ_AND_WRITE = 6  # the loader writes addresses into the dynamic section
LARGEST_PAGE = 65536  # of aarch64


def add_library_alias(alias: str, loaded: str) -> None:
    """Lets `dlopen(alias)` find the library that this process has loaded under the name `loaded`. Raises OSError where
    the loader refuses the alias."""
    file = os.memfd_create(alias)
    try:
        path = pathlib.Path(f"/proc/self/fd/{file}")
        path.write_bytes(_alias_library(alias, loaded))
        ctypes.CDLL(str(path))
    finally:
        os.close(file)


def _alias_library(alias: str, loaded: str) -> bytes:
    """Returns a 64-bit little-endian ELF file without symbols, with the name `alias` and `loaded` as its only
    dependency."""
    machine = next(code for code, name in MACHINES.items() if name == os.uname().machine)
    strings = f"\0{alias}\0{loaded}\0".encode()
    tags_at = HEADER_BYTES + 2 * SEGMENT_BYTES
    tags_bytes = 6 * TAG_BYTES
    strings_at = tags_at + tags_bytes
    tags = (
        (NAME_TAG, 1),
        (NEEDED_TAG, len(f"\0{alias}\0")),
        (STRINGS_TAG, strings_at),
        (STRINGS_SIZE_TAG, len(strings)),
        (SYMBOLS_TAG, strings_at),  # the loader requires this tag, and reads no symbol where there is no hash table
        (0, 0),
    )
    size = strings_at + len(strings)
    header = (SHARED_OBJECT, machine, 1, 0, HEADER_BYTES, 0, 0, HEADER_BYTES, SEGMENT_BYTES, 2, 0, 0, 0)
    segments = (
        (LOADED_SEGMENT, READ_AND_WRITE, 0, 0, 0, size, size, LARGEST_PAGE),
        (DYNAMIC_SEGMENT, READ_AND_WRITE, tags_at, tags_at, tags_at, tags_bytes, tags_bytes, 8),
    )
    return b"".join(
        [
            struct.pack("<4s3B9x", ELF_MAGIC, 2, 1, 1),
            struct.pack("<HHIQQQI6H", *header),
            *(struct.pack("<IIQQQQQQ", *segment) for segment in segments),
            *(struct.pack("<QQ", *tag) for tag in tags),
            strings,
        ]
    )
