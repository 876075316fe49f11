# The result of a benchmark as one HTML page: bar charts against the roofline, every figure in a table, no network.
"""Charts are inline SVG; colours follow the reader's light or dark setting."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graft.bench.judge import SMALL_BYTES, Row

SERIES = {"graft": "Graft", "eager": "PyTorch eager", "compiled": "torch.compile", "onnxruntime": "ONNX Runtime"}

STYLE = """
:root { --paper: #ffffff; --ink: #1d2329; --faint: #66707a; --line: #d7dce1; --bad: #b3261e;
  --graft: #2563c9; --eager: #7b8794; --compiled: #c9770c; --onnxruntime: #3f9a72; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181c; --ink: #e4e8ec; --faint: #98a3ad; --line: #333b43; --bad: #ff8a80;
    --graft: #6ea3ff; --eager: #94a1ae; --compiled: #f0a94b; --onnxruntime: #63c79a; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .3rem; } h2 { font-size: 1.25rem; margin: 2.4rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; font-weight: 600; }
p { max-width: 46rem; } .faint { color: var(--faint); } .bad { color: var(--bad); }
svg { display: block; height: auto; max-width: 100%; width: 100%; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .faint { fill: var(--faint); }
svg .note { font-size: 9.5px; } svg .inner { fill: var(--paper); font-size: 8.5px; }
svg .grid { stroke: var(--line); } svg .roof { stroke: var(--ink); stroke-dasharray: 4 3; }
svg .goal { stroke: var(--bad); stroke-width: 2; }
.graft { fill: var(--graft); background: var(--graft); } .eager { fill: var(--eager); background: var(--eager); }
.compiled { fill: var(--compiled); background: var(--compiled); }
.onnxruntime { fill: var(--onnxruntime); background: var(--onnxruntime); }
.key { border-radius: 2px; display: inline-block; height: .8em; margin: 0 .35em 0 1.1em; width: .8em; }
.key:first-child { margin-left: 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; white-space: nowrap; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .7rem .2rem 0; text-align: right; }
th:first-child, td:first-child { text-align: left; } summary { cursor: pointer; margin: .6rem 0; }
"""

LABEL_WIDTH, PLOT_WIDTH, RIGHT = 330, 600, 70
BAR, GAP, TOP = 10, 8, 26
LABEL_HEIGHT, ROOM = 23, 26


@dataclass(frozen=True)
class Chart:
    """Which rows of an operator it shows, and which of their figures."""

    title: str
    takes: Callable[[Row], bool]
    figure: str
    form: str
    roof: float | None  # where the dashed line is
    roof_name: str
    mark: Callable[[Row], float | None]  # a red mark in a row


def charts_of(result: dict[str, Any]) -> list[Chart]:
    empty = result["empty_kernel_us"]
    on_gpu = result["device"] == "cuda"
    matmul = result.get("matmul_tflop_s", {})

    def attainable(row: Row) -> float | None:
        """What memory at the copy's bandwidth, and a large matrix product, would allow."""
        by_memory = row["operations"] / row["bytes"] * result["copy_gb_s"] / 1e3
        return min(by_memory, matmul.get(row["dtype"]) or by_memory) if on_gpu else None

    arithmetic = Chart(
        "Arithmetic, TFLOP/s",
        lambda row: bool(row["operations"]),
        "tflop_s",
        "{:.0f}" if on_gpu else "{:.3f}",
        matmul.get("f16"),
        "f16 matrix product",
        attainable,
    )
    if not on_gpu:
        every = Chart("Time, microseconds", lambda row: not row["operations"], "us", "{:.0f}", None, "", no_mark)
        return [every, arithmetic]
    return [
        Chart(
            "Bandwidth, as a fraction of a copy",
            lambda row: row["bytes"] > SMALL_BYTES and not row["operations"],
            "of_copy",
            "{:.2f}",
            1.0,
            "copy",
            lambda row: row["to_reach"]["of_copy"],
        ),
        Chart(
            "Small tensors with a warm cache, microseconds",
            lambda row: row["bytes"] <= SMALL_BYTES and not row["operations"],
            "warm_us",
            "{:.1f}",
            empty,
            "empty kernel",
            no_mark,
        ),
        arithmetic,
    ]


def no_mark(row: Row) -> None:
    return None


def page(result: dict[str, Any]) -> str:
    rows = result["results"]
    operators = list(dict.fromkeys(row["operator"] for row in rows))
    body = [head(result), shortfalls(rows)]
    for name in operators:
        own = sorted((row for row in rows if row["operator"] == name), key=lambda row: row["index"])
        body.append(f"<h2>{text(name)}</h2>")
        for chart in charts_of(result):
            shown = [row for row in own if chart.takes(row) and "failed" not in row]
            if shown:
                body.append(f"<h3>{text(chart.title)}</h3>{svg(chart, shown)}")
        body.append(table(own))
    if result["left_out"]:
        listed = "".join(f"<li>{text(name)}</li>" for name in result["left_out"])
        body.append(f"<h2>Not timed</h2><p>The time limit was reached before these.</p><ul>{listed}</ul>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Graft: speed of the operators</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def head(result: dict[str, Any]) -> str:
    shown = [name for name in SERIES if name == "graft" or any(name in row["peers"] for row in result["results"])]
    key = "".join(f'<span class="key {name}"></span>{text(SERIES[name])}' for name in shown)
    versions = ", ".join(
        f"{label} {result[name]}"
        for name, label in (("torch", "PyTorch"), ("onnxruntime", "ONNX Runtime"))
        if name in result
    )
    if result["device"] == "cuda":
        method = (
            f"A device-to-device copy of 1 GiB moves {result['copy_gb_s']:.0f} GB/s, read and written; a kernel that does "
            f"nothing takes {result['empty_kernel_us']:.2f} us by the same clock. Each call is timed by itself with device "
            "events, the median of 31; before each, 256 MiB of other data are read. With a warm cache: the same call was "
            "made just before. The red mark is what is to be reached or, where arithmetic sets the limit, what the bandwidth of the "
            "copy and a large matrix product would allow."
        )
    else:
        method = (
            f"{result['threads']} threads; a copy in memory moves {result['copy_gb_s']:.1f} GB/s. Graft's bar is its "
            "reference kernel, which is made to be right: it calculates in double precision."
        )
    missing = "".join(f" {text(name)} is not installed." for name in result.get("missing", []))
    return (
        f"<h1>Graft: speed of the operators</h1>\n<p class=faint>{text(result['name'])}"
        f"{', ' + text(versions) if versions else ''}, Graft {text(result['graft'])}, {result['seconds']:.0f} s in all.</p>\n"
        f"<p>{method}{missing}</p>\n<p>{key}</p>"
    )


def shortfalls(rows: Sequence[Row]) -> str:
    short = [row for row in rows if row["misses"]]
    if not short:
        return f"<p>Nothing falls short in {len(rows)} cases.</p>"
    listed = "".join(f"<tr><td>{text(row['name'])}</td><td>{text('; '.join(row['misses']))}</td></tr>" for row in short)
    return (
        f"<details><summary>{len(rows) - len(short)} of {len(rows)} cases reach what they have to; "
        f"{len(short)} fall short</summary><div class=wide><table>{listed}</table></div></details>"
    )


def label(row: Row) -> tuple[str, str]:
    """What the name says after the operator: tensors, and attributes."""
    rest = row["name"].removeprefix(row["operator"]).strip()
    at = re.search(r" \w+=", rest)
    tensors, attributes = (rest[: at.start()], rest[at.start() :].strip()) if at else (rest, "")
    return shortened(tensors, 46), shortened(attributes, 60)


def shortened(line: str, most: int) -> str:
    return line if len(line) <= most else line[: most - 1] + "\u2026"


def figures(row: Row, figure: str) -> dict[str, float]:
    found = {"graft": row.get(figure)}
    found |= {name: peer.get(figure) for name, peer in row["peers"].items()}
    return {name: found[name] for name in SERIES if found.get(name) is not None}


def svg(chart: Chart, rows: Sequence[Row]) -> str:
    largest = max(value for row in rows for value in figures(row, chart.figure).values())
    top = max(largest, (chart.roof or 0) * 1.02) * 1.02
    # A peer that is far slower than all others must not make every other bar a stump.
    ours = max(row[chart.figure] for row in rows)
    if chart.figure != "of_copy":
        top = min(top, 4 * max(ours, chart.roof or 0))

    def x(value: float) -> float:
        return LABEL_WIDTH + PLOT_WIDTH * min(value / top, 1)

    parts, y = [], TOP
    for row in rows:
        values = figures(row, chart.figure)
        height = max(len(values) * BAR, LABEL_HEIGHT)
        tensors, attributes = label(row)
        marked = "bad" if row["misses"] else ""
        parts.append(
            f'<text x="{LABEL_WIDTH - 8}" y="{y + height / 2 - 1:.1f}" text-anchor="end" class="{marked}">'
            f"<title>{text(row['name'])}{text(': ' + '; '.join(row['misses']) if row['misses'] else '')}</title>"
            f"{text(tensors)}</text>"
            f'<text x="{LABEL_WIDTH - 8}" y="{y + height / 2 + 10:.1f}" text-anchor="end" class="faint note">'
            f"{text(attributes)}</text>"
        )
        for i, (series, value) in enumerate(values.items()):
            at = y + (height - len(values) * BAR) / 2 + i * BAR
            figure = chart.form.format(value) + (" \u2192" if value > top else "")
            # Inside the bar, where there is room: beside a long one it would stand on the roof's line.
            inside = x(value) - LABEL_WIDTH > ROOM
            place = (
                f'x="{x(value) - 4:.1f}" text-anchor="end" class="inner"'
                if inside
                else f'x="{x(value) + 4:.1f}" class="faint note"'
            )
            parts.append(
                f'<rect class="{series}" x="{LABEL_WIDTH}" y="{at:.1f}" width="{x(value) - LABEL_WIDTH:.1f}" '
                f'height="{BAR - 1}"><title>{text(SERIES[series])}: {chart.form.format(value)}</title></rect>'
                f'<text {place} y="{at + BAR - 2.5:.1f}">{figure}</text>'
            )
        mark = chart.mark(row)
        if mark and mark <= top:
            parts.append(
                f'<line class="goal" x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{y - 2}" y2="{y + height + 2}">'
                f"<title>{chart.form.format(mark)}</title></line>"
            )
        y += height + GAP
    grid = []
    for value in ticks(top):
        grid.append(f'<line class="grid" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{TOP - 6}" y2="{y}"/>')
        grid.append(f'<text class="faint" x="{x(value):.1f}" y="{y + 14}" text-anchor="middle">{value:g}</text>')
    if chart.roof:
        at = f"{x(chart.roof):.1f}"
        grid.append(f'<line class="roof" x1="{at}" x2="{at}" y1="{TOP - 8}" y2="{y}"/>')
        grid.append(f'<text class="faint" x="{at}" y="{TOP - 12}" text-anchor="middle">{text(chart.roof_name)}</text>')
    width = LABEL_WIDTH + PLOT_WIDTH + RIGHT
    return (
        f'<svg viewBox="0 0 {width} {y + 20}" role="img" aria-label="{text(chart.title)}">{"".join(grid + parts)}</svg>'
    )


def ticks(top: float) -> list[float]:
    """About five round numbers from 0 on."""
    step = 10.0**-9
    while top / step > 6:
        for factor in (2, 2.5, 2):
            if top / step > 6:
                step *= factor
    return [round(i * step, 9) for i in range(int(top / step) + 1)]


def table(rows: Sequence[Row]) -> str:
    names = [name for name in SERIES if name == "graft" or any(name in row["peers"] for row in rows)]
    columns = ["us", "warm_us", "of_copy"] + (["tflop_s"] if any(row["operations"] for row in rows) else [])
    titles = {"us": "us", "warm_us": "warm us", "of_copy": "of copy", "tflop_s": "TFLOP/s"}
    heads = "".join(f"<th>{text(SERIES[name])} {titles[column]}</th>" for name in names for column in columns)
    lines = []
    for row in rows:
        cells = []
        for name in names:
            source = row if name == "graft" else row["peers"].get(name, {})
            cells += [number(source.get(column), column) for column in columns]
        difference = row["difference"]
        cells.append("" if difference is None else f"{difference:.0e}")
        cells.insert(0, text(row.get("variant", "failed")))
        lines.append(
            f"<tr><td>{text(row['name'].removeprefix(row['operator']).strip())}</td>"
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + "</tr>"
        )
    return (
        "<details><summary>All figures</summary><div class=wide><table><tr><th>case</th><th>kernel</th>"
        f"{heads}<th>difference</th></tr>{''.join(lines)}</table></div></details>"
    )


def number(value: float | None, column: str) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if column == "of_copy" or value < 100 else f"{value:.0f}"


def text(value: object) -> str:
    return html.escape(str(value))
