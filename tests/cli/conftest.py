# Fixtures of the command-line tests: the real program, and small models created with the onnx package.
import functools
import json
import os
import pathlib
import shutil
import subprocess
import time
from dataclasses import dataclass

import fastjsonschema
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

SOURCE = pathlib.Path(os.environ.get("GRAFT_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
PROGRAM = os.environ.get("GRAFT_BIN", str(SOURCE / "build" / "bin" / "graft"))
PLUGIN_LIBRARY = pathlib.Path(os.environ.get("GRAFT_PLUGIN_LIBRARY", SOURCE / "build" / "lib" / "libgraft_plugins.so"))
DIGITS = SOURCE / "examples" / "digits" / "digits.onnx"
DIGITS_DATA = SOURCE / "examples" / "digits" / "digits_test.npz"
DIGITS_SHAPES = "image=1x1x8x8..8x1x8x8..64x1x8x8"


SCHEMAS = SOURCE / "docs" / "schema"


def closed(schema):
    """Returns a schema that refuses unlisted keys. Readers have to accept new keys, but tests must notice them."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: closed(part) for key, part in schema.items()}
    return {"additionalProperties": False, **parts} if isinstance(schema.get("properties"), dict) else parts


@functools.cache
def schema_of(name):
    """Returns the validator of docs/schema for JSON of this name."""
    return fastjsonschema.compile(closed(json.loads((SCHEMAS / f"{name}.schema.json").read_text())))


def check_schema(arguments, text):
    """Validates any JSON that a test requests with --json against its published schema."""
    answer = json.loads(text)
    name = "graft.error" if answer.keys() == {"error"} else answer.get("schema", f"graft.{arguments[0]}")
    try:
        schema_of(name)(answer)
    except fastjsonschema.JsonSchemaValueException as error:
        pytest.fail(
            f"docs/schema/{name}.schema.json: {error.message}\nIf the report has changed, write the schemas again: "
            "tools/build release -- graft_write_schemas && build/bin/graft_write_schemas docs/schema"
        )


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


# Options that control how `inspect` and `convert` run the installed TensorRT, or which rules judge instead.
ABOUT_TENSORRT = {
    *("--probe", "--truth", "--for", "--no-check", "--shapes", "--target", "--plugin-lib", "--plugin-override"),
    *("--reduce", "--tensorrt", "--help"),
}


def by_rules_alone(arguments):
    """Adds the option that disables TensorRT, unless the arguments mention TensorRT: most tests do not need its
    verdict, which takes a second."""
    rules = {"inspect": ("--probe", "none"), "convert": ("--no-check",)}.get(arguments[0] if arguments else "", ())
    return arguments if ABOUT_TENSORRT & set(arguments) else (*arguments, *rules)


def run_command(*command, code=None, **options):
    """Runs a command, checks its exit code, if `code` is given, and returns the finished process."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    assert code in (None, done.returncode), done.stderr or done.stdout
    return done


@pytest.fixture(scope="session")
def graft():
    """Runs the program and checks its exit code, if `code` is given; `graft("ops", "--json", code=0).json`. TensorRT does
    not run by default: see by_rules_alone."""

    def run(*arguments, code=None, env=None, **options):
        done = run_command(PROGRAM, *by_rules_alone(arguments), env={**os.environ, **(env or {})}, **options)
        if "--json" in arguments and done.stdout:
            check_schema(arguments, done.stdout)
        assert code in (None, done.returncode), done.stderr or done.stdout
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


def program_alone(folder):
    """Returns a copy of the program. It searches its libraries next to itself, where it finds OpenVINO's and libgraft.so
    but no plugin library."""
    (folder / "bin").mkdir()
    (folder / "lib").mkdir()
    (folder / "lib" / "graft").symlink_to(pathlib.Path(PROGRAM).parent.parent / "lib" / "graft")
    for library in (pathlib.Path(PROGRAM).parents[1] / "lib").glob("libgraft.so.*"):
        shutil.copy2(library, folder / "lib")
    return pathlib.Path(shutil.copy2(PROGRAM, folder / "bin" / "graft"))


def interrupted_leaves_nothing(tmp_path, number, *arguments):
    """Sends a signal to the working program, and checks that the signal ends it and leaves no file in tmp_path/out
    or among the temporary files. The arguments name a file in tmp_path/out."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "out").mkdir()
    process = subprocess.Popen(
        [PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )
    time.sleep(0.7)
    process.send_signal(number)
    process.communicate()
    assert process.returncode == 128 + number
    assert not list((tmp_path / "out").iterdir())
    assert not list((tmp_path / "tmp").iterdir())


needs_plugin_library = pytest.mark.skipif(not PLUGIN_LIBRARY.is_file(), reason="this build has no plugin library")


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def converted(session_folder):
    """Returns the digits network as `graft convert` writes it."""
    path = session_folder / "digits.graft.onnx"
    run_command(PROGRAM, "convert", DIGITS, "-o", path, "--no-check", code=0)
    return path


@pytest.fixture(scope="session")
def digits():
    data = np.load(DIGITS_DATA)
    return data["images"], data["labels"]


@pytest.fixture(scope="session")
def changed(session_folder):
    """Saves the digits network with one weight of the last layer changed."""
    model = onnx.load(DIGITS)
    weight = next(t for t in model.graph.initializer if t.name == "onnx::MatMul_32")
    values = numpy_helper.to_array(weight).copy()
    values[0, 0] += 0.5
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    path = session_folder / "changed.onnx"
    onnx.save(model, path)
    return path
