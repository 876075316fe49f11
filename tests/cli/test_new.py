# graft new: the files that it writes, adds to a project, and refuses to write. tests/python/install builds and tests
# the projects with an installed Graft.
import os
import re
import resource
import shlex
import shutil

import numpy as np
import onnx
import pytest
from conftest import SOURCE
from onnx import TensorProto, helper
from onnx_models import info, save

TEMPLATES = SOURCE / "templates" / "operators"
KINDS = {"elementwise": "BetaSwish", "reduction": "RmsNorm", "two_inputs": "GatedTanh", "data_sizes": "SelectRows"}


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(("kind", "operator"), KINDS.items())
def test_it_writes_every_file_of_the_templates(graft, tmp_path, kind, operator):
    found = graft("new", "my_ops", "--like", kind, "--json", cwd=tmp_path, code=0).json
    assert (found["folder"], found["name"], found["operator"], found["like"]) == ("my_ops", "my_ops", operator, kind)
    assert not found["added"]
    assert found["files"] == files(tmp_path / "my_ops")
    own = [path for path in files(TEMPLATES / kind) if "__pycache__" not in path]
    assert found["files"] == sorted(files(TEMPLATES / "common") + own)
    for name in own:  # with the templates' own names, the files equal the templates
        assert (tmp_path / "my_ops" / name).read_text() == (TEMPLATES / kind / name).read_text()
    assert operator in (tmp_path / "my_ops" / "README.md").read_text()


def test_a_program_without_the_cmake_package_says_where_it_comes_from(graft, tmp_path):
    """This is the program of a build tree or of a wheel. tests/python/install has that of an installation."""
    answer = graft("new", tmp_path / "my_ops", code=0)
    assert "`make install PREFIX=DIR`, and add -DCMAKE_PREFIX_PATH=DIR to the first command" in " ".join(
        answer.err.split()
    )


def test_the_help_lists_every_template(graft):
    text = " ".join(graft("new", "--help").out.split())
    for kind, operator in KINDS.items():
        assert kind in text
        assert operator in text


def test_the_next_steps_take_the_python_that_graft_takes(graft, tmp_path):
    """The command has the interpreter's name alone where PATH leads to it: an environment has its own links to an
    interpreter that it may share with others."""
    for name in ("active", "other"):
        programs = tmp_path / name / "bin"
        programs.mkdir(parents=True)
        (programs / "python").symlink_to("/bin/sh")
        (programs / "python3").symlink_to("python")
    active, other = tmp_path / "active" / "bin", tmp_path / "other" / "bin"
    for chosen, printed in (
        ("", "python3"),
        (active / "python3", "python3"),
        (active / "python", "python3"),
        (other / "python", str(other / "python")),
        ("/nowhere/python3", "/nowhere/python3"),
    ):
        folder = tmp_path / f"in_{len(os.listdir(tmp_path))}"
        folder.mkdir()
        environment = {"GRAFT_PYTHON": str(chosen), "PATH": f"{active}:{os.environ['PATH']}"}
        answer = graft("new", "my_ops", "--json", cwd=folder, env=environment)
        assert f"{printed} my_ops/beta_swish/beta_swish_network.py beta_swish.onnx" in answer.json["next"]


@pytest.mark.parametrize("made", ["build.ninja", "Makefile"])
def test_the_next_steps_of_a_second_operator_leave_the_first_as_it_is(graft, tmp_path, made):
    """Neither the project's files nor the build folder are created again."""
    first = graft("new", "my_ops", "--json", cwd=tmp_path).json["next"]
    assert first[0].startswith("cmake -S my_ops -B my_ops/build")
    (tmp_path / "my_ops" / "build").mkdir()
    (tmp_path / "my_ops" / "build" / "CMakeCache.txt").touch()
    failed = graft("new", "my_ops", "--operator", "First", "--json", cwd=tmp_path).json["next"]
    assert failed[0] == first[0], "a configuration that failed has to be made again"
    (tmp_path / "my_ops" / "build" / made).touch()
    answer = graft("new", "my_ops", "--operator", "Second", "--json", cwd=tmp_path)
    assert "make install" not in answer.err, "of a project that has found its package"
    second = answer.json["next"]
    assert second[:2] == first[1:3]
    written = re.compile(r"\S+\.(?:onnx|engine)")
    files = [set(written.findall("\n".join(commands))) for commands in (first, second)]
    assert files[1] == {"second.onnx", "second.graft.onnx", "second.engine"}
    assert not files[0] & files[1]


