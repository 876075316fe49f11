# Tests files that would hang a reader, or fill the memory or the disk: each is refused with a message and little
# memory.
import os
import struct
import zipfile
import zlib

import numpy as np
import onnx
import pytest
from conftest import DIGITS, PROGRAM
from onnx import TensorProto, helper
from onnx_models import save, subgraph

MEGABYTE = 1 << 20
MOST_MEMORY = 300 * MEGABYTE
CAFFE = 'name: "n" input: "x" input_dim: 1 input_dim: 1 input_dim: 2 input_dim: 2\n'


@pytest.fixture
def attack(tmp_path):
    """Runs the program; returns its exit code, its messages and its peak memory."""

    def run(*arguments):
        messages = tmp_path / "messages"
        with messages.open("wb") as file:
            process = os.posix_spawn(
                PROGRAM,
                [PROGRAM, *map(str, arguments)],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, file.fileno(), 1), (os.POSIX_SPAWN_DUP2, file.fileno(), 2)],
            )
        _, status, used = os.wait4(process, 0)
        return os.waitstatus_to_exitcode(status), messages.read_text(errors="replace"), used.ru_maxrss * 1024

    return run


def check_refused(answer, *named):
    code, messages, memory = answer
    assert code == 2, messages
    assert "error: " in messages
    for text in named:
        assert text in messages
    assert memory < MOST_MEMORY


def pipe(path):
    os.mkfifo(path)
    return path


def zeros(path):
    path.symlink_to("/dev/zero")
    return path


READERS = {
    "onnx": lambda file, out: ["inspect", file("m.onnx")],
    "pb": lambda file, out: ["inspect", file("m.pb")],
    "pbtxt": lambda file, out: ["inspect", file("m.pbtxt")],
    "prototxt": lambda file, out: ["inspect", file("m.prototxt")],
    "caffemodel": lambda file, out: ["inspect", out / "good.prototxt", file("m.caffemodel")],
    "built": lambda file, out: ["build", file("m.onnx"), "-o", out / "o.engine"],
    "npy": lambda file, out: ["run", DIGITS, "-i", f"image={file('x.npy')}", "-o", out / "o.npz"],
    "npz": lambda file, out: ["run", DIGITS, "-i", file("x.npz"), "-o", out / "o.npz"],
    "data": lambda file, out: quantize(out, "--data", file("x.npy")),
    "recipe": lambda file, out: quantize(out, "--data", out / "images", "--recipe", file("r.yaml")),
    "cache": lambda file, out: quantize(out, "--cache", file("c.cache")),
    "state": lambda file, out: quantize(out, "--data", out / "x.npy", "--state", file("s.npz")),
    "rules": lambda file, out: convert(out, "--rules", file("r.yaml")),
}


def quantize(out, *options):
    return ["quantize", DIGITS, "-o", out / "o.onnx", "--precision", "int8", *options]


def convert(out, *options):
    return ["convert", DIGITS, "-o", out / "o.onnx", *options]


@pytest.mark.parametrize("make", [pipe, zeros])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_refused_at_once(attack, tmp_path, make, reader):
    (tmp_path / "good.prototxt").write_text(CAFFE)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(png(2, 2))
    np.save(tmp_path / "x.npy", np.zeros([4, 1, 8, 8], np.float32))
    named = []

    def file(name):
        named.append(str(make(tmp_path / f"bad-{name}")))
        return named[0]

    check_refused(attack(*READERS[reader](file, tmp_path)), named[0], "not a regular file")
    assert not list(tmp_path.glob("o.*"))


# ---- Archives


