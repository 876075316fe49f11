// Tests two engines that check each other: a wrong operator in either engine is a disagreement, never a verdict on a
// model.
#include "verify/judge/judges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "runtime/answer.hpp"
#include "runtime/default_engine.hpp"
#include "runtime/engine_limit.hpp"
#include "tests/support/text_model.hpp"
#include "verify/compare/verify_models.hpp"
#include "verify/inputs/inputs.hpp"
#include "verify/judge/dispute.hpp"
#include "verify/judge/known_faults.hpp"
#include "verify/judge/repeats.hpp"
#include "verify/localize/layers.hpp"
#include "verify/prove/prove.hpp"

namespace graft::verify::judges_test {
namespace {

using test::text_model;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;
using Asked = JudgesOptions::Asked;

/// A fault of an engine.
struct Fault {
  std::string op = {};           ///< The operator that is computed wrongly.
  std::string computed_as = {};  ///< The operator that is computed in its place.
  std::string refused = {};      ///< An operator that the engine refuses.
  bool is_missing = false;       ///< The engine is not installed.
  std::size_t fewest_nodes = 0;  ///< The smallest number of nodes of a model in which the operator is computed wrongly.
};

/// The default engine with a fault.
class FaultyEngine final : public runtime::Engine {
 public:
  explicit FaultyEngine(std::string name, Fault fault = {}) : name_(std::move(name)), fault_(std::move(fault)) {}

  using runtime::Engine::compile;
  [[nodiscard]] std::string_view name() const override {
    if (fault_.is_missing) throw Error(Error::Kind::missing_tool, "it is not installed");
    return name_;
  }
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& model,
                                                                const runtime::CompileOptions& options) const override {
    ++compiled;
    return runtime::default_engine().compile(faulty(model), options);
  }
  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    return runtime::default_engine().evaluate_constant_graph(faulty(model));
  }

  mutable int compiled = 0;

 private:
  [[nodiscard]] onnx::Model faulty(const onnx::Model& model) const {
    (void)name();
    onnx::Model copy = model.clone();
    copy.graph().for_each_node([&](onnx::Node& node) {
      if (node.op_type == fault_.refused) throw Error("it does not know " + node.op_type);
      if (node.op_type == fault_.op && model.graph().node_count() >= fault_.fewest_nodes) {
        node.op_type = fault_.computed_as;
      }
    });
    return copy;
  }

  std::string name_;
  Fault fault_;
};

const Fault wrong_tanh{.op = "Tanh", .computed_as = "Sigmoid"};

onnx::Model network(const std::string& nodes) {
  return text_model({{"x", onnx::ElementType::f32, {2, 3}}}, nodes, {"y"});
}

/// Tanh as one node, and composed of Exp.
onnx::Model by_tanh() { return network("a = Neg(x)\nt = Tanh(a)\ny = Abs(t)"); }
onnx::Model by_exp() {
  return network(
      "a = Neg(x)\ne = Exp(a)\nn = Neg(a)\nf = Exp(n)\nd = Sub(e, f)\ns = Add(e, f)\nt = Div(d, s)\ny = Abs(t)");
}

/// Returns options with a table of known faults of both engines.
JudgesOptions knowing(const KnownFaults& faults, Asked asked) {
  return {.second = asked, .faults = &faults, .first_in_table = "First", .second_in_table = "Second"};
}

const auto wrong_tanh_of_first = std::to_array<KnownFault>({{"First", "1", "Tanh", "", "a test"}});
const auto wrong_tanh_of_second = std::to_array<KnownFault>({{"Second", "2", "Tanh", "", "a test"}});
const auto wrong_tanh_of_both =
    std::to_array<KnownFault>({{"First", "1", "Tanh", "", "a test"}, {"Second", "2", "Tanh", "", "a test"}});

/// Tests that run twice: with the fault in the first and in the second engine.
class JudgesOfFaults : public testing::TestWithParam<bool> {
 protected:
  FaultyEngine first{"First 1", GetParam() ? wrong_tanh : Fault{}};
  FaultyEngine second{"Second 2", GetParam() ? Fault{} : wrong_tanh};

