# Tests that `graft inspect` names the cause of every way to get "Plugin not found" or the wrong plugin.
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import onnx
import pytest
from conftest import ENTRY_POINT, ROOT, graft, needs_module
from onnx import TensorProto, helper

pytestmark = pytest.mark.usefixtures("rtx")

SHAPE = (1, 3, 8, 8)
HERE = pathlib.Path(__file__).resolve().parent
OLD = HERE / "old_plugins.cpp"


def node(name: str, op_type: str, domain: str = "fixture", inputs: int = 1, outputs: int = 1, **attributes: Any) -> Any:
    made = [f"{name}_{index}" for index in range(outputs)]
    return helper.make_node(op_type, ["x"] * inputs, made, name=name, domain=domain, **attributes)


def write(path: pathlib.Path, nodes: list[Any]) -> pathlib.Path:
    """Saves a model with each node between the input x and outputs of the model."""
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for n in nodes for name in n.output]
    domains = sorted({n.domain for n in nodes} | {""})
    opsets = [helper.make_opsetid(domain, 1 if domain else 17) for domain in domains]
    model = helper.make_model(helper.make_graph(nodes, "g", ends, outputs), opset_imports=opsets, ir_version=9)
    onnx.save(model, path)
    return path


def ask(path: pathlib.Path, nodes: list[Any], *libraries: pathlib.Path, flags: tuple[str, ...] = ()) -> dict[str, Any]:
    """Returns the real parser's verdict on each node."""
    given = [flag for library in libraries for flag in ("--plugin-lib", str(library))]
    answer = graft("inspect", write(path, nodes), "--truth", "parser", "--json", *given, *flags)
    assert answer.code in (0, 1), answer.err
    verdicts = {verdict["node"]: verdict for verdict in answer.json["nodes"]}
    assert list(verdicts) == [n.name for n in nodes]
    assert answer.code == int(any(v["verdict"] not in ("plugin", "native") for v in verdicts.values()))
    return verdicts


def changed(folder: pathlib.Path, *changes: tuple[str, str]) -> pathlib.Path:
    """Writes the source of the fixture plugins with changes."""
    text = (HERE / "fixture_plugins.cpp").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    source = folder / "changed.cpp"
    source.write_text(text)
    return source


@pytest.fixture(scope="module")
def versioned(tmp_path_factory: Any, compile_library: Callable[..., pathlib.Path]) -> pathlib.Path:
    """Compiles the fixture plugins as version 2, in the namespace acme, one of them with the name of an ONNX
    operator."""
    source = changed(
        tmp_path_factory.mktemp("source"),
        (
            'getPluginVersion() const noexcept override { return "1"',
            'getPluginVersion() const noexcept override { return "2"',
        ),
        ('return "fixture"', 'return "acme"'),
        ('"FixtureStrict"', '"Det"'),
    )
    return compile_library(source, "libversioned_plugins.so")


@pytest.fixture(scope="module")
def unnamed(tmp_path_factory: Any, compile_library: Callable[..., pathlib.Path]) -> pathlib.Path:
    """Compiles the fixture plugins for the empty namespace, one of them with the name of an ONNX operator."""
    changes = (('return "fixture"', 'return ""'), ('"FixtureIdentity"', '"Det"'))
    source = changed(tmp_path_factory.mktemp("source"), *changes)
    return compile_library(source, "libunnamed_det.so")


