#include "graph/element_symbols.hpp"

#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("elements that decide shapes are bound from the bytes, negative ones too", "[graph][control][D3]") {
  value input{.name = "shape", .type = dtype::int64, .dims = symbolic_shape{3}};
  input.known = element_symbols("shape", 3, false);
  const std::vector<int64_t> elements{5, -2, INT64_MIN + 1};
  bindings values;
  bind_elements(input, tensor::of<int64_t>({3}, elements), values);
  for (size_t i = 0; i < elements.size(); ++i)
    CHECK((*input.known)[i].evaluate(values) == elements[i]);
}

TEST_CASE("an element that counts is never negative", "[graph][control][D3]") {
  value input{.name = "sizes", .type = dtype::int64, .dims = symbolic_shape{1}};
  input.known = element_symbols("sizes", 1, true);
  bindings values;
  bind_elements(input, tensor::of<int64_t>({1}, std::vector<int64_t>{7}), values);
  CHECK(input.known->front().evaluate(values) == 7);
  const error e = thrown_by([&] { bind_elements(input, tensor::of<int64_t>({1}, std::vector<int64_t>{-7}), values); });
  CHECK(e.code() == errc::invalid_input);
  CHECK(std::string(e.what()).find("'sizes'") != std::string::npos);
}

TEST_CASE("elements that the graph around knows are not bound again", "[graph][control][D3]") {
  value input{.name = "shape", .type = dtype::int64, .dims = symbolic_shape{1}};
  input.known = std::vector<dim>{dim::symbol("batch")};
  bindings values;
  bind_elements(input, tensor::of<int64_t>({1}, std::vector<int64_t>{7}), values);
  CHECK(values.empty());
  CHECK(body_dim("x", 1) == body_dim("x", 1));
  CHECK_FALSE(body_dim("x", 1) == body_dim("x", 0));
}
