// Every operator with a dim that the run's inputs contradict: an error that names the node, or the result of the
// reference kernel; never another answer, and never memory that is not the operands'.
#include "actors/engine_access.hpp"
#include "ops/evaluate.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/sample_calls.hpp"
#include "support/thrown.hpp"
#include "tensor/elements.hpp"

#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

/// The outcome of a call: results, or why there are none.
struct outcome {
  std::vector<tensor> results;
  std::string refusal;
};

template <class F>
outcome outcome_of(F&& run) {
  try {
    return {run(), ""};
  } catch (const error& e) {
    CHECK(e.code() != errc::internal);
    return {{}, e.what()};
  }
}

/// Whether a call is refused because of elements of its operands alone: GPUs do not look at them before they run.
bool is_about_elements(const std::string& refusal) {
  return refusal.find("out of bounds") != std::string::npos || refusal.find("out of range") != std::string::npos ||
         refusal.find("leaves a cache of") != std::string::npos;
}

outcome run_on(const session& s, const sample_call& c, const named_tensors& inputs) {
  return outcome_of([&] {
    named_tensors all = s.run(inputs).outputs;
    std::vector<tensor> results;
    for (size_t k = 0; k < c.outputs; ++k)
      results.push_back(all.at(fmt::format("y{}", k)));
    return results;
  });
}

/// `fits`: nothing contradicts anything.
void check_run(const session& s, const sample_call& c, const std::vector<bool>& is_input, bool fits) {
  named_tensors inputs;
  for (size_t k = 0; k < c.inputs.size(); ++k)
    if (c.inputs[k].defined() && is_input[k])
      inputs[fmt::format("x{}", k)] = c.inputs[k];
  const outcome got = run_on(s, c, inputs);
  const outcome wanted = outcome_of([&] { return evaluate(*c.def, c.attrs, c.inputs, c.outputs); });
  if (got.refusal.empty()) {
    CHECK((wanted.refusal.empty() || is_about_elements(wanted.refusal)));
    for (size_t k = 0; k < wanted.results.size() && !c.def->draws; ++k)
      CHECK(got.results[k].dims() == wanted.results[k].dims());
  } else {
    INFO(got.refusal);
    const bool needs_elements = got.refusal.find("must be known before the run") != std::string::npos;
    CHECK((!fits || needs_elements || !wanted.refusal.empty()));
    CHECK((got.refusal.find("call") != std::string::npos || got.refusal.find("'x") != std::string::npos ||
           is_about_elements(got.refusal)));
  }
}

/// Makes one dim of an operand symbolic, and gives it other sizes than the operator's other operands or attributes
/// allow.
void check_axis(engine& e, const sample_call& c, size_t i, size_t axis) {
  std::vector<symbolic_shape> dims = dims_of(c);
  dims[i][axis] = dim::symbol("n");
  std::optional<session> s;
  try {
    s = e.load(graph_of(c, dims));
  } catch (const error&) {
    return; // the operator must know this dim
  }
  std::vector<bool> is_input(c.inputs.size());
  for (size_t k = 0; k < c.inputs.size(); ++k)
    is_input[k] = k == i || (c.def->host_inputs >> k & 1) == 0;
  const int64_t size = c.inputs[i].dims()[axis];
  for (const int64_t given : {size, size - 1, size + 1}) {
    if (given < 0)
      continue;
    sample_call other = c;
    shape changed = c.inputs[i].dims();
    changed[axis] = given;
    if (given != size)
      other.inputs[i] = resized(c.inputs[i], changed);
    INFO(fmt::format("{}: dim {} of input {} is {}", c.name, axis, i, given));
    check_run(*s, other, is_input, given == size);
  }
}

void check_on(const std::vector<std::string>& devices) {
  engine e = make_engine({.devices = devices}, {.gpu_validation = gpus_are_validated()});
  std::set<const op_def*> peers; // one call of each
  for (const sample_call& c : read_sample_calls(true)) {
    const bool own = c.def->domain.empty() || c.def->domain == "troupe";
    if (!own && !peers.insert(c.def).second)
      continue;
    for (size_t i = 0; i < c.inputs.size(); ++i)
      for (size_t axis = 0; c.inputs[i].defined() && axis < c.inputs[i].dims().size(); ++axis)
        check_axis(e, c, i, axis);
  }
  CHECK(gpu_messages(e).empty());
}

} // namespace

TEST_CASE("sizes that contradict each other are errors of the run that name the node", "[plan][engine]") {
  check_on({"cpu"});
}

TEST_CASE("sizes that contradict each other are such errors on a GPU", "[plan][engine][vulkan][slow]") {
  check_on({"vulkan:0", "cpu"});
}
