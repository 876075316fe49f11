"""Reports comments that are not plain sentences, and lines of documents that are too long.

usage: python tools/check_language.py [--json] [PATH...]

Without a path it checks every tracked source and document. A documentation comment (`///` in C++, a docstring in
Python) must begin with a verb in the third person ("Returns ...") or with the name of the thing that it describes. It
must not begin with a word that only refers to something named elsewhere ("Of", "What", "Those").
"""

import argparse
import ast
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP = {".cpp", ".hpp", ".cu", ".cuh", ".h", ".inc"}
# Decisions and measurements are records; their tables may be wide.
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/contributing/", "docs/guide/")
WIDTH = 120

# First words after which no sentence follows that can be read by itself.
FRAGMENT = re.compile(
    r"(Of|What|Those|The same|As|That|Which|Whose|Its|It|They|By|From|With|Beside|So|Or|And|Who|Nothing|One|Also|Else"
    r"|Otherwise|Another|Other|Says|Tells|Asks|Knows|Gives|Makes|Not)\b(?! *[:=])"
)
# First words of an adverbial: a sentence follows where a comma ends the adverbial.
ADVERBIAL = re.compile(r"(In|On|For|Where|Without|Before|After|At|To|Between|Then)\b[^,:.]*(\.|$)")

# First words that no comment may begin with, also where it documents nothing.
RIDDLE = re.compile(r"(Of|What|Those|The same|As in)\b(?! *[:=])")

# Phrases that readers could not understand, each with what to write instead.
PHRASES = {
    r"\basked for\b": "requested",
    r"\bundone\b": "rejected",
    r"\btexts\b": "strings",
    r"\bwhole numbers?\b": "integer",
    r"\btruth values?\b": "boolean",
    r"\bneither is believed\b|\bbelieved\b": "trusted",
    r"\bis none\b": "is not a ...",
    r"\bbeside a node\b|\bbehind a node\b": "next to, after",
    r"\b(calculat|quantis)\w*": "compute, quantize",
    r"\bneighbour\w*": "neighbor",
    r"\bmends?\b|\bmended\b": "fix",
    r"\bput round\b": "wrapped in, rewritten",
}


def documentation_comments(text: str) -> list[tuple[int, str]]:
    """Returns the line and the text of each documentation comment of a C++ source."""
    comments: list[tuple[int, str]] = []
    block: list[str] = []
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        whole = re.match(r"\s*///(?!/)<? ?(.*)", line)
        if whole:
            if not block:
                start = number
            block.append(whole.group(1))
            continue
        if block:
            comments.append((start, " ".join(block)))
            block = []
        trailing = re.search(r"///< ?(.*)", line)
        if trailing:
            comments.append((number, trailing.group(1)))
    return comments


def docstrings(text: str) -> list[tuple[int, str]]:
    """Returns the line and the text of each docstring of a Python source."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        documentation = ast.get_docstring(node)
        if documentation and node.body:
            found.append((node.body[0].lineno, documentation))
    return found


def all_comments(text: str, suffix: str) -> list[tuple[int, str]]:
    """Returns the line and the text of every comment, also of those that document nothing."""
    marker = r"#\s?(.*)$" if suffix == ".py" else r"//+<?\s?(.*)$"
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        match = re.search(r"(?:^|\s)" + marker, line)
        if match and line[: match.start()].count('"') % 2 == 0:
            found.append((number, match.group(1)))
    return found


def check_source(path: pathlib.Path) -> list[tuple[int, str]]:
    text = path.read_text(errors="replace")
    findings = []
    for line, comment in documentation_comments(text) if path.suffix in CPP else docstrings(text):
        sentence = comment.strip()
        fragment = FRAGMENT.match(sentence) or ADVERBIAL.match(sentence)
        if fragment:
            findings.append((line, f"the comment begins with {fragment.group(1)!r}: {sentence[:70]}"))
    previous = 0
    for line, comment in all_comments(text, path.suffix):
        riddle = RIDDLE.match(comment) if line != previous + 1 else None
        if riddle and all(line != found for found, _ in findings):
            findings.append((line, f"the comment begins with {riddle.group(1)!r}: {comment[:70]}"))
        previous = line
        for phrase, better in PHRASES.items():
            match = re.search(phrase, comment, re.IGNORECASE)
            if match:
                findings.append((line, f"{match.group(0)!r} (write: {better}): {comment[:70]}"))
    return sorted(findings)


def check_document(path: pathlib.Path) -> list[tuple[int, str]]:
    findings = []
    is_code = False
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_table = line.lstrip().startswith("|")
        if len(line) > WIDTH and not is_code and not is_table and "](" not in line:
            findings.append((number, f"{len(line)} columns; {WIDTH} are allowed"))
    return findings


def tracked(paths: list[str]) -> list[pathlib.Path]:
    listing = subprocess.run(["git", "ls-files", "--", *paths], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listing.stdout.splitlines()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="files or folders; without one, every tracked file")
    parser.add_argument("--json", action="store_true", help="print the findings as one JSON list")
    arguments = parser.parse_args()
    findings = []
    for path in tracked(arguments.paths):
        name = str(path.relative_to(ROOT))
        if not path.is_file() or path == pathlib.Path(__file__).resolve():
            continue
        if path.suffix in CPP or path.suffix == ".py":
            found = check_source(path)
        elif name.startswith(DOCUMENTS) and path.suffix == ".md":
            found = check_document(path)
        else:
            continue
        findings += [{"file": name, "line": line, "finding": text} for line, text in found]
    if arguments.json:
        json.dump(findings, sys.stdout, indent=1)
    else:
        for finding in findings:
            print(f"{finding['file']}:{finding['line']}: {finding['finding']}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
