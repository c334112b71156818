#include "run/strategy_library.hpp"

#include "base/own_plugins.hpp"

namespace troupe {
namespace {

constexpr plugin_entry entry{.kind = "strategy plug-in",
                             .symbol = strategy_entry_name,
                             .version = strategy_abi_version,
                             .header = "troupe/strategy.hpp"};

own_plugins<strategy_library>& own_strategies() {
  static auto* const all = new own_plugins<strategy_library>("strategy");
  return *all;
}

/// Opens a state of the plug-in for a stream; the last of the functions closes it.
strategy_calls opened(const strategy_plugin& plugin, uint32_t replicas) {
  const auto end = [close = plugin.close](void* state) {
    try {
      if (close)
        close(state);
    } catch (...) { // no caller waits for it any more
    }
  };
  const std::shared_ptr<void> state(plugin.open ? plugin.open(replicas) : nullptr, end);
  strategy_calls calls;
  calls.choose = [state, choose = plugin.choose](const strategy_stream* s, const strategy_offer* o,
                                                 strategy_answer* a) { return choose(state.get(), s, o, a); };
  if (plugin.share)
    calls.share = [state, share = plugin.share](const strategy_stream* s, int64_t rows, int64_t* shares) {
      return share(state.get(), s, rows, shares);
    };
  return calls;
}

} // namespace

std::shared_ptr<const strategy_library> strategy_library::open(const std::filesystem::path& path) {
  if (own_strategies().is_handle(path.native()))
    return own_strategies().find(path.native());
  const auto file = std::make_shared<const plugin_file>(path, entry);
  const auto& found = *static_cast<const strategy_plugin*>(file->ask());
  const std::shared_ptr<strategy_library> made(new strategy_library);
  made->description_ = file->description(file->checked_name(found.name));
  if (!found.choose)
    fail(errc::invalid_argument, "the strategy plug-in '{}' has no function that chooses", file->path());
  made->open_ = [plugin = found](uint32_t replicas) { return opened(plugin, replicas); };
  made->file_ = file;
  return made;
}

std::shared_ptr<const strategy_library> strategy_library::of(const std::string& name, own_strategy::opener open) {
  if (!is_plugin_name(name))
    fail(errc::invalid_argument, "a strategy cannot be called '{}': a name of letters, digits, '-' and '_' is needed",
         name);
  if (!open)
    fail(errc::invalid_argument, "the strategy '{}' has no function that opens a stream", name);
  const std::shared_ptr<strategy_library> made(new strategy_library);
  made->description_ = fmt::format("the strategy '{}'", name);
  made->open_ = [open = std::move(open)](uint32_t replicas) { return strategy_calls{.choose = open(replicas)}; };
  return made;
}

own_strategy::own_strategy(std::string name, opener open)
    : handle_(own_strategies().add(name, [&](uint64_t) { return strategy_library::of(name, std::move(open)); })) {}

own_strategy::~own_strategy() {
  own_strategies().drop(handle_);
}

} // namespace troupe
