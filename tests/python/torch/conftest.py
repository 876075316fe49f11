# Adds the folder of shared modules to the import path. tests/python itself cannot be added: its folder `torch` would
# hide PyTorch.
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "arrays"))