  [[nodiscard]] std::unique_ptr<runtime::Engine> judges(Asked asked) const {
    return make_judges(first, second, {.second = asked});
  }
  const KnownFaults known{GetParam() ? wrong_tanh_of_first : wrong_tanh_of_second};
};
INSTANTIATE_TEST_SUITE_P(Wrong, JudgesOfFaults, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "first" : "second"; });

void expect_dispute(const std::optional<Dispute>& dispute) {
  ASSERT_TRUE(dispute);
  ASSERT_TRUE(dispute->node);
  EXPECT_EQ(dispute->node->op, "Tanh");
  EXPECT_EQ(dispute->tensor, "t");
  EXPECT_THAT(dispute->text(), AllOf(StartsWith("First 1 and Second 2 disagree on test.onnx, first at node 't' (Tanh)"),
                                     HasSubstr("elements differ")));
}

TEST_P(JudgesOfFaults, always_asked_see_every_run) {
  const auto engine = judges(Asked::always);
  const VerifyReport same = verify_models(*engine, by_tanh(), by_tanh());
  EXPECT_EQ(same.verdict(), Verdict::disputed);
  expect_dispute(same.dispute);
  const VerifyReport other = verify_models(*engine, by_exp(), by_tanh());
  EXPECT_EQ(other.verdict(), Verdict::disputed);
  expect_dispute(other.dispute);
  const LayerReport layers = compare_layers(*engine, by_tanh(), by_exp());
  EXPECT_EQ(layers.verdict(), Verdict::disputed);
  expect_dispute(layers.dispute);
}

TEST_P(JudgesOfFaults, always_asked_prove_nothing_where_they_disagree) {
  const ProofResult result = prove_region(*judges(Asked::always), by_tanh(), by_exp());
  EXPECT_FALSE(result.proven);
  expect_dispute(result.dispute);
  EXPECT_EQ(result.text, result.dispute->text());
  EXPECT_TRUE(measure_region(*judges(Asked::always), by_tanh(), by_tanh()).dispute);
}

/// A fault of an engine appears as a difference between two forms of one computation.
TEST_P(JudgesOfFaults, in_doubt_make_no_verdict_of_a_fault) {
  const auto engine = judges(Asked::where_in_doubt);
  const bool shows = GetParam();
  const VerifyReport report = verify_models(*engine, by_exp(), by_tanh());
  EXPECT_EQ(report.verdict(), shows ? Verdict::disputed : Verdict::same);
  if (shows) expect_dispute(report.dispute);
  const LayerReport layers = compare_layers(*engine, by_exp(), by_tanh());
  EXPECT_EQ(layers.verdict(), shows ? Verdict::disputed : Verdict::same);
  const ProofResult proof = prove_region(*engine, by_tanh(), network("t = Tanh(x)\ny = Abs(t)"));
  EXPECT_EQ(proof.proven, !shows);
  EXPECT_EQ(proof.dispute.has_value(), shows);
  if (!shows) {
    EXPECT_EQ(second.compiled, 0) << "nothing was in doubt";
  }
}

TEST_P(JudgesOfFaults, agree_on_models_without_the_fault) {
  const onnx::Model right = network("a = Exp(x)\ny = Neg(a)");
  const onnx::Model wrong = network("a = Exp(x)\ny = Abs(a)");
  for (const Asked asked : {Asked::always, Asked::where_in_doubt}) {
    EXPECT_EQ(verify_models(*judges(asked), right, right).verdict(), Verdict::same);
    const VerifyReport report = verify_models(*judges(asked), right, wrong);
    EXPECT_EQ(report.verdict(), Verdict::different) << "both find the user's difference";
    EXPECT_FALSE(report.outputs.front().equal());
    EXPECT_EQ(compare_layers(*judges(asked), right, wrong).verdict(), Verdict::different);
    EXPECT_TRUE(
        prove_region(*judges(asked), right, network("n = Neg(x)\nb = Exp(n)\na = Reciprocal(b)\ny = Neg(a)")).proven);
    const ProofResult proof = prove_region(*judges(asked), right, wrong);
    EXPECT_FALSE(proof.proven);
    EXPECT_FALSE(proof.dispute);
  }
}

