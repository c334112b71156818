// MaxUnpool: every element goes where MaxPool's second output says that it came from; all others are 0.
//
// X and I are [N, C, spatial…]. I counts, row-major, the elements of a tensor whose spatial sizes are (in − 1) · stride
// + kernel − pads; if output_shape is larger than that, the rest after it is 0 too. If indices repeat, the last wins.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/operand.hpp"
#include "ops/window.hpp"

#include <cstring>

namespace troupe {
namespace {

/// Returns the dims that the indices count in.
symbolic_shape unpooled_dims(const attributes& attrs, std::span<const dim> x) {
  require_rank(x.size(), 3, "the input");
  const window_spec spec = parse_window(attrs, attrs.integers("kernel_shape"));
  if (spec.rank() + 2 != x.size())
    fail(errc::invalid_model, "kernel_shape has {} elements, but the input has rank {}", spec.rank(), x.size());
  symbolic_shape dims{x[0], x[1]};
  for (size_t i = 0; i < spec.rank(); ++i) {
    const int64_t rest = spec.kernel[i] - spec.pads[i] - spec.pads[i + spec.rank()];
    dims.push_back((x[i + 2] - 1) * dim(spec.strides[i]) + dim(rest));
    if (dims.back().is_constant() && dims.back().constant() < 0)
      fail(errc::invalid_model, "spatial axis {}: the pads are larger than the output", i);
  }
  return dims;
}

/// Throws unless the output that is asked for has room for what the indices count in.
void check_room(const symbolic_shape& out, const symbolic_shape& counted) {
  bool fits = out.size() == counted.size();
  for (size_t i = 0; fits && i < out.size(); ++i)
    fits = !out[i].is_constant() || !counted[i].is_constant() || out[i].constant() >= counted[i].constant();
  if (!fits)
    fail(errc::invalid_model, "output_shape {} is smaller than {}, which the attributes ask for", to_string(out),
         to_string(counted));
}

void infer_max_unpool(infer_context& c) {
  require_same_dims(c.dims(1), c.dims(0), "indices and the input");
  if (c.type(1) != dtype::int64)
    fail(errc::invalid_model, "indices are int64, not {}", to_string(c.type(1)));
  symbolic_shape counted = unpooled_dims(c.attrs(), c.dims(0));
  if (!c.has_input(2))
    return c.set_output(0, c.type(0), std::move(counted));
  symbolic_shape out = c.require_known(2);
  check_room(out, counted);
  c.set_output(0, c.type(0), std::move(out));
}

/// Returns where element `index` of a tensor with `dims` stands in one with larger `strides`.
int64_t moved_offset(int64_t index, std::span<const int64_t> dims, const shape& strides) {
  int64_t offset = 0;
  for (size_t i = dims.size(); i-- > 0; index /= dims[i])
    offset += index % dims[i] * strides[i];
  return offset;
}

void max_unpool(kernel_context& c) {
  const const_view& x = c.input(0);
  const mutable_view& out = c.output(0);
  require_same_dims(to_symbolic(c.input(1).dims), to_symbolic(x.dims), "indices and the input");
  const symbolic_shape asked = unpooled_dims(c.attrs(), to_symbolic(x.dims));
  check_room(to_symbolic(out.dims), asked);
  const shape counted = constants(asked), strides = strides_of(out.dims);
  const int64_t count = volume(counted), *indices = c.input(1).as<int64_t>();
  std::memset(out.data, 0, static_cast<size_t>(out.bytes()));
  visit_width(x.type, [&]<class T>(type_tag<T>) {
    for (int64_t i = 0; i < x.size(); ++i) {
      if (indices[i] < 0 || indices[i] >= count)
        fail(errc::invalid_input, "index {} at position {} is outside of {}, which indices count in", indices[i], i,
             to_string(counted));
      out.as<T>()[moved_offset(indices[i], counted, strides)] = x.as<T>()[i];
    }
  });
}

constexpr auto max_unpool_rows = std::to_array<op_def>({
    op_row("MaxUnpool", 9, infer_max_unpool, max_unpool,
           {.inputs = {2, 3},
            .types = types::floats,
            .host_inputs = 0b100,
            .mixes = "takes indices that count through the whole batch"}),
});

} // namespace

extern constinit const op_table onnx_max_unpool_ops = max_unpool_rows;

} // namespace troupe
