"""Fuzzes the readers of files with libFuzzer and the address and undefined-behavior sanitizers, and the whole
conversion with changed copies of valid models.

usage: python tools/fuzz.py [--seconds N] [--jobs N] [--keep] [onnx|tensorflow|caffe|npz|yaml|cache|image|plugin]...
       python tools/fuzz.py [--count N] [--seed N] left_out|sizes|files...

Builds the preset `fuzz` (clang), starts from the stored cases of tests/golden and from tests/fuzz/corpus, and runs each
format for the given seconds in the given number of processes. An input that ends a run - by a crash, an error of a
sanitizer, a time above 10 seconds or more memory than tests/fuzz/target.hpp allows - is stored in
build/fuzz/found/<format>; the exit code is then 1. With --keep, inputs that reach new code are added to
tests/fuzz/corpus, as few and as small as libFuzzer finds.

left_out, sizes and files run the Python package of build/python (tools/mutated_models.py): ONNX's node tests with
inputs left out, with sizes and attributes at their extremes, and the stored cases of all formats with changed bytes.
Each file is read, inspected by rule and converted within 2 GiB and 20 s of processor time.
"""

import argparse
import pathlib
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import zlib

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "build/fuzz"
CORPUS = ROOT / "tests/fuzz/corpus"
GOLDEN = ROOT / "tests/golden"
MUTATIONS = ("left_out", "sizes", "files")
FORMATS = ("onnx", "tensorflow", "caffe", "npz", "yaml", "cache", "image", "plugin")
LARGEST_SEED = 16384
# Limits of the corpus of each format in the repository.
MOST_FILES = 300
MOST_BYTES = 400_000


# Pairs of a color type and the bits of a channel.
PNG_KINDS = ((0, 1), (0, 8), (0, 16), (2, 8), (3, 4), (4, 8), (6, 8), (6, 16))
CACHES = (
    "TRT-8601-EntropyCalibration2\nimage: 3c010a14\n(Unnamed Layer* 0) [Convolution]_output: 3d3a5b1c\n",
    "TRT-100300-MinMaxCalibration\r\na:b:c: 7f800000\r\n\r\nwide \u00e4: 0\r\n",
    "TRT-7000-EntropyCalibration\n" + "".join(f"layer{i}: 3f8000{i:02x}\n" for i in range(40)),
)


