#include "strategy/row_proof.hpp"

#include "graph/bodies.hpp"
#include "strategy/row_positions.hpp"

#include <algorithm>

namespace troupe {
namespace {

using relation = row_state::relation;

bool any_depends_on(std::span<const dim> dims, const std::string& symbol) {
  return std::any_of(dims.begin(), dims.end(), [&](const dim& d) { return depends_on(d, symbol); });
}

/// Returns whether dims or known elements inside a body, or a body of its nodes, depend on the number of rows.
bool body_mentions(const graph& body, const std::string& symbol) {
  for (const value& v : body.values)
    if ((v.dims && any_depends_on(*v.dims, symbol)) || (v.known && any_depends_on(*v.known, symbol)))
      return true;
  return std::any_of(body.nodes.begin(), body.nodes.end(), [&](const node& n) {
    if (!has_body(n))
      return false;
    const auto bodies = bodies_of(n);
    return std::any_of(bodies.begin(), bodies.end(),
                       [&](const node_body& b) { return body_mentions(*b.program, symbol); });
  });
}

/// Returns the symbol that counts rows; see `prove_rows`.
std::string row_symbol(const graph& g) {
  const auto countable = [](const dim& d) {
    const std::string name = d.symbol_name();
    return name.empty() || d.depends_on_data() ? std::string() : name;
  };
  for (const bool anywhere : {false, true})
    for (value_id v : g.inputs) {
      const auto& dims = g.values[v].dims;
      for (size_t i = 0; dims && i < (anywhere ? dims->size() : std::min<size_t>(1, dims->size())); ++i)
        if (std::string name = countable((*dims)[i]); !name.empty())
          return name;
    }
  fail(errc::unsupported,
       "the model has no rows to tell apart: every dim of its inputs is fixed{}. Export it with a "
       "batch dim that has a name",
       g.inputs.empty() ? "" : ", as those of input '" + g.values[g.inputs[0]].name + "' are");
}

class proof {
public:
  explicit proof(const graph& g) : graph_(g), states_(g.values.size()), symbol_(row_symbol(g)) {}

  batch_rows run() {
    batch_rows result{symbol_, {}, {}};
    for (size_t v = 0; v < graph_.values.size(); ++v)
      if (graph_.values[v].known)
        states_[v] = known_state(*graph_.values[v].known);
    for (const auto* ends : {&graph_.inputs, &graph_.outputs})
      for (value_id v : *ends)
        if (is_container(graph_.values[v].type))
          fail(errc::unsupported, "the rows of '{}' cannot be told apart: it is {}", graph_.values[v].name,
               to_string(graph_.values[v].type));
    for (value_id v : graph_.inputs)
      result.inputs.push_back(add_input(v));
    for (const node& n : graph_.nodes)
      add_node(n);
    for (value_id v : graph_.outputs)
      result.outputs.push_back(output_rows(v));
    return result;
  }

private:
  row_state known_state(std::span<const dim> elements) const {
    return {any_depends_on(elements, symbol_) ? relation::size : relation::shared};
  }

  std::optional<size_t> add_input(value_id v) {
    const value& input = graph_.values[v];
    if (!input.dims)
      fail(errc::unsupported, "the rows of input '{}' cannot be told apart: its rank is not known", input.name);
    if (!any_depends_on(*input.dims, symbol_))
      return std::nullopt;
    const auto counts = [&](const dim& d) { return depends_on(d, symbol_); };
    const auto found = std::find_if(input.dims->begin(), input.dims->end(), counts);
    states_[v] = {relation::rows, static_cast<size_t>(found - input.dims->begin())};
    if (!has_rows_at(*input.dims, states_[v].axis, 1))
      fail(errc::unsupported,
           "the rows of input '{}' cannot be told apart: its dims {} do not have '{}' at exactly one axis", input.name,
           to_string(*input.dims), symbol_);
    return states_[v].axis;
  }

  std::optional<size_t> output_rows(value_id v) const {
    const row_state& s = states_[v];
    if (s.is == relation::positions)
      fail(errc::unsupported, "rows of '{}' cannot be proved independent: {}", symbol_, deferred_.at(v));
    if (s.is == relation::size)
      fail(errc::unsupported, "output '{}' depends on the number of rows, '{}'", graph_.values[v].name, symbol_);
    if (!s.unit.is(1))
      fail(errc::unsupported, "output '{}' has rows folded with others into dim {} of {}", graph_.values[v].name,
           s.axis, to_string(*graph_.values[v].dims));
    return s.is == relation::rows ? std::optional(s.axis) : std::nullopt;
  }

