"""Adds generated pages to the documentation site, and turns links to files outside of docs into links that work.

MkDocs calls the functions on_* (mkdocs.yml). The generated pages are: one for each message of docs/messages.toml, each
command, each header of the library and each notebook, the Python functions, the JSON schemas, the list of decisions, the
pages of the repository that are not in docs, and each source that a page links to. No generated page is a file of the
repository.
"""

import ast
import fnmatch
import json
import pathlib
import posixpath
import re
import tomllib
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# Pages of the site that are files of the repository outside of docs.
OTHER_PAGES = {
    "contributing/contributing.md": "CONTRIBUTING.md",
    "examples/digits.md": "examples/digits/README.md",
    "examples/style_transfer.md": "examples/style_transfer/README.md",
}
# The name of a file as a class of highlighting, where its suffix is not one.
LANGUAGES = {".cu": "cpp", ".cuh": "cpp", ".hpp": "cpp", ".cpp": "cpp", ".h": "cpp", ".py": "python", ".yaml": "yaml",
             ".toml": "toml", ".txt": "cmake", ".json": "json"}  # fmt: skip
# Code, in which nothing is a link; a link; or the beginning of "<alpha=0.1>" in the text, which is no HTML.
CODE_OR_LINK = re.compile(
    r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)|(?P<ticks>`+)(?:(?!\n\n).)*?(?<!`)(?P=ticks)(?!`)"
    r"|(?P<text>!?\[(?:`[^`\n]*`|[^\[\]])*\])\((?P<target>[^()\s]+)\)"
    r"|(?P<angle><)(?=\w)(?!(?:br|details|summary)\b|https?:)",
    re.M | re.S,
)


# --- Messages of TensorRT ---------------------------------------------------------------------------------------------


def messages() -> list[dict[str, Any]]:
    return tomllib.loads((DOCS / "messages.toml").read_text())["message"]


def causes() -> dict[str, str]:
    """Returns the rows of the table of causes in the guide, by the names of the causes."""
    guide = (DOCS / "guide" / "plugin_not_found.md").read_text()
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) (\|.*\|.*\|)$", guide, re.M)
    return {name: f"| {names} {rest}" for names, rest in rows for name in re.findall(r"\w+", names)}


def message_page(message: dict[str, Any]) -> str:
    parts = [f"# {message['title']}", f"Printed by {message['from']}.", "## Why", message["why"].strip()]
    parts += ["## Find the cause", f"```sh\n{message['try'].strip()}\n```"]
    if "causes" in message:
        rows = list(dict.fromkeys(causes()[name] for name in message["causes"]))
        parts.append("`graft inspect --json` and `graft plugins --json` name the cause as `cause`:")
        parts.append("\n".join(["| cause | what is wrong | what to do |", "|---|---|---|", *rows]))
    parts += ["## What to do", "\n".join(f"- {each}" for each in message["fix"])]
    parts += ["## See also", "\n".join(f"- [{text}](../{page})" for page, text in message["see"])]
    return "\n\n".join(parts) + "\n"


def messages_index() -> str:
    rows = [f"| [{each['title']}]({each['name']}.md) | {each['from']} |" for each in messages()]
    return "\n".join(
        [
            "# Messages of TensorRT",
            "",
            "These are messages of TensorRT, of its ONNX parser and of the loader that Graft recognizes. Search for words",
            "of your message with the field at the top of the page, without names and numbers.",
            "",
            "| message | printed by |",
            "|---|---|",
            *rows,
            "",
        ]
    )


# --- Commands ---------------------------------------------------------------------------------------------------------


