# graft.plugins: registers Graft's plugins in the TensorRT of this process, and adds plugin layers to a network written
# by hand.
"""Works without a GPU. The attributes of an operator are read from its plugin creator, so libraries of your own work as
Graft's does."""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import importlib
import importlib.util
import numbers
import os
import pathlib
import re
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

from graft.engine.events import EngineError
from graft.engine.libraries import ENTRY_POINTS, check_library, refusal_by_loader
from graft.errors import Error
from graft.library_alias import add_library_alias

# TensorRT's Python modules, in the order of preference if no module is imported yet.
MODULES = ("tensorrt", "tensorrt_rtx", "tensorrt_lean")
# The folders of the plugin library in a build, an installation and a wheel, relative to the folder of this package.
BESIDE_PACKAGE = (
    "lib",
    "../../lib",
    "../../../../lib",
    "../../../../lib/x86_64-linux-gnu",
    "../../../../lib/aarch64-linux-gnu",
    "../../build/lib",
)
LIBRARY_NAME = "libgraft_plugins.so"
NAMESPACE = "graft"
OLDEST_TENSORRT = 10
PARSER_OPENS = "libtensorrt_rtx.so"
WAY_OUT = (
    "Write the operator as an ONNX node instead: the ONNX parser adds the plugin, and you can add more layers to the "
    "parsed network (docs/guide/use_from_code.md)"
)

_loaded: dict[tuple[str, str], Any] = {}  # TensorRT's handle of a library, by module and library


class Creator(NamedTuple):
    """The key of a plugin creator in TensorRT's registry."""

    namespace: str
    name: str
    version: str


@dataclass(frozen=True, repr=False)
class Registration:
    """The result of `register`.

    tensorrt: the module and its version, "tensorrt_rtx 1.7.1.116".
    library: the path of the plugin library.
    creators: the creators that are in the registry after the call.
    before: the creators that were in the registry before the call.
    """

    tensorrt: str
    library: str
    creators: tuple[Creator, ...]
    before: tuple[Creator, ...]

    @property
    def added(self) -> tuple[Creator, ...]:
        """The creators that the call added."""
        return tuple(creator for creator in self.creators if creator not in self.before)

    def __repr__(self) -> str:
        added = ", ".join(creator.name for creator in self.added) or "none"
        return f"<graft.plugins.Registration in {self.tensorrt}: added {added}; {len(self.before)} before>"


def library() -> pathlib.Path:
    """Returns the path of Graft's plugin library, for TensorRT in another program (`trtexec --dynamicPlugins=...`).

    Raises graft.Error, of the kind "missing_tool", where this package was built without CUDA.
    """
    folder = pathlib.Path(__file__).absolute().parent  # not resolved: in a build this file is a link into the sources
    places = [pathlib.Path(os.path.normpath(folder / place / LIBRARY_NAME)) for place in BESIDE_PACKAGE]
    for path in places:
        if path.is_file():
            return path
    raise Error(
        f"{LIBRARY_NAME} was not found with this package (searched for {', '.join(map(str, places))})\nA build without "
        "CUDA does not have the library: build Graft with CUDA, or pass the path of a library: register(library=...)",
        "missing_tool",
    )


_own_library = library  # `register` has an argument of this name


def register(library: str | os.PathLike[str] | None = None, tensorrt: ModuleType | str | None = None) -> Registration:
    """Loads a plugin library into TensorRT's registry. A library that is already registered is not loaded again.

    library: the path of the library, for example of a project of `graft new`. None: Graft's own, which belongs to this
        package.
    tensorrt: the module, or its name: tensorrt, tensorrt_rtx or tensorrt_lean. None: the imported module, or, where
        none is imported, the first of these that is installed.

    Also lets the ONNX parser of TensorRT-RTX find its library, without which it ends the process for a model with
    plugins; warns where that fails. Raises graft.Error for a library that is missing,
    cannot be loaded, has no plugins or whose plugin names are taken, and for a TensorRT that is missing or too old
    (before 10).
    """
    module = _module(tensorrt)
    _help_parser(module)
    path = _own_library() if library is None else pathlib.Path(library)
    key = (module.__name__, os.path.realpath(path))
    was_open_before = _is_open(key[1]) and not any(loaded == key[1] for _, loaded in _loaded)
    _check(path)
    registry = module.get_plugin_registry()
    before = _creators(registry)
    if key not in _loaded:
        handle = registry.load_library(key[1])
        # TensorRT refuses a library that other code of this process has loaded; its plugins are registered already.
        if handle is None and not was_open_before:
            raise Error(
                f"plugin library {path}: {_title(module)} refuses to load it; TensorRT's log has the reason\nThe name "
                f"of a plugin may be taken. Registered before: {_listed(before)}"
            )
        _loaded[key] = handle
    return Registration(_title(module), str(path), _creators(registry), before)


