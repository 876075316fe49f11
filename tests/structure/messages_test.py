# Only the program knows its options: what the library says names settings, which a program, Python and C++ spell as they like.
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = {"cli", "present"}
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# An argument of a child process, and not of `graft`: nothing but the option, with its value after it.
ARGUMENT = re.compile(r"--[a-z][a-z0-9-]*=?")
COMMENT = re.compile(r"^\s*//.*$|///?<? .*$", re.MULTILINE)


def strings(path):
    """String literals of a source; those that the compiler joins are one."""
    text = COMMENT.sub("", path.read_text())
    return STRING.findall(re.sub(r'"\s*\n\s*"', "", text))


def options_in(path):
    return [text for text in strings(path) if OPTION.search(text) and not ARGUMENT.fullmatch(text)]


def test_the_library_names_no_option_of_the_program():
    found = {}
    for path in sorted((SOURCE / "src").rglob("*")):
        folder = path.relative_to(SOURCE / "src").parts[0]
        if path.suffix not in {".cpp", ".hpp", ".cu", ".cuh"} or folder in PROGRAM:
            continue
        named = options_in(path)
        if path == SOURCE / "src" / "engine" / "driver.cpp":
            # The key of a command that the engine driver names in its own words, and not a message.
            named.remove("`graft quantize MODEL -o OUT --precision f16 --typed-io`")
        if named:
            found[str(path.relative_to(SOURCE))] = named
    assert found == {}


def test_the_check_sees_an_option(tmp_path):
    source = tmp_path / "some.cpp"
    source.write_text('fail("give it with "\n     "--input");  // "--comment x"\nadd("--device", {"--data=" + x});\n')
    assert options_in(source) == ["give it with --input"]


def test_messages_of_the_engine_driver_name_no_option_of_their_own():
    """Each goes through `named`, which the program that runs the driver decides."""
    found = {}
    for path in sorted((SOURCE / "python" / "graft" / "engine").glob("*.py")):
        if path.name == "cli.py":  # where the options are made
            continue
        # What other programs are called with is no message.
        no_messages = r'"""[\s\S]*?"""|(?m:^\s*#.*$)|named\([^)]*\)|subprocess\.run\(\[[^\]]*\]'
        text = re.sub(no_messages, "", path.read_text())
        named = [string for string in STRING.findall(text) if OPTION.search(string)]
        if named:
            found[path.name] = named
    assert found == {}
