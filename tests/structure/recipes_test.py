# Tests that the files, names and commands in the recipes for contributors exist.
import functools
import itertools
import json
import pathlib
import re
import shlex

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
RECIPES = SOURCE / "docs" / "contributing" / "recipes.md"
PAGES = [SOURCE / "CONTRIBUTING.md", RECIPES]
PYTHON = ".deps/venv/bin/python"
# Folders that a build writes.
BUILT = ("build/", "dist/")

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A step of a recipe, with its continuation lines.
STEP = re.compile(r"^\d+\. .*(?:\n {3}.*)*", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")
PATH = re.compile(r"[\w.<>-]+(/[\w.<>-]+)+")
NAME = re.compile(r"([A-Za-z_](?:[\w.<>]|::)*)(\(.*\))?")
PLACEHOLDER = re.compile(r"<\w+>")


def text_of(pages):
    return "\n".join(page.read_text() for page in pages)


def quoted(text):
    """Returns the words in backticks, each in one line."""
    return [" ".join(word.split()) for word in QUOTED.findall(text)]


def paths_in(text):
    return [word for word in quoted(text) if PATH.fullmatch(word) and not word.startswith(BUILT)]


def files_of(path):
    """Returns the files that a path of a recipe stands for: `src/ops/<name>` stands for all operators."""
    found = sorted(SOURCE.glob(PLACEHOLDER.sub("*", path)))
    return [file for each in found for file in (sorted(each.rglob("*")) if each.is_dir() else [each]) if file.is_file()]


@functools.cache
def sources(path):
    return "\n".join(file.read_text(errors="replace") for file in files_of(path))


def missing_names(step):
    """Returns the names in a step that occur in none of the files of the step."""
    paths = paths_in(step)
    texts = [sources(path) for path in paths]
    missing = []
    for word in quoted(step):
        name = NAME.fullmatch(word) if word not in paths else None
        if name is None:
            continue
        last = re.split(r"::|\.(?=\w+$)", name.group(1))[-1]
        pattern = r"\w+".join(map(re.escape, PLACEHOLDER.split(last)))
        if not any(re.search(rf"\b{pattern}\b", text) for text in texts):
            missing.append(word)
    return missing


@functools.cache
def names_of_tests():
    """Returns the names of the tests of ctest, and of the programs with tests."""
    names = set()
    for file in sorted((SOURCE / "tests").rglob("CMakeLists.txt")):
        text = file.read_text()
        names.update(re.findall(r"(?:graft_add_pytest\(|add_wheel_test\(|add_test\(NAME )(\w+)", text))
        for program, arguments in re.findall(r"graft_add_test\((\w+)([^)]*)\)", text):
            names.add(program)
            listed = [file.parent / name for name in re.findall(r"\w+\.cpp", arguments)]
            for source in file.parent.glob("*.cpp") if "${" in arguments else listed:
                cases = re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", source.read_text(), re.MULTILINE)
                names.update(f"{program}.{suite}.{case}" for suite, case in cases)
    return names


@functools.cache
def cmake_words():
    files = [*SOURCE.glob("CMakeLists.txt"), *SOURCE.glob("cmake/*.cmake")]
    for folder in ("src", "tests"):
        files += sorted((SOURCE / folder).rglob("CMakeLists.txt"))
    return set(re.findall(r"\w+", text_of(files)))


@functools.cache
def presets():
    return {preset["name"] for preset in json.loads((SOURCE / "CMakePresets.json").read_text())["configurePresets"]}


def fault_of_pytest(arguments):
    """Returns what is wrong with the files of tools/pytest and with the name after -k, or an empty string."""
    files = [SOURCE / argument for argument in itertools.takewhile(lambda each: not each.startswith("-"), arguments)]
    if not files or not all(file.exists() for file in files):
        return "pytest gets a path that does not exist"
    name = arguments[arguments.index("-k") + 1] if "-k" in arguments else ""
    # The name may be a parameter from a module in the same folder.
    texts = (module.read_text() for file in files for module in file.parent.glob("*.py"))
    return "" if any(name in text for text in texts) else f"no test has a name with {name}"


def fault_of(words):
    """Returns what is wrong with one command, or an empty string."""
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    program, *arguments = words or [""]
    if program == "make":
        targets = set(re.findall(r"^([a-z0-9-]+):", (SOURCE / "Makefile").read_text(), re.MULTILINE))
        return "" if set(arguments) <= targets else f"make has no target {' '.join(arguments)}"
    if program == PYTHON and arguments[:2] == ["-m", "pytest"]:
        return (
            "" if all((SOURCE / path).exists() for path in arguments[2:]) else "pytest gets a path that does not exist"
        )
    if program == PYTHON:
        program, *arguments = arguments
    if program.startswith("build/bin/"):
        target = program.removeprefix("build/bin/")
        return "" if target in cmake_words() else f"no CMakeLists.txt names {target}"
    if program == "tools/pytest":
        return fault_of_pytest(arguments)
    file = SOURCE / program
    if "/" not in program or not file.is_file():
        return f"there is no program {program}"
    if program in ("tools/build", "tools/test"):
        if not arguments or arguments[0] not in presets():
            return f"{program} needs a preset, one of {', '.join(sorted(presets()))}"
        if "--" in arguments:
            unknown = [target for target in arguments[arguments.index("--") + 1 :] if target not in cmake_words()]
            return f"no CMakeLists.txt names {', '.join(unknown)}" if unknown else ""
        pattern = arguments[arguments.index("-R") + 1] if "-R" in arguments else ""
        unmatched = [each for each in pattern.split("|") if not any(re.search(each, name) for name in names_of_tests())]
        return f"no test has a name that matches {', '.join(unmatched)}" if unmatched else ""
    text = file.read_text()
    unknown = [argument for argument in arguments if argument.startswith("--") and argument not in text]
    return f"{program} has no option {', '.join(unknown)}" if unknown else ""


def commands_in(page_text):
    """Returns the commands in blocks of `sh`, and the commands in backticks that begin with make or a path."""
    lines = [line for kind, block in BLOCK.findall(page_text) if kind == "sh" for line in block.splitlines()]
    starts = ("make ", "tools/", "ci/", ".ci/", f"{PYTHON} ")
    lines += [word for word in quoted(BLOCK.sub("", page_text)) if word.startswith(starts) and " " in word]
    for line in lines:
        words = shlex.split(line, comments=True)
        while words:
            end = words.index("&&") if "&&" in words else len(words)
            yield words[:end]
            words = words[end + 1 :]


def faults_of(page_text):
    """Returns a sentence for each path, name and command of a page that does not exist."""
    prose = BLOCK.sub("", page_text)
    faults = [
        f"there is no file {path}" for path in paths_in(prose) if not sorted(SOURCE.glob(PLACEHOLDER.sub("*", path)))
    ]
    for step in STEP.findall(prose):
        faults += [f"no file of this step has {name}: {step[:60]}" for name in missing_names(step)]
    for words in commands_in(page_text):
        fault = fault_of(words)
        if fault:
            faults.append(f"{' '.join(words)}: {fault}")
    return faults


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_names_exists(page):
    assert faults_of(page.read_text()) == []


def test_every_recipe_has_steps_and_a_command():
    _, *recipes = re.split(r"^## ", RECIPES.read_text(), flags=re.MULTILINE)
    assert len(recipes) >= 10
    for recipe in recipes:
        title = recipe.splitlines()[0]
        assert STEP.search(recipe), title
        assert any(kind == "sh" for kind, _ in BLOCK.findall(recipe)), title
        for step in STEP.findall(BLOCK.sub("", recipe)):
            assert paths_in(step), f"{title}: {step}"


def test_links_lead_to_files_and_headings():
    for page in PAGES:
        for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", page.read_text()):
            file = (page.parent / target).resolve() if target else page
            assert file.exists(), f"{page.name} links to {target}"
            if heading:
                titles = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
                anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
                assert heading in anchors, f"{page.name} links to {target}#{heading}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("1. `src/no_such_file.cpp`: the code.\n", "there is no file src/no_such_file.cpp"),
        ("1. `src/no_such_folder/<name>.cpp`: the code.\n", "there is no file src/no_such_folder/<name>.cpp"),
        ("1. `src/ops/ops.inc`: a line\n   `NO_SUCH_MACRO`.\n", "no file of this step has NO_SUCH_MACRO"),
        ("1. `src/rules/rule.hpp`: `Rule::no_such_name`.\n", "no file of this step has Rule::no_such_name"),
        ("```sh\nmake no-such-target\n```\n", "make has no target"),
        ("Run `make no-such-target`.\n", "make has no target"),
        ("```sh\ntools/test release -R 'rules_test|no_such_test'\n```\n", "matches no_such_test"),
        ("```sh\ntools/test release -R 'rules_test.NoSuchSuite'\n```\n", "matches rules_test.NoSuchSuite"),
        ("```sh\ntools/test no_such_preset\n```\n", "needs a preset"),
        ("```sh\ntools/build release -- no_such_library\n```\n", "names no_such_library"),
        (f"```sh\n{PYTHON} tools/no_such_tool.py\n```\n", "there is no program tools/no_such_tool.py"),
        (f"```sh\n{PYTHON} tools/fuzz.py --no-such-option\n```\n", "has no option --no-such-option"),
        ("```sh\nbuild/bin/no_such_program docs\n```\n", "names no_such_program"),
        ("```sh\ntools/pytest tests/no_such_test.py\n```\n", "pytest gets a path that does not exist"),
        (
            "```sh\ntools/pytest tests/cli/test_inspect.py -k no_such_name\n```\n",
            "no test has a name with no_such_name",
        ),
        (f"```sh\n{PYTHON} -m pytest tests/no_such_folder\n```\n", "pytest gets a path that does not exist"),
    ],
)
def test_finds_what_does_not_exist(text, fault):
    assert any(fault in found for found in faults_of(text)), faults_of(text)


