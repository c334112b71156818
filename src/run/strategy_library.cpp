#include "run/strategy_library.hpp"

namespace troupe {
namespace {

constexpr plugin_entry entry{.kind = "strategy plug-in",
                             .symbol = strategy_entry_name,
                             .version = strategy_abi_version,
                             .header = "troupe/strategy.hpp"};

} // namespace

strategy_library::strategy_library(const std::filesystem::path& file)
    : file_(file, entry), plugin_(*static_cast<const strategy_plugin*>(file_.ask())),
      name_(file_.checked_name(plugin_.name)) {
  if (!plugin_.choose)
    fail(errc::invalid_argument, "the strategy plug-in '{}' has no function that chooses", file_.path());
}

std::shared_ptr<const strategy_library> strategy_library::open(const std::filesystem::path& file) {
  return std::shared_ptr<const strategy_library>(new strategy_library(file));
}

} // namespace troupe
