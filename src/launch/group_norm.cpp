// GPU kernels of InstanceNormalization and GroupNormalization, and of their fused forms with an activation: one launch
// where each workgroup has whole slices, or two if slices are too few to fill the device: the moments of parts, and the
// result from them.
#include "base/round_up.hpp"
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "launch/row_team.hpp"
#include "ops/activation.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Bytes that one multiprocessor moves in a µs, about; µs that a second launch and its barrier take (H100).
constexpr double bytes_of_unit = 64e3, second_launch = 2.5;
constexpr int64_t most_parts = 256;

/// A call with concrete sizes: a slice is a group of channels of an image.
struct slice_norm {
  int64_t images, channels, groups, pixels, scales;
  int64_t element; // bytes
  bool last;       // channels
  uint32_t width;  // of a vector
  activation act;

  int64_t in_group() const { return channels / groups; }
  int64_t slices() const { return images * groups; }
  int64_t slice_size() const { return in_group() * pixels; }
  /// Vectors that an invocation keeps in registers.
  int64_t most_items() const { return width == 4 ? 8 : 16; }
  int64_t channels_each() const { return std::max<int64_t>(1, channels / std::max<int64_t>(1, scales)); }

  /// Returns the µs that `works` workgroups take, a multiprocessor each, to read and write `bytes` each; what is not
  /// kept in registers is read three times.
  double time(int64_t works, int64_t bytes, bool kept, const gpu_features& gpu) const {
    return static_cast<double>(ceil_div(works, gpu.units) * bytes * (kept ? 2 : 4)) / bytes_of_unit;
  }
};

slice_norm parse(const gpu_call& call, int64_t groups) {
  const operand& x = call.inputs[0];
  slice_norm s{.images = x.dims[0],
               .channels = x.dims[1],
               .groups = groups,
               .pixels = volume(std::span(x.dims).subspan(2)),
               .scales = call.inputs[1].size(),
               .element = bytes_of(x.type, 1),
               .last = lies_last(x),
               .width = 1,
               .act = parse_activation(call.attrs)};
  if ((s.last ? s.in_group() : s.slice_size()) % 4 == 0)
    s.width = 4;
  return s;
}

/// A way to run a call, and its predicted time in µs.
struct timed_list {
  launch_list list;
  double time;
};

/// Adds the launches of a kernel by `add(phase, output, moments)`: one, or two by way of the moments of all parts.
template <class Add>
void add_phases(launch_builder& b, const slice_norm& s, int64_t parts, const Add& add) {
  if (parts == 1)
    return add(shader::normalization_all, b.out(0), b.out(0));
  const launch_binding moments = b.scratch(s.slices() * parts * 8);
  add(shader::normalization_moments, written(moments), written(moments));
  b.next_step();
  add(shader::normalization_result, b.out(0), moments);
}

// -- slices that are contiguous, or not (shaders/normalization.comp)

/// How slices are cut into parts, each a team's.
struct slice_parts {
  int64_t vectors; // of a slice
  int64_t per_part, parts;
};

slice_parts cut(const slice_norm& s, const gpu_features& gpu) {
  constexpr int64_t least_part = 4096, group = 1024; // elements, invocations of the largest team
  const int64_t size = s.slice_size(), vectors = size / s.width;
  const bool kept = vectors <= group * s.most_items();
  int64_t parts = 1;
  if (s.slices() < gpu.units && s.slices() > 0 && s.time(s.slices(), size * s.element, kept, gpu) > second_launch)
    parts = std::clamp<int64_t>(std::min(2 * gpu.units / s.slices(), size / least_part), 1, most_parts);
  const int64_t per_part = std::max<int64_t>(1, ceil_div(vectors, parts));
  return {vectors, per_part, std::max<int64_t>(1, ceil_div(vectors, per_part))};
}

