# Shared data of the wheel's tests: the digits network in all formats, and its images.
import os
import pathlib

import graft
import numpy as np
import pytest

ROOT = pathlib.Path(os.environ["GRAFT_SOURCE_DIR"])
DIGITS = ROOT / "examples" / "digits"


@pytest.fixture(scope="session")
def images() -> np.ndarray:
    return np.load(DIGITS / "digits_test.npz")["images"].astype(np.float32)


@pytest.fixture(scope="session")
def network() -> "graft.Model":
    return graft.load(DIGITS / "digits.onnx")


@pytest.fixture(scope="session")
def converted(network: "graft.Model") -> "graft.ConvertResult":
    return graft.convert(network)
