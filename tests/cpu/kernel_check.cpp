#include "cpu/kernel_check.hpp"

#include "ops/evaluate.hpp"
#include "ops/registry.hpp"

#include <cstring>

namespace troupe::testing {
namespace {

/// Moves elements of type T between [N, C, S] and [N, S, C].
template <class T>
tensor swap_inner_of(const tensor& t, int64_t rows, int64_t columns) {
  tensor out(t.type(), t.dims());
  const auto* from = static_cast<const T*>(t.data());
  auto* to = static_cast<T*>(out.mutable_data());
  for (int64_t base = 0; base < t.size(); base += rows * columns)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        to[base + c * rows + r] = from[base + r * columns + c];
  return out;
}

tensor swap_inner(const tensor& t, int64_t rows, int64_t columns) {
  return bits_of(t.type()) == 8 ? swap_inner_of<uint8_t>(t, rows, columns) : swap_inner_of<uint32_t>(t, rows, columns);
}

double error_of(const tensor& got, const tensor& want, double rtol, double atol) {
  double worst = 0;
  const std::vector<double> a = to_double(got.view()), b = to_double(want.view());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
      continue;
    const double e = std::abs(a[i] - b[i]) / (atol + rtol * std::abs(b[i]));
    worst = std::isnan(e) ? INFINITY : std::max(worst, e);
  }
  return worst;
}

} // namespace

tensor to_channels_last(const tensor& plain) {
  const shape& d = plain.dims();
  return swap_inner(plain, d[1], volume(std::span(d).subspan(2)));
}

tensor from_channels_last(const tensor& reordered) {
  const shape& d = reordered.dims();
  return swap_inner(reordered, volume(std::span(d).subspan(2)), d[1]);
}

kernel_check::kernel_check(std::string domain, std::string op, attributes attrs) {
  call_.op_type = std::move(op);
  call_.domain = std::move(domain);
  call_.attrs = std::move(attrs);
  call_.def = find_op(call_.domain, call_.op_type, newest_opset(call_.domain));
  expects(call_.def != nullptr, "kernel_check: no such operator");
}

kernel_check& kernel_check::input(shape dims, bool constant, layout l, float low, float high) {
  tensor t(dtype::float32, std::move(dims));
  std::uniform_real_distribution<float> values(low, high);
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = values(random_);
  input(std::move(t), constant);
  layouts_.back() = l;
  return *this;
}

kernel_check& kernel_check::input(tensor value, bool constant, layout l) {
  inputs_.push_back(std::move(value));
  constant_.push_back(constant);
  layouts_.push_back(l);
  return *this;
}

kernel_check& kernel_check::bytes(dtype type, shape dims, bool constant, layout l) {
  tensor t(type, std::move(dims));
  std::uniform_int_distribution<int> values(0, 255);
  for (int64_t i = 0; i < t.size(); ++i)
    static_cast<uint8_t*>(t.mutable_data())[i] = static_cast<uint8_t>(values(random_));
  return input(std::move(t), constant, l);
}

kernel_check& kernel_check::scalar(dtype type, float value) {
  tensor t(type, {});
  visit_numeric(type, [&]<class T>(type_tag<T>) { *t.mutable_data<T>() = static_cast<T>(value); });
  return input(std::move(t));
}

kernel_check& kernel_check::absent() {
  return input(tensor());
}

double kernel_check::worst(std::string_view kernel, double rtol, double atol, size_t outputs) {
  const std::vector<tensor> want = evaluate(*call_.def, call_.attrs, inputs_, outputs);
  kernel_resources resources;
  kernel_request request{call_, {}, {}, resources};
  std::vector<tensor> seen; // the inputs as the kernel sees them
  for (size_t i = 0; i < inputs_.size(); ++i) {
    seen.push_back(layouts_[i] == layout::plain ? inputs_[i] : to_channels_last(inputs_[i]));
    operand o{.type = inputs_[i].type(), .dims = inputs_[i].dims(), .layout = layouts_[i]};
    if (constant_[i])
      o.constant = weight::from_tensor(inputs_[i]);
    request.inputs.push_back(o);
  }
  std::vector<tensor> got;
  for (const tensor& w : want) {
    got.emplace_back(w.type(), w.dims());
    std::memset(got.back().mutable_data(), 0xff, static_cast<size_t>(w.bytes()));
    request.outputs.push_back({.type = w.type(), .dims = w.dims(), .layout = output_layout_});
  }
  kernel_ptr k;
  for (const kernel_rule& rule : kernel_table().of(*call_.def))
    if (rule.name == kernel)
      k = rule.make(request);
  if (!k)
    throw std::runtime_error(fmt::format("kernel {} does not take this call of {}", kernel, call_.op_type));
  std::vector<const void*> in;
  for (size_t i = 0; i < seen.size(); ++i)
    in.push_back(seen[i].defined() && k->reads(i) ? seen[i].data() : nullptr);
  std::vector<void*> out;
  for (tensor& t : got)
    out.push_back(t.mutable_data());
  double worst = 0;
  for (int run = 0; run < 2; ++run) { // the second run must not depend on remains of the first
    k->run({in.data(), out.data(), nullptr});
    for (size_t i = 0; i < got.size(); ++i)
      worst = std::max(
          worst, error_of(output_layout_ == layout::plain ? got[i] : from_channels_last(got[i]), want[i], rtol, atol));
  }
  return worst;
}

} // namespace troupe::testing
