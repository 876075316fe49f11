"""Tests graft.plugins in the registries of the installed TensorRTs, each test in a process of its own.

No TensorRT that can be installed here has add_plugin_v3, so networks are stand-ins; the plugins in them are real.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = Path(os.environ["GRAFT_PLUGIN_LIBRARY"])
WITHOUT_PLUGINS = Path(os.environ["GRAFT_BUILD_DIR"]) / "tests" / "operators" / "libmy_operators.so"
START = """
import importlib, pathlib, sys
from unittest.mock import MagicMock
import numpy as np
import graft
import graft.plugins

def operator_count():
    import graft.ops
    return len(set(graft.ops.__all__) - {"load_operators"})

def message_of(call, *arguments, kind="bad_input", **keywords):
    try:
        call(*arguments, **keywords)
    except graft.Error as error:
        assert error.kind == kind, error.kind
        return str(error)
    sys.exit(f"{arguments} {keywords}: no error")

class Network(MagicMock):
    # The real plugin that it was given last, with the fields that it was made of.
    @property
    def plugin(self):
        return self.add_plugin_v3.call_args.args[2]
"""


@pytest.fixture(params=["tensorrt_rtx", "tensorrt_lean"])
def module(request: pytest.FixtureRequest) -> str:
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"the Python module {request.param} is not installed")
    return request.param


def execute(script: str, *arguments: object, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", START + script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_register_says_what_came_and_what_was_there(module: str) -> None:
    script = """
    trt = importlib.import_module(sys.argv[1])
    first = graft.plugins.register(sys.argv[2])
    assert first.tensorrt == f"{sys.argv[1]} {trt.__version__}", first.tensorrt
    assert first.library == sys.argv[2]
    assert len(first.added) == operator_count() and all(each.namespace == "graft" and each.version == "1" for each in first.added)
    assert graft.plugins.Creator("graft", "L2Normalize", "1") in first.added
    assert first.before and not set(first.before) & set(first.added)
    assert set(first.creators) == set(first.before) | set(first.added)
    assert "L2Normalize" in repr(first) and f"{len(first.before)} before" in repr(first) and len(repr(first)) < 400, repr(first)
    assert trt.get_plugin_registry().get_creator("LeakyReLU", "1", "graft") is not None
    for again in (graft.plugins.register(sys.argv[2]), graft.plugins.register(sys.argv[2], trt)):
        assert again.added == () and again.before == again.creators == first.creators
    """
    assert "[E]" not in execute(dedented(script), module, LIBRARY)


def dedented(script: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in script.splitlines())


def test_the_parser_of_rtx_finds_its_library_after_register() -> None:
    pytest.importorskip("tensorrt_rtx", reason="TensorRT-RTX is not installed")
    script = """
    import ctypes
    def is_found():
        try:
            return ctypes.CDLL("libtensorrt_rtx.so").getInferLibVersion()
        except OSError:
            return 0
    assert not is_found()
    graft.plugins.register(sys.argv[1], "tensorrt_rtx")
    assert is_found()
    """
    assert "ONNX parser" not in execute(dedented(script), LIBRARY, LD_LIBRARY_PATH="")


def test_register_warns_of_a_parser_that_would_end_the_process() -> None:
    pytest.importorskip("tensorrt_rtx", reason="TensorRT-RTX is not installed")
    script = """
    import os
    def no_file(name):
        raise OSError("no files in memory")
    os.memfd_create = no_file
    graft.plugins.register(sys.argv[1], "tensorrt_rtx")
    """
    said = "the ONNX parser of tensorrt_rtx"
    assert said in execute(dedented(script), LIBRARY, LD_LIBRARY_PATH="")
    linked = Path(os.environ["GRAFT_SOURCE_DIR"]) / ".deps" / "lib-rtx"
    assert said not in execute(dedented(script), LIBRARY, LD_LIBRARY_PATH=str(linked))


def test_register_finds_library_and_tensorrt(module: str) -> None:
    script = """
    registered = graft.plugins.register(tensorrt=sys.argv[1])
    assert pathlib.Path(registered.library).resolve() == pathlib.Path(sys.argv[2]), registered.library
    assert str(graft.plugins.library()) == registered.library
    assert registered.tensorrt.startswith(sys.argv[1] + " ")
    assert graft.plugins.register().added == ()  # the one that is imported by now
    """
    beside_package = Path(os.environ["PYTHONPATH"]).parent / "lib" / LIBRARY.name
    execute(dedented(script), module, beside_package)


def test_a_library_that_somebody_loaded_before_is_there(module: str) -> None:
    script = """
    trt = importlib.import_module(sys.argv[1])
    assert trt.get_plugin_registry().load_library(sys.argv[2]) is not None
    registered = graft.plugins.register(sys.argv[2])
    assert registered.added == () and len(registered.before) >= operator_count()
    """
    execute(dedented(script), module, LIBRARY)


def test_two_tensorrts_in_one_process() -> None:
    for name in ("tensorrt_rtx", "tensorrt_lean"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"the Python module {name} is not installed")
    script = """
    import tensorrt_lean, tensorrt_rtx
    message = message_of(graft.plugins.register, sys.argv[1])
    assert "tensorrt_rtx" in message and "tensorrt_lean" in message and "tensorrt=" in message, message
    for each in (tensorrt_lean, "tensorrt_rtx"):
        assert len(graft.plugins.register(sys.argv[1], each).added) == operator_count()
    """
    execute(dedented(script), LIBRARY)


def test_a_name_that_is_taken_is_said(module: str, tmp_path: Path) -> None:
    copy = tmp_path / "libcopy.so"
    copy.write_bytes(LIBRARY.read_bytes())
    script = """
    importlib.import_module(sys.argv[1])
    graft.plugins.register(sys.argv[2])
    message = message_of(graft.plugins.register, sys.argv[3])
    assert "refuses to load it" in message and "graft::LeakyReLU 1" in message, message
    """
    execute(dedented(script), module, LIBRARY, copy)


def test_what_is_no_plugin_library_is_refused(module: str, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    (tmp_path / "part.so").write_bytes(LIBRARY.read_bytes()[:20000])
    (tmp_path / "empty.c").write_text("")
    subprocess.run(["cc", "-shared", "-o", tmp_path / "empty.so", tmp_path / "empty.c"], check=True)
    script = """
    importlib.import_module(sys.argv[1])
    for name, words in [
        ("none.so", "no such file"),
        (".", "it is a folder"),
        ("text.so", "not an ELF file"),
        ("part.so", "it is truncated"),
        ("empty.so", "exports neither getCreators"),
        (sys.argv[3], "built without CUDA"),
    ]:
        message = message_of(graft.plugins.register, f"{sys.argv[2]}/{name}" if name[0] != "/" else name)
        assert message.startswith("plugin library ") and words in message and "\\n" in message, message
    """
    execute(dedented(script), module, tmp_path, WITHOUT_PLUGINS)


def test_a_tensorrt_that_is_missing_or_too_old_is_said() -> None:
    script = """
    import types
    message = message_of(graft.plugins.register, sys.argv[1], "tensorrt_nothing", kind="missing_tool")
    assert "tensorrt_nothing cannot be imported" in message and "\\nInstall it for " in message, message
    old = types.ModuleType("tensorrt")
    old.__version__, old.get_plugin_registry = "8.6.1", lambda: None
    message = message_of(graft.plugins.register, sys.argv[1], old, kind="missing_tool")
    assert "tensorrt 8.6.1 is too old" in message and "TensorRT 10 and later" in message, message
    graft.plugins.MODULES = ("tensorrt_nothing",)
    message = message_of(graft.plugins.register, sys.argv[1], kind="missing_tool")
    assert "no TensorRT is installed" in message and "pip install" in message, message
    """
    execute(dedented(script), LIBRARY)


def test_a_package_without_the_library_says_where_it_looked(module: str, tmp_path: Path) -> None:
    (tmp_path / "graft").symlink_to(Path(os.environ["GRAFT_SOURCE_DIR"]) / "python" / "graft")
    script = """
    importlib.import_module(sys.argv[1])
    for call in (graft.plugins.register, graft.plugins.library):
        message = message_of(call, kind="missing_tool")
        assert "libgraft_plugins.so was not found" in message and sys.argv[2] in message, message
        assert "without CUDA" in message, message
    """
    execute(dedented(script), module, tmp_path / "graft", PYTHONPATH=str(tmp_path))


def test_add_makes_a_layer_of_a_real_plugin(module: str) -> None:
    script = """
    trt = importlib.import_module(sys.argv[1])
    graft.plugins.register(sys.argv[2])
    network, tensor = Network(), object()
    layer = graft.plugins.add(network, "L2Normalize", [tensor], name="norm", axes=[1, -1], epsilon=1e-6, epsilon_mode="add")
    assert layer is network.add_plugin_v3.return_value and layer.name == "norm"
    inputs, shapes, plugin = network.add_plugin_v3.call_args.args
    assert inputs == [tensor] and shapes == [] and isinstance(plugin, trt.IPluginV3)

    # One tensor alone, a number for a list, NumPy's numbers and arrays; the layer is named by its operator.
    assert graft.plugins.add(network, "L2Normalize", tensor, axes=1).name == "L2Normalize"
    assert network.add_plugin_v3.call_args.args[0] == [tensor]
    graft.plugins.add(network, "LeakyReLU", [tensor], alpha=np.float32(0.25))
    graft.plugins.add(network, "Padding", [tensor], pads=np.array([0, 0, 1, 1, 0, 0, 1, 1]), value=1, mode="constant")
    graft.plugins.add(network, "InstanceNorm", [tensor, tensor, tensor])
    assert len(network.add_plugin_v3.call_args.args[0]) == 3
    size = object()
    graft.plugins.add(network, "LeakyReLU", [tensor], shape_inputs=[size])
    assert network.add_plugin_v3.call_args.args[:2] == ([tensor], [size])
    """
    execute(dedented(script), module, LIBRARY)


def test_add_names_what_is_wrong(module: str) -> None:
    script = """
    importlib.import_module(sys.argv[1])
    network = Network()
    message = message_of(graft.plugins.add, network, "L2Normalize", ["x"], axes=[1])
    assert "no creator of this name" in message and "graft.plugins.register()" in message, message
    graft.plugins.register(sys.argv[2])
    for operator, attributes, words in [
        ("L2Normalise", {}, "did you mean L2Normalize?"),
        ("L2Normalize", {"axis": [1]}, "no attribute axis (did you mean axes?); its attributes are axes (integer), epsilon (number)"),
        ("L2Normalize", {"axes": [0.5]}, "attribute axes is [0.5]; it must be of type integer, or a list of such values"),
        ("L2Normalize", {"axes": "1"}, "attribute axes is '1'"),
        ("L2Normalize", {"axes": [2**70]}, "an integer that fits in 64 bits"),
        ("L2Normalize", {"axes": [1], "epsilon_mode": 1}, "attribute epsilon_mode is 1; it must be a string"),
        ("LeakyReLU", {"alpha": None}, "attribute alpha is None; it must be of type number"),
        ("L2Normalize", {"axes": [1], "epsilon_mode": "other"}, "L2Normalize refused"),
    ]:
        message = message_of(graft.plugins.add, network, operator, ["x"], **attributes)
        assert words in message, message
    assert not network.add_plugin_v3.called
    network.add_plugin_v3.return_value = None
    message = message_of(graft.plugins.add, network, "LeakyReLU", ["x"], name="activation")
    assert message.startswith("activation: the network refused LeakyReLU with 1 inputs"), message
    """
    said = execute(dedented(script), module, LIBRARY)
    assert "attribute `epsilon_mode`" in said, "TensorRT's log names the attribute"


def test_add_looks_in_every_namespace() -> None:
    """Stand-ins represent creators of libraries in their own namespaces."""
    script = """
    import types

    class IPluginCreatorV3One:
        field_names = ()
        def __init__(self, namespace, version):
            self.plugin_namespace, self.name, self.plugin_version = namespace, "Own", version
        def create_plugin(self, label, fields, phase):
            return self

    trt = types.ModuleType("tensorrt")
    trt.__version__ = "10.14"
    trt.INetworkDefinition, trt.PluginFieldCollection, trt.TensorRTPhase = Network, list, MagicMock()
    creators = []
    trt.get_plugin_registry = lambda: types.SimpleNamespace(all_creators=creators)
    sys.modules["tensorrt"] = trt
    network = Network()

    def chosen(**keywords):
        graft.plugins.add(network, "Own", "x", **keywords)
        return network.plugin.plugin_namespace, network.plugin.plugin_version

    creators += [IPluginCreatorV3One("theirs", "9"), IPluginCreatorV3One("theirs", "10")]
    assert chosen() == ("theirs", "10")
    creators.append(IPluginCreatorV3One("others", "11"))
    message = message_of(graft.plugins.add, network, "Own", "x")
    assert "several namespaces have a plugin of this name: others, theirs" in message and "namespace=" in message, message
    assert chosen(namespace="others") == ("others", "11")
    creators.append(IPluginCreatorV3One("", "1"))
    assert chosen() == ("", "1")
    creators.append(IPluginCreatorV3One("graft", "1"))
    assert chosen() == ("graft", "1")
    assert chosen(namespace="theirs") == ("theirs", "10")
    message = message_of(graft.plugins.add, network, "Own", "x", namespace="none")
    assert "no creator of this name in the namespace 'none'" in message, message
    """
    execute(dedented(script))


def test_add_says_that_rtx_has_no_way_by_hand() -> None:
    if importlib.util.find_spec("tensorrt_rtx") is None:
        pytest.skip("the Python module tensorrt_rtx is not installed")
    script = """
    import tensorrt_rtx as trt
    graft.plugins.register(sys.argv[1])
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (1, 3))
    message = message_of(graft.plugins.add, network, "LeakyReLU", [x], kind="missing_tool")
    assert "tensorrt_rtx 1." in message and "no add_plugin_v3" in message and "ONNX parser" in message, message
    """
    execute(dedented(script), LIBRARY)