std::string chain(std::size_t nodes) {
  std::string text = "v0 = Tanh(x)\n";
  for (std::size_t i = 1; i < nodes - 1; ++i)
    text += "v" + std::to_string(i) + " = Neg(v" + std::to_string(i - 1) + ")\n";
  return text + "y = Neg(v" + std::to_string(nodes - 2) + ")";
}

TEST_P(JudgesOfFaults, in_doubt_sample_large_networks) {
  const auto engine = judges(Asked::where_in_doubt);
  EXPECT_EQ(verify_models(*engine, network(chain(49)), network(chain(49))).verdict(), Verdict::same);
  EXPECT_EQ(second.compiled, 0);
  const VerifyReport report = verify_models(*engine, network(chain(50)), network(chain(50)));
  EXPECT_EQ(report.verdict(), Verdict::disputed);
  EXPECT_EQ(report.dispute->tensor, "v0");
  EXPECT_EQ(verify_models(*make_judges(first, second, {.sampled_nodes = 0}), network(chain(50)), network(chain(50)))
                .verdict(),
            Verdict::same);
}

/// The node alone is computed correctly by both engines; they disagree only in the larger model.
TEST(JudgesOf, a_fault_among_other_nodes_says_how_far_apart_they_are_there) {
  Fault among_others = wrong_tanh;
  among_others.fewest_nodes = 3;
  const FaultyEngine first("First 1", among_others);
  const FaultyEngine second("Second 2");
  const auto engine = make_judges(first, second, {.second = Asked::always});
  expect_dispute(verify_models(*engine, by_tanh(), by_tanh()).dispute);
}

TEST_P(JudgesOfFaults, of_constants_know_nothing_where_they_disagree) {
  const onnx::Model constant = text_model({}, "c = Constant<value=float(0.5)>()\ny = Tanh(c)", {"y"});
  EXPECT_THAT([&] { (void)judges(Asked::always)->evaluate_constant_graph(constant); },
              ThrowsMessage<Error>(HasSubstr("First 1 and Second 2 disagree")));
}

/// The noise floor of the first engine would excuse its own fault: Sin of large values is rounding noise only.
TEST(JudgesOf, a_fault_whose_noise_floor_the_other_engine_does_not_confirm) {
  const FaultyEngine first("First 1", {.op = "Tanh", .computed_as = "Sin"});
  const FaultyEngine second("Second 2");
  const auto engine = make_judges(first, second, {.second = Asked::always});
  const onnx::Model model = network("c = Constant<value=float(1e9)>()\na = Mul(x, c)\nt = Tanh(a)\ny = Identity(t)");
  EXPECT_THROW(static_cast<void>(engine->compile(model)->run(make_inputs(model, {.seed = 1}))), Disputed);
}

TEST(JudgesOf, models_that_one_of_them_refuses) {
  const FaultyEngine whole("Whole 1");
  const FaultyEngine refusing("Refusing 1", {.refused = "Tanh"});
  for (const Asked asked : {Asked::always, Asked::where_in_doubt}) {
    EXPECT_EQ(verify_models(*make_judges(refusing, whole, {.second = asked}), by_tanh(), by_exp()).verdict(),
              Verdict::same);
    EXPECT_EQ(verify_models(*make_judges(whole, refusing, {.second = asked}), by_tanh(), by_exp()).verdict(),
              Verdict::same);
    EXPECT_THAT([&] { (void)make_judges(refusing, refusing, {.second = asked})->compile(by_tanh()); },
                ThrowsMessage<Error>("it does not know Tanh"));
  }
}

