# operators.py - times Graft's operators beside PyTorch eager and torch.compile, all in one process on one GPU.
"""Times the rows of the operators' speed table.

Each call is timed by itself with device events, 31 times, and the median counts. "Cold": before each call 256 MiB that
have nothing to do with it are read, so that its input is in no cache and no writes are pending; "warm" (small tensors):
the same call has just been made. The device is kept busy until the host has queued the call, so that peers are not charged
for the host's time. Traffic is the input read once and the output written once; the fraction is of a device-to-device copy
of 1 GiB, measured the same way in the same run.

Run on a machine with a GPU and PyTorch:
  python bench/operators.py --library build/release/lib/libgraft_bench.so --json result.json [--peers] [--only L2]
"""

import argparse
import ctypes
import json
import statistics
import sys

import torch
import torch.nn.functional as F

FLUSH = None  # what is read to empty the cache
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8}
SMALL_BYTES = 16 << 20
REPEATS = 31
HEAD_START = 300_000  # cycles, more than any peer's host takes to queue a call

BIG = (16, 256, 128, 128)
ROWS = (65536, 512)
SMALL = (1, 64, 56, 56)


class Graft:
    """The operators of libgraft_bench.so."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.graft_bench_create.restype = ctypes.c_void_p
        self.lib.graft_bench_error.restype = ctypes.c_char_p
        self.workspace = torch.empty(65536, dtype=torch.uint8, device="cuda")

    def check(self, failed):
        if failed:
            raise RuntimeError(self.lib.graft_bench_error().decode())

    def operator(self, name, attributes):
        """A function (x, y) that runs the operator on PyTorch's current stream."""
        handle = ctypes.c_void_p(self.lib.graft_bench_create(name.encode()))
        if not handle:
            raise RuntimeError(self.lib.graft_bench_error().decode())
        for key, value in attributes.items():
            if isinstance(value, float):
                self.check(self.lib.graft_bench_set_float(handle, key.encode(), ctypes.c_float(value)))
            elif isinstance(value, str):
                self.check(self.lib.graft_bench_set_text(handle, key.encode(), value.encode()))
            else:
                array = (ctypes.c_longlong * len(value))(*value)
                self.check(self.lib.graft_bench_set_ints(handle, key.encode(), array, len(value)))
        return handle

    def variant(self, handle, dtype, layout, shape):
        name = ctypes.create_string_buffer(32)
        extents = (ctypes.c_longlong * len(shape))(*shape)
        self.check(
            self.lib.graft_bench_variant(handle, dtype.encode(), layout.encode(), extents, len(shape), name, len(name))
        )
        return name.value.decode()

    def run(self, handle, dtype, layout, shape, x, y, variant=""):
        extents = (ctypes.c_longlong * len(shape))(*shape)
        self.check(
            self.lib.graft_bench_run(
                handle,
                dtype.encode(),
                layout.encode(),
                extents,
                len(shape),
                ctypes.c_void_p(x.data_ptr()),
                ctypes.c_void_p(y.data_ptr()),
                ctypes.c_void_p(self.workspace.data_ptr()),
                ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
                variant.encode(),
            )
        )

    def run_empty(self):
        self.check(self.lib.graft_bench_empty(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))


def seconds_per_call(call, warm=False):
    call()  # whatever is made at the first run
    events = []
    for _ in range(REPEATS):
        if warm:
            call()
        else:
            torch.amax(FLUSH)
        torch.cuda._sleep(HEAD_START)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        events.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in events) / 1e3


def copy_bandwidth():
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    return 2 * source.nbytes / seconds_per_call(lambda: target.copy_(source))