def test_the_next_steps_are_for_a_shell(graft, tmp_path):
    (tmp_path / "my work").mkdir()
    commands = graft("new", "my work/my_ops", "--json", cwd=tmp_path).json["next"]
    assert "cmake --build 'my work/my_ops'/build " in commands[1]


def test_the_next_steps_take_this_program(graft, tmp_path):
    """The command has the program's path, where PATH leads to no `graft` or to another one."""
    program = os.environ["GRAFT_BIN"]
    other = tmp_path / "other" / "graft"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    link = tmp_path / "link"
    link.mkdir()
    (link / "graft").symlink_to(program)
    for path, printed in (("/nowhere", program), (other.parent, program), (f"{link}:{other.parent}", "graft")):
        folder = tmp_path / f"in_{len(os.listdir(tmp_path))}"
        folder.mkdir()
        answer = graft("new", "my_ops", "--json", cwd=folder, env={"PATH": f"{path}:/usr/bin:/bin"})
        commands = [command.split()[0] for command in answer.json["next"]]
        assert commands[4:] == [printed] * 3, (path, commands)


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_those_that_were_asked_for(graft, tmp_path, kind):
    # The name of the project contains that of a template: each occurrence is renamed only once.
    name, operator, folder = "rms_norm", "MyHTTPNorm2d", "my_http_norm2d"
    assert graft("new", tmp_path / name, "--like", kind, "--operator", operator).code == 0
    text = {path: (tmp_path / name / path).read_text() for path in files(tmp_path / name)}
    assert f"{folder}/{folder}_cuda.cu" in text
    assert f"GRAFT_OPERATOR({folder}, rms_norm::{operator})" in text["rms_norm.inc"]
    assert "graft_add_plugin_library(rms_norm OPERATORS rms_norm.inc)" in text["CMakeLists.txt"]
    everything = "\n".join([*text, *text.values()])
    for old in (*KINDS.values(), "my_ops", "beta_swish", "gated_tanh"):
        assert old not in everything


def test_a_word_of_c_gets_a_namespace_of_its_own(graft, tmp_path):
    assert graft("new", tmp_path / "signal").code == 0
    assert "namespace signal_ops {" in (tmp_path / "signal/beta_swish/beta_swish.hpp").read_text()
    assert "signal_ops::BetaSwish" in (tmp_path / "signal/signal.inc").read_text()
    assert "graft_add_plugin_library(signal " in (tmp_path / "signal/CMakeLists.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["My_ops"], "lower-case letters"),
        (["2ops"], "lower-case letters"),
        (["my-ops"], "lower-case letters"),
        (["my__ops"], "lower-case letters"),
        (["my_ops_"], "lower-case letters"),
        ([".."], "lower-case letters"),
        (["a" * 65], "65 characters"),
        (["static_cast"], "C++"),
        (["size_t"], "C++"),
        (["test"], "CMake"),
        (["graft"], "library of Graft"),
        (["none/my_ops"], "mkdir -p none"),
        (["my_ops", "--like", "convolution"], "elementwise,reduction,two_inputs,data_sizes"),
        (["my_ops", "--operator", "lower"], "upper-case letter"),
        (["my_ops", "--operator", "A-B"], "letters and digits"),
        (["my_ops", "--operator", "Relu"], "ONNX has an operator of this name"),
        (["my_ops", "--operator", "LeakyReLU"], "Graft has an operator"),
        (["my_ops", "--operator", "LReLU_TRT"], "letters and digits"),
        (["my_ops", "--operator", "Tests"], "`tests`"),
    ],
)
def test_what_is_refused_leaves_nothing(graft, tmp_path, arguments, message):
    answer = graft("new", *arguments, "--json", cwd=tmp_path, code=2)
    assert message in answer.err
    assert answer.json["error"]["kind"] == "bad_input"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_there_stays(graft, tmp_path, kind):
    there = tmp_path / "my_ops"
    if kind == "folder":
        there.mkdir()
    elif kind == "file":
        there.write_text("mine")
    else:
        there.symlink_to("nowhere")
    for name in ("my_ops", "my_ops/"):
        answer = graft("new", name, cwd=tmp_path)
        assert answer.code == 2 and "my_ops: it exists already" in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["my_ops"]
    assert kind != "folder" or list(there.iterdir()) == []


