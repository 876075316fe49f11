# Fixtures of the tests of an installation: the installation, and commands that run without the checkout.
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(os.environ["GRAFT_SOURCE_DIR"])
BUILD = Path(os.environ["GRAFT_BUILD_DIR"])
NVCC = Path(os.environ["GRAFT_CUDA_COMPILER"])

# The environment without the variables that point other tests to the checkout.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith("GRAFT_") and name not in ("PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
}
# nvcc may be in the checkout, but users have their own: the script moves it to another place.
HIDE = """
set -e
if [ -n "$3" ]; then mkdir -p "$2" && mount --bind "$3" "$2"; fi
mount -t tmpfs none "$1"
shift 3
exec "$@"
"""


def can_hide() -> bool:
    return subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], check=False).returncode == 0


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("install")
    # A bytecode file as Python leaves it where an example ran.
    bytecode = ROOT / "examples" / "python" / "__pycache__" / "left_by_the_tests_of_an_installation.pyc"
    bytecode.parent.mkdir(exist_ok=True)
    bytecode.touch()
    try:
        done = subprocess.run(
            ["cmake", "--install", BUILD, "--prefix", folder / "first"], capture_output=True, text=True, check=False
        )
    finally:
        bytecode.unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr
    return (folder / "first").rename(folder / "moved")


def without_checkout(folder: Path, *command: object, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in the folder with the checkout hidden."""
    if not can_hide():
        pytest.skip("this machine allows no mount namespace, which hides the checkout")
    environment = ENVIRONMENT | more
    toolkit = ""
    if NVCC.is_relative_to(ROOT):
        toolkit = str(NVCC.parent.parent)
        environment["CUDACXX"] = str(folder / "cuda" / "bin" / NVCC.name)
    arguments = [str(ROOT), str(folder / "cuda"), toolkit, *map(str, command)]
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", HIDE, "sh", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
