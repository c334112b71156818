#include "graph/data_symbols.hpp"

#include "support/catch.hpp"

using namespace troupe;

namespace {

/// x [4] → find → found [#found.0] → use → used [2 · #found.0].
graph finding_graph() {
  graph g;
  const dim count = dim::symbol("#found.0");
  const value_id x = g.add_value({.name = "x", .type = dtype::float32, .dims = symbolic_shape{4}});
  const value_id found = g.add_value({.name = "found", .type = dtype::int64, .dims = symbolic_shape{1, count}});
  const value_id used = g.add_value({.name = "used", .type = dtype::int64, .dims = symbolic_shape{2 * count}});
  g.inputs = {x};
  g.outputs = {used};
  g.add_node({.name = "find", .op_type = "NonZero", .inputs = {x}, .outputs = {found}});
  g.add_node({.name = "use", .op_type = "Tile", .inputs = {found}, .outputs = {used}});
  return g;
}

} // namespace

TEST_CASE("a dim that depends on data is defined by the node whose input does not mention it", "[graph][D3]") {
  const graph g = finding_graph();
  const data_symbols symbols(g);
  REQUIRE(symbols.size() == 1);
  CHECK(symbols.name(0) == "#found.0");
  CHECK(symbols.definer(0) == 0);
  CHECK(symbols.of_value(0).empty());
  CHECK(symbols.of_value(1).size() == 1);
  CHECK(symbols.of_value(2).size() == 1);
  const std::vector<data_symbol> definitions = symbols.definitions();
  REQUIRE(definitions.size() == 1);
  CHECK(definitions[0].value == 1);
  CHECK(definitions[0].axis == 1);
}

TEST_CASE("symbols of the inputs' dims, and dims that are known, depend on no node", "[graph][D3]") {
  graph g = finding_graph();
  g.values[g.inputs[0]].dims = symbolic_shape{dim::symbol("#found.0")};
  CHECK(data_symbols(g).size() == 0);
  g = finding_graph();
  for (value& v : g.values)
    v.dims = symbolic_shape{dim::symbol("batch")};
  CHECK(data_symbols(g).size() == 0);
  CHECK(data_symbols(g).of_value(1).empty());
}
