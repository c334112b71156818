// Elementwise operators and fused chains of them on floats: one pass over memory, a block of elements at a time, each
// step a vectorised loop over cached buffers.
//
// Works in memory order, so that every operand may be plain or channels-last; an input that neither is laid out like
// the output nor is repeated along its innermost axis is gathered element by element.
#include "ops/composed/fused_elementwise.hpp"

#include "base/parallel.hpp"
#include "cpu/fast_functions.hpp"
#include "cpu/kernels.hpp"
#include "ops/operand_walk.hpp"
#include "ops/scalar_formulas.hpp"

namespace troupe {
namespace {

/// Elements of a block: a few buffers of it fit the first-level cache.
constexpr int64_t block = 1024;
/// Elements a thread should have.
constexpr int64_t grain_cheap = 64 * 1024, grain_costly = 8 * 1024;

class elementwise_kernel final : public kernel {
public:
  elementwise_kernel(const kernel_request& r, elementwise_program program) : program_(std::move(program)) {
    inputs_ = r.inputs.size();
    walk_ = walk_of(r.outputs[0], r.inputs);
    size_ = volume(walk_.dims);
    for (size_t i = 0; i < inputs_; ++i)
      modes_.push_back(mode_of(walk_, i));
    const size_t fixed = inputs_ + program_.constants.size();
    fills_.resize(fixed * block);
    for (size_t k = 0; k < program_.constants.size(); ++k)
      std::fill_n(fills_.data() + (inputs_ + k) * block, block, program_.constants[k]);
    bool costly = false;
    for (const elementwise_step& s : program_.steps)
      costly |= function_of(s.code).flops > 1;
    grain_ = costly ? grain_costly : grain_cheap;
  }

  void run(const kernel_run& r) override {
    for (size_t i = 0; i < inputs_; ++i)
      if (modes_[i] == walk_mode::single)
        std::fill_n(fills_.data() + i * block, std::min(block, size_), *r.input<float>(i));
    parallel_for(size_, grain_, [&](int64_t begin, int64_t end) { run_range(r, begin, end); });
  }

private:
  void run_range(const kernel_run& r, int64_t begin, int64_t end) const {
    const size_t steps = program_.steps.size();
    thread_local std::vector<float> buffers;
    thread_local std::vector<const float*> slots;
    buffers.resize(std::max(buffers.size(), (inputs_ + steps) * block));
    slots.resize(inputs_ + steps);
    for (int64_t at = begin; at < end; at += block) {
      const int64_t n = std::min(block, end - at);
      for (size_t i = 0; i < inputs_; ++i)
        slots[i] = load(i, r.input<float>(i), at, n, buffers.data() + i * block);
      for (size_t k = 0; k < steps; ++k) {
        float* to = k + 1 == steps ? r.output<float>(0) + at : buffers.data() + (inputs_ + k) * block;
        const elementwise_step& s = program_.steps[k];
        fast::run_step(s.code, operand_at(slots, s.a), operand_at(slots, s.b), operand_at(slots, s.c), to, n);
        slots[inputs_ + k] = to;
      }
    }
  }

  const float* operand_at(const std::vector<const float*>& slots, int32_t code) const {
    return code >= 0 ? slots[static_cast<size_t>(code)]
                     : fills_.data() + (inputs_ + static_cast<size_t>(-1 - code)) * block;
  }

  /// Returns elements [begin, begin + n) of input `i`, in place where they are together, else copied to `to`.
  const float* load(size_t i, const float* from, int64_t begin, int64_t n, float* to) const {
    if (modes_[i] == walk_mode::single)
      return fills_.data() + i * block;
    if (modes_[i] == walk_mode::like_output)
      return from + begin;
    gather(walk_, i, from, begin, n, to);
    return to;
  }

  elementwise_program program_;
  size_t inputs_ = 0;
  operand_walk walk_;
  std::vector<walk_mode> modes_; // by input
  int64_t size_ = 0, grain_ = grain_cheap;
  std::vector<float> fills_; // a block of each single-element input and constant
};

/// The program of a chain, or of a single operator; nullopt for those that are none.
std::optional<elementwise_program> program_of(const kernel_request& r) {
  if (r.call.domain == "troupe")
    return parse_elementwise(r.call.attrs, r.inputs.size());
  const auto call = scalar_call_of(*r.call.def, r.call.attrs);
  return call && call->values == std::ssize(r.inputs) ? std::optional(single_step(*call)) : std::nullopt;
}

} // namespace

kernel_ptr make_elementwise(const kernel_request& r) {
  const bool all_present =
      std::all_of(r.inputs.begin(), r.inputs.end(), [](const operand& in) { return in.present(); });
  if (r.outputs.size() != 1 || !r.all_of_type(dtype::float32) || volume(r.outputs[0].dims) == 0 || !all_present)
    return nullptr;
  auto program = program_of(r);
  if (!program)
    return nullptr;
  return std::make_unique<elementwise_kernel>(r, *std::move(program));
}

} // namespace troupe
