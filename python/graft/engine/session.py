# One TensorRT inside a worker process: its logger, its plugin registry and the libraries loaded into it.
"""Works with tensorrt_rtx, tensorrt 10.x and 11.x and tensorrt_lean: what differs is found by looking for it."""

from __future__ import annotations

import ctypes
import pathlib
from types import ModuleType
from typing import Any

from graft.engine.events import EngineError, EventWriter
from graft.engine.flavours import Flavour, import_flavour

# TensorRT finds a library's creators through one of these; both generations are in use.
ENTRY_POINTS = ("getCreators", "getPluginCreators")


class Session:
    """Imports the bindings and passes TensorRT's messages on as events."""

    def __init__(self, flavour: Flavour, events: EventWriter) -> None:
        self.flavour = flavour
        self.events = events
        self.trt = import_flavour(flavour)
        self.logger = make_logger(self.trt, events)
        # A builder is what tells TensorRT, registry included, which logger to use. A lean runtime would too, but
        # without a GPU it cannot be made and ends the process when it is destroyed; its registry does without.
        self.owner = self.trt.Builder(self.logger) if hasattr(self.trt, "Builder") else None
        if hasattr(self.trt, "init_libnvinfer_plugins"):
            self.trt.init_libnvinfer_plugins(self.logger, "")
        self.registry = self.trt.get_plugin_registry()
        self._loaded: list[Any] = []

    def identity(self) -> dict[str, str]:
        return {
            "flavour": self.flavour.name,
            "module": self.flavour.module,
            "version": str(self.trt.__version__),
        }

    def load_plugin_library(self, path: str) -> list[dict[str, Any]]:
        """Loads one library; returns a description of each creator that it added."""
        library = pathlib.Path(path)
        if not library.is_file():
            raise EngineError(
                "plugin_library",
                f"plugin library {path}: no such file",
                "Check the path; `make build` leaves Graft's own at build/lib/libgraft_plugins.so",
                library=path,
            )
        before = {creator_key(creator) for creator in self.registry.all_creators}
        handle = open_library(library)
        has_entry_point = any(hasattr(handle, name) for name in ENTRY_POINTS)
        if has_entry_point:
            token = self.registry.load_library(str(library.resolve()))
            if token is None:
                raise EngineError(
                    "plugin_library",
                    f"plugin library {path}: {self.flavour.module} {self.trt.__version__} refuses to load it; "
                    "its messages come before this one",
                    "Check that the library was built for this TensorRT",
                    library=path,
                )
            self._loaded.append(token)
        # A library without entry points may have registered its creators while it was opened.
        added = [c for c in self.registry.all_creators if creator_key(c) not in before]
        if not added and not has_entry_point:
            raise EngineError(
                "plugin_library",
                f"plugin library {path}: it exports neither {' nor '.join(ENTRY_POINTS)}, and opening it "
                "registered no plugin",
                'A TensorRT plugin library exports getCreators and setLoggerFinder as extern "C"',
                library=path,
            )
        return [describe_creator(creator) for creator in added]


def make_logger(trt: ModuleType, events: EventWriter) -> Any:
    names = {
        trt.ILogger.Severity.INTERNAL_ERROR: "internal_error",
        trt.ILogger.Severity.ERROR: "error",
        trt.ILogger.Severity.WARNING: "warning",
        trt.ILogger.Severity.INFO: "info",
        trt.ILogger.Severity.VERBOSE: "verbose",
    }

    class Logger(trt.ILogger):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, message: str) -> None:
            events.log(names.get(severity, "info"), message)

    return Logger()


def open_library(library: pathlib.Path) -> ctypes.CDLL:
    """Opens the library first by itself: the loader's text names a missing dependency, TensorRT's does not."""
    try:
        return ctypes.CDLL(str(library.resolve()), mode=ctypes.DEFAULT_MODE)
    except OSError as error:
        reason = str(error)
        if "cannot open shared object file" in reason:
            missing = reason.split(":")[0]
            next_step = f"Install {missing}, or name its folder in LD_LIBRARY_PATH"
        elif "undefined symbol" in reason:
            next_step = "A library that it was built against is missing, or is there in another version"
        else:
            next_step = "Give a shared library built for this machine"
        raise EngineError(
            "plugin_library",
            f"plugin library {library}: the loader refuses it: {reason}",
            next_step,
            library=str(library),
            reason=reason,
        ) from error


def creator_key(creator: Any) -> tuple[str, str, str]:
    return creator.name, creator.plugin_version, creator.plugin_namespace


def describe_creator(creator: Any) -> dict[str, Any]:
    """Name, version, namespace, interface and fields of a creator, as plain data."""
    info = getattr(creator, "interface_info", None)
    fields = creator.field_names or []
    return {
        "name": creator.name,
        "version": creator.plugin_version,
        "namespace": creator.plugin_namespace,
        "interface": getattr(info, "kind", type(creator).__name__),
        "generation": creator_generation(creator),
        "fields": [{"name": field.name, "type": field.type.name.lower(), "length": field.size} for field in fields],
    }


def creator_generation(creator: Any) -> str:
    """V2 (deprecated by NVIDIA, not strongly typed), V3 or V3 quick, from the bindings' class."""
    known = {"IPluginCreator": "V2", "IPluginCreatorV3One": "V3", "IPluginCreatorV3Quick": "V3 quick"}
    return known.get(type(creator).__name__, "unknown")
