# Tests that includes have one direction: a folder of src/ includes only folders before it.
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2]

# Folders from the lowest to the highest layer; folders in one row do not include each other.
ORDER = [
    {"core"},
    {"kernels"},
    {"ops"},
    {"operator_library"},
    {"adapters", "c_api"},
    {"onnx"},
    {"import", "io", "runtime"},
    {"verify"},
    {"passes", "quant"},
    {"rules"},
    {"engine"},
    {"inspect"},
    {"toolkit"},
    {"present"},
    {"cli", "python"},
]
# Folders that the program may include besides CLI11, fmt and the standard library: it parses arguments, calls the
# toolkit and shows results.
OF_THE_PROGRAM = {"graft", "toolkit", "present", "cli"}

# Internal headers of the toolkit that the program includes, besides the public ones of include/graft/toolkit: complete
# reports, which `present` shows, functions that only a command line needs, and tensors as read from its files. None
# exposes the graph of a model. An entry that is no longer needed fails the test.
BESIDE_PUBLIC_HEADERS = {
    "bench.hpp",
    "compare_models.hpp",
    "cut.hpp",
    "doctor.hpp",
    "engine_driver.hpp",
    "files.hpp",
    "new_project.hpp",
    "operators.hpp",
    "plugins.hpp",
    "quantize.hpp",
    "reduced_case.hpp",
    "suggest.hpp",
    "tensor_files.hpp",
    "tensors.hpp",
}

INCLUDE = re.compile(r'^\s*#\s*include "(\w+)/', re.MULTILINE)
SUFFIXES = {".hpp", ".cpp", ".cuh", ".cu", ".inc", ".h"}


def library_of(path):
    """Returns the folder whose library contains a file. An operator's fusion belongs to the passes, but is in the
    operator's folder with all other files of the operator."""
    parts = path.relative_to(SOURCE / "src").parts
    is_fusion = path.stem.endswith("_fusion") or "fusion" in parts
    return "passes" if parts[0] == "ops" and is_fusion else parts[0]


def includes():
    """Yields (file, folder of the file, folder that it includes) for files in src/ that include other folders' files."""
    src = SOURCE / "src"
    for path in sorted(src.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        folder = library_of(path)
        for included in INCLUDE.findall(path.read_text()):
            if included != folder and (src / included).is_dir():
                yield path.relative_to(SOURCE), folder, included


def row_of(folder):
    return next((row for row, folders in enumerate(ORDER) if folder in folders), None)


def test_every_folder_has_a_place():
    folders = {path.name for path in (SOURCE / "src").iterdir() if path.is_dir()}
    assert folders == set().union(*ORDER)


def test_no_arrow_runs_back_up():
    back = [
        f"{path}: {folder} includes {included}"
        for path, folder, included in includes()
        if row_of(included) >= row_of(folder)
    ]
    assert not back, "\n".join(back)


def test_the_program_is_included_by_itself_alone():
    outside = [path for path, _, included in includes() if included == "cli" and path.parts[1] != "cli"]
    for folder in ("include", "python", "bench", "examples"):
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.suffix in SUFFIXES and "cli" in INCLUDE.findall(path.read_text()):
                outside.append(path.relative_to(SOURCE))
    assert not outside


def test_the_program_includes_the_toolkit_and_what_shows_its_results():
    others = {}
    for path in sorted((SOURCE / "src" / "cli").iterdir()):
        below = set(INCLUDE.findall(path.read_text())) - OF_THE_PROGRAM if path.suffix in SUFFIXES else set()
        if below:
            others[path.name] = below
    assert others == {}


def test_the_program_includes_few_headers_of_the_toolkit_that_applications_do_not_have():
    included = set()
    for path in sorted((SOURCE / "src" / "cli").iterdir()):
        if path.suffix in SUFFIXES:
            included.update(re.findall(r'^\s*#\s*include "toolkit/([^"]+)"', path.read_text(), re.MULTILINE))
    assert included == BESIDE_PUBLIC_HEADERS
