# Freezes a SavedModel into one .pb file with the weights inside: python freeze.py SAVED_MODEL_FOLDER FROZEN.pb
import sys

import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

loaded = tf.saved_model.load(sys.argv[1])  # stays alive, as it owns the variables
frozen = convert_variables_to_constants_v2(loaded.signatures["serving_default"])
with open(sys.argv[2], "wb") as file:
    file.write(frozen.graph.as_graph_def().SerializeToString())