def _help_parser(module: ModuleType) -> None:
    """Loads TensorRT-RTX's library under the name by which its ONNX parser opens it. The wheel lacks the name, and the
    parser ends the process for a model with plugins if it is missing."""
    if module.__name__ != "tensorrt_rtx":
        return
    with contextlib.suppress(OSError):
        ctypes.CDLL(PARSER_OPENS)
        return
    try:
        loaded = re.search(re.escape(PARSER_OPENS) + r"\.\d+", pathlib.Path("/proc/self/maps").read_text())
        if loaded is None:
            raise OSError(f"{PARSER_OPENS} is not loaded")
        add_library_alias(PARSER_OPENS, loaded[0])
    except OSError as error:
        warnings.warn(
            f"the ONNX parser of {_title(module)} will end the process for a model with plugins, because it opens "
            f"{PARSER_OPENS}: {error}. Before Python starts, add a folder with this symbolic link to LD_LIBRARY_PATH "
            "(docs/guide/install.md), or build the engine with graft.build",
            stacklevel=3,
        )


def add(
    network: Any,
    operator: str,
    inputs: Any,
    *,
    shape_inputs: Iterable[Any] = (),
    name: str | None = None,
    namespace: str | None = None,
    **attributes: Any,
) -> Any:
    """Adds a plugin layer to a network and returns it: `add(network, "L2Normalize", [x], axes=[1]).get_output(0)`.

    inputs: a tensor of the network or a list of tensors; optional inputs at the end may be omitted.
    shape_inputs: the tensors for the operator's shape inputs, whose values TensorRT computes before the layer runs.
    name: the name of the layer; None: the name of the operator.
    namespace: the namespace of the plugin. None: "graft" if the operator is registered there, otherwise the empty
        namespace, otherwise the only other namespace that has the operator.
    attributes: the attributes that `graft ops OPERATOR` lists; omitted attributes have their defaults.

    Raises graft.Error where no such plugin is registered (`register` loads plugins) or several namespaces have one, for
    an unknown attribute or a value of another type, where the plugin or the network refuses the layer, and with
    TensorRT-RTX, whose network has no method that adds a plugin.
    """
    module = _module_of(network)
    if not hasattr(network, "add_plugin_v3"):
        raise Error(
            f"{operator}: {_title(module)} has no add_plugin_v3, so plugins cannot be added to a network by "
            f"hand\n{WAY_OUT}",
            "missing_tool",
        )
    creator = _find_creator(module, operator, namespace)
    label = name or operator
    types = {field.name: field.type for field in creator.field_names}
    fields = [_field(module, operator, types, key, value) for key, value in attributes.items()]
    collection = module.PluginFieldCollection([field for field, _ in fields])
    plugin = creator.create_plugin(label, collection, module.TensorRTPhase.BUILD)
    if plugin is None:
        raise Error(
            f"{label}: {operator} refused {attributes}; TensorRT's log names the attribute and the allowed values\n"
            f"`graft ops {operator}` lists the allowed values"
        )
    tensors = list(inputs) if isinstance(inputs, Iterable) else [inputs]
    layer = network.add_plugin_v3(tensors, list(shape_inputs), plugin)
    if layer is None:
        raise Error(
            f"{label}: the network refused {operator} with {len(tensors)} inputs; TensorRT's log has the reason\n"
            f"`graft ops {operator}` lists the inputs, their types and shapes"
        )
    layer.name = label
    return layer


def _module(wanted: ModuleType | str | None) -> ModuleType:
    if isinstance(wanted, ModuleType):
        return _checked(wanted)
    if wanted is not None:
        return _checked(_imported(wanted))
    there = [sys.modules[name] for name in MODULES if name in sys.modules]
    if len(there) > 1:
        raise Error(
            f"several TensorRT modules are imported: {', '.join(module.__name__ for module in there)}\nSelect one: "
            "tensorrt=..."
        )
    if there:
        return _checked(there[0])
    for name in MODULES:
        if importlib.util.find_spec(name) is not None:
            return _checked(_imported(name))
    raise Error(
        f"no TensorRT is installed for {sys.executable} (searched for {', '.join(MODULES)})\n"
        f"Install one with: {sys.executable} -m pip install tensorrt-rtx-cu13",
        "missing_tool",
    )


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:  # a broken installation may raise any exception
        raise Error(
            f"the Python module {name} cannot be imported: {error}\nInstall it for {sys.executable}, or select "
            f"another one: {', '.join(MODULES)}",
            "missing_tool",
        ) from error


def _checked(module: ModuleType) -> ModuleType:
    is_full = module.__name__ == "tensorrt"
    major = re.match(r"\d+", str(getattr(module, "__version__", "")))
    is_old = is_full and major is not None and int(major[0]) < OLDEST_TENSORRT
    if is_old or not hasattr(module, "get_plugin_registry"):
        raise Error(
            f"{_title(module)} is too old or not TensorRT: Graft's plugins need the interface IPluginV3\nTensorRT "
            f"{OLDEST_TENSORRT} and later and TensorRT-RTX have this interface",
            "missing_tool",
        )
    return module


def _title(module: ModuleType) -> str:
    return f"{module.__name__} {getattr(module, '__version__', 'of an unknown version')}"


def _module_of(network: Any) -> ModuleType:
    """Returns the TensorRT module that defines the class of the network."""
    for name in MODULES:
        kind = getattr(sys.modules.get(name), "INetworkDefinition", None)
        if isinstance(kind, type) and isinstance(network, kind):
            return sys.modules[name]
    return _module(None)