/// A node with a known fault runs in the other engine, whichever engine has the fault.
TEST_P(JudgesOfFaults, known_are_run_by_the_other) {
  for (const Asked asked : {Asked::always, Asked::where_in_doubt}) {
    const auto engine = make_judges(first, second, knowing(known, asked));
    for (const onnx::Model& other : {by_exp(), by_tanh()}) {
      const VerifyReport report = verify_models(*engine, other, by_tanh());
      EXPECT_EQ(report.verdict(), Verdict::same);
    }
    EXPECT_EQ(verify_models(*engine, by_tanh(), network("y = Abs(x)")).verdict(), Verdict::different);
    EXPECT_EQ(compare_layers(*engine, by_exp(), by_tanh()).verdict(), Verdict::same);
    EXPECT_TRUE(prove_region(*engine, by_tanh(), network("t = Tanh(x)\ny = Abs(t)")).proven);
    EXPECT_EQ(verify_models(*engine, network(chain(50)), network(chain(50))).verdict(), Verdict::same);
    const onnx::Model constant = text_model({}, "c = Constant<value=float(0.5)>()\ny = Tanh(c)", {"y"});
    EXPECT_NEAR(*engine->evaluate_constant_graph(constant).at("y").scalar(), std::tanh(0.5), 1e-6);
    EXPECT_EQ(engine->left_out(by_exp()), "");
    const std::string name = GetParam() ? "First" : "Second";
    EXPECT_EQ(engine->left_out(by_tanh()),
              name + " is not used for test.onnx, because the model has node 't' (Tanh), which " + name +
                  " is known to compute wrongly: its values are wrong (found in " +
                  (GetParam() ? "First 1)" : "Second 2)"));
  }
}

TEST_P(JudgesOfFaults, known_of_both_are_compared) {
  const KnownFaults both{wrong_tanh_of_both};
  for (const Asked asked : {Asked::always, Asked::where_in_doubt}) {
    const auto engine = make_judges(first, second, knowing(both, asked));
    const VerifyReport report = verify_models(*engine, by_tanh(), by_tanh());
    ASSERT_EQ(report.verdict(), Verdict::disputed);
    EXPECT_THAT(report.dispute->text(), HasSubstr("node 't' (Tanh), which First is known to compute wrongly"));
    EXPECT_THAT(engine->left_out(by_tanh()), StartsWith("First and Second are compared where both run test.onnx"));
  }
}

TEST(JudgesOf, known_faults_that_the_other_cannot_run) {
  const KnownFaults known{wrong_tanh_of_first};
  const FaultyEngine first("First 1", wrong_tanh);
  const FaultyEngine refusing("Second 2", {.refused = "Tanh"});
  EXPECT_THAT([&] { (void)make_judges(first, refusing, knowing(known, Asked::where_in_doubt))->compile(by_tanh()); },
              ThrowsMessage<Error>(AllOf(StartsWith("it does not know Tanh"),
                                         HasSubstr("the model has node 't' (Tanh), which First is known"))));
  const FaultyEngine missing("", {.is_missing = true});
  const auto alone = make_judges(first, missing, knowing(known, Asked::where_in_doubt));
  EXPECT_EQ(verify_models(*alone, by_tanh(), by_tanh()).verdict(), Verdict::same);
  EXPECT_THAT(alone->left_out(by_tanh()),
              AllOf(StartsWith("First runs test.onnx although the model has node 't' (Tanh)"),
                    HasSubstr("Second is not installed")));
}

