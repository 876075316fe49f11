"""Compiles the kernels for compute capability 7.5, the oldest that Graft supports, without optimization and without
writing code. A build for another GPU leaves out what is compiled for this one alone; an optimized build for it takes ten
times as long.

usage: python tools/check_oldest_gpu.py BUILD_TREE
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

OLDEST = 75
# Sources for one later architecture alone end so.
LATER = "_sm90a.cu"


def command_of(entry: dict[str, str]) -> list[str]:
    """Returns the command of an object with the architecture and the output exchanged."""
    words = shlex.split(entry["command"])
    start = next(i for i, word in enumerate(words) if pathlib.Path(word).name == "nvcc")
    kept: list[str] = []
    skip = False
    for word in words[start:]:
        if skip or word.startswith(("--generate-code", "--threads")) or word in ("-c", "-MD"):
            skip = False
        elif word in ("-o", "-MT", "-MF"):
            skip = True
        else:
            kept.append(word)
    return [*kept, "-ptx", f"-arch=compute_{OLDEST}", "-Xcicc", "-O0", "-o", os.devnull]


def check(entry: dict[str, str]) -> str:
    done = subprocess.run(
        command_of(entry), cwd=entry["directory"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return "" if done.returncode == 0 else done.stdout or f"{entry['file']}: exit code {done.returncode}\n"


def main(tree: pathlib.Path) -> int:
    entries = json.loads((tree / "compile_commands.json").read_text())
    kernels = [entry for entry in entries if entry["file"].endswith(".cu") and not entry["file"].endswith(LATER)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [text for text in pool.map(check, kernels) if text]
    print("".join(findings), end="")
    print(f"check_oldest_gpu: {len(kernels)} sources, {len(findings)} with errors")
    return 1 if findings else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
