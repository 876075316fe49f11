# Tests that each page of figures names the day or an existing commit of the measurement.
import pathlib
import re
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NAMES = (
    "compatibility",
    "engines",
    "engines_on_cpu",
    "import",
    "networks",
    "networks_on_gpu",
    "performance",
    "precision",
)
PAGES = [*(SOURCE / "docs" / f"{name}.md" for name in NAMES), *sorted((SOURCE / "docs" / "guide").glob("*.md"))]
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
COMMIT = re.compile(r"\bcommit ([0-9a-f]{7,40})\b")


def git(*arguments):
    done = subprocess.run(["git", "-C", SOURCE, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize("name", NAMES)
def test_page_of_figures_says_when_they_were_measured(name):
    text = (SOURCE / "docs" / f"{name}.md").read_text()
    assert DATE.search(text) or COMMIT.search(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commits_of_measurements_exist(page):
    code, shallow = git("rev-parse", "--is-shallow-repository")
    if code != 0 or shallow == "true":
        pytest.skip("needs the history of the repository")
    for commit in COMMIT.findall(page.read_text()):
        assert git("cat-file", "-e", f"{commit}^{{commit}}")[0] == 0, f"{page.name} names commit {commit}"
