// Runs a model on the CPU and writes the values and tolerances of its tensors to a folder, with the model and the
// script.
#include "graft/toolkit/canary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "core/atomic_file.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "io/npy.hpp"
#include "onnx/extract.hpp"
#include "onnx/functions.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/staged_folder.hpp"
#include "toolkit/access.hpp"
#include "toolkit/canary_script.hpp"
#include "toolkit/data.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/work.hpp"
#include "verify/compare/ends.hpp"
#include "verify/compare/pieces.hpp"
#include "verify/inputs/given_inputs.hpp"
#include "verify/inputs/random_values.hpp"
#include "verify/judge/noise_floor.hpp"
#include "verify/localize/layers.hpp"
#include "verify/localize/partial_runs.hpp"

namespace graft::toolkit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The possible numbers of elements that are stored for an inner tensor. The largest of them is used for which all
/// tensors of a run together have at most `most_of_run` stored elements; if none fits, the smallest is used. The
/// numbers are primes, so that the evenly spaced positions of the stored elements are in all columns of a matrix even
/// if its row length is a round number.
constexpr std::array<std::int64_t, 4> sample_counts = {65521, 16381, 4093, 1021};
constexpr std::int64_t most_of_run = 16 << 20;
constexpr std::int64_t samples_of_output = 1048573;
/// Maximum total size in bytes of the tensors that are in memory at a time.
constexpr std::int64_t memory = std::int64_t{1} << 30;

/// A tensor of the model that is written for comparison unless `left_out`, the reason against it, is set.
struct Candidate {
  const onnx::Value* value;
  std::int64_t samples = 0;
  verify::Tolerance tolerance;
  std::string why_tolerance;
  std::string type = {};
  std::vector<std::int64_t> dims = {};
  std::string noise = {};  ///< The noise floor in the first run, as text.
  std::string left_out = {};
};

/// Runs a model and collects the tensors whose values are written for comparison. They are in the order of computation,
/// so that the first wrong tensor has correct inputs.
class CanaryRuns {
 public:
  CanaryRuns(Work& work, const onnx::Model& model, std::vector<runtime::TensorMap> runs)
      : work_(work),
        runs_(std::move(runs)),
        parts_(work.engine(), model, runtime::OperatorKernels::functions, 0),
        random_(verify::random_values(parts_.model())),
        narrow_(verify::narrow_types(parts_.model())),
        quantizes_(verify::quantizes(model)) {
    parts_.infer(runs_);
    choose();
  }

