"""The flavors of TensorRT: their Python modules, how to import a module, and the links that its libraries need. Only
`import_flavor`, which only workers call, imports a TensorRT module."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import importlib.util
import os
import pathlib
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from graft.engine.events import EngineError
from graft.engine.names import named


@dataclass(frozen=True)
class Flavor:
    """A TensorRT product of NVIDIA, by the name of its Python bindings."""

    name: str
    module: str
    libraries_module: str
    can_build: bool
    install: str


FLAVORS: tuple[Flavor, ...] = (
    Flavor("rtx", "tensorrt_rtx", "tensorrt_rtx_libs", True, "pip install tensorrt-rtx-cu13"),
    Flavor("full", "tensorrt", "tensorrt_libs", True, "pip install tensorrt"),
    Flavor("lean", "tensorrt_lean", "tensorrt_lean_libs", False, "pip install tensorrt-lean-cu13"),
)


def flavor_named(name: str) -> Flavor:
    return next(f for f in FLAVORS if f.name == name)


def is_installed(flavor: Flavor) -> bool:
    """Returns whether the module is found. It may still fail to import."""
    try:
        return importlib.util.find_spec(flavor.module) is not None
    except (ImportError, ValueError):
        return False


def libraries_folder(flavor: Flavor) -> pathlib.Path | None:
    """Returns the folder of the wheel that has the shared libraries, or None for an SDK installation."""
    try:
        spec = importlib.util.find_spec(flavor.libraries_module)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return pathlib.Path(next(iter(spec.submodule_search_locations)))


def make_library_links(flavor: Flavor, folder: pathlib.Path) -> bool:
    """Links `libX.so` in `folder` to each `libX.so.N` of the wheel. Returns whether there is a wheel.

    For a model with plugins TensorRT's ONNX parser opens the core library by its development name, and ends the process
    where there is none; the wheels have only the versioned names. The loader reads LD_LIBRARY_PATH once, when a process
    starts, so the links must exist before the worker starts.
    """
    libraries = libraries_folder(flavor)
    if libraries is None:
        return False
    for library in sorted(libraries.glob("lib*.so.*")):
        link = folder / (library.name.split(".so.")[0] + ".so")
        if not link.exists():
            link.symlink_to(library.resolve())
    return True


def import_flavor(flavor: Flavor) -> ModuleType:
    """Imports the bindings and returns the module. Raises EngineError with the loader's message where the import
    fails."""
    try:
        return importlib.import_module(flavor.module)
    except Exception as error:  # a broken installation may raise any exception
        raise EngineError(
            "tensorrt_missing",
            f"the Python module {flavor.module} cannot be imported: {error}",
            f"Install it with: {flavor.install}",
        ) from error


def choose_flavor(wanted: str, targets: list[str], gpu_present: bool) -> Flavor:
    """Returns the flavor named `wanted` or, for `auto`, the flavor that builds for these targets.

    `auto` is RTX where a target is not the GPU of this machine, because only RTX builds for other GPUs; otherwise the
    full TensorRT if it is installed and there is a GPU (`gpu_present`), which it needs; otherwise RTX, which needs no
    GPU. Raises EngineError where no such flavor is installed.
    """
    rtx, full = flavor_named("rtx"), flavor_named("full")
    if wanted != "auto":
        flavor = flavor_named(wanted)
        if not is_installed(flavor):
            raise EngineError(
                "tensorrt_missing",
                f"{named('--tensorrt')} {wanted}: the Python module {flavor.module} is not installed",
                f"Install it with: {flavor.install}",
            )
        return flavor
    only_here = all(target == "current" for target in targets)
    preferred = (full, rtx) if only_here and gpu_present else (rtx, full)
    for flavor in preferred:
        if is_installed(flavor):
            return flavor
    raise EngineError(
        "tensorrt_missing",
        f"no TensorRT with a builder is installed for {sys.executable} (searched for its modules tensorrt_rtx and "
        "tensorrt)",
        f"Install one with: {sys.executable} -m {rtx.install}"
        + (", or unset GRAFT_PYTHON, which selects this Python" if is_chosen_by_user() else ""),
    )


def is_chosen_by_user() -> bool:
    """Returns whether the user chose this Python by GRAFT_PYTHON. The program of a wheel sets GRAFT_PYTHON too, to the
    Python in which the wheel is installed."""
    return bool(os.environ.get("GRAFT_PYTHON")) and not pathlib.Path(__file__).resolve().is_relative_to(sys.prefix)


def cuda_devices() -> dict[str, Any]:
    """Returns `devices`, a list with the name and the compute capability of each GPU, and `reason`, which says why the
    list is empty. Creates no CUDA context. Only workers call this function."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return {"devices": [], "reason": "no NVIDIA driver (libcuda.so.1 was not found)"}
    status = driver.cuInit(0)
    if status != 0:
        return {"devices": [], "reason": f"cuInit returned CUDA error {status}"}
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return {"devices": [], "reason": "the driver does not report the number of devices"}
    compute_capability_major, compute_capability_minor = 75, 76
    devices = []
    for index in range(count.value):
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        name = ctypes.create_string_buffer(256)
        driver.cuDeviceGet(ctypes.byref(device), index)
        driver.cuDeviceGetName(name, len(name), device)
        driver.cuDeviceGetAttribute(ctypes.byref(major), compute_capability_major, device)
        driver.cuDeviceGetAttribute(ctypes.byref(minor), compute_capability_minor, device)
        devices.append(
            {
                "name": name.value.decode(errors="replace"),
                "compute_capability": f"{major.value}.{minor.value}",
            }
        )
    return {
        "devices": devices,
        "driver_cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
        "reason": "" if devices else "the driver lists no device",
    }


def gpu_seems_present() -> bool:
    """Returns whether the machine has a device file of a GPU. The driver is not called, and may be unable to use the
    GPU."""
    return any(pathlib.Path("/dev").glob("nvidia[0-9]*")) or pathlib.Path("/dev/dxg").exists()


def targets_of(trt: ModuleType) -> list[str]:
    """Returns the names that --target accepts with this TensorRT."""
    members = getattr(getattr(trt, "ComputeCapability", None), "__members__", {})
    generations = sorted(int(name[2:]) for name in members if name.startswith("SM"))
    return ["current", *(f"sm{generation}" for generation in generations)]
