"""Tests that a field of a report is declared in one header, and that a command is added with eight files.

Each test writes its files to a folder of its own and compiles only these, with the options of the build and with the
folder before the repository in the list of included folders.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest

SOURCE = pathlib.Path(os.environ["GRAFT_SOURCE_DIR"])
TREE = pathlib.Path(os.environ["GRAFT_BUILD_DIR"])


def run(command: list[str], **options) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, **options)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


class Scratch:
    """A folder with changed and new files of the repository."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder

    def write(self, path: str, text: str) -> pathlib.Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def compile(self, sources: list[pathlib.Path]) -> list[pathlib.Path]:
        """Compiles sources in parallel, as the program is compiled, without optimization."""
        commands = json.loads((TREE / "compile_commands.json").read_text())
        like = next(entry["command"] for entry in commands if "/graft.dir/" in entry["command"])
        words = shlex.split(like[: like.index(" -o ")])
        compiler = next(word for word in words if re.search(r"(\+\+|clang\+\+)[-\d.]*$", word))
        options = [word for word in words[words.index(compiler) + 1 :] if not re.match(r"-O\d", word)]
        included = [f"-I{self.folder / name}" for name in ("src", "include", "generated")]
        objects = [self.folder / f"{number}_{source.stem}.o" for number, source in enumerate(sources)]
        running = [
            subprocess.Popen([compiler, *included, *options, "-O0", "-c", str(source), "-o", str(made)])
            for source, made in zip(sources, objects, strict=True)
        ]
        assert [process.wait() for process in running] == [0] * len(sources)
        return objects

    def link(self, name: str, objects: list[pathlib.Path]) -> pathlib.Path:
        """Links objects with the libraries of the program, in place of its own main.cpp."""
        last = run(["ninja", "-C", str(TREE), "-t", "commands", "graft"]).splitlines()[-1]
        words = shlex.split(last[last.index("&&") + 2 : last.rindex("&&")])
        out = words.index("-o") + 1
        program = self.folder / name
        words[out] = str(program)
        own = [index for index, word in enumerate(words) if "/graft.dir/" in word]
        words[own[0] : own[-1] + 1] = map(str, objects)
        # The program of the build finds libgraft.so from its own folder.
        words.append(f"-Wl,-rpath,{pathlib.Path(os.environ['GRAFT_BIN']).parents[1] / 'lib'}")
        run(words, cwd=TREE)
        return program


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def test_a_field_is_declared_in_one_header(scratch):
    header = (SOURCE / "include/graft/report/doctor.hpp").read_text()
    header = header.replace("  std::string remedy = {};\n", "  std::string remedy = {};\n  int cost = 7;\n")
    entry = 'field("remedy", &Finding::remedy'
    assert entry in header
    header = header.replace(entry, 'field("cost", &Finding::cost, "The cost in euros."), ' + entry)
    scratch.write("include/graft/report/doctor.hpp", header)
    program = scratch.write(
        "show.cpp",
        """
#include <iostream>

#include "graft/report/doctor.hpp"
#include "present/json/fields.hpp"
#include "present/json/schema.hpp"

int main() {
  const graft::report::DoctorReport report{.version = "1", .findings = {{.name = "g++"}}};
  std::cout << graft::present::json_of_report(report) << '\\n'
            << graft::present::schema_of_report<graft::report::DoctorReport>() << '\\n';
}
""",
    )
    lines = run([str(scratch.link("show", scratch.compile([program])))]).splitlines()
    assert json.loads(lines[0])["findings"][0]["cost"] == 7
    finding = json.loads(lines[1])["properties"]["findings"]["items"]
    assert finding["properties"]["cost"] == {"description": "The cost in euros.", "type": "integer"}
    assert "cost" in finding["required"]


