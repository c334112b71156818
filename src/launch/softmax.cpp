// GPU kernels of Softmax, LogSoftmax and Hardmax: one launch that reads the operand once (shaders/softmax.comp).
#include "ops/onnx/softmax.hpp"
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "launch/row_team.hpp"

namespace troupe {
namespace {

static_assert(shader::is(softmax_kind::softmax, shader::softmax_plain) &&
              shader::is(softmax_kind::log_softmax, shader::softmax_logarithm) &&
              shader::is(softmax_kind::hardmax, shader::softmax_hardmax));

template <softmax_kind Kind, bool Flatten>
launch_lists softmax(const gpu_call& call) {
  const row_extent e = softmax_extent(call.attrs, call.inputs.at(0).dims, Flatten);
  launch_lists lists;
  for (const row_team& team : row_teams(e, e.width(), call.gpu)) {
    const auto shader = row_shader("softmax", call.inputs[0].type, team.plain, call.gpu);
    if (!shader)
      return {};
    launch_builder b(call, team.plain ? "softmax.plain" : "softmax");
    launch& l = b.add(*shader, team.groups(e.rows(), call.gpu), {b.in(0), b.out(0)});
    l.constants = team.constants();
    l.constants.push_back(static_cast<uint32_t>(Kind));
    l.params = words_of(shader::softmax{.rows = e.rows(), .size = e.size, .inner = e.inner});
    if (auto list = b.finish())
      lists.push_back(std::move(*list));
  }
  return lists;
}

} // namespace

extern constinit const launch_rows softmax_rules = {
    {"", "Hardmax", softmax<softmax_kind::hardmax, true>},
    {"", "Hardmax", softmax<softmax_kind::hardmax, false>, 13},
    {"", "LogSoftmax", softmax<softmax_kind::log_softmax, true>},
    {"", "LogSoftmax", softmax<softmax_kind::log_softmax, false>, 13},
    {"", "Softmax", softmax<softmax_kind::softmax, true>},
    {"", "Softmax", softmax<softmax_kind::softmax, false>, 13},
};

} // namespace troupe
