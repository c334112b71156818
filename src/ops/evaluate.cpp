#include "ops/evaluate.hpp"

#include "base/content_hasher.hpp"
#include "base/mapped_memory.hpp"

#include "ops/expansion.hpp"
#include "ops/registry.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace troupe {
namespace {

/// A constant for inference alone: its key is never needed, which would take a pass over the bytes.
value constant_of(const tensor& bytes) {
  auto w = std::make_shared<weight>();
  w->type = bytes.type();
  w->dims = bytes.dims();
  w->leaf = bytes;
  return {.type = bytes.type(), .dims = to_symbolic(bytes.dims()), .constant = std::move(w)};
}

/// A graph of one node over the given inputs, inferred.
graph single_node_graph(const op_def& def, const attributes& attrs, std::span<const tensor> inputs,
                        size_t output_count) {
  graph g;
  node n{.op_type = std::string(def.name), .domain = std::string(def.domain), .attrs = attrs};
  n.def = &def;
  for (const tensor& input : inputs)
    n.inputs.push_back(input.defined() ? g.add_value(constant_of(input)) : no_value);
  for (size_t i = 0; i < output_count; ++i)
    n.outputs.push_back(g.add_value({.name = "output" + std::to_string(i)}));
  infer_node(g, n);
  g.add_node(std::move(n));
  return g;
}

} // namespace

const tensor* literal_of(const node& n) {
  return n.op_type == "Constant" && n.domain.empty() && n.attrs.has("value") ? &n.attrs.tensor_value("value") : nullptr;
}

std::vector<tensor> evaluate(const op_def& def, const attributes& attrs, std::span<const tensor> inputs,
                             size_t output_count) {
  if (def.expand)
    return evaluate_expansion(def, attrs, inputs, output_count);
  const graph g = single_node_graph(def, attrs, inputs, output_count);
  std::vector<const_view> in;
  for (const tensor& input : inputs)
    in.push_back(input.view());
  std::vector<tensor> results(output_count);
  std::vector<mutable_view> out(output_count);
  for (size_t i = 0; i < output_count; ++i) {
    const value& v = g.values[g.nodes[0].outputs[i]];
    if (v.dims && is_constant(*v.dims)) {
      results[i] = tensor(v.type, constants(*v.dims));
      out[i] = results[i].mutable_ref();
    } else {
      out[i].type = v.type; // data-dependent: the kernel allocates it
    }
  }
  // Without elements there is nothing to compute, however large the other dims are; that of a sequence is its length.
  if (std::all_of(results.begin(), results.end(),
                  [](const tensor& t) { return t.defined() && t.size() == 0 && !is_container(t.type()); }))
    return results;
  kernel_context context(attrs, in, out);
  def.reference(context);
  for (size_t i = 0; i < output_count; ++i)
    if (!results[i].defined())
      results[i] = context.allocated(i);
  return results;
}

namespace {

/// A weight with a step. A file decides how many steps stand on each other, so nothing here recurses over operands.
struct recipe : weight {
  recipe() = default;
  recipe(const recipe&) = delete;
  recipe& operator=(const recipe&) = delete;
  ~recipe() { release(std::move(step_inputs)); }

  double work = 0;      // see recipe_work
  uint32_t outputs = 1; // see step_outputs

private:
  /// Releases operands one after the other, not recursively: one that has no other owner hands over its own operands
  /// first.
  static void release(std::vector<weight_ptr> pending) {
    while (!pending.empty()) {
      const weight_ptr last = std::move(pending.back());
      pending.pop_back();
      if (!last || !last->step || last.use_count() != 1)
        continue;
      std::atomic_thread_fence(std::memory_order_acquire); // what other holders did with it is done
      auto& operands = const_cast<weight&>(*last).step_inputs;
      std::move(operands.begin(), operands.end(), std::back_inserter(pending));
      operands.clear();
    }
  }
};

/// The bytes of a part, as long as other steps will read them.
struct part_result {
  tensor bytes;
  size_t readers = 0;
};
using part_results = std::unordered_map<const weight*, part_result>;

/// Returns `w` and all that it is computed from, each once, operands first. Parts that are held go to `results`
/// instead.
std::vector<const weight*> parts_of(const weight& w, const held_parts& held, part_results& results) {
  struct visit {
    const weight* part;
    size_t next_operand;
  };
  std::vector<const weight*> parts;
  std::unordered_set<const weight*> seen{&w};
  std::vector<visit> path{{&w, 0}};
  while (!path.empty()) {
    visit& last = path.back();
    if (last.next_operand == last.part->step_inputs.size()) {
      parts.push_back(last.part);
      path.pop_back();
      continue;
    }
    const weight* operand = last.part->step_inputs[last.next_operand++].get();
    if (operand && seen.insert(operand).second) {
      if (tensor bytes = held ? held(*operand) : tensor{}; bytes.defined())
        results[operand].bytes = std::move(bytes);
      else
        path.push_back({operand, 0});
    }
  }
  return parts;
}

/// Computes one step; operands that no other step will read go.
tensor run_step(const weight& w, part_results& results) {
  std::vector<tensor> operands;
  for (const weight_ptr& operand : w.step_inputs)
    operands.push_back(operand ? results[operand.get()].bytes : tensor{});
  tensor made = evaluate(*w.step, w.step_attributes, operands, step_outputs(w)).at(w.step_output);
  for (const weight_ptr& operand : w.step_inputs)
    if (operand && --results[operand.get()].readers == 0)
      results.erase(operand.get());
  return made;
}

/// Computes the last of `parts` from those before and what is in `results`.
tensor run_steps(std::span<const weight* const> parts, part_results results) {
  for (const weight* part : parts)
    for (const weight_ptr& operand : part->step_inputs)
      if (operand)
        ++results[operand.get()].readers;
  for (const weight* part : parts)
    results[part].bytes = part->step ? run_step(*part, results) : part->leaf;
  return results[parts.back()].bytes;
}

} // namespace

