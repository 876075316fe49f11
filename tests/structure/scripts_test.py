# Tests that the scripts in tools print their usage and refuse unknown arguments, and that tools/pytest runs a test as
# ctest does.
import pathlib
import shutil
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ["build", "in_aarch64", "lint", "pytest", "setup", "test"]


def run(*command, folder=SOURCE):
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=60)


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_prints_the_usage_alone(script):
    done = run(f"tools/{script}", "--help")
    assert done.returncode == 0 and done.stderr == ""
    assert f"tools/{script}" in done.stdout and len(done.stdout.splitlines()) < 15


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("lint --formatt", "unknown argument --formatt"),
        ("build", "no preset ''"),
        ("build relaese", "no preset 'relaese', only release debug"),
        ("build base", "no preset 'base'"),
        ("build release graft_program", "expected -DNAME=VALUE or --, found 'graft_program'"),
        ("test", "not a preset that is built"),
        ("test relaese", "'relaese' is not a preset that is built"),
        ("setup tset", "no such group: tset"),
        ("in_aarch64", "usage: tools/in_aarch64 <root>"),
        ("in_aarch64 nowhere true", "nowhere is not a root folder"),
        ("pytest -k name", "no file is named"),
        ("pytest tests/no_such_test.py", "tests/no_such_test.py does not exist"),
    ],
)
def test_an_unknown_argument_is_refused(command, words):
    script, *arguments = command.split()
    done = run(f"tools/{script}", *arguments)
    assert done.returncode != 0 and words in done.stderr and done.stdout == ""
    assert not (SOURCE / "build" / "relaese").exists()


@pytest.fixture
def checkout(tmp_path):
    """Returns a checkout with tools/pytest, and a build with one test of ctest for first_test.py and second_test.py."""
    for folder in ("tools", "tests", "build/release"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy2(SOURCE / "tools" / "pytest", tmp_path / "tools")
    for name in ("first", "second", "unlisted"):
        (tmp_path / "tests" / f"{name}_test.py").write_text(
            "import os\n"
            "def test_of_environment(): assert os.environ['COLOR'] == 'red;green' and os.getcwd().endswith('/tests')\n"
            "def test_that_fails(): assert False\n"
        )
    (tmp_path / "build" / "release" / "CTestTestfile.cmake").write_text(
        f"add_test(both {sys.executable} -m pytest -q -p no:cacheprovider first_test.py second_test.py)\n"
        f'set_tests_properties(both PROPERTIES WORKING_DIRECTORY "{tmp_path}/tests" '
        'ENVIRONMENT "COLOR=red\\;green;SHAPE=round")\n'
    )
    return tmp_path


@pytest.mark.skipif(shutil.which("ctest") is None, reason="needs ctest")
def test_pytest_runs_in_the_environment_of_ctest(checkout):
    done = run("tools/pytest", "tests/first_test.py", "-k", "environment", folder=checkout)
    assert done.returncode == 0 and "1 passed, 1 deselected" in done.stdout, done.stdout + done.stderr
    done = run("../tools/pytest", "first_test.py", "second_test.py::test_of_environment", folder=checkout / "tests")
    assert done.returncode == 1 and "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("ctest") is None, reason="needs ctest")
def test_pytest_refuses_a_file_that_ctest_does_not_run(checkout):
    done = run("tools/pytest", "tests/unlisted_test.py", folder=checkout)
    assert done.returncode == 1
    assert "no single test of ctest in build/release runs tests/unlisted_test.py" in done.stderr
    done = run("tools/pytest", "--preset", "debug", "tests/first_test.py", folder=checkout)
    assert done.returncode == 1 and "build/debug does not exist; run: tools/build debug" in done.stderr