def _check(path: pathlib.Path) -> None:
    """Raises graft.Error for a file that is not a plugin library, before TensorRT loads it: TensorRT's messages do not
    contain the reason."""
    try:
        check_library(str(path))
    except EngineError as error:
        raise Error(f"{error.message}\n{error.next_step}") from error
    try:
        library = ctypes.CDLL(os.path.realpath(path))
    except OSError as error:
        reason = refusal_by_loader(path, str(error))
        message = f"plugin library {path}: the loader refuses it: {error}; {reason['why']}"
        raise Error(f"{message}\n{reason['next_step']}") from error
    if not any(hasattr(library, name) for name in ENTRY_POINTS):
        raise Error(f"plugin library {path}: it exports neither {' nor '.join(ENTRY_POINTS)}, so it has no plugins")


def _is_open(path: str) -> bool:
    with contextlib.suppress(OSError):
        return path in pathlib.Path("/proc/self/maps").read_text()
    return False


def _creators(registry: Any) -> tuple[Creator, ...]:
    return tuple(Creator(each.plugin_namespace, each.name, each.plugin_version) for each in registry.all_creators)


def _listed(creators: Iterable[Creator]) -> str:
    return ", ".join(f"{each.namespace}::{each.name} {each.version}" for each in creators) or "none"


def _find_creator(module: ModuleType, operator: str, namespace: str | None) -> Any:
    """Returns the creator of the operator's newest version: in `namespace` or, if that is None, in "graft", in the
    empty namespace, or in the only other namespace that has the operator. Raises graft.Error where there is none, or
    where several other namespaces have the operator."""
    every = [each for each in module.get_plugin_registry().all_creators if hasattr(each, "create_plugin")]
    if namespace is not None:
        every = [each for each in every if each.plugin_namespace == namespace]
    found = [each for each in every if each.name == operator and type(each).__name__ == "IPluginCreatorV3One"]
    spaces = {each.plugin_namespace for each in found}
    for preferred in (NAMESPACE, ""):
        if preferred in spaces:
            spaces = {preferred}
    if len(spaces) > 1:
        raise Error(
            f"{operator}: several namespaces have a plugin of this name: {', '.join(sorted(spaces))}\n"
            "Select one: namespace=..."
        )
    if found:
        return max((each for each in found if each.plugin_namespace in spaces), key=_version)
    if any(each.name == operator for each in every):
        raise Error(
            f"{operator}: the creator of this plugin has an interface older than IPluginV3\nUse a library whose plugins "
            "implement IPluginV3"
        )
    known = sorted({each.name for each in every})
    near = difflib.get_close_matches(operator, known, 1)
    hint = f"did you mean {near[0]}?" if near else "graft.plugins.register() loads Graft's library"
    where = "" if namespace is None else f" in the namespace {namespace!r}"
    raise Error(
        f"{operator}: {_title(module)} has no creator of this name{where}; {hint}\nThe registered creators are "
        f"{', '.join(known) or 'none'}"
    )


def _version(creator: Any) -> tuple[int, str]:
    """Returns the key by which the creators of an operator are sorted by version: as numbers, because the string "10"
    comes before "9"."""
    text = str(creator.plugin_version)
    return (int(text) if text.isdecimal() else 0, text)


def _field(module: ModuleType, operator: str, types: dict[str, Any], name: str, value: Any) -> tuple[Any, Any]:
    """Returns a plugin field for the attribute `name`, and the array to which it points and which has to outlive it.
    `types` are the operator's attributes. Raises graft.Error for an unknown attribute or a value of another type."""
    import numpy as np

    kinds = {"FLOAT32": "number", "INT64": "integer", "CHAR": "string"}
    if name not in types:
        near = difflib.get_close_matches(name, types, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        allowed = ", ".join(f"{key} ({kinds.get(each.name, each.name)})" for key, each in types.items())
        raise Error(f"{operator} has no attribute {name}{hint}; its attributes are {allowed or 'none'}")
    kind = types[name].name
    if kind == "CHAR":
        if not isinstance(value, str):
            raise Error(f"{operator}: attribute {name} is {value!r}; it must be a string")
        held = np.frombuffer(value.encode(), np.int8)
        return module.PluginField(name, held, types[name]), held
    of_items = numbers.Integral if kind == "INT64" else numbers.Real
    items = np.asarray(value).reshape(-1).tolist() if isinstance(value, np.ndarray) else value
    items = list(items) if isinstance(items, Iterable) and not isinstance(items, str) else [items]
    if kind not in kinds or not all(isinstance(item, of_items) for item in items):
        raise Error(
            f"{operator}: attribute {name} is {value!r}; it must be of type {kinds.get(kind, kind)}, or a list of such "
            "values"
        )
    try:
        held = np.array(items, np.float32 if kind == "FLOAT32" else np.int64)
    except OverflowError as error:
        raise Error(f"{operator}: attribute {name} is {value!r}; it must be an integer that fits in 64 bits") from error
    return module.PluginField(name, held, types[name]), held
