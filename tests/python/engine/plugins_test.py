# Tests how Graft's and third-party plugin libraries are listed through TensorRT's own registry, and every failure.
from __future__ import annotations

import pathlib
import shutil
import subprocess
from collections.abc import Callable

import pytest
from conftest import ENTRY_POINT, HERE, drive, driver_environment, has_gone


def third_party_library() -> pathlib.Path:
    libraries = pytest.importorskip("tensorrt_lean_libs")
    return next(pathlib.Path(libraries.__file__).parent.glob("libnvinfer_vc_plugin.so.*"))


@pytest.mark.usefixtures("lean")
def test_lists_nvidias_plugin_library() -> None:
    done = drive("plugins", third_party_library(), "--tensorrt", "lean")
    (library,) = done.result["plugin_libraries"]
    (creator,) = library["creators"]
    assert (creator["name"], creator["version"], creator["generation"]) == ("ROIAlign_TRT", "2", "V3")
    fields = {field["name"]: field["type"] for field in creator["fields"]}
    assert fields == {  # documented in NVIDIA's TensorRT repository, plugin/roiAlignPlugin
        "coordinate_transformation_mode": "int32",
        "mode": "int32",
        "output_height": "int32",
        "output_width": "int32",
        "sampling_ratio": "int32",
        "spatial_scale": "float32",
    }
    assert done.logged() == ""


@pytest.mark.parametrize("flavor", ["rtx", "lean"])
def test_lists_every_creator_with_its_fields(
    flavor: str, request: pytest.FixtureRequest, fixture_library: pathlib.Path
) -> None:
    request.getfixturevalue(flavor)
    result = drive("plugins", fixture_library, "--tensorrt", flavor).result
    assert result["tensorrt"]["flavor"] == flavor
    (library,) = result["plugin_libraries"]
    names = ["FixtureIdentity", "FixtureAbort", "FixtureSegfault", "FixtureRefuse"]
    names += ["FixtureHang", "FixturePair", "FixtureStrict", "FixtureFork", "FixtureFussy", "FixtureLarge"]
    assert [creator["name"] for creator in library["creators"]] == names
    for creator in library["creators"]:
        assert (creator["namespace"], creator["version"], creator["generation"]) == ("fixture", "1", "V3")
        assert creator["fields"] == [
            {"name": "gain", "type": "float32", "length": 1},
            {"name": "axes", "type": "int64", "length": 1},
        ]