def contents(folder):
    return {path: (folder / path).read_text() for path in files(folder)}


@pytest.mark.parametrize(("name", "kind"), [*zip(["my_ops", "my_ops/", "./my_ops", "my_ops"], KINDS)])
def test_an_operator_is_added_to_a_project(graft, tmp_path, kind, name):
    assert graft("new", "my_ops", cwd=tmp_path).code == 0
    before = contents(tmp_path / "my_ops")
    found = graft("new", name, "--like", kind, "--operator", "Second", "--json", cwd=tmp_path, code=0).json
    assert (found["name"], found["operator"], found["like"], found["added"]) == ("my_ops", "Second", kind, True)
    # The files equal those of a project that begins with the operator, and the list has its line.
    (tmp_path / "other").mkdir()
    assert graft("new", "other/my_ops", "--like", kind, "--operator", "Second", cwd=tmp_path).code == 0
    other = contents(tmp_path / "other" / "my_ops")
    after = contents(tmp_path / "my_ops")
    added = {path: text for path, text in other.items() if path.startswith("second/")}
    assert len(added) == 6
    line = "GRAFT_OPERATOR(second, my_ops::Second)\n"
    assert line in other["my_ops.inc"]
    assert after == before | added | {"my_ops.inc": before["my_ops.inc"] + line}
    assert found["files"] == sorted([*added, "my_ops.inc"])
    assert any("my_ops/second/second_network.py second.onnx" in command for command in found["next"])


def test_the_project_may_have_been_moved_and_its_list_edited(graft, tmp_path):
    assert graft("new", "my_ops", cwd=tmp_path).code == 0
    clone = (tmp_path / "my_ops").rename(tmp_path / "clone-of-it")
    (clone / "my_ops.inc").write_text("GRAFT_OPERATOR(beta_swish, my_ops::BetaSwish)")  # no end of line
    assert graft("new", ".", "--operator", "Second", cwd=clone).code == 0
    assert (clone / "my_ops.inc").read_text().splitlines() == [
        "GRAFT_OPERATOR(beta_swish, my_ops::BetaSwish)",
        "GRAFT_OPERATOR(second, my_ops::Second)",
    ]
    assert "namespace my_ops {" in (clone / "second" / "second.hpp").read_text()


