// How help looks: a subcommand's options in groups; `--help` shows few of many, `--help-all` all of them.
#include "cli/command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::cli {
namespace {

/// The options that `--help` shows of subcommands that have more than a dozen.
const std::vector<std::string>* everyday_options(const std::string& subcommand) {
  static const std::map<std::string, std::vector<std::string>> everyday{
      {"run",
       {"--input", "--dim", "--devices", "--hosts", "--policy", "--precision", "--strategy", "--output", "--trace",
        "--json"}},
      {"test",
       {"--rtol", "--atol", "--l2", "--validate", "--devices", "--hosts", "--policy", "--precision", "--strategy",
        "--json"}},
      {"bench",
       {"--runs", "--dim", "--devices", "--hosts", "--policy", "--precision", "--strategy", "--bind", "--trace",
        "--json"}},
      {"plan",
       {"--dot", "--node", "--compare", "--dim", "--devices", "--hosts", "--policy", "--precision", "--strategy",
        "--json"}},
      {"inspect",
       {"--tensor", "--flow", "--elements", "--input", "--dim", "--devices", "--hosts", "--policy", "--precision",
        "--json"}},
      {"verify",
       {"--rtol", "--atol", "--input", "--dim", "--seed", "--devices", "--hosts", "--precision", "--strategy",
        "--json"}},
      {"prepare",
       {"--sizes", "--dim", "--devices", "--memory", "--kernels", "--hosts", "--policy", "--precision", "--strategy",
        "--json"}},
      {"profile",
       {"--calibrate", "--keep", "--tune", "--budget", "--file", "--runs", "--dim", "--devices", "--precision",
        "--json"}},
      {"simulate",
       {"--cluster", "--requests", "--arrivals", "--fail", "--dim", "--devices", "--policy", "--strategy", "--trace",
        "--json"}},
      {"compare",
       {"--csv", "--page", "--profile", "--policy-plugin", "--strategy-plugin", "--confidence", "--adversary", "--save",
        "--json", "--quiet"}},
      {"worker",
       {"--listen", "--devices", "--memory", "--tls-cert", "--tls-key", "--tls-ca", "--insecure", "--models", "--allow",
        "--drain"}},
  };
  const auto found = everyday.find(subcommand);
  return found == everyday.end() ? nullptr : &found->second;
}

/// Whether `--help` shows an option; `--help-all` shows all.
bool is_everyday(const CLI::App& command, const CLI::Option& option) {
  const std::vector<std::string>* listed = everyday_options(command.get_name());
  return !listed || &option == command.get_help_ptr() || &option == command.get_help_all_ptr() ||
         std::ranges::any_of(*listed, [&](const std::string& name) { return option.check_name(name); });
}

/// Help as CLI11 prints it, for readers and for help2man, which makes man pages from it (packaging): a blank between
/// the names of an option, and two at least before the description.
struct help_format : CLI::Formatter {
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string names = Formatter::make_option_name(option, is_positional);
    return fmt::format("{}", fmt::join(CLI::detail::split(names, ','), ", "));
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    return Formatter::make_option_opts(option) + ' '; // counts where a description begins
  }

  std::string make_help(const CLI::App* command, std::string name, CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) // of all subcommands, one after the other
      return Formatter::make_help(command, std::move(name), mode);
    return make_description(command) + make_usage(command, std::move(name)) + make_positionals(command) +
           groups(*command, mode == CLI::AppFormatMode::All) + make_subcommands(command, mode) + '\n';
  }

private:
  std::string groups(const CLI::App& command, bool all) const {
    std::string text;
    size_t hidden = 0;
    for (const std::string& group : command.get_groups()) {
      std::vector<const CLI::Option*> options = command.get_options(
          [&](const CLI::Option* option) { return option->get_group() == group && option->nonpositional(); });
      if (!all)
        hidden += std::erase_if(options, [&](const CLI::Option* option) { return !is_everyday(command, *option); });
      if (!options.empty())
        text += make_group(group, false, std::move(options));
    }
    if (hidden > 0)
      text += fmt::format("\n{} more options: troupe {} --help-all\n", hidden, command.get_name());
    return text;
  }
};

} // namespace

void arrange_help(CLI::App& app) {
  app.formatter(std::make_shared<help_format>());
  app.set_help_flag("-h,--help", "Print the usual options and exit");
  app.set_help_all_flag("--help-all", "Print all options and exit");
}

} // namespace troupe::cli
