# Finds the imports of a binary that Ubuntu 22.04 lacks.
import pathlib
import re
import subprocess

# The newest symbol versions that the libraries of Ubuntu 22.04 define: the platform tag manylinux_2_35.
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}


def newer_imports(binary: pathlib.Path) -> list[str]:
    """Returns the imports of an ELF file that Ubuntu 22.04 lacks, for example "arc4random@GLIBC_2.36"."""
    command = ["nm", "--dynamic", "--undefined-only", "--with-symbol-versions", str(binary)]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    newer = []
    for symbol in symbols:
        version = re.fullmatch(r".+@(\w+)_([0-9.]+)", symbol)
        if version and version[1] in NEWEST and tuple(map(int, version[2].split("."))) > NEWEST[version[1]]:
            newer.append(symbol)
    return newer