# The files of a command that counts the nodes of a model. All but the list of commands are new.
COMMAND = {
    "include/graft/report/commands.inc": (SOURCE / "include/graft/report/commands.inc")
    .read_text()
    .replace("GRAFT_COMMAND(help,", "GRAFT_COMMAND(count, CountReport)\nGRAFT_COMMAND(help,"),
    "include/graft/report/count.hpp": """#pragma once
#include <cstddef>
#include <string>
#include <tuple>

#include "graft/report/field.hpp"

namespace graft::report {

struct CountReport {
  std::string model;
  std::size_t nodes = 0;

  static constexpr Schema schema{"graft count", 1, "The number of nodes of a model."};
  static constexpr auto fields() {
    return std::tuple{field("model", &CountReport::model, "The file."),
                      field("nodes", &CountReport::nodes, "The number of nodes.")};
  }
};

}  // namespace graft::report
""",
    "include/graft/toolkit/count.hpp": """#pragma once
#include "graft/report/count.hpp"
#include "graft/toolkit/model.hpp"

namespace graft::toolkit {

[[nodiscard]] report::CountReport count(const Model& model);

}  // namespace graft::toolkit
""",
    "src/toolkit/count.cpp": """#include "graft/toolkit/count.hpp"

namespace graft::toolkit {

report::CountReport count(const Model& model) { return {model.source(), model.node_count()}; }

}  // namespace graft::toolkit
""",
    "src/present/text/count_text.hpp": """#pragma once
#include <string>

#include "graft/report/count.hpp"

namespace graft::present {

[[nodiscard]] std::string count_text(const report::CountReport& report);

}  // namespace graft::present
""",
    "src/present/text/count_text.cpp": """#include "present/text/count_text.hpp"

#include <fmt/format.h>

namespace graft::present {

std::string count_text(const report::CountReport& report) {
  return fmt::format("{} has {} nodes", report.model, report.nodes);
}

}  // namespace graft::present
""",
    "src/cli/count.cpp": """#include "graft/toolkit/count.hpp"

#include <memory>
#include <string>

#include "cli/program.hpp"
#include "graft/toolkit/import.hpp"
#include "present/json/fields.hpp"
#include "present/text/count_text.hpp"

namespace graft::cli {

void add_count(Program& program) {
  const auto model = std::make_shared<std::string>();
  Command* command = program.add_command("count", "counts the nodes of a model", "graft count digits.onnx",
                                         [model](const Console& console) {
                                           const report::CountReport report = toolkit::count(toolkit::load(*model));
                                           console.say(present::count_text(report));
                                           console.result(present::json_of_report(report));
                                           return Exit::done;
                                         });
  command->add_option("MODEL", *model, "an ONNX model")->required();
}

}  // namespace graft::cli
""",
    "tests/cli/test_count.py": """from conftest import DIGITS


def test_count(graft):
    assert graft("count", DIGITS, "--json").json["nodes"] == 9
""",
}


def test_a_command_is_added_with_eight_files(scratch):
    assert len(COMMAND) <= 8
    assert [path for path in COMMAND if (SOURCE / path).exists()] == ["include/graft/report/commands.inc"]
    for path, text in COMMAND.items():
        scratch.write(path, text)
    reports = sorted(
        {file.name for root in (SOURCE, scratch.folder) for file in root.glob("include/graft/report/*.hpp")}
    )
    scratch.write("generated/all_reports.hpp", "".join(f'#include "graft/report/{name}"\n' for name in reports))
    sources = [scratch.folder / path for path in COMMAND if path.endswith(".cpp")]
    *parts, main, schemas = scratch.compile(
        [*sources, SOURCE / "src/cli/main.cpp", SOURCE / "src/present/write_schemas.cpp"]
    )

    program = scratch.link("graft", [*parts, main])
    model = SOURCE / "examples/digits/digits.onnx"
    answer = json.loads(run([str(program), "count", str(model), "--json"]))
    assert answer["model"] == str(model)
    assert answer["nodes"] > 1
    assert run([str(program), "count", str(model)]).endswith(f"digits.onnx has {answer['nodes']} nodes\n")
    assert "counts the nodes of a model" in run([str(program), "--help"])
    assert "count" in run([str(program), "completions", "bash"])

    folder = scratch.folder / "docs/schema"
    folder.mkdir(parents=True)
    run([str(scratch.link("write_schemas", [schemas])), str(folder)])
    schema = json.loads((folder / "graft.count.schema.json").read_text())
    assert schema["title"] == "JSON of graft count, version 1"
    assert sorted(schema["required"]) == sorted(answer)
