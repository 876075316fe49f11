"""Writes docs/guide/pictures/before_after.svg, the picture of README.md: the nodes of the digits network of TensorFlow
before and after `graft convert`, from the report of a real conversion. Needs `make build`."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from html import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
NETWORK = ROOT / "examples" / "digits" / "digits.pb"
PICTURE = ROOT / "docs" / "guide" / "pictures" / "before_after.svg"
WIDTH = 880
HEIGHT_OF_NODE = 24
HEIGHT_OF_ROW = 34
GAP = 18  # between two nodes of a row
MARGIN = 8
STYLE = """
text{font:12px 'DejaVu Sans',Verdana,sans-serif;fill:#1f2328}.title{font-size:14px;font-weight:bold}
rect{fill:#f6f8fa;stroke:#8c959f}.page{fill:#fff;stroke:none}.end{fill:none;stroke-dasharray:3}.replaced{fill:#fff1c7;stroke:#9a6700}
.plugin{fill:#d2f0dc;stroke:#1a7f37}path{stroke:#8c959f;fill:none}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#21262d}.page{fill:#0d1117}.end{fill:none}
.replaced{fill:#4d3800}.plugin{fill:#0f3d1f}}
"""


def graphs(graft: pathlib.Path) -> list[dict]:
    """Returns the graphs before and after a conversion, as `graft convert --report` writes them."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "report.html"
        command = [graft, "convert", NETWORK, "-o", pathlib.Path(folder) / "out.onnx", "--report", page, "-q"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"graft convert: {done.stderr}")
        return json.loads(page.with_name("report.html.json").read_text())["graphs"]


def style_of(node: dict, kept: set[tuple[str, str]]) -> str:
    if node["end"]:
        return "end"
    if node["kind"] == "plugin":
        return "plugin"
    return "" if (node["name"], node["op"]) in kept else "replaced"


def drawn(graph: dict, title: str, kept: set[tuple[str, str]], top: int) -> tuple[list[str], int]:
    """Returns the elements of a graph and the bottom of its last row: its input, then its nodes in the order in which
    they run."""
    parts = [f'<text class="title" x="{MARGIN}" y="{top + 14}">{title}</text>']
    left, y = MARGIN, top + 26
    for node in (node for node in graph["nodes"] if node["op"] != "output"):
        text = node["name"] if node["end"] else node["op"].removeprefix("graft::")
        width = 16 + round(7.4 * len(text))
        if left + width > WIDTH - MARGIN:
            left, y = MARGIN, y + HEIGHT_OF_ROW
        elif left > MARGIN:
            parts.append(f'<path d="M{left - GAP} {y + HEIGHT_OF_NODE // 2}h{GAP}"/>')
        style = style_of(node, kept)
        parts.append(
            f'<rect class="{style}" x="{left}" y="{y}" width="{width}" height="{HEIGHT_OF_NODE}" rx="5"/>'
            f'<text x="{left + width / 2:g}" y="{y + 16}" text-anchor="middle">{escape(text)}</text>'
        )
        left += width + GAP
    return parts, y + HEIGHT_OF_NODE


def picture(before: dict, after: dict) -> str:
    counts = [sum(not node["end"] for node in graph["nodes"]) for graph in (before, after)]
    kept = {(node["name"], node["op"]) for node in after["nodes"]}
    above, bottom = drawn(before, f"before: {counts[0]} nodes; the yellow ones are removed or replaced", kept, MARGIN)
    below, bottom = drawn(after, f"after: {counts[1]} nodes; the green one is a plugin of Graft", kept, bottom + 18)
    height = bottom + MARGIN
    parts = "\n".join([*above, *below])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
        f'<style>{STYLE}</style>\n<rect class="page" width="{WIDTH}" height="{height}"/>\n{parts}\n</svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graft", type=pathlib.Path, default=ROOT / "build" / "bin" / "graft")
    PICTURE.write_text(picture(*graphs(parser.parse_args().graft)))
    print(f"wrote {PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
