# Lets the tests import what they share. It is in a folder of its own: beside it `torch` is a folder too.
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "arrays"))
