# engines.py - determines which networks build as exported, after `graft convert`, and cut in two; writes
# docs/engines.md.
"""Usage: python bench/networks/engines.py FOLDER [--page docs/engines.md] [--only PATTERN ...] [--jobs N]
                                         [--graft PROGRAM] [--again]

For each network of unseen.py: exports it to FOLDER, unless it exists (export.py); builds it with `graft build` and the
installed TensorRT; converts it with `graft convert`, compares the result by `graft verify` on the inputs of the export,
and builds it. Where it does not build, `graft convert --cut` writes two halves: the half for TensorRT is built, and
`graft verify` compares both together with the network. If the rules behind --cut miss a node that the builder refuses,
--probe builder finds it.

FOLDER/engines.json has all results. A network in this file is not measured again without --again. Needs the packages of
export.py; exit code 1 if a network is neither built nor cut, or a verdict is not "the same".
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import datetime
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import unseen

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LONGEST = 900  # seconds for one command
SAME = "the same"  # the verdict of graft verify
SET = [*((name, kind, exporter) for name, (kind, exporter, _) in unseen.NETWORKS.items()), *unseen.SHARED]


class Measurement:
    def __init__(self, graft: str, folder: pathlib.Path):
        self.graft_program = graft
        self.folder = folder

    def graft(self, *command: object) -> tuple[dict, float]:
        """Runs a command and returns its JSON with its exit code, and its time in seconds."""
        started = time.perf_counter()
        try:
            done = subprocess.run(
                [self.graft_program, *map(str, command), "--json"],
                capture_output=True,
                text=True,
                check=False,
                timeout=LONGEST,
            )
        except subprocess.TimeoutExpired:
            return {"exit": 124, "error": {"message": f"took more than {LONGEST} s"}}, time.perf_counter() - started
        seconds = time.perf_counter() - started
        try:
            said = json.loads(done.stdout)
        except json.JSONDecodeError:
            said = {"error": {"message": (done.stderr or done.stdout)[-2000:] or "no message"}}
        return {**said, "exit": done.returncode}, seconds

    def export(self, name: str, exporter: str) -> tuple[pathlib.Path, str]:
        """Returns the model, and why it could not be exported."""
        model = self.folder / f"{name}.{exporter}.onnx"
        if model.exists():
            return model, ""
        command = [sys.executable, HERE / "export.py", self.folder, "--one", "--only", name, "--exporter", exporter]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return model, f"not exported within {LONGEST} s"
        lines = done.stderr.strip().splitlines() or ["no message"]
        return model, "" if done.returncode == 0 else lines[-1][:300]

    def build(self, model: pathlib.Path, folder: pathlib.Path) -> dict:
        said, seconds = self.graft("build", model, "-o", folder / "engine")
        row = {"builds": said["exit"] == 0, "seconds": round(seconds, 1)}
        if row["builds"]:
            row["layers"] = said["network"]["layer_count"]
            row["plugins"] = sorted({plugin["name"] for plugin in said["network"]["plugins"]})
        else:
            row["message"] = said["error"]["message"].replace(str(model.parent) + "/", "")
        return row

    def verify(self, model: pathlib.Path, candidate: pathlib.Path) -> dict:
        said, seconds = self.graft("verify", model, candidate, "--data", model.with_suffix(".npz"))
        row = {"verdict": said.get("verdict", "error"), "seconds": round(seconds, 1)}
        if said["exit"] != 0:
            row["message"] = said["error"]["message"] if "error" in said else "; ".join(said["problems"])
        return row

    def convert(self, model: pathlib.Path, written: pathlib.Path, *options: str) -> dict:
        said, seconds = self.graft("convert", model, "-o", written, *options)
        row = {
            "exit": said["exit"],
            "seconds": round(seconds, 1),
            "unsupported": [[node["operator"], node["node"], node["reason"]] for node in said.get("unsupported", [])],
            "rewrites": collections.Counter(rewrite["pass"] for rewrite in said.get("rewrites", [])),
            "undone": [[rewrite["pass"], rewrite["proof"]] for rewrite in said.get("undone", [])],
            "seconds_by_step": said.get("seconds", {}),
        }
        if "error" in said:
            row["message"] = said["error"]["message"].replace(str(model.parent) + "/", "")
        if said.get("cut"):
            cut = said["cut"]
            row["first"] = cut["first"]
            row["share_in_tensorrt"] = cut["share_in_tensorrt"]
            row["nodes"] = {half: cut[half]["nodes"] for half in ("tensorrt", "host")}
            row["causes"] = [[cause["operator"], cause["node"], cause["reason"]] for cause in cut["causes"]]
        return row

    def cut(self, model: pathlib.Path, folder: pathlib.Path, *options: str) -> dict:
        half = folder / "half.onnx"
        row = self.convert(model, half, "--cut", *options)
        row["command"] = " ".join(["--cut", *options])
        pair = folder / "half.cut.json"
        if row["exit"] in (0, 1) and pair.exists():
            row["build"] = self.build(half, folder)
            row["verify"] = self.verify(model, pair)
        return row

    def measure(self, name: str, kind: str, exporter: str) -> dict:
        model, reason = self.export(name, exporter)
        row: dict = {"network": name, "kind": kind, "exporter": exporter, "date": datetime.date.today().isoformat()}
        if reason:
            return {**row, "export": reason}
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            row["before"] = self.build(model, folder)
            converted = folder / "converted.onnx"
            row["convert"] = self.convert(model, converted)
            if converted.exists():
                row["verify"] = self.verify(model, converted)
                row["after"] = self.build(converted, folder)
            if not row.get("after", {}).get("builds"):
                row["cut"] = self.cut(model, folder)
                if not row["cut"].get("build", {}).get("builds"):
                    row["cut"] = self.cut(model, folder, "--probe", "builder")
        return row


def is_whole(row: dict) -> bool:
    return row.get("after", {}).get("builds", False) and row["verify"]["verdict"] == SAME


def is_cut(row: dict) -> bool:
    cut = row.get("cut", {})
    return cut.get("build", {}).get("builds", False) and cut["verify"]["verdict"] == SAME


def obstacles(row: dict) -> str:
    """Returns the names of the nodes that prevent the build, or the builder's message where it names no node."""
    if "export" in row:
        return f"the exporter: {row['export']}"
    causes = row.get("cut", {}).get("causes") or row["convert"]["unsupported"]
    if not row["after"]["builds"] if "after" in row else True:
        if causes:
            counts = collections.Counter(operator for operator, _, _ in causes)
            return ", ".join(f"{count} {operator}" if count > 1 else operator for operator, count in counts.items())
        message = row.get("after", row["convert"]).get("message", "")
        told = re.search(r"TensorRT: (.*)", message)
        return told.group(1) if told else message
    return ""


