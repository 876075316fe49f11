# in_wheel.py PYTEST-ARGUMENT...: packs the wheel, installs it into a fresh environment, and runs pytest there.
"""The environment has what deps.toml pins, as links, and nothing of the checkout is on any path. pip decides whether these
packages are what the wheel asks for: it may look nowhere else."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(os.environ["GRAFT_SOURCE_DIR"])
NOT_LINKED = ("pip", "setuptools", "_distutils_hack", "distutils-precedence.pth", "pkg_resources", "__pycache__")
# What the other tests are told of the checkout.
HIDDEN = ("PYTHONPATH", "LD_LIBRARY_PATH", "GRAFT_BIN", "GRAFT_PYTHON", "GRAFT_PLUGIN_LIBRARY", "GRAFT_BUILD_DIR")


def make_environment(folder: pathlib.Path) -> pathlib.Path:
    """Its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = pathlib.Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    for entry in pathlib.Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(NOT_LINKED):
            (site / entry.name).symlink_to(entry)
    return python


def main(arguments: list[str]) -> int:
    subprocess.run([sys.executable, ROOT / "tools" / "wheel.py"], check=True)
    (wheel,) = (ROOT / "dist").glob("graft_tensorrt-*.whl")
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="graft-wheel-"))
    try:
        python = make_environment(folder / "venv")
        install = [python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", wheel]
        subprocess.run(install, env=environment, check=True)
        return subprocess.run([python, "-P", "-m", "pytest", *arguments], env=environment, check=False).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
