# in_wheel.py ENVIRONMENT install|pytest ARGUMENT...: packs the wheel and installs it into an environment, or tests it there.
"""The environment has links to the packages that deps.toml pins, and no file of the checkout is on any path. pip,
which may search nowhere else, decides whether these packages satisfy the wheel's requirements."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(os.environ["GRAFT_SOURCE_DIR"])
NOT_LINKED = ("setuptools", "_distutils_hack", "distutils-precedence.pth", "pkg_resources", "__pycache__")
# Variables that point other tests to the checkout.
HIDDEN = ("PYTHONPATH", "LD_LIBRARY_PATH", "GRAFT_BIN", "GRAFT_PYTHON", "GRAFT_PLUGIN_LIBRARY", "GRAFT_BUILD_DIR")


def make_environment(folder: pathlib.Path) -> pathlib.Path:
    """Creates the environment and returns its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = pathlib.Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    for entry in pathlib.Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(NOT_LINKED):
            (site / entry.name).symlink_to(entry)
    return python


def main(folder: pathlib.Path, step: str, arguments: list[str]) -> int:
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    if step == "pytest":
        python = folder / "bin" / "python"
        return subprocess.run([python, "-P", "-m", "pytest", *arguments], env=environment, check=False).returncode
    subprocess.run([sys.executable, ROOT / "tools" / "wheel.py"], check=True)
    (wheel,) = (ROOT / "dist").glob("graft_tensorrt-*_x86_64.whl")
    shutil.rmtree(folder, ignore_errors=True)
    python = make_environment(folder)
    install = [python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", wheel]
    return subprocess.run(install, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
