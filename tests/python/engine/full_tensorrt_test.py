# Tests the driver's code for the full TensorRT with a stand-in, and interrupted builds.
from __future__ import annotations

import fcntl
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

    def build(self, *flags: object, version: str = "10.13.0", **environment: object) -> Driven:
        more = {name: str(value) for name, value in environment.items()}
        return drive(*self.arguments, *flags, environment=self.environment(version) | more)

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
    result = setting.build("--memory", "workspace=1MiB", version=version).result
    assert setting.engine.read_bytes() == b"engine"
    assert result["tensorrt"] == {"flavor": "full", "module": "tensorrt", "version": version}
    assert result["network"]["inputs"] == [{"name": "x", "dtype": "f16", "shape": [-1, 3]}]
    calls = setting.calls()
    assert "network flags 2" in calls
    assert "standard plugins" in calls
    assert "WORKSPACE 1048576" in calls
    assert "profile x ((1, 3), (2, 3), (4, 3))" in calls


LISTER = """#!{python}
import ctypes, sys
import tensorrt_lean as trt
registry = trt.get_plugin_registry()
before = {{(c.plugin_namespace, c.name, c.plugin_version) for c in registry.all_creators}}
registry.load_library(sys.argv[1])
for c in registry.all_creators:
    if (c.plugin_namespace, c.name, c.plugin_version) not in before:
        print((c.plugin_namespace + "::" if c.plugin_namespace else "") + c.name, c.plugin_version)
"""


@pytest.mark.usefixtures("lean")
@pytest.mark.parametrize(("version", "removed"), [("10.14.0", False), ("11.1.0", True)])
def test_grafts_libraries_load_beside_the_standard_plugins(
    setting: Setting, graft_library: pathlib.Path, stand_ins: pathlib.Path, version: str, removed: bool
) -> None:
    lister = setting.folder.parent / "lister.py"
    lister.write_text(LISTER.format(python=sys.executable))
    lister.chmod(0o755)
    environment = setting.environment(version) | {"STAND_IN_LISTER": str(lister)}
    libraries = ["--plugin-library", graft_library, "--plugin-library", stand_ins]
    result = drive(*setting.arguments, *libraries, environment=environment).result
    own, others = ({c["name"] for c in library["creators"]} for library in result["plugin_libraries"])
    assert {"LeakyReLU", "InstanceNorm", "Normalize", "Upsampling"} <= own
    assert {"l2norm_helper", "SPP_TRT", "ReflectPad"} <= others
    assert not {"InstanceNormalization_TRT", "ResizeNearest_TRT"} & others
    assert ("LReLU_TRT" in others) == ("Normalize_TRT" in others) == removed  # free where NVIDIA removed them


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


@pytest.mark.parametrize(
    ("flags", "calls"),
    [
        ([], ["clear TF32"]),
        (["--tf32"], ["set TF32"]),
        (["--version-compatible"], ["set VERSION_COMPATIBLE"]),
        (["--version-compatible", "--exclude-lean-runtime"], ["set VERSION_COMPATIBLE", "set EXCLUDE_LEAN_RUNTIME"]),
        (["--refit"], ["set REFIT"]),
        (["--strip-weights"], ["set STRIP_PLAN", "set REFIT_IDENTICAL"]),
        (["--strip-weights", "--refit"], ["set REFIT", "set STRIP_PLAN"]),
        (["--weight-streaming"], ["set WEIGHT_STREAMING"]),
        (["--optimization-level", "5"], ["builder_optimization_level = 5"]),
        (["--profiling-verbosity", "none"], ["profiling_verbosity = NONE"]),
        (
            ["--memory", "workspace=2GiB,tacticSharedMemory=48KiB", "--memory", "tacticDRAM=1.5G"],
            ["WORKSPACE 2147483648", "TACTIC_SHARED_MEMORY 49152", "TACTIC_DRAM 1610612736"],
        ),
        (["--input-format", "x=f16:hwc8+linear", "--output-format", "y=chw2"], ["formats of x 5", "formats of y 2"]),
        (["--input-format", "fp16:chw4"], ["formats of x 8"]),  # formats are given by position, as for trtexec
    ],
)
def test_builder_options_reach_tensorrt(setting: Setting, flags: list[str], calls: list[str]) -> None:
    result = setting.build(*flags).result
    assert [call for call in setting.calls() if call in calls] == calls
    assert result["options"]["tf32"] is ("--tf32" in flags)
    assert ("set REFIT_IDENTICAL" in setting.calls()) == (flags == ["--strip-weights"])


@pytest.mark.parametrize("core", [0, 1])
def test_dla_with_gpu_fallback(setting: Setting, core: int) -> None:
    flags = ["--dla", str(core), "--gpu-fallback", "--memory", "dlaSRAM=1MiB"]
    done = setting.build(*flags)
    assert (done.code, done.error["kind"]) == (2, "option")
    assert f"--dla {core}: tensorrt 10.13.0 finds no DLA core on this machine" in done.error["message"]
    assert setting.build(*flags, STAND_IN_DLA_CORES=2).result["options"]["dla"] == core
    expected = ["set GPU_FALLBACK", "default_device_type = DLA", f"DLA_core = {core}", "DLA_MANAGED_SRAM 1048576"]
    assert [call for call in setting.calls() if call in expected][-4:] == expected
    assert "--dla 2" in setting.build("--dla", "2", STAND_IN_DLA_CORES=2).error["message"]


