// graft ops: lists the operators, or describes one, from their definitions.
#include <memory>
#include <string>

#include "cli/program.hpp"
#include "graft/toolkit/operators.hpp"
#include "present/json/fields.hpp"
#include "present/text/operators_text.hpp"

namespace graft::cli {
namespace {

struct OpsArguments {
  std::string name;
  std::string reads;
};

Exit ops(const Console& console, const OpsArguments& arguments) {
  if (arguments.reads == "caffe") {
    const auto layers = toolkit::caffe_layers();
    console.print(present::layers_table(layers));
    console.result({{"layers", present::json_of_value(layers)}});
  } else if (arguments.reads == "tensorflow") {
    const auto operators = toolkit::tensorflow_operators();
    console.print(present::operators_table(operators));
    console.result({{"operators", present::json_of_value(operators)}});
  } else if (!arguments.name.empty()) {
    const toolkit::OperatorFacts facts = toolkit::operator_facts(arguments.name);
    console.print(present::operator_text(facts));
    console.result(present::json_of_report(facts));
  } else {
    const auto operators = toolkit::operator_facts();
    console.print(present::operators_text(operators));
    console.result({{"operators", present::json_of_value(operators)}});
  }
  return Exit::done;
}

}  // namespace

void add_ops(Program& program) {
  const auto arguments = std::make_shared<OpsArguments>();
  Command* command = program.add_command(
      "ops", "lists Graft's operators: what they compute, their attributes, types, and the plugins that they replace",
      "graft ops L2Normalize", [arguments](const Console& c) { return ops(c, *arguments); });
  auto* name = command->add_option("NAME", arguments->name,
                                   "an operator, or a plugin that an operator replaces; by default all are listed");
  command
      ->add_option("--reads", arguments->reads,
                   "list what `graft convert` reads from another format: caffe, tensorflow")
      ->type_name("FORMAT")
      ->check(one_of({"caffe", "tensorflow"}))
      ->excludes(name);
  program.add_operators_option(*command);
}

}  // namespace graft::cli
