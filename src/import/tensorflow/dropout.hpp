// What tf.nn.dropout left in a graph that is used for inference.
#pragma once

#include <cstddef>

namespace graft::tensorflow {

class GraphDef;

/// Replaces each dropout, `x / keep * floor(keep + uniform)` of TensorFlow 1 or `where(uniform >= rate, x * scale, 0)`
/// and `x * scale * cast(uniform >= rate)` of later ones, by an Identity of x, whatever its rate: random zeros are for
/// training. Returns how many there were. What computed them stays, without a
/// reader.
std::size_t remove_dropout(GraphDef& graph);

}  // namespace graft::tensorflow
