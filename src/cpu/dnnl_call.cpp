#include "cpu/dnnl_call.hpp"

#include "base/parallel.hpp"
#include "cpu/fast_functions.hpp"
#include "ops/pack.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::dnn {
namespace {

const dnnl::stream& stream() {
  thread_local const dnnl::stream s(engine());
  return s;
}

dnnl::memory::format_tag plain_tag(size_t rank) {
  using tag = dnnl::memory::format_tag;
  constexpr tag tags[] = {tag::a, tag::a, tag::ab, tag::abc, tag::abcd, tag::abcde, tag::abcdef};
  expects(rank < std::size(tags), "dnnl: rank too high");
  return tags[rank];
}

dnnl::memory::format_tag channels_last_tag(size_t rank) {
  using tag = dnnl::memory::format_tag;
  expects(rank >= 3 && rank <= 5, "dnnl: channels-last operands have rank 3 to 5");
  return rank == 3 ? tag::acb : rank == 4 ? tag::acdb : tag::acdeb;
}

dnnl::memory::data_type data_type(dtype type) {
  using kind = dnnl::memory::data_type;
  switch (type) {
    case dtype::float32: return kind::f32;
    case dtype::int32: return kind::s32;
    case dtype::uint8: return kind::u8;
    case dtype::int8: return kind::s8;
    default: fail(errc::internal, "oneDNN is not given {}", to_string(type));
  }
}

dims to_dims(const shape& d) {
  return d.empty() ? dims{1} : dims(d.begin(), d.end());
}

} // namespace

const dnnl::engine& engine() {
  // Never destroyed: engines of ours in static objects run to the end of the process.
  static const dnnl::engine& e = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return e;
}

bool has_type(dtype type) {
  return (set_of(dtype::float32, dtype::int32, dtype::uint8, dtype::int8) & set_of(type)) != 0;
}

memory_desc describe(const shape& d, layout l, dtype type) {
  return {to_dims(d), data_type(type), l == layout::plain ? plain_tag(d.size()) : channels_last_tag(d.size())};
}

memory_desc describe_any(const shape& d) {
  return {to_dims(d), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

void append_activation(dnnl::post_ops& ops, const activation& act) {
  using algorithm = dnnl::algorithm;
  const auto append = [&](algorithm kind, float alpha = 0, float beta = 0) { append_eltwise(ops, kind, alpha, beta); };
  switch (act.code) {
    case scalar_code::same: return;
    case scalar_code::relu: return append(algorithm::eltwise_relu);
    case scalar_code::clip: return append(algorithm::eltwise_clip, act.alpha, act.beta);
    case scalar_code::sigmoid: return append(algorithm::eltwise_logistic);
    case scalar_code::tanh: return append(algorithm::eltwise_tanh);
    case scalar_code::hard_swish: return append(algorithm::eltwise_hardswish, hard_swish_alpha, hard_swish_beta);
    case scalar_code::hard_sigmoid:
      append(algorithm::eltwise_linear, act.alpha, act.beta);
      return append(algorithm::eltwise_clip, 0, 1);
    case scalar_code::leaky_relu: return append(algorithm::eltwise_relu, act.alpha);
    case scalar_code::swish: return append(algorithm::eltwise_swish, act.alpha);
    case scalar_code::gelu: return append(algorithm::eltwise_gelu_erf);
    case scalar_code::gelu_tanh: return append(algorithm::eltwise_gelu_tanh);
    default: fail(errc::internal, "{} ends no product", function_of(act.code).name);
  }
}

bool repeats_linear(const dnnl::post_ops& ops, const activation& act) {
  bool elementwise = false; // of ours, only a factor stands before the activation
  for (int i = 0; i < ops.len(); ++i)
    elementwise |= ops.kind(i) == dnnl::primitive::kind::eltwise;
  return elementwise && act.code == scalar_code::hard_sigmoid;
}

bool ends_plainly(std::string_view implementation) {
  return implementation.find("ref") != std::string_view::npos ||
         implementation.find("x64:gemm") != std::string_view::npos;
}

void end_result(const activation& act, float* y, int64_t count) {
  constexpr int64_t grain = 16 * 1024;
  if (act.code != scalar_code::same)
    parallel_for(count, grain,
                 [&](int64_t begin, int64_t end) { fast::activate(act, y + begin, y + begin, end - begin); });
}

call::call(dnnl::primitive primitive, const memory_desc& scratchpad, scratch_buffer& scratch)
    : primitive_(std::move(primitive)), scratch_(&scratch) {
  if (const size_t bytes = scratchpad.get_size(); bytes > 0) {
    scratch.reserve(static_cast<int64_t>(bytes));
    scratchpad_ = add(DNNL_ARG_SCRATCHPAD, scratchpad);
  }
}

size_t call::add(int arg, const memory_desc& md, const void* data) {
  memories_.emplace_back(md, engine(), data ? const_cast<void*>(data) : DNNL_MEMORY_NONE);
  args_.push_back({arg, memories_.back().get()});
  return args_.size() - 1;
}

void call::set(size_t index, const void* data) {
  dnnl::error::wrap_c_api(dnnl_memory_set_data_handle(args_[index].memory, const_cast<void*>(data)),
                          "oneDNN did not take an operand");
}

void call::run() {
  if (scratchpad_ != SIZE_MAX)
    set(scratchpad_, scratch_->data());
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), stream().get(), static_cast<int>(args_.size()), args_.data()),
      "a oneDNN primitive failed");
}

dnnl::primitive_attr user_scratchpad(const dnnl::post_ops& ops) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(ops);
  return attr;
}

void multiply_transposed(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c, int64_t ldc) {
  dnnl::error::wrap_c_api(dnnl_sgemm('N', 'T', m, n, k, 1.f, a, k, b, k, 0.f, c, ldc),
                          "oneDNN did not multiply matrices");
}

namespace {

/// Returns the axes of a format by their strides, outermost first.
std::vector<size_t> axes_in_order(const dims& strides) {
  std::vector<size_t> axes(strides.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  return axes;
}

} // namespace

weight_cache::handle pack(weight_cache& weights, const weight_ptr& w, const memory_desc& from, const memory_desc& to) {
  if (from == to)
    return weights.get(w);
  const blocked_format source = format_of(from), target = format_of(to);
  shape seen, place(source.padded.size()), order, sizes;
  for (size_t axis : axes_in_order(source.strides)) {
    place[axis] = static_cast<int64_t>(seen.size());
    seen.push_back(source.padded[axis]);
  }
  for (size_t axis : axes_in_order(target.strides)) {
    order.push_back(place[axis]);
    sizes.push_back(target.padded[axis]);
    for (size_t i = 0; i < target.blocks.size(); ++i)
      if (target.block_axes[i] == static_cast<int64_t>(axis))
        sizes.back() /= target.blocks[i];
  }
  for (size_t i = 0; i < target.blocks.size(); ++i) {
    order.push_back(place[static_cast<size_t>(target.block_axes[i])]);
    sizes.push_back(target.blocks[i]);
  }
  if (bytes_of(w->type, volume(sizes)) != static_cast<int64_t>(to.get_size()))
    throw dnnl::error(dnnl_unimplemented, "the format has more than the weight's elements");
  return weights.get(troupe::pack(w, std::move(seen), std::move(order), std::move(sizes)));
}

} // namespace troupe::dnn