def npy_header(shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def archive_of_zeros(path, name, start, megabytes):
    """Writes an archive with one array that inflates to `start` and `megabytes` MiB of zeros. The stream repeats one
    compressed piece, which is fast to create. There is no valid checksum, since a reader must not get that far."""
    compress = zlib.compressobj(9, zlib.DEFLATED, -15)
    stream = compress.compress(start) + compress.flush(zlib.Z_FULL_FLUSH)
    piece = compress.compress(bytes(MEGABYTE)) + compress.flush(zlib.Z_FULL_FLUSH)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(name, stream + piece * megabytes + compress.flush())
    data = bytearray(path.read_bytes())
    inflated = len(start) + megabytes * MEGABYTE
    for signature, method, size in ((b"PK\x03\x04", 8, 22), (b"PK\x01\x02", 10, 24)):
        at = data.index(signature)
        struct.pack_into("<H", data, at + method, zipfile.ZIP_DEFLATED)
        struct.pack_into("<I", data, at + size, inflated)
    path.write_bytes(data)


@pytest.mark.parametrize(
    "shape, reason",
    [((4095 * MEGABYTE // 4,), "it must be f32[batch, 1, 8, 8]"), ((4, 1, 8, 8), "truncated or damaged")],
    ids=["true", "false"],
)
def test_an_archive_that_inflates_to_gigabytes(attack, tmp_path, shape, reason):
    path = tmp_path / "x.npz"
    archive_of_zeros(path, "image.npy", npy_header(shape), 4095)
    assert path.stat().st_size < 5 * MEGABYTE
    check_refused(attack("run", DIGITS, "-i", path, "-o", tmp_path / "o.npz"), "x.npz", reason)


def test_the_archives_of_zeros_inflate(tmp_path):
    archive_of_zeros(tmp_path / "x.npz", "image.npy", npy_header((2 * MEGABYTE // 4,)), 2)
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        entry = archive.open("image.npy")
        entry._expected_crc = None
        assert np.lib.format.read_array(entry).size == 2 * MEGABYTE // 4


def test_an_entry_whose_header_claims_more_than_there_is(attack, tmp_path):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("image.npy", npy_header((1 << 36,)) + bytes(64))
    check_refused(attack("run", DIGITS, "-i", path, "-o", tmp_path / "o.npz"), "x.npz: image.npy")


def test_a_directory_of_one_entry_many_times(attack, tmp_path):
    """A zip directory may list the same bytes any number of times."""
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a000.npy", npy_header((MEGABYTE // 4,)) + bytes(MEGABYTE))
    whole = path.read_bytes()
    begin, count = whole.index(b"PK\x01\x02"), 1000
    end = whole.index(b"PK\x05\x06")
    names = [whole[begin:end].replace(b"a000", b"a%03d" % i) for i in range(count)]
    directory = b"".join(names)
    tail = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), begin, 0)
    path.write_bytes(whole[:begin] + directory + tail)
    check_refused(attack("run", DIGITS, "-i", path, "-o", tmp_path / "o.npz"), "x.npz")


@pytest.fixture(scope="module")
def archive_of_one_whole_array(tmp_path_factory):
    """Returns an archive of the array 'x', an array with the header of a terabyte, one of 512 MiB of zeros and a
    damaged one."""
    path = tmp_path_factory.mktemp("archive") / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("a_claims.npy", npy_header((1 << 38,)) + bytes(64))
        with archive.open("m_zeros.npy", "w", force_zip64=True) as entry:
            entry.write(npy_header((1 << 27,)))
            for _ in range(512):
                entry.write(bytes(MEGABYTE))
        with archive.open("x.npy", "w") as entry:
            np.save(entry, np.arange(128, dtype=np.float32).reshape(2, 1, 8, 8))
        archive.writestr("z_text.npy", b"no array")
    with zipfile.ZipFile(path) as archive:
        damaged = archive.getinfo("z_text.npy").header_offset
    with path.open("r+b") as file:
        file.seek(damaged)
        file.write(bytes(16))
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("run", DIGITS, "-i", "image={file}:x", "-o", "{folder}/out.npz"),
        ("verify", DIGITS, DIGITS, "--data", "image={file}:x"),
        ("quantize", DIGITS, "-o", "{folder}/f16.onnx", "--precision", "f16", "--data", "image={file}:x"),
        ("quantize", DIGITS, "-o", "{folder}/int8.onnx", "--precision", "int8", "--data", "image={file}:x"),
    ],
    ids=["run", "verify", "quantize_f16", "quantize_int8"],
)
def test_one_array_of_an_archive_is_read_and_no_other(archive_of_one_whole_array, attack, tmp_path, command):
    """The other arrays cannot be read: they are damaged, or larger than the memory."""
    words = [str(word).format(file=archive_of_one_whole_array, folder=tmp_path) for word in command]
    code, messages, memory = attack(*words)
    assert code == 0, messages
    assert memory < MOST_MEMORY


def test_of_other_arrays_the_headers_are_read_at_most(archive_of_one_whole_array, attack, tmp_path):
    """A calibration file is given without an array's name: the array with the input's name is read."""
    path = tmp_path / "calibration.npz"
    with zipfile.ZipFile(archive_of_one_whole_array) as archive, zipfile.ZipFile(path, "w") as written:
        written.writestr("image.npy", archive.read("x.npy"))
        written.writestr("a_claims.npy", archive.read("a_claims.npy"))
    code, messages, _ = attack("quantize", DIGITS, "-o", tmp_path / "int8.onnx", "--precision", "int8", "--data", path)
    assert code == 0, messages


# ---- Images


def png(width, height):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    compress = zlib.compressobj(9)
    rows = b"".join(compress.compress(bytes(1 + width // 8)) for _ in range(height)) + compress.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("size", "reason"), [((16384, 16384), "pixels"), ((1, 1 << 20), "Invalid IHDR data")])
def test_an_image_of_too_many_pixels(attack, tmp_path, size, reason):
    (tmp_path / "images").mkdir()
    image = tmp_path / "images" / "a.png"
    image.write_bytes(png(*size))
    assert image.stat().st_size < MEGABYTE
    recipe = tmp_path / "r.yaml"
    recipe.write_text("resize: [8, 8]\nchannels: gray\n")
    check_refused(attack(*quantize(tmp_path, "--data", tmp_path / "images", "--recipe", recipe)), "a.png", reason)


@pytest.mark.parametrize(
    ("recipe", "code", "reason"),
    [
        ("", 2, "the tensor is f32[1, 1, 8192, 8192]; it must be f32[batch, 1, 8, 8]"),
        ("crop: [8, 8]", 0, ""),
        ("resize: [8, 8]", 0, ""),
        ("{resize: [8, 8192], crop: [8, 8]}", 0, ""),
        ("{resize: 8192, crop: [8, 9000]}", 2, "cannot be cropped"),
    ],
)
def test_a_large_image_in_little_memory(attack, tmp_path, recipe, code, reason):
    """An image that does not fit the network is refused by its header. Reading any other image needs memory for its
    pixels and a row of sums."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(png(8192, 8192))
    gray = tmp_path / "r.yaml"
    gray.write_text(f"{recipe[:-1]}, channels: gray}}" if recipe.startswith("{") else f"{recipe}\nchannels: gray\n")
    answer = attack(*quantize(tmp_path, "--data", tmp_path / "images", "--recipe", gray))
    assert answer[0] == code, answer[1]
    assert reason in " ".join(answer[1].split())
    assert answer[2] < MOST_MEMORY


def test_a_large_image_for_a_network_of_any_size(attack, tmp_path):
    """The network does not limit the size of its input, but the memory does."""
    weight = np.ones((4, 3, 1, 1), np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    ends = [("x", [1, 3, "h", "w"])], [("y", [1, 4, "h", "w"])]
    model = save(tmp_path / "m.onnx", [node], *ends, {"w": weight})
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(png(8192, 8192))
    (tmp_path / "r.yaml").write_text("channels: rgb\n")
    data = ["--data", tmp_path / "images", "--recipe", tmp_path / "r.yaml"]
    answer = attack("quantize", model, "-o", tmp_path / "o.onnx", "--precision", "int8", *data)
    check_refused(
        answer,
        "a.png: the image of 8192 x 8192 pixels needs 960 MiB while it is read and prepared; the limit is 208 MiB",
    )


# ---- External data


def external_model(folder, count, size, location):
    weights = []
    for i in range(count):
        weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[size // 4])
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value=location(i))
        weights.append(weight)
    nodes = [helper.make_node("Add", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(count)]
    return save(folder / "m.onnx", nodes, [("v0", [size // 4])], [(f"v{count}", [size // 4])], weights)


@pytest.mark.parametrize("location", [lambda i: "w.data", lambda i: "./" * i + "w.data"], ids=["same", "other names"])
def test_tensors_that_share_their_external_data(attack, tmp_path, location):
    """Written to a file, the tensors would take a thousand times as much space."""
    size = 512 * MEGABYTE
    with (tmp_path / "w.data").open("wb") as data:
        data.truncate(size)
    model = external_model(tmp_path, 1000, size, location)
    answer = attack("convert", model, "-o", tmp_path / "o.onnx", "--no-prove")
    check_refused(answer, "m.onnx", "external data add up to")
    assert not list(tmp_path.glob("o.*"))


def test_external_data_that_is_a_pipe(attack, tmp_path):
    pipe(tmp_path / "w.data")
    check_refused(attack("inspect", external_model(tmp_path, 1, 64, lambda i: "w.data")), "not a regular file")


# ---- Rules


@pytest.mark.parametrize("pattern", ["*a*a*a*a*a*a*a*a*b", "re:(a*)*b", "re:(.*)(.*)(.*)(.*)(.*)(.*)b"])
def test_names_are_matched_in_linear_time(attack, tmp_path, pattern):
    node = helper.make_node("Relu", ["x"], ["y"], name="a" * 2000)
    model = save(tmp_path / "m.onnx", [node], [("x", [4])], [("y", [4])])
    rules = tmp_path / "r.yaml"
    rules.write_text(f"- remove: {{name: '{pattern}'}}\n- rename_nodes: {{'{pattern}': 'b'}}\n")
    code, messages, memory = attack("convert", model, "-o", tmp_path / "o.onnx", "--rules", rules)
    assert code in (0, 1, 2), messages
    assert memory < MOST_MEMORY


def test_what_a_star_took_has_its_number(attack, tmp_path):
    node = helper.make_node("Relu", ["x"], ["y"], name="scope/a.b/conv")
    model = save(tmp_path / "m.onnx", [node], [("x", [4])], [("y", [4])])
    rules = tmp_path / "r.yaml"
    rules.write_text("- rename_nodes: {'*/a.?/*': '$3-$2-$1-$$1'}\n")
    code, messages, _ = attack("convert", model, "-o", tmp_path / "o.onnx", "--rules", rules)
    assert code == 0, messages
    assert onnx.load(tmp_path / "o.onnx").graph.node[0].name == "conv-b-scope-$1"


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
        "[" * 100000,
        "- " * 100000,
        "- remove: " + "{a: " * 50000,
    ],
    ids=["aliases", "brackets", "dashes", "maps"],
)
def test_yaml_that_is_deep_or_expands(attack, tmp_path, text):
    rules = tmp_path / "r.yaml"
    rules.write_text(text)
    check_refused(attack(*convert(tmp_path, "--rules", rules)), "r.yaml")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(png(2, 2))
    check_refused(attack(*quantize(tmp_path, "--data", tmp_path / "images", "--recipe", rules)), "r.yaml")


def test_rules_of_more_bytes_than_are_read(attack, tmp_path):
    """Each dash is a YAML node, which needs more than a hundred times its size in memory."""
    rules = tmp_path / "r.yaml"
    rules.write_text("- \n" * (1 + (4 * MEGABYTE) // 3))
    check_refused(attack(*convert(tmp_path, "--rules", rules)), "r.yaml", "4194304")


# ---- Text of protobuf


@pytest.mark.parametrize(
    ("start", "level"), [("node { ", "attr { value { list { func { "), ("", "unknown { ")], ids=["known", "unknown"]
)
def test_text_of_a_graph_that_is_nested_deep(attack, tmp_path, start, level):
    """Each level is a recursive call of the parser: 200,000 would overflow the stack."""
    path = tmp_path / "m.pbtxt"
    path.write_text(start + level * 200_000)
    check_refused(attack("inspect", path), "m.pbtxt", "too deep")


# ---- Files of a few bytes that stand for many elements

# The limit of docs/security.md for computations that Graft starts by itself, including the program.
MOST_MEMORY_OF_PROOFS = 1300 * MEGABYTE


def doubling(axis, count, inputs):
    """Returns nodes that repeatedly concatenate a tensor with itself."""
    nodes = [
        helper.make_node("Concat", [f"v{i}"] * inputs, [f"v{i + 1}"], axis=axis if i % 2 == 0 else 0)
        for i in range(count)
    ]
    return [*nodes, helper.make_node("Relu", [f"v{count}"], ["y"])]


@pytest.mark.parametrize("options", [[], ["--no-prove"]], ids=["prove", "no_prove"])
@pytest.mark.parametrize(
    ("axis", "count", "inputs", "shape"),
    [(0, 18, 2, [1]), (1, 40, 2, [1, 1]), (0, 200, 2, ["n"])],
    ids=["18_doublings", "two_axes", "200_doublings"],
)
def test_tensors_that_double_again_and_again(attack, tmp_path, axis, count, inputs, shape, options):
    model = save(tmp_path / "m.onnx", doubling(axis, count, inputs), [("v0", shape)], [("y", None)])
    code, messages, memory = attack("convert", model, "-o", tmp_path / "o.onnx", "--probe", "none", *options)
    assert code in (0, 1, 2), messages
    assert memory < MOST_MEMORY_OF_PROOFS


def padded(path, rows, count=1, type=TensorProto.FLOAT):
    """Writes a model whose tensors have `rows` rows of 4096 elements each."""
    nodes = [helper.make_node("Pad", [f"v{i}", "sizes"], [f"v{i + 1}"], name=f"pad{i}") for i in range(count)]
    nodes.append(helper.make_node("ReduceSum", [f"v{count}"], ["y"], keepdims=0))
    ends = [("v0", type, [0, 4096])], [("y", type, [])]
    return save(path, nodes, *ends, {"sizes": np.array([0, 0, rows, 0], np.int64)})


@pytest.mark.parametrize("command", ["verify", "verify_layers", "verify_data", "run"])
def test_a_tensor_of_more_elements_than_tensorrt_takes(attack, tmp_path, command):
    """The tensor would take 8 GiB. NumPy has the number of its elements."""
    model = padded(tmp_path / "m.onnx", 1 << 19)
    assert np.prod([1 << 19, 4096], dtype=np.int64) == np.iinfo(np.int32).max + 1
    np.save(tmp_path / "v0.npy", np.zeros([0, 4096], np.float32))
    data = f"v0={tmp_path / 'v0.npy'}"
    commands = {
        "verify": ["verify", model, model],
        "verify_layers": ["verify", model, model, "--layers"],
        "verify_data": ["verify", model, model, "--data", data],
        "run": ["run", model, "-i", data, "-o", tmp_path / "o.npz"],
    }
    found = "m.onnx: node 'pad0' (Pad) computes 'v1' of 524288 x 4096 elements"
    check_refused(attack(*commands[command]), found, "at most 2147483647")


@pytest.mark.parametrize("command", ["verify", "quantize"])
def test_a_run_on_inputs_that_graft_makes_takes_little_memory(attack, tmp_path, command):
    """Two tensors of 8 and 16 GiB are needed at the same time. No machine is allowed as much."""
    model = padded(tmp_path / "m.onnx", (1 << 18) - 1, 2, TensorProto.DOUBLE)
    commands = {
        "verify": ["verify", model, model],
        "quantize": ["quantize", model, "-o", tmp_path / "o.onnx", "--precision", "f16"],
    }
    answer = attack(*commands[command])
    check_refused(
        answer, "m.onnx: a comparison on synthetic inputs needs about", "the limit on this machine is", "--data"
    )
    assert "--input" not in answer[1]


def test_a_cubic_resize_takes_long(attack, tmp_path):
    """ONNX Runtime takes up to 3.5 microseconds for each of 174 million elements."""
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["r"], mode="cubic")
    nodes = [node, helper.make_node("ReduceSum", ["r"], ["y"], keepdims=0)]
    sizes = {"sizes": np.array([2, 3, 2, 14483459], np.int64)}
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 3, 2, 3])], [("y", [])], sizes)
    check_refused(attack("verify", model, model), "m.onnx: a comparison on synthetic inputs takes about 17", "60 s")


def test_the_halves_of_a_cut_are_compared_within_limits(attack, tmp_path):
    """NonZero is left to the host. The tensor would have 3.6 billion elements."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("ReduceSum", ["m"], ["s"], keepdims=0),
        helper.make_node("Expand", ["s", "sizes"], ["e"]),
        helper.make_node("ReduceSum", ["e"], ["t"], keepdims=0),
        helper.make_node("Add", ["t", "s"], ["y"]),
        helper.make_node("NonZero", ["m"], ["places"]),
    ]
    constants = {"sizes": np.array([60000, 60000], np.int64), "w": np.ones((4, 4), np.float32)}
    outputs = [("y", None), ("places", TensorProto.INT64, [2, None])]
    model = save(tmp_path / "m.onnx", nodes, [("x", [4, 4])], outputs, constants)
    by_rule = ["--probe", "none", "--plugins", "never"]
    code, messages, memory = attack("convert", model, "-o", tmp_path / "o.onnx", "--cut", *by_rule)
    assert code == 1, messages
    assert "60000 x 60000 elements" in " ".join(messages.split())
    assert memory < MOST_MEMORY_OF_PROOFS


def test_a_large_input_is_proven_at_smaller_sizes(attack, tmp_path):
    nodes = [helper.make_node("Mul", ["x", "a"], ["m"]), helper.make_node("Max", ["m", "x"], ["y"])]
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 3, 4000, 4000])], [("y", None)], {"a": np.float32(0.1)})
    code, messages, memory = attack("convert", model, "-o", tmp_path / "o.onnx", "-v")
    assert code == 0, messages
    assert "the sizes of the file were not run: its tensors need 549 MiB of memory at a time" in " ".join(
        messages.split()
    )
    assert memory < MOST_MEMORY_OF_PROOFS
    assert "LeakyRelu" in str(onnx.load(tmp_path / "o.onnx"))


@pytest.mark.parametrize("iterations", [10**6, 10**9])
def test_a_loop_that_runs_long(attack, tmp_path, iterations):
    """A proof of the two transpositions would run the whole loop; `attack` allows 20 s of processor time."""
    body = subgraph(
        [
            helper.make_node("Identity", ["c"], ["c_out"]),
            helper.make_node("Sigmoid", ["v"], ["v_out"]),
            helper.make_node("Identity", ["v_out"], ["stacked"]),
        ],
        [("i", TensorProto.INT64, []), ("c", TensorProto.BOOL, []), ("v", None)],
        [("c_out", TensorProto.BOOL, []), ("v_out", None), ("stacked", None)],
    )
    nodes = [
        helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body),
        helper.make_node("ReduceSum", ["all"], ["sum"], keepdims=0),
        helper.make_node("Transpose", ["last"], ["t"], perm=[1, 0]),
        helper.make_node("Transpose", ["t"], ["y"], perm=[1, 0]),
    ]
    constants = {"n": np.int64(iterations)}
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 2])], [("y", None), ("sum", None)], constants)
    code, messages, memory = attack("convert", model, "-o", tmp_path / "o.onnx", "--no-check")
    assert code in (0, 1), messages
    assert memory < MOST_MEMORY_OF_PROOFS


