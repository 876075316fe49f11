# `plugins --check`: the checks against plugins that break one rule each, in the registries of TensorRT-RTX and the lean runtime.
from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from conftest import HERE, Driven, drive, graft

CompileLibrary = Callable[..., pathlib.Path]
FIXTURE = (HERE / "fixture_plugins.cpp").read_text()
CREATE = "    float gain = 1.0F;\n"
PLUGIN_NAME = "AsciiChar const* getPluginName() const noexcept override { return name_; }"


def library_with(compile_library: CompileLibrary, folder: pathlib.Path, name: str, *changes: tuple[str, str]) -> Any:
    """Compiles the fixture's first plugin, FixtureIdentity, with one line changed."""
    text = FIXTURE
    for old, new in (*changes, ("count = 10;", "count = 1;")):
        assert old in text
        text = text.replace(old, new, 1)
    source = folder / f"{name}.cpp"
    source.write_text(text)
    return compile_library(source, f"lib{name}.so")


def checks_of(done: Driven) -> dict[str, tuple[str, str]]:
    """Returns the outcome and the detail of each check of the only creator."""
    (library,) = done.result["plugin_libraries"]
    (creator,) = library["creators"]
    return {check["check"]: (check["outcome"], check["detail"]) for check in creator["checks"]}


@pytest.fixture(params=["rtx", "lean"])
def registry(request: pytest.FixtureRequest) -> str:
    request.getfixturevalue(request.param)
    return request.param


def test_a_sound_plugin_passes(registry: str, compile_library: CompileLibrary, tmp_path: pathlib.Path) -> None:
    library = library_with(compile_library, tmp_path, "sound")
    found = checks_of(drive("plugins", library, "--check", "--tensorrt", registry))
    assert {outcome for outcome, _ in found.values()} == {"passed"}


def test_grafts_own_break_nothing(registry: str, graft_library: pathlib.Path, stand_ins: pathlib.Path) -> None:
    done = drive("plugins", graft_library, stand_ins, "--check", "--tensorrt", registry)
    for library in done.result["plugin_libraries"]:
        for creator in library["creators"]:
            failed = [check for check in creator["checks"] if check["outcome"] == "failed"]
            assert not failed, creator["name"]


FAULTS = {
    "other_name": ("identity", (PLUGIN_NAME, PLUGIN_NAME.replace("name_", '"SomethingElse"')), "SomethingElse"),
    "no_runtime": (
        "capabilities",
        ("return static_cast<IPluginV3OneRuntime*>(this)", "return nullptr"),
        "returns null for RUNTIME",
    ),
    "twice": ("fields", ('PluginField{"axes", nullptr', 'PluginField{"gain", nullptr'), "gain twice"),
    "aborts": ("creation", (CREATE, CREATE + "    std::abort();\n"), "by signal SIGABRT"),
    "reads_null": (
        "creation",
        (CREATE, CREATE + "    *reinterpret_cast<int volatile*>(std::uintptr_t{8}) = 1;\n"),
        "by signal SIGSEGV",
    ),
    "exits": ("creation", (CREATE, CREATE + "    ::_exit(0);\n"), "with exit code 0"),
}


@pytest.mark.usefixtures("lean")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_rule_is_found(fault: str, compile_library: CompileLibrary, tmp_path: pathlib.Path) -> None:
    check, change, words = FAULTS[fault]
    library = library_with(compile_library, tmp_path, fault, change)
    found = checks_of(drive("plugins", library, "--check", "--tensorrt", "lean"))
    assert found[check][0] == "failed"
    assert words in found[check][1]
    assert found["name"][0] == "passed", "what the fault does not touch is still checked"


@pytest.mark.usefixtures("lean")
def test_what_needs_fields_that_are_not_known_is_not_checked(
    compile_library: CompileLibrary, tmp_path: pathlib.Path
) -> None:
    library = library_with(compile_library, tmp_path, "refuses", (CREATE, CREATE + "    return nullptr;\n"))
    found = checks_of(drive("plugins", library, "--check", "--tensorrt", "lean"))
    assert found["creation"] == ("not checked", "createPlugin creates no plugin without fields or with 1 in each field")
    assert found["identity"][0] == "not checked"
    assert "failed" not in {outcome for outcome, _ in found.values()}


