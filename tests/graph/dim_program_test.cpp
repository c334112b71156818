// Programs of dims give the values of the dims.
#include "graph/dim_program.hpp"

#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const dim batch = dim::symbol("batch"), seq = dim::symbol("seq"), past = dim::symbol("past");

/// The symbols' values in the program's order.
std::vector<int64_t> in_order(const dim_program& p, const bindings& values) {
  std::vector<int64_t> ordered;
  for (const std::string& name : p.symbols())
    ordered.push_back(values.at(name));
  return ordered;
}

} // namespace

TEST_CASE("a program gives the values of its dims, run after run", "[graph][D3]") {
  const std::vector<dim> dims{7,
                              batch,
                              seq + past,
                              batch * (seq + past) * 64,
                              floor_div(seq + 1, 2),
                              ceil_div(seq, 4) - 3,
                              min(seq, past) + max(seq, past * 2),
                              broadcast(batch, past)};
  dim_program program;
  std::vector<dim_program::slot> slots;
  for (const dim& d : dims)
    slots.push_back(program.add(d));
  std::vector<int64_t> results;
  for (const bindings& values :
       {bindings{{"batch", 1}, {"seq", 5}, {"past", 128}}, bindings{{"batch", 9}, {"seq", 0}, {"past", 1}}}) {
    program.evaluate(in_order(program, values), results);
    for (size_t i = 0; i < dims.size(); ++i) {
      INFO(dims[i].to_string());
      CHECK(results.at(slots[i]) == dims[i].evaluate(values));
    }
  }
}

TEST_CASE("equal dims of a program are one slot", "[graph][D3]") {
  dim_program program;
  const auto first = program.add(seq + past);
  CHECK(program.add(past + seq) == first);
  CHECK(program.symbols().size() == 2);
  CHECK(program.add(seq + past + 1) != first);
}

TEST_CASE("values that do not fit a program's dims are refused", "[graph][D3]") {
  dim_program program;
  program.add(broadcast(batch, seq));
  program.add(floor_div(seq, past));
  std::vector<int64_t> results;
  const auto run = [&](const bindings& values) { program.evaluate(in_order(program, values), results); };
  CHECK_NOTHROW(run({{"batch", 1}, {"seq", 3}, {"past", 2}}));
  CHECK(thrown_by([&] { run({{"batch", 2}, {"seq", 3}, {"past", 2}}); }).code() == errc::invalid_input);
  CHECK(thrown_by([&] { run({{"batch", 3}, {"seq", 3}, {"past", 0}}); }).code() == errc::invalid_input);
}

TEST_CASE("a program knows which dims change with a symbol", "[graph][D1]") {
  dim_program program;
  const auto fixed = program.add(batch * 3), grows = program.add(seq + past), both = program.add(batch * past);
  std::vector<bool> which;
  for (const std::string& name : program.symbols())
    which.push_back(name == "past");
  const std::vector<bool> dependents = program.dependents(which);
  CHECK_FALSE(dependents.at(fixed));
  CHECK(dependents.at(grows));
  CHECK(dependents.at(both));
}