# ---- Nodes without required inputs or attributes


def left_out(tmp_path, op_type, inputs, **attributes):
    node = helper.make_node(op_type, inputs, ["y"], **attributes)
    return save(tmp_path / "m.onnx", [node], [("x", [2, 3, 4, 4])], [("y", None)])


@pytest.mark.parametrize("command", ["inspect", "convert", "run"])
@pytest.mark.parametrize(
    ("op_type", "inputs", "port"),
    [
        ("Mod", ["x", ""], 1),
        ("InstanceNormalization", ["", "x", "x"], 0),
        ("Clip", ["", "x"], 0),
        ("Max", ["x", ""], 1),
    ],
)
def test_a_required_input_that_is_left_out(attack, tmp_path, command, op_type, inputs, port):
    model = left_out(tmp_path, op_type, inputs)
    np.savez(tmp_path / "x.npz", x=np.zeros([2, 3, 4, 4], np.float32))
    options = {
        "inspect": [],
        "convert": ["-o", tmp_path / "o.onnx"],
        "run": ["-i", tmp_path / "x.npz", "-o", tmp_path / "o.npz"],
    }[command]
    answer = attack(command, model, *options)
    check_refused(answer, "m.onnx", f"node 'y' ({op_type})", f"input {port} of {op_type} cannot be left out")


