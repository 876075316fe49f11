# document.py - writes the results of networks.py and speed.py between the marks of docs/import.md.
"""Usage: python bench/import/document.py --commit HASH [--networks NETWORKS.json] [--speed SPEED.json] [--machine TEXT]"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from page import replace, table  # noqa: E402


def networks_table(networks: list[dict]) -> str:
    rows = []
    for network in networks:
        auto, never = network["plugins"]["auto"], network["plugins"]["never"]
        built = "yes" if auto["built"] and never["built"] else "**no**"
        plugins = ", ".join(sorted(set(auto["engine_plugins"]))) or "no plugin"
        rows.append(
            [
                network["network"],
                f"{network['bytes'] / 1e6:.0f} MB",
                f"{auto['nodes_before']} to {auto['nodes_after']}",
                str(auto["transposes"]),
                f"{auto['tensors_compared']}",
                f"{max(auto['worst'], never['worst']):.1e}",
                "refuses" if network["openvino"] is None else f"{network['openvino']:.1e}",
                f"{auto['seconds']:.1f} s, {auto['proofs']}",
                f"{built}, {plugins}",
            ]
        )
    head = [
        "network",
        "file",
        "nodes",
        "transpositions",
        "tensors",
        "worst tensor",
        "OpenVINO",
        "time, proofs",
        "engine",
    ]
    return table(head, rows)


def choices_text(networks: list[dict]) -> str:
    text = ""
    for network in networks:
        choices = network["plugins"]["auto"]["choices"]
        found = collections.Counter((choice["operator"], choice["kind"], choice["reason"]) for choice in choices)
        for (op, kind, reason), count in sorted(found.items()):
            text += f"- {network['network']}: {count} x {op}, {kind}: {reason}\n"
    return text


def speed_table(speed: dict) -> str:
    rows = [
        [
            name,
            f"{result['file_bytes'] / 1e6:.0f} MB",
            f"{'over ' if result['ended'] else ''}{result['seconds']:.1f} s",
            f"{result['cpu_seconds']:.1f} s",
            f"{'over ' if result['ended'] else ''}{result['memory_of_file']:.2f}",
        ]
        for name, result in speed.items()
    ]
    return table(["read", "file", "time", "of CPU", "memory"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="puts results into docs/import.md")
    parser.add_argument("--networks", type=pathlib.Path)
    parser.add_argument("--speed", type=pathlib.Path)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--machine", default="2 cores")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "import.md")
    arguments = parser.parse_args()
    text = arguments.page.read_text()
    measured = f"\nMeasured at commit {arguments.commit}, {arguments.machine}.\n"
    if arguments.networks:
        networks = json.loads(arguments.networks.read_text())["networks"]
        content = networks_table(networks) + measured + "\n" + choices_text(networks)
        text = replace("docs/import.md", text, "networks of TensorFlow", content)
    if arguments.speed:
        text = replace("docs/import.md", text, "speed", speed_table(json.loads(arguments.speed.read_text())) + measured)
    arguments.page.write_text(text)


if __name__ == "__main__":
    main()