  /// Writes two files for each run N to the folder: expected_N.npz with the correct values of the tensors, and
  /// allowed_N.npz with the allowed difference of each value. Appends the names of the files to `files`.
  void write(const fs::path& folder, std::vector<std::string>& files) {
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      io::NpzArrays expected;
      io::NpzArrays allowed;
      look_at(run, expected, allowed);
      // A tensor that turns out to be unfit in a later run stays in the archives of the earlier runs, where the script
      // ignores it.
      for (const auto& [name, arrays] : {std::pair("expected", &expected), std::pair("allowed", &allowed)}) {
        if (arrays->empty()) continue;
        files.push_back(fmt::format("{}_{}.npz", name, run));
        io::write_npz(folder / files.back(), *arrays);
      }
    }
  }

  [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }
  [[nodiscard]] const std::vector<CanaryOmission>& left_out() const { return left_out_; }
  [[nodiscard]] const std::vector<runtime::TensorMap>& runs() const { return runs_; }

 private:
  /// Returns the values that depend on elements of the inputs. Values that depend only on shapes of inputs are not
  /// compared: TensorRT folds them or holds them in host memory.
  [[nodiscard]] std::unordered_set<const onnx::Value*> depends_on_numbers() const {
    std::unordered_set<const onnx::Value*> found(parts_.model().graph().inputs().begin(),
                                                 parts_.model().graph().inputs().end());
    for (const onnx::Node* node : parts_.model().graph().nodes()) {
      if (node->is("Shape") || node->is("Size")) continue;
      const std::vector<const onnx::Value*> read = onnx::values_read_by(*node);
      const bool depends =
          random_.contains(node->output()) ||
          std::any_of(read.begin(), read.end(), [&](const auto* each) { return found.contains(each); });
      if (!depends) continue;
      for (const onnx::Value* output : node->outputs) {
        if (output != nullptr) found.insert(output);
      }
    }
    return found;
  }

  void leave_out(const onnx::Value& value, std::string why) {
    left_out_.push_back({.tensor = value.name,
                         .node = value.producer != nullptr ? onnx::ref_of(*value.producer) : NodeRef{},
                         .is_output = value.is_output(),
                         .why = std::move(why)});
  }

  [[nodiscard]] std::string why_unfit(const onnx::Value& value) const {
    if (const auto random = random_.find(&value); random != random_.end()) {
      return fmt::format("it depends on the random numbers of {}", random->second);
    }
    if (!value.type || !verify::is_real(*value.type) || bits_of(*value.type) < 8) {
      return fmt::format("it is of type {}", value.type ? to_string(*value.type) : "?");
    }
    const bool is_fixed = value.shape && std::all_of(value.shape->begin(), value.shape->end(),
                                                     [](const Dim& dim) { return dim.is_constant(); });
    return is_fixed ? "" : "its size cannot be inferred from the shapes of the inputs";
  }

  void choose() {
    const auto wanted = depends_on_numbers();
    for (const onnx::Node* node : parts_.model().graph().nodes()) {
      for (const onnx::Value* value : node->outputs) {
        if (value == nullptr || !wanted.contains(value)) continue;
        if (std::string why = why_unfit(*value); !why.empty()) {
          leave_out(*value, std::move(why));
          continue;
        }
        const onnx::ElementType type = verify::rounding_type(narrow_, *value, *value->type);
        const bool rounded = verify::is_quantized(*value);
        Candidate& candidate =
            candidates_.emplace_back(Candidate{.value = value, .tolerance = {}, .why_tolerance = {}});
        candidate.tolerance = value->is_output() ? verify::output_tolerance(type, type, quantizes_, rounded)
                                                 : verify::layer_tolerance(type, type, quantizes_, rounded);
        candidate.why_tolerance = quantizes_             ? "the network rounds to 8 bits"
                                  : type != *value->type ? fmt::format("it is computed from {}", to_string(type))
                                                         : fmt::format("it is {}", to_string(type));
      }
    }
    for (const onnx::Value* output : parts_.model().graph().outputs()) {
      const bool is_computed = output->producer != nullptr && wanted.contains(output);
      if (!is_computed) leave_out(*output, "it does not depend on the values of the inputs");
    }
    const auto count = static_cast<std::int64_t>(candidates_.size());
    const auto* samples = std::find_if(sample_counts.begin(), sample_counts.end() - 1,
                                       [&](std::int64_t each) { return each * count <= most_of_run; });
    for (Candidate& candidate : candidates_) {
      candidate.samples = candidate.value->is_output() ? samples_of_output : *samples;
    }
  }

  void look_at(std::size_t run, io::NpzArrays& expected, io::NpzArrays& allowed) {
    std::vector<const onnx::Value*> values;
    for (const Candidate& candidate : candidates_) values.push_back(candidate.value);
    verify::Refusals refused;
    std::size_t next = 0;
    while (next < values.size()) {
      work_.report_step(fmt::format("run {} of {}", run + 1, runs_.size()), next, values.size());
      const std::size_t begin = next;
      const std::vector<const onnx::Value*> group = parts_.next_group(values, next, memory);
      const runtime::TensorMap found = parts_.run_what_can_be(group, runs_[run], refused);
      std::map<std::string, verify::NoiseFloor, std::less<>> floors;
      std::vector<const onnx::Value*> there;
      for (std::size_t i = begin; i < next; ++i) {
        if (!found.contains(values[i]->name)) continue;
        there.push_back(values[i]);
        floors.emplace(values[i]->name, candidates_[i].tolerance);
      }
      const auto add = [&](const runtime::TensorMap& still, const runtime::TensorMap& moved) {
        for (auto& [name, floor] : floors) floor.add(found.at(name), still.at(name), moved.at(name));
      };
      parts_.run_noisy(parts_.engine(), there, runs_[run], add, verify::F64Noise::of_f32);
      for (std::size_t i = begin; i < next; ++i) {
        const auto tensor = found.find(values[i]->name);
        if (tensor == found.end()) continue;
        keep(candidates_[i], tensor->second, floors.at(values[i]->name), expected, allowed);
      }
    }
    for (Candidate& candidate : candidates_) {
      const auto why = refused.find(candidate.value);
      if (why != refused.end())
        candidate.left_out = "the model does not run if this tensor is an output: " + why->second;
    }
    drop_unfit();
  }

  static void keep(Candidate& candidate, const onnx::TensorData& tensor, const verify::NoiseFloor& floor,
                   io::NpzArrays& expected, io::NpzArrays& allowed) {
    if (candidate.type.empty()) {
      candidate.type = to_string(tensor.type);
      candidate.dims = tensor.dims;
      candidate.noise = floor.runs() != 0 ? floor.to_string() : "";
    }
    if (floor.has_other_dims() || tensor.dims != candidate.dims) {
      candidate.left_out = "its size depends on rounding";
    } else if (floor.allows_anything()) {
      candidate.left_out = "rounding alone changes most of its elements by more than its largest element";
    }
    if (!candidate.left_out.empty()) return;
    verify::ElementTolerance tolerance(candidate.tolerance, tensor);
    const std::int64_t elements = tensor.element_count();
    const std::int64_t samples = std::min(candidate.samples, elements);
    std::vector<double> numbers;
    std::vector<double> limits;
    std::int64_t sample = 0;
    verify::for_each_piece(elements, [&](std::int64_t begin, std::int64_t count) {
      const auto piece = verify::piece_of(tensor, begin, count).numbers();
      for (; sample < samples; ++sample) {
        const std::int64_t place = place_of(sample, samples, elements);
        if (place >= begin + count) return;
        const double number = (*piece)[static_cast<std::size_t>(place - begin)];
        numbers.push_back(number);
        const double rounding = std::isfinite(number) ? tolerance.at(place, number) : 0;
        const double limit = rounding + verify::NoiseFloor::factor * floor.finite_at(place);
        // A negative limit marks an element that rounding alone makes NaN, infinite or another integer: a number beyond
        // the limit, NaN and infinity are undecided there, as in NoiseFloor.
        limits.push_back(std::copysign(limit, std::isinf(floor.at(place)) ? -1.0 : 1.0));
      }
    });
    const bool is_narrow = is_floating_point(tensor.type) && tensor.type != onnx::ElementType::f64;
    expected.emplace(candidate.value->name, array_of(numbers, is_narrow));
    allowed.emplace(candidate.value->name, array_of(limits, is_narrow));
  }

  static std::int64_t place_of(std::int64_t sample, std::int64_t samples, std::int64_t elements) {
    // The product of sample and elements may exceed 64 bits, so the division comes first.
    return sample * (elements / samples) + sample * (elements % samples) / samples;
  }

  static io::NpyArray array_of(const std::vector<double>& numbers, bool is_narrow) {
    const onnx::TensorData data =
        onnx::TensorData::from_numbers(is_narrow ? onnx::ElementType::f32 : onnx::ElementType::f64,
                                       {static_cast<std::int64_t>(numbers.size())}, numbers);
    const auto* bytes = reinterpret_cast<const std::byte*>(data.bytes.data());
    return {.type = data.type, .shape = data.dims, .data = {bytes, bytes + data.bytes.size()}};
  }

  void drop_unfit() {
    for (const Candidate& candidate : candidates_) {
      if (!candidate.left_out.empty()) leave_out(*candidate.value, candidate.left_out);
    }
    std::erase_if(candidates_, [](const Candidate& candidate) { return !candidate.left_out.empty(); });
  }

  Work& work_;
  std::vector<runtime::TensorMap> runs_;
  verify::PartialRuns parts_;
  verify::RandomValues random_;
  verify::NarrowTypes narrow_;
  bool quantizes_;
  std::vector<Candidate> candidates_;
  std::vector<CanaryOmission> left_out_;
};

