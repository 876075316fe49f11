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
    {"data"},
    {"passes", "quant"},
    {"rules"},
    {"engine"},
    {"inspect"},
    {"toolkit"},
    {"present"},
    {"cli", "python"},
]
# The headers that the program and the Python extension may include besides CLI11, nanobind, fmt and the standard library:
# their own, those of an application, and for the program those of `present`. `graft/operator/` describes the types in
# reports of operators; the program also quotes words for a shell and suggests correct ones as the library does.
PUBLIC = r"graft/(toolkit/|report/|operator/)?\w+\.(hpp|inc|h)"
ALLOWED = {
    "cli": re.compile(rf"{PUBLIC}|(present|cli)/.+|core/(guide_pages|shell_quoted|suggest)\.hpp"),
    "python": re.compile(rf"{PUBLIC}|python/.+"),
}

# Headers that src/present may include: reports, the public interface to models, and small helpers. CMake generates
# all_reports.hpp, which includes every report.
OF_PRESENT = re.compile(r"(present|core|graft/report|graft/toolkit)/.+|graft/\w+\.hpp|all_reports\.hpp")

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


def test_the_program_and_python_include_the_headers_that_applications_have():
    private = [
        f"{path.relative_to(SOURCE)}: {included}"
        for folder, allowed in ALLOWED.items()
        for path in sorted((SOURCE / "src" / folder).rglob("*"))
        if path.suffix in SUFFIXES
        for included in re.findall(r'^\s*#\s*include "([^"]+)"', path.read_text(), re.MULTILINE)
        if not allowed.fullmatch(included)
    ]
    assert not private, "\n".join(private)


def test_present_reads_reports_only():
    others = []
    for path in sorted((SOURCE / "src" / "present").rglob("*")):
        if path.suffix in SUFFIXES:
            included = re.findall(r'^\s*#\s*include "([^"]+)"', path.read_text(), re.MULTILINE)
            others += [f"{path.name}: {name}" for name in included if not OF_PRESENT.fullmatch(name)]
    assert not others, "\n".join(others)