  /// Returns whether dim `axis` has `unit` neighbours for each row, and no other dim depends on the number of rows.
  bool has_rows_at(const symbolic_shape& dims, size_t axis, const dim& unit) const {
    for (size_t i = 0; i < dims.size(); ++i)
      if (i == axis ? !(dims[i] == dim::symbol(symbol_) * unit) : depends_on(dims[i], symbol_))
        return false;
    return axis < dims.size();
  }

  bool is_any(const node& n, relation wanted) const {
    return std::any_of(n.inputs.begin(), n.inputs.end(),
                       [&](value_id v) { return v != no_value && states_[v].is == wanted; });
  }

  /// Returns whether the dims of a node's results, or what its bodies do, depend on the number of rows.
  bool results_follow_rows(const node& n) const {
    const auto bodies = has_body(n) ? bodies_of(n) : std::vector<node_body>();
    return std::any_of(bodies.begin(), bodies.end(),
                       [&](const node_body& b) { return body_mentions(*b.program, symbol_); }) ||
           std::any_of(n.outputs.begin(), n.outputs.end(), [&](value_id v) {
             return v != no_value && graph_.values[v].dims && any_depends_on(*graph_.values[v].dims, symbol_);
           });
  }

  void add_node(const node& n) {
    const auto unknown = [&](value_id v) { return v != no_value && !graph_.values[v].known; };
    if (std::none_of(n.outputs.begin(), n.outputs.end(), unknown))
      return; // the host computes them from dims alone
    if (const auto used =
            std::find_if(n.inputs.begin(), n.inputs.end(),
                         [&](value_id v) { return v != no_value && states_[v].is == relation::positions; });
        used != n.inputs.end())
      use_index(n, deferred_.at(*used));
    else
      try {
        if (is_any(n, relation::rows) || results_follow_rows(n))
          follow_axes(n);
        else if (is_any(n, relation::size))
          add_sizes(n);
      } catch (const error& e) {
        use_index(n, fmt::format("{} {}", describe(n), e.what()));
      }
  }

  /// A call that has to do with row numbers (row_positions.hpp), or else is refused for this reason; so are later calls
  /// that use its result for anything else.
  void use_index(const node& n, const std::string& reason) {
    const auto found = index_state(n);
    if (!found)
      fail(errc::unsupported, "rows of '{}' cannot be proved independent: {}", symbol_, reason);
    states_[n.outputs[0]] = *found;
    if (found->is == relation::positions)
      deferred_[n.outputs[0]] = reason;
  }

  std::optional<row_state> index_state(const node& n) const {
    try {
      const auto found = indexed_rows(row_call(graph_, n, states_, symbol_), graph_, producer_);
      const auto& dims = graph_.values[n.outputs.at(0)].dims;
      return found && has_rows_at(*dims, found->axis, found->unit) ? found : std::nullopt;
    } catch (const error&) {
      return std::nullopt; // then the reason is another
    }
  }

  /// No operand has rows: the results follow from the number of rows.
  void add_sizes(const node& n) {
    for (value_id v : n.outputs) {
      if (!is_open(v))
        continue;
      const auto& dims = graph_.values[v].dims;
      if (!dims || std::any_of(dims->begin(), dims->end(), [](const dim& d) { return d.depends_on_data(); }))
        fail(errc::unsupported, "decides by the number of rows how large its result is");
      states_[v] = {relation::size};
    }
  }

  void follow_axes(const node& n) {
    const auto places = row_call(graph_, n, states_, symbol_).results();
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (!is_open(n.outputs[i]))
        continue;
      const auto& dims = graph_.values[n.outputs[i]].dims;
      const auto& place = places[i];
      // Whatever the axes say: only such dims can be cut.
      if (!dims || (place ? !has_rows_at(*dims, place->axis, place->unit) : any_depends_on(*dims, symbol_)))
        fail(errc::unsupported, "has a result of dims {}, which do not have '{}' at one axis alone",
             dims ? to_string(*dims) : "unknown", symbol_);
      if (place)
        states_[n.outputs[i]] = {relation::rows, place->axis, place->unit};
    }
  }

  bool is_open(value_id v) const { return v != no_value && !graph_.values[v].known; }

  const graph& graph_;
  std::vector<row_state> states_;            // by value
  std::map<value_id, std::string> deferred_; // why row numbers serve as an index only
  std::vector<node_id> producer_ = adjacency_of(graph_).producer;
  std::string symbol_;
};

} // namespace

batch_rows prove_rows(const graph& program) {
  return proof(program).run();
}

} // namespace troupe
