// troupe completion: a script by which bash completes the command, made from the options that the subcommands declare.
//
// An option's type name says what its value can be; help shows it, too: FILE, FOLDER, NAME=FILE, or one of `words`.
#include "cli/command.hpp"

#include "plan/place/policies.hpp"
#include "strategy/replica_sets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::cli {
namespace {

/// How bash completes: the words before the one at the cursor say what may stand there. bash-completion, which loads
/// the script, cuts the line into words; our words may contain `:` and `=`.
constexpr std::string_view functions = R"bash(
# Completes one of the words in $1, and of values that commas separate the last one.
_troupe_words() {
  local before=""
  [[ $cur == *,* ]] && before=${cur%,*},
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${cur##*,}")
  __ltrim_colon_completions "$cur"
}

_troupe_value() {
  case $1 in
    FILE) _filedir ;;
    FOLDER) _filedir -d ;;
    NAME=FILE) [[ $cur != *=* ]] || { cur=${cur#*=}; _filedir; } ;;
    *) _troupe_words "$1" ;;
  esac
}

_troupe() {
  local cur prev words cword
  _get_comp_words_by_ref -n := cur prev words cword
  if ((cword == 1)); then
    _troupe_words "$_troupe_commands"
    return
  fi
  local command=${words[1]}
  if [[ $cur == --*=* ]]; then
    prev=${cur%%=*} cur=${cur#*=}
  fi
  if [[ -n ${_troupe_takes["$command $prev"]+there} ]]; then
    _troupe_value "${_troupe_takes["$command $prev"]}"
  elif [[ $cur == -* ]]; then
    _troupe_words "${_troupe_options[$command]-}"
  else
    _troupe_value "${_troupe_arguments[$command]-}"
  fi
}

complete -F _troupe troupe
)bash";

/// Returns what a value of a type can be: words, a kind of path that the functions know, or nothing that is known.
std::string values_of(const CLI::Option& option) {
  std::string policy_names, strategy_names = "standard none auto";
  for (const policy_row& row : policies())
    policy_names += fmt::format("{}{}", policy_names.empty() ? "" : " ", row.name);
  for (const strategy s : strategies)
    strategy_names += fmt::format(" {}", to_string(s));
  const std::map<std::string, std::string> words{{"FILE", "FILE"},
                                                 {"FOLDER", "FOLDER"},
                                                 {"NAME=FILE", "NAME=FILE"},
                                                 {"DEVICES", "all cpu null vulkan:0"},
                                                 {"GOAL", "latency throughput"},
                                                 {"POLICY", policy_names},
                                                 {"PRECISION", "auto fp16 fp32"},
                                                 {"SCHEDULE", "fill-drain one-in-one-out"},
                                                 {"SHARES", "adaptive equal weighted"},
                                                 {"STRATEGY", strategy_names}};
  const std::string type = option.get_type_name(); // "FOLDER:DIR": after the colon, what checks it
  const auto found = words.find(type.substr(0, type.find(':')));
  return found == words.end() ? "" : found->second;
}

/// Returns the names of an option as they are typed; none if it is an argument.
std::vector<std::string> typed_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames())
    names.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    names.push_back("--" + name);
  return names;
}

void print_script(const CLI::App& app) {
  std::vector<std::string> commands;
  std::string options, takes, arguments;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    commands.push_back(command->get_name());
    std::vector<std::string> all;
    for (const CLI::Option* option : command->get_options()) {
      const std::vector<std::string> names = typed_names(*option);
      all.insert(all.end(), names.begin(), names.end());
      for (const std::string& name : names)
        if (option->get_type_size() != 0) // else it is a flag
          takes += fmt::format("  [\"{} {}\"]=\"{}\"\n", command->get_name(), name, values_of(*option));
      if (names.empty() && !values_of(*option).empty())
        arguments += fmt::format("  [{}]=\"{}\"\n", command->get_name(), values_of(*option));
    }
    options += fmt::format("  [{}]=\"{}\"\n", command->get_name(), fmt::join(all, " "));
  }
  fmt::print("# Completes the command troupe in bash; written by `troupe completion`.\n\n"
             "_troupe_commands=\"--help --help-all --version {}\"\n"
             "declare -gA _troupe_options=(\n{})\n"
             "# What an option's value can be; nothing: anything.\n"
             "declare -gA _troupe_takes=(\n{})\n"
             "declare -gA _troupe_arguments=(\n{})\n{}",
             fmt::join(commands, " "), options, takes, arguments, functions);
}

} // namespace

void add_completion(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completion", "Print a script by which bash completes this command");
  command->callback([&app] { print_script(app); });
}

} // namespace troupe::cli
