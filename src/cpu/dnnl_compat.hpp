// oneDNN 2.6 (Debian 12) and 3.x (Debian 13) by one set of functions. Everything that differs between them is here.
//
// All primitives are for inference on the CPU. A function throws `dnnl::error` if the library has no implementation.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <string_view>

namespace troupe::dnn {

using memory_desc = dnnl::memory::desc;
using dims = dnnl::memory::dims;

/// Strides, dilations (0 is none) and padding of a sliding window, by spatial axis.
struct window_dims {
  dims kernel, strides, dilations, pad_begin, pad_end;
};

/// A format of plain elements: by axis the padded size and the step between (outer) blocks, then the blocks inside,
/// outermost first, which are dense, and the axes that they are of. Throws `dnnl::error` if a descriptor has another
/// format.
struct blocked_format {
  dims padded, strides, blocks, block_axes;
};

/// Moves on to the first implementation whose name does not contain `without` (empty: none is left out). With oneDNN 2
/// only as long as the operation's own descriptor lives, to which the iterator refers.
template <class Desc>
Desc first_without(Desc desc, std::string_view without) {
  while (!without.empty() && std::string_view(desc.impl_info_str()).find(without) != std::string_view::npos)
    if (!desc.next_impl())
      throw dnnl::error(dnnl_unimplemented, "no other implementation");
  return desc;
}

#if DNNL_VERSION_MAJOR >= 3

inline dims dims_of(const memory_desc& md) {
  return md.get_dims();
}

inline void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm kind, float alpha, float beta) {
  ops.append_eltwise(kind, alpha, beta);
}

inline constexpr float hard_swish_alpha = 1.f / 6, hard_swish_beta = 0.5f;

/// A convolution or its transpose; see `convolution`.
template <class Forward>
typename Forward::primitive_desc
slide(dnnl::algorithm kind, const dnnl::engine& e, const memory_desc& x, const memory_desc& w, const memory_desc& bias,
      const memory_desc& y, const window_dims& window, const dnnl::primitive_attr& attr, std::string_view without) {
  return first_without(typename Forward::primitive_desc(e, dnnl::prop_kind::forward_inference, kind, x, w, bias, y,
                                                        window.strides, window.dilations, window.pad_begin,
                                                        window.pad_end, attr),
                       without);
}

inline dnnl::matmul::primitive_desc matmul(const dnnl::engine& e, const memory_desc& a, const memory_desc& b,
                                           const memory_desc& bias, const memory_desc& y,
                                           const dnnl::primitive_attr& attr) {
  return {e, a, b, bias, y, attr};
}

inline dnnl::pooling_forward::primitive_desc pooling(const dnnl::engine& e, dnnl::algorithm kind, const memory_desc& x,
                                                     const memory_desc& y, const window_dims& window,
                                                     const dnnl::primitive_attr& attr) {
  return {e,
          dnnl::prop_kind::forward_inference,
          kind,
          x,
          y,
          window.strides,
          window.kernel,
          window.dilations,
          window.pad_begin,
          window.pad_end,
          attr};
}

inline blocked_format format_of(const memory_desc& md) {
  if (md.get_format_kind() != dnnl::memory::format_kind::blocked)
    throw dnnl::error(dnnl_unimplemented, "no blocked format");
  return {md.get_padded_dims(), md.get_strides(), md.get_inner_blks(), md.get_inner_idxs()};
}

#else

inline dims dims_of(const memory_desc& md) {
  return md.dims();
}

inline void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm kind, float alpha, float beta) {
  ops.append_eltwise(1.f, kind, alpha, beta);
}

inline constexpr float hard_swish_alpha = 0, hard_swish_beta = 0;

template <class Forward>
typename Forward::primitive_desc
slide(dnnl::algorithm kind, const dnnl::engine& e, const memory_desc& x, const memory_desc& w, const memory_desc& bias,
      const memory_desc& y, const window_dims& window, const dnnl::primitive_attr& attr, std::string_view without) {
  const typename Forward::desc desc(dnnl::prop_kind::forward_inference, kind, x, w, bias, y, window.strides,
                                    window.dilations, window.pad_begin, window.pad_end);
  return first_without(typename Forward::primitive_desc(desc, attr, e), without);
}

inline dnnl::matmul::primitive_desc matmul(const dnnl::engine& e, const memory_desc& a, const memory_desc& b,
                                           const memory_desc& bias, const memory_desc& y,
                                           const dnnl::primitive_attr& attr) {
  return {dnnl::matmul::desc(a, b, bias, y), attr, e};
}

inline dnnl::pooling_v2_forward::primitive_desc pooling(const dnnl::engine& e, dnnl::algorithm kind,
                                                        const memory_desc& x, const memory_desc& y,
                                                        const window_dims& window, const dnnl::primitive_attr& attr) {
  const dnnl::pooling_v2_forward::desc desc(dnnl::prop_kind::forward_inference, kind, x, y, window.strides,
                                            window.kernel, window.dilations, window.pad_begin, window.pad_end);
  return {desc, attr, e};
}

inline blocked_format format_of(const memory_desc& md) {
  if (md.data.format_kind != dnnl_blocked)
    throw dnnl::error(dnnl_unimplemented, "no blocked format");
  const dnnl_blocking_desc_t& b = md.data.format_desc.blocking;
  const auto some = [](const dnnl_dim_t* numbers, int count) { return dims(numbers, numbers + count); };
  return {some(md.data.padded_dims, md.data.ndims), some(b.strides, md.data.ndims), some(b.inner_blks, b.inner_nblks),
          some(b.inner_idxs, b.inner_nblks)};
}

#endif

/// A convolution by the first implementation whose name does not contain `without`.
inline dnnl::convolution_forward::primitive_desc convolution(const dnnl::engine& e, const memory_desc& x,
                                                             const memory_desc& w, const memory_desc& bias,
                                                             const memory_desc& y, const window_dims& window,
                                                             const dnnl::primitive_attr& attr,
                                                             std::string_view without) {
  return slide<dnnl::convolution_forward>(dnnl::algorithm::convolution_direct, e, x, w, bias, y, window, attr, without);
}

/// The same for a transposed convolution.
inline dnnl::deconvolution_forward::primitive_desc deconvolution(const dnnl::engine& e, const memory_desc& x,
                                                                 const memory_desc& w, const memory_desc& bias,
                                                                 const memory_desc& y, const window_dims& window,
                                                                 const dnnl::primitive_attr& attr,
                                                                 std::string_view without) {
  return slide<dnnl::deconvolution_forward>(dnnl::algorithm::deconvolution_direct, e, x, w, bias, y, window, attr,
                                            without);
}

} // namespace troupe::dnn
