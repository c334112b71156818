// Changes of layout through oneDNN, whose transposes are vectorised for each shape.
#include "cpu/dnnl_call.hpp"
#include "cpu/kernels.hpp"

namespace troupe {
namespace {

class dnnl_reorder_kernel final : public kernel {
public:
  explicit dnnl_reorder_kernel(const kernel_request& r) {
    const auto from = dnn::describe(r.inputs[0].dims, r.inputs[0].layout, r.inputs[0].type);
    const auto to = dnn::describe(r.outputs[0].dims, r.outputs[0].layout, r.inputs[0].type);
    const dnnl::engine& e = dnn::engine();
    const dnnl::reorder::primitive_desc desc(e, from, e, to, dnn::user_scratchpad());
    call_ = dnn::call(dnnl::reorder(desc), desc.scratchpad_desc(), r.resources.scratch);
    from_ = call_.add(DNNL_ARG_FROM, from);
    to_ = call_.add(DNNL_ARG_TO, to);
  }

  void run(const kernel_run& r) override {
    call_.set(from_, r.in[0]);
    call_.set(to_, r.out[0]);
    call_.run();
  }

private:
  dnn::call call_;
  size_t from_ = 0, to_ = 0;
};

} // namespace

kernel_ptr make_dnnl_reorder(const kernel_request& r) {
  const shape& dims = r.inputs[0].dims;
  if (!dnn::has_type(r.inputs[0].type) || dims.size() < 3 || dims.size() > 5 || volume(dims) == 0)
    return nullptr;
  return dnn::try_make([&] { return std::make_unique<dnnl_reorder_kernel>(r); });
}

} // namespace troupe
