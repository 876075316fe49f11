# The bill of materials of the wheel, as CycloneDX JSON: tools/wheel.py writes it into the wheel.
"""Lists the parts of others that are compiled or statically linked into the wheel (deps.toml, [wheel]), with the
versions that are installed here. auditwheel lists the shared libraries that it adds to the wheel in a file of its own;
a package that pip installs is a requirement in the wheel's metadata."""

import pathlib
import re
import subprocess
import tomllib
from collections.abc import Collection
from typing import Any
from urllib.parse import quote

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Written by tools/setup_aarch64.py: a line with the name and the version of each package.
PACKAGES_OF_AARCH64 = ROOT / ".deps" / "aarch64" / "root.txt"
# CUDA is part of a wheel with this file, and the headers of kernel-lens of a wheel with the other one.
PLUGIN_LIBRARY = "graft/lib/libgraft_plugins.so"
TENSORRT_HEADER = "graft/share/graft/tensorrt/NvInfer.h"


def bill_of_materials(files: Collection[str], preset: str) -> dict[str, Any]:
    """Returns the bill of materials of a wheel with these files, which the preset has built."""
    build = ROOT / "build" / preset
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    deps = tomllib.loads((ROOT / "deps.toml").read_text())
    pins = dict(pin.split("==") for group in deps["pypi"].values() for pin in group)
    parts = deps["wheel"]
    pypi = list(parts["pypi"])
    if TENSORRT_HEADER in files:
        pypi += parts["tensorrt_headers"]
    components = [_component(name, _debian_version(name, preset), "deb/debian") for name in parts["debian"]]
    if PLUGIN_LIBRARY in files and _is_cuda_from_wheels(build):
        pypi += parts["cuda"]
    elif PLUGIN_LIBRARY in files:
        components.append(_component("cuda-toolkit", _cuda_version(build), "generic"))
    components += [_component(name, pins[name], "pypi") for name in pypi]
    components.sort(key=lambda component: component["name"])
    wheel = _component(project["name"], project["version"], "pypi") | {"licenses": [{"expression": project["license"]}]}
    uses = [component["bom-ref"] for component in components]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": wheel},
        "components": components,
        "dependencies": [{"ref": wheel["bom-ref"], "dependsOn": uses}, *({"ref": reference} for reference in uses)],
    }


def _component(name: str, version: str, kind: str) -> dict[str, Any]:
    url = f"pkg:{kind}/{name}@{quote(version, safe='')}"
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}


def _debian_version(package: str, preset: str) -> str:
    if preset == "aarch64":
        versions = dict(line.split(" ") for line in PACKAGES_OF_AARCH64.read_text().splitlines())
        return versions[package]
    query = ["dpkg-query", "--show", "--showformat=${Version}", package]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout


def _is_cuda_from_wheels(build: pathlib.Path) -> bool:
    """Returns whether nvcc is one that tools/setup installed in .deps."""
    compiler = re.search(r"^CMAKE_CUDA_COMPILER:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return compiler is not None and "/.deps/" in compiler[1]


def _cuda_version(build: pathlib.Path) -> str:
    (record,) = build.glob("CMakeFiles/*/CMakeCUDACompiler.cmake")
    version = re.search(r'CMAKE_CUDA_COMPILER_VERSION "(.+)"', record.read_text())
    if version is None:
        raise ValueError(f"{record}: CMAKE_CUDA_COMPILER_VERSION is missing")
    return version[1]
