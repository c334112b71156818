// A change of memory layout, inserted by the planner if two layouts meet: Y holds X's elements in another order.
//
// Attribute `to`: "plain" or "channels_last". The operand's dims are logical and do not change; its elements are laid
// out as [N, C, spatial…] or [N, spatial…, C], so a reorder transposes the [C × spatial] matrix of every image.
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace troupe {
namespace {

bool to_channels_last(const attributes& attrs) {
  const std::string to = attrs.text("to", "");
  if (to != "plain" && to != "channels_last")
    fail(errc::invalid_model, "attribute 'to' is '{}', but must be plain or channels_last", to);
  return to == "channels_last";
}

void infer_reorder(infer_context& c) {
  to_channels_last(c.attrs());
  if (c.rank(0) < 3)
    fail(errc::invalid_model, "an operand of rank {} has no channels-last form", c.rank(0));
  infer_same(c);
}

/// Rows and columns of a tile: both sides of it stay in the first-level cache.
constexpr int64_t tile = 32;

/// y [columns × rows] = transpose of x [rows × columns], rows [r0, r1) only.
template <class T>
void transpose_rows(const T* x, T* y, int64_t rows, int64_t columns, int64_t r0, int64_t r1) {
  for (int64_t c0 = 0; c0 < columns; c0 += tile)
    for (int64_t c = c0; c < std::min(c0 + tile, columns); ++c)
      for (int64_t r = r0; r < r1; ++r)
        y[c * rows + r] = x[r * columns + c];
}

void reorder_reference(kernel_context& c) {
  const auto dims = c.input(0).dims;
  const int64_t channels = dims[1], spatial = volume(dims.subspan(2));
  const bool forward = to_channels_last(c.attrs());
  const int64_t rows = forward ? channels : spatial, columns = forward ? spatial : channels;
  const int64_t bands = (rows + tile - 1) / tile;
  visit_width(c.input(0).type, [&]<class T>(type_tag<T>) {
    const T* x = c.input(0).as<T>();
    T* y = c.output(0).as<T>();
    const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, tile * columns));
    parallel_for(dims[0] * bands, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / bands * rows * columns, r0 = i % bands * tile;
        transpose_rows(x + image, y + image, rows, columns, r0, std::min(rows, r0 + tile));
      }
    });
  });
}

constexpr auto reorder_rows = std::to_array<op_def>({
    op_row(
        "Reorder", 1, infer_reorder, reorder_reference,
        {.domain = "troupe", .types = types::fixed_size, .layouts = layout_support::converting, .axes = axes::planes}),
});

} // namespace

extern constinit const op_table composed_reorder_ops = reorder_rows;

} // namespace troupe
