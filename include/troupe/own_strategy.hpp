// Strategies that the program itself has, instead of a shared library (troupe/strategy.hpp).
//
//   const troupe::own_strategy mine("mine", [](uint32_t) {
//     return [turn = 0u](const troupe::strategy_stream* s, const troupe::strategy_offer*,
//                        troupe::strategy_answer* a) mutable {
//       const uint32_t next = turn % s->replica_count;
//       if (s->replicas[next].flags & troupe::strategy_replica_free)
//         a->replica = next, ++turn;
//       return 0;
//     };
//   });
//   auto session = engine.load("model.onnx", {.strategy_plugin = mine.handle()});
#pragma once

#include "troupe/export.hpp"
#include "troupe/strategy.hpp"

#include <functional>
#include <string>

namespace troupe {

/// A function as a strategy. Its rules are those of a plug-in's (`strategy_plugin`), but it may throw: what it throws
/// is reported, and ends the requests that wait.
class TROUPE_API own_strategy {
public:
  /// `strategy_plugin::choose` for one stream, whose state it holds. One thread at a time calls it.
  using chooser =
      std::function<int32_t(const strategy_stream* stream, const strategy_offer* offer, strategy_answer* answer)>;
  /// Makes the chooser of a new stream. Any thread may call it, and several at once.
  using opener = std::function<chooser(uint32_t replica_count)>;

  /// Throws `errc::invalid_argument` unless the name is 1 to 64 letters, digits, '-' and '_', and `open` is a function.
  own_strategy(std::string name, opener open);
  ~own_strategy();
  own_strategy(const own_strategy&) = delete;
  own_strategy& operator=(const own_strategy&) = delete;

  /// Returns what means this strategy where a plug-in's file would be named (`session_options::strategy_plugin`), while
  /// this object lives. Sessions keep the function.
  const std::string& handle() const { return handle_; }

private:
  std::string handle_;
};

} // namespace troupe
