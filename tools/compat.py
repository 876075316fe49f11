# Tests the plugin library with every TensorRT that the package registries have, and writes docs/compatibility.md.
"""`make compat` runs it, after `tools/setup compat` has installed each TensorRT in .deps/compat. Exits with 1 if a
check fails."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPAT = ROOT / ".deps/compat"
PAGE = ROOT / "docs/compatibility.md"
MODULES = {"rtx": "tensorrt_rtx", "lean": "tensorrt_lean"}
TITLES = {"rtx": "TensorRT-RTX", "lean": "TensorRT lean runtime"}
TARGETS = "sm89,sm120"

INTRODUCTION = """<!-- Written by tools/compat.py (`make compat`); do not edit. -->
# Compatibility of the plugin library

One `libgraft_plugins.so`, compiled once, is tested with every TensorRT that can be installed from PyPI, on a machine without a GPU.
Measured on {date} with a library of {plugins} plugins. `graft plugins LIBRARY` lists the plugins of a library.

| column | test |
|---|---|
| loads | the plugin registry loads the library |
| plugins | plugins found in it |
| create to re-create | each plugin is created with each field, cloned, serialized, and created again from the serialized fields; wrong fields are refused by name; the number of passed checks and of all checks |
| plugin engines | engines built with each plugin in f32, f16, bf16 and int8, with dynamic batch, height and width, for sm_89 and sm_120 |
| function engines | the same engines, built from the operators' ONNX functions with native layers, without the library |