def command_pages() -> dict[str, str]:
    """Returns a page for each command of the command line: its help, the schema of its JSON, and the guides with it."""
    text = (DOCS / "guide" / "command_line.md").read_text()
    guides = [(path, path.read_text()) for path in sorted((DOCS / "guide").glob("*.md")) if path.stem != "command_line"]
    pages = {}
    for name, section in re.findall(r"^## graft (\w+)\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        lines = [f"# graft {name}", "", section.strip(), "", "## See also", ""]
        lines.append("- [exit codes, JSON and environment variables](../guide/command_line.md)")
        for path in sorted((DOCS / "schema").glob(f"graft.{name}.*json")):
            schema = path.name.removesuffix(".schema.json")
            lines.append(f"- [schema of the JSON {schema}](../schema/{schema}.md)")
        for path, guide in guides:
            if re.search(rf"^graft {name}\b", guide, re.M):
                lines.append(f"- [{guide.partition('# ')[2].splitlines()[0]}](../guide/{path.name})")
        pages[f"commands/{name}.md"] = "\n".join(lines) + "\n"
    return pages


# --- C++ --------------------------------------------------------------------------------------------------------------

FIELDS = re.compile(r"\n*^  static constexpr auto fields\(\) \{(?:[^\n]*\}$|.*?^  \}$)", re.M | re.S)
FIELD = re.compile(r'\bfield\w*\(\s*"\w+",\s*&\w+::(\w+),\s*"((?:[^"\\]|\\.|"\s*")*)"')


def declarations(text: str) -> Iterator[str]:
    """Yields the declarations of a header's namespace that documentation or braces keep together."""
    body = re.search(r"^namespace graft[\w:]* \{\n(.*)^\}", text, re.M | re.S)
    lines: list[str] = []
    for line in [*(body[1] if body else "").splitlines(), ""]:
        code = "\n".join(each for each in lines if not each.startswith("///"))
        if not line and code.count("{") == code.count("}"):
            if code:
                yield "\n".join(lines)
            lines = []
        else:
            lines.append(line)


def header_page(path: pathlib.Path) -> str:
    text = path.read_text()
    about = re.match(r"((?://[^\n]*\n)+)", text)
    name = path.relative_to(ROOT / "include").as_posix()
    parts = [f"# {path.parent.name}/{path.name}", " ".join(re.findall(r"^// ?(.*)", about[1] if about else "", re.M))]
    parts.append(f"```cpp\n#include <{name}>\n```")
    for block in declarations(text):
        if re.match(r"(?:///[^\n]*\n)*(?:namespace|template <>)", block):
            continue
        comment = " ".join(re.findall(r"^/// ?(.*)", block, re.M))
        code = re.sub(r"^///[^\n]*\n", "", block, flags=re.M)
        title = re.match(
            r"(?:template <[^\n]*>\s*)?(?:struct|class|enum class|enum) (?:GRAFT_API )?(\w+)|using (\w+) =", code
        )
        title = title or re.search(r"(\w+)\(", code)
        parts += [f"## {next(filter(None, title.groups()))}"] if title else []
        parts += [comment] if comment else []
        parts.append(f"```cpp\n{FIELDS.sub('', code)}\n```")
        described = [(member, re.sub(r'"\s*"', "", about)) for member, about in FIELD.findall(code)]
        parts.append("\n".join(f"- `{member}`: {about}" for member, about in described))
    return "\n\n".join(part for part in parts if part) + "\n"


def header_pages() -> dict[str, str]:
    folders = [ROOT / "include" / "graft" / name for name in ("toolkit", "report")]
    paths = [path for folder in folders for path in sorted(folder.glob("*.hpp"))]
    return {
        f"cpp/{path.parent.name}/{path.stem}.md": header_page(path)
        for path in paths
        if any(True for _ in declarations(path.read_text()))
    }


# --- Notebooks --------------------------------------------------------------------------------------------------------


def output_of(output: dict[str, Any]) -> str:
    """Returns an output that a notebook contains as text or as HTML."""
    data = output.get("data", {})
    if "text/html" in data:
        return "".join(data["text/html"])
    text = "".join(output.get("text") or data.get("text/plain", ""))
    return f"```text\n{text.rstrip()}\n```" if text else ""


def notebook_page(text: str, path: pathlib.Path) -> str:
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += filter(None, map(output_of, cell.get("outputs", [])))
    title, _, rest = "\n\n".join(parts).partition("\n")
    place = f"This is the notebook `{path.relative_to(ROOT)}`; the tests run its cells."
    return f"{title}\n\n{place}\n{rest}\n"


# --- Python -----------------------------------------------------------------------------------------------------------


def docstring_in_markdown(text: str) -> str:
    """Returns a docstring with its named arguments, and the lines of its sections, as lists."""
    lines: list[str] = []
    for line in text.strip().splitlines():
        argument = re.fullmatch(r"(?:    )?([a-z_]\w*(?:, [a-z_]\w*)*): (.+)", line)
        if argument:
            lines += [] if lines and lines[-1].startswith(("- ", "    ")) else [""]
            lines.append(f"- `{argument[1]}`: {argument[2]}")
        elif line.startswith("    "):
            lines.append(f"    {line.strip()}")
        else:
            lines += ["", line] if lines and lines[-1].startswith(("- ", "    ")) else [line]
    return "\n".join(lines)


def definitions(path: pathlib.Path) -> Iterator[tuple[ast.FunctionDef | ast.ClassDef, str]]:
    """Yields each public function and class of a module, with its declaration as it is written."""
    text = path.read_text()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node, "\n".join(text.splitlines()[node.lineno - 1 : node.body[0].lineno - 1]).strip()


def definition_page(node: ast.FunctionDef | ast.ClassDef, code: str, package: str) -> str:
    text = docstring_in_markdown(ast.get_docstring(node) or "")
    if isinstance(node, ast.ClassDef):
        public = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name[0] != "_"]
        shown = [each for each in public if ast.get_docstring(each)]
        text += "\n\n" + "\n".join(f"- `{each.name}`: {first_sentence(ast.get_docstring(each))}" for each in shown)
    return f"## {package}.{node.name}\n\n```python\n{code}\n```\n\n{text}\n"