def test_accepts_what_exists():
    page = f"""
1. `src/ops/<name>/<name>.hpp`, `src/ops/ops.inc`: a line `GRAFT_OPERATOR`, as `graft ops` lists it.

```sh
GRAFT_CUDA=OFF make build && tools/test release -R 'rules_test.UserRules|cli_rules'   # both
{PYTHON} tools/fuzz.py --seconds 60 yaml
```
"""
    assert faults_of(page) == []


def test_the_page_for_contributors_says_from_when_on_the_changelog_lists_changes():
    """The sentence about 0.1.0 is wrong after its release."""
    is_released = "(not released)" not in (SOURCE / "CHANGELOG.md").read_text().split("\n## ")[1]
    assert ("only after the release" in (SOURCE / "CONTRIBUTING.md").read_text()) != is_released


def test_the_pages_with_measured_results_are_written_by_scripts():
    """docs-check compares the other generated pages."""
    text = (SOURCE / "CONTRIBUTING.md").read_text()
    paragraph = text[text.index("It does not check") :].split("\n\n")[0]
    scripts = [file.read_text() for folder in ("tools", "bench") for file in sorted((SOURCE / folder).glob("*.py"))]
    for page in re.findall(r"`docs/(?:\w+/)?(\w+\.md)`", paragraph):
        assert any(f'"{page}"' in script or f'/{page}"' in script for script in scripts), page
    (rule,) = re.findall(r"^docs-check:.*\n((?:\t.*\n)+)", (SOURCE / "Makefile").read_text(), re.MULTILINE)
    assert "tools/onnx_support.py --check" in rule


def test_the_page_for_contributors_names_every_folder_of_the_sources():
    named = set(re.findall(r"`src/(\w+)", (SOURCE / "CONTRIBUTING.md").read_text()))
    assert {folder.name for folder in (SOURCE / "src").iterdir() if folder.is_dir()} == named
