# document.py - writes the results of accuracy.py and calibration.py between the marks of docs/precision.md.
"""Usage: python bench/quantize/document.py --commit HASH [--accuracy ACCURACY.json] [--calibration CALIBRATION.json] [--machine TEXT]"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from page import replace, table  # noqa: E402


def network_table(rows: list[dict]) -> str:
    has_labels = any(row.get("accuracy") is not None for row in rows)
    lines = []
    for row in rows:
        cells = [row["quantizer"], row["model"]]
        if "failed" in row:
            lines.append([*cells, "failed", "", "", "", ""])
            continue
        if has_labels:
            cells.append(f"{row['accuracy']:.2f} %")
        else:
            boxes = row["boxes"]
            cells.append(
                f"{boxes['angle_mean']:.3f}° (worst {boxes['angle_worst']:.2f}°), {boxes['dimension_mean']:.2f} %"
            )
        own = row.get("graft_run")
        lines.append(
            [
                *cells,
                f"{row['same_as_f32']} of {row['samples']}",
                f"{min(row['snr'].values()):.1f}" if row["type"] != "f32" else "",
                f"{row['bytes'] / 1e6:.2f} MB",
                f"{own['same']} of {own['of']}" if own else "",
            ]
        )
    judged = "correct" if has_labels else "error of angle, of size"
    return table(["quantizer", "model", judged, "agrees with f32", "SNR in dB", "file", "`graft run` agrees"], lines)


def accuracy_text(result: dict) -> str:
    text = ""
    for name in dict.fromkeys(row["network"] for row in result["results"]):
        source = result["sources"].get(name)
        text += f"### {name}\n\n"
        text += f"From {source}.\n\n" if source else ""
        rows = [row for row in result["results"] if row["network"] == name]
        text += network_table(rows) + "\n"
        failures = dict.fromkeys(
            f"{row['quantizer']}, {row['model']}: {row['failed']}" for row in rows if "failed" in row
        )
        text += "".join(f"- {failure}\n" for failure in failures) + ("\n" if failures else "")
    misses = "".join(f"- {miss}\n" for miss in result["misses"])
    text += f"These results miss their targets:\n\n{misses}" if misses else "All results meet their targets.\n"
    return text + f"\nONNX Runtime {result['onnxruntime']}; percentile {result['percentile']}."


def calibration_text(result: dict) -> str:
    bare, calibration, few = result["bare"], result["calibration"], result["few"]
    rows = [
        ["bare inference", str(result["images"]), f"{bare['seconds']:.1f} s", f"{bare['cpu_seconds']:.1f} s", ""],
        [
            "`graft quantize --precision int8`",
            str(result["images"]),
            f"{calibration['seconds']:.1f} s",
            f"{calibration['cpu_seconds']:.1f} s",
            f"{calibration['peak_mib']:.0f} MiB",
        ],
        [
            "`graft quantize --precision int8`",
            str(result["few_images"]),
            f"{few['seconds']:.1f} s",
            f"{few['cpu_seconds']:.1f} s",
            f"{few['peak_mib']:.0f} MiB",
        ],
    ]
    same = "the same bits" if result["resumed"]["same_bits"] else "**different bits**"
    return (
        table(["", "images", "time", "CPU time", "peak memory"], rows)
        + f"\n{result['of_bare_each']:.2f} times the bare inference for each image beyond {result['few_images']}; the target is 1.3. The whole command, with its "
        f"start, compilation, insertion of Q/DQ nodes and comparison: {result['of_bare']:.2f} times the wall time, {result['of_bare_cpu']:.2f} times the CPU time. "
        f"Medians of {result['runs']} runs, {result['threads']} threads.\nKilled after its first saved counts and resumed: {same}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="puts results into docs/precision.md")
    parser.add_argument(
        "--accuracy", type=pathlib.Path, nargs="+", default=[], help="one result or several, with other networks"
    )
    parser.add_argument("--calibration", type=pathlib.Path)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--machine", default="2 cores")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "precision.md")
    arguments = parser.parse_args()
    text = arguments.page.read_text()
    measured = f"\n\nMeasured at commit {arguments.commit}, {arguments.machine}.\n"
    if arguments.accuracy:
        parts = [json.loads(path.read_text()) for path in arguments.accuracy]
        whole = dict(parts[-1])
        for key in ("results", "misses"):
            whole[key] = [each for part in parts for each in part[key]]
        whole["onnxruntime"] = " and ".join(sorted({part["onnxruntime"] for part in parts}))
        whole["sources"] = {name: source for part in parts for name, source in part["sources"].items()}
        text = replace("docs/precision.md", text, "accuracy", accuracy_text(whole) + measured)
    if arguments.calibration:
        text = replace(
            "docs/precision.md",
            text,
            "calibration",
            calibration_text(json.loads(arguments.calibration.read_text())) + measured,
        )
    arguments.page.write_text(text)


if __name__ == "__main__":
    main()
