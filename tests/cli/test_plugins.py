# Tests graft plugins, which lists what a real plugin registry finds.
import pathlib
import sys

import pytest
from conftest import PLUGIN_LIBRARY, PROGRAM, SOURCE, needs_plugin_library, run_command


@needs_plugin_library
@pytest.mark.parametrize("tensorrt", ["rtx", "lean"])
def test_every_operator_and_drop_in_is_a_creator_with_its_fields(graft, tensorrt):
    libraries = [PLUGIN_LIBRARY, pathlib.Path(PLUGIN_LIBRARY).with_name("libgraft_stand_ins.so")]
    answer = graft("plugins", *libraries, "--tensorrt", tensorrt, "--json", code=0)
    own, stand_ins = (
        {(c["namespace"], c["name"]): {f["name"] for f in c["fields"]} for c in library["creators"]}
        for library in answer.json["plugin_libraries"]
    )
    operators = graft("ops", "--json").json["operators"]
    assert own == {("graft", op["name"]): {a["name"] for a in op["attributes"]} for op in operators}
    drop_ins = [drop_in for op in operators for drop_in in op["drop_ins"] if drop_in["creator"]]
    assert stand_ins == {("", drop_in["name"]): {f["name"] for f in drop_in["fields"]} for drop_in in drop_ins}


@needs_plugin_library
def test_the_page_of_plugins_is_what_the_libraries_have():
    """Engines and ONNX files contain these names: docs/versions.md says what may change."""
    run_command(sys.executable, SOURCE / "tools" / "generate_docs.py", "--check", "--graft", PROGRAM, code=0)


@needs_plugin_library
def test_listing_is_a_table(graft):
    answer = graft("plugins", PLUGIN_LIBRARY, code=0)
    assert "L2Normalize" in answer.out
    assert "epsilon float32" in answer.out


def test_a_library_of_someone_else(graft):
    import tensorrt_lean_libs

    library = pathlib.Path(next(iter(tensorrt_lean_libs.__path__))) / "libnvinfer_vc_plugin.so.11"
    answer = graft("plugins", library, "--tensorrt", "lean", "--json", code=0)
    assert answer.json["plugin_libraries"][0]["creators"]


@needs_plugin_library
def test_check_says_what_was_checked_and_what_was_left_out(graft):
    told = graft("plugins", PLUGIN_LIBRARY, "--check", "--tensorrt", "lean", "--json", code=0)
    checks = [c for library in told.json["plugin_libraries"] for each in library["creators"] for c in each["checks"]]
    left_out = [check for check in checks if check["outcome"] == "not checked"]
    assert left_out and told.json["conforms"] is None
    made = len(checks) - len(left_out)
    assert told.json["checks"] == {"made": made, "all": len(checks), "failed": 0}

    answer = graft("plugins", PLUGIN_LIBRARY, "--check", "--tensorrt", "lean", code=0)
    assert answer.out.startswith(f"no failure found; {made} of {len(checks)} checks made with TensorRT lean runtime")
    # A creator conforms only where all of its checks ran.
    creators = [each for library in told.json["plugin_libraries"] for each in library["creators"]]
    complete = [each for each in creators if all(check["outcome"] == "passed" for check in each["checks"])]
    assert sum(line.startswith("  conforms ") for line in answer.out.splitlines()) == len(complete)
    listed = answer.out[answer.out.index("Checks that were not made") :]
    assert all(name in listed for name in {check["check"] for check in left_out})
    assert "createPlugin creates no plugin" in " ".join(listed.split())
    detailed = graft("plugins", PLUGIN_LIBRARY, "--check", "--tensorrt", "lean", "-v")
    assert "not made: createPlugin creates no plugin" in " ".join(detailed.out.split())


@needs_plugin_library
@pytest.mark.parametrize(("tensorrt", "engine"), [("lean", False), ("rtx", True)])
def test_check_says_that_no_kernel_was_compared(graft, tensorrt, engine):
    """A bare success message would read like an approval of the kernels too. Stand-ins do not conform alone."""
    library = pathlib.Path(PLUGIN_LIBRARY).with_name("libgraft_stand_ins.so") if engine else PLUGIN_LIBRARY
    answer = graft("plugins", library, "--check", "--tensorrt", tensorrt)
    assert answer.code == (1 if engine else 0), answer.err
    text = " ".join(answer.out.split())
    assert ("and whether an engine with each builds. Not checked:" in text) == engine
    assert "Not checked: the results of the kernels." in text and "`graft canary`" in text


def test_what_is_no_plugin_library_is_refused(graft, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    for path in (tmp_path / "text.so", tmp_path / "missing.so", "/lib/x86_64-linux-gnu/libm.so.6"):
        answer = graft("plugins", path, code=2)
        assert str(path) in answer.err
        assert answer.out == ""