"""

NOTES = """
TensorRT-RTX 1.4 to 1.6 have a plugin registry, but neither their ONNX parser nor their network interface adds a plugin to a network:
in these releases a model runs with the functions that Graft keeps in it. RTX 1.4 failed to build the int8 engines with a CUDA error,
because it searches for a GPU and the machine has none; 1.5 and later build them. In all three releases the function engine of a
convolution in int8 fails with an internal error: a check in their cuDNN layer allows f32, f16, bf16 and fp8 only. RTX 1.7 builds it.
The lean runtime has no builder. The full TensorRT 10 and 11 have the same plugin interfaces; PyPI does not have them, so they are not
in the table.
"""


@dataclass
class Row:
    title: str
    version: str
    loads: bool = False
    plugins: int = 0
    checks: tuple[int, int] = (0, 0)
    plugin_engines: tuple[int, int] | None = None
    function_engines: tuple[int, int] | None = None
    need_gpu: int = 0
    failures: list[str] = field(default_factory=list)
    plugins_in_networks: bool = True

    def cells(self) -> str:
        loads = "yes" if self.loads else "no"
        engines = counted(self.plugin_engines) if self.plugins_in_networks else "no plugins in networks"
        cells = [self.title, self.version, loads, str(self.plugins), counted(self.checks), engines]
        functions = counted(self.function_engines) + (f", {self.need_gpu} more need a GPU" if self.need_gpu else "")
        return "| " + " | ".join([*cells, functions]) + " |"


def counted(pair: tuple[int, int] | None) -> str:
    return "no builder" if pair is None else f"{pair[0]} of {pair[1]}"


def compile_bridge(folder: pathlib.Path) -> pathlib.Path:
    """Compiles tools/plugin_bridge.cpp with the TensorRT headers; a stub replaces the only CUDA header that they
    include."""
    headers = next(iter(ROOT.glob(".deps/venv/lib/python*/site-packages/kernel_lens/include/tensorrt")), None)
    if os.environ.get("TENSORRT_ROOT"):
        headers = pathlib.Path(os.environ["TENSORRT_ROOT"]) / "include"
    if headers is None:
        sys.exit("compat: no TensorRT headers; run: make deps")
    (folder / "cuda_runtime_api.h").write_text(
        "#pragma once\ntypedef struct CUstream_st* cudaStream_t;\ntypedef struct CUevent_st* cudaEvent_t;\n"
    )
    library = folder / "libplugin_bridge.so"
    command = [os.environ.get("CXX", "g++"), "-std=c++17", "-shared", "-fPIC", "-isystem", str(folder)]
    command += ["-isystem", str(headers), str(ROOT / "tools/plugin_bridge.cpp"), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


def environment(installed: pathlib.Path) -> dict[str, str]:
    variables = dict(os.environ)
    variables["PYTHONPATH"] = os.pathsep.join([str(installed), str(ROOT / "python")])
    return variables


def check_registry(
    row: Row, flavor: str, installed: pathlib.Path, library: pathlib.Path, bridge: pathlib.Path, cases: pathlib.Path
) -> None:
    command = [sys.executable, str(ROOT / "tools/compat_check.py"), MODULES[flavor], str(library), str(bridge)]
    command += [str(cases / "manifest.json")]
    done = subprocess.run(command, env=environment(installed), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        row.failures.append(f"registry check ended with {done.returncode}: {done.stderr.strip()[-400:]}")
        return
    answer = json.loads(done.stdout.splitlines()[-1])
    row.loads, row.plugins = answer["loaded"], len(answer["creators"])
    passed = sum(len(creator["passed"]) for creator in answer["creators"])
    for creator in answer["creators"]:
        row.failures += [f"{creator['name']} {creator['version']}: {failed}" for failed in creator["failed"]]
    row.checks = (passed, passed + len(row.failures))
    if not row.plugins:
        row.failures.append("no plugin was found in the library")


def build(installed: pathlib.Path, file: pathlib.Path, shapes: str, *flags: str) -> dict[str, Any]:
    """Returns the last event of a build by the engine driver; `needs_gpu` if TensorRT needed a GPU on this machine."""
    command = [sys.executable, "-m", "graft.engine", "build", str(file), "--output", str(file.with_suffix(".engine"))]
    command += ["--tensorrt", "rtx", "--target", TARGETS, "--shapes", shapes, *flags]
    done = subprocess.run(command, env=environment(installed), capture_output=True, text=True, check=False)
    file.with_suffix(".engine").unlink(missing_ok=True)
    event = json.loads(done.stdout.splitlines()[-1])
    event["needs_gpu"] = event["event"] == "error" and "generateForCurrent" in done.stdout
    return event


def build_all(row: Row, installed: pathlib.Path, library: pathlib.Path, cases: pathlib.Path) -> None:
    models = json.loads((cases / "manifest.json").read_text())["models"]
    dynamic = [model for model in models if model["shapes"]]
    built, tried = 0, 0
    for model in (m for m in dynamic if m["kind"] == "plugin"):
        if not row.plugins_in_networks:
            break
        event = build(installed, cases / model["file"], model["shapes"], "--plugin-library", str(library))
        if event["event"] == "error" and "is not supported in TensorRT-RTX" in event["message"]:
            row.plugins_in_networks = False
            break
        tried += 1
        names = [p["name"] for p in event.get("network", {}).get("plugins", [])]
        built += names == [model["plugin"]]
        if names != [model["plugin"]]:
            row.failures.append(f"plugin engine {model['file']}: {event.get('message', names)}")
    row.plugin_engines = (built, tried)
    built, tried = 0, 0
    for model in (m for m in dynamic if m["kind"] == "function"):
        event = build(installed, cases / model["file"], model["shapes"])
        if event["needs_gpu"]:
            row.need_gpu += 1
            continue
        tried += 1
        good = event["event"] == "result" and not event["network"]["plugins"]
        built += good
        if not good:
            row.failures.append(f"function engine {model['file']}: {event.get('message', 'holds plugins')}")
    row.function_engines = (built, tried)


def version_key(folder: pathlib.Path) -> tuple[int, str, list[int]]:
    flavor, _, version = folder.name.partition("-")
    return -list(MODULES).index(flavor), flavor, [int(part) for part in re.findall(r"\d+", version)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/lib/libgraft_plugins.so")
    parser.add_argument("--cases", type=pathlib.Path, default=ROOT / "build/release/tests/case_models")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    options = parser.parse_args()
    for needed in (options.library, options.cases):
        if not needed.is_file():
            sys.exit(f"compat: {needed} is not there; run: make build-all")
    found = [p for p in COMPAT.glob("*-*") if p.is_dir() and p.name.partition("-")[0] in MODULES]
    if not found:
        sys.exit("compat: no TensorRT in .deps/compat; run: tools/setup compat")

    rows = []
    with tempfile.TemporaryDirectory(prefix="graft-compat-") as name:
        folder = pathlib.Path(name)
        bridge = compile_bridge(folder)
        cases = folder / "cases"
        subprocess.run([str(options.cases), "engines", str(cases)], check=True)
        for installed in sorted(found, key=version_key):
            flavor, _, version = installed.name.partition("-")
            row = Row(TITLES[flavor], version)
            check_registry(row, flavor, installed, options.library, bridge, cases)
            if flavor == "rtx":
                build_all(row, installed, options.library, cases)
            rows.append(row)
            print(row.cells(), flush=True)
            for failure in row.failures:
                print(f"  failed: {failure}", flush=True)

    head = "| TensorRT | version | loads | plugins | create to re-create | plugin engines | function engines |"
    table = "\n".join([head, "|---" * 7 + "|", *(row.cells() for row in rows)]) + "\n"
    temporary = options.page.with_suffix(".tmp")
    plugins = max(row.plugins for row in rows)
    introduction = INTRODUCTION.format(date=datetime.date.today().isoformat(), plugins=plugins)
    temporary.write_text(introduction + table + NOTES)
    temporary.replace(options.page)
    print(f"wrote {options.page}")
    return int(any(row.failures for row in rows))


if __name__ == "__main__":
    sys.exit(main())
