"""Compares the figures of measured cases with the figures to reach. The functions read and extend the entries of
"results", which README.md describes."""

from __future__ import annotations

import math
from typing import Any

Row = dict[str, Any]

# The speed, relative to the fastest peer, that random cases have to reach: in the geometric mean, and in each case.
RANDOM_MEAN, RANDOM_WORST = 1.0, 0.85
RANDOM_MEAN_OF_ARITHMETIC, RANDOM_WORST_OF_ARITHMETIC = 0.9, 0.7  # where arithmetic sets the limit

SMALL_BYTES = 16 << 20  # a case with at most this traffic is also timed with a warm cache
TINY_BYTES = 4 << 20  # the time of a case with at most this traffic is the time of its launch
SLOWER, SLOWER_US = 1.02, 0.1  # the difference between two runs of one kernel: a factor, and microseconds in addition
TINY_OVER_EMPTY = 1.5
LARGE_OPERATIONS = 1e10  # from here on i8 has to beat f16
# Largest difference from PyTorch's result, as a share of the result's Euclidean norm; integers have to be equal.
ALLOWED_DIFFERENCE = {"f32": 1e-4, "f16": 3e-3, "bf16": 2e-2, "i32": 0.0, "i64": 0.0}


def misses_of(row: Row, empty_kernel_us: float | None) -> list[tuple[str, str]]:
    """Returns a pair for each target that the case of `row` misses: the key of the missed figure in the row, such as
    "warm_us", and a sentence without a full stop. Empty if the case reaches all targets. `empty_kernel_us` is the time
    of an empty kernel in microseconds, or None on the CPU, where only the result is compared."""
    if "failed" in row:
        return [("failed", f"failed: {row['failed']}")]
    found = []
    if row["difference"] is not None and not row["difference"] <= ALLOWED_DIFFERENCE[row["dtype"]]:
        text = f"the result differs from the peer's result by {row['difference']:.1e} of its norm"
        found.append(("difference", text))
    if empty_kernel_us is None:  # on the CPU, where the reference kernels only have to be correct
        return found
    to_reach = row["to_reach"]
    if to_reach["of_copy"] and row["of_copy"] < to_reach["of_copy"]:
        found.append(
            ("of_copy", f"{row['of_copy']:.3f} of a copy's bandwidth; the target is {to_reach['of_copy']:.2f}")
        )
    warm = row["warm_us"] is not None
    key = "warm_us" if warm else "us"
    for name, peer in row["peers"].items():
        if "failed" in peer:
            continue
        if name == "eager" and to_reach["of_eager"]:
            ratio = peer["us"] / row["us"]
            if ratio < to_reach["of_eager"]:
                text = f"{ratio:.2f} of the speed of {peer_name(name)}; the target is {to_reach['of_eager']:.2f}"
                found.append(("tflop_s", text))
        elif row[key] > SLOWER * peer[key] + SLOWER_US:
            how = " with a warm cache" if warm else ""
            found.append((key, f"slower than {peer_name(name)}{how}: {row[key]:.1f} us against {peer[key]:.1f}"))
    if row["bytes"] <= TINY_BYTES and not row["operations"]:
        ratio = row["warm_us"] / empty_kernel_us
        if ratio > TINY_OVER_EMPTY:
            text = f"{ratio:.2f} times an empty kernel with a warm cache; the target is at most {TINY_OVER_EMPTY}"
            found.append(("warm_us", text))
    return found


def peer_name(name: str) -> str:
    return {"eager": "PyTorch eager", "compiled": "torch.compile", "onnxruntime": "ONNX Runtime"}.get(name, name)


def is_wrong(row: Row) -> bool:
    """Returns whether the case failed or computed a wrong result. Missed speeds do not count."""
    return "failed" in row["missed"] or "difference" in row["missed"]


def judge(rows: list[Row], empty_kernel_us: float | None) -> None:
    """Adds to every row "misses", a list of sentences, and "missed", the sorted names of the figures that were not
    reached. `empty_kernel_us` is the time of an empty kernel in microseconds, or None on the CPU."""
    found = [misses_of(row, empty_kernel_us) for row in rows]
    for row, misses in zip(rows, found):
        if row["dtype"] == "i8" and row["operations"] >= LARGE_OPERATIONS and "failed" not in row:
            f16 = [r["us"] for r in rows if "us" in r and r["dtype"] == "f16" and same_problem(r, row)]
            if f16 and row["us"] >= min(f16):
                misses.append(("tflop_s", f"no faster than f16: {row['us']:.1f} us against {min(f16):.1f}"))
        row["misses"] = [text for _, text in misses]
        row["missed"] = sorted({figure for figure, _ in misses})


def same_problem(a: Row, b: Row) -> bool:
    def problem(row: Row) -> tuple[Any, ...]:
        attributes = {name: value for name, value in row["attributes"].items() if not name.endswith("_scale")}
        return row["operator"], attributes, [desc["shape"] for desc in row["inputs"]]

    return problem(a) == problem(b)


def speed_beside_peers(row: Row) -> tuple[float, str] | None:
    """Returns the speed of the operator relative to the fastest peer, and the name of this peer; None where no peer was
    timed. The speed is the time of the peer divided by the time of the operator, both with a cold cache."""
    peers = {name: peer["us"] for name, peer in row["peers"].items() if "us" in peer}
    if "us" not in row or not peers:
        return None
    fastest = min(peers, key=peers.__getitem__)
    return peers[fastest] / row["us"], fastest


def summary_of_random(rows: list[Row]) -> list[dict[str, Any]]:
    """Returns an entry for each operator that has cases with a peer. The entry has the geometric mean and the minimum
    of speed_beside_peers over these cases, with the required values. README.md describes the keys."""
    result = []
    for operator in dict.fromkeys(row["operator"] for row in rows):
        own = [row for row in rows if row["operator"] == operator]
        speeds = [(*speed, row) for row in own if (speed := speed_beside_peers(row))]
        if not speeds:
            continue
        mean = math.exp(sum(math.log(ratio) for ratio, _, _ in speeds) / len(speeds))
        ratio, peer, worst = min(speeds, key=lambda speed: speed[0])
        arithmetic = any(row["operations"] for row in own)
        mean_to_reach = RANDOM_MEAN_OF_ARITHMETIC if arithmetic else RANDOM_MEAN
        worst_to_reach = RANDOM_WORST_OF_ARITHMETIC if arithmetic else RANDOM_WORST
        result.append(
            {
                "operator": operator,
                "cases": len(speeds),
                "geometric_mean": mean,
                "mean_to_reach": mean_to_reach,
                "worst": ratio,
                "worst_to_reach": worst_to_reach,
                "worst_case": worst["name"],
                "worst_peer": peer,
                "below": sum(ratio < worst_to_reach for ratio, _, _ in speeds),
                "reaches": mean >= mean_to_reach and ratio >= worst_to_reach,
            }
        )
    return result