# ---- Large constants that readers create from a few elements


def scalar(name, type, field, value):
    tensor = f"tensor {{ dtype: {type} tensor_shape {{}} {field}: {value} }}"
    return (
        f'node {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: {type} }} }} '
        f'attr {{ key: "value" value {{ {tensor} }} }} }}\n'
    )


def test_constants_that_nodes_stand_for_share_a_budget(attack, tmp_path):
    path = tmp_path / "m.pbtxt"
    text = scalar("a", "DT_FLOAT", "float_val", 0) + scalar("b", "DT_FLOAT", "float_val", 1)
    text += scalar("n", "DT_INT32", "int_val", 2_000_000)
    for i in range(200):
        text += f'node {{ name: "l{i}" op: "LinSpace" input: "a" input: "b" input: "n" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}\n'
    path.write_text(text)
    check_refused(attack("inspect", path), "(LinSpace)", "constant of 2000000 elements")


def test_rows_that_are_not_given_are_not_made(attack, tmp_path):
    path = tmp_path / "m.pbtxt"
    text = scalar("at", "DT_INT32", "int_val", (1 << 24) - 1) + scalar("x", "DT_FLOAT", "float_val", 1)
    text += 'node { name: "y" op: "DynamicStitch" input: "at" input: "x" attr { key: "T" value { type: DT_FLOAT } } }\n'
    path.write_text(text)
    answer = attack("inspect", path)
    check_refused(answer, "its indices leave out some rows of the result")
    (tmp_path / "empty.pbtxt").write_text("node {")
    alone = attack("inspect", tmp_path / "empty.pbtxt")
    assert answer[2] < alone[2] + 64 * MEGABYTE, "128 MB of places were made"
