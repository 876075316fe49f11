# Tests properties of every command: help, flags, exit codes, output streams.
import re
import shlex
import shutil
import subprocess

import pytest
from conftest import DIGITS, PROGRAM, SOURCE, run_command

LIST = SOURCE / "include/graft/report/commands.inc"
COMMANDS = re.findall(r"^GRAFT_COMMAND\((\w+), \w+\)$", LIST.read_text(), re.MULTILINE)


def test_version(graft):
    answer = graft("--version", code=0)
    assert re.fullmatch(r"graft \d+\.\d+\.\d+\n", answer.out)


def test_help_lists_exactly_the_commands_that_work(graft):
    answer = graft("--help", code=0)
    listed = re.findall(r"^  (\w+)  ", answer.out.split("Commands\n")[1].split("\n\n")[0], re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example_and_the_common_flags(graft, command):
    answer = graft(command, "--help", code=0)
    assert f"\nExample\n  graft {command}" in answer.out
    for flag in ("--json", "--verbose", "--quiet", "--help"):
        assert flag in answer.out
    assert max(map(len, answer.out.splitlines())) <= 120


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_the_flag_says(graft, command):
    answer = graft("help", command)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == graft(command, "--help").out
    assert graft("help", command, "--json").json == {"help": answer.out}


def test_help_alone_lists_the_commands(graft):
    answer = graft("help")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == graft("--help").out


def test_the_page_for_man_has_all_that_help_has(graft):
    page = graft("help", "--man").out
    for command in COMMANDS:
        assert f"\n.SS graft {command}\n" in page
        for option in re.findall(r"^  (-.*?)(?:  |$)", graft("help", command).out, re.MULTILINE):
            assert f"\n.B {option}\n".replace("-", "\\-") in page
    # lines that roff would execute or drop
    assert not re.search(r"^\.(?!TH |SH |SS |TP$|B |I |PP$|nf$|fi$)", page, re.MULTILINE)
    answer = graft("help", "convert", "--man")
    assert (answer.code, "--man" in answer.err) == (2, True)


def test_no_command_is_wrong_use(graft):
    answer = graft(code=2)
    assert answer.out == ""
    assert "Commands" in answer.err


@pytest.mark.parametrize(
    ("arguments", "found", "suggested"),
    [
        (["bulid", "x.onnx"], "bulid", "build"),
        (["bulid", "x.onnx", "-o", "y"], "there is no command bulid", "build"),
        (["bulid", "--help"], "there is no command bulid", "build"),
        (["cut", "--help"], "there is no command cut", "graft --help"),
        (["--vrsion"], "--vrsion", "--version"),
        (["-q", "verify", "a.onnx", "b.onnx"], "-q comes before the command", "graft verify -q"),
        (["--operators", "x.so", "run", "a.onnx"], "--operators comes before the command", "graft run --operators"),
        (["help", "bulid"], "bulid", "build"),
        (["completions", "fsh"], "fsh", "fish"),
        (["ops", "--jsno"], "--jsno", "--json"),
        (["build", "x.onnx", "-o", "y", "--tagret", "sm120"], "--tagret", "--target"),
        (["convert", "x.onnx", "-o", "y", "--no-proof"], "--no-proof", "--no-prove"),
        (["ops", "LeakyRLU"], "LeakyRLU", "LeakyReLU"),
        (["convert", "x.onnx", "-o", "y", "--passes", "fuse_l2normalize"], "fuse_l2normalize", "fuse_l2_normalize"),
    ],
)
def test_a_slip_is_named_with_a_suggestion(graft, arguments, found, suggested):
    answer = graft(*arguments, code=2)
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert found in answer.err
    assert suggested in answer.err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["inspect"], "MODEL"),
        (["build", "x.onnx"], "--output"),
        (["convert", "x.onnx", "-o", "y", "--plugins", "sometimes"], "sometimes"),
        (["verify", "a.onnx", "b.onnx", "--seeds", "0"], "--seeds"),
        (["verify", "a.onnx", "b.onnx", "--rtol", "x"], "--rtol"),
        (["verify", DIGITS, DIGITS, "--rtol", "1", "--snr", "20"], "--snr"),
        (["quantize", "a.onnx", "-o", "b", "--percentile", "nan"], "--percentile"),
        (["inspect", "a.onnx", "--probe", "parser", "--time-limit", "nan"], "--time-limit"),
        (["inspect", "a.onnx", "--probe", "parser", "--max-seconds", "inf"], "--max-seconds"),
        (["inspect", "a.onnx", "--for", "rtx-1.3"], "rtx-1.4, rtx-1.5"),
        (["inspect", "a.onnx", "--for", "10.13"], "tensorrt-10.13"),
        (["build", "a.onnx", "-o", "b", "--optimization-level", "6"], "--optimization-level"),
        (["ops", "LeakyReLU", "extra"], "extra"),
    ],
)
def test_wrong_use_names_the_argument(graft, arguments, named):
    answer = graft(*arguments, code=2)
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert named in answer.err


