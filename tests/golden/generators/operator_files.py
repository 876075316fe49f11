# operator_files.py - finds the Python files of the operators' folders, src/ops/<op>/<op>_<what>.py.
import importlib.util
import pathlib
import re

OPERATORS = pathlib.Path(__file__).resolve().parents[3] / "src" / "ops"


def operator_folders():
    return re.findall(r"^GRAFT_OPERATOR\((\w+),", (OPERATORS / "ops.inc").read_text(), re.MULTILINE)


def load(folder, what):
    """Returns the module; None where the operator has no such file."""
    path = OPERATORS / folder / f"{folder}_{what}.py"
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_all(what):
    """Returns the modules by folder, in the order of ops.inc."""
    modules = {folder: load(folder, what) for folder in operator_folders()}
    return {folder: module for folder, module in modules.items() if module is not None}
