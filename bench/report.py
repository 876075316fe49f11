# report.py - writes docs/performance.md from the results of bench/operators.py.
"""Usage: python bench/report.py RESULT.json --commit HASH --output docs/performance.md"""

import argparse
import json
import pathlib

HEADER = """<!-- Written by bench/report.py from the results of bench/operators.py. -->
# Performance of the operators

{device}, PyTorch {torch}, commit {commit}. A device-to-device copy of 1 GiB moves {copy:.0f} GB/s (bytes read and written); a
kernel that does nothing takes {empty:.2f} us by the same clock.

Each call is timed by itself with device events; the median of 31 counts. *Cold*: 256 MiB of other data are read before each
call. *Warm*: the same call was made just before. Traffic is the input read once and the output written once, and "of copy"
compares it with the copy above, measured in the same run. *Eager* and *compiled* are the same maths in PyTorch, on the same
tensors in the same run; int8 has no counterpart there.

"""

# Of the H200; what the figures cannot say by themselves.
FOOTER = """## What falls short, and why

- Norm over the last axis, 65536x512, f16 and bf16: for an earlier revision the profiler gave 31.6 us for the kernel alone where
  the events gave 33.8. Those two microseconds of launch and events are not felt by a copy of 1 GiB. Tried: 1, 2 and 4 vectors
  a thread, blocks of 64, 128 and 256 threads.
- int8 over the last axis: 17.1 us by the profiler (same revision), issue slots busy for 66 %, memory for 55 %: the work of
  unpacking, rounding and packing each element weighs more than memory. Sums are exact integers (dp4a) and rounding is an addition.
- Norms over several groups of axes, or over vectors of more than 1 MiB (`split`): the tensor is read twice, once for the sums, in
  two launches, because each vector is shared by blocks all over the GPU. 0.67 is the most that two reads and one write allow.
- 7x7 planes: 49 elements do not fill vectors of 128 bits, so elements travel one by one.
- int8 rows whose length is no multiple of 16 also travel one by one.
- Norm over 64 channels of 1x64x56x56: 0.3 to 0.9 us behind torch.compile's kernel when warm. The cause is not established; fewer threads to a block, and more blocks, were slower.
"""


def number(value, digits):
    return "" if value is None else f"{value:.{digits}f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    data = json.loads(options.result.read_text())
    text = HEADER.format(
        device=data["device"],
        torch=data["torch"].split("+")[0],
        commit=options.commit,
        copy=data["copy_gb_s"],
        empty=data["empty_kernel_us"],
    )
    for operator in dict.fromkeys(row["operator"] for row in data["results"]):
        text += f"## {operator}\n\n"
        text += "| axes | shape | type | variant | cold us | of copy | to reach | eager | compiled | warm us | eager | compiled |\n"
        text += "|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        for row in (r for r in data["results"] if r["operator"] == operator):
            missed = row["target"] and row["fraction"] < row["target"]
            cells = [
                ",".join(map(str, row["axes"] or [])),
                "x".join(map(str, row["shape"])),
                row["dtype"] + ("" if row["layout"] == "linear" else " " + row["layout"]),
                row["variant"],
                number(row["us"], 1),
                ("**" if missed else "") + number(row["fraction"], 2) + ("**" if missed else ""),
                number(row["target"], 2),
                number(row.get("eager_fraction"), 2),
                number(row.get("compiled_fraction"), 2),
                number(row["warm_us"], 1),
                number(row.get("eager_warm_us"), 1),
                number(row.get("compiled_warm_us"), 1),
            ]
            text += "| " + " | ".join(cells) + " |\n"
        text += "\n"
    text += FOOTER
    temporary = options.output.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(options.output)


if __name__ == "__main__":
    main()
