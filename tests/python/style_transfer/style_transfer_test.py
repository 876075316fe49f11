"""examples/style_transfer end to end: its demo, its committed picture, and each network with every choice of plugins."""

import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(os.environ["GRAFT_SOURCE_DIR"])
EXAMPLE = ROOT / "examples" / "style_transfer"
GRAFT = Path(os.environ["GRAFT_BIN"])
LIBRARY = Path(os.environ["GRAFT_PLUGIN_LIBRARY"])
NETWORKS = pytest.mark.parametrize("name", ["style", "style_dynamo", "style_f16"])
SHAPES = ("--shapes", "image=1x3x64x64..1x3x192x256..4x3x512x512")

sys.path.append(str(EXAMPLE))
import pictures  # noqa: E402


def graft(*arguments: object, folder: Path, code: int = 0) -> str:
    done = subprocess.run([GRAFT, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def needs_tensorrt() -> None:
    if importlib.util.find_spec("tensorrt_rtx") is None:
        pytest.skip("the Python module tensorrt_rtx is not installed")


def needs_library() -> None:
    if not LIBRARY.is_file():
        pytest.skip(f"{LIBRARY} was not built")


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("content")
    picture = pictures.draw_content().transpose(2, 0, 1)[None]
    np.savez(folder / "content.npz", style=picture, style_dynamo=picture, style_f16=picture.astype(np.float16))
    return folder / "content.npz"


@pytest.fixture(scope="module")
def convert(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Returns the converted network of a name and a choice of plugins. Each is converted once: that takes five seconds
    of processor time."""
    folder = tmp_path_factory.mktemp("converted")

    @functools.cache
    def once(name: str, plugins: str) -> Path:
        path = folder / f"{name}.{plugins}.onnx"
        graft("convert", EXAMPLE / f"{name}.onnx", "-o", path, "--plugins", plugins, folder=folder)
        return path

    return once


def painted(model: Path, content: Path, name: str, folder: Path, kernels: str) -> np.ndarray:
    graft("run", "-q", model, "-i", f"image={content}:{name}", "--kernels", kernels, "-o", "out.npz", folder=folder)
    return pictures.pixels(np.load(folder / "out.npz")["painting"]).astype(int)


@NETWORKS
@pytest.mark.parametrize("plugins", ["auto", "always", "never"])
def test_converted_networks_paint_the_same(
    name: str, plugins: str, convert: Callable[[str, str], Path], content: Path, tmp_path: Path
) -> None:
    original, converted = EXAMPLE / f"{name}.onnx", convert(name, plugins)
    for kernels in ("functions", "own"):
        data = ("--data", f"image={content}:{name}", "--kernels", kernels)
        graft("verify", original, converted, *data, folder=tmp_path)
    before = painted(original, content, name, tmp_path, "functions")
    after = painted(converted, content, name, tmp_path, "own")
    assert np.abs(before - after).max() <= 1


@NETWORKS
@pytest.mark.parametrize("plugins", ["auto", "always"])
def test_engines_hold_the_plugins(name: str, plugins: str, convert: Callable[[str, str], Path], tmp_path: Path) -> None:
    needs_tensorrt()
    needs_library()
    build = ("build", convert(name, plugins), "-o", "style.engine", "--target", "sm120", *SHAPES, "--json")
    result = json.loads(graft(*build, folder=tmp_path))
    names = [plugin["name"] for plugin in result["network"]["plugins"]]
    assert names.count("InstanceNorm") == (8 if plugins == "auto" else 11)
    if plugins == "always":
        assert (names.count("Padding"), names.count("Upsampling")) == (12, 2)


@NETWORKS
def test_originals_build_as_native_layers(name: str, tmp_path: Path) -> None:
    needs_tensorrt()
    build = ("build", EXAMPLE / f"{name}.onnx", "-o", "style.engine", "--target", "sm120", *SHAPES, "--json")
    assert json.loads(graft(*build, folder=tmp_path))["network"]["plugins"] == []


def read_png(path: Path) -> np.ndarray:
    """Reads a file of pictures.write_png: one block of data, each row as its difference from the previous row."""
    data = path.read_bytes()
    width, height = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    start = data.index(b"IDAT")
    rows = zlib.decompress(data[start + 4 : start + 4 + int.from_bytes(data[start - 4 : start])])
    differences = np.frombuffer(rows, np.uint8).reshape(height, -1)[:, 1:]
    return np.cumsum(differences, axis=0, dtype=np.uint8).reshape(height, width, 3)


def test_demo_paints_the_picture_of_its_readme(tmp_path: Path) -> None:
    demo = subprocess.run(["bash", EXAMPLE / "demo", tmp_path], capture_output=True, text=True, check=False)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert len(re.findall("^the same: ", demo.stdout, re.MULTILINE)) == 3
    if importlib.util.find_spec("tensorrt_rtx") is not None:
        for name in ("style", "style_dynamo", "style_f16"):
            assert (tmp_path / f"{name}.engine").stat().st_size > 0
    panels = [read_png(path).astype(int) for path in (tmp_path / "style.png", EXAMPLE / "picture.png")]
    assert panels[0].shape == panels[1].shape
    # The committed picture has fewer colors, in steps of 8; another processor rounds differently.
    assert np.abs(panels[0] - panels[1]).max() <= 8
