#include "cpu/int8_window.hpp"

namespace troupe::int8 {

std::optional<window> window_of(const kernel_request& r, const operand_positions& at) {
  const operand &x = r.inputs[at.a], &w = r.inputs[at.b], &y = r.outputs[0];
  const size_t rank = x.dims.size();
  const auto last = [&](const operand& o) {
    return r.layout_of(o) == layout::channels_last || same_in_both_layouts(o.dims);
  };
  if (!w.constant || rank < 3 || rank > 5 || w.dims.size() != rank || !last(x) || !last(y) || volume(x.dims) == 0 ||
      volume(y.dims) == 0 || volume(w.dims) == 0)
    return std::nullopt;
  const window_spec spec = parse_window(r.call.attrs, shape(w.dims.begin() + 2, w.dims.end()));
  return window{x.dims[0], x.dims[1], w.dims[0], r.call.attrs.integer("group", 1),
                bind_window(spec, std::span(x.dims).subspan(2))};
}

} // namespace troupe::int8