Json json_of(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

Json json_of(const Candidate& candidate) {
  const NodeRef node = onnx::ref_of(*candidate.value->producer);
  std::int64_t elements = 1;
  for (const std::int64_t size : candidate.dims) elements *= size;
  const verify::Tolerance& tolerance = candidate.tolerance;
  return {{"name", candidate.value->name},
          {"node", node.name},
          {"operator", node.op},
          {"output", candidate.value->is_output()},
          {"type", candidate.type},
          {"shape", candidate.dims},
          {"elements", elements},
          {"samples", std::min(candidate.samples, elements)},
          {"tolerance",
           {{"relative", tolerance.relative},
            {"absolute", tolerance.absolute},
            {"of_largest", tolerance.of_largest},
            {"by_slice", tolerance.by_slice},
            {"snr_db", json_of(tolerance.snr_db)},
            {"why", candidate.why_tolerance},
            {"noise", candidate.noise}}}};
}

Json json_of(const CanaryOmission& omission) {
  return {{"name", omission.tensor},
          {"node", omission.node.name},
          {"operator", omission.node.op},
          {"output", omission.is_output},
          {"why", omission.why}};
}

/// Returns the inputs of each run: the data in the options, or synthetic inputs for each seed.
std::vector<runtime::TensorMap> make_runs(Work& work, const onnx::Model& model, verify::VerifyOptions& common,
                                          std::size_t seeds) {
  place_inputs(model, model, common);
  complete_inputs(model, model, common);
  if (!common.data.empty()) return std::move(common.data);
  const std::unique_ptr<runtime::CompiledModel> compiled = work.engine().compile(model);
  verify::MadeUpInputs made_up;
  std::vector<runtime::TensorMap> runs;
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    runtime::TensorMap ignored;
    runs.push_back(made_up.inputs(*compiled, model, common.of_run({.seed = seed}), ignored));
  }
  return runs;
}

