// Converts Caffe's two files to a Model: upgrades old layers, leaves out layers for training, finds the weights of each
// layer by its name, and converts layer by layer.
#include "import/caffe/import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "caffe/caffe.pb.h"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "import/caffe/layer_converter.hpp"
#include "import/messages.hpp"
#include "onnx/functions.hpp"
#include "onnx/mapped_file.hpp"
#include "onnx/opset.hpp"
#include "onnx/protobuf_log.hpp"
#include "onnx/shape_inference.hpp"

namespace graft {
namespace caffe {
namespace {

/// A line and a column in a text; both are counted from 0.
using Place = std::pair<int, int>;

struct UnknownField {
  Place place;
  std::string message;  ///< The type of the message that contains the field.
  std::string field;
};

/// Returns whether a field only concerns training, reading data or the choice of an algorithm, so that the deployed
/// network does not depend on it.
bool is_of_training(std::string_view field) {
  constexpr std::array<std::string_view, 45> fields = {
      "accuracy_param",
      "annotated_data_param",
      "bias_filler",
      "blob_share_mode",
      "blobs_lr",
      "contrastive_loss_param",
      "convolution_algo_seeker",
      "cudnn_convolution_algo_seeker",
      "debug_info",
      "detection_evaluate_param",
      "dummy_data_param",
      "engine",
      "filler",
      "force_backward",
      "force_nd_im2col",
      "hdf5_data_param",
      "hdf5_output_param",
      "frozen",
      "hinge_loss_param",
      "image_data_param",
      "infogain_loss_param",
      "loss_param",
      "loss_weight",
      "momentum",
      "moving_average_fraction",
      "multibox_loss_param",
      "param",
      "propagate_down",
      "quantization_param",
      "save_file",
      "save_output_param",
      "scale_filler",
      "shift_filler",
      "slope_filler",
      "smooth_l1_loss_param",
      "stable_prod_grad",
      "variance_filler",
      "video_data_param",
      "visualize",
      "visualize_threshold",
      "visualizer_param",
      "weight_decay",
      "weight_filler",
      "window_data_param",
      "workspace_limit",
  };
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

/// Collects protobuf's messages about a text: the first error, and the fields that are not in the schema.
class Complaints final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
  /// Parses a warning such as `Message type "graft.caffe.PoolingParameter" has no field named "x".`
  void AddWarning(int line, int column, const std::string& message) override {
    std::vector<std::string> quoted;
    for (std::size_t begin = message.find('"'); begin != std::string::npos; begin = message.find('"', begin)) {
      const std::size_t end = message.find('"', begin + 1);
      if (end == std::string::npos) break;
      quoted.push_back(message.substr(begin + 1, end - begin - 1));
      begin = end + 1;
    }
    if (quoted.size() != 2 || is_of_training(quoted[1])) return;
    unknown_.push_back({{line, column}, quoted[0].substr(quoted[0].rfind('.') + 1), quoted[1]});
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::vector<UnknownField>& unknown() { return unknown_; }

 private:
  std::string text_;
  std::vector<UnknownField> unknown_;
};

/// A parsed network, its unknown fields, and the position of each layer in the text.
struct Text {
  NetParameter network;
  std::vector<UnknownField> unknown;
  std::vector<Place> layers;  ///< The position at which each layer begins.
};

Text parse_network(const std::string& text, const std::string& name) {
  if (text.find('\0') != std::string::npos) {
    throw Error(
        fmt::format("{}: this is not the text of a Caffe network, because the file is binary; pass the network "
                    "(.prototxt) first and its weights (.caffemodel) second",
                    name));
  }
  google::protobuf::TextFormat::Parser parser;
  google::protobuf::TextFormat::ParseInfoTree places;
  Complaints complaints;
  parser.RecordErrorsTo(&complaints);
  parser.WriteLocationsTo(&places);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(32);
  Text result;
  if (!parser.ParseFromString(text, &result.network)) {
    throw Error(fmt::format("{}: this is not the text of a Caffe network: {}", name, complaints.text()));
  }
  result.unknown = std::move(complaints.unknown());
  const bool is_old = result.network.layers_size() != 0;
  const int count = is_old ? result.network.layers_size() : result.network.layer_size();
  const auto* field = NetParameter::descriptor()->FindFieldByName(is_old ? "layers" : "layer");
  for (int i = 0; i < count; ++i) {
    const auto place = places.GetLocation(field, i);
    result.layers.emplace_back(place.line, place.column);
  }
  return result;
}

/// Returns the current name of a V1 layer type; empty for a type that no longer exists.
std::string type_of(V1LayerParameter::LayerType type) {
  switch (type) {
    case V1LayerParameter::ABSVAL: return "AbsVal";
    case V1LayerParameter::ACCURACY: return "Accuracy";
    case V1LayerParameter::ARGMAX: return "ArgMax";
    case V1LayerParameter::BNLL: return "BNLL";
    case V1LayerParameter::CONCAT: return "Concat";
    case V1LayerParameter::CONTRASTIVE_LOSS: return "ContrastiveLoss";
    case V1LayerParameter::CONVOLUTION: return "Convolution";
    case V1LayerParameter::DATA: return "Data";
    case V1LayerParameter::DECONVOLUTION: return "Deconvolution";
    case V1LayerParameter::DROPOUT: return "Dropout";
    case V1LayerParameter::DUMMY_DATA: return "DummyData";
    case V1LayerParameter::EUCLIDEAN_LOSS: return "EuclideanLoss";
    case V1LayerParameter::ELTWISE: return "Eltwise";
    case V1LayerParameter::EXP: return "Exp";
    case V1LayerParameter::FLATTEN: return "Flatten";
    case V1LayerParameter::HDF5_DATA: return "HDF5Data";
    case V1LayerParameter::HDF5_OUTPUT: return "HDF5Output";
    case V1LayerParameter::HINGE_LOSS: return "HingeLoss";
    case V1LayerParameter::IM2COL: return "Im2col";
    case V1LayerParameter::IMAGE_DATA: return "ImageData";
    case V1LayerParameter::INFOGAIN_LOSS: return "InfogainLoss";
    case V1LayerParameter::INNER_PRODUCT: return "InnerProduct";
    case V1LayerParameter::LRN: return "LRN";
    case V1LayerParameter::MEMORY_DATA: return "MemoryData";
    case V1LayerParameter::MULTINOMIAL_LOGISTIC_LOSS: return "MultinomialLogisticLoss";
    case V1LayerParameter::MVN: return "MVN";
    case V1LayerParameter::POOLING: return "Pooling";
    case V1LayerParameter::POWER: return "Power";
    case V1LayerParameter::RELU: return "ReLU";
    case V1LayerParameter::SIGMOID: return "Sigmoid";
    case V1LayerParameter::SIGMOID_CROSS_ENTROPY_LOSS: return "SigmoidCrossEntropyLoss";
    case V1LayerParameter::SILENCE: return "Silence";
    case V1LayerParameter::SOFTMAX: return "Softmax";
    case V1LayerParameter::SOFTMAX_LOSS: return "SoftmaxWithLoss";
    case V1LayerParameter::SPLIT: return "Split";
    case V1LayerParameter::SLICE: return "Slice";
    case V1LayerParameter::TANH: return "TanH";
    case V1LayerParameter::WINDOW_DATA: return "WindowData";
    case V1LayerParameter::THRESHOLD: return "Threshold";
    case V1LayerParameter::NONE: return "";
  }
  return "";
}

void renew(V1LayerParameter& old, LayerParameter& layer, const std::string& file) {
  if (old.has_layer()) {
    throw Error(
        fmt::format("{}: layer '{}' uses Caffe's first format (V0); upgrade the file with Caffe's "
                    "upgrade_net_proto_text or upgrade_net_proto_binary",
                    file, old.layer().name()));
  }
  layer.set_name(old.name());
  layer.set_type(type_of(old.type()));
  layer.mutable_bottom()->Swap(old.mutable_bottom());
  layer.mutable_top()->Swap(old.mutable_top());
  layer.mutable_blobs()->Swap(old.mutable_blobs());
  layer.mutable_include()->Swap(old.mutable_include());
  layer.mutable_exclude()->Swap(old.mutable_exclude());
  if (old.has_argmax_param()) *layer.mutable_argmax_param() = old.argmax_param();
  if (old.has_concat_param()) *layer.mutable_concat_param() = old.concat_param();
  if (old.has_convolution_param()) *layer.mutable_convolution_param() = old.convolution_param();
  if (old.has_data_param()) *layer.mutable_data_param() = old.data_param();
  if (old.has_transform_param()) *layer.mutable_transform_param() = old.transform_param();
  if (old.has_dropout_param()) *layer.mutable_dropout_param() = old.dropout_param();
  if (old.has_eltwise_param()) *layer.mutable_eltwise_param() = old.eltwise_param();
  if (old.has_exp_param()) *layer.mutable_exp_param() = old.exp_param();
  if (old.has_inner_product_param()) *layer.mutable_inner_product_param() = old.inner_product_param();
  if (old.has_lrn_param()) *layer.mutable_lrn_param() = old.lrn_param();
  if (old.has_memory_data_param()) *layer.mutable_memory_data_param() = old.memory_data_param();
  if (old.has_mvn_param()) *layer.mutable_mvn_param() = old.mvn_param();
  if (old.has_pooling_param()) *layer.mutable_pooling_param() = old.pooling_param();
  if (old.has_power_param()) *layer.mutable_power_param() = old.power_param();
  if (old.has_relu_param()) *layer.mutable_relu_param() = old.relu_param();
  if (old.has_slice_param()) *layer.mutable_slice_param() = old.slice_param();
  if (old.has_softmax_param()) *layer.mutable_softmax_param() = old.softmax_param();
  if (old.has_threshold_param()) *layer.mutable_threshold_param() = old.threshold_param();
}

void renew(NetParameter& network, const std::string& file) {
  if (network.layers_size() != 0 && network.layer_size() != 0) {
    throw Error(fmt::format(
        "{}: the network has both `layers` (old format) and `layer` (new format); write all layers in the new format",
        file));
  }
  for (V1LayerParameter& old : *network.mutable_layers()) renew(old, *network.add_layer(), file);
  network.clear_layers();
}

/// Numbers that stand for protobuf's message types in `wire_fields`, the table of the fields of a NetParameter that
/// contain weights, in the old and the new format. 0 is the message of the whole file.
constexpr int net_parameter = 0;
constexpr int layer_parameter = 1;
constexpr int v1_layer_parameter = 2;
constexpr int blob_proto = 3;
constexpr std::array wire_fields = {
    onnx::WireField{net_parameter, 100, layer_parameter}, onnx::WireField{net_parameter, 2, v1_layer_parameter},
    onnx::WireField{layer_parameter, 7, blob_proto}, onnx::WireField{v1_layer_parameter, 6, blob_proto},
    onnx::WireField{blob_proto, 5, onnx::wire_data}};

/// Parsed weights. Large blobs are not copied from the file.
struct Weights {
  NetParameter network;
  onnx::Pieces pieces;
};

/// Parses a weights file from memory. `name` is the file's name in messages, and `owner` keeps the bytes alive. Throws
/// Error with advice for other kinds of files that users pass by mistake.
Weights parse_weights(std::string_view bytes, const std::string& name, std::shared_ptr<const void> owner) {
  using namespace std::string_view_literals;
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(fmt::format("{}: the file has {} bytes; a protobuf file holds at most 2 GiB", name, bytes.size()));
  }
  const auto size = static_cast<int>(bytes.size());
  if (bytes.starts_with("\x89HDF\r\n\x1a\n"sv)) {
    throw Error(
        fmt::format("{}: this is an HDF5 file; save the weights as a .caffemodel in protobuf (in Caffe: "
                    "net.save('network.caffemodel'))",
                    name));
  }
  NetParameter trained;
  auto cut = cut_large_fields(bytes, wire_fields);
  const onnx::ProtobufLog log;
  if (!cut || !trained.ParsePartialFromString(cut->rest)) {
    const std::string_view start = bytes.substr(0, 512);
    const bool is_text = std::none_of(start.begin(), start.end(), [](char c) { return c >= 0 && c < '\t'; });
    throw Error(fmt::format(
        "{}: this is not a .caffemodel{}", name,
        is_text ? ", because the file is text; pass the network (.prototxt) first and the weights (.caffemodel) second"
                : fmt::format(", or it is truncated: its {} bytes cannot be parsed as the protobuf of a network{}\n{}",
                              size, log.reason(), onnx::fetch_again)));
  }
  if (!bytes.empty() && trained.layer_size() == 0 && trained.layers_size() == 0) {
    BlobProto blob;
    if (blob.ParsePartialFromArray(bytes.data(), size) && (blob.data_size() != 0 || blob.double_data_size() != 0)) {
      throw Error(
          fmt::format("{}: this is a single blob, the format of the mean of the training images (.binaryproto); pass a "
                      ".caffemodel. Subtract the mean from the images before running the network",
                      name));
    }
    throw Error(fmt::format(
        "{}: this is not a .caffemodel, because it has no layer; pass the file with the trained weights of the network",
        name));
  }
  renew(trained, name);
  return {std::move(trained), onnx::Pieces(std::move(cut->pieces), std::move(owner))};
}

/// Returns whether a rule includes a layer in the deployed network, as Caffe decides it (Net::StateMeetsRule). The
/// phase is TEST, and the level is the one that the file sets. The stages are those of the file and "deploy", which
/// DIGITS uses in files that describe both the training network and the deployed network.
bool meets(const NetState& state, const NetStateRule& rule) {
  const auto is_stage = [&](const std::string& stage) {
    return stage == "deploy" || std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
  };
  return (!rule.has_phase() || rule.phase() == TEST) && (!rule.has_min_level() || state.level() >= rule.min_level()) &&
         (!rule.has_max_level() || state.level() <= rule.max_level()) &&
         std::all_of(rule.stage().begin(), rule.stage().end(), is_stage) &&
         std::none_of(rule.not_stage().begin(), rule.not_stage().end(), is_stage);
}

bool is_for_testing(const NetState& state, const LayerParameter& layer) {
  const auto is_met = [&](const NetStateRule& rule) { return meets(state, rule); };
  if (layer.include_size() != 0 && layer.exclude_size() != 0) {
    throw Error(fmt::format("layer '{}' has both `include` and `exclude`; delete one of the two", layer.name()));
  }
  if (layer.has_phase() && layer.phase() == TRAIN) return false;
  if (layer.include_size() != 0) return std::any_of(layer.include().begin(), layer.include().end(), is_met);
  return std::none_of(layer.exclude().begin(), layer.exclude().end(), is_met);
}

/// Returns whether a layer reads data. The names of layers that read files end in Data, also in branches of Caffe
/// (DenseImageData, VideoData).
bool gives_data(const std::string& type) { return type == "Input" || type.ends_with("Data"); }

/// Returns whether a layer only serves training or reporting, such as a loss, an accuracy or a written file, so that a
/// deployed network does not need it. SoftmaxWithLoss is kept as a Softmax.
bool is_left_out(const std::string& type) {
  constexpr std::array<std::string_view, 6> types = {"Accuracy",   "BoxAnnotatorOHEM", "DetectionEvaluate",
                                                     "HDF5Output", "MultiAccuracy",    "Silence"};
  return std::find(types.begin(), types.end(), type) != types.end() ||
         (type.ends_with("Loss") && type != "SoftmaxWithLoss");
}

const LayerEntry* find_converter(std::string_view type) {
  for (const auto& entries : {layer_entries(), branch_layer_entries(), detection_layer_entries()}) {
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.type == type; });
    if (found != entries.end()) return &*found;
  }
  return nullptr;
}

std::string default_of(const google::protobuf::FieldDescriptor& field) {
  using Field = google::protobuf::FieldDescriptor;
  if (!field.has_default_value()) return "";
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32: return fmt::format("{}", field.default_value_int32());
    case Field::CPPTYPE_UINT32: return fmt::format("{}", field.default_value_uint32());
    case Field::CPPTYPE_FLOAT: return fmt::format("{}", field.default_value_float());
    case Field::CPPTYPE_BOOL: return field.default_value_bool() ? "true" : "false";
    case Field::CPPTYPE_ENUM: return field.default_value_enum()->name();
    default: return "";
  }
}