@pytest.mark.parametrize(
    "comment",
    [
        "// GRAFT_OPERATOR(second, my_ops::Second)",
        "/* GRAFT_OPERATOR(first, my_ops::First)\n * GRAFT_OPERATOR( second, my_ops::Second )\n **/ // /*",
    ],
)
def test_a_line_that_is_a_comment_lists_nothing(graft, tmp_path, comment):
    assert graft("new", "my_ops", cwd=tmp_path).code == 0
    operators = tmp_path / "my_ops" / "my_ops.inc"
    before = operators.read_text() + comment + "\n"
    operators.write_text(before)
    (tmp_path / "my_ops" / "second").mkdir()
    answer = graft("new", "my_ops", "--operator", "Second", cwd=tmp_path)
    at = 1 + next(i for i, line in enumerate(before.splitlines()) if "econd" in line)
    assert answer.code == 2
    assert f"my_ops.inc:{at}: the operator Second exists but is left out, because its line is a comment" in answer.err
    assert operators.read_text() == before
    (tmp_path / "my_ops" / "second").rmdir()
    assert graft("new", "my_ops", "--operator", "Second", cwd=tmp_path).code == 0
    assert operators.read_text() == before + "GRAFT_OPERATOR(second, my_ops::Second)\n"
    answer = graft("new", "my_ops", "--operator", "Second", cwd=tmp_path)
    assert f"my_ops.inc:{len(before.splitlines()) + 1}: the operator Second is listed already" in answer.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "set --operator to the name of an operator to add to this project"),
        (["--operator", "BetaSwish"], "my_ops.inc:2: the operator BetaSwish is listed already"),
        (["--operator", "BETASwish"], "my_ops.inc:2: the operator BETASwish is listed already"),
        (["--operator", "Mine"], "my_ops/mine: it exists already"),
        (["--operator", "Relu"], "ONNX has an operator of this name"),
        (["--operator", "Tests"], "`tests`"),
    ],
)
def test_what_is_not_added_leaves_the_project_as_it_is(graft, tmp_path, arguments, message):
    assert graft("new", "my_ops", cwd=tmp_path).code == 0
    (tmp_path / "my_ops" / "mine").mkdir()
    before = contents(tmp_path / "my_ops")
    answer = graft("new", "my_ops", *arguments, cwd=tmp_path, code=2)
    assert message in " ".join(answer.err.split())
    assert contents(tmp_path / "my_ops") == before
    assert sorted(os.listdir(tmp_path / "my_ops")) == sorted(
        ["CMakeLists.txt", "README.md", "beta_swish", "mine", "my_ops.inc", "tests"]
    )


def test_a_project_that_is_not_of_graft_stays_as_it_is(graft, tmp_path):
    """The project has a table NAME.inc that is not a list of operators."""
    (tmp_path / "CMakeLists.txt").write_text("project(app)\nadd_library(app app.cpp)\n")
    (tmp_path / "opcodes.inc").write_text("X(a)\nX(b)\n")
    (tmp_path / "x.inc").mkdir()
    before = contents(tmp_path)
    graft("new", ".", "--operator", "Second", cwd=tmp_path, code=2)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("bytes_of_a_file", [1, 500])
def test_a_full_disk_adds_nothing(graft, tmp_path, bytes_of_a_file):
    """Either the list does not fit on the disk, or the operator's files do not."""

    def few_bytes():
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_of_a_file, bytes_of_a_file))

    assert graft("new", "my_ops", cwd=tmp_path).code == 0
    before = contents(tmp_path / "my_ops")
    answer = graft("new", "my_ops", "--operator", "Second", cwd=tmp_path, preexec_fn=few_bytes, code=2)
    assert "cannot be written" in answer.err
    assert contents(tmp_path / "my_ops") == before


def test_a_full_disk_leaves_nothing(graft, tmp_path):
    """A limit on the size of files represents a full disk: the program gets a similar error."""

    def few_bytes():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    answer = graft("new", "my_ops", cwd=tmp_path, preexec_fn=few_bytes, code=2)
    assert "cannot be written" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_the_folder_has_the_usual_mode(graft, tmp_path):
    assert graft("new", "my_ops", cwd=tmp_path, umask=0o027).code == 0
    assert (tmp_path / "my_ops").stat().st_mode & 0o777 == 0o750
    assert os.listdir(tmp_path) == ["my_ops"]


def commands_in(page):
    """Returns the commands in the page's shell blocks, without blocks that no test can run."""
    blocks = re.findall(r"(<!-- not run: [^\n]*-->\n+)?^```sh\n(.*?)^```$", page, re.M | re.S)
    return [line for mark, block in blocks if not mark for line in block.splitlines()]


