# Tests the example of the guide, and the package without PyTorch.
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(os.environ.get("GRAFT_SOURCE_DIR", pathlib.Path(__file__).parents[3]))


def test_numpy_needs_no_pytorch():
    code = "import sys, graft.ops; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_module_that_cannot_be_imported_is_no_attribute():
    """pickle reads an attribute `torch` of every module, and ignores only AttributeError."""
    code = "import sys; sys.modules['torch'] = None; import graft; assert not hasattr(graft, 'torch')"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_example_of_the_guide(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    path = tmp_path / "network.onnx"
    subprocess.run([sys.executable, ROOT / "examples" / "use_from_python" / "network.py", path], check=True)
    (features,) = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).get_outputs()
    assert features.name == "features"
    assert features.shape == ["batch", 8 * 21]