/// Returns the model that is written to the folder. Of the outputs of `model` it keeps those that are compared. If
/// `with_plugins` is set, it has no ONNX functions for nodes of Graft's operators, so that TensorRT runs them as
/// plugins. Throws Error if no output can be compared.
onnx::Model written_model(const onnx::Model& model, const CanaryRuns& runs, bool with_plugins) {
  std::set<std::string, std::less<>> compared;
  for (const Candidate& candidate : runs.candidates()) compared.insert(candidate.value->name);
  onnx::Model written = model.clone();
  onnx::Graph& graph = written.graph();
  for (std::size_t i = graph.outputs().size(); i-- > 0;) {
    if (!compared.contains(graph.outputs()[i]->name)) graph.remove_output(i);
  }
  if (graph.outputs().empty()) {
    std::string why;
    for (const CanaryOmission& omission : runs.left_out()) {
      if (omission.is_output) why += fmt::format("\n{}: {}", omission.tensor, omission.why);
    }
    throw Error(
        fmt::format("{}: the model has no output that can be compared{}\nA canary compares only outputs that depend on "
                    "the values of the inputs and whose size can be inferred from the shapes of the inputs",
                    model.source, why));
  }
  graph.remove_dead();
  if (with_plugins) detach_functions(written);
  return written;
}