def test_the_project_and_the_guide_have_the_commands_that_are_printed(graft, tmp_path):
    active = {"GRAFT_PYTHON": "", "PATH": f"{os.path.dirname(os.environ['GRAFT_BIN'])}:{os.environ['PATH']}"}
    printed = graft("new", "my_ops", "--json", cwd=tmp_path, env=active).json["next"]
    in_project = [line for line in commands_in((tmp_path / "my_ops" / "README.md").read_text()) if "scp" not in line]
    assert in_project == printed
    in_guide = commands_in((SOURCE / "docs" / "guide" / "add_an_operator.md").read_text())
    start = in_guide.index("graft new my_ops") + 1
    assert in_guide[start : start + len(printed)] == printed


def test_the_next_commands_are_printed(graft, tmp_path):
    printed = graft("new", "my_ops", cwd=tmp_path).out
    (tmp_path / "my_ops").rename(tmp_path / "before")
    for command in graft("new", "my_ops", "--json", cwd=tmp_path).json["next"]:
        assert f"  {command}\n" in printed


def save_blend(path, **changes):
    attributes = {"alpha": 0.75, "steps": 3, "kernel": [3, 5], "mode": "reflect", "names": ["a"], "default": 1}
    node = helper.make_node("Blend", ["left", "ids"], ["y", "z"], name="blend", domain="acme", **attributes, **changes)
    inputs = [("left", ["n", 3, 8]), info("ids", TensorProto.INT64, [4])]
    return save(path, [node], inputs, [("y", ["n", 3, 8]), info("z", TensorProto.FLOAT, ["n", 2])], domains=["acme"])


def test_an_operator_has_the_ports_and_attributes_of_a_node(graft, tmp_path):
    model = save_blend(tmp_path / "m.onnx")
    found = graft("new", "my_ops", "--from", model, "--node", "blend", "--json", cwd=tmp_path, code=0).json
    assert (found["operator"], found["like"], found["added"]) == ("Blend", "node", False)
    own = [f"blend/blend{end}" for end in (".hpp", "_cases.hpp", "_cpu.cpp", "_cuda.cu")]
    assert found["files"] == sorted(files(TEMPLATES / "common") + own) == files(tmp_path / "my_ops")
    assert "GRAFT_OPERATOR(blend, my_ops::Blend)" in (tmp_path / "my_ops" / "my_ops.inc").read_text()
    library = "--operators my_ops/build/libmy_ops.so"
    assert found["next"][-2].endswith(f"graft convert {model} -o m.graft.onnx {library}")
    assert found["next"][-1].endswith(f"graft verify {model} m.graft.onnx {library} --kernels own")
    assert found["to_write"] == ["my_ops/blend/blend_cpu.cpp", "my_ops/blend/blend_cuda.cu"]
    text = (tmp_path / "my_ops" / "blend" / "blend.hpp").read_text()
    for line in (
        'static constexpr auto name = "Blend";',
        "float alpha = 0.75F;",
        "std::int64_t steps = 3;",
        "std::int64_t default_ = 1;",  # a keyword of C++
        'graft::attribute("default", &Blend::default_,',
        "std::vector<std::int64_t> kernel = {3, 5};",
        "BlendMode mode = BlendMode::reflect;",
        "no field of a plugin has their types: names (strings).",
        'graft::input("left", "T", "N,C,L", "left: f32[n, 3, 8]")',
        'graft::input("ids", graft::DType::i64, "N", "ids: i64[4]")',
        'graft::output("y", "T", "N,C,L", "y: f32[n, 3, 8]")',
        'graft::output("z", "T", "N,C", "z: f32[n, 2]")',
        "return {inputs[0], graft::Shape{inputs[0][0], 2}};",
        "`left` has rank ",
    ):
        assert line in text, line


def save_wave(path, second="alpha", **attributes):
    """Saves a network with an elementwise node, the type of whose output the model does not declare."""
    nodes = [
        helper.make_node("Abs", ["x"], ["h"]),
        helper.make_node("Wave", ["h", second], ["s"], name="wave", domain="acme", epsilon=0.5, **attributes),
        helper.make_node("Neg", ["s"], ["y"]),
    ]
    constants = {second: np.ones(8, np.float32)}
    return save(path, nodes, [("x", ["n", 8])], [("y", ["n", 8])], constants, domains=["acme"])


