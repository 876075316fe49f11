# document.py - writes docs/performance.md and docs/ops/speed.json from the result of `graft bench --op all --json`.
"""Usage: python bench/document.py RESULT.json --commit HASH [--docs FOLDER]"""

from __future__ import annotations

import argparse
import fnmatch
import json
import pathlib
import re
import sys
import tomllib
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from graft.bench.judge import LARGE_OPERATIONS, TINY_BYTES, Row, judge  # noqa: E402

HEADER = """<!-- Written by bench/document.py from the result of `graft bench --op all`; `make bench` makes both. -->
# Performance of the operators

{device}, PyTorch {torch}, commit {commit}, {count} cases in {seconds:.0f} s. A device-to-device copy of 1 GiB moves {copy:.0f} GB/s
(bytes read and written); a kernel that does nothing takes {empty:.2f} us by the same clock{matmul}.

Device events time each call separately; a figure is the median of 31 calls, or of 101 calls with a warm cache. *Cold*: 1 GiB of other
data is read before each call. *Warm*: the same call runs just before. Traffic counts every input read once and every output written
once, and "of copy" compares it with the copy above, measured in the same run. *Eager* and *compiled* are the same computation in PyTorch
and torch.compile, on the same tensors in the same run; PyTorch has no int8 and f8 equivalent, and uses its deterministic form for operators
that promise the same bits in every run. Operators that no copy measures are compared in microseconds. A figure in bold misses a target:
the fraction in "to reach", torch.compile's time in every case, PyTorch's time if there is no other target, and for the smallest
tensors 1.5 times an empty kernel with a warm cache.

{reached}

"""


def matmul_text(result: dict[str, Any]) -> str:
    found = [f"{value:.0f} TFLOP/s in {dtype}" for dtype, value in result.get("matmul_tflop_s", {}).items() if value]
    return f"; PyTorch's\nproduct of matrices of 8192 rows and columns reaches {' and '.join(found)}" if found else ""


def number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def bold(value: str, condition: bool) -> str:
    return f"**{value}**" if condition and value else value


def table(rows: list[dict[str, str]]) -> str:
    """Returns a Markdown table; columns that are empty in every row are left out."""
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(row[name].replace("|", "\\|") for name in names) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def kind_of(row: Row) -> str:
    layout = row["inputs"][0]["layout"]
    return row["dtype"] + ("" if layout == "linear" else f" {layout}")


