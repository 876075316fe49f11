// The program `graft`: one file for each command; see docs/guide/command_line.md.
#include "cli/program.hpp"
#include "cli/setting_names.hpp"

int main(int argument_count, char** arguments) {
  graft::toolkit::name_settings(graft::cli::option_of);
  graft::cli::Program program;
  graft::cli::add_doctor(program);
  graft::cli::add_ops(program);
  graft::cli::add_inspect(program);
  graft::cli::add_convert(program);
  graft::cli::add_quantize(program);
  graft::cli::add_verify(program);
  graft::cli::add_run(program);
  graft::cli::add_build(program);
  graft::cli::add_plugins(program);
  graft::cli::add_bench(program);
  graft::cli::add_canary(program);
  graft::cli::add_new(program);
  graft::cli::add_completions(program);
  graft::cli::add_help(program);
  return program.run(argument_count, arguments);
}
