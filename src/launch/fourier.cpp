// GPU launches of DFT and STFT (shaders/fourier.comp): lines of a power of two by halves in shared memory, others by
// the definition.
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "ops/op.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

constexpr uint32_t fourier_threads = 128;
/// Sums by the definition take a length's square: longer ones are left to the CPU, which has a fast way.
constexpr int64_t longest_sum = 1 << 14;

launch_lists launch_fourier(const gpu_call& call, shader::fourier block, int64_t lines, uint32_t flags) {
  const dtype type = call.inputs.at(0).type;
  const auto variant = arithmetic_variant(type, call.gpu);
  if ((variant != "f32" && variant != "f16" && variant != "f64") || !call.gpu.float64 ||
      call.gpu.max_group_size < fourier_threads)
    return {};
  const auto length = static_cast<int64_t>(block.length.word);
  const int64_t results = lines * static_cast<int64_t>(block.bins.word);
  const bool is_fast = length >= 2 && std::has_single_bit(block.length.word) && length * 16 <= call.gpu.shared_bytes;
  const bool windowed = (flags & shader::fourier_window) != 0;
  launch_lists lists;
  for (const bool fast : {true, false}) {
    if (fast ? !is_fast : length > longest_sum || results >= index_limit)
      continue;
    launch_builder b(call, fast ? "fourier.halves" : "fourier.sums");
    launch& l = b.add("fourier." + *variant,
                      fast ? flat_groups(lines, 1, call.gpu) : flat_groups(results, fourier_threads, call.gpu),
                      {b.in(0), b.in(windowed ? 2 : 0), b.out(0)});
    l.constants = {fourier_threads, fast ? block.length.word : 0u, flags};
    block.count = fast ? lines : results;
    l.params = words_of(block);
    if (auto list = b.finish())
      lists.push_back(std::move(*list));
  }
  return lists;
}

launch_lists launch_dft(const gpu_call& call, int64_t axis) {
  const shape &x = call.inputs.at(0).dims, &y = call.outputs.at(0).dims;
  const bool inverse = call.attrs.integer("inverse", 0) != 0, onesided = call.attrs.integer("onesided", 0) != 0;
  const size_t at = normalize_axis(axis, x.size());
  int64_t length = inverse && onesided ? 2 * (x[at] - 1) : x[at];
  if (call.has_input(1)) {
    const tensor stated = known_elements(call.inputs[1]);
    if (!stated.defined() || stated.size() != 1)
      return {};
    length = to_int64(stated.view())[0];
  }
  if (length < 1 || length >= index_limit / 8)
    return {};
  const int64_t inner = volume(std::span(x).subspan(at + 1, x.size() - at - 2)), bins = y[at];
  const int64_t read = std::min(x[at], inverse && onesided ? length / 2 + 1 : length);
  const uint32_t flags = (x.back() == 2 ? shader::fourier_complex_in : 0) |
                         (y.back() == 2 ? shader::fourier_complex_out : 0) | (inverse ? shader::fourier_inverse : 0) |
                         (inverse && onesided ? shader::fourier_mirror : 0);
  return launch_fourier(call,
                        {.length = length,
                         .bins = bins,
                         .read = read,
                         .inner = std::max<int64_t>(inner, 1),
                         .in_outer_step = x[at] * inner,
                         .in_inner_step = 1,
                         .in_step = inner,
                         .out_outer_step = bins * inner,
                         .out_inner_step = 1,
                         .out_step = inner},
                        volume(std::span(x).first(at)) * inner, flags);
}

launch_lists dft_launches(const gpu_call& call) {
  if (!call.has_input(2))
    return launch_dft(call, -2);
  const tensor axis = known_elements(call.inputs[2]);
  return axis.defined() && axis.size() == 1 ? launch_dft(call, to_int64(axis.view())[0]) : launch_lists{};
}

launch_lists stft_launches(const gpu_call& call) {
  const shape &signal = call.inputs.at(0).dims, &y = call.outputs.at(0).dims;
  const tensor step = known_elements(call.inputs.at(1));
  const bool windowed = call.has_input(2);
  const tensor stated = call.has_input(3) ? known_elements(call.inputs[3]) : tensor();
  if (!step.defined() || step.size() != 1 || (call.has_input(3) && (!stated.defined() || stated.size() != 1)) ||
      (windowed && call.inputs[2].type != call.inputs[0].type))
    return {};
  const int64_t length = stated.defined() ? to_int64(stated.view())[0] : call.inputs[2].size();
  const int64_t hop = to_int64(step.view())[0], frames = y[1], bins = y[2];
  const bool fits = hop >= 1 && length >= 1 && length < index_limit / 8 &&
                    (frames == 0 || (frames - 1) * hop + length <= signal[1]) &&
                    (!windowed || call.inputs[2].size() == length);
  if (!fits)
    return {};
  const uint32_t flags = (signal.size() == 3 && signal[2] == 2 ? shader::fourier_complex_in : 0) |
                         shader::fourier_complex_out | (windowed ? shader::fourier_window : 0);
  return launch_fourier(call,
                        {.length = length,
                         .bins = bins,
                         .read = length,
                         .inner = std::max<int64_t>(frames, 1),
                         .in_outer_step = signal[1],
                         .in_inner_step = hop,
                         .in_step = 1,
                         .out_outer_step = frames * bins,
                         .out_inner_step = bins,
                         .out_step = 1},
                        signal[0] * frames, flags);
}

} // namespace

extern constinit const launch_rows fourier_rules = {
    {"", "DFT", [](const gpu_call& c) { return launch_dft(c, c.attrs.integer("axis", 1)); }},
    {"", "DFT", dft_launches, 20},
    {"", "STFT", stft_launches},
};

} // namespace troupe