REGISTERED = "FixtureIdentity 1 of namespace fixture, from libfixture_plugins.so"
FIXTURE, STRICT, FUSSY = "FixtureIdentity", "FixtureStrict", "FixtureFussy"
# Verdicts with the fixture plugins loaded: node, verdict, cause, words in reason or advice.
WITH_LIBRARY = [
    (node("right", FIXTURE, gain=2.0, axes=[1]), "plugin", "", [REGISTERED]),
    (node("version_of_its_own", FIXTURE, plugin_version="1"), "plugin", "", [REGISTERED]),
    (node("by_namespace", FIXTURE, domain="acme", plugin_namespace="fixture"), "plugin", "", [REGISTERED]),
    (node("unlike_any", "DeformedWobble"), "refused", "library_missing", ["nor a similar", "libfixture_plugins.so"]),
    (node("letter_missing", "FixtureIdentiy"), "refused", "plugin_name", [REGISTERED, "if you mean FixtureIdentity"]),
    (node("letter_wrong", "FixtvreIdentity"), "refused", "plugin_name", [REGISTERED]),
    (node("small_letters", "fixtureIdentity"), "refused", "plugin_name", [REGISTERED]),
    (
        node("version_2", FIXTURE, plugin_version="2"),
        "refused",
        "plugin_version",
        ["= '2'", "string attribute plugin_version to '1'"],
    ),
    (node("version_empty", FIXTURE, plugin_version=""), "refused", "plugin_version", ["= ''", REGISTERED]),
    (
        node("namespace", FIXTURE, domain="acme", plugin_namespace="fixtures"),
        "refused",
        "plugin_namespace",
        ["'fixtures'", "'fixture'"],
    ),
    (node("domain", FIXTURE, domain="acme"), "refused", "domain", ["domain 'acme'", "or its domain, to 'fixture'"]),
    (node("no_domain", FIXTURE, domain=""), "refused", "domain", ["it has no domain", "or its domain, to 'fixture'"]),
    (node("field", STRICT, gian=2.0), "refused", "plugin_field", ["has no field gian", "mean gain for gian?"]),
    (node("type_int", STRICT, gain=2), "refused", "field_type", ["gain is int, and the plugin expects float32"]),
    (node("type_text", STRICT, gain="2"), "refused", "field_type", ["gain is string, and the plugin expects float32"]),
    (node("required", STRICT, axes=[1]), "refused", "field_missing", ["does not set gain (float32)"]),
    (node("two_outputs", FIXTURE, outputs=2), "refused", "plugin_outputs", ["expected output size is 1", "size is 2"]),
    (
        node("two_inputs", STRICT, inputs=2, gain=1.0),
        "refused",
        "plugin_inputs",
        ["2 inputs (f32, f32)", "the plugin accepts 1"],
    ),
    # An unknown field is less severe than a field with a wrong type or a wrong value, which is reported.
    (
        node("type_and_field", STRICT, gain=2, color=1),
        "refused",
        "field_type",
        ["gain is int, and the plugin expects float32", "it has no field color", "as a float: 2.0"],
    ),
    (
        node("value_and_field", FUSSY, gain=0.5, color=1),
        "refused",
        "field_value",
        ["it printed: FixtureFussy: gain is 0.5; allowed is 1 and more", "it has no field color"],
    ),
    (node("value", FUSSY, gain=0.25), "refused", "field_value", ["it printed: FixtureFussy: gain is 0.25"]),
    # A plugin with defaults is created with other values than the model's; TensorRT prints little or nothing.
    (node("silent_field", FIXTURE, gian=2.0), "plugin", "plugin_field", ["no field gian", "mean gain for gian?"]),
    (node("silent_type", FIXTURE, gain=2), "plugin", "field_type", ["gain is int, and the plugin expects float32"]),
]


@pytest.fixture(scope="module")
def with_library(tmp_path_factory: Any, fixture_library: pathlib.Path) -> dict[str, Any]:
    needs_module("tensorrt_rtx")
    return ask(tmp_path_factory.mktemp("model") / "m.onnx", [case[0] for case in WITH_LIBRARY], fixture_library)


def check(verdict: dict[str, Any], kind: str, cause: str, words: list[str]) -> None:
    assert (verdict["verdict"], verdict["cause"]) == (kind, cause), verdict
    for word in words:
        assert word in verdict["reason"] + " | " + verdict["advice"], verdict
    assert verdict["truth"] == "parser"
    assert bool(verdict["tensorrt"]) == (kind == "refused")  # TensorRT's own message is included


