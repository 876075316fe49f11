// Removes tf.nn.dropout from a graph that is used for inference.
#pragma once

#include <cstddef>

namespace graft::tensorflow {

class GraphDef;

/// Replaces each dropout with an Identity of x, whatever its rate, because random zeros only serve training. Recognizes
/// `x / keep * floor(keep + uniform)` of TensorFlow 1, and `where(uniform >= rate, x * scale, 0)` and `x * scale *
/// cast(uniform >= rate)` of later releases. Returns the number of replaced dropouts. The nodes that computed the masks
/// stay in the graph without a reader.
std::size_t remove_dropout(GraphDef& graph);

}  // namespace graft::tensorflow
