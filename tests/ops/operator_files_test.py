# Tests the Python files in the operators' folders: golden generators, networks of exporters, near misses and PyTorch
# peers, with stand-ins for the frameworks.
import importlib
import json
import math
import os
import pathlib
import re
import sys
import types

import pytest

SOURCE = pathlib.Path(os.environ["GRAFT_SOURCE_DIR"])
GOLDEN = pathlib.Path(os.environ["GRAFT_GOLDEN_DIR"])
FRAMEWORKS = ["keras", "numpy", "onnx", "onnxruntime", "paddle", "paddle.nn", "paddle.nn.functional", "tensorflow"]
FRAMEWORKS += ["torch", "torch.nn", "torch.nn.functional", "torchvision", "torchvision.ops"]
GENERATORS = ["export_cases", "golden_cases", "make_exports", "make_goldens", "near_miss_cases", "operator_files"]
GENERATORS += ["scatter_cases"]


class Anything(types.ModuleType):
    """A stand-in for a framework and for any object of it: it has every attribute and is true."""

    def __init__(self, name="anything"):
        super().__init__(name)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)

    def value(self, *_, **__):
        return Anything()

    __call__ = __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = value
    __rtruediv__ = __pow__ = __neg__ = __and__ = __or__ = __invert__ = __mod__ = value

    def __setitem__(self, *_):
        pass

    def __gt__(self, _):
        return True

    __lt__ = __le__ = __ge__ = __gt__

    def __float__(self):
        return 1.0

    def __int__(self):
        return 1

    __index__ = __int__

    def __mro_entries__(self, _):
        return (Layer,)  # found as the base of a derived class

    def __len__(self):
        return 1

    def __iter__(self):
        return iter([Anything()])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class Layer:
    """A stand-in for the frameworks' classes of layers."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        return Anything(name)


class RecordedGolden:
    """Records the names of the cases instead of their values."""

    made = {}

    def __init__(self, operator, _):
        self.operator, self.names = operator, []

    def x(self, name, _):
        return name

    def add(self, name, *_, **__):
        self.names.append(name)

    def write(self, _, stem):
        self.made[stem] = (self.operator, self.names)


@pytest.fixture
def stand_ins(monkeypatch):
    for name in FRAMEWORKS:
        monkeypatch.setitem(sys.modules, name, Anything(name))
    sys.modules["numpy"].prod = math.prod  # a generator selects cases by it
    monkeypatch.syspath_prepend(str(GOLDEN / "generators"))
    for name in GENERATORS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.import_module("golden_cases")
    monkeypatch.setattr("golden_cases.Golden", RecordedGolden)
    monkeypatch.setattr("golden_cases.quantized", lambda *_: (Anything(), 1.0))
    yield
    for name in GENERATORS:
        sys.modules.pop(name, None)


def test_every_operator_generates_the_golden_cases_that_are_stored(stand_ins, tmp_path):
    files = importlib.import_module("operator_files")
    folders = files.operator_folders()
    assert sorted(folders) == sorted(path.stem for path in (GOLDEN / "ops").glob("*.json"))
    for folder in folders:
        files.load(folder, "golden").make(tmp_path)
        stored = json.loads((GOLDEN / "ops" / f"{folder}.json").read_text())
        expected = (stored["operator"], [case["name"] for case in stored["cases"]])
        assert RecordedGolden.made[folder] == expected, folder


def test_the_exported_networks_that_are_stored_are_those_of_the_operators_folders(stand_ins):
    files = importlib.import_module("operator_files")
    listed = {"torch": {}, "tensorflow": {}, "paddle": {}}
    described = []
    for folder, cases in files.load_all("exports").items():
        described.append({"operator": cases.OPERATOR, "pass": f"fuse_{folder}", "kinds": cases.KINDS})
        for framework, entries in listed.items():

            def case(
                name, _, expected, expression, *__, without=(None, None), frozen_graph=None, entries=entries, **___
            ):
                allowed = [expected, without[1], expected | (frozen_graph or {})]
                assert entries.setdefault(name, (expression, allowed)) == (expression, allowed), name

            getattr(cases, f"{framework}_cases")(case)
    manifest = json.loads((GOLDEN / "exports" / "manifest.json").read_text())
    assert manifest["operators"] == described
    found = {framework: set() for framework in listed}
    for entry in manifest["exports"]:
        framework = {"torch": "torch", "paddl": "paddle"}.get(entry["file"][:5], "tensorflow")
        stem = entry["file"].partition("_")[2].rpartition(".")[0]
        stem = re.sub(r"^((script|dynamo)_)?(opset\d+_)?", "", stem)
        name = stem if stem in listed[framework] else stem.removesuffix("_static")
        expression, allowed = listed[framework][name]
        found[framework].add(name)
        assert entry["expression"] == expression
        defaults = {"native": 0, "required": True}
        told = {key: entry[key] for key in entry.keys() - {"file", "exporter", "opset", "expression", "nodes"}}
        assert told in [defaults | each for each in allowed if each is not None], entry["file"]
    assert found == {framework: set(entries) for framework, entries in listed.items()}


def test_the_near_misses_that_are_stored_are_those_of_the_operators_folders(stand_ins):
    manifest = json.loads((GOLDEN / "near_misses" / "manifest.json").read_text())
    misses, controls = [], []
    for cases in importlib.import_module("operator_files").load_all("near_misses").values():
        misses += [(f"{cases.PREFIX}_{miss.name}.onnx", miss.words) for miss in cases.MISSES]
        controls += [f"control_{name}.onnx" for name, *_ in cases.CONTROLS]
    assert [(entry["file"], entry.get("words")) for entry in manifest["near_misses"]] == misses
    assert [entry["file"] for entry in manifest["controls"]] == controls


def test_the_peer_of_every_operator_is_found_by_its_name(stand_ins, monkeypatch):
    monkeypatch.delitem(sys.modules, "graft.bench.peers", raising=False)
    peers = importlib.import_module("graft.bench.peers")
    folders = peers.operator_folders()
    names = {path.stem: json.loads(path.read_text())["operator"] for path in (GOLDEN / "ops").glob("*.json")}
    with_peer = {path.parent.name for path in (SOURCE / "src" / "ops").glob("*/*_peer.py")}
    assert with_peer
    for folder in with_peer:
        assert folders[names[folder]] == folder
        assert callable(peers.peer_file(names[folder]).peer)
    assert peers.peer("NoOperator", {}) is None
    assert callable(peers.peer("LeakyReLU", {"alpha": 0.1}))
    sys.modules.pop("graft.bench.peers")
