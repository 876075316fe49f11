# Tests that every printed command works, for all networks of printed_commands.py: at least 150 commands, in 15 minutes.
# Run it by hand: ctest --test-dir build/release -L large -R cli_all_printed_commands
import shutil

import pytest
from conftest import SOURCE, needs_plugin_library
from printed_commands import all_starts, fill, kind_of, run_printed_commands, save_networks, starts_of_a_test_run

pytest.importorskip("tensorrt_rtx")


def make_folder(folder):
    folder.mkdir()
    fill(folder)
    save_networks(folder)
    for file in (SOURCE / "tests" / "golden" / "exports").iterdir():
        if file.suffix in (".onnx", ".pb"):
            shutil.copy2(file, folder)
    return folder


@needs_plugin_library
def test_every_printed_command_of_all_networks_works(tmp_path):
    printed_by, failed = run_printed_commands(make_folder(tmp_path / "all"), all_starts(), most=2000)
    assert not failed, "\n".join(failed)
    assert len(printed_by) >= 150
    # Every kind of line that is printed runs with every test run.
    of_a_test_run, _ = run_printed_commands(make_folder(tmp_path / "few"), starts_of_a_test_run())
    few = {kind_of(printed, printer) for printed, printer in of_a_test_run.items()}
    missing = {kind_of(*entry): entry for entry in printed_by.items() if kind_of(*entry) not in few}
    assert not missing, "\n".join(f"{printed}\n  printed by: {printer}" for printed, printer in missing.values())