def png(kind: int, depth: int) -> bytes:
    """Returns a PNG of seven by five pixels with this color type."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    width, height = 7, 5
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    bits = width * channels * depth
    rows = b"".join(bytes([row % 5]) + random.Random(row).randbytes((bits + 7) // 8) for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    palette = chunk(b"PLTE", random.Random(9).randbytes(3 << depth)) if kind == 3 else b""
    data = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + data + chunk(b"IEND", b"")


def seeds(name: str) -> dict[str, bytes]:
    """Returns the stored cases as files, by name."""
    if name == "onnx":
        folders = (GOLDEN / folder for folder in ("models", "near_misses", "exports"))
        files = {path.stem: path.read_bytes() for folder in folders for path in sorted(folder.glob("*.onnx"))}
    elif name == "npz":
        files = {path.stem: path.read_bytes() for path in sorted(GOLDEN.rglob("*.np[yz]"))}
    elif name == "yaml":
        files = {path.stem: path.read_bytes() for path in sorted(ROOT.glob("examples/**/*.yaml"))}
    elif name == "image":
        files = {f"png_{kind}_{depth}": png(kind, depth) for kind, depth in PNG_KINDS}  # the corpus has JPEGs
    elif name == "cache":
        files = {str(i): text.encode() for i, text in enumerate(CACHES)}
    elif name == "plugin":
        # The second byte selects a creator; the fuzzer finds other values from there.
        files = {str(i): bytes([0, i]) + random.Random(i).randbytes(200) for i in range(64)}
    else:
        with numpy.load(GOLDEN / name / "cases.npz") as cases:
            parts = {
                key: cases[key].tobytes() for key in cases.files if key.split("/")[1] in ("graph", "network", "weights")
            }
        if name == "tensorflow":
            files = {key.split("/")[0]: data for key, data in parts.items() if key.endswith("/graph")}
        else:
            networks = {key.split("/")[0]: data for key, data in parts.items() if key.endswith("/network")}
            files = {case: text + b"\0" + parts[f"{case}/weights"] for case, text in networks.items()}
    return {case: data for case, data in files.items() if len(data) <= LARGEST_SEED}


def dictionary(name: str) -> str:
    """Returns words of the format for libFuzzer: names of operators, layers and attributes in the sources of the
    reader."""
    sources = {
        "onnx": ["src/onnx/schema.inc"],
        "tensorflow": sorted(str(path) for path in (ROOT / "src/import/tensorflow").glob("*.cpp")),
        "caffe": sorted(str(path) for path in (ROOT / "src/import/caffe").glob("*.[cp]*")),
        "npz": ["src/io/npy.cpp"],
        "yaml": [
            *sorted(str(path) for path in (ROOT / "src/rules/read").glob("*.cpp")),
            "src/data/image_recipe.cpp",
        ],
        "cache": ["src/quant/calibrate/calibration_cache.cpp"],
        "image": [],
        "plugin": [],
    }
    words = set()
    for source in sources[name]:
        words.update(re.findall(r'"([A-Za-z][A-Za-z0-9_]{2,30})"', (ROOT / source).read_text()))
        if source.endswith(".inc"):
            words.update(re.findall(r"\b([A-Za-z_]{3,40})[: \"]", (ROOT / source).read_text()))
        if source.endswith(".proto"):
            words.update(re.findall(r"\b([a-z_0-9]{3,40}) = \d+", (ROOT / source).read_text()))
    return "".join(f'"{word}"\n' for word in sorted(words))


def prepare(name: str, folder: pathlib.Path) -> None:
    """Writes folder/seeds and folder/dictionary."""
    shutil.rmtree(folder / "seeds", ignore_errors=True)
    (folder / "seeds").mkdir(parents=True)
    for case, data in seeds(name).items():
        (folder / "seeds" / case).write_bytes(data)
    (folder / "dictionary").write_text(dictionary(name))


def program(name: str) -> pathlib.Path:
    return TREE / "bin" / f"{name}_fuzz"


def fuzz(name: str, seconds: int, jobs: int) -> bool:
    work = TREE / "work" / name
    found = TREE / "found" / name
    for folder in (work / "corpus", found):
        folder.mkdir(parents=True, exist_ok=True)
    prepare(name, work)
    before = set(found.iterdir())
    options = [f"-max_total_time={seconds}", f"-fork={jobs}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=65536"]
    options += ["-ignore_crashes=1", "-ignore_timeouts=1", "-ignore_ooms=1", f"-artifact_prefix={found}/"]
    corpora = [work / "corpus", CORPUS / name, work / "seeds"]
    started = resource.getrusage(resource.RUSAGE_CHILDREN)
    if (work / "dictionary").stat().st_size != 0:  # libFuzzer ends at once with an empty one
        options.append(f"-dict={work / 'dictionary'}")
    code = subprocess.run([program(name), *options, *corpora], check=False).returncode
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime
    new = sorted(set(found.iterdir()) - before)
    print(f"{name}: {len(new)} findings in {spent:.0f} s of processor time")
    for path in new:
        print(f"  {path.relative_to(ROOT)}; to see it: {program(name).relative_to(ROOT)} {path.relative_to(ROOT)}")
    if code != 0:
        print(f"{name}: the fuzzer ended with exit code {code}")
    return not new and code == 0


def keep(name: str) -> None:
    """Adds the smallest inputs that together reach all covered code to those in the repository."""
    merged = TREE / "merged" / name
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    inputs = [CORPUS / name, TREE / "work" / name / "corpus"]
    subprocess.run([program(name), "-merge=1", "-timeout=10", merged, *inputs], check=True, stderr=subprocess.DEVNULL)
    files = list((CORPUS / name).iterdir())
    size = sum(path.stat().st_size for path in files)
    count = len(files)
    for path in sorted(merged.iterdir(), key=lambda path: path.stat().st_size):
        if (CORPUS / name / path.name).exists():
            continue
        if count == MOST_FILES or size + path.stat().st_size > MOST_BYTES:
            break
        shutil.copy(path, CORPUS / name)
        count += 1
        size += path.stat().st_size
    print(f"{name}: {count} files of {size} bytes in {(CORPUS / name).relative_to(ROOT)}")


def run_mutations(mutation: str, count: int, seed: int) -> bool:
    sys.path.insert(0, str(ROOT / "build/python"))
    import mutated_models

    if mutation == "files":
        endings = {"onnx": ".onnx", "tensorflow": ".pb", "caffe": ".prototxt"}
        cases = [
            (case, data.partition(b"\0")[0] if name == "caffe" else data, ending)
            for name, ending in endings.items()
            for case, data in seeds(name).items()
        ]
        files = mutated_models.mutated(cases, "bytes", count, seed)
    else:
        files = mutated_models.mutated(mutated_models.node_tests(), mutation, count, seed)
    findings = mutated_models.run(files)
    found = TREE / "found" / mutation
    found.mkdir(parents=True, exist_ok=True)
    print(f"{mutation}: {len(findings)} findings in {count} files")
    for finding in findings:
        (found / finding.name).write_bytes(finding.content)
        print(f"  {(found / finding.name).relative_to(ROOT)}: {finding.why}")
    return not findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("formats", nargs="*", choices=[*FORMATS, *MUTATIONS, []], default=FORMATS)
    arguments = parser.parse_args()
    mutations = [each for each in arguments.formats if each in MUTATIONS]
    clean = [run_mutations(each, arguments.count, arguments.seed) for each in mutations]
    if not all(clean):
        return 1
    formats = [each for each in arguments.formats or FORMATS if each not in MUTATIONS]
    if not formats:
        return 0
    subprocess.run([ROOT / "tools/build", "fuzz", "--", *(f"{name}_fuzz" for name in formats)], check=True)
    clean = [fuzz(name, arguments.seconds, arguments.jobs) for name in formats]
    if arguments.keep:
        for name in formats:
            keep(name)
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