@pytest.mark.parametrize(("case", "kind", "cause", "words"), WITH_LIBRARY, ids=[case[0].name for case in WITH_LIBRARY])
def test_the_node(with_library: dict[str, Any], case: Any, kind: str, cause: str, words: list[str]) -> None:
    check(with_library[case.name], kind, cause, words)


def test_a_misspelt_field_is_a_warning(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    """The plugin is created with the default, and the exit code is 0."""
    model = write(tmp_path / "m.onnx", [node("custom", FIXTURE, gian=2.0, axes=[1])])
    answer = graft("inspect", model, "--truth", "parser", "--plugin-lib", fixture_library, code=0)
    assert "warning" in answer.err
    assert "node 'custom' (fixture::FixtureIdentity): the plugin has no field gian" in answer.err
    assert "did you mean gain for gian?" in answer.err


def test_a_version_that_is_no_text(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    """TensorRT ignores such a version and searches version 1."""
    nodes = [node("custom", FIXTURE, plugin_version=2)]
    (verdict,) = graft("inspect", write(tmp_path / "m.onnx", nodes), "--probe", "none", "--json", code=1).json["nodes"]
    assert "attribute `plugin_version` has the type int; it must be a string" in verdict["reason"]
    assert "as a string: '1' and not 1" in verdict["advice"]
    print(ask(tmp_path / "m.onnx", nodes, fixture_library))


def test_names_that_are_nearly_or_wholly_those_of_onnx(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    nodes = [
        node("nearly", "HardSwishh", ""),
        node("lacks_inputs", "InstanceNormalization", "acme", epsilon=1e-3),
        node("fits", "Relu", "acme"),
    ]
    verdicts = ask(tmp_path / "m.onnx", nodes, fixture_library)
    check(verdicts["nearly"], "refused", "operator_name", ["ONNX's operator HardSwish", "if you mean HardSwish"])
    words = ["parses the node as ONNX's InstanceNormalization, although its domain is 'acme'", "--plugin-override"]
    check(verdicts["lacks_inputs"], "refused", "override", words)
    assert (verdicts["fits"]["verdict"], verdicts["fits"]["cause"]) == ("unknown", "override")
    assert "TensorRT's parser accepts the node" in verdicts["fits"]["reason"]


def test_no_library_at_all(tmp_path: pathlib.Path) -> None:
    verdicts = ask(tmp_path / "m.onnx", [node("custom", FIXTURE)])
    check(verdicts["custom"], "refused", "library_missing", ["no plugin library was loaded", "--plugin-lib LIB.so"])


def test_a_library_of_another_version(tmp_path: pathlib.Path, versioned: pathlib.Path) -> None:
    nodes = [node("none", FIXTURE, "acme"), node("two", FIXTURE, "acme", plugin_version="2"), node("det", "Det", "")]
    verdicts = ask(tmp_path / "m.onnx", nodes, versioned)
    words = [
        "has no plugin_version, which means '1'",
        "FixtureIdentity 2 of namespace acme",
        "string attribute plugin_version to '2'",
    ]
    check(verdicts["none"], "refused", "plugin_version", words)
    check(verdicts["two"], "plugin", "", ["FixtureIdentity 2"])
    check(verdicts["det"], "refused", "override", ["under a name that ONNX does not have"])


def test_the_name_of_an_onnx_operator(tmp_path: pathlib.Path, unnamed: pathlib.Path) -> None:
    nodes = [node("det", "Det", "")]
    verdicts = ask(tmp_path / "m.onnx", nodes, unnamed)
    check(verdicts["det"], "refused", "override", ["--plugin-override", "ENABLE_PLUGIN_OVERRIDE"])
    overridden = ask(tmp_path / "m.onnx", nodes, unnamed, flags=("--plugin-override",))
    check(overridden["det"], "plugin", "", ["Det 1, from libunnamed_det.so"])


def test_a_value_that_the_plugin_refuses(tmp_path: pathlib.Path, graft_library: pathlib.Path) -> None:
    """In another domain Graft does not recognize its own operator, whose attributes it would check itself."""
    wrong = node("mode", "L2Normalize", "acme", plugin_namespace="graft", axes=[1], epsilon=1e-12, epsilon_mode="maxi")
    verdicts = ask(tmp_path / "m.onnx", [wrong], graft_library)
    check(verdicts["mode"], "refused", "field_value", ["refused the values", 'is "maxi"'])


def test_a_node_without_inputs_ends_tensorrt(tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
    nodes = [node("before", FIXTURE), node("empty", FIXTURE, inputs=0), node("after", FIXTURE)]
    verdicts = ask(tmp_path / "m.onnx", nodes, fixture_library)
    assert [verdicts[name]["verdict"] for name in ("before", "empty", "after")] == ["plugin", "crashes", "plugin"]
    assert "SIGSEGV" in verdicts["empty"]["reason"]


class TestTheLibrary:
    def message(self, library: pathlib.Path, tmp_path: pathlib.Path, cause: str, *flags: str) -> str:
        model = write(tmp_path / "m.onnx", [node("custom", FIXTURE)])
        answer = graft("inspect", model, "--truth", "parser", "--plugin-lib", library, "--json", *flags, code=2)
        assert answer.json["error"]["kind"] == "bad_input"
        assert (answer.json["error"]["library"], answer.json["error"]["cause"]) == (str(library), cause)
        assert str(library) in answer.err
        return answer.err

    def test_graft_plugins_says_the_same(self, tmp_path: pathlib.Path) -> None:
        library = tmp_path / "libplugins.so"
        library.write_text("no library")
        answer = graft("plugins", library, "--tensorrt", "rtx", code=2)
        assert answer.err == self.message(library, tmp_path, "not_elf")

    def test_not_an_elf_file(self, tmp_path: pathlib.Path) -> None:
        library = tmp_path / "libplugins.so"
        library.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n" * 10)
        message = self.message(library, tmp_path, "not_elf")
        assert "not an ELF file" in message
        assert "Git LFS" in message

    def test_an_object_file(self, tmp_path: pathlib.Path) -> None:
        compiler = shutil.which("g++") or pytest.skip("no g++")
        (tmp_path / "one.cpp").write_text("int answer() { return 42; }\n")
        library = tmp_path / "libone.so"
        subprocess.run([compiler, "-c", tmp_path / "one.cpp", "-o", library], check=True)
        assert "-shared" in self.message(library, tmp_path, "not_elf")

    def test_for_another_architecture(self, tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
        library = tmp_path / "libarm.so"
        data = bytearray(fixture_library.read_bytes())
        data[18:20] = (183).to_bytes(2, "little")  # e_machine: AArch64
        library.write_bytes(data)
        message = self.message(library, tmp_path, "architecture")
        assert "built for aarch64" in message
        assert "this process is x86_64" in message

    def test_missing_dependency(self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]) -> None:
        source = tmp_path / "needed.cpp"
        source.write_text("int needed() { return 42; }\n")
        needed = compile_library(source, "libneeded_here.so", "-Wl,-soname,libneeded_here.so")
        source.write_text("int needed(); int use() { return needed(); }\n")
        library = compile_library(source, "libneedy_one.so", str(needed))
        source.write_text("int use(); int use_more() { return use(); }\n")
        through = compile_library(source, "libthrough.so", str(library), f"-Wl,-rpath,{library.parent}")
        needed.unlink()
        message = self.message(library, tmp_path, "dependency")
        assert "it needs libneeded_here.so, which the loader cannot find" in message
        assert "Install libneeded_here.so" in message
        assert "one of its dependencies needs libneeded_here.so" in self.message(through, tmp_path, "dependency")

    def test_an_older_version_of_a_dependency(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]
    ) -> None:
        """The symbol exists, but not in the version with which the library was linked."""
        source, script = tmp_path / "provider.cpp", tmp_path / "versions"

        def provider(version: str) -> pathlib.Path:
            source.write_text('extern "C" int needed() { return 42; }\n')
            script.write_text(f"{version} {{ global: needed; local: *; }};\n")
            flags = ["-Wl,-soname,libprovider.so", f"-Wl,--version-script={script}"]
            return compile_library(source, "libprovider.so", *flags)

        new = provider("PROVIDER_2.0")
        source.write_text(ENTRY_POINT + 'extern "C" int needed(); int use() { return needed(); }\n')
        library = compile_library(source, "libuser.so", str(new), f"-Wl,-rpath,{new.parent}")
        source.write_text("int use(); int use_more() { return use(); }\n")
        through = compile_library(source, "libuser_of_user.so", str(library), f"-Wl,-rpath,{new.parent}")
        old = provider("PROVIDER_1.0")
        message = self.message(library, tmp_path, "library_version")
        assert f"it needs the version PROVIDER_2.0 of libprovider.so, which {old} does not have" in message
        assert "Install a libprovider.so that has PROVIDER_2.0" in message
        message = self.message(through, tmp_path, "library_version")
        assert f"its dependency {library} needs the version PROVIDER_2.0" in message

    def test_one_that_the_loader_and_one_that_tensorrt_refuses(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]
    ) -> None:
        source = tmp_path / "large.cpp"
        text = (HERE / "fixture_plugins.cpp").read_text()
        memory = '__attribute__((tls_model("initial-exec"))) thread_local char large[1 << 20];\nint use(int i) '
        source.write_text(f"{text}\n{memory} {{ return large[i]; }}\n")
        message = self.message(compile_library(source, "liblarge.so"), tmp_path, "loader")
        assert "cannot allocate memory in static TLS block" in message
        assert "LD_DEBUG=all" in message
        source.write_text(text.replace("return creators;", "count = 0; return nullptr;"))
        message = self.message(compile_library(source, "libnone.so"), tmp_path, "refused")
        assert "refuses to load it" in message

    def test_no_exports(self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]) -> None:
        source = tmp_path / "plain.cpp"
        source.write_text("int answer() { return 42; }\n")
        assert "exports neither getCreators" in self.message(
            compile_library(source, "libplain.so"), tmp_path, "exports"
        )

    def test_an_export_with_a_cpp_name(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]
    ) -> None:
        source = tmp_path / "mangled.cpp"
        source.write_text("void* getCreators(int&) { return nullptr; }\n")
        message = self.message(compile_library(source, "libmangled.so"), tmp_path, "exports")
        assert "_Z11getCreatorsRi" in message
        assert 'Declare it extern "C"' in message

    @pytest.mark.parametrize(
        ("body", "cause", "words"),
        [
            ("raise(SIGSEGV)", "crash", "ended by signal SIGSEGV while it opened the plugin library"),
            ("exit(0)", "crash", "ended with exit code 0 while it opened the plugin library"),
            ("pause()", "hang", "it could not be opened within 2 s"),
        ],
    )
    def test_code_that_runs_when_it_is_opened(
        self,
        tmp_path: pathlib.Path,
        compile_library: Callable[..., pathlib.Path],
        body: str,
        cause: str,
        words: str,
    ) -> None:
        source = tmp_path / "runs.cpp"
        headers = "".join(f"#include <{name}>\n" for name in ("csignal", "cstdlib", "unistd.h"))
        source.write_text(ENTRY_POINT + headers + f"__attribute__((constructor)) static void load() {{ {body}; }}\n")
        library = compile_library(source, f"lib{body[:4]}_when_opened.so")
        assert words in self.message(library, tmp_path, cause, "--time-limit", "2")
        answer = graft("plugins", library, "--tensorrt", "rtx", "--time-limit", "2", code=2)
        assert words in answer.err

    def test_cut_off(self, tmp_path: pathlib.Path, fixture_library: pathlib.Path) -> None:
        """The loader opens some truncated files, and the process dies of SIGBUS."""
        data = fixture_library.read_bytes()
        library = tmp_path / "libcut.so"
        for size in (0, 100, len(data) // 4, len(data) // 2):
            library.write_bytes(data[:size])
            message = self.message(library, tmp_path, "truncated")
            assert (f"it has {size} bytes and needs at least" in message) == (size != 0)

    def test_a_folder_and_a_program(self, tmp_path: pathlib.Path) -> None:
        assert "it is a folder" in self.message(tmp_path, tmp_path, "folder")
        os.mkfifo(tmp_path / "pipe.so")
        assert "it is not a regular file" in self.message(tmp_path / "pipe.so", tmp_path, "no_file")
        assert "no such file" in self.message(tmp_path / "none.so", tmp_path, "no_file")
        program = pathlib.Path(shutil.which("true") or pytest.skip("no program"))
        assert "a program, not a shared library" in self.message(program, tmp_path, "not_elf")

    def test_the_older_entry_point(self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]) -> None:
        library = compile_library(OLD, "liblist.so", "-DLIST_OF_V2")
        assert "it exports only getPluginCreators" in self.message(library, tmp_path, "exports")