def options_with_values():
    """Returns the options with a value of each command, with a value, and the other required arguments, by the
    command's help and completions."""
    completions = run_command(PROGRAM, "completions", "bash", code=0).stdout
    found = []
    for command in COMMANDS:
        text = run_command(PROGRAM, command, "--help", code=0).stdout
        if "\nArguments\n" not in text:
            continue
        usage = next(line for line in text.splitlines() if line.startswith(f"  graft {command}"))
        required = re.findall(r"(?<!\[)(-\w+) [A-Z]+", usage)
        own = completions.split(f"\n    {command})\n")[1].split("\n      ;;\n")[0]
        for names, kind in re.findall(r"^  (-[^ ]*(?:, -[^ ]+)*) ([A-Z]+)", text, re.MULTILINE):
            option = names.split(", ")[-1]
            choices = re.search(rf"{option}\) choices='(\S+)", own)
            value = choices[1] if choices else "x=1..2" if kind.startswith("RANGE") else "1"
            others = [word for name in required if name not in names.split(", ") for word in (name, "missing.npz")]
            found.append(pytest.param(command, option, value, others, id=f"{command} {option}"))
    return found


def test_every_command_has_its_options_in_the_test_below():
    cases = [case.id for case in options_with_values()]
    assert len(cases) > 80
    assert {"run --input", "convert --keep-output", "quantize --data", "verify --range", "build --target"} <= {*cases}


@pytest.mark.parametrize(("command", "option", "value", "others"), options_with_values())
def test_an_option_takes_one_word_and_leaves_the_arguments_after_it(graft, command, option, value, others):
    arguments = ["missing.onnx", "missing.2.onnx"] if command == "verify" else ["missing.onnx"]
    after = graft(command, *arguments, *others, "--verbose", option, value)
    before = graft(command, option, value, *arguments, *others, "--verbose")

    def said(answer):
        return [
            line for line in answer.err.splitlines() if "translated to Graft's" not in line
        ]  # repeats the command line

    assert (before.code, said(before)) == (after.code, said(after))
    assert "required" not in before.err


def test_json_before_the_command_is_an_object_too(graft):
    answer = graft("--json", "verify", "a.onnx", "b.onnx", code=2)
    assert answer.json["error"]["message"].startswith("graft: --json comes before the command")


def test_an_error_is_an_object_with_json(graft, tmp_path):
    answer = graft("inspect", tmp_path / "missing.onnx", "--json", code=2)
    assert answer.json["error"]["kind"] == "bad_input"
    assert "missing.onnx" in answer.json["error"]["message"]
    assert answer.err.startswith("error: ")


def test_standard_output_that_is_full_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "ops"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "standard output" in done.stderr


def test_output_that_is_no_terminal_has_no_color(graft):
    answer = graft("ops", env={"TERM": "xterm-256color"})
    assert "\033[" not in answer.out + answer.err


def test_no_color_is_obeyed_on_a_terminal():
    def on_terminal(extra):
        command = f"env TERM=xterm {extra} {PROGRAM} ops"
        return run_command("script", "-qec", command, "/dev/null").stdout

    assert "\033[1m" in on_terminal("")
    assert "\033[" not in on_terminal("NO_COLOR=1")


DASHED = {
    "positional": ["inspect", "-d.onnx", "--probe", "none"],
    "starts with a flag": ["inspect", "-v.onnx", "--probe", "none"],
    "second": ["verify", "plain.onnx", "-d.onnx"],
    "with an output": ["convert", "-d.onnx", "-o", "-y.onnx", "--no-check"],
    "options after --": ["inspect", "--", "-d.onnx", "--probe", "none"],
    "output after --": ["convert", "--no-check", "--", "plain.onnx", "-o", "x.onnx"],
    "output joined to its option": ["convert", "-d.onnx", "-oout.onnx", "--no-check"],
    "output joined to its option, after --": ["convert", "--no-check", "--", "-d.onnx", "-oout.onnx"],
    "number": ["verify", "-d.onnx", "plain.onnx", "--snr", "-0.5"],
}


@pytest.mark.parametrize("case", DASHED)
def test_a_file_that_looks_like_an_option(graft, tmp_path, case):
    """The message has a command that works when it is copied."""
    for name in ("plain.onnx", "-d.onnx", "-v.onnx"):
        shutil.copy(DIGITS, tmp_path / name)
    answer = graft(*DASHED[case], cwd=tmp_path, code=2)
    assert " begins with a dash, as options do" in answer.err or " comes after --, where no word is" in answer.err
    command = shlex.split(answer.err.split("Write `")[1].split("`")[0])
    assert command[0] == "graft"
    corrected = {word: f"./{word}" for word in ("-d.onnx", "-v.onnx")}
    assert command[1:] == [corrected.get(word, word) for word in DASHED[case] if word != "--"]
    assert graft(*command[1:], cwd=tmp_path).code == 0


def test_a_word_that_is_no_file_is_an_unknown_option(graft):
    for word in ("--nope.x", "-x", "-x.y"):
        answer = graft("inspect", DIGITS, word)
        assert answer.code == 2 and "there is no option" in answer.err


def test_a_word_after_the_dashes_does_not_hide_an_unknown_option(graft):
    answer = graft("inspect", "--nope", "--", "-a")
    assert answer.code == 2 and "there is no option --nope" in answer.err
