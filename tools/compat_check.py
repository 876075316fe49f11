# Creates, clones, serializes and re-creates every plugin of a plugin library in the plugin registry of one TensorRT.
"""tools/compat.py and tests run it in a process of its own: `compat_check.py MODULE LIBRARY BRIDGE [MANIFEST]`.

The manifest, written by case_models, has fields for the creators of Graft's own library; other creators get no fields.

Prints one JSON object: `version`, `creators`, and for each creator `passed` and `failed` checks.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pathlib
import sys
from typing import Any

import numpy as np

# Values that no creator may accept, by type of the field: the wrong type, and for scales a value out of range.
FLOATS, TEXT = np.array([0.5], np.float32), np.frombuffer(b"text", np.int8)


class Bridge:
    """The compiled tools/plugin_bridge.cpp."""

    ROOM = 1 << 16

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        pointer = ctypes.c_void_p
        for name, result, arguments in [
            ("is_plugin", ctypes.c_bool, [pointer]),
            ("clone", pointer, [pointer]),
            ("destroy", None, [pointer]),
            ("recreate", pointer, [pointer, pointer]),
            ("describe", None, [pointer, ctypes.c_char_p, ctypes.c_size_t]),
            ("accepts", ctypes.c_bool, [pointer, ctypes.c_int, ctypes.c_int, ctypes.c_int]),
        ]:
            function = getattr(self._library, "bridge_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def text(self, plugin: int) -> str:
        room = ctypes.create_string_buffer(self.ROOM)
        self.describe(plugin, room, self.ROOM)
        return room.value.decode()

    def fields(self, plugin: int) -> dict[str, tuple[int, int, bytes]]:
        """Returns type, length and bytes of each serialized field by its name."""
        rows = [line.split("\t") for line in self.text(plugin).splitlines()[1:]]
        return {name: (int(kind), int(length), bytes.fromhex(data)) for name, kind, length, data in rows}


def pointer_of(bound: object) -> int:
    """Returns the C++ pointer in an object of the bindings (pybind11, simple layout): the word after its header."""
    return ctypes.c_void_p.from_address(id(bound) + object.__basicsize__).value or 0


class StandardError:
    """Captures the standard error of this process, to which plugins log where TensorRT has no logger for them."""

    def __init__(self) -> None:
        self._file = os.memfd_create("standard error")
        sys.stderr.flush()
        os.dup2(self._file, 2)
        self._read = 0

    def new_lines(self) -> list[str]:
        data = os.pread(self._file, 1 << 20, self._read)
        self._read += len(data)
        return data.decode(errors="replace").splitlines()


class Check:
    def __init__(self, module: str, library: str, bridge: str, manifest: str | None) -> None:
        listed = json.loads(pathlib.Path(manifest).read_text())["creators"] if manifest else []
        self.sets = {(creator["name"], creator["version"]): creator["sets"] for creator in listed}
        self.trt = importlib.import_module(module)
        self.messages: list[str] = []
        # A member, because a registry passes messages on only while the logger exists.
        self.logger = self._make_logger()
        self.owner = self.trt.Builder(self.logger) if hasattr(self.trt, "Builder") else None
        self.stderr = StandardError()
        self.bridge = Bridge(bridge)
        self.registry = self.trt.get_plugin_registry()
        before = {(c.name, c.plugin_version, c.plugin_namespace) for c in self.registry.all_creators}
        self.loaded = self.registry.load_library(library) is not None
        self.creators = [
            c for c in self.registry.all_creators if (c.name, c.plugin_version, c.plugin_namespace) not in before
        ]
        self.passed: list[str] = []
        self.failed: list[str] = []

    def _make_logger(self) -> Any:
        trt, messages = self.trt, self.messages

        class Logger(trt.ILogger):  # type: ignore[name-defined, misc]
            def __init__(self) -> None:
                trt.ILogger.__init__(self)

            def log(self, severity: Any, message: str) -> None:
                if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
                    messages.append(message)

        return Logger()

    def expect(self, holds: bool, what: str) -> None:
        (self.passed if holds else self.failed).append(what)

    def create(self, creator: Any, fields: dict[str, tuple[np.ndarray, Any]]) -> Any:
        # The bindings keep pointers into these arrays; they must live until the plugin exists.
        self.messages.clear()
        listed = [self.trt.PluginField(name, data, kind) for name, (data, kind) in fields.items()]
        collection = self.trt.PluginFieldCollection(listed)
        plugin = creator.create_plugin("layer", collection, self.trt.TensorRTPhase.BUILD)
        self.messages += self.stderr.new_lines()
        return plugin

    def value_of(self, field: dict[str, Any]) -> tuple[np.ndarray, Any]:
        kinds = self.trt.PluginFieldType
        value = field["value"]
        if field["type"] == "string":
            return np.frombuffer(value.encode(), np.int8), kinds.CHAR
        if field["type"].startswith("float"):
            return np.atleast_1d(np.array(value, np.float32)), kinds.FLOAT32
        return np.atleast_1d(np.array(value, np.int64)), kinds.INT64

    def check_creator(self, listed: Any) -> dict[str, Any]:
        self.passed, self.failed = [], []
        creator = self.registry.get_creator(listed.name, listed.plugin_version, listed.plugin_namespace)
        self.expect(creator is not None, "get_creator")
        kinds = {field.name: field.type for field in listed.field_names}
        if creator is not None:
            sets = self.sets.get((listed.name, listed.plugin_version), [{}])
            given = [{name: self.value_of(field) for name, field in each.items()} for each in sets]
            for number, fields in enumerate(given):
                self.check_round_trip(creator, fields, f"set {number}")
            self.check_refusals(creator, kinds, given[0])
        return {
            "name": listed.name,
            "version": listed.plugin_version,
            "namespace": listed.plugin_namespace,
            "fields": {name: kind.name.lower() for name, kind in kinds.items()},
            "passed": self.passed,
            "failed": self.failed,
        }

    def check_round_trip(self, creator: Any, given: dict[str, tuple[np.ndarray, Any]], what: str) -> None:
        plugin = self.create(creator, given)
        if plugin is None:
            self.expect(False, f"{what}: refused: {' '.join(self.messages)}")
            return
        pointer = pointer_of(plugin)
        if not self.bridge.is_plugin(pointer):
            self.expect(False, f"{what}: the bindings' object is not a plugin")
            return
        kept = self.bridge.fields(pointer)
        for name, (data, kind) in given.items():
            same = name in kept and kept[name] == (kind.value, len(data), data.tobytes())
            self.expect(same, f"{what}: {name} is serialized as given")
        before = self.bridge.text(pointer)
        copy = self.bridge.clone(pointer)
        self.expect(bool(copy) and copy != pointer and self.bridge.text(copy) == before, f"{what}: clone")
        made = self.bridge.recreate(pointer_of(creator), copy)
        self.expect(bool(made) and self.bridge.text(made) == before, f"{what}: re-created from its serialized fields")
        for other in (copy, made):
            if other:
                self.bridge.destroy(other)

    def check_refusals(self, creator: Any, kinds: dict[str, Any], good: dict[str, Any]) -> None:
        types = self.trt.PluginFieldType
        wrong = {
            name: (FLOATS, types.FLOAT32) if kind != types.FLOAT32 else (TEXT, types.CHAR)
            for name, kind in kinds.items()
        }
        for name, value in {**wrong, "no_such_field": (FLOATS, types.FLOAT32)}.items():
            self.expect_refusal(creator, good, name, value, "of the wrong type" if name in kinds else "unknown")
        for name in kinds:
            if name.endswith("_scale"):
                self.expect_refusal(creator, good, name, (np.array([-1], np.float32), types.FLOAT32), "out of range")

    def expect_refusal(
        self, creator: Any, good: dict[str, Any], name: str, value: tuple[np.ndarray, Any], how: str
    ) -> None:
        refused = self.create(creator, {**good, name: value}) is None
        named = any(name in message for message in self.messages)
        self.expect(refused, f"field {name} {how} is refused")
        self.expect(named, f"field {name} {how} is named in the log: {self.messages}")


def main() -> None:
    module, library, bridge = sys.argv[1:4]
    manifest = sys.argv[4] if len(sys.argv) > 4 else None
    check = Check(module, str(pathlib.Path(library).resolve()), bridge, manifest)
    creators = [check.check_creator(creator) for creator in check.creators]
    print(json.dumps({"version": check.trt.__version__, "loaded": check.loaded, "creators": creators}), flush=True)


if __name__ == "__main__":
    main()