/// Appends the fields of a message to `fields`, including those of nested messages. `prefix` precedes each name; the
/// name of a field of a nested message is `outer.inner`.
// NOLINTNEXTLINE(misc-no-recursion): as deep as the schema
void add_fields(const google::protobuf::Descriptor& message, const std::string& prefix,
                std::vector<CaffeField>& fields) {
  for (int i = 0; i < message.field_count(); ++i) {
    const auto& field = *message.field(i);
    if (field.message_type() != nullptr) {
      add_fields(*field.message_type(), prefix + field.name() + ".", fields);
    } else {
      fields.push_back({prefix + field.name(), default_of(field)});
    }
  }
}

class Importer {
 public:
  Importer(Text& text, NetParameter& weights, const onnx::Pieces& pieces, std::string source,
           std::string weights_source, const CaffeOptions& options)
      : text_(text),
        network_(text.network),
        pieces_(pieces),
        source_(std::move(source)),
        weights_source_(std::move(weights_source)),
        options_(options) {
    for (LayerParameter& layer : *weights.mutable_layer()) {
      if (layer.blobs_size() != 0) trained_.emplace(layer.name(), &layer);
    }
  }

  onnx::Model run() {
    model_.source = source_;
    model_.producer_name = "graft";
    model_.main->name = network_.name().empty() ? "caffe" : network_.name();
    model_.main->opset_imports[""] = onnx::working_opset;
    try {
      origin_.format = "Caffe network";
      origin_.unit = "layer";
      origin_.nodes = static_cast<std::size_t>(network_.layer_size());
      choose_layers();
      check_layers();
      add_inputs();
      for (std::size_t done = 0; done < layers_.size(); ++done) {
        if (options_.progress) options_.progress(done, layers_.size());
        convert(*layers_[done]);
      }
      add_outputs();
      for (const auto& [name, shape] : options_.input_shapes) {
        const onnx::Value* value = model_.graph().find_local(name);
        if (value == nullptr || !value->is_input) {
          throw Error(fmt::format("{}: the network has no input '{}'; {}", setting_name(Setting::input_shapes), name,
                                  inputs_text(model_.graph())));
        }
      }
      model_.graph().remove_dead();
      attach_functions(model_);
      infer_shapes(model_);
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::bad_input) throw;
      throw Error(fmt::format("{}: {}", source_, error.what()));
    }
    if (options_.origin != nullptr) *options_.origin = std::move(origin_);
    return std::move(model_);
  }

 private:
  void choose_layers() {
    for (int i = 0; i < network_.layer_size(); ++i) {
      LayerParameter& layer = *network_.mutable_layer(i);
      if (!is_for_testing(network_.state(), layer)) {
        origin_.leave_out(layer.type(), "it is for training");
        continue;
      }
      // A blob that the network discards with a Silence layer is not an output.
      if (layer.type() == "Silence") silenced_.insert(layer.bottom().begin(), layer.bottom().end());
      if (is_left_out(layer.type())) {
        origin_.leave_out(layer.type(), "it is for training");
        continue;
      }
      layers_.push_back(&layer);
      chosen_.insert(i);
    }
    for (const LayerParameter* layer : layers_) {
      const bool is_loss = layer->type() == "SoftmaxWithLoss";  // The second bottom is the label.
      const int count = is_loss ? std::min(1, layer->bottom_size()) : layer->bottom_size();
      needed_.insert(layer->bottom().begin(), layer->bottom().begin() + count);
    }
    if (layers_.empty())
      throw Error(
          "the file has no layer for inference: it is empty, has other text, or has only layers for training; pass the "
          "text of a deployed Caffe network, such as deploy.prototxt");
    leave_out_unneeded();
  }

  /// Removes the layers that the requested outputs do not depend on; removed layers may have unknown types. Visits the
  /// layers backwards, because layers that work in place output the same blob several times.
  void leave_out_unneeded() {
    const auto gives = [](const LayerParameter& layer, const std::string& blob) {
      return std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end();
    };
    std::set<std::string> needed(options_.outputs.begin(), options_.outputs.end());
    const bool all_known = std::all_of(needed.begin(), needed.end(), [&](const std::string& blob) {
      return std::any_of(layers_.begin(), layers_.end(), [&](const auto* layer) { return gives(*layer, blob); });
    });
    if (needed.empty() || !all_known) return;
    std::vector<LayerParameter*> kept;
    for (auto it = layers_.rbegin(); it != layers_.rend(); ++it) {
      const LayerParameter& layer = **it;
      const bool is_needed =
          std::any_of(layer.top().begin(), layer.top().end(), [&](const auto& top) { return needed.contains(top); });
      if (!is_needed) {
        origin_.leave_out(layer.type(), "no output needs it");
        continue;
      }
      for (const std::string& top : layer.top()) needed.erase(top);
      needed.insert(layer.bottom().begin(), layer.bottom().end());
      kept.push_back(*it);
    }
    layers_.assign(kept.rbegin(), kept.rend());
    std::erase_if(
        chosen_, [&](int i) { return std::find(layers_.begin(), layers_.end(), &network_.layer(i)) == layers_.end(); });
  }

  /// Throws Error with all faults of the layers before any layer is converted.
  void check_layers() {
    std::map<std::string, std::vector<std::string>> unknown;
    std::vector<std::string> python;
    std::vector<std::string> untrained;
    for (LayerParameter* layer : layers_) {
      if (gives_data(layer->type())) continue;
      const LayerEntry* entry = find_converter(layer->type());
      if (layer->type() == "Python") {
        python.push_back(
            fmt::format("{} ({}.{})", layer->name(), layer->python_param().module(), layer->python_param().layer()));
        continue;
      }
      if (entry == nullptr) {
        unknown[layer->type()].push_back(layer->name());
        continue;
      }
      const auto found = trained_.find(layer->name());
      if (found != trained_.end() && layer->blobs_size() == 0) {
        layer->mutable_blobs()->Swap(found->second->mutable_blobs());
      }
      // A second bottom takes the place of the trained factors.
      const bool is_factor = (layer->type() == "Scale" || layer->type() == "Bias") && layer->bottom_size() == 1;
      const std::size_t needed = is_factor ? 1 : entry->blobs;
      if (static_cast<std::size_t>(layer->blobs_size()) < needed) untrained.push_back(layer->name());
    }
    std::string text;
    if (!unknown.empty()) text += "these layers have types that Graft does not support:";
    for (const auto& [type, names] : unknown) text += fmt::format("\n  {} at {}", type, fmt::join(names, ", "));
    if (!unknown.empty()) {
      text += fmt::format("\n  To leave these layers out, end the network before them with {}",
                          setting_name(Setting::kept_outputs));
    }
    if (!python.empty()) {
      text += fmt::format(
          "{}these layers are written in Python, and the network does not contain their code: {}\n  Replace them with "
          "layers that Graft supports (rpn.proposal_layer with Proposal and proposal_param), or end the network before "
          "them with {}",
          text.empty() ? "" : "\n", fmt::join(python, ", "), setting_name(Setting::kept_outputs));
    }
    if (const std::string fields = unknown_fields(); !fields.empty()) {
      text += fmt::format(
          "{}these fields are unknown:{}\n  Correct their names, or delete the fields that do not change the result",
          text.empty() ? "" : "\n", fields);
    }
    if (!text.empty()) throw Error(text);
    if (!untrained.empty()) {
      throw Error(fmt::format(
          "{} {} {} no weights {}", untrained.size() == 1 ? "layer" : "layers", fmt::join(untrained, ", "),
          untrained.size() == 1 ? "has" : "have",
          weights_source_.empty()
              ? "in the network's file; pass the .caffemodel as the second file"
              : fmt::format("in {}; check that this file belongs to the network: the names of the layers must be equal",
                            weights_source_)));
    }
    note_unused_weights();
  }

  /// Returns a line for each unknown field of the layers that are converted, for a message; empty if there is no such
  /// field. Unknown fields of other layers have no effect.
  [[nodiscard]] std::string unknown_fields() const {
    std::string text;
    for (const UnknownField& field : text_.unknown) {
      const auto after = std::upper_bound(text_.layers.begin(), text_.layers.end(), field.place);
      const auto index = static_cast<int>(after - text_.layers.begin()) - 1;
      std::string where;
      if (field.message != "NetParameter" && index >= 0) {
        const LayerParameter& layer = network_.layer(index);
        if (!chosen_.contains(index) || gives_data(layer.type()) || find_converter(layer.type()) == nullptr) continue;
        where = fmt::format(", in layer '{}' ({})", layer.name(), layer.type());
      }
      text += fmt::format("\n  line {}: `{}` of {}{}", field.place.first + 1, field.field, field.message, where);
    }
    return text;
  }

  void note_unused_weights() {
    std::unordered_set<std::string> names;
    for (const LayerParameter& layer : network_.layer()) names.insert(layer.name());
    std::vector<std::string> unused;
    for (const auto& [name, layer] : trained_) {
      if (!names.contains(name)) unused.push_back(name);
    }
    if (unused.empty()) return;
    std::sort(unused.begin(), unused.end());
    const std::size_t count = unused.size();
    constexpr std::size_t most = 8;
    if (count > most) unused.resize(most);
    origin_.notes.push_back(fmt::format("{} has weights for {} {} that the network does not have: {}{}",
                                        weights_source_, count, count == 1 ? "layer" : "layers",
                                        fmt::join(unused, ", "), count > most ? " ..." : ""));
  }

  void add_input(const std::string& name, std::optional<Shape> shape, const std::string& example = "1x3x224x224") {
    if (name.empty()) throw Error("an input of the network has no name; name it in `input`, or in `top` of its layer");
    const auto given = options_.input_shapes.find(name);
    if (given != options_.input_shapes.end()) shape = given->second;
    if (!shape)
      throw Error(fmt::format("the input '{}' has no shape; set it with {} {}:{}", name,
                              setting_name(Setting::input_shapes), name, example));
    if (blobs_.contains(name))
      throw Error(fmt::format("two inputs have the name '{}'; every input needs a name of its own", name));
    onnx::Value* value = model_.graph().add_input(name);
    value->type = onnx::ElementType::f32;
    value->shape = std::move(shape);
    blobs_[name] = value;
  }

  /// Returns the shape of the images that a layer reads from a database, such as "1x3x224x224", for messages.
  static std::string data_shape(const LayerParameter& layer) {
    const TransformationParameter& p = layer.transform_param();
    const std::uint32_t side = p.has_crop_size() ? p.crop_size() : layer.data_param().crop_size();
    const bool is_gray = p.force_gray() || p.mean_value_size() == 1;
    return fmt::format("{}x{}x{}", layer.data_param().has_batch_size() ? layer.data_param().batch_size() : 1,
                       is_gray ? 1 : 3, side == 0 ? "224x224" : fmt::format("{}x{}", side, side));
  }

  static Shape shape_of(const BlobShape& blob) {
    Shape shape;
    if (static_cast<std::size_t>(blob.dim_size()) > onnx::highest_rank) {
      throw Error(fmt::format("an input of the network has {} dimensions; it may have at most {}", blob.dim_size(),
                              onnx::highest_rank));
    }
    for (const std::int64_t dim : blob.dim()) {
      if (dim < 1)
        throw Error(
            fmt::format("an input of the network has the dimension {}; every dimension must be at least 1", dim));
      shape.emplace_back(dim);
    }
    return shape;
  }

  /// Adds the inputs that the network itself declares. Inputs that are layers are added with the layers.
  void add_inputs() {
    if (network_.input_dim_size() != 0 && network_.input_dim_size() != 4 * network_.input_size()) {
      throw Error(fmt::format(
          "the network has {} fields `input_dim` and {} fields `input`; there must be 4 `input_dim` for each `input`",
          network_.input_dim_size(), network_.input_size()));
    }
    if (network_.input_shape_size() > 1 && network_.input_shape_size() != network_.input_size()) {
      throw Error(
          fmt::format("the network has {} fields `input_shape` and {} fields `input`; there must be one `input_shape` "
                      "for all inputs, or one for each `input`",
                      network_.input_shape_size(), network_.input_size()));
    }
    for (int i = 0; i < network_.input_size(); ++i) {
      std::optional<Shape> shape;
      if (network_.input_shape_size() != 0) {
        shape = shape_of(network_.input_shape(std::min(i, network_.input_shape_size() - 1)));
      } else if (network_.input_dim_size() >= 4 * (i + 1)) {
        BlobShape dims;
        for (int axis = 0; axis < 4; ++axis) dims.add_dim(network_.input_dim(4 * i + axis));
        shape = shape_of(dims);
      }
      add_input(network_.input(i), shape);
    }
  }

  void add_data(const LayerParameter& layer) {
    for (int i = 0; i < layer.top_size(); ++i) {
      std::optional<Shape> shape;
      const auto& shapes = layer.input_param().shape();
      if (shapes.size() > 1 && shapes.size() != layer.top_size()) {
        throw Error(
            fmt::format("layer '{}' ({}): `shape` occurs {} times for {} tops; it must occur once for all tops, or "
                        "once for each top",
                        layer.name(), layer.type(), shapes.size(), layer.top_size()));
      }
      if (layer.has_input_param() && !shapes.empty()) shape = shape_of(shapes[std::min(i, shapes.size() - 1)]);
      if (layer.has_memory_data_param() && i == 0) {
        const MemoryDataParameter& p = layer.memory_data_param();
        BlobShape dims;
        for (const std::uint32_t dim : {p.batch_size(), p.channels(), p.height(), p.width()}) dims.add_dim(dim);
        shape = shape_of(dims);
      }
      // Labels are read only by layers that are left out, so their shape may be missing.
      if (!shape && !options_.input_shapes.contains(layer.top(i)) && !needed_.contains(layer.top(i))) continue;
      add_input(layer.top(i), shape, data_shape(layer));
    }
  }

  void convert(LayerParameter& layer) {
    if (layer.name().empty()) {
      throw Error(fmt::format("a layer of type {} has no name; set its `name`", layer.type()));
    }
    if (!names_.insert(layer.name()).second)
      throw Error(fmt::format("two layers have the name '{}'; every layer needs a name of its own", layer.name()));
    if (gives_data(layer.type())) {
      add_data(layer);
      return;
    }
    std::vector<onnx::Value*> inputs;
    for (const std::string& bottom : layer.bottom()) {
      if (layer.type() == "SoftmaxWithLoss" && !inputs.empty()) break;  // The second bottom is the label.
      const auto found = blobs_.find(bottom);
      if (found == blobs_.end()) {
        throw Error(fmt::format(
            "layer '{}' ({}): the layer reads '{}' as a bottom, but no earlier layer has a top of this name",
            layer.name(), layer.type(), bottom));
      }
      inputs.push_back(found->second);
      read_.insert(bottom);
    }
    LayerConverter converter(layer, pieces_, model_.graph(), contents_, budget_, inputs);
    try {
      find_converter(layer.type())->convert(converter);
    } catch (const Error& error) {
      const std::string text = error.what();
      if (error.kind() != Error::Kind::bad_input || text.starts_with("layer '")) throw;
      converter.fail(text);
    }
    if (const std::size_t unread = converter.unread_blobs(); unread != 0) {
      converter.fail(
          fmt::format("it has {} blobs of weights, but its parameters do not use {} of them; check that the "
                      ".caffemodel belongs to this network, and check parameters such as `bias_term`",
                      layer.blobs_size(), unread));
    }
    if (const onnx::Value* unread = converter.unread_input(); unread != nullptr) {
      converter.fail(
          fmt::format("it has {} bottoms, but the conversion of its type does not use '{}'; delete this `bottom` if "
                      "the result of the layer does not depend on it",
                      inputs.size(), unread->name));
    }
    const std::vector<onnx::Value*>& results = converter.results();
    if (!inputs.empty() && !results.empty() && results[0] == inputs[0]) {
      origin_.leave_out(layer.type(), "it copies its input");
    } else {
      ++origin_.operators[layer.type()];
    }
    for (int i = 0; i < layer.top_size(); ++i) {
      if (static_cast<std::size_t>(i) >= results.size() || results[static_cast<std::size_t>(i)] == nullptr) {
        converter.fail(fmt::format("it has {} tops, but the conversion of its type computes only {}", layer.top_size(),
                                   results.size()));
      }
      if (layer.top(i).empty()) converter.fail("one of its tops has no name; set `top` to a name");
      set_blob(layer, layer.top(i), results[static_cast<std::size_t>(i)]);
    }
  }

  void set_blob(const LayerParameter& layer, const std::string& blob, onnx::Value* value) {
    onnx::Graph& graph = model_.graph();
    const auto before = blobs_.find(blob);
    const bool in_place = before != blobs_.end();
    if (in_place && before->second != value && before->second->name == blob && !before->second->is_input) {
      graph.rename(*before->second, graph.unique_name(fmt::format("{}_before_{}", blob, layer.name())));
      ++origin_.renamed;
    }
    const bool is_own = value->producer != nullptr && value->name.starts_with(layer.name() + ":");
    if (is_own && graph.find_local(blob) == nullptr) {
      graph.rename(*value, blob);
      if (value->output_index == 0 && named_.insert(layer.name()).second) value->producer->name = layer.name();
    }
    blobs_[blob] = value;
    if (given_.insert(blob).second) order_.push_back(blob);
    read_.erase(blob);  // Earlier readers read the blob before this layer.
  }

  void add_outputs() {
    std::vector<std::string> outputs = options_.outputs;
    for (const std::string& output : outputs) {
      if (!blobs_.contains(output)) {
        throw Error(fmt::format("the requested output '{}' is not a blob of the network{}", output,
                                did_you_mean(output, order_)));
      }
    }
    if (outputs.empty()) {
      for (const std::string& blob : order_) {
        if (!read_.contains(blob) && !silenced_.contains(blob)) outputs.push_back(blob);
      }
    }
    if (outputs.empty()) {
      throw Error(
          fmt::format("the network has no output, because no layer computes a top that no other layer reads; select an "
                      "output with {}",
                      setting_name(Setting::kept_outputs)));
    }
    onnx::Graph& graph = model_.graph();
    for (const std::string& name : outputs) {
      onnx::Value* value = blobs_.at(name);
      if (value->name != name || value->is_input || value->is_output() || value->initializer) {
        value = graph.add_node("Identity", {value}, {graph.find_local(name) == nullptr ? name : name + "_output"})
                    ->output();
      }
      graph.add_output(*value);
    }
  }

  Text& text_;
  NetParameter& network_;
  const onnx::Pieces& pieces_;
  std::string source_;
  std::string weights_source_;
  const CaffeOptions& options_;
  std::unordered_map<std::string, LayerParameter*> trained_;
  std::vector<LayerParameter*> layers_;
  std::set<int> chosen_;  // the indices of these layers in the network
  std::unordered_map<std::string, onnx::Value*> blobs_;
  std::unordered_set<std::string> needed_;  // the blobs that a layer reads
  std::unordered_set<std::string> given_;   // the blobs that a layer outputs
  std::vector<std::string> order_;          // the same, in order
  std::set<std::string> read_;
  std::set<std::string> silenced_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> named_;  // the layers whose name a node has
  onnx::ContentsMap contents_;
  ConstantBudget budget_;
  report::Origin origin_;
  onnx::Model model_;
};

}  // namespace
}  // namespace caffe