def first_sentence(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def python_page() -> str:
    package = ROOT / "python" / "graft"
    tree = ast.parse((package / "__init__.py").read_text())
    exported = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"
    )
    sources = [package / name for name in ("toolkit.py", "errors.py", "cmake.py")]
    stub = ROOT / "build" / "python" / "graft" / "_toolkit.pyi"  # a build writes it
    sources += [stub] if stub.is_file() else []
    found = [(node, code) for path in sources for node, code in definitions(path) if node.name in exported]
    pages = [definition_page(node, code, "graft") for node, code in found]
    head = "# Python functions\n\n`import graft` has these functions; [Graft in Python](../guide/python.md) shows how to use them.\n"
    about = ast.get_docstring(ast.parse((package / "toolkit.py").read_text())) or ""
    return "\n".join([head, about, "", *pages])


def python_operators_page() -> str:
    stub = ROOT / "python" / "graft" / "ops" / "__init__.pyi"
    pages = [definition_page(node, code, "graft.ops") for node, code in definitions(stub)]
    head = (
        "# Functions of operators in Python\n\n`graft.ops` has a function for each operator, for arrays of NumPy, PyTorch"
        " and CuPy; [operators in Python](../guide/use_from_python.md) shows how to use them. `graft.torch` has the same"
        " functions as operators of PyTorch.\n"
    )
    return "\n".join([head, *pages])


# --- Schemas and decisions --------------------------------------------------------------------------------------------


def type_of(schema: dict[str, Any]) -> str:
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return " or ".join(types)
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    options = schema.get("anyOf") or schema.get("oneOf") or []
    return " or ".join(dict.fromkeys(map(type_of, options))) or ("string" if "enum" in schema else "any")


def schema_rows(schema: dict[str, Any], path: str) -> Iterator[str]:
    for key, each in schema.get("properties", {}).items():
        text = " ".join(str(each.get("description", "")).split()).replace("|", "\\|")
        yield f"| `{path}{key}` | {type_of(each)} | {text} |"
        yield from schema_rows(each, f"{path}{key}.")
        for items in (each.get("items"), each.get("additionalProperties")):
            if isinstance(items, dict):
                yield from schema_rows(items, f"{path}{key}[].")


def schema_page(path: pathlib.Path) -> str:
    schema = json.loads(path.read_text())
    name = path.name.removesuffix(".schema.json")
    rows = "\n".join(schema_rows(schema, ""))
    return (
        f"# {name}\n\n{schema.get('title', '')}. {schema.get('description', '')}\n\n"
        f"The schema itself, with required keys: [{path.name}]({path.name}).\n\n"
        f"| key | type | description |\n|---|---|---|\n{rows}\n"
    )


def decisions_page() -> str:
    lines = ["# Decisions", "", "Each page has one decision on the design of Graft, with its reasons.", ""]
    for path in sorted((DOCS / "decisions").glob("0*.md")):
        lines.append(f"- [{path.read_text().splitlines()[0].removeprefix('# ')}]({path.name})")
    return "\n".join(lines) + "\n"


# --- Pages from the repository ----------------------------------------------------------------------------------------


def links_of(text: str) -> Iterator[str]:
    for found in CODE_OR_LINK.finditer(text):
        if found["target"] and "://" not in found["target"] and not found["target"].startswith(("#", "mailto:")):
            yield found["target"]