@pytest.mark.usefixtures("lean")
def test_one_that_hangs_costs_its_own_checks_alone(compile_library: CompileLibrary, tmp_path: pathlib.Path) -> None:
    hang = (CREATE, CREATE + "    ::pause();\n")
    library = library_with(compile_library, tmp_path, "hangs", hang)
    found = checks_of(drive("plugins", library, "--check", "--tensorrt", "lean", "--time-limit", 15))
    assert found["creation"] == ("failed", "the call did not return within 15 s")
    assert (found["name"][0], found["fields"][0]) == ("passed", "passed")


@pytest.mark.usefixtures("rtx")
class TestTheProgram:
    def test_an_engine_is_built_and_a_crash_is_a_finding(
        self, compile_library: CompileLibrary, tmp_path: pathlib.Path
    ) -> None:
        source = tmp_path / "four.cpp"
        source.write_text(FIXTURE.replace("count = 10;", "count = 4;"))
        answer = graft("plugins", compile_library(source, "libfour.so"), "--check", "--tensorrt", "rtx", "--json")
        assert answer.code == 1, answer.err
        assert answer.json["conforms"] is False
        assert answer.json["checks"]["made"] < answer.json["checks"]["all"]
        (library,) = answer.json["plugin_libraries"]
        engines = {creator["name"]: creator["checks"][-1] for creator in library["creators"]}
        assert {check["check"] for check in engines.values()} == {"engine"}
        assert engines["FixtureIdentity"]["outcome"] == "passed"
        assert engines["FixtureRefuse"]["outcome"] == "not checked", "it may want other inputs"
        for name, signal in (("FixtureAbort", "SIGABRT"), ("FixtureSegfault", "SIGSEGV")):
            assert engines[name]["outcome"] == "failed"
            assert signal in engines[name]["detail"]

    @pytest.mark.parametrize(("rank", "outcome"), [(1, "passed"), (0, "not checked")])
    def test_a_plugin_with_a_parameter_of_one_dimension_is_built(
        self, compile_library: CompileLibrary, tmp_path: pathlib.Path, rank: int, outcome: str
    ) -> None:
        """The plugin has two inputs, the second of one rank only. No test model has a scalar."""
        shapes = "    outputs[0] = inputs[0];\n    return 0;\n  }\n  bool supports"
        changes = (
            ("behavior_ == Behavior::kStrict && count != 1", "count != 2"),
            (shapes, f"    if (inputs[1].nbDims != {rank}) return -1;\n{shapes}"),
        )
        library = library_with(compile_library, tmp_path, f"rank_{rank}", *changes)
        answer = graft("plugins", library, "--check", "--tensorrt", "rtx", "--json", code=0)
        found = answer.json["plugin_libraries"][0]["creators"][0]["checks"][-1]
        assert (found["check"], found["outcome"]) == ("engine", outcome)
        detail = "2 inputs of f32 2x4x8x8, 2" if rank == 1 else "the first message with 2 inputs: "
        assert detail in found["detail"], found["detail"]

    def test_grafts_own_conform(self, graft_library: pathlib.Path) -> None:
        answer = graft("plugins", graft_library, "--check", "--tensorrt", "rtx", "--json", code=0)
        creators = answer.json["plugin_libraries"][0]["creators"]
        engines = {creator["name"]: creator["checks"][-1]["outcome"] for creator in creators}
        assert (engines["LeakyReLU"], engines["L2Normalize"]) == ("passed", "passed")

    def test_the_text_names_the_fault(
        self, compile_library: CompileLibrary, tmp_path: pathlib.Path, request: pytest.FixtureRequest
    ) -> None:
        request.getfixturevalue("lean")
        _, change, words = FAULTS["other_name"]
        answer = graft(
            "plugins", library_with(compile_library, tmp_path, "named", change), "--check", "--tensorrt", "lean", code=1
        )
        assert "1 of 1 creator fails; " in answer.out
        assert words in answer.out


@pytest.mark.usefixtures("lean")
def test_nvidias_own_conforms() -> None:
    libraries = pytest.importorskip("tensorrt_lean_libs")
    library = next(pathlib.Path(libraries.__file__).parent.glob("libnvinfer_vc_plugin.so.*"))
    assert "failed" not in {
        outcome for outcome, _ in checks_of(drive("plugins", library, "--check", "--tensorrt", "lean")).values()
    }
