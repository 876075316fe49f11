"""The TensorRT of a worker process: its logger, its plugin registry and the loaded plugin libraries. The session works
with tensorrt_rtx, tensorrt 10.x, tensorrt 11.x and tensorrt_lean; it checks whether an attribute exists where their
bindings differ."""

from __future__ import annotations

import ctypes
import filecmp
import os
import pathlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from graft.engine.events import EngineError, EventWriter
from graft.engine.flavors import Flavor, import_flavor
from graft.engine.libraries import ENTRY_POINTS, check_damage, refusal_by_loader, without_plugins

# The first line of the message in which TensorRT lists an engine's kernels.
LAYERS_HEADING = "Layers:"

# TensorRT's message about a library that has a creator with the name, version and namespace of a registered one.
CREATOR_EXISTS = re.compile(r"plugin creator of (\S+) exists already")


class Session:
    """Imports the bindings and passes TensorRT's messages on as events."""

    def __init__(self, flavor: Flavor, events: EventWriter) -> None:
        self.flavor = flavor
        self.events = events
        self.trt = import_flavor(flavor)
        self.layers_account = ""
        self._is_silent = False
        self.warnings: list[str] = []  # TensorRT's warnings so far; its errors are in `errors`
        self.errors: list[str] = []
        self.logger = make_logger(self.trt, self.hear)
        # Creating a builder sets the logger of TensorRT, including the registry. A lean runtime would set it too, but
        # it cannot be created without a GPU and then ends the process when it is destroyed; its registry works without
        # a logger.
        self.owner = self.trt.Builder(self.logger) if hasattr(self.trt, "Builder") else None
        if hasattr(self.trt, "init_libnvinfer_plugins"):
            self.trt.init_libnvinfer_plugins(self.logger, "")
        self.registry = self.trt.get_plugin_registry()
        self._loaded: list[Any] = []
        self._creators_of: dict[str, set[tuple[str, str, str]]] = {}  # by the path of the library that registered them

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Drops TensorRT's messages inside the block."""
        self._is_silent = True
        try:
            yield
        finally:
            self._is_silent = False

    def hear(self, severity: str, message: str) -> None:
        if self._is_silent:
            return
        if message.startswith(LAYERS_HEADING):
            self.layers_account = message
        if severity == "warning":
            self.warnings.append(message)
        elif severity in ("internal_error", "error"):
            self.errors.append(message)
        self.events.log(severity, message)

    @property
    def version(self) -> str:
        return f"{self.flavor.module} {self.trt.__version__}"

    @contextmanager
    def refusing(self, option: str) -> Iterator[None]:
        """Raises EngineError, naming `option`, if TensorRT logs an error or raises an exception inside the block. Most
        setters of TensorRT report a refusal only in the log."""
        before = len(self.errors)
        try:
            yield
        except (RuntimeError, ValueError, TypeError) as error:
            raise self.refusal(option, str(error)) from error
        if len(self.errors) > before:
            raise self.refusal(option, self.errors[before])

    def refusal(self, option: str, reason: str) -> EngineError:
        return EngineError(
            "option",
            f"{option}: {self.version} refuses this value: {reason}",
            f"Omit {option}, or use an allowed value",
        )

    def identity(self) -> dict[str, str]:
        return {
            "flavor": self.flavor.name,
            "module": self.flavor.module,
            "version": str(self.trt.__version__),
        }

    def load_plugin_library(self, path: str) -> list[dict[str, Any]]:
        """Loads a library and returns a description of each creator that it added. Raises EngineError where the loader
        or TensorRT refuses it, and where it has no plugins."""
        library = pathlib.Path(path)
        check_damage(path)
        before = {creator_key(creator) for creator in self.registry.all_creators}
        self.events.write({"event": "loading", "library": path})
        # TensorRT refuses a whole library if one of its names is taken; libgraft_stand_ins.so reads this variable and
        # leaves these names out.
        os.environ["GRAFT_LEAVE_OUT"] = ",".join(sorted({name for name, _, space in before if not space}))
        handle = open_library(library)
        has_entry_point = any(hasattr(handle, name) for name in ENTRY_POINTS)
        if has_entry_point:
            token = self.registry.load_library(str(library.resolve()))
            if token is None:
                raise self._refusal(path, hasattr(handle, ENTRY_POINTS[0]))
            self._loaded.append(token)
        # A library without entry points may have registered its creators while it was opened. A library that was built
        # with another TensorRT has then damaged the registry, so that reading the creators may crash here.
        added = [c for c in self.registry.all_creators if creator_key(c) not in before]
        self.events.write({"event": "loading", "library": None})
        if not added and not has_entry_point:
            raise without_plugins(path)
        self._creators_of[path] = {creator_key(creator) for creator in added}
        return [describe_creator(creator) for creator in added]

    def _refusal(self, path: str, has_current_entry_point: bool) -> EngineError:
        version = f"{self.flavor.module} {self.trt.__version__}"
        if has_current_entry_point and (taken := self._taken(path)):
            cause, (why, next_step) = "taken", taken
        elif has_current_entry_point:
            cause, why = "refused", "see TensorRT's messages above"
            next_step = "Check that the library was built for this release of TensorRT"
        else:
            cause = "exports"
            why = f"it exports only {ENTRY_POINTS[1]}, the list of V2 plugins, but {version} reads {ENTRY_POINTS[0]}"
            next_step = f"Export {ENTRY_POINTS[0]} with plugins of IPluginV3, or use a TensorRT release that reads both"
        return EngineError(
            "plugin_library",
            f"plugin library {path}: {version} refuses to load it; {why}",
            next_step,
            library=path,
            cause=cause,
        )

    def _taken(self, path: str) -> tuple[str, str] | None:
        """Returns the reason for the refusal and the next step, if a plugin of the refused library is registered
        already; otherwise None. A lean runtime logs no reason; there, a copy of a loaded library is recognized by its
        contents."""
        found = next(filter(None, map(CREATOR_EXISTS.search, reversed(self.errors))), None)
        for library, creators in self._creators_of.items():
            if found and any(name == found[1] for name, _, _ in creators):
                return (
                    f"{library} has registered a plugin with the name, version and namespace of its {found[1]}",
                    f"Load only one of the two libraries: leave out {library}",
                )
            if not found and filecmp.cmp(library, path, shallow=False):
                return f"{library} is the same library and is loaded already", f"Load it once: leave out {library}"
        if found:
            return (
                f"{self.flavor.module} has a plugin with the name, version and namespace of its {found[1]}",
                f"Rename the plugin {found[1]} of the library, or give it another version or namespace",
            )
        return None


