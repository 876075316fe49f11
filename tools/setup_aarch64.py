"""Creates .deps/aarch64, with which the preset aarch64 compiles for 64-bit ARM; `tools/setup aarch64` calls it.

The folder has the structure of .deps, so that GRAFT_DEPS_DIR can name it. Nothing outside of .deps changes:

  root           Debian's arm64 packages, unpacked: headers, libraries and Python. It is the sysroot of the compiler.
  venv           a Python environment with the aarch64 wheels of deps.toml. Its bin/python starts root's Python in qemu.
  cuda           NVIDIA's toolkit: nvcc runs on this machine, headers and libraries are those of aarch64
  root-clean     Debian's packages for Python alone, in which the test installs the wheel
  *.txt          the versions of the packages in these roots
  wheels         the wheels that the test installs there
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib

from setup_wheels import DEPS, LOG, ROOT, fail, link, say

HOME = DEPS.resolve() / "aarch64"
STAMPS = HOME / "stamps"
APT = HOME / "apt"
SYSROOT = HOME / "root"
VENV = HOME / "venv"
SITE = VENV / "lib" / "python3.11" / "site-packages"
EMULATOR = "qemu-aarch64-static"
# pip accepts exactly these platforms. 2.35 is the glibc of Ubuntu 22.04, and of JetPack 6.
PLATFORMS = [f"manylinux_2_{minor}_aarch64" for minor in range(35, 16, -1)] + ["manylinux2014_aarch64"]


def run(what: str, *command: object, **options: object) -> None:
    """Runs a command with its output in the log; a failure shows the end of the log."""
    words = [str(word) for word in command]
    with LOG.open("a") as log:
        log.write(f"\n$ {' '.join(words)}\n")
        log.flush()
        done = subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode:
        print("\n".join(LOG.read_text(errors="replace").splitlines()[-15:]), file=sys.stderr)
        fail(f"{what} failed (whole log: {LOG})")


def is_done(name: str, content: object) -> bool:
    """Returns whether the step ended with the same content before."""
    stamp = STAMPS / name
    return stamp.is_file() and stamp.read_text() == stamp_of(content)


def finish(name: str, content: object) -> None:
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / name).write_text(stamp_of(content))


def stamp_of(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()


def apt_environment() -> dict[str, str]:
    """Returns an environment in which apt-get works for arm64 with this machine's sources, and knows no installed package.
    So it downloads the requested packages with everything that they depend on."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (APT / folder).mkdir(parents=True, exist_ok=True)
    (APT / "status").write_text("")
    settings = APT / "apt.conf"
    settings.write_text(
        f"""APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
APT::Sandbox::User "root";
Dir::State "{APT}/state";
Dir::State::status "{APT}/status";
Dir::Cache "{APT}/cache";
"""
    )
    return os.environ | {"APT_CONFIG": str(settings), "DEBIAN_FRONTEND": "noninteractive"}


def unpack_packages(name: str, packages: list[str]) -> None:
    """Unpacks Debian's arm64 packages and their dependencies into a new folder. Their scripts are not run."""
    if is_done(name, packages) and (HOME / name).is_dir():
        return
    say(f"unpacking {len(packages)} arm64 packages of Debian, with their dependencies, into .deps/aarch64/{name}")
    environment = apt_environment()
    archives = APT / "cache" / "archives"
    for old in archives.glob("*.deb"):
        old.unlink()
    run("apt-get update", "apt-get", "update", "-q", env=environment)
    download = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "--download-only"]
    run("apt-get install --download-only", *download, *packages, env=environment)
    root = HOME / name
    shutil.rmtree(root, ignore_errors=True)
    # Debian 12 has these folders in /usr alone.
    for folder in ("bin", "sbin", "lib"):
        (root / "usr" / folder).mkdir(parents=True)
        (root / folder).symlink_to(f"usr/{folder}")
    versions = []
    for archive in sorted(archives.glob("*.deb")):
        shown = ["dpkg-deb", "--show", "--showformat=${Package} ${Version}", archive]
        versions.append(subprocess.run(shown, capture_output=True, text=True, check=True).stdout)
        unpack = f'dpkg-deb --fsys-tarfile "{archive}" | tar -x --keep-directory-symlink --no-same-owner -C "{root}"'
        run(f"unpacking {archive.name}", "bash", "-o", "pipefail", "-c", unpack)
        archive.unlink()
    (HOME / f"{name}.txt").write_text("\n".join(versions) + "\n")
    # The compiler follows links of the sysroot from this machine's root, so they become relative.
    for path in root.rglob("*"):
        if path.is_symlink() and os.readlink(path).startswith("/"):
            link(path, root / os.readlink(path)[1:])
    finish(name, packages)