/// The default engine with results that differ in each run.
class WaveringEngine final : public runtime::Engine {
 public:
  using runtime::Engine::compile;
  [[nodiscard]] std::string_view name() const override { return "Wavering 1"; }
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& model,
                                                                const runtime::CompileOptions& options) const override {
    return std::make_unique<Wavering>(runtime::default_engine().compile(model, options));
  }
  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    return runtime::default_engine().evaluate_constant_graph(model);
  }

 private:
  class Wavering final : public runtime::CompiledModel {
   public:
    explicit Wavering(std::unique_ptr<runtime::CompiledModel> model) : model_(std::move(model)) {}
    [[nodiscard]] std::unique_ptr<runtime::CompiledModel> new_request() const override {
      return std::make_unique<Wavering>(model_->new_request());
    }
    using runtime::CompiledModel::run;
    void run(const runtime::TensorMap& inputs,
             const std::function<void(const runtime::TensorMap& outputs)>& look) override {
      runtime::TensorMap outputs = model_->run(inputs);
      for (auto& [name, tensor] : outputs) {
        std::vector<double> numbers = *tensor.numbers();
        numbers.front() += ++runs_;
        tensor = onnx::TensorData::from_numbers(tensor.type, tensor.dims, numbers);
      }
      look(outputs);
    }

   private:
    std::unique_ptr<runtime::CompiledModel> model_;
    int runs_ = 0;
  };
};

TEST(JudgesOf, an_engine_that_contradicts_itself_is_replaced_by_the_other) {
  const WaveringEngine wavering;
  const std::unique_ptr<runtime::Engine> repeated = make_repeating_engine(wavering);
  const FaultyEngine second("Second 2");
  const auto judges = make_judges(*repeated, second, {.second = Asked::never});
  const onnx::Model model = by_tanh();
  const runtime::TensorMap inputs = make_inputs(model);
  const runtime::TensorMap expected = runtime::default_engine().compile(model)->run(inputs);
  const std::unique_ptr<runtime::CompiledModel> compiled = judges->compile(model);
  const auto answer = [](const runtime::CompiledModel& one) {
    return dynamic_cast<const runtime::HasAnswer&>(one).answer();
  };
  EXPECT_EQ(answer(*compiled).engine, "Wavering 1");
  const std::unique_ptr<runtime::CompiledModel> request = compiled->new_request();
  for (runtime::CompiledModel* one : {compiled.get(), request.get(), compiled.get()}) {
    EXPECT_EQ(one->run(inputs).at("y").bytes.view(), expected.at("y").bytes.view());
    EXPECT_EQ(answer(*one).engine, "Second 2");
    EXPECT_THAT(answer(*one).reason, HasSubstr("different bits of output 'y'"));
  }
  const FaultyEngine missing("", {.is_missing = true});
  const auto alone = make_judges(*repeated, missing, {.second = Asked::never});
  EXPECT_THAT([&] { (void)alone->compile(model)->run(inputs); },
              ThrowsMessage<runtime::EngineLimit>(HasSubstr("in a second run\nInstall ONNX Runtime")));
}

/// If both engines are requested, the result of one engine is not enough.
TEST(JudgesOf, an_engine_that_contradicts_itself_is_an_error_where_both_are_asked) {
  const WaveringEngine wavering;
  const std::unique_ptr<runtime::Engine> repeated = make_repeating_engine(wavering);
  const FaultyEngine second("Second 2");
  const auto judges = make_judges(*repeated, second, {.second = Asked::always});
  const onnx::Model model = by_tanh();
  EXPECT_THAT([&] { (void)judges->compile(model)->run(make_inputs(model)); },
              ThrowsMessage<Error>(HasSubstr("Both engines were requested, and only one can compute the model")));
}

/// ONNX Runtime is the first choice for values, but it need not be installed, nor need OpenVINO.
TEST(JudgesOf, a_first_one_that_is_not_installed) {
  const FaultyEngine missing("", {.is_missing = true});
  const FaultyEngine second("Second 2");
  const auto judges = make_judges(missing, second, {.second = Asked::never});
  EXPECT_TRUE(judges->can_run());
  EXPECT_EQ(judges->name(), "Second 2");
  const std::unique_ptr<runtime::CompiledModel> compiled = judges->compile(by_tanh());
  const runtime::Answer answer = dynamic_cast<const runtime::HasAnswer&>(*compiled).answer();
  EXPECT_EQ(answer.engine, "Second 2");
  EXPECT_EQ(answer.reason, "it is not installed");
}