@pytest.mark.usefixtures("rtx")
def test_one_library_under_two_names_is_loaded_once(fixture_library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    alias = tmp_path / "alias.so"
    alias.symlink_to(fixture_library)
    assert len(drive("plugins", fixture_library, alias).result["plugin_libraries"]) == 1


@pytest.mark.parametrize("flavor", ["rtx", "lean"])
def test_a_copy_of_a_loaded_library_is_named(
    flavor: str, request: pytest.FixtureRequest, fixture_library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """TensorRT refuses the whole library, because its creators are registered; a lean runtime logs no reason."""
    request.getfixturevalue(flavor)
    copy = tmp_path / "copy.so"
    shutil.copy2(fixture_library, copy)
    done = drive("plugins", fixture_library, copy, "--tensorrt", flavor)
    assert (done.code, done.error["cause"], done.error["library"]) == (2, "taken", str(copy))
    assert f"refuses to load it; {fixture_library} " in done.error["message"]
    assert f"leave out {fixture_library}" in done.error["next_step"]
    assert flavor == "lean" or "the name, version and namespace of its FixtureIdentity" in done.error["message"]


@pytest.mark.usefixtures("rtx")
class TestFailuresNameTheirCause:
    def refused(self, library: pathlib.Path, **options: object) -> str:
        done = drive("plugins", library, **options)
        assert done.code == 2
        assert done.error["kind"] == "plugin_library"
        assert str(library) in done.error["message"]
        return done.error["message"] + " " + done.error["next_step"]

    def test_missing_file(self, tmp_path: pathlib.Path) -> None:
        assert "no such file" in self.refused(tmp_path / "missing.so")

    def test_not_a_library(self, tmp_path: pathlib.Path) -> None:
        library = tmp_path / "text.so"
        library.write_text("no ELF")
        assert "file too short" in self.refused(library)
        library.write_text("no ELF" * 1000)
        assert "invalid ELF header" in self.refused(library)

    def test_no_entry_point(self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]) -> None:
        source = tmp_path / "plain.cpp"
        source.write_text("int answer() { return 42; }\n")
        assert "getCreators" in self.refused(compile_library(source, "libplain.so"))

    def test_no_plugins_can_be_in_it(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]
    ) -> None:
        """The file's symbols show that: TensorRT does not start, and no code of the library runs."""
        source, package = tmp_path / "plain.cpp", tmp_path / "tensorrt_rtx"
        started, opened = tmp_path / "started", tmp_path / "opened"
        source.write_text(
            "#include <cstdio>\n__attribute__((constructor)) static void load() "
            f'{{ std::fclose(std::fopen("{opened}", "w")); }}\n'
        )
        package.mkdir()
        (package / "__init__.py").write_text(f"open({str(started)!r}, 'w').close()\nraise ImportError('no')\n")
        environment = driver_environment(tmp_path)
        library = compile_library(source, "libno_plugins.so")
        done = drive("plugins", library, "--tensorrt", "rtx", environment=environment)
        assert (done.code, done.error["cause"]) == (2, "exports")
        assert "exports neither getCreators" in done.error["message"]
        assert not started.exists()
        assert not opened.exists()
        source.write_text(ENTRY_POINT)
        drive("plugins", compile_library(source, "libmay_have.so"), "--tensorrt", "rtx", environment=environment)
        assert started.exists()

    def test_plugins_of_a_library_that_it_needs(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path], fixture_library: pathlib.Path
    ) -> None:
        source = tmp_path / "wraps.cpp"
        source.write_text("int answer() { return 42; }\n")
        flags = ["-Wl,--no-as-needed", str(fixture_library), f"-Wl,-rpath,{fixture_library.parent}"]
        done = drive("plugins", compile_library(source, "libwraps.so", *flags), "--tensorrt", "rtx")
        assert len(done.result["plugin_libraries"][0]["creators"]) == 10

    def test_missing_dependency(self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]) -> None:
        source = tmp_path / "needed.cpp"
        source.write_text("int needed() { return 42; }\n")
        needed = compile_library(source, "libneeded_by_plugin.so", "-Wl,-soname,libneeded_by_plugin.so")
        source.write_text("int needed(); int use() { return needed(); }\n")
        library = compile_library(source, "libneedy.so", str(needed))
        needed.unlink()
        assert "Install libneeded_by_plugin.so" in self.refused(library)

    def test_undefined_symbol(self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]) -> None:
        source = tmp_path / "undefined.cpp"
        source.write_text(ENTRY_POINT + "extern int nowhere; int* pointer = &nowhere;\n")
        assert "undefined symbol: nowhere" in self.refused(compile_library(source, "libundefined.so"))

    def test_crash_while_loading(self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]) -> None:
        source = tmp_path / "aborts.cpp"
        source.write_text(
            ENTRY_POINT + "#include <cstdlib>\n#include <cstdio>\n__attribute__((constructor)) void load() { "
            'std::fputs("dying words", stderr); std::abort(); }\n'
        )
        done = drive("plugins", compile_library(source, "libaborts.so"))
        assert (done.code, done.error["kind"], done.error["signal"]) == (2, "plugin_library", "SIGABRT")
        assert done.error["cause"] == "crash"
        assert done.error["last_messages"][-1] == "dying words"

    def test_a_library_that_leaves_a_process_behind(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The remaining process keeps the pipes of the dead one open."""
        source = tmp_path / "forks.cpp"
        text = (HERE / "fixture_plugins.cpp").read_text()
        source.write_text(text + "\n__attribute__((constructor)) static void load() { fork_and_abort(); }\n")
        library = compile_library(source, "libforks.so")
        child = tmp_path / "child"
        monkeypatch.setenv("FIXTURE_CHILD", str(child))
        done = drive("plugins", library)
        assert (done.code, done.error["cause"], done.error["signal"]) == (2, "crash", "SIGABRT")
        assert has_gone(int(child.read_text()))

    def test_a_library_that_leaves_a_process_in_a_session_of_its_own(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]
    ) -> None:
        """The library is valid and leaves a grandchild process: none of its processes survives the driver."""
        source, children = tmp_path / "leaves.cpp", tmp_path / "children"
        source.write_text((HERE / "fixture_plugins.cpp").read_text() + LEAVES_PROCESSES % children)
        done = drive("plugins", compile_library(source, "libleaves.so"))
        assert done.result["plugin_libraries"][0]["creators"]
        left = children.read_text().split()
        assert len(left) == 2
        assert not [process for process in left if pathlib.Path("/proc", process).exists()]

    @pytest.mark.parametrize("end", ["::_exit(0)", "std::abort()"])
    def test_a_result_that_the_library_wrote_is_not_believed(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path], end: str
    ) -> None:
        source = tmp_path / "forges.cpp"
        source.write_text((HERE / "fixture_plugins.cpp").read_text() + FORGES % end)
        done = drive("plugins", compile_library(source, "libforges.so"))
        assert (done.code, done.error["kind"], done.error["cause"]) == (2, "plugin_library", "crash")
        assert done.error["return_code"] == (0 if end == "::_exit(0)" else -6)

    def test_one_that_hangs_when_it_is_open(
        self, tmp_path: pathlib.Path, compile_library: Callable[..., pathlib.Path]
    ) -> None:
        source = tmp_path / "hangs.cpp"
        text = (HERE / "fixture_plugins.cpp").read_text()
        assert "return &collection_; }" in text
        source.write_text(text.replace("return &collection_; }", "::pause(); return &collection_; }"))
        done = drive("plugins", compile_library(source, "libhangs.so"), "--time-limit", "3")
        assert (done.code, done.error["kind"]) == (1, "hang")
        assert "it reported nothing for 3 s" in done.error["message"]


# Source that forks a process which leaves the session and forks another one, which does the same.
LEAVES_PROCESSES = """
#include <sys/wait.h>
__attribute__((constructor)) static void leave_processes() {
  auto const stay = [] {
    ::setsid();
    if (std::FILE* file = std::fopen("%s", "a")) {
      std::fprintf(file, "%%d\\n", static_cast<int>(::getpid()));
      std::fclose(file);
    }
  };
  int ends[2];
  if (::pipe(ends) != 0) return;
  if (::fork() == 0) {
    stay();
    if (::fork() == 0) {
      stay();
      (void)!::write(ends[1], "x", 1);
    }
    ::sleep(600);
    ::_exit(0);
  }
  char ready;
  (void)!::read(ends[0], &ready, 1);
}
"""

# Source that writes forged results to every descriptor that may be the worker's.
FORGES = """
__attribute__((constructor)) static void forge() {
  char const* lines[] = {
      R"({"event":"result","command":"plugins","plugin_libraries":[],"tensorrt":{}})",
      R"({"event":"result","token":null,"command":"plugins","plugin_libraries":[],"tensorrt":{}})", "[]", "5"};
  for (int descriptor = 3; descriptor < 64; ++descriptor) {
    for (char const* line : lines) {
      (void)!::write(descriptor, line, std::strlen(line));
      (void)!::write(descriptor, "\\n", 1);
    }
  }
  %s;
}
"""


def test_driver_environment_has_no_library_path() -> None:
    """The tests above are meaningful only if the library path is not set for the driver."""
    assert "LD_LIBRARY_PATH" not in driver_environment()
    assert subprocess.run(["env"], env=driver_environment(), check=True, capture_output=True).returncode == 0