tensor materialise(const weight& w) {
  if (!w.step)
    return w.leaf;
  part_results results;
  const std::vector<const weight*> parts = parts_of(w, {}, results);
  return run_steps(parts, std::move(results));
}

tensor materialise_for_device(const weight& w, const held_parts& held) {
  if (!w.step)
    return w.leaf;
  part_results results;
  const std::vector<const weight*> parts = parts_of(w, held, results);
  tensor bytes = run_steps(parts, std::move(results));
  for (const weight* part : parts)
    if (!part->step)
      release_mapped_pages(part->leaf.data(), static_cast<size_t>(part->leaf.bytes()));
  return bytes;
}

uint32_t step_outputs(const weight& w) {
  return static_cast<const recipe&>(w).outputs;
}

double recipe_work(const weight& w) {
  return w.step ? static_cast<const recipe&>(w).work : 0;
}

double folding_work(const op_def& def, const attributes& attrs, std::span<const weight_ptr> inputs,
                    std::vector<dtype> types, std::vector<shape> dims) try {
  constexpr double bytes_an_operation = 4;
  call_shapes call{{}, {}, std::move(types), std::move(dims)};
  double work = 0, bytes = 0;
  for (const weight_ptr& input : inputs) {
    call.input_types.push_back(input ? input->type : dtype::undefined);
    call.inputs.push_back(input ? input->dims : shape{});
    if (input) {
      work += recipe_work(*input);
      bytes += static_cast<double>(bytes_of(input->type, volume(input->dims)));
    }
  }
  for (size_t i = 0; i < call.outputs.size(); ++i)
    bytes += static_cast<double>(bytes_of(call.output_types[i], volume(call.outputs[i])));
  if (def.cost && !call.outputs.empty())
    work += def.cost(attrs, call).flops;
  return work + bytes / bytes_an_operation;
} catch (const error&) { // sizes that cannot be counted
  return std::numeric_limits<double>::infinity();
}

namespace {

void hash_attribute(content_hasher& h, const attribute& value) {
  const auto add = [&](const auto& v) {
    using T = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<T, tensor>)
      h.add(weight::from_tensor(v)->key);
    else if constexpr (std::is_same_v<T, std::shared_ptr<const graph>>)
      fail(errc::internal, "a weight recipe cannot hold control flow");
    else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      h.add(v.size());
      for (const auto& text : v)
        h.add(text);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>)
      h.add(v);
    else
      h.add(std::span<const typename T::value_type>(v));
  };
  h.add(value.index());
  std::visit(add, value);
}

/// The key of a weight with a step: all that decides what its elements are, so that no two recipes with different
/// results share one.
hash128 key_of_step(const weight& w) {
  content_hasher h; // models of different origin share what is computed
  h.add("step");
  h.add(w.step->domain);
  h.add(w.step->name);
  h.add(w.step->since);
  h.add(w.step_output);
  h.add(step_outputs(w));
  h.add(w.type);
  h.add(std::span<const int64_t>(w.dims));
  h.add(w.step_attributes.all().size());
  for (const auto& [name, value] : w.step_attributes.all()) {
    h.add(name);
    hash_attribute(h, value);
  }
  h.add(w.step_inputs.size());
  for (const auto& input : w.step_inputs)
    h.add(input ? input->key : hash128{});
  return h.digest();
}

} // namespace

weight_ptr make_step(const op_def& def, attributes attrs, std::vector<weight_ptr> inputs, dtype type, shape dims) {
  return make_step(def, std::move(attrs), std::move(inputs), 0, {type}, {std::move(dims)});
}

weight_ptr make_step(const op_def& def, attributes attrs, std::vector<weight_ptr> inputs, uint32_t output,
                     const std::vector<dtype>& types, const std::vector<shape>& dims) {
  auto w = std::make_shared<recipe>();
  w->work = folding_work(def, attrs, inputs, types, dims);
  w->type = types.at(output);
  w->dims = dims.at(output);
  w->step = &def;
  w->step_attributes = std::move(attrs);
  w->step_inputs = std::move(inputs);
  w->step_output = output;
  w->outputs = static_cast<uint32_t>(types.size());
  w->key = key_of_step(*w);
  return w;
}

} // namespace troupe
