// Is the plug-in better than HEFT on the problem that it is written for? compare PLUGIN.so plans five independent
// products of 3, 3, 2, 2 and 2 units of work on two equal devices by both, prints the predicted times, and fails unless
// the plug-in's is shorter.
#include <troupe/troupe.hpp>

#include <array>
#include <iostream>
#include <string>

namespace {

constexpr std::array<int64_t, 5> units{3, 3, 2, 2, 2};

/// Returns a model of products with the given thousands of rows.
troupe::built_model products() {
  troupe::model_builder m("products");
  const troupe::variable weights = m.constant(troupe::tensor(troupe::dtype::float32, {512, 512}));
  for (size_t i = 0; i < units.size(); ++i) {
    const auto x = m.input("x" + std::to_string(i), troupe::dtype::float32, {1000 * units[i], 512});
    m.output("y" + std::to_string(i), m.matmul(x, weights));
  }
  return m.build();
}

/// Returns the milliseconds that a plan is predicted to take.
double predicted_ms(troupe::engine& engine, const troupe::session_options& how) {
  troupe::named_tensors inputs;
  for (size_t i = 0; i < units.size(); ++i)
    inputs["x" + std::to_string(i)] = troupe::tensor(troupe::dtype::float32, {1000 * units[i], 512});
  const std::string plan = engine.load(products(), how).plan(inputs, troupe::plan_format::json);
  const std::string name = "\"predicted_ms\":";
  return std::stod(plan.substr(plan.find(name) + name.size()));
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: compare PLUGIN.so\n";
    return 2;
  }
  try {
    troupe::engine engine({.devices = {"slow:50*2"}}); // two devices, each at half of the CPU's speed
    const double heft = predicted_ms(engine, {.policy = troupe::placement_policy::heft});
    const double mine = predicted_ms(engine, {.policy_plugin = argv[1]});
    std::cout << "predicted by heft " << heft << " ms, by the plug-in " << mine << " ms\n";
    return mine < heft ? 0 : 1;
  } catch (const troupe::error& e) {
    std::cerr << to_string(e.code()) << ": " << e.what() << '\n';
    return 1;
  }
}
