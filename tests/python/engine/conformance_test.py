# `plugins --check`: the checks against plugins that break one rule each, in the registries of TensorRT-RTX and the lean runtime.
from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from conftest import HERE, Driven, drive

CompileLibrary = Callable[..., pathlib.Path]
FIXTURE = (HERE / "fixture_plugins.cpp").read_text()
CREATE = "    float gain = 1.0F;\n"
PLUGIN_NAME = "AsciiChar const* getPluginName() const noexcept override { return name_; }"


def library_with(compile_library: CompileLibrary, folder: pathlib.Path, name: str, *changes: tuple[str, str]) -> Any:
    """The fixture's first plugin, FixtureIdentity, with one line of it changed."""
    text = FIXTURE
    for old, new in (*changes, ("count = 10;", "count = 1;")):
        assert old in text
        text = text.replace(old, new, 1)
    source = folder / f"{name}.cpp"
    source.write_text(text)
    return compile_library(source, f"lib{name}.so")


def checks_of(done: Driven) -> dict[str, tuple[str, str]]:
    """Of the only creator: by check, what came of it and why."""
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
    assert found["creation"] == ("not checked", "createPlugin makes no plugin without fields, nor with 1 in each")
    assert found["identity"][0] == "not checked"
    assert "failed" not in {outcome for outcome, _ in found.values()}


@pytest.mark.usefixtures("lean")
def test_one_that_hangs_costs_its_own_checks_alone(compile_library: CompileLibrary, tmp_path: pathlib.Path) -> None:
    hang = (CREATE, CREATE + "    ::pause();\n")
    library = library_with(compile_library, tmp_path, "hangs", hang)
    found = checks_of(drive("plugins", library, "--check", "--tensorrt", "lean", "--time-limit", 2))
    assert found["creation"] == ("failed", "did not come back within 2 s")
    assert (found["name"][0], found["fields"][0]) == ("passed", "passed")
