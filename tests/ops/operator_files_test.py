# What Python finds in the operators' folders: golden generators and PyTorch peers, with stand-ins for the frameworks.
import importlib
import json
import math
import os
import pathlib
import sys
import types

import pytest

SOURCE = pathlib.Path(os.environ["GRAFT_SOURCE_DIR"])
GOLDEN = pathlib.Path(os.environ["GRAFT_GOLDEN_DIR"])
FRAMEWORKS = ["numpy", "onnx", "onnxruntime", "tensorflow", "torch", "torch.nn", "torch.nn.functional"]


class Anything(types.ModuleType):
    """A framework, or whatever it gives: of any value, and true."""

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

    def __len__(self):
        return 1

    def __iter__(self):
        return iter([Anything()])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class RecordedGolden:
    """The names of the cases, in place of their values."""

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
    sys.modules["numpy"].prod = math.prod  # which decides on cases
    monkeypatch.syspath_prepend(str(SOURCE / "tools"))
    for name in ["golden_cases", "make_goldens"]:
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.import_module("golden_cases")
    monkeypatch.setattr("golden_cases.Golden", RecordedGolden)
    monkeypatch.setattr("golden_cases.quantized", lambda *_: (Anything(), 1.0))
    yield
    for name in ["golden_cases", "make_goldens"]:
        sys.modules.pop(name, None)


def test_every_operator_generates_the_golden_cases_that_are_stored(stand_ins, tmp_path):
    make_goldens = importlib.import_module("make_goldens")
    folders = make_goldens.operator_folders()
    assert sorted(folders) == sorted(path.stem for path in (GOLDEN / "ops").glob("*.json"))
    for folder in folders:
        make_goldens.generator(folder).make(tmp_path)
        stored = json.loads((GOLDEN / "ops" / f"{folder}.json").read_text())
        expected = (stored["operator"], [case["name"] for case in stored["cases"]])
        assert RecordedGolden.made[folder] == expected, folder


def test_the_peer_of_every_operator_is_found_by_its_name(stand_ins, monkeypatch):
    monkeypatch.delitem(sys.modules, "graft.bench.peers", raising=False)
    peers = importlib.import_module("graft.bench.peers")
    folders = peers.operator_folders()
    names = {path.stem: json.loads(path.read_text())["operator"] for path in (GOLDEN / "ops").glob("*.json")}
    with_peer = {path.parent.name for path in (SOURCE / "src" / "ops").glob("*/*_peer.py")}
    assert with_peer
    for folder in with_peer:
        assert folders[names[folder]] == folder
        assert callable(peers.maker_of(names[folder]))
    assert peers.peer("NoOperator", {}) is None
    assert callable(peers.peer("LeakyReLU", {"alpha": 0.1}))
    sys.modules.pop("graft.bench.peers")