/// Copies the libraries into the folder under their own names, and returns these. Throws Error for a file that cannot
/// be copied, and for two libraries with one name.
std::vector<std::string> copy_libraries(const std::vector<fs::path>& libraries, const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& library : libraries) {
    const std::string name = library.filename().string();
    std::error_code error;
    if (!fs::is_regular_file(library, error)) {
      throw Error(fmt::format(
          "plugin library {}: there is no regular file of this name\nPass the path of the library's .so file",
          library.string()));
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      throw Error(
          fmt::format("plugin library {}: another library is also called {}, and both would be copied into the same "
                      "folder\nRename one of the libraries",
                      library.string(), name));
    }
    if (!fs::copy_file(library, folder / name, error)) {
      throw Error(fmt::format("plugin library {}: cannot be copied: {}", library.string(), error.message()));
    }
    names.push_back(name);
  }
  return names;
}

}  // namespace

CanaryResult write_canary(const Model& given, const fs::path& folder, const CanaryOptions& options) {
  Work work(options.watch, CpuEngine::automatic, Purpose::values);
  return work.run([&] {
    if (options.seeds == 0) {
      throw Error(
          fmt::format("{}: found 0; the value must be an integer of at least 1", setting_name(Setting::canary_seeds)));
    }
    fs::path target = folder.lexically_normal();
    if (!target.has_filename()) target = target.parent_path();  // "canary/"
    onnx::StagedFolder staged(target);
    const onnx::Model& model = model_of(given);
    verify::VerifyOptions common{
        .offers_ranges = false, .data_setting = Setting::canary_data, .shapes_setting = Setting::canary_shapes};
    common.shapes = {options.shapes.begin(), options.shapes.end()};
    const std::string data_name(setting_name(Setting::canary_data));
    data::Runs data = read_runs({.files = options.data_files,
                                 .tensors = to_internal(views_of(options.data), data_name),
                                 .setting = Setting::canary_data},
                                data::inputs_of(model));
    common.data = std::move(data.runs);
    CanaryRuns runs(work, model, make_runs(work, model, common, options.seeds));

    CanaryResult result;
    result.model = given.source();
    result.data_notes = std::move(data.notes);
    result.folder = target;
    result.runs = runs.runs().size();
    for (std::size_t run = 0; run < result.runs; ++run) {
      result.files.push_back(fmt::format("inputs_{}.npz", run));
      write_tensors(staged.path() / result.files.back(), views_of(runs.runs()[run], "input"));
    }
    runs.write(staged.path(), result.files);
    const bool with_plugins = !options.plugin_libraries.empty();
    const auto weights = onnx::write_onnx(written_model(model, runs, with_plugins), staged.path() / "model.onnx");
    result.files.emplace_back("model.onnx");
    if (weights) result.files.push_back(weights->filename().string());
    const std::vector<std::string> libraries = copy_libraries(options.plugin_libraries, staged.path());
    result.files.insert(result.files.end(), libraries.begin(), libraries.end());

    Json tensors = Json::array();
    for (const Candidate& candidate : runs.candidates()) {
      tensors.push_back(json_of(candidate));
      const Json& json = tensors.back();
      result.tensors.push_back(
          {.tensor = {.name = candidate.value->name,
                      .type = fmt::format("{}[{}]", candidate.type, fmt::join(candidate.dims, ", "))},
           .node = onnx::ref_of(*candidate.value->producer),
           .is_output = candidate.value->is_output(),
           .elements = json["elements"],
           .samples = json["samples"]});
    }
    result.left_out = runs.left_out();
    Json left_out = Json::array();
    for (const CanaryOmission& omission : result.left_out) left_out.push_back(json_of(omission));
    const Json manifest = {{"schema", "graft.canary.bundle/1"},
                           {"model", "model.onnx"},
                           {"source", fs::path(model.source).filename().string()},
                           {"engine", work.used().names()},
                           {"runs", result.runs},
                           {"plugin_libraries", libraries},
                           {"tensors", tensors},
                           {"left_out", left_out}};
    write_file(staged.path() / "canary.json", manifest.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    write_file(staged.path() / "run_canary.py", canary_script());
    result.files.emplace_back("canary.json");
    result.files.emplace_back("run_canary.py");
    std::sort(result.files.begin(), result.files.end());
    staged.commit();
    return result;
  });
}

}  // namespace graft::toolkit
