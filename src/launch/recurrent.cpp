// LSTM, GRU and RNN: the input's part of all steps is one product (shaders/recurrent_project.comp); then a launch a
// step, or one for all steps if a group can read the recurrent weights as fast as a launch costs
// (shaders/recurrent.comp). A GRU without linear_before_reset is a group for each direction and batch row
// (shaders/gru.comp).
//
// Not on GPUs: peepholes, sequences of different lengths, other activations than the defaults (RNN: also Relu).
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace troupe {
namespace {

constexpr uint32_t lanes = 16, step_threads = 128, project_threads = 128;
/// Recurrent weights of a direction up to this size are read by one group in each step.
constexpr int64_t persistent_bytes = int64_t{256} << 10;

struct recurrent_call {
  int64_t gates, steps, batch, inputs, hidden, directions;
  uint32_t batch_first, reverse; // reverse: a bit a direction
  uint32_t flags;
  float clip;
  bool resets_first; // GRU without linear_before_reset

  int64_t columns() const { return gates * hidden; }
};

/// Returns whether all names are `wanted` ones, in whatever case.
bool are(const std::vector<std::string>& names, const std::vector<std::string>& wanted, size_t directions) {
  if (names.empty())
    return true;
  std::vector<std::string> lower(names);
  for (std::string& name : lower)
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  std::vector<std::string> all;
  for (size_t d = 0; d < directions; ++d)
    all.insert(all.end(), wanted.begin(), wanted.end());
  return lower == all;
}

bool whole_sequences(const gpu_call& call, int64_t steps) {
  if (!call.has_input(4))
    return true;
  const tensor lengths = known_elements(call.inputs[4]);
  if (!lengths.defined())
    return false;
  const auto values = to_int64(lengths.view());
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == steps; });
}

/// Returns the call, nullopt if the kernels do not know it.
std::optional<recurrent_call> parse(const gpu_call& call, int64_t gates) {
  const attributes& attrs = call.attrs;
  const shape &x = call.inputs[0].dims, &r = call.inputs[2].dims;
  recurrent_call c{.gates = gates};
  c.batch_first = attrs.integer("layout", 0) != 0;
  c.steps = x.at(c.batch_first ? 1 : 0);
  c.batch = x.at(c.batch_first ? 0 : 1);
  c.inputs = x.at(2);
  c.hidden = r.at(2);
  c.directions = r.at(0);
  const std::string direction = attrs.text("direction", "forward");
  c.reverse = direction == "reverse" ? 1 : direction == "bidirectional" ? 2 : 0;
  const auto directions = static_cast<size_t>(c.directions);
  const auto names = attrs.texts("activations", {});
  const bool relu = gates == 1 && !names.empty() && are(names, {"relu"}, directions);
  const bool usual = gates == 4   ? are(names, {"sigmoid", "tanh", "tanh"}, directions)
                     : gates == 3 ? are(names, {"sigmoid", "tanh"}, directions)
                                  : relu || are(names, {"tanh"}, directions);
  if (!usual || call.has_input(7) || c.steps < 1 || c.hidden < 1 || !whole_sequences(call, c.steps))
    return std::nullopt;
  c.resets_first = gates == 3 && attrs.integer("linear_before_reset", 0) == 0;
  const float clip = attrs.real("clip", 0.f);
  c.clip = clip > 0 ? clip : std::numeric_limits<float>::infinity();
  c.flags = (c.hidden % 4 == 0 ? shader::recurrent_vectors : 0) | (call.has_input(3) ? shader::recurrent_bias : 0) |
            (call.has_input(5) ? shader::recurrent_initial_h : 0) |
            (call.has_input(6) ? shader::recurrent_initial_c : 0) | (call.has_output(0) ? shader::recurrent_y : 0) |
            (call.has_output(1) ? shader::recurrent_last_h : 0) | (call.has_output(2) ? shader::recurrent_last_c : 0) |
            (relu ? shader::recurrent_relu : 0);
  if (gates == 4 && attrs.integer("input_forget", 0) != 0)
    c.flags |= shader::recurrent_input_forget;
  return c;
}

void add_projection(launch_builder& b, const gpu_call& call, const recurrent_call& c, const std::string& variant,
                    launch_binding projected) {
  const int64_t rows = c.steps * c.batch;
  launch& l =
      b.add("recurrent_project." + variant, {word((c.columns() + 63) / 64), word((rows + 31) / 32), word(c.directions)},
            {b.in(0), b.in(1), b.in(call.has_input(3) ? 3 : 0), written(projected)});
  l.constants = {call.has_input(3) ? 1u : 0u};
  // With linear_before_reset GRU's candidate multiplies its recurrent bias with the reset gate.
  l.params = words_of(
      shader::recurrent_project{.rows = rows,
                                .columns = c.columns(),
                                .depth = c.inputs,
                                .recurrent_bias = c.gates == 3 && !c.resets_first ? 2 * c.hidden : c.columns()});
}

/// How a launch of recurrent.comp is cut.
struct recurrent_groups {
  uint32_t threads, batch; // batch rows of a group
  bool persistent;

