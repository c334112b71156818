// troupe.Task: a task of a made-up graph, for scheduling experiments (src/schedules).
//
// Attributes: `work`, its floating-point operations as the cost model counts them; `elements`, those of each output,
// float32; `task`, its number, which tells it from equal tasks. It means work and does none: every output is zeros,
// whatever the inputs are.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"

#include <cstring>

namespace troupe {
namespace {

void infer_task(infer_context& c) {
  const std::vector<int64_t> elements = c.attrs().integers("elements");
  if (elements.size() < c.output_count() || std::any_of(elements.begin(), elements.end(), [](auto n) { return n < 0; }))
    fail(errc::invalid_model, "attribute 'elements' must have a number for each of {} outputs, none below 0",
         c.output_count());
  for (size_t i = 0; i < c.output_count(); ++i)
    c.set_output(i, dtype::float32, {elements[i]});
}

void task_reference(kernel_context& c) {
  for (size_t i = 0; i < c.output_count(); ++i)
    if (c.has_output(i) && c.output(i).size() > 0)
      std::memset(c.output(i).as<float>(), 0, static_cast<size_t>(c.output(i).size()) * sizeof(float));
}

op_cost task_cost(const attributes& attrs, const call_shapes&) {
  return {.flops = std::max(attrs.real("work"), 0.f)};
}

constexpr auto task_rows = std::to_array<op_def>({
    op_row("Task", 1, infer_task, task_reference,
           {.domain = "troupe",
            .inputs = {1, 255},
            .max_outputs = 255,
            .types = set_of(dtype::float32),
            .hides_elements = true,
            .needs_float32 = true,
            .cost = task_cost,
            .mixes = "is a task of a graph without values"}),
});

} // namespace

extern constinit const op_table composed_task_ops = task_rows;

} // namespace troupe
