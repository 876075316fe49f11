# Tests that only the program names its options: messages of the library use settings, whose names differ between the
# program, Python and C++.
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = {"cli", "present"}
# Composes whole commands of the program, which a reader copies into a shell.
COMMANDS = pathlib.Path("toolkit/commands.cpp")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# An argument of a child process, not of `graft`: a string with only the option, before its value.
ARGUMENT = re.compile(r"--[a-z][a-z0-9-]*=?")
COMMENT = re.compile(r"^\s*//.*$|///?<? .*$", re.MULTILINE)


def strings(path):
    """Returns the string literals of a source; adjacent literals, which the compiler joins, are one."""
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
        if path.relative_to(SOURCE / "src") == COMMANDS:
            continue
        named = options_in(path)
        if named:
            found[str(path.relative_to(SOURCE))] = named
    assert found == {}


def test_the_check_sees_an_option(tmp_path):
    source = tmp_path / "some.cpp"
    source.write_text('fail("give it with "\n     "--input");  // "--comment x"\nadd("--device", {"--data=" + x});\n')
    assert options_in(source) == ["give it with --input"]


def test_messages_of_the_engine_driver_name_no_option_of_their_own():
    """Each option goes through `named`, which uses the names of the program that runs the driver."""
    found = {}
    for path in sorted((SOURCE / "python" / "graft" / "engine").glob("*.py")):
        if path.name == "cli.py":  # where the options are defined
            continue
        # Arguments of other programs are not messages.
        no_messages = r'"""[\s\S]*?"""|(?m:^\s*#.*$)|named\([^)]*\)|subprocess\.run\(\[[^\]]*\]'
        text = re.sub(no_messages, "", path.read_text())
        named = [string for string in STRING.findall(text) if OPTION.search(string)]
        if named:
            found[path.name] = named
    assert found == {}