def yes(row: dict | None) -> str:
    if row is None:
        return "-"
    return f"{row['layers']} layers" if row["builds"] else "no"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:200]


def tensorrt_of(doctor: dict) -> str:
    """Returns the name and version of the TensorRT that builds."""
    found = (finding for finding in doctor["findings"] if finding["facts"].get("builder"))
    return next((f"{finding['name']} {finding['facts']['version']}" for finding in found), "TensorRT")


def page_of(rows: list[dict], tensorrt: str) -> str:
    exported = [row for row in rows if "export" not in row]
    before = [row for row in exported if row["before"]["builds"]]
    whole = [row for row in exported if is_whole(row)]
    rest = [row for row in exported if not is_whole(row)]
    cut = [row for row in rest if is_cut(row)]
    seconds = sorted(row["convert"]["seconds"] for row in exported)
    dates = sorted({row["date"] for row in rows})
    lines = [
        "<!-- Written by bench/networks/engines.py --page from the networks that it measured. -->",
        "# Engines from networks that were not used for development",
        "",
        f"{len(rows)} of the set of {len(SET)} networks were measured on {', '.join(dates)}. Of the {len(exported)} that PyTorch exports, "
        f"{len(before)} build in {tensorrt} unchanged, and",
        f"{len(whole)} after `graft convert`, each verified by `graft verify`. `graft convert --cut` cuts {len(cut)} "
        f"of the other {len(rest)} into two halves: TensorRT builds one half,",
        f"and both halves together compute the same as the whole. The median time of `graft convert` is "
        f"{seconds[len(seconds) // 2]} s, the maximum {seconds[-1]} s, and the sum {round(sum(seconds))} s.",
        "",
        "The networks have weights from a seed and are in `bench/networks/unseen.py`. No rewrite was written for them, except the",
        "lowering of ScatterND and ScatterElements with computed indices, which the graph networks need.",
        "For single nodes, with ONNX's own tests, see [what TensorRT builds of each operator](ledger.md) and "
        "[the correctness of results](ops/onnx.md).",
        "",
        "This command repeats the measurement, including the export:",
        "",
        "<!-- not run: needs PyTorch, and runs for an hour -->",
        "```sh",
        "python bench/networks/engines.py FOLDER --page docs/engines.md",
        "```",
        "",
        "| kind | networks | as exported | after convert | cut | neither |",
        "|---|---|---|---|---|---|",
    ]
    kinds = sorted({row["kind"] for row in rows})
    for kind in kinds:
        of_kind = [[row for row in group if row["kind"] == kind] for group in (exported, before, whole, cut)]
        counts = [len(group) for group in of_kind]
        lines.append(f"| {kind} | {' | '.join(map(str, counts))} | {counts[0] - counts[2] - counts[3]} |")
    lines.append(
        f"| all | {len(exported)} | {len(before)} | {len(whole)} | {len(cut)} | {len(exported) - len(whole) - len(cut)} |"
    )
    lines += [
        "",
        "*As exported* and *after convert*: layers of the TensorRT network, if the engine builds. *Same*: the verdict of "
        "`graft verify` after",
        "`graft convert`. *Cut*: the share of the arithmetic that stays in TensorRT; `--probe builder` if the rules alone "
        "do not find the cut.",
        "",
        "| kind | network | exporter | as exported | after convert | convert | same | cut | obstacle |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(exported, key=lambda entry: (entry["kind"], entry["network"])):
        halves = row.get("cut")
        if halves is None:
            share = "-"
        elif is_cut(row):
            share = f"{halves['share_in_tensorrt']:.0%}, `{halves['command']}`"
        else:
            share = "no"
        verdict = row.get("verify", {}).get("verdict", "-")
        lines.append(
            f"| {row['kind']} | {row['network']} | {row['exporter']} | {yes(row['before'])} | {yes(row.get('after'))} "
            f"| {row['convert']['seconds']} s | {'yes' if verdict == SAME else verdict} | {share} | {cell(obstacles(row))} |"
        )
    refused = [row for row in rows if "export" in row]
    if refused:
        lines += ["", "The exporter of PyTorch refuses these, which count nowhere above:", ""]
        lines += [f"- {row['network']} ({row['exporter']}): {cell(row['export'])}" for row in refused]
    missing = [name for name, _, _ in SET if name not in {row["network"] for row in rows}]
    if missing:
        lines += ["", f"Not measured yet, {len(missing)} of the set of {len(SET)}: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="names, with * and ?")
    parser.add_argument("--jobs", type=int, default=1, help="networks at a time (1)")
    parser.add_argument("--graft", default=str(ROOT / "build" / "bin" / "graft"))
    parser.add_argument("--again", action="store_true", help="measure also what engines.json has")
    parser.add_argument("--page", type=pathlib.Path, help="write all of engines.json as a page")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    record = given.folder / "engines.json"
    found = json.loads(record.read_text()) if record.exists() else []
    of_set = {(name, exporter) for name, _, exporter in SET}
    rows = {row["network"]: row for row in found if (row["network"], row["exporter"]) in of_set}
    chosen = [entry for entry in SET if any(fnmatch.fnmatch(entry[0], pattern) for pattern in given.only)]
    if not chosen:
        parser.error("--only names no network of unseen.py")
    measurement = Measurement(given.graft, given.folder)
    writing = threading.Lock()

    def measure(entry: tuple[str, str, str]) -> None:
        row = measurement.measure(*entry)
        with writing:
            rows[row["network"]] = row
            record.write_text(json.dumps([rows[name] for name in sorted(rows)], indent=1) + "\n")
            state = "whole" if is_whole(row) else "cut" if is_cut(row) else "neither"
            print(f"{row['network']:50} {'not exported' if 'export' in row else state:12} {obstacles(row)}", flush=True)

    left = [entry for entry in chosen if given.again or entry[0] not in rows]
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for done in [pool.submit(measure, entry) for entry in left]:
            done.result()
    measured = [rows[name] for name, _, _ in chosen]
    if given.page:
        doctor, _ = measurement.graft("doctor")
        known = [rows[name] for name, _, _ in SET if name in rows]
        given.page.write_text(page_of(known, tensorrt_of(doctor)))
    bad = [row["network"] for row in measured if "export" not in row and not is_whole(row) and not is_cut(row)]
    print(f"{len(measured) - len(bad)} of {len(measured)} networks are built, cut, or refused by their exporter")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
