"""Runs clang-tidy over what is shipped (the tests are left to the compilers), each again only when it, a header of it, or the checks have changed.

usage: python tools/tidy.py BUILD_TREE [SOURCE...]

The build tree must have been built: ninja's record of each object's headers is what tells whether a source is
unchanged since it last passed. Passes are remembered in BUILD_TREE/.tidy.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OWN = [ROOT / name for name in ("src", "include", "examples")]


def is_own(path: pathlib.Path) -> bool:
    return any(path.is_relative_to(folder) for folder in OWN)


def headers_of_objects(tree: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """For each object in the tree, our own files that it was compiled from."""
    text = subprocess.run(["ninja", "-C", str(tree), "-t", "deps"], capture_output=True, text=True, check=True).stdout
    files: dict[str, list[pathlib.Path]] = {}
    current = ""
    for line in text.splitlines():
        if line.startswith("    ") and current:
            path = (tree / line.strip()).resolve()
            if is_own(path):
                files[current].append(path)
        elif ": #deps" in line:
            current = line.split(": #deps")[0]
            files[current] = []
    return files


def digest(path: pathlib.Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def fingerprint(command: str, files: list[pathlib.Path], common: bytes) -> str:
    total = hashlib.sha256(common + command.encode())
    for path in sorted(set(files)):
        total.update(str(path.relative_to(ROOT)).encode())
        total.update(digest(path))
    return total.hexdigest()


def check(tidy: str, tree: pathlib.Path, source: pathlib.Path) -> str:
    """The findings, or nothing."""
    # Its front end knows other warnings than the compilers, and finds uses of deprecated names inside libstdc++.
    quiet = ("-Wno-unknown-warning-option", "-Wno-deprecated-declarations")
    command = [tidy, "-p", str(tree), "--quiet", *(f"--extra-arg={option}" for option in quiet), str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return ""
    return result.stdout or result.stderr


def main(arguments: list[str]) -> int:
    tree = pathlib.Path(arguments[0]).resolve()
    only = {pathlib.Path(name).resolve() for name in arguments[1:]}
    tidy = str(ROOT / ".deps/venv/bin/clang-tidy")
    passed = tree / ".tidy"
    passed.mkdir(exist_ok=True)
    version = subprocess.run([tidy, "--version"], capture_output=True, check=True).stdout
    common = version + digest(ROOT / ".clang-tidy")
    files = headers_of_objects(tree)

    stale: dict[pathlib.Path, pathlib.Path] = {}
    total = 0
    for entry in json.loads((tree / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"]).resolve()
        if source.suffix != ".cpp" or not is_own(source) or (only and source not in only):
            continue
        total += 1
        own = files.get(entry.get("output", ""), []) + [source]
        stamp = passed / fingerprint(entry["command"], own, common)
        if not stamp.exists():
            stale[source] = stamp

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {pool.submit(check, tidy, tree, source): source for source in stale}
        for run in concurrent.futures.as_completed(runs):
            if run.result():
                failures += 1
                print(run.result(), flush=True)
            else:
                stale[runs[run]].touch()
    print(f"clang-tidy: {total} sources, {len(stale)} checked now, {failures} with findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