TEST(JudgesOf, one_that_checks_nothing_trusts_the_first) {
  const FaultyEngine first("First 1");
  const FaultyEngine wrong("Second 2", wrong_tanh);
  const auto judges = make_judges(first, wrong, {.second = Asked::never});
  EXPECT_EQ(judges->checked(), nullptr);
  EXPECT_EQ(verify_models(*judges, by_tanh(), by_exp()).verdict(), Verdict::same);
  EXPECT_EQ(verify_models(*judges, by_tanh(), network("y = Abs(x)")).verdict(), Verdict::different);
  EXPECT_EQ(wrong.compiled, 0);
}

/// Synthetic integers do not become smaller because one engine cannot compute the usual ones.
TEST(JudgesOf, integers_that_an_engine_rounds_are_no_reason_for_smaller_ones) {
  const onnx::Model model = text_model({{"x", onnx::ElementType::i64, {20}}},
                                       "p = Constant<value=int64(805459861)>()\nm = Constant<value=int64(512)>()\n"
                                       "h = Mul(x, p)\ny = Mod(h, m)",
                                       {"y"});
  EXPECT_THROW((void)verify_models(runtime::default_engine(), model, model), runtime::EngineLimit);
}

TEST(JudgesOf, a_second_one_that_is_not_installed) {
  const FaultyEngine first("First 1");
  const FaultyEngine missing("", {.is_missing = true});
  const auto in_doubt = make_judges(first, missing, {});
  EXPECT_EQ(verify_models(*in_doubt, by_tanh(), by_tanh()).verdict(), Verdict::same);
  EXPECT_EQ(verify_models(*in_doubt, by_tanh(), network("y = Abs(x)")).verdict(), Verdict::different);
  try {
    (void)verify_models(*make_judges(first, missing, {.second = Asked::always}), by_tanh(), by_tanh());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::missing_tool);
  }
}

/// An output that one model lacks is searched among its internal tensors: comparisons of outputs and of layers then
/// call each other.
TEST(JudgesOf, models_that_lack_an_output) {
  const FaultyEngine first("First 1");
  const FaultyEngine second("Second 2");
  const onnx::Model more = text_model({{"x", onnx::ElementType::f32, {2, 3}}}, "t = Tanh(x)\ny = Abs(t)", {"y", "t"});
  for (const Asked asked : {Asked::always, Asked::where_in_doubt}) {
    const auto engine = make_judges(first, second, {.second = asked});
    const VerifyReport report =
        verify_models(*engine, more, network("t = Tanh(x)\ny = Abs(t)"), {.across_formats = true});
    EXPECT_EQ(report.verdict(), Verdict::same);
    EXPECT_EQ(report.outputs.size(), 2U);
    EXPECT_EQ(compare_layers(*engine, more, network("t = Exp(x)\ny = Abs(t)")).verdict(), Verdict::different);
  }
}

TEST(JudgesOf, random_numbers_and_what_is_not_finite) {
  const FaultyEngine first("First 1");
  const FaultyEngine second("Second 2");
  const auto engine = make_judges(first, second, {.second = Asked::always});
  const onnx::Model random = text_model({{"x", onnx::ElementType::f32, {2, 3}}},
                                        "r = RandomNormalLike(x)\ny = Add(x, r)\nz = Neg(x)", {"y", "z"});
  EXPECT_FALSE(verify_models(*engine, random, random).dispute);
  const FaultyEngine other("Second 2", {.op = "Relu", .computed_as = "Neg"});
  const auto judged = make_judges(first, other, {.second = Asked::always});
  const std::unique_ptr<runtime::CompiledModel> relu =
      judged->compile(text_model({{"x", onnx::ElementType::f32, {1}}}, "y = Relu(x)", {"y"}));
  const auto given = [](double number) {
    return runtime::TensorMap{{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {1}, {number})}};
  };
  EXPECT_THROW((void)relu->run(given(1)), Disputed);
  EXPECT_EQ(*relu->run(given(std::numeric_limits<double>::infinity())).at("y").scalar(),
            std::numeric_limits<double>::infinity())
      << "what engines make of infinity is their own affair";
}

}  // namespace
}  // namespace graft::verify::judges_test
