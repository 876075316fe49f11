# Tests completions in the shells themselves, where they are installed.
import os
import pty
import re
import shutil

import pytest
from conftest import PROGRAM, run_command

SHELLS = ["bash", "zsh", "fish"]


@pytest.fixture(scope="module")
def scripts():
    def script(shell):
        return run_command(PROGRAM, "completions", shell, code=0).stdout

    return {shell: script(shell) for shell in SHELLS}


@pytest.fixture(scope="module")
def options():
    """Returns the options of each command, as its help lists them."""

    def help_of(*words):
        return run_command(PROGRAM, *words, "--help", code=0).stdout

    commands = re.findall(r"^  (\w+)  ", help_of().split("Commands\n")[1].split("\n\n")[0], re.MULTILINE)
    found = {}
    for command in commands:
        lines = re.findall(r"^  (-.*?)(?:  |$)", help_of(command), re.MULTILINE)
        found[command] = {name for line in lines for name in re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", line)}
        assert "--json" in found[command]
    return found


def need(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


def bash(scripts, *words):
    """Returns the completions that bash offers for the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    asked = f"COMP_WORDS=(graft {quoted}); COMP_CWORD={len(words)}; _graft; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = run_command("bash", "-c", scripts["bash"] + asked, code=0, env={"PATH": os.defpath})
    assert done.stderr == ""
    return done.stdout.split()


def fish(scripts, *words):
    need("fish")
    line = " ".join(["graft", *words])
    done = run_command("fish", "--no-config", "-c", scripts["fish"] + f'complete -C "{line}"', code=0)
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("offered", [bash, fish])
def test_commands_and_options(scripts, options, offered):
    assert set(offered(scripts, "")) == set(options)
    assert offered(scripts, "qua") == ["quantize"]
    for command, names in options.items():
        assert set(offered(scripts, command, "--")) == {name for name in names if name.startswith("--")}
    assert offered(scripts, "verify", "--se") == ["--seeds"]


@pytest.mark.parametrize("offered", [bash, fish])
def test_words_of_a_set(scripts, options, offered):
    assert set(offered(scripts, "build", "--tensorrt", "")) == {"auto", "rtx", "full"}
    assert offered(scripts, "run", "m.onnx", "--kernels", "f") == ["functions"]
    assert set(offered(scripts, "completions", "")) == set(SHELLS)
    assert set(offered(scripts, "help", "")) >= set(options)


def test_bash_completes_lists_and_words_after_an_equals_sign(scripts):
    assert bash(scripts, "quantize", "--improve", "equalize,s") == ["equalize,smooth"]
    assert bash(scripts, "build", "--tensorrt", "=") == ["auto", "rtx", "full"]
    assert bash(scripts, "build", "--tensorrt", "=", "r") == ["rtx"]


def test_fish_completes_lists(scripts):
    assert "equalize,smooth" in fish(scripts, "quantize", "--improve", "equalize,s")


def test_bash_leaves_files_to_the_shell(scripts):
    for words in (["inspect", "m"], ["run", "-o", "m"], ["run", "-i", "image", "=", "m"]):
        assert bash(scripts, *words) == []
    done = run_command("bash", "-c", scripts["bash"] + "complete -p graft", code=0)
    assert "-o default" in done.stdout


def test_fish_offers_files(scripts, tmp_path, monkeypatch):
    need("fish")
    (tmp_path / "model.onnx").touch()
    monkeypatch.chdir(tmp_path)
    assert fish(scripts, "inspect", "mod") == ["model.onnx"]
    assert fish(scripts, "run", "-o", "mod") == ["model.onnx"]
    assert fish(scripts, "ops", "--reads", "mod") == []


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("quant\t", "quantize"),
        ("verify --see\t", "verify --seeds"),
        ("run --kernels f\t", "run --kernels functions"),
        ("quantize --improve equalize,sm\t", "quantize --improve equalize,smooth"),
        ("help conv\t", "help convert"),
        ("inspect mod\t", "inspect model.onnx"),
    ],
)
def test_zsh(scripts, tmp_path, typed, completed):
    """Types on a terminal, with a function in place of the program that records its arguments."""
    need("zsh")
    (tmp_path / "_graft").write_text(scripts["zsh"])
    (tmp_path / "model.onnx").touch()
    (tmp_path / ".zshrc").write_text(
        f"fpath=({tmp_path} $fpath)\nautoload -U compinit\ncompinit -u -D\n"
        f'graft() {{ print -r -- "$*" > {tmp_path}/called; exit }}\n'
    )
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execvpe("zsh", ["zsh", "-i"], {"PATH": os.environ["PATH"], "ZDOTDIR": str(tmp_path), "TERM": "xterm"})
    os.write(terminal, f"graft {typed}\n".encode())
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:  # the terminal closed when the shell ended
        pass
    os.waitpid(child, 0)
    assert (tmp_path / "called").read_text().strip() == completed


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_of_every_command_is_there(scripts, options, shell):
    """Checks the script without the shell: each command's part lists its options."""
    for name in set().union(*options.values()):
        there = sum(name in names for names in options.values())
        written = {
            "fish": rf"-n '__fish_seen_subcommand_from \w+'.* -{'l' if name.startswith('--') else 's'} {name.strip('-')}\b",
        }.get(shell, rf"(?m)^.*(?<![\w-]){name}(?![\w-]).*$")
        assert len(re.findall(written, scripts[shell])) >= there, name
