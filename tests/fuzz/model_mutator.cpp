#include "fuzz/mutation.hpp"

#include "ops/registry.hpp"

#include <array>
#include <limits>

namespace troupe::test {
namespace {

using change = void (*)(mutation&);

/// A mutation that is listed twice happens twice as often.
constexpr auto changes = std::to_array<change>({
    mutations::change_op,           mutations::rewire,           mutations::rewire,
    mutations::insert_node,         mutations::insert_node,      mutations::remove_node,
    mutations::repeat_node,         mutations::change_arity,     mutations::add_output,
    mutations::wrap_in_body,        mutations::wrap_in_function, mutations::change_opset,
    mutations::change_attribute,    mutations::change_attribute, mutations::copy_attribute,
    mutations::remove_attribute,    mutations::change_dim,       mutations::change_dim,
    mutations::change_type,         mutations::change_elements,  mutations::change_elements,
    mutations::reshape_initializer, mutations::give_constant,    mutations::give_constant,
    mutations::move_outside,        mutations::compute_constant, mutations::change_variant,
});

const std::vector<std::string>& known_ops() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const op_def* def : all_ops())
      if (def->domain.empty() && (all.empty() || all.back() != def->name))
        all.emplace_back(def->name);
    return all;
  }();
  return names;
}

} // namespace

mutation::mutation(onnx::ModelProto& m, mutation_random& random) : model_(m), random_(random) {
  collect(*m.mutable_graph(), 0);
}

void mutation::collect(onnx::GraphProto& g, int depth) {
  constexpr int deep_enough = 8;
  graphs_.push_back(&g);
  for (auto& n : *g.mutable_node())
    for (auto& a : *n.mutable_attribute())
      if (a.has_g() && depth < deep_enough)
        collect(*a.mutable_g(), depth + 1);
}

int64_t mutation::integer() {
  constexpr auto odd = std::to_array<int64_t>({0,
                                               1,
                                               -1,
                                               2,
                                               3,
                                               4,
                                               -2,
                                               7,
                                               8,
                                               16,
                                               64,
                                               127,
                                               128,
                                               255,
                                               256,
                                               1000,
                                               65535,
                                               65536,
                                               INT32_MAX,
                                               INT32_MIN,
                                               int64_t{1} << 31,
                                               int64_t{1} << 32,
                                               INT64_MAX,
                                               INT64_MIN,
                                               INT64_MAX - 1,
                                               -(int64_t{1} << 40)});
  if (once_in(8))
    return static_cast<int64_t>(random_()) - static_cast<int64_t>(random_());
  return odd[below(once_in(2) ? 9 : odd.size())];
}

int64_t mutation::extent() {
  return once_in(12) ? integer() : static_cast<int64_t>(below(6));
}

float mutation::real() {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr auto odd = std::to_array<float>({0.f, 1.f, -1.f, 0.5f, 2.f, -0.f, 1e-8f, 1e30f, -1e30f, 1e-45f, inf, -inf,
                                             std::numeric_limits<float>::quiet_NaN(), 3.7f, 1e9f, -2.5f});
  return odd[below(odd.size())];
}

int mutation::type() {
  constexpr auto usual = std::to_array<int>({1, 1, 1, 7, 7, 6, 2, 3, 9, 10, 11});
  return once_in(4) ? static_cast<int>(below(26)) : usual[below(usual.size())];
}

std::string mutation::value_name(const onnx::GraphProto& given) {
  const onnx::GraphProto& g = once_in(8) ? graph() : given;
  const auto inputs = static_cast<size_t>(g.input_size()), constants = static_cast<size_t>(g.initializer_size());
  const size_t pick = below(inputs + constants + 2 * static_cast<size_t>(g.node_size()));
  if (pick < inputs)
    return g.input(static_cast<int>(pick)).name();
  if (pick < inputs + constants)
    return g.initializer(static_cast<int>(pick - inputs)).name();
  if (g.node_size() == 0)
    return "";
  const auto& n = g.node(static_cast<int>((pick - inputs - constants) / 2));
  return n.output_size() == 0 ? "" : n.output(static_cast<int>(below(static_cast<size_t>(n.output_size()))));
}

std::string mutation::fresh_name() {
  return "v" + std::to_string(random_() % 100000);
}

std::string mutation::op() {
  return any_of(known_ops());
}

std::string mutation::location() {
  static const std::vector<std::string> all{"w.bin",    "./w.bin",       "././w.bin", "../w.bin", "a/../w.bin",
                                            "link.bin", "/etc/hostname", "",          ".",        "none"};
  return all[below(once_in(2) ? 3 : all.size())];
}

void mutate_model(onnx::ModelProto& m, mutation_random& random) {
  for (size_t left = 1 + random() % 4; left > 0; --left) {
    mutation step(m, random); // the graphs may be others after each
    changes[step.below(changes.size())](step);
  }
}

void cross_models(onnx::ModelProto& m, const onnx::ModelProto& other, mutation_random& random) {
  mutation step(m, random);
  onnx::GraphProto& g = step.graph();
  const onnx::GraphProto& from = other.graph();
  for (const auto& t : from.initializer())
    if (step.once_in(2))
      *g.add_initializer() = t;
  for (const auto& n : from.node()) {
    if (step.once_in(3))
      continue;
    onnx::NodeProto& copy = *g.add_node();
    copy = n;
    for (auto& input : *copy.mutable_input())
      if (step.once_in(2))
        input = step.value_name(g);
  }
  for (const auto& f : other.functions())
    *m.add_functions() = f;
  if (from.output_size() > 0 && step.once_in(2))
    *g.add_output() = from.output(static_cast<int>(step.below(static_cast<size_t>(from.output_size()))));
}

} // namespace troupe::test