def target_path(repository_path: str, link: str) -> str:
    """Returns the path in the repository that a link of a page leads to, without its anchor."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(repository_path), link.partition("#")[0]))


def source_page(path: str) -> str | None:
    """Returns a page with a source, or nothing for a file that is not text."""
    try:
        text = (ROOT / path).read_text()
    except UnicodeDecodeError:
        return None
    longest = max((len(each) for each in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    language = LANGUAGES.get(pathlib.PurePath(path).suffix, "text")
    return (
        f"---\nsearch: {{exclude: true}}\n---\n# {pathlib.PurePath(path).name}\n\nThe file `{path}` of the repository.\n\n"
        f"{fence}{language}\n{text.rstrip()}\n{fence}\n"
    )


def generated_pages() -> dict[str, str]:
    """Returns the text of each generated page, by its path in the site."""
    pages = {"messages/index.md": messages_index(), "decisions/README.md": decisions_page()}
    pages |= {f"messages/{each['name']}.md": message_page(each) for each in messages()}
    pages |= {"reference/python.md": python_page(), "reference/python_operators.md": python_operators_page()}
    pages |= command_pages() | header_pages()
    notebooks = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
    pages |= {f"notebooks/{path.stem}.md": notebook_page(path.read_text(), path) for path in notebooks}
    for path in sorted((DOCS / "schema").glob("*.schema.json")):
        pages[f"schema/{path.name.removesuffix('.schema.json')}.md"] = schema_page(path)
    return pages


# The page of the site that shows a path in the repository, and the reverse. on_files fills both.
page_of: dict[str, str] = {}
origin_of: dict[str, str] = {}


def expanded(nav: list[Any], names: list[str]) -> list[Any]:
    """Returns the navigation with each pattern replaced by the matching pages that no other entry names."""
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            ((title, value),) = entry.items()
            entries.append({title: expanded(value, names) if isinstance(value, list) else value})
        elif "*" in entry:
            entries += fnmatch.filter(names, entry)
        else:
            entries.append(entry)
    return entries


def named_pages(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from named_pages(value) if isinstance(value, list) else [value]


def on_files(files: Any, config: Any) -> Any:
    """Adds the generated pages to the files of docs, and to the navigation."""
    from mkdocs.structure.files import File

    texts = generated_pages()
    origin_of.update({page: f"docs/{page}" for page in texts} | OTHER_PAGES)
    texts |= {page: (ROOT / path).read_text() for page, path in OTHER_PAGES.items()}
    for file in files.documentation_pages():
        origin_of[file.src_uri] = f"docs/{file.src_uri}"
        texts[file.src_uri] = file.content_string
    page_of.update({origin: page for page, origin in origin_of.items()})
    page_of.update({posixpath.dirname(path): page for path, page in page_of.items() if path.endswith("/README.md")})
    page_of.update({"README.md": "index.md", "docs/messages.toml": "messages/index.md"})
    for page, text in list(texts.items()):
        for target in {target_path(origin_of[page], link) for link in links_of(text)} - page_of.keys():
            if target.startswith("docs/") or not (ROOT / target).is_file():
                continue
            source = source_page(target)
            page_of[target] = f"source/{target}" if source is None else f"source/{target}.md"
            if source is None:
                files.append(File.generated(config, page_of[target], abs_src_path=str(ROOT / target)))
            else:
                origin_of[page_of[target]] = target
                texts[page_of[target]] = source
    for page, text in texts.items():
        if files.get_file_from_path(page) is None:
            files.append(File.generated(config, page, content=text))
    named = set(named_pages(config.nav))
    config.nav = expanded(config.nav, sorted(page for page in texts if page not in named))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replaces links by paths in the repository with links by pages of the site."""
    here = page.file.src_uri
    origin = origin_of[here]

    def replaced(found: re.Match[str]) -> str:
        link = found["target"]
        if found["angle"]:
            return "&lt;"
        if not link or "://" in link or link.startswith(("#", "mailto:")):
            return found[0]
        target = target_path(origin, link)
        anchor = link.partition("#")[2]
        if target.startswith("docs/") and target not in page_of:
            site_path = target.removeprefix("docs/")  # a picture, or a link that MkDocs reports
        elif target in page_of:
            site_path = page_of[target]
        elif (ROOT / target).exists():
            text = found["text"][1:-1]
            return text if target in text else f"{text} (`{target}`)"
        else:
            return found[0]
        relative = posixpath.relpath(site_path, posixpath.dirname(here) or ".")
        return f"{found['text']}({relative}{'#' if anchor else ''}{anchor})"

    if not here.startswith("source/"):
        markdown = CODE_OR_LINK.sub(replaced, markdown).replace("<details>", '<details markdown="1">')
    # A page begins with its title, and the name of the file that a block of code comes from is the title of the block.
    markdown = re.sub(r"\A\s*<!--.*?-->\s*", "", markdown, flags=re.S)
    return re.sub(r"^<!-- file: (\S+) -->\n+```(\w+)$", r'```\2 title="\1"', markdown, flags=re.M)


def on_post_build(config: Any) -> None:
    """Writes the index of the search as a script too, because a page from file:// may not read other files. Removes the
    files with absolute addresses, because the site does not know where it will be."""
    folder = pathlib.Path(config.site_dir)
    index = folder / "search" / "search_index.json"
    index.with_suffix(".js").write_text(f"var __index = {index.read_text()}")
    for name in ("404.html", "sitemap.xml", "sitemap.xml.gz"):
        (folder / name).unlink(missing_ok=True)
