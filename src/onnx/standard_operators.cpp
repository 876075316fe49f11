// Tables of the changes between opsets, and other facts that ONNX's schemas do not provide in a form that a program can
// use.
#include "onnx/standard_operators.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/suggest.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"

namespace graft::onnx {
namespace {

constexpr std::string_view ml_operators[] = {"ArrayFeatureExtractor",
                                             "Binarizer",
                                             "CastMap",
                                             "CategoryMapper",
                                             "DictVectorizer",
                                             "FeatureVectorizer",
                                             "Imputer",
                                             "LabelEncoder",
                                             "LinearClassifier",
                                             "LinearRegressor",
                                             "Normalizer",
                                             "OneHotEncoder",
                                             "SVMClassifier",
                                             "SVMRegressor",
                                             "Scaler",
                                             "TreeEnsemble",
                                             "TreeEnsembleClassifier",
                                             "TreeEnsembleRegressor",
                                             "ZipMap"};

// The opsets in which an operator's inputs, attributes or meaning changed, so that an older node is invalid or has
// another meaning.
struct Change {
  std::string_view op_type;
  int version;
};

constexpr Change changes[] = {
    {"Add", 7},
    {"And", 7},
    {"BatchNormalization", 7},
    {"BatchNormalization", 9},
    {"BatchNormalization", 14},
    {"Cast", 6},
    {"Clip", 11},
    {"Concat", 4},
    {"DFT", 20},
    {"Div", 7},
    {"Dropout", 7},
    {"Dropout", 10},
    {"Dropout", 12},
    {"Equal", 7},
    {"GRU", 7},
    {"Gemm", 7},
    {"GlobalLpPool", 2},
    {"Greater", 7},
    {"GridSample", 20},
    {"GroupNormalization", 21},
    {"Hardmax", 13},
    {"LSTM", 7},
    {"Less", 7},
    {"LogSoftmax", 13},
    {"LpPool", 2},
    {"Mul", 7},
    {"Or", 7},
    {"PRelu", 7},
    {"Pad", 2},
    {"Pad", 11},
    {"Pow", 7},
    {"RNN", 7},
    {"ReduceL1", 18},
    {"ReduceL2", 18},
    {"ReduceLogSum", 18},
    {"ReduceLogSumExp", 18},
    {"ReduceMax", 18},
    {"ReduceMean", 18},
    {"ReduceMin", 18},
    {"ReduceProd", 18},
    {"ReduceSum", 13},
    {"ReduceSumSquare", 18},
    {"Reshape", 5},
    {"Resize", 11},
    {"RoiAlign", 16},
    {"Scan", 9},
    {"Scatter", 11},
    {"Selu", 6},
    {"Slice", 10},
    {"Softmax", 13},
    {"Split", 13},
    {"Split", 18},
    {"Squeeze", 13},
    {"Sub", 7},
    {"Tile", 6},
    {"TopK", 10},
    {"Unsqueeze", 13},
    {"Upsample", 7},
    {"Upsample", 9},
    {"Upsample", 10},
    {"Xor", 7},
};

constexpr AttributeInput attribute_input_table[] = {
    {"Clip", "min", 1, 11},        {"Clip", "max", 2, 11},          {"Dropout", "ratio", 1, 12},
    {"Pad", "pads", 1, 11},        {"Pad", "value", 2, 11},         {"ReduceL1", "axes", 1, 18},
    {"ReduceL2", "axes", 1, 18},   {"ReduceLogSum", "axes", 1, 18}, {"ReduceLogSumExp", "axes", 1, 18},
    {"ReduceMax", "axes", 1, 18},  {"ReduceMean", "axes", 1, 18},   {"ReduceMin", "axes", 1, 18},
    {"ReduceProd", "axes", 1, 18}, {"ReduceSum", "axes", 1, 13},    {"ReduceSumSquare", "axes", 1, 18},
    {"Reshape", "shape", 1, 5},    {"Slice", "starts", 1, 10},      {"Slice", "ends", 2, 10},
    {"Slice", "axes", 3, 10},      {"Split", "split", 1, 13},       {"Squeeze", "axes", 1, 13},
    {"TopK", "k", 1, 10},          {"Unsqueeze", "axes", 1, 13},    {"Upsample", "scales", 1, 9},
};

template <class Table>
auto entries_of(const Table& table, std::string_view op_type) {
  const auto first =
      std::find_if(std::begin(table), std::end(table), [&](const auto& e) { return e.op_type == op_type; });
  const auto last = std::find_if(first, std::end(table), [&](const auto& e) { return e.op_type != op_type; });
  return std::span(first, last);
}

}  // namespace

std::int64_t first_version(std::string_view op_type) {
  const OperatorSchema* schema = find_schema(op_type);
  return schema == nullptr ? 0 : schema->since;
}

std::optional<std::string> nearest_standard_operator(std::string_view op_type) {
  std::vector<std::string> names;
  for (const OperatorSchema* schema : all_schemas()) names.emplace_back(schema->name);
  return nearest(op_type, names);
}

std::optional<std::string> standard_operator_meant(const Node& node) {
  if (is_of_onnxruntime(node)) return std::nullopt;
  const auto name = nearest_standard_operator(node.op_type);
  if (!name || *name == node.op_type) return std::nullopt;
  const OperatorSchema& schema = *find_schema(*name);
  const bool fits = node.inputs.size() >= schema.fewest_inputs && node.inputs.size() <= schema.most_inputs &&
                    node.outputs.size() <= schema.most_outputs &&
                    std::all_of(node.attributes.begin(), node.attributes.end(),
                                [&](const auto& attribute) { return schema.has_attribute(attribute.first); });
  return fits ? name : std::nullopt;
}

bool is_of_onnxruntime(const Node& node) {
  return node.domain == onnxruntime_domain || node.is("SimplifiedLayerNormalization");
}

bool may_be_of_onnxruntime(const Model& model, const Node& node) {
  return is_of_onnxruntime(node) || is_standard_operator(node.domain, node.op_type) ||
         model.find_function(node) != nullptr;
}

bool form_changed(std::string_view op_type, std::int64_t a, std::int64_t b) {
  const auto of = entries_of(changes, op_type);
  return std::any_of(of.begin(), of.end(),
                     [&](const Change& c) { return std::min(a, b) < c.version && c.version <= std::max(a, b); });
}

std::span<const AttributeInput> attribute_inputs(std::string_view op_type) {
  return entries_of(attribute_input_table, op_type);
}

bool is_standard_operator(std::string_view domain, std::string_view op_type) {
  if (domain.empty() || domain == "ai.onnx") return first_version(op_type) != 0;
  return domain == "ai.onnx.ml" &&
         std::find(std::begin(ml_operators), std::end(ml_operators), op_type) != std::end(ml_operators);
}

std::optional<AttributeValue> default_attribute(std::string_view op_type, std::string_view attribute,
                                                std::int64_t opset) {
  const bool is_softmax = op_type == "Softmax" || op_type == "LogSoftmax" || op_type == "Hardmax";
  if (is_softmax && attribute == "axis" && opset != 0 && opset < 13) return std::int64_t{1};
  if (op_type == "Resize" && opset == 10 && attribute == "coordinate_transformation_mode")
    return std::string("asymmetric");
  if (op_type == "Resize" && opset == 10 && attribute == "nearest_mode") return std::string("floor");
  const OperatorSchema* schema = find_schema(op_type);
  return schema == nullptr ? std::nullopt : schema->attribute_default(attribute);
}

}  // namespace graft::onnx