def make_logger(trt: ModuleType, hear: Callable[[str, str], None]) -> Any:
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
            hear(names.get(severity, "info"), message)

    return Logger()


def open_library(library: pathlib.Path) -> ctypes.CDLL:
    """Opens the library before TensorRT does: the loader's message names a missing dependency, TensorRT's does not.
    Raises EngineError with the reason."""
    try:
        return ctypes.CDLL(str(library.resolve()), mode=ctypes.DEFAULT_MODE)
    except OSError as error:
        found = refusal_by_loader(library, str(error))
        why = f"; {found['why']}" if found["why"] else ""
        facts = {name: value for name, value in found.items() if name not in ("why", "next_step")}
        raise EngineError(
            "plugin_library",
            f"plugin library {library}: the loader refuses it: {error}{why}",
            found["next_step"],
            library=str(library),
            reason=str(error),
            **facts,
        ) from error


def creator_key(creator: Any) -> tuple[str, str, str]:
    return creator.name, creator.plugin_version, creator.plugin_namespace


def describe_creator(creator: Any) -> dict[str, Any]:
    """Returns the name, version, namespace, interface and fields of a creator as plain data."""
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
    """Returns "V2" (deprecated by NVIDIA, not strongly typed), "V3" or "V3 quick", by the class of the bindings."""
    known = {"IPluginCreator": "V2", "IPluginCreatorV3One": "V3", "IPluginCreatorV3Quick": "V3 quick"}
    return known.get(type(creator).__name__, "unknown")
