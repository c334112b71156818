// Models that do not come from a file.
#pragma once

#include "troupe/export.hpp"

#include <memory>

namespace troupe {

struct graph;

/// A model made in code: what `model_builder::build` returns and `engine::load` takes. Immutable; copies share it.
class TROUPE_API built_model {
public:
  /// Takes a graph as troupe has it inside: `model_builder::build` makes one.
  built_model(graph source); // NOLINT(google-explicit-constructor): a graph is a model
  const graph& source() const { return *source_; }

private:
  std::shared_ptr<const graph> source_;
};

} // namespace troupe