def shape_text(shape: list[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def attributes_of(row: Row) -> str:
    """Returns the attributes in the name of a case, which follow the tensors."""
    found = re.search(r" (\w+=.*)$", row["name"])
    return found[1] if found else ""


def are_timed(rows: list[Row]) -> bool:
    """Returns whether neither bandwidth nor arithmetic is a measure of the operator, so that times are shown."""
    return not any(row["operations"] or row["to_reach"]["of_copy"] for row in rows if "failed" not in row)


def cells_of(row: Row, in_time: bool) -> dict[str, str]:
    if "failed" in row:
        return {
            "shape": shape_text(row["inputs"][0]["shape"]),
            "attributes": attributes_of(row),
            "type": kind_of(row),
        } | {"kernel": "**failed**"}
    peers = {name: row["peers"].get(name, {}) for name in ("eager", "compiled")}
    reach = row["to_reach"]["of_eager"]
    reach_text = f"{reach:.2f} eager" if reach else ""
    if in_time:
        unit, digits, label = "us", 1, "cold us"
    elif row["operations"]:
        unit, digits, label = "tflop_s", 0, "TFLOP/s"
    else:
        unit, digits, label = "of_copy", 2, "of copy"
        reach_text = number(row["to_reach"]["of_copy"] or None, 2)
    in_unit = " us" if in_time else ""
    return {
        "shape": ", ".join(shape_text(desc["shape"]) for desc in row["inputs"]),
        "attributes": attributes_of(row),
        "type": kind_of(row),
        "kernel": row["variant"],
        "cold us": bold(number(row["us"], 1), "us" in row["missed"]),
        label: bold(number(row[unit], digits), unit in row["missed"]),
        "to reach": reach_text,
        f"eager{in_unit}": number(peers["eager"].get(unit), digits),
        f"compiled{in_unit}": number(peers["compiled"].get(unit), digits),
        "warm us": bold(number(row["warm_us"], 1), "warm_us" in row["missed"]),
        "eager warm us": number(peers["eager"].get("warm_us"), 1),
        "compiled warm us": number(peers["compiled"].get("warm_us"), 1),
    }


def tables_of(rows: list[Row]) -> str:
    """Returns one table of the cases that memory limits and one of those that arithmetic limits."""
    parts = []
    for of_arithmetic in (False, True):
        chosen = [cells_of(row, are_timed(rows)) for row in rows if bool(row["operations"]) == of_arithmetic]
        if chosen:
            names = list(dict.fromkeys(name for cells in chosen for name in cells))
            parts.append(table([{name: cells.get(name, "") for name in names} for cells in chosen]))
    return "\n".join(parts)


def ratio(of: Row | None, to: dict[str, Any] | None, wanted: float) -> str:
    """Returns the ratio of the speeds of `of` and `to`, in bold if it is less than `wanted`."""
    if of is None or to is None or "us" not in of or "us" not in to:
        return ""
    value = to["us"] / of["us"]
    return bold(number(value, 2), value < wanted)


def beside_cudnn(rows: list[Row]) -> str:
    """Returns a row for each layer with every measured batch: f16 relative to cuDNN, and i8 relative to f16."""
    layers: dict[tuple[str, ...], dict[tuple[int, str], Row]] = {}
    for row in rows:
        if row["operations"] and kind_of(row) in ("f16 hwc8", "i8 chw32"):
            x, weight = (desc["shape"] for desc in row["inputs"][:2])
            layer = (shape_text(x[1:]), shape_text(weight), attributes_of(row))
            layers.setdefault(layer, {})[x[0], row["dtype"]] = row
    batches = sorted({batch for cases in layers.values() for batch, _ in cases})
    lines = []
    for (shape, weight, attributes), cases in layers.items():
        cells = {"input": shape, "weight": weight, "attributes": attributes}
        for batch in batches:
            f16, i8 = cases.get((batch, "f16")), cases.get((batch, "i8"))
            eager = f16["peers"].get("eager") if f16 else None
            is_large = i8 is not None and i8["operations"] >= LARGE_OPERATIONS
            cells[f"f16 / cuDNN, batch {batch}"] = ratio(f16, eager, f16["to_reach"]["of_eager"] if f16 else 0)
            cells[f"i8 / f16, batch {batch}"] = ratio(i8, f16, 1 if is_large else 0)
        lines.append(cells)
    if not lines:
        return ""
    return (
        "### Compared with cuDNN\n\nRatios of speeds: f16 (channels last) to the fastest kernel that cuDNN finds by trying "
        "(`cudnn.benchmark`), and i8 to Graft's own f16.\nBold: f16 below its target, or, from "
        f"{LARGE_OPERATIONS / 1e9:.0f} billion operations on, i8 slower than f16.\n\n{table(lines)}\n"
    )


Profiles = dict[str, list[dict[str, Any]]]


def profile_text(kernels: list[dict[str, Any]]) -> str:
    """Returns the profiler's figures of the longest of a case's kernels."""
    if not kernels:
        return ""
    kernel = max(kernels, key=lambda k: k.get("us", 0))
    parts = [f"{kernel['us']:.1f} us"] if "us" in kernel else []
    for name, label in (("memory", "memory busy"), ("issue", "issue slots busy"), ("occupancy", "occupancy")):
        if name in kernel:
            parts.append(f"{label} {kernel[name]:.0f} %")
    if "stall" in kernel:
        parts.append(f"warps wait most for {kernel['stall']['reason']}, {100 * kernel['stall']['share']:.0f} %")
    several = f" {len(kernels)} kernels, the longest:" if len(kernels) > 1 else ""
    return f" Profiler:{several} {', '.join(parts)}."


def shortfalls(rows: list[Row], notes: list[dict[str, Any]], profiles: Profiles) -> str:
    """Returns every miss, under the first note that matches its case, in the order of the notes."""
    groups: dict[str, list[Row]] = {note["text"].strip(): [] for note in notes}
    unexplained: list[Row] = []
    for row in (row for row in rows if row["misses"]):
        text = next((n["text"].strip() for n in notes if any(matches(row["name"], p) for p in n["cases"])), None)
        (unexplained if text is None else groups[text]).append(row)
    parts = [f"{text}\n\n{bullets(found, profiles)}" for text, found in groups.items() if found]
    if unexplained:
        parts.append(f"Not explained yet:\n\n{bullets(unexplained, profiles)}")
    return "\n".join(parts) if parts else "Nothing.\n"


def matches(name: str, pattern: str) -> bool:
    # A case's name contains brackets, which fnmatch would read as a set of characters.
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def bullets(rows: list[Row], profiles: Profiles) -> str:
    return "".join(
        f"- `{row['name']}`: {'; '.join(row['misses'])}.{profile_text(profiles.get(row['name'], []))}\n" for row in rows
    )


def speed_of(rows: list[Row]) -> list[dict[str, str]]:
    """Returns the rows for the operator's page: cases with a target, and small tensors; all cases of an operator
    that is shown in times."""
    in_time = are_timed(rows)
    chosen = [
        row
        for row in rows
        if "failed" not in row and (in_time or any(row["to_reach"].values()) or row["bytes"] <= TINY_BYTES)
    ]
    cells = [cells_of(row, in_time) for row in chosen]
    names = [name for name in dict.fromkeys(n for c in cells for n in c) if any(c.get(name) for c in cells)]
    return [{name: c.get(name, "") for name in names} for c in cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--profile", type=pathlib.Path, help="what bench/profile_misses.py wrote")
    parser.add_argument("--docs", type=pathlib.Path, default=ROOT / "docs")
    options = parser.parse_args()
    result = json.loads(options.result.read_text())
    if result["device"] != "cuda":
        sys.exit(f"error: {options.result} is of the CPU; the document is about a GPU")
    notes = tomllib.loads((ROOT / "bench" / "notes.toml").read_text())["note"]
    profiles = json.loads(options.profile.read_text()) if options.profile else {}
    rows = result["results"]
    judge(rows, result["empty_kernel_us"])  # by the current rules, not those of the run
    short = sum(bool(row["misses"]) for row in rows)
    text = HEADER.format(
        device=result["name"],
        torch=result["torch"],
        commit=options.commit,
        count=len(rows),
        seconds=result["seconds"],
        copy=result["copy_gb_s"],
        empty=result["empty_kernel_us"],
        matmul=matmul_text(result),
        reached=f"{len(rows) - short} of {len(rows)} cases reach all their targets; the other {short} are at the end, with the reason.",
    )
    speed = {}
    for operator in sorted(
        {row["operator"] for row in rows}, key=[row["operator"] for row in sorted(rows, key=lambda r: r["index"])].index
    ):
        own = sorted((row for row in rows if row["operator"] == operator), key=lambda row: row["index"])
        text += f"## {operator}\n\n{beside_cudnn(own)}{tables_of(own)}\n"
        speed[operator] = speed_of(own)
    if result["left_out"]:
        text += "## Not timed\n\nThe run was cut off by its time limit before these.\n\n"
        text += "".join(f"- `{name}`\n" for name in result["left_out"]) + "\n"
    text += f"## What falls short, and why\n\n{shortfalls(rows, notes, profiles)}"
    write(options.docs / "performance.md", text)
    write(options.docs / "ops" / "speed.json", json.dumps(speed, indent=1) + "\n")


def write(path: pathlib.Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


if __name__ == "__main__":
    main()
