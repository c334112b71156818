// SparseTensorProto → tensor: the values that the file lists in their places, zeros elsewhere.
#include "base/checked.hpp"
#include "loader/tensor_proto.hpp"

#include <cstring>

namespace troupe {
namespace {

/// Where each listed value goes: its index has one number, or one for each dim.
std::vector<int64_t> places_of(const tensor& indices, const shape& dims, int64_t count) {
  const auto rank = static_cast<int64_t>(dims.size());
  const bool linear = indices.dims() == shape{count};
  if (indices.type() != dtype::int64 || (!linear && indices.dims() != shape{count, rank}))
    fail(errc::invalid_model, "its {} values need indices of type int64 and shape [{}] or [{}, {}], not {} {}", count,
         count, count, rank, to_string(indices.type()), to_string(indices.dims()));
  const int64_t size = volume(dims);
  std::vector<int64_t> places;
  const auto* index = indices.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0;
    for (int64_t axis = 0; axis < (linear ? 1 : rank); ++axis, ++index) {
      const int64_t end = linear ? size : dims[axis];
      if (*index < 0 || *index >= end)
        fail(errc::invalid_model, "index {} of value {} is outside of [0, {})", *index, i, end);
      place = place * end + *index;
    }
    places.push_back(place);
  }
  return places;
}

} // namespace

tensor tensor_reader::read_sparse(const onnx::SparseTensorProto& proto) {
  const tensor values = read(proto.values()).value;
  tensor indices = values.size() > 0 ? read(proto.indices()).value : tensor(dtype::int64, {0});
  try {
    shape dims(proto.dims().begin(), proto.dims().end());
    if (dims.size() > limits::max_rank || values.dims().size() != 1)
      fail(errc::invalid_model, "its values have {} dims, its shape {}; one and at most {} are possible",
           values.dims().size(), dims.size(), limits::max_rank);
    if (values.type() == dtype::string || bits_of(values.type()) < 8)
      fail(errc::unsupported, "sparse tensors of {} are not supported", to_string(values.type()));
    const int64_t bytes = bytes_of(values.type(), volume(dims));
    if (bytes > dense_bytes_left_)
      fail(errc::unsupported, "made dense, the model's sparse tensors have more than {} bytes", limits::folded_bytes);
    dense_bytes_left_ -= bytes;
    const std::vector<int64_t> places = places_of(indices, dims, values.size());
    tensor dense(values.type(), std::move(dims));
    auto* out = static_cast<char*>(dense.mutable_data());
    if (bytes > 0)
      std::memset(out, 0, static_cast<size_t>(bytes));
    const auto width = static_cast<size_t>(bits_of(values.type()) / 8);
    for (size_t i = 0; i < places.size(); ++i)
      std::memcpy(out + static_cast<size_t>(places[i]) * width, static_cast<const char*>(values.data()) + i * width,
                  width);
    return dense;
  } catch (const error& e) {
    fail(e.code(), "sparse tensor {}: {}", in_quotes(proto.values().name()), e.what());
  }
}

} // namespace troupe
