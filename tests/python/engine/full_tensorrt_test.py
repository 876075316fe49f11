# The driver's path for the full TensorRT, against a stand-in; and what becomes of a build that is interrupted.
from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from conftest import HERE, Driven, drive, driver_environment

MODEL_BYTES = b"the stand-in does not read it"


class Setting:
    """A folder with a model, and the driver with the stand-in as `tensorrt`."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.model = folder / "m.onnx"
        self.model.write_bytes(MODEL_BYTES)
        self.engine = folder / "m.engine"
        self.record = folder.parent / (folder.name + ".record")
        self.arguments = ["build", str(self.model), "--output", str(self.engine), "--tensorrt", "full"]
        self.arguments += ["--shapes", "x=1x3..2x3..4x3"]

    def environment(self, version: str = "10.13.0", seconds: float = 0) -> dict[str, str]:
        return driver_environment(HERE / "stand_in") | {
            "STAND_IN_VERSION": version,
            "STAND_IN_RECORD": str(self.record),
            "STAND_IN_SECONDS": str(seconds),
        }

    def build(self, *flags: object, version: str = "10.13.0") -> Driven:
        return drive(*self.arguments, *flags, environment=self.environment(version))

    def calls(self) -> list[str]:
        return self.record.read_text().splitlines() if self.record.exists() else []

    def files(self) -> set[str]:
        return {p.name for p in self.folder.iterdir()}


@pytest.fixture
def setting(tmp_path: pathlib.Path) -> Setting:
    folder = tmp_path / "work"
    folder.mkdir()
    return Setting(folder)


@pytest.mark.parametrize("version", ["10.3.0", "11.4.0"])
def test_strongly_typed_network_with_profile(setting: Setting, version: str) -> None:
    result = setting.build("--workspace", 1 << 20, version=version).result
    assert setting.engine.read_bytes() == b"engine"
    assert result["tensorrt"] == {"flavour": "full", "module": "tensorrt", "version": version}
    assert result["network"]["inputs"] == [{"name": "x", "dtype": "f16", "shape": [-1, 3]}]
    calls = setting.calls()
    assert "network flags 2" in calls
    assert "standard plugins" in calls
    assert "WORKSPACE 1048576" in calls
    assert "profile x ((1, 3), (2, 3), (4, 3))" in calls


def test_only_the_gpu_that_is_there(setting: Setting) -> None:
    done = setting.build("--target", "sm89")
    assert done.code == 2
    assert done.error["kind"] == "target"
    assert "only for the GPU of this machine" in done.error["message"]
    assert "--tensorrt rtx" in done.error["next_step"]
    assert setting.build("--target", "current").result["targets"] == ["current"]


def test_plugin_override_where_it_exists(setting: Setting) -> None:
    done = setting.build("--plugin-override", version="10.3.0")
    assert done.error["kind"] == "option"
    assert "10.15" in done.error["next_step"]
    assert setting.build("--plugin-override", version="11.4.0").code == 0
    assert "parser flag ENABLE_PLUGIN_OVERRIDE" in setting.calls()


@pytest.mark.parametrize(
    ("before", "state", "after"),
    [
        (None, "new", b"+"),
        (b"old", "extended", b"old+"),
        (b"damaged", "replaced", b"+"),
        (b"foreign", "replaced", b"+"),
    ],
)
def test_timing_cache(setting: Setting, before: bytes | None, state: str, after: bytes) -> None:
    cache = setting.folder / "timing.cache"
    if before is not None:
        cache.write_bytes(before)
    done = setting.build("--timing-cache", cache)
    assert done.result["timing_cache"]["state"] == state
    assert cache.read_bytes() == after
    assert ("timing.cache" in done.logged("warning")) == (state == "replaced")
    assert setting.files() == {"m.onnx", "m.engine", "timing.cache"}


def is_alive(process: int) -> bool:
    """Neither gone nor a zombie that nobody has waited for yet."""
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_driver_takes_its_worker_along(setting: Setting, number: signal.Signals) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-m", "graft.engine", *setting.arguments],
        env=setting.environment(seconds=60),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not any(call.startswith("building in") for call in setting.calls()):
        assert driver.poll() is None
        time.sleep(0.02)
    worker = next(int(call.split()[-1]) for call in setting.calls() if call.startswith("building in"))
    assert is_alive(worker)
    os.kill(driver.pid, number)
    _, stderr = driver.communicate()
    assert driver.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert stderr == b""
    while is_alive(worker):
        time.sleep(0.02)
    assert setting.files() == {"m.onnx"}


def test_a_reader_that_goes_away_ends_the_build(setting: Setting) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-m", "graft.engine", *setting.arguments],
        env=setting.environment(seconds=1),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert driver.stdout is not None
    assert driver.stderr is not None
    driver.stdout.close()
    assert driver.wait() == 128 + signal.SIGPIPE
    assert driver.stderr.read() == b""
    driver.stderr.close()
    assert setting.files() == {"m.onnx"}