def storage_shape(shape, layout):
    if layout == "hwc8":
        return (shape[0], *shape[2:], -(-shape[1] // 8) * 8)
    if layout == "chw32":
        return (shape[0], -(-shape[1] // 32), *shape[2:], 32)
    return shape


def l2_normalize(axes):
    return lambda x: F.normalize(x, dim=tuple(axes) if len(axes) > 1 else axes[0])


def table():
    """(operator, attributes, shape, dtype, layout, target, peer)"""
    rows = []
    for dtype in TYPES:
        scales = {"x_scale": 0.05, "y_scale": 1 / 127} if dtype == "i8" else {}
        relu = {"alpha": 0.1, **scales}
        leaky = lambda x: F.leaky_relu(x, 0.1)  # noqa: E731
        rows.append(("LeakyReLU", relu, BIG, dtype, "linear", 0.85 if dtype == "i8" else 0.97, leaky))
        rows.append(("LeakyReLU", relu, SMALL, dtype, "linear", None, leaky))
        for axes, shape, target in [
            ([1], BIG, 0.93),
            ([1], ROWS, 0.95),
            ([1], (16, 64, 256, 256), None),
            ([1], (64, 1024, 32, 32), None),
            ([1], (32, 2048, 7, 7), None),
            ([1], (1048576, 64), None),
            ([1], (16384, 3000), None),
            ([1], (512, 65536), None),
            ([1], (2048, 32768), None),
            ([0, 2, 3], (16, 256, 64, 64), None),
            ([1, 2, 3], (16, 256, 128, 128), None),
            ([0, 1, 2, 3], SMALL, None),
            ([1], SMALL, None),
            ([1], (1, 128), None),
        ]:
            attributes = {"axes": axes, "epsilon_mode": "norm", **scales}
            if dtype == "i8" and target:
                target = 0.85
            rows.append(("L2Normalize", attributes, shape, dtype, "linear", target, l2_normalize(axes)))
        layout = {"f16": "hwc8", "bf16": "hwc8", "i8": "chw32"}.get(dtype)
        if layout:
            attributes = {"axes": [1], "epsilon_mode": "norm", **scales}
            rows.append(("L2Normalize", attributes, BIG, dtype, layout, 0.85 if dtype == "i8" else 0.93, None))
            rows.append(("L2Normalize", attributes, (1, 100, 56, 56), dtype, layout, None, None))
    return rows


def random_tensor(shape, dtype):
    if dtype == "i8":
        return torch.randint(-128, 128, shape, dtype=torch.int8, device="cuda")
    return torch.randn(shape, device="cuda").to(TYPES[dtype])


def measure(graft, row, copy, with_peers):
    name, attributes, shape, dtype, layout, target, peer = row
    stored = storage_shape(shape, layout)
    x = random_tensor(stored, dtype)
    size = x.nbytes
    y = torch.empty_like(x)
    handle = graft.operator(name, attributes)

    def ours():
        graft.run(handle, dtype, layout, shape, x, y)

    result = {
        "operator": name,
        "axes": attributes.get("axes"),
        "shape": list(shape),
        "dtype": dtype,
        "layout": layout,
        "variant": graft.variant(handle, dtype, layout, shape),
        "target": target,
    }
    result["us"] = 1e6 * seconds_per_call(ours)
    result["warm_us"] = 1e6 * seconds_per_call(ours, warm=True) if size < SMALL_BYTES else None
    result["fraction"] = 2 * size / (result["us"] / 1e6) / copy
    if with_peers and peer and dtype != "i8":
        expected = peer(x.double() if dtype == "f32" and size < 1 << 28 else x).to(x.dtype)
        ours()
        error = (y.float() - expected.float()).norm() / expected.float().norm()
        result["error_to_torch"] = float(error)
        torch._dynamo.reset()
        compiled = torch.compile(peer, dynamic=False)
        for label, function in [("eager", peer), ("compiled", compiled)]:
            seconds = seconds_per_call(lambda f=function: f(x))
            result[f"{label}_us"] = 1e6 * seconds
            result[f"{label}_fraction"] = 2 * size / seconds / copy
            if result["warm_us"]:
                result[f"{label}_warm_us"] = 1e6 * seconds_per_call(lambda f=function: f(x), warm=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, help="libgraft_bench.so")
    parser.add_argument("--json", help="where the results go")
    parser.add_argument("--peers", action="store_true", help="time PyTorch eager and torch.compile as well")
    parser.add_argument("--only", default="", help="operators whose name contains this")
    parser.add_argument("--types", nargs="+", default=list(TYPES), help="element types")
    options = parser.parse_args()

    torch.manual_seed(1)
    graft = Graft(options.library)
    global FLUSH
    FLUSH = torch.zeros(64 << 20, dtype=torch.int32, device="cuda")
    copy = copy_bandwidth()
    empty = 1e6 * seconds_per_call(graft.run_empty, warm=True)
    device = torch.cuda.get_device_properties(0)
    print(f"{device.name}, PyTorch {torch.__version__}, copy {copy / 1e9:.0f} GB/s, empty kernel {empty:.2f} us")
    results = []
    print(
        f"{'operator':12} {'axes':13} {'shape':18} {'type':10} {'variant':9} {'us':>8} {'warm':>6} {'of copy':>7} "
        f"{'target':>6} {'eager':>6} {'compil':>6}"
    )
    for row in table():
        if options.only not in row[0] or row[3] not in options.types:
            continue
        r = measure(graft, row, copy, options.peers)
        results.append(r)
        torch.cuda.empty_cache()
        peers = " ".join(f"{r[k]:6.2f}" if k in r else "     -" for k in ["eager_fraction", "compiled_fraction"])
        warm = f"{r['warm_us']:6.2f}" if r["warm_us"] else "     -"
        if "eager_warm_us" in r:
            peers += f"  warm {r['eager_warm_us']:.2f} {r['compiled_warm_us']:.2f}"
        missed = " MISSED" if r["target"] and r["fraction"] < r["target"] else ""
        kind = r["dtype"] + ("" if r["layout"] == "linear" else " " + r["layout"])
        print(
            f"{r['operator']:12} {str(r['axes'] or ''):13} {'x'.join(map(str, r['shape'])):18} {kind:10} "
            f"{r['variant']:9} {r['us']:8.2f} {warm} {r['fraction']:7.3f} {r['target'] or '':>6} {peers}{missed}",
            flush=True,
        )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(
                {
                    "device": device.name,
                    "torch": torch.__version__,
                    "copy_gb_s": copy / 1e9,
                    "empty_kernel_us": empty,
                    "results": results,
                },
                file,
                indent=1,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
