#include "launch/launch.hpp"

#include "base/checked.hpp"
#include "ops/pack.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

constexpr size_t max_param_words = 128;

} // namespace

bool same_in_both_layouts(const shape& dims) {
  return dims.size() < 3 || dims[1] == 1 || volume(std::span(dims).subspan(2)) == 1;
}

bool lies_last(const operand& o) {
  return o.layout == layout::channels_last && !same_in_both_layouts(o.dims);
}

size_t present(const gpu_call& call, size_t i) {
  return call.has_input(i) ? i : no_input;
}

bool has_type(const gpu_call& call, size_t i, dtype type, int64_t size) {
  return i == no_input || (call.inputs[i].type == type && call.inputs[i].size() == size);
}

bool same_types(const gpu_call& call) {
  return std::all_of(call.inputs.begin(), call.inputs.end(),
                     [&](const operand& o) { return o.type == call.inputs[0].type; });
}

bool launch_list::reads_outputs() const {
  const auto is_read = [](const launch_binding& b) { return b.from == launch_binding::source::output && !b.written; };
  return std::ranges::any_of(launches, [&](const launch& l) { return std::ranges::any_of(l.bindings, is_read); });
}

launch_binding launch_builder::in(size_t i) const {
  expects(call_.has_input(i), "a launch binds an input that is absent");
  return {launch_binding::source::input, static_cast<uint32_t>(i), 0, call_.inputs[i].bytes(), false};
}

launch_binding launch_builder::out(size_t i) const {
  expects(call_.has_output(i), "a launch binds an output that is absent");
  return {launch_binding::source::output, static_cast<uint32_t>(i), 0, call_.outputs[i].stored_bytes(), true};
}

launch_binding launch_builder::packed(size_t i, shape dims, shape order, shape sizes) {
  const operand& o = call_.inputs.at(i);
  expects(o.constant != nullptr, "only constants can be packed");
  return made(pack(o.constant, std::move(dims), std::move(order), std::move(sizes)));
}

launch_binding launch_builder::made(weight_ptr w) {
  const int64_t bytes = bytes_of(w->type, volume(w->dims));
  const auto known = std::find(list_.packed.begin(), list_.packed.end(), w);
  const auto index = static_cast<uint32_t>(known - list_.packed.begin());
  if (known == list_.packed.end())
    list_.packed.push_back(std::move(w));
  return {launch_binding::source::packed, index, 0, bytes, false};
}

launch_binding launch_builder::scratch(int64_t bytes) {
  list_.scratch.push_back(bytes);
  return {launch_binding::source::scratch, static_cast<uint32_t>(list_.scratch.size() - 1), 0, bytes, false};
}

launch_binding launch_builder::counters(int64_t count) {
  expects(list_.counters == 0, "a list of launches has counters twice");
  list_.counters = 4 * count;
  return {launch_binding::source::counters, 0, 0, list_.counters, true};
}

launch& launch_builder::add(std::string shader, std::array<uint32_t, 3> groups, std::vector<launch_binding> bindings) {
  list_.launches.push_back({.shader = std::move(shader), .groups = groups, .bindings = std::move(bindings)});
  list_.launches.back().step = step_;
  return list_.launches.back();
}

std::optional<launch_list> launch_builder::finish() {
  for (launch& l : list_.launches) {
    if (l.params.size() > max_param_words)
      return std::nullopt;
    for (size_t axis = 0; axis < 3; ++axis)
      if (l.groups[axis] > call_.gpu.max_groups[axis])
        return std::nullopt;
    for (const launch_binding& b : l.bindings)
      if (b.bytes > call_.gpu.max_binding_bytes || b.offset % call_.gpu.binding_alignment != 0)
        return std::nullopt;
  }
  // A launch without groups or without bytes to write has nothing to do.
  std::erase_if(list_.launches, [](const launch& l) {
    const bool writes_nothing = std::all_of(l.bindings.begin(), l.bindings.end(),
                                            [](const launch_binding& b) { return !b.written || b.bytes == 0; });
    return writes_nothing || l.groups[0] == 0 || l.groups[1] == 0 || l.groups[2] == 0;
  });
  return std::move(list_);
}

void add_lists(launch_lists& lists, launch_lists more) {
  lists.insert(lists.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

launch_lists single_list(launch_builder& b) {
  auto list = b.finish();
  return list ? launch_lists{std::move(*list)} : launch_lists{};
}

launch_binding written(launch_binding binding) {
  binding.written = true;
  return binding;
}

launch_binding reading(launch_binding binding) {
  binding.written = false;
  return binding;
}

launch_binding part_of(launch_binding binding, int64_t offset, int64_t bytes) {
  expects(offset >= 0 && bytes >= 0 && offset + bytes <= binding.bytes, "a part of a binding is outside it");
  binding.offset += offset;
  binding.bytes = bytes;
  return binding;
}

std::array<uint32_t, 3> flat_groups(int64_t count, int64_t group_size, const gpu_features& gpu) {
  const int64_t groups = (count + group_size - 1) / group_size;
  const int64_t width = std::min<int64_t>({std::max<int64_t>(groups, 1), gpu.max_groups[0], 65535});
  const int64_t height = (groups + width - 1) / width;
  return {static_cast<uint32_t>(width), static_cast<uint32_t>(std::min<int64_t>(height, UINT32_MAX)), 1};
}

std::optional<std::string> arithmetic_variant(dtype type, const gpu_features& gpu) {
  switch (type) {
    case dtype::float32: return "f32";
    case dtype::int32: return "i32";
    case dtype::uint32: return "u32";
    case dtype::float64: return gpu.float64 && gpu.int64 ? std::optional<std::string>("f64") : std::nullopt;
    case dtype::float16: return gpu.float16 ? std::optional<std::string>("f16") : std::nullopt;
    case dtype::int64: return gpu.int64 ? std::optional<std::string>("i64") : std::nullopt;
    case dtype::uint64: return gpu.int64 ? std::optional<std::string>("u64") : std::nullopt;
    case dtype::int16: return gpu.float16 ? std::optional<std::string>("i16") : std::nullopt;
    case dtype::uint16: return gpu.float16 ? std::optional<std::string>("u16") : std::nullopt;
    case dtype::int8: return gpu.int8 ? std::optional<std::string>("i8") : std::nullopt;
    case dtype::uint8:
    case dtype::boolean: return gpu.int8 ? std::optional<std::string>("u8") : std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<std::string> float_variant(dtype type, const gpu_features& gpu) {
  return type == dtype::float32 || type == dtype::float16 ? arithmetic_variant(type, gpu) : std::nullopt;
}

std::optional<std::string> movement_variant(dtype type, const gpu_features& gpu) {
  if (type == dtype::string || type == dtype::undefined)
    return std::nullopt;
  switch (bits_of(type)) {
    case 8: return gpu.int8 ? std::optional<std::string>("w8") : std::nullopt;
    case 16: return gpu.float16 ? std::optional<std::string>("w16") : std::nullopt;
    case 32: return "w32";
    case 64: return "w64";
    default: return std::nullopt;
  }
}

uint32_t float_bits(float value) {
  return std::bit_cast<uint32_t>(value);
}

} // namespace troupe