def test_what_a_setter_says_on_the_logger_alone_is_an_error(setting: Setting) -> None:
    done = setting.build("--memory", "dlaSRAM=3000B")
    assert (done.code, done.error["kind"]) == (2, "option")
    assert "--memory dla_managed_sram=3000B: tensorrt 10.13.0 refuses this value" in done.error["message"]
    assert "no power of two" in done.error["message"]
    assert setting.files() == {"m.onnx"}


@pytest.mark.parametrize(
    ("flags", "lacking"),
    [
        (["--weight-streaming"], "BuilderFlag.WEIGHT_STREAMING"),
        (["--version-compatible"], "BuilderFlag.VERSION_COMPATIBLE"),
        (["--strip-weights"], "BuilderFlag.STRIP_PLAN"),
        (["--refit"], "BuilderFlag.REFIT"),
        (["--tf32"], "BuilderFlag.TF32"),
        (["--memory", "tacticDRAM=1GiB"], "MemoryPoolType.TACTIC_DRAM"),
        (["--input-format", "x=hwc16"], "TensorFormat.HWC16"),
        (["--profiling-verbosity", "detailed"], "ProfilingVerbosity.DETAILED"),
        (["--dla", "0"], "DeviceType.DLA"),
    ],
)
def test_what_this_tensorrt_lacks_is_refused_by_name(setting: Setting, flags: list[str], lacking: str) -> None:
    done = setting.build(*flags, version="11.4.0", STAND_IN_LACKS=lacking)
    assert (done.code, done.error["kind"]) == (2, "option")
    assert f"{flags[0]}" in done.error["message"]
    assert f"tensorrt 11.4.0 does not support this option (no {lacking})" in done.error["message"]
    assert setting.files() == {"m.onnx"}


def test_several_profiles(setting: Setting) -> None:
    ranges = ["1x3..2x3..4x3", "8x3..8x3..16x3"]
    setting.arguments = setting.arguments[:-2]
    result = setting.build("--profile", f"x={ranges[0]}", "--profile", f"x={ranges[1]}").result
    assert result["profiles"] == [{"x": ranges[0]}, {"x": ranges[1]}]
    assert [call for call in setting.calls() if call.startswith("profile x")] == [
        "profile x ((1, 3), (2, 3), (4, 3))",
        "profile x ((8, 3), (8, 3), (16, 3))",
    ]


def test_builds_that_share_a_timing_cache_lose_nothing(setting: Setting) -> None:
    cache = setting.folder / "timing.cache"
    cache.write_bytes(b"old")
    go = setting.folder / "go"
    slow = subprocess.Popen(
        [sys.executable, "-m", "graft.engine", *setting.arguments, "--timing-cache", str(cache)],
        env=setting.environment() | {"STAND_IN_WAITS_FOR": str(go)},
        stdout=subprocess.DEVNULL,
    )
    while not any(call.startswith("building in") for call in setting.calls()):
        assert slow.poll() is None
        time.sleep(0.02)
    fast = setting.folder / "fast.engine"
    assert setting.build("--output", fast, "--timing-cache", cache).code == 0
    assert cache.read_bytes() == b"old+"
    go.touch()
    assert slow.wait() == 0
    assert cache.read_bytes() == b"oldold++"  # its own data, and those that the other build wrote meanwhile
    assert setting.files() == {"m.onnx", "m.engine", "fast.engine", "timing.cache", "go"}


def test_a_link_for_a_timing_cache_is_replaced_and_not_followed(setting: Setting) -> None:
    cache = setting.folder / "timing.cache"
    link = setting.folder / "link.cache"
    link.symlink_to(cache.name)
    for before, after in ((None, b"+"), (b"old", b"old+")):  # the link is dangling, then refers to a cache
        if before is not None:
            cache.write_bytes(before)
            link.unlink()
            link.symlink_to(cache.name)
        assert setting.build("--timing-cache", link).code == 0
        assert link.read_bytes() == after and not link.is_symlink()
        assert cache.read_bytes() == before if before is not None else not cache.exists()


def test_a_timing_cache_waits_for_the_build_that_writes_it(setting: Setting) -> None:
    cache = setting.folder / "timing.cache"
    cache.write_bytes(b"old")
    with cache.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        driver = subprocess.Popen(
            [sys.executable, "-m", "graft.engine", *setting.arguments, "--timing-cache", str(cache)],
            env=setting.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert driver.stdout is not None
        for line in driver.stdout:
            if '"write"' in line:
                break  # the engine is built, and only the cache is not written yet
        assert cache.read_bytes() == b"old"
        # Another build replaces the file while this one waits for the lock on the replaced file.
        replaced = setting.folder / "new"
        replaced.write_bytes(b"theirs")
        replaced.replace(cache)
    driver.stdout.read()
    driver.stdout.close()
    assert driver.wait() == 0
    assert cache.read_bytes() == b"oldtheirs+"


def is_alive(process: int) -> bool:
    """Returns whether a process exists and is not a zombie."""
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