class TestPluginsOfTheOlderGeneration:
    def test_in_the_list_of_creators(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]
    ) -> None:
        library = compile_library(OLD, "libold.so")
        verdicts = ask(tmp_path / "m.onnx", [node("old", "OldPlugin", "")], library)
        check(verdicts["old"], "refused", "plugin_generation", ["generation V2", "IPluginV3"])

    def test_registered_while_the_library_is_opened(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]
    ) -> None:
        """The library does not link TensorRT: REGISTER_TENSORRT_PLUGIN calls a function that does not exist."""
        library = compile_library(OLD, "libstatic.so", "-DSTATIC_REGISTRATION")
        message = TestTheLibrary().message(library, tmp_path, "static_registration")
        assert "REGISTER_TENSORRT_PLUGIN" in message
        assert "getCreators" in message

    def test_registered_with_a_tensorrt_that_is_not_here(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]
    ) -> None:
        source = tmp_path / "tensorrt.cpp"
        source.write_text('extern "C" void* getPluginRegistry() { return nullptr; }\n')
        tensorrt = compile_library(source, "libnvinfer.so.10", "-Wl,-soname,libnvinfer.so.10")
        library = compile_library(OLD, "libfor_ten.so", "-DSTATIC_REGISTRATION", str(tensorrt))
        tensorrt.unlink()
        message = TestTheLibrary().message(library, tmp_path, "dependency")
        assert "it needs libnvinfer.so.10" in message
        assert "libnvinfer.so.10 is the TensorRT version that the library was built for" in message
        assert "REGISTER_TENSORRT_PLUGIN" in message

    def test_registered_with_another_tensorrt_than_it_was_built_for(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]
    ) -> None:
        """The library is compiled with the headers of 10.x and linked with RTX, where the registry has another
        layout of functions."""
        libraries = ROOT / ".deps/lib-rtx"
        if not libraries.is_dir():
            pytest.skip("no libtensorrt_rtx.so to link with")
        flags = ["-DSTATIC_REGISTRATION", f"-L{libraries}", "-ltensorrt_rtx"]
        library = compile_library(OLD, "libfor_another.so", *flags)
        message = TestTheLibrary().message(library, tmp_path, "static_registration")
        assert "SIGSEGV while it opened the plugin library" in message
        assert "REGISTER_TENSORRT_PLUGIN" in message

    def test_nvidias_own_library_of_another_tensorrt(self, tmp_path: pathlib.Path) -> None:
        """The library is libnvinfer_vc_plugin.so of TensorRT 11, in TensorRT-RTX."""
        lean = pytest.importorskip("tensorrt_lean_libs")
        (library,) = pathlib.Path(lean.__file__).parent.glob("libnvinfer_vc_plugin.so.*")
        answer = graft("plugins", library, "--tensorrt", "rtx")
        print(answer)
        assert answer.code in (0, 1, 2)