def install_wheels(pins: list[str], of_this_machine: list[str]) -> None:
    """Installs wheels into the environment: those of aarch64, and the programs of the CUDA compiler for this machine."""
    if is_done("wheels", pins + of_this_machine) and SITE.is_dir():
        return
    shutil.rmtree(SITE, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check", "--no-input"]
    pip += ["--upgrade", "--target", SITE, "--only-binary=:all:"]
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    say(f"installing {len(pins)} aarch64 wheels, first {pins[0]}")
    run("pip install", *pip, "--python-version", "3.11", *platforms, *pins)
    if of_this_machine:
        # pip would replace the folder nvidia, so these wheels are installed into another folder first.
        other = HOME / "compiler"
        shutil.rmtree(other, ignore_errors=True)
        run("pip install", *[other if word is SITE else word for word in pip], *of_this_machine)
        shutil.copytree(other, SITE, dirs_exist_ok=True, symlinks=True)
        shutil.rmtree(other)
    finish("wheels", pins + of_this_machine)


def download_wheels(pins: list[str]) -> None:
    """Downloads the aarch64 wheels that the test installs in root-clean, where no registry is reached."""
    folder = HOME / "wheels"
    sources = [pin for pin in pins if pin.startswith("tensorrt-rtx-cu13==")]
    if is_done("downloads", pins) and folder.is_dir():
        return
    shutil.rmtree(folder, ignore_errors=True)
    say(f"downloading {len(pins)} aarch64 wheels, first {pins[0]}")
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--no-input"]
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    wheels = [pin for pin in pins if pin not in sources]
    run("pip download", *pip, "--only-binary=:all:", "--python-version", "3.11", *platforms, "--dest", folder, *wheels)
    # This package is a source distribution, which names the two others; its wheel is of no platform.
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    run("pip wheel", *pip, "--wheel-dir", folder, *sources)
    finish("downloads", pins)


def write_interpreter() -> None:
    """Writes the environment of root's Python, whose program `python` is a script that starts qemu."""
    (VENV / "bin").mkdir(parents=True, exist_ok=True)
    (VENV / "pyvenv.cfg").write_text(f"home = {SYSROOT}/usr/bin\ninclude-system-site-packages = false\n")
    python = VENV / "bin" / "python"
    python.write_text(
        f"""#!/bin/sh
# Written by tools/setup_aarch64.py. Programs that Python starts find aarch64's libraries by QEMU_LD_PREFIX as well.
export QEMU_LD_PREFIX="{SYSROOT}"
exec {EMULATOR} -0 "{python}" "{SYSROOT}/usr/bin/python3.11" "$@"
"""
    )
    python.chmod(0o755)


def finish_cuda_wheels() -> None:
    """Links the wheels' CUDA libraries to the names that nvcc and CMake search, which the wheels lack."""
    toolkit = SITE / "nvidia" / "cu13"
    link(toolkit / "lib64", toolkit / "lib")
    link(toolkit / "lib" / "libcudart.so", toolkit / "lib" / "libcudart.so.13")
    link(HOME / "cuda", toolkit)


def main() -> None:
    if not shutil.which(EMULATOR):
        fail(f"{EMULATOR} is missing; on Debian 12: apt-get install qemu-user-static")
    with (ROOT / "deps.toml").open("rb") as file:
        deps = tomllib.load(file)
    libraries = [package for package in deps["debian"]["build"] if package.endswith("-dev")]
    unpack_packages("root", libraries + deps["aarch64"]["root"])
    programs = deps["aarch64"]["cuda_programs"]
    pypi = deps["pypi"]
    pins = pypi["build"] + pypi["headers"]
    compiler = []
    if os.environ.get("GRAFT_CUDA", "AUTO") != "OFF":
        pins += [pin for pin in pypi["cuda"] if pin.partition("==")[0] not in programs]
        compiler = [pin for pin in pypi["cuda"] if pin.partition("==")[0] in programs]
    install_wheels(pins, compiler)
    write_interpreter()
    unpack_packages("root-clean", deps["aarch64"]["clean_root"])
    download_wheels(pypi["build"] + pypi["engine"])
    if compiler:
        finish_cuda_wheels()


if __name__ == "__main__":
    main()
