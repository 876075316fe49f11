# chosen_scores.py FILE.onnx: the scores above one half, as exporters write scores[scores > 0.5].
import sys

import onnx

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
chosen_scores (float[n] scores) => (float[count] chosen) <float limit = {0.5}, int64[1] axis = {0}> {
  is_high = Greater (scores, limit)
  indices = NonZero (is_high)
  rows = Squeeze (indices, axis)
  chosen = Gather <axis = 0> (scores, rows)
}
"""

onnx.save(onnx.parser.parse_model(TEXT), sys.argv[1])
