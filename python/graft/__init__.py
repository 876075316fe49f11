# The Python package of Graft (distribution `graft-tensorrt`).
"""Graft: custom layers for NVIDIA TensorRT, and tools that convert, verify, quantize and build models for it.

    import graft

    network = graft.load("model.pb")                                  # TensorFlow, Caffe or ONNX
    converted = graft.convert(network)                                # for TensorRT, each rewrite proven on the CPU
    print(graft.verify(network, converted.model))                     # compares outputs on the same inputs
    typed = graft.quantize(converted.model, precision="f16")
    graft.build(typed.model, "model.engine", targets=["sm89"])

    graft.auto("model.pb", "model.engine", precision="f16")           # all of this in one call

The guides are in share/doc/graft/docs/guide of the environment or the installation; begin with python.md.

Importing graft is quick: the modules of a name are imported when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graft._toolkit import (
        AutoResult,
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
        auto,
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

# The modules of names. Other classes are the extension's, and other functions are those of graft.toolkit.
_HOMES = {
    "cmake_prefix": "graft.cmake",
    **dict.fromkeys(("Cancelled", "EngineError", "Error"), "graft.errors"),
    "Session": "graft.toolkit",
}

# Submodules that are imported when they are first used, because graft.torch needs PyTorch.
_MODULES = ("examples", "ops", "plugins", "ray", "torch")

__all__ = [
    "AutoResult",
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
    "auto",
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
    if name not in __all__:
        raise AttributeError(f"module 'graft' has no attribute {name!r}")
    home = _HOMES.get(name, "graft._toolkit" if name[0].isupper() else "graft.toolkit")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
