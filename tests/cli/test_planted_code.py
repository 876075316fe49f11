# Tests that no Python file in the working directory runs that is named like a module which Graft's child processes
# import.
import os
import re
import shutil
import subprocess

import pytest
from conftest import DIGITS, DIGITS_SHAPES, PLUGIN_LIBRARY, PROGRAM, needs_plugin_library
from graft.engine.files import which

COMMANDS = {
    "doctor": ["doctor"],
    "plugins": ["plugins", PLUGIN_LIBRARY, "--tensorrt", "rtx"],
    "build": ["build", DIGITS, "-o", "digits.engine", "--target", "sm120", "--shapes", DIGITS_SHAPES],
    "inspect": ["inspect", DIGITS, "--truth", "parser", "--shapes", DIGITS_SHAPES],
    "bench": ["bench", "--op", "LeakyReLU", "--device", "cpu", "--time-limit", "0.1"],
}


@pytest.fixture
def planted(tmp_path):
    """Creates a working directory with such files; each writes a file there when it runs."""
    folder = tmp_path / "download"
    packages = [folder / "graft", folder / "graft" / "engine", folder / "graft" / "bench"]
    for package in packages:
        package.mkdir(parents=True)
    scripts = [package / "__init__.py" for package in packages]
    scripts += [package / "__main__.py" for package in packages[1:]]
    modules = ("json", "runpy", "ctypes", "site", "sitecustomize", "usercustomize", "tensorrt", "tensorrt_rtx", "numpy")
    scripts += [folder / f"{module}.py" for module in modules]
    for script in scripts:
        script.write_text(f"open({str(folder / 'ran')!r}, 'a').write(__name__ + '\\n')\nraise SystemExit(9)\n")
    for program in ("ldd", "nvidia-smi"):
        (folder / program).write_text(f"#!/bin/sh\necho {program} >>'{folder}/ran'\nexit 9\n")
        (folder / program).chmod(0o755)
    return folder


@needs_plugin_library
@pytest.mark.parametrize("path", ["as it is", "with empty entries"])
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_of_the_working_directory_runs(graft, planted, command, path):
    names = ("PYTHONPATH", "LD_LIBRARY_PATH", "PATH")
    environment = {name: os.environ.get(name, "") for name in names}
    if path == "with empty entries":
        environment = {name: f":{value}::" for name, value in environment.items()}
    answer = graft(*COMMANDS[command], cwd=planted, env=environment)
    ran = planted / "ran"
    assert not ran.exists(), ran.read_text()
    assert answer.code in (0, 3 if command in ("doctor", "bench") else 0), answer.err


def test_no_library_of_the_working_directory_is_loaded(graft, tmp_path):
    """The files are named like the libraries that the program needs. With an empty entry in the program's search
    path, the loader would load one of them instead of the system's, and fail."""
    text = subprocess.run(["readelf", "-d", PROGRAM], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    assert "libc.so.6" in needed
    for name in needed:
        (tmp_path / name).write_bytes(b"no library")
    graft("ops", cwd=tmp_path, code=0)


def test_no_program_of_the_working_directory_is_found(planted, monkeypatch):
    monkeypatch.chdir(planted)
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH']}")
    assert shutil.which("ldd") == "ldd", "the planted one comes first by itself"
    assert os.path.isabs(which("ldd"))
    assert which("nvidia-smi") != "nvidia-smi"
    monkeypatch.setenv("PATH", ":")
    assert which("ldd") is None
