// Models of one call, for tests of the rules of the row proof.
#pragma once

#include "strategy/row_proof.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

namespace troupe::test {

inline const dim batch = dim::symbol("batch");

/// A model of float inputs whose first output is the call's first result.
struct call_model : graph_builder {
  using graph_builder::graph_builder;

  value_id x(symbolic_shape dims, dtype type = dtype::float32) { return input(std::move(dims), type); }
  value_id weights(shape dims) { return constant("w" + std::to_string(g.values.size()), random_tensor(dims, 3)); }
  value_id bytes(shape dims) {
    tensor t(dtype::uint8, std::move(dims));
    std::fill_n(t.mutable_data<uint8_t>(), t.size(), uint8_t(1));
    return constant("b" + std::to_string(g.values.size()), t);
  }
  /// A call with several outputs; returns the first, the others follow.
  value_id many(const std::string& op, std::vector<value_id> inputs, size_t outputs, attributes attrs = {},
                const std::string& domain = "") {
    if (!domain.empty())
      g.opsets.try_emplace(domain, 1);
    std::vector<std::string> names;
    for (size_t i = 0; i < outputs; ++i)
      names.push_back("y" + std::to_string(g.values.size() + i));
    return call(op, std::move(inputs), names, std::move(attrs), domain)[0];
  }
};

template <class F>
batch_rows proved(F&& build, int64_t opset = 17) {
  call_model m(opset);
  const value_id y = build(m);
  for (value_id v = y; v < static_cast<value_id>(m.g.values.size()); ++v)
    m.output(v);
  return prove_rows(inferred(m.g));
}

/// The axis of the rows in the call's first output.
template <class F>
std::optional<size_t> axis_after(F&& build, int64_t opset = 17) {
  return proved(build, opset).outputs.at(0);
}

/// Returns the error of a call that is refused.
template <class F>
std::string refusal_of(F&& build, int64_t opset = 17) {
  const error e = thrown_by([&] { proved(build, opset); });
  CHECK(e.code() == errc::unsupported);
  return e.what();
}

inline attributes at(int64_t axis) {
  return attrs_of({{"axis", axis}});
}

} // namespace troupe::test
