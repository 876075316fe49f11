"""Runs clang-tidy on the shipped sources (not on the tests); each source again only when it, one of its headers, or the
checks have changed.

Parsing headers takes most of the time, so sources that CMake compiles together (a unity build), or a few with the same
flags, are checked together, in a source that includes them: their headers are parsed once. A group with a finding, or
with a name that occurs in two sources, is halved until each source with findings is alone; the findings of this last
run are reported.

usage: python tools/tidy.py BUILD_TREE [SOURCE...]

The build tree must have been built: ninja's record of each object's headers shows whether a source is unchanged since
it last passed. BUILD_TREE/.tidy stores which sources passed.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OWN = [ROOT / name for name in ("src", "include", "examples")]

# Number of sources in a group that CMake does not compile together, where names may collide.
GROUP = 4
# clang-tidy's front end has other warnings than the compilers, and reports uses of deprecated names inside libstdc++.
QUIET = ("-Wno-unknown-warning-option", "-Wno-deprecated-declarations")


def is_own(path: pathlib.Path) -> bool:
    return any(path.is_relative_to(folder) for folder in OWN)


def headers_of_objects(tree: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """Returns for each object in the tree the repository's files that it was compiled from."""
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


def flags_of(entry: dict[str, str]) -> tuple[str, ...]:
    """Returns the flags of a compilation, without those that name its files."""
    words = shlex.split(entry["command"])
    flags = words[next(i for i, word in enumerate(words) if word.startswith("-")) : words.index("-o")]
    return *flags, *QUIET


def is_unity(source: pathlib.Path) -> bool:
    return source.parent.name == "Unity"


def sources_of(entry: dict[str, str]) -> list[pathlib.Path]:
    """Returns the sources of a compilation: the file itself, or the sources of CMake's unity file."""
    source = pathlib.Path(entry["file"]).resolve()
    if not is_unity(source):
        return [source]
    return [pathlib.Path(name).resolve() for name in re.findall(r'^#include "(.*)"$', source.read_text(), re.MULTILINE)]


def check(tidy: str, folder: pathlib.Path, flags: list[str], sources: list[pathlib.Path]) -> dict[pathlib.Path, str]:
    """Returns the findings of each source; an empty string where it has none."""
    one = sources[0]
    if len(sources) > 1:
        lines = "".join(f'#include "{source}"  // NOLINT(bugprone-suspicious-include)\n' for source in sources)
        one = folder / f"{hashlib.sha256(lines.encode()).hexdigest()}.cpp"
        one.write_text(lines)
    result = subprocess.run([tidy, "--quiet", str(one), "--", *flags], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return dict.fromkeys(sources, "")
    if len(sources) == 1:
        return {one: result.stdout or result.stderr}
    half = len(sources) // 2
    return check(tidy, folder, flags, sources[:half]) | check(tidy, folder, flags, sources[half:])


def main(arguments: list[str]) -> int:
    tree = pathlib.Path(arguments[0]).resolve()
    only = {pathlib.Path(name).resolve() for name in arguments[1:]}
    tidy = str(ROOT / ".deps/venv/bin/clang-tidy")
    passed = tree / ".tidy"
    together = passed / "together"
    together.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([tidy, "--version"], capture_output=True, check=True).stdout
    common = version + digest(ROOT / ".clang-tidy")
    files = headers_of_objects(tree)

    stale: dict[pathlib.Path, pathlib.Path] = {}
    alike: dict[tuple[tuple[str, ...], pathlib.Path | None], list[pathlib.Path]] = {}
    total = 0
    compiled = json.loads((tree / "compile_commands.json").read_text())
    for entry, source in [(one, source) for one in compiled for source in sources_of(one)]:
        if source.suffix != ".cpp" or not is_own(source) or (only and source not in only):
            continue
        total += 1
        own = files.get(entry.get("output", ""), []) + [source]
        stamp = passed / fingerprint(f"{source.name} {entry['command']}", own, common)
        if not stamp.exists():
            stale[source] = stamp
            file = pathlib.Path(entry["file"])
            # An example is checked alone, because HeaderFilterRegex ignores included files outside of src.
            part = source if not source.is_relative_to(ROOT / "src") else file if is_unity(file) else None
            alike.setdefault((flags_of(entry), part), []).append(source)

    groups = []
    for (flags, part), sources in alike.items():
        size = GROUP if part is None else len(sources)
        groups += [(flags, sources[first : first + size]) for first in range(0, len(sources), size)]
    # The largest first, so that no core works alone at the end.
    groups.sort(key=lambda group: -len(group[1]))

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [pool.submit(check, tidy, together, [*flags], sources) for flags, sources in groups]
        for run in concurrent.futures.as_completed(runs):
            for source, findings in run.result().items():
                if findings:
                    failures += 1
                    print(findings, flush=True)
                else:
                    stale[source].touch()
    print(f"clang-tidy: {total} sources, {len(stale)} checked now, {failures} with findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
