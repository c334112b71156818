// troupe.Projections and troupe.AttentionProjection on the CPU: the kernels of their parts, one after the other. What a
// part hands on stays in memory of the kernel's own; nothing would be gained by more, since the products are bound by
// their weights.
#include "ops/composed/projections.hpp"
#include "cpu/kernel_list.hpp"
#include "cpu/kernels.hpp"
#include "ops/composed/fused_attention.hpp"

namespace troupe {
namespace {

class parts_kernel final : public kernel {
public:
  parts_kernel(const kernel_request& r, parts_function parts_of)
      : calls_(parts_of(r.call.attrs, r.inputs, r.outputs)), nodes_(calls_.parts.size()) {
    for (const operand& o : calls_.between)
      between_.emplace_back(o.type, o.dims);
    for (size_t i = 0; i < nodes_.size(); ++i)
      prepare(r, calls_.parts[i], nodes_[i]);
  }

  bool reads(size_t i) const override {
    for (size_t part = 0; part < kernels_.size(); ++part)
      for (size_t k = 0; k < calls_.parts[part].inputs.size(); ++k) {
        const part_operand& o = calls_.parts[part].inputs[k];
        if (o.from == part_operand::source::input && o.index == i && kernels_[part]->reads(k))
          return true;
      }
    return false;
  }

  void run(const kernel_run& r) override {
    std::vector<const void*> in;
    for (size_t part = 0; part < kernels_.size(); ++part) {
      in.clear();
      for (const part_operand& o : calls_.parts[part].inputs)
        in.push_back(address(r, o));
      const part_operand& to = calls_.parts[part].output;
      void* out = to.from == part_operand::source::between ? between_[to.index].mutable_data() : r.out[to.index];
      kernels_[part]->run({in.data(), &out, nullptr});
    }
  }

private:
  /// `call` is the part as a node, which its kernel may refer to.
  void prepare(const kernel_request& r, const call_part& part, node& call) {
    call = {.name = r.call.name,
            .op_type = std::string(part.def->name),
            .domain = std::string(part.def->domain),
            .attrs = part.attrs};
    call.def = part.def;
    kernel_request own{call, {}, {operand_of(part.output, calls_, r.inputs, r.outputs)}, r.resources};
    for (const part_operand& o : part.inputs)
      own.inputs.push_back(operand_of(o, calls_, r.inputs, r.outputs));
    kernels_.push_back(choose_kernel(own).run);
  }

  const void* address(const kernel_run& r, const part_operand& o) const {
    switch (o.from) {
      case part_operand::source::absent: return nullptr;
      case part_operand::source::input: return r.in[o.index];
      case part_operand::source::output: return r.out[o.index];
      case part_operand::source::between: break;
    }
    return between_[o.index].data();
  }

  const call_parts calls_;
  std::vector<node> nodes_;
  std::vector<kernel_ptr> kernels_;
  std::vector<tensor> between_;
};

} // namespace

kernel_ptr make_projections(const kernel_request& r) {
  return r.all_plain() ? std::make_unique<parts_kernel>(r, parts_of_projections) : nullptr;
}

kernel_ptr make_attention_projection(const kernel_request& r) {
  return r.all_plain() ? std::make_unique<parts_kernel>(r, parts_of_attention_projection) : nullptr;
}

} // namespace troupe
