// The program `graft`: one file for each command; see docs/guide/command_line.md.
#include "cli/program.hpp"
#include "cli/setting_names.hpp"

int main(int argument_count, char** arguments) {
  // libgraft.so and the program, which presents reports, each have the function that returns the names.
  graft::toolkit::name_settings(graft::cli::option_of);
  graft::set_setting_names(graft::cli::option_of);
  graft::cli::Program program;
#define GRAFT_COMMAND(name, report) graft::cli::add_##name(program);
#include "graft/report/commands.inc"
#undef GRAFT_COMMAND
  return program.run(argument_count, arguments);
}
