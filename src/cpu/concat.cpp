// Concatenation along the channels of channels-last values: the channels of each pixel are together.
#include "base/parallel.hpp"
#include "cpu/kernels.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

class channels_last_concat_kernel final : public kernel {
public:
  explicit channels_last_concat_kernel(const kernel_request& r) {
    const shape& y = r.outputs[0].dims;
    channels_ = y[1];
    pixels_ = volume(y) / std::max<int64_t>(1, channels_);
    element_bytes_ = bytes_of(r.outputs[0].type, 1);
    for (const operand& in : r.inputs)
      parts_.push_back(in.dims[1] * element_bytes_);
  }

  void run(const kernel_run& r) override {
    const int64_t grain = std::max<int64_t>(1, 32 * 1024 / std::max<int64_t>(1, channels_));
    parallel_for(pixels_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t pixel = begin; pixel < end; ++pixel) {
        auto* to = r.output<std::byte>(0) + pixel * channels_ * element_bytes_;
        for (size_t i = 0; i < parts_.size(); ++i) {
          std::memcpy(to, r.input<std::byte>(i) + pixel * parts_[i], static_cast<size_t>(parts_[i]));
          to += parts_[i];
        }
      }
    });
  }

private:
  int64_t channels_, pixels_, element_bytes_;
  std::vector<int64_t> parts_; // bytes of each input's channels
};

} // namespace

kernel_ptr make_channels_last_concat(const kernel_request& r) {
  const operand& y = r.outputs[0];
  if (!r.all_of_type(y.type) || bits_of(y.type) % 8 != 0 || y.type == dtype::string || y.dims.size() < 3 ||
      r.layout_of(y) != layout::channels_last)
    return nullptr;
  const int64_t axis = r.call.attrs.integer("axis", 1), rank = static_cast<int64_t>(y.dims.size());
  const auto fits = [&](const operand& in) { return in.present() && r.layout_of(in) == layout::channels_last; };
  if ((axis < 0 ? axis + rank : axis) != 1 || !std::all_of(r.inputs.begin(), r.inputs.end(), fits))
    return nullptr;
  return std::make_unique<channels_last_concat_kernel>(r);
}

} // namespace troupe
