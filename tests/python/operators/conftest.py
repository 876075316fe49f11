# Adds the folder of shared modules to the import path. The modules have a folder of their own because this one's parent
# has a folder `torch`.
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "arrays"))