  int64_t shared_bytes(const recurrent_call& c) const {
    const int64_t sums = c.gates * batch;
    return 16 * (persistent ? 2 : 1) * batch * ((c.hidden + 3) / 4) + 4 * sums * (threads + threads / lanes);
  }
};

std::optional<recurrent_groups> choose_groups(const recurrent_call& c, bool persistent, const gpu_features& gpu) {
  const uint32_t batch = c.batch >= 4 ? 4 : c.batch >= 2 ? 2 : 1;
  uint32_t threads = step_threads;
  if (persistent)
    threads = std::clamp(std::bit_ceil(word(c.hidden * lanes)), step_threads,
                         std::min(1024u, std::bit_floor(gpu.max_group_size)));
  for (; threads >= step_threads; threads /= 2)
    if (const recurrent_groups g{threads, batch, persistent}; g.shared_bytes(c) <= gpu.shared_bytes)
      return g;
  return std::nullopt;
}

std::optional<launch_list> list_for(const gpu_call& call, const recurrent_call& c, bool persistent,
                                    const std::string& variant) {
  const auto g = choose_groups(c, persistent, call.gpu);
  if (!g)
    return std::nullopt;
  launch_builder b(call, persistent ? "recurrent.persistent" : "recurrent");
  const int64_t all = c.directions * c.batch * c.hidden;
  const launch_binding projected = b.scratch(c.directions * c.steps * c.batch * c.columns() * 4);
  const launch_binding states = b.scratch(3 * all * 4);
  add_projection(b, call, c, variant, projected);
  const uint32_t units = g->threads / lanes;
  const auto input = [&](size_t i) { return b.in(call.has_input(i) ? i : 0); };
  const auto output = [&](size_t i) { return call.has_output(i) ? b.out(i) : written(states); };
  const int64_t launches = persistent ? 1 : c.steps;
  for (int64_t step = 0; step < launches; ++step) {
    b.next_step();
    launch& l =
        b.add("recurrent." + variant,
              {persistent ? 1 : word((c.hidden + units - 1) / units), word(c.directions),
               word((c.batch + g->batch - 1) / g->batch)},
              {projected, b.in(2), input(3), input(5), input(6), written(states), output(0), output(1), output(2)});
    l.constants = {g->threads, word(c.gates), g->batch, word(c.hidden), persistent ? 1u : 0u, c.flags};
    l.params = words_of(shader::recurrent{.first_step = step,
                                          .step_count = persistent ? c.steps : 1,
                                          .steps = c.steps,
                                          .batch = c.batch,
                                          .directions = c.directions,
                                          .batch_first = c.batch_first,
                                          .reverse = c.reverse,
                                          .clip = c.clip});
  }
  return b.finish();
}

launch_lists launch_gru(const gpu_call& call, const recurrent_call& c, const std::string& variant) {
  if (3 * 4 * c.hidden > int64_t{call.gpu.shared_bytes})
    return {};
  launch_builder b(call, "gru");
  const launch_binding projected = b.scratch(c.directions * c.steps * c.batch * c.columns() * 4);
  add_projection(b, call, c, variant, projected);
  b.next_step();
  const auto threads =
      std::min(std::clamp(std::bit_ceil(word(c.hidden)), 32u, 256u), std::bit_floor(call.gpu.max_group_size));
  const size_t some_output = call.has_output(0) ? 0 : 1;
  launch& l = b.add("gru." + variant, {word(c.batch), word(c.directions), 1},
                    {projected, b.in(2), b.in(call.has_input(5) ? 5 : 0), b.out(some_output),
                     b.out(call.has_output(1) ? 1 : some_output)});
  l.constants = {threads, word(c.hidden), c.flags};
  l.params = words_of(shader::gru{.steps = c.steps,
                                  .batch = c.batch,
                                  .directions = c.directions,
                                  .batch_first = c.batch_first,
                                  .reverse = c.reverse,
                                  .clip = c.clip});
  return single_list(b);
}

launch_lists launch_recurrent(const gpu_call& call, int64_t gates) {
  const dtype type = call.inputs[0].type;
  const bool is_float = type == dtype::float32 || type == dtype::float16;
  const auto variant = is_float ? arithmetic_variant(type, call.gpu) : std::nullopt;
  if (!variant || call.gpu.max_group_size < step_threads)
    return {};
  const auto c = parse(call, gates);
  if (!c)
    return {};
  if (c->resets_first)
    return call.has_output(0) || call.has_output(1) ? launch_gru(call, *c, *variant) : launch_lists{};
  launch_lists lists;
  const int64_t bytes = bytes_of(type, c->columns() * c->hidden);
  for (bool persistent : {true, false})
    if (!persistent || bytes <= persistent_bytes)
      if (auto list = list_for(call, *c, persistent, *variant))
        lists.push_back(std::move(*list));
  return lists;
}

launch_lists lstm_launches(const gpu_call& call) {
  return call.attrs.integer("quantized_state", 0) != 0 ? launch_lists{} : launch_recurrent(call, 4);
}

} // namespace

extern constinit const launch_rows recurrent_rules = {
    {"", "GRU", [](const gpu_call& c) { return launch_recurrent(c, 3); }},
    {"", "LSTM", lstm_launches},
    {"", "RNN", [](const gpu_call& c) { return launch_recurrent(c, 1); }},
};

} // namespace troupe