std::optional<launch_list> by_teams(const gpu_call& call, const slice_norm& s, const slice_parts& p,
                                    const row_team& team) {
  const auto shader = row_shader("normalization", call.inputs[0].type, team.plain, call.gpu);
  if (!shader)
    return std::nullopt;
  launch_builder b(call, team.plain ? "normalization.plain" : "normalization");
  const int64_t rows = s.slices() * p.parts;
  const auto add = [&](uint32_t phase, launch_binding y, launch_binding statistics) {
    launch& l = b.add(*shader, team.groups(rows, call.gpu), {b.in(0), y, b.in(1), b.in(2), statistics});
    l.constants = team.constants();
    l.constants.insert(l.constants.end(), {phase, s.last ? 1u : 0u, static_cast<uint32_t>(s.act.code)});
    l.params = words_of(shader::normalization{.rows = rows,
                                              .parts = p.parts,
                                              .vectors = p.vectors,
                                              .per_part = p.per_part,
                                              .channels = s.channels,
                                              .groups = s.groups,
                                              .pixels = s.pixels,
                                              .channels_each = s.channels_each(),
                                              .epsilon = call.attrs.real("epsilon", 1e-5f),
                                              .act_alpha = s.act.alpha,
                                              .act_beta = s.act.beta});
  };
  add_phases(b, s, p.parts, add);
  return b.finish();
}

// -- channels last (shaders/group_norm.comp)

/// What a workgroup has: `lanes` pixels at a time, and of each the channels of `groups` slices.
struct pixel_block {
  int64_t groups;
  int64_t vectors, slice; // of a pixel: the block's, a slice's
  int64_t lanes;          // invocations side by side for each vector
  int64_t per_part, parts;
};

/// Returns the least divisor of `n` that is not below `least`, or the greatest not above `most`, whichever is less.
int64_t divisor_near(int64_t n, int64_t least, int64_t most) {
  int64_t found = 1;
  for (int64_t d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) {
      found = d;
      if (d >= least)
        break;
    }
  return found;
}

/// Returns blocks of at least `bytes` neighbouring bytes in at most `threads` invocations, all pixels in one part;
/// nullopt if a pixel's channels of a slice are too many.
std::optional<pixel_block> block_of(const slice_norm& s, int64_t bytes, int64_t threads) {
  const int64_t slice = s.in_group() / s.width;
  if (slice < 1 || slice > threads)
    return std::nullopt;
  pixel_block b{.slice = slice, .per_part = std::max<int64_t>(1, s.pixels), .parts = 1};
  b.groups = divisor_near(s.groups, ceil_div(bytes, s.in_group() * s.element), threads / slice);
  b.vectors = b.groups * slice;
  b.lanes = std::clamp<int64_t>(threads / b.vectors, 1, std::max<int64_t>(1, s.pixels));
  return b;
}

int64_t works_of(const slice_norm& s, const pixel_block& b) {
  return s.images * (s.groups / b.groups) * b.parts;
}

double time_of(const slice_norm& s, const pixel_block& b, const gpu_features& gpu) {
  const bool kept = b.per_part <= b.lanes * s.most_items();
  const int64_t bytes = b.per_part * b.vectors * s.width * s.element;
  const double again = b.parts > 1 ? second_launch + s.time(works_of(s, b), bytes / 2, true, gpu) : 0;
  return s.time(works_of(s, b), bytes, kept, gpu) + again;
}

/// Returns the launches of blocks that have all pixels of an image or, after `cut_pixels`, parts of them.
std::optional<timed_list> by_blocks(const gpu_call& call, const slice_norm& s, const pixel_block& b) {
  launch_builder builder(call, b.parts > 1 ? "group_norm.parts" : "group_norm");
  const int64_t items = std::clamp<int64_t>(ceil_div(b.per_part, b.lanes), 1, s.most_items());
  const auto add = [&](uint32_t phase, launch_binding y, launch_binding statistics) {
    launch& l = builder.add("group_norm." + *float_variant(call.inputs[0].type, call.gpu),
                            flat_groups(works_of(s, b), 1, call.gpu),
                            {builder.in(0), y, builder.in(1), builder.in(2), statistics});
    l.constants = {word(b.lanes * b.vectors),        word(b.vectors), word(b.slice), phase, word(items), s.width,
                   static_cast<uint32_t>(s.act.code)};
    l.params = words_of(shader::group_norm{.images = s.images,
                                           .pixels = s.pixels,
                                           .channels = s.channels,
                                           .parts = b.parts,
                                           .per_part = b.per_part,
                                           .channels_each = s.channels_each(),
                                           .epsilon = call.attrs.real("epsilon", 1e-5f),
                                           .act_alpha = s.act.alpha,
                                           .act_beta = s.act.beta});
  };
  add_phases(builder, s, b.parts, add);
  auto list = builder.finish();
  if (!list)
    return std::nullopt;
  return timed_list{std::move(*list), time_of(s, b, call.gpu)};
}