def test_an_elementwise_operator_has_one_place_for_its_formula(graft, tmp_path):
    model = save_wave(tmp_path / "m.onnx")
    found = graft("new", "my_ops", "--from", model, "--node", "wave", "--json", cwd=tmp_path, code=0).json
    assert found["to_write"] == ["my_ops/wave/wave.hpp"]
    text = (tmp_path / "my_ops" / "wave" / "wave.hpp").read_text()
    for line in (
        'graft::input("h", "T", "N,C", "h: f32[n, 8]")',
        'graft::input("alpha", "T", "C", "alpha: f32[8]")',
        'graft::output("s", "T", "as h", "s: the model does not declare its type")',
        "The model does not declare the type of `s`: it has the type and the shape of `h` here.",
        "GRAFT_HOST_DEVICE T apply(T h, T alpha) const {",
        "static constexpr bool has_formula = false;",
    ):
        assert line in text, line
    for file in ("wave_cpu.cpp", "wave_cuda.cu"):
        assert "op.apply(" in (tmp_path / "my_ops" / "wave" / file).read_text()
    # A list cannot be an argument of a CUDA kernel, and a name that is no identifier of C++ is not used.
    model = save_wave(tmp_path / "list.onnx", "/layer/alpha", steps=[1, 2])
    graft("new", "other", "--from", model, "--node", "wave", cwd=tmp_path, code=0)
    text = (tmp_path / "other" / "wave" / "wave.hpp").read_text()
    assert "apply" not in text and '"x2", "T", "C", "/layer/alpha: f32[8]"' in text


def test_the_readme_of_an_operator_of_a_node_names_files_that_exist(graft, tmp_path):
    model = save_wave(tmp_path / "m.onnx")
    active = {"GRAFT_PYTHON": "", "PATH": f"{os.path.dirname(os.environ['GRAFT_BIN'])}:{os.environ['PATH']}"}
    printed = graft("new", "my_ops", "--from", "m.onnx", "--node", "wave", "--json", cwd=tmp_path, env=active)
    readme = (tmp_path / "my_ops" / "README.md").read_text()
    for file in re.findall(r"^\| `([^`]+)` \|", readme, re.M):
        assert (tmp_path / "my_ops" / file).exists(), file
    commands = [line for line in commands_in(readme) if "scp" not in line]
    assert commands[: len(printed.json["next"])] == printed.json["next"]
    assert commands[len(printed.json["next"]) :] == [
        "graft build m.graft.onnx -o m.engine --operators my_ops/build/libmy_ops.so"
    ]
    assert model


def save_foreign(path, op_type, inputs=("x",), attributes=None, kind=TensorProto.FLOAT, names=("n",)):
    """Saves a network with a node of an operator of nobody for each of `names`."""
    nodes = [
        helper.make_node(op_type, inputs, [f"y{at}"], name=name, domain="acme", **(attributes or {}))
        for at, name in enumerate(names)
    ]
    outputs = [info(f"y{at}", kind, [2, 3]) for at in range(len(names))]
    return save(path, nodes, [info("x", kind, [2, 3])], outputs, domains=["acme"])


def commands_to_write(graft, model, *options, **keywords):
    next_steps = graft("inspect", model, *options, "--probe", "none", "--json", **keywords).json["next"]
    return [step["command"] for step in next_steps if " new " in step["command"]]


@pytest.mark.parametrize("op_type", ["my-blur", "2d.Blur", "blur v2", "__Blur", "class"])
def test_the_command_for_an_operator_of_any_name_runs(graft, tmp_path, op_type):
    model = save_foreign(tmp_path / "m.onnx", op_type)
    for options in ((), ("--convert",)):
        (command,) = commands_to_write(graft, model, *options)
        shutil.rmtree(tmp_path / "my_ops", ignore_errors=True)
        graft(*shlex.split(command)[1:], cwd=tmp_path, code=0)
        (header,) = (path for path in (tmp_path / "my_ops").glob("*/*.hpp") if not path.name.endswith("_cases.hpp"))
        text = header.read_text()
        assert f'static constexpr auto name = "{op_type}";' in text
        (type_name,) = re.findall(r"^struct (\w+) \{$", text, re.MULTILINE)
        assert re.fullmatch("[A-Z][A-Za-z0-9_]*", type_name) and "__" not in type_name


