# Tests the files of the repository that services and containers read.
import json
import pathlib
import re
import tomllib

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["version"]
DOCKERFILE = (SOURCE / "Dockerfile").read_text()
TEMPLATES = sorted((SOURCE / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
COMMAND_LINE = (SOURCE / "docs" / "guide" / "command_line.md").read_text()


def test_versions_are_those_of_the_project() -> None:
    assert f"\nversion: {VERSION}\n" in (SOURCE / "CITATION.cff").read_text()
    assert f"\n## {VERSION}" in (SOURCE / "CHANGELOG.md").read_text()


def test_the_image_is_debian_12_and_runs_the_commands_of_the_readme() -> None:
    images = re.findall(r"^FROM (\S+)(?: AS (\S+))?$", DOCKERFILE, re.M)
    stages = {stage for _, stage in images if stage}
    assert {image for image, _ in images} - stages == {"debian:12"}
    assert "://" not in DOCKERFILE
    readme = (SOURCE / "README.md").read_text()
    assert "sudo apt-get install -y git make" in readme and "--no-install-recommends git make" in DOCKERFILE
    assert "\nRUN make demo\n" in DOCKERFILE and "\nmake demo\n" in readme
    assert '\nCMD ["make", "test"]\n' in DOCKERFILE and "\nmake test\n" in readme
    build = json.loads((SOURCE / ".devcontainer" / "devcontainer.json").read_text())["build"]
    assert build["target"] in stages and (SOURCE / ".devcontainer" / build["dockerfile"]).is_file()


def test_there_are_three_templates() -> None:
    assert [path.stem for path in TEMPLATES] == ["bug_report", "missing_layer", "wrong_values"]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_templates_name_pages_and_options_that_exist(template: pathlib.Path) -> None:
    text = template.read_text()
    assert re.match(r"---\nname: .+\nabout: .+\nlabels: .+\n---\n", text)
    for page in re.findall(r"docs/[a-z_/]+\.md", text):
        assert (SOURCE / page).is_file(), page
    for option in re.findall(r" (--[a-z-]+)", text):
        assert option == "--version" or f"  {option}" in COMMAND_LINE, option


@pytest.mark.parametrize("page", ["CHANGELOG.md", "SECURITY.md", "docs/comparison.md"])
def test_links_lead_to_files(page: str) -> None:
    links = re.findall(r"\]\((?!https:)([^)#]+)", (SOURCE / page).read_text())
    assert links and [link for link in links if not ((SOURCE / page).parent / link).is_file()] == []


def test_the_comparison_names_commands_and_options_of_graft_that_exist() -> None:
    commands = re.findall(r"`graft (\w+) ?([^`]*)`", (SOURCE / "docs" / "comparison.md").read_text())
    assert len(commands) > 6
    for command, arguments in commands:
        (section,) = re.findall(rf"^## graft {command}$(.*?)(?=^## |\Z)", COMMAND_LINE, re.M | re.S)
        assert [option for option in re.findall(r"--[a-z-]+", arguments) if option not in section] == [], command