namespace {
constexpr std::size_t most_text = std::size_t{64} << 20U;
}

std::vector<CaffeLayer> caffe_layers() {
  std::vector<CaffeLayer> result;
  for (const auto& entries :
       {caffe::layer_entries(), caffe::branch_layer_entries(), caffe::detection_layer_entries()}) {
    for (const caffe::LayerEntry& entry : entries) {
      CaffeLayer layer{entry.type, entry.parameters, {}, entry.blobs, entry.doc};
      if (!entry.parameters.empty()) {
        const auto* field = caffe::LayerParameter::descriptor()->FindFieldByName(std::string(entry.parameters));
        if (field == nullptr) throw Error(Error::Kind::internal, fmt::format("no field {}", entry.parameters));
        caffe::add_fields(*field->message_type(), "", layer.parameter_fields);
      }
      result.push_back(std::move(layer));
    }
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.type < b.type; });
  return result;
}

onnx::Model parse_caffe(const std::string& network, std::string_view weights, const std::string& network_name,
                        const std::string& weights_name, const CaffeOptions& options,
                        std::shared_ptr<const void> owner) {
  if (network.size() > most_text) {
    throw Error(fmt::format("{}: the file has {} bytes of text; the text of a Caffe network may have at most {}",
                            network_name, network.size(), most_text));
  }
  caffe::Text net = caffe::parse_network(network, network_name);
  caffe::renew(net.network, network_name);
  for (caffe::LayerParameter& layer : *net.network.mutable_layer()) {
    // The pieces refer to the bytes of the weights file.
    for (caffe::BlobProto& blob : *layer.mutable_blobs()) blob.clear_piece();
  }
  auto [trained, pieces] = caffe::parse_weights(weights, weights_name, std::move(owner));
  return caffe::Importer(net, trained, pieces, network_name, weights_name, options).run();
}

onnx::Model read_caffe(const std::filesystem::path& network, const std::filesystem::path& weights,
                       const CaffeOptions& options) {
  const auto text = onnx::MappedFile::open(network, most_text);
  if (weights.empty()) return parse_caffe(std::string(text->view()), {}, network.string(), "", options);
  const auto bytes = onnx::MappedFile::open(weights);
  if (bytes->view().empty())
    throw Error(fmt::format("{}: the file is empty; pass the .caffemodel with the trained weights of the network",
                            weights.string()));
  return parse_caffe(std::string(text->view()), bytes->view(), network.string(), weights.string(), options, bytes);
}

}  // namespace graft