@pytest.mark.parametrize(
    "network",
    [
        {"inputs": ("", "x")},
        {"kind": TensorProto.INT8},
        {"names": ("n", "n")},
        {"op_type": "Tests"},
    ],
)
def test_no_command_is_printed_for_a_node_without_a_definition(graft, tmp_path, network):
    model = save_foreign(tmp_path / "m.onnx", **{"op_type": "Blur", **network})
    assert commands_to_write(graft, model) == commands_to_write(graft, model, "--convert") == []


def test_members_have_different_names(graft, tmp_path):
    attributes = {"a-b": 1, "a_b": 2, "mode": "x", "Mode": "y", "Blur": 3, "BlurMode": 4}
    model = save_foreign(tmp_path / "m.onnx", "Blur", attributes=attributes)
    graft("new", "my_ops", "--from", model, "--node", "n", cwd=tmp_path, code=0)
    text = (tmp_path / "my_ops" / "blur" / "blur.hpp").read_text()
    members = re.findall(r"^  \S+ (\w+) = ", text, re.MULTILINE)
    types = re.findall(r"^(?:enum class|struct) (\w+)", text, re.MULTILINE)
    assert len(members) == len(attributes) and len(set(members + types)) == len(members) + len(types), text
    for name in attributes:
        assert text.count(f'graft::attribute("{name}", &Blur::') == 1


def test_the_command_for_an_operator_of_a_node_is_printed(graft, tmp_path):
    """Rules and TensorRT both know that no library has the operator."""
    model = save_blend(tmp_path / "m.onnx")
    for probe in ("none", "auto"):
        answer = graft("inspect", model, "--probe", probe, "--json", code=1)
        commands = [step["command"] for step in answer.json["next"]]
        assert f"graft new my_ops --from {model} --node blend" in commands, probe


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--node", "blend"], "--from and --node belong together"),
        (["--from", "m.onnx"], "--from and --node belong together"),
        (["--from", "m.onnx", "--node", "blur"], "no node of the model has this name\n  `graft inspect m.onnx` lists"),
        (["--from", "m.onnx", "--node", "blend", "--operator", "Other"], "only an operator of that name replaces"),
        (["--from", "relu.onnx", "--node", "y"], "ONNX has an operator of this name"),
        (["--from", "none.onnx", "--node", "y"], "none.onnx: cannot be read"),
        (["--from", "hole.onnx", "--node", "y"], "its input 0 is left out"),
    ],
)
def test_a_node_without_a_definition_is_refused(graft, tmp_path, arguments, message):
    save_blend(tmp_path / "m.onnx")
    save(tmp_path / "relu.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", [2])], [("y", [2])])
    hole = helper.make_node("Blend", ["", "x"], ["y"], domain="acme")
    save(tmp_path / "hole.onnx", [hole], [("x", [2])], [("y", [2])], domains=["acme"])
    before = files(tmp_path)
    assert message in graft("new", "my_ops", *arguments, cwd=tmp_path, code=2).err
    assert files(tmp_path) == before


def test_a_name_that_is_no_name_of_a_template_is_kept(graft, tmp_path):
    """The name in the file decides whether the operator is found; the C++ type only begins with a capital letter."""
    model = save_blend(tmp_path / "m.onnx", plugin_version="2")
    loaded = onnx.load(model)
    loaded.graph.node[0].op_type = "blend_v2"
    onnx.save(loaded, model)
    assert graft("new", "my_ops", "--from", model, "--node", "blend", cwd=tmp_path).code == 0
    text = (tmp_path / "my_ops" / "blend_v2" / "blend_v2.hpp").read_text()
    assert 'static constexpr auto name = "blend_v2";' in text and "struct Blend_v2 {" in text
    assert "static constexpr int version = 2;" in text
