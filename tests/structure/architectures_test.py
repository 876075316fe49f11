# Tests that a wheel has kernels for all GPUs, and that the demo builds engines on whose GPUs the plugins run.
import json
import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("target", "chosen", "architectures"),
    [
        ("wheel", None, "all"),
        ("wheel", "80-real;90", "80-real;90"),
        ("wheel-aarch64", None, "all"),
        ("wheel-aarch64", "87-real", "87-real"),
        ("build", None, ""),
        ("demo", None, ""),
    ],
)
def test_a_wheel_has_kernels_for_all_gpus(target: str, chosen: str | None, architectures: str) -> None:
    # A make that runs the tests hands on its own settings.
    removed = ("GRAFT_CUDA_ARCHITECTURES", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS")
    environment = {name: value for name, value in os.environ.items() if name not in removed}
    if chosen:
        environment["GRAFT_CUDA_ARCHITECTURES"] = chosen
    commands = subprocess.run(["make", "-n", target], cwd=SOURCE, env=environment, capture_output=True, check=True)
    assert f"'-DGRAFT_CUDA_ARCHITECTURES={architectures}'" in commands.stdout.decode()


@pytest.mark.parametrize(
    ("architectures", "target"),
    [
        (["90-virtual"], "sm120,sm121"),
        (["75-real", "80-real", "90", "120-real"], "sm120,sm121"),
        (["89-real"], "sm89"),
        (["80-real"], "sm89"),  # GPUs of one generation run the code of the older ones
        (["75-real"], "sm75"),
        (["87-real"], ""),  # Orin's code runs on no other GPU
        (["90-real"], ""),  # TensorRT-RTX does not build for Hopper
        (None, "sm120,sm121"),  # without CUDA there are no plugins
    ],
)
def test_the_demo_builds_for_gpus_with_kernels(
    architectures: list[str] | None, target: str, tmp_path: pathlib.Path
) -> None:
    facts = {} if architectures is None else {"cuda_architectures": architectures}
    doctor = tmp_path / "doctor.json"
    doctor.write_text(json.dumps({"findings": [{"name": "plugin library", "facts": facts}]}))
    command = [sys.executable, SOURCE / "examples" / "digits" / "results.py", "target", doctor]
    assert subprocess.run(command, capture_output=True, check=True).stdout.decode().strip() == target