/// Cuts an image's pixels so that the parts fill the device and their vectors stay in registers, if they do not become
/// too many.
void cut_pixels(pixel_block& b, const slice_norm& s, const gpu_features& gpu) {
  const int64_t blocks = std::max<int64_t>(1, s.images * (s.groups / b.groups));
  const int64_t wanted = std::max(gpu.units / blocks, ceil_div(s.pixels, b.lanes * s.most_items()));
  const int64_t parts = std::clamp<int64_t>(wanted, 1, most_parts);
  b.per_part = std::max<int64_t>(1, ceil_div(ceil_div(s.pixels, parts), b.lanes)) * b.lanes;
  b.parts = std::max<int64_t>(1, ceil_div(s.pixels, b.per_part));
}

/// Both ways for channels-last operands, the faster first.
launch_lists block_launches(const gpu_call& call, const slice_norm& s) {
  constexpr int64_t sector = 32,
                    line = 512; // bytes that memory moves at once; that a part's workgroup reads of a pixel
  const auto threads = [&](int64_t most) { return std::min<int64_t>(most, call.gpu.max_group_size); };
  std::vector<timed_list> found;
  if (const auto whole = block_of(s, sector, threads(1024)))
    if (auto list = by_blocks(call, s, *whole))
      found.push_back(std::move(*list));
  if (auto part = block_of(s, line, threads(512))) {
    cut_pixels(*part, s, call.gpu);
    if (part->parts > 1)
      if (auto list = by_blocks(call, s, *part))
        found.push_back(std::move(*list));
  }
  std::stable_sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.time < b.time; });
  launch_lists lists;
  for (timed_list& t : found)
    lists.push_back(std::move(t.list));
  return lists;
}

launch_lists slice_norm_launches(const gpu_call& call, int64_t groups) {
  const operand &x = call.inputs.at(0), &y = call.outputs.at(0);
  const int64_t scales = call.inputs.at(1).size();
  if (!same_types(call) || !float_variant(x.type, call.gpu) || x.dims.size() < 2 || groups < 1 ||
      x.dims[1] % groups != 0 || lies_last(x) != lies_last(y) || scales < 1 || call.inputs.at(2).size() != scales ||
      x.dims[1] % scales != 0)
    return {};
  const slice_norm s = parse(call, groups);
  launch_lists lists;
  if (s.last)
    lists = block_launches(call, s);
  const slice_parts parts = cut(s, call.gpu);
  for (const row_team& team : row_teams({s.slices() * parts.parts, parts.per_part * s.width, 1}, s.width, call.gpu))
    if (auto list = by_teams(call, s, parts, team))
      lists.push_back(std::move(*list));
  return lists;
}

launch_lists instance_norm_launches(const gpu_call& call) {
  return slice_norm_launches(call, call.inputs.at(0).dims.at(1));
}

launch_lists group_norm_launches(const gpu_call& call) {
  return slice_norm_launches(call, call.attrs.integer("num_groups"));
}

} // namespace

extern constinit const launch_rows group_norm_rules = {
    {"", "GroupNormalization", group_norm_launches},
    {"", "InstanceNormalization", instance_norm_launches},
    {"troupe", "GroupNormalization", group_norm_launches},
    {"troupe", "InstanceNormalization", instance_norm_launches},
};

} // namespace troupe
