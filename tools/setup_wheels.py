"""Installs the wheels of deps.toml in .deps, each group once; tools/setup calls it with the groups."""

import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
STAMPS = DEPS / "stamps"
LOG = DEPS / "setup.log"


def say(text: str) -> None:
    print(f"deps: {text}", flush=True)


def fail(text: str) -> None:
    print(f"deps: error: {text}", file=sys.stderr)
    sys.exit(3)


def stamp_of(pins: list[str]) -> str:
    """Returns the expected stamp of a group, which changes with the pins and with the Python version."""
    return hashlib.sha256("\n".join([sys.version, *sorted(pins)]).encode()).hexdigest()


def pip_install(what: str, pins: list[str], target: pathlib.Path | None = None) -> None:
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check", "--no-input"]
    if target:
        command += ["--target", str(target), "--upgrade"]
    say(f"installing {what}: {len(pins)} wheels, first {pins[0]}")
    with LOG.open("a") as log:
        log.write(f"\n$ {' '.join(command + pins)}\n")
        log.flush()
        result = subprocess.run(command + pins, stdout=log, stderr=subprocess.STDOUT, check=False)
    if result.returncode:
        print("\n".join(LOG.read_text().splitlines()[-15:]), file=sys.stderr)
        fail(f"pip could not install {what} (whole log: {LOG})")


def install_once(name: str, pins: list[str], target: pathlib.Path | None = None) -> None:
    stamp = STAMPS / name
    if stamp.is_file() and stamp.read_text() == stamp_of(pins) and (target is None or target.is_dir()):
        return
    if target:
        shutil.rmtree(target, ignore_errors=True)
    pip_install(name, pins, target)
    STAMPS.mkdir(parents=True, exist_ok=True)
    stamp.write_text(stamp_of(pins))


def link(path: pathlib.Path, target: pathlib.Path) -> None:
    """Replaces path with a relative symbolic link to target, unless it is one already."""
    wanted = os.path.relpath(target, path.parent)
    if path.is_symlink() and os.readlink(path) == wanted:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(wanted)


def site_packages() -> pathlib.Path:
    return (
        pathlib.Path(sys.prefix) / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    )


def has_tensorrt_headers() -> bool:
    """Returns whether an SDK with IPluginV3 is installed; cmake/FindTensorRTHeaders.cmake searches the same places."""
    places = [pathlib.Path(f"/usr/include/{platform.machine()}-linux-gnu"), pathlib.Path("/usr/include")]
    if os.environ.get("TENSORRT_ROOT"):
        return True  # CMake refuses a wrong TENSORRT_ROOT by name
    headers = [place / "NvInferRuntime.h" for place in places]
    return any(header.is_file() and "IPluginV3" in header.read_text(errors="replace") for header in headers)


def nvcc_version(nvcc: str) -> tuple[int, ...]:
    try:
        text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ()
    found = re.search(r"release (\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else ()


def has_cuda_compiler(minimum: str) -> bool:
    """Returns whether a new enough nvcc is installed; cmake/FindCudaCompiler.cmake searches the same places."""
    wanted = tuple(int(part) for part in minimum.split("."))
    for nvcc in (os.environ.get("CUDACXX"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"):
        if nvcc and nvcc_version(nvcc) >= wanted:
            return True
    return False


def finish_cuda_wheels() -> None:
    """Links the wheels' CUDA libraries to the names that nvcc and CMake search, which the wheels lack."""
    toolkit = site_packages() / "nvidia" / "cu13"
    link(toolkit / "lib64", toolkit / "lib")
    link(toolkit / "lib" / "libcudart.so", toolkit / "lib" / "libcudart.so.13")
    link(DEPS / "cuda", toolkit)


def install_group(group: str, pins: dict, cuda: dict) -> None:
    if group in pins:  # the sanitizers need Debian packages alone
        install_once(group, pins[group])
    if group == "build":
        if not has_tensorrt_headers():
            install_once("headers", pins["headers"])
        if os.environ.get("GRAFT_CUDA", "AUTO") != "OFF" and not has_cuda_compiler(cuda["minimum"]):
            install_once("cuda", pins["cuda"])
            finish_cuda_wheels()
    if group == "engine":
        # TensorRT-RTX opens its own library by the development name, which its wheel lacks.
        link(DEPS / "lib-rtx" / "libtensorrt_rtx.so", site_packages() / "tensorrt_rtx_libs" / "libtensorrt_rtx.so.1")


def install_compat(compat: dict) -> None:
    for flavor, packages in compat["packages"].items():
        for version in compat[flavor]:
            name = f"{flavor}-{version}"
            target = DEPS / "compat" / name
            install_once(name, [f"{package}=={version}" for package in packages], target)
            for library in target.glob("tensorrt_rtx_libs/libtensorrt_rtx.so.1"):
                link(target / "lib" / "libtensorrt_rtx.so", library)


def main(groups: list[str]) -> None:
    with (ROOT / "deps.toml").open("rb") as file:
        deps = tomllib.load(file)
    for group in groups:
        if group == "compat":
            install_compat(deps["compat"])
        elif group == "aarch64":
            subprocess.run([sys.executable, ROOT / "tools" / "setup_aarch64.py"], check=True)
        else:
            install_group(group, deps["pypi"], deps["cuda"])


if __name__ == "__main__":
    main(sys.argv[1:])
