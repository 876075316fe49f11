# The Python package of Graft (distribution `graft-tensorrt`).
"""Graft: custom layers for NVIDIA TensorRT, and tools that convert, verify, quantize and build models for it.

    import graft

    network = graft.load("model.pb")                                  # TensorFlow, Caffe or ONNX
    converted = graft.convert(network)                                # for TensorRT, each rewrite proven on the CPU
    print(graft.verify(network, converted.model))                     # compares outputs on the same inputs
    typed = graft.quantize(converted.model, precision="f16")
    graft.build(typed.model, "model.engine", targets=["sm89"])

The guides are in share/doc/graft/docs/guide of the environment or the installation; begin with python.md.

Importing graft is quick: the modules of a name are imported when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graft._toolkit import (
        BuildResult,
        CanaryResult,
        CancelToken,
        ConvertResult,
        CutNetwork,
        CutResult,
        InspectResult,
        LayersResult,
        Model,
        NodeRef,
        Port,
        QuantizeResult,
        TensorRef,
        VerifyResult,
    )
    from graft.cmake import cmake_prefix
    from graft.errors import Cancelled, EngineError, Error
    from graft.toolkit import (
        Session,
        build,
        canary,
        convert,
        cut,
        inspect,
        load,
        load_cut,
        load_operators,
        pass_names,
        quantize,
        releases,
        verify,
        verify_layers,
        write_calibration_cache,
    )

__version__ = "0.1.0"

# The module that defines each name.
_HOMES = {
    "BuildResult": "graft._toolkit",
    "CanaryResult": "graft._toolkit",
    "CancelToken": "graft._toolkit",
    "ConvertResult": "graft._toolkit",
    "CutNetwork": "graft._toolkit",
    "CutResult": "graft._toolkit",
    "InspectResult": "graft._toolkit",
    "LayersResult": "graft._toolkit",
    "Model": "graft._toolkit",
    "NodeRef": "graft._toolkit",
    "Port": "graft._toolkit",
    "QuantizeResult": "graft._toolkit",
    "TensorRef": "graft._toolkit",
    "VerifyResult": "graft._toolkit",
    "cmake_prefix": "graft.cmake",
    "Cancelled": "graft.errors",
    "EngineError": "graft.errors",
    "Error": "graft.errors",
    "Session": "graft.toolkit",
    "build": "graft.toolkit",
    "canary": "graft.toolkit",
    "convert": "graft.toolkit",
    "cut": "graft.toolkit",
    "inspect": "graft.toolkit",
    "load": "graft.toolkit",
    "load_cut": "graft.toolkit",
    "load_operators": "graft.toolkit",
    "pass_names": "graft.toolkit",
    "quantize": "graft.toolkit",
    "releases": "graft.toolkit",
    "verify": "graft.toolkit",
    "verify_layers": "graft.toolkit",
    "write_calibration_cache": "graft.toolkit",
}

# Submodules that are imported when they are first used, because graft.torch needs PyTorch.
_MODULES = ("examples", "ops", "plugins", "torch")

__all__ = [
    "BuildResult",
    "CanaryResult",
    "CancelToken",
    "Cancelled",
    "ConvertResult",
    "CutNetwork",
    "CutResult",
    "EngineError",
    "Error",
    "InspectResult",
    "LayersResult",
    "Model",
    "NodeRef",
    "Port",
    "QuantizeResult",
    "Session",
    "TensorRef",
    "VerifyResult",
    "__version__",
    "build",
    "canary",
    "cmake_prefix",
    "convert",
    "cut",
    "inspect",
    "load",
    "load_cut",
    "load_operators",
    "pass_names",
    "quantize",
    "releases",
    "verify",
    "verify_layers",
    "write_calibration_cache",
]


def __getattr__(name: str) -> object:
    import importlib

    if name in _MODULES:
        try:
            return importlib.import_module(f"graft.{name}")
        except ImportError as error:
            # torch.compile pickles, and pickle looks up an attribute `torch` in every module. It ignores only
            # AttributeError.
            raise AttributeError(f"graft.{name} cannot be imported: {error}") from error
    if name not in _HOMES:
        raise AttributeError(f"module 'graft' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
