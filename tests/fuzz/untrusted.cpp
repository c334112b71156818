#include "fuzz/untrusted.hpp"

#include "cost/profile_file.hpp"
#include "fuzz/inline_session.hpp"
#include "fuzz/small_protos.hpp"
#include "loader/npy.hpp"
#include "loader/npz.hpp"
#include "plan/saved_plan.hpp"
#include "remote/messages.hpp"
#include "support/find_or_make.hpp"
#include "support/verify_memory.hpp"
#include "troupe/tensor_file.hpp"
#include "wire/facts.hpp"
#include "wire/plans.hpp"

#include <functional>

namespace troupe::test {
namespace {

std::string_view text_of(untrusted bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Where models are files and find external data, as long as the process lives.
const scratch_folder& model_folder() {
  static const scratch_folder folder;
  static const bool filled = [] {
    folder.write("w.bin", external_bytes());
    std::filesystem::create_symlink("/etc/hostname", folder.path() / "link.bin");
    return true;
  }();
  static_cast<void>(filled);
  return folder;
}

/// Calls `work`; returns its result, or the code of its error if that is one to expect of a bad file.
std::string ending_of(const std::function<std::string()>& work) {
  try {
    return work();
  } catch (const error& e) {
    const bool expected = e.code() != errc::internal && e.code() != errc::device_failed;
    if (!expected || std::string_view(e.what()).empty())
      throw defect(fmt::format("{}: {}", to_string(e.code()), e.what()));
    return std::string(to_string(e.code()));
  }
}

/// A GPU that nothing runs on: planning and binding choose its kernels and lay its memory out.
device_info imagined_gpu(unsigned how) {
  const bool large = how & variant::half;
  gpu_features features{.int64 = large, .subgroup_arithmetic = large};
  features.float16 = features.int8 = true;
  features.max_binding_bytes = large ? int64_t{4} << 30 : 1 << 16;
  features.cooperative_matrix = features.strong_matrices = features.group_matrices = features.integer_dot =
      features.byte_matrices = large;
  return {.name = "vulkan:0",
          .kind = device_kind::vulkan,
          .description = "imagined",
          .memory_bytes = int64_t{256} << 20,
          .host_memory = false,
          .prefers_channels_last = (how & variant::two_devices) != 0,
          .gpu = features,
          .transfers = transfer_path::staged,
          .copies_beside_work = (how & variant::unfused) != 0};
}

/// Plans a model for the imagined GPU with a CPU after it, and binds its first segment.
void plan_on_gpu(const graph& source, const session_options& options, unsigned how) {
  device_info cpu{.name = "cpu", .memory_bytes = int64_t{256} << 20, .fallback = true};
  const auto m = make_model(source, options, 0);
  if (!m->host_inputs.empty())
    return;
  session_plans plans(m, {imagined_gpu(how), cpu});
  const named_tensors inputs = make_up_inputs(m->inputs, how >> variant::inputs_shift);
  const prepared_run run = find_or_make([&](const plan_outcome& made) { return plans.prepare({inputs, {}}, made); });
  verify(*run.source->compiled);
  test::verify_memory(*run.bound);
}

} // namespace

unsigned variant_of(untrusted model) {
  onnx::ModelProto m;
  if (!m.ParsePartialFromArray(model.data(), static_cast<int>(model.size())))
    return 0;
  return static_cast<unsigned>(m.model_version()) & variant::all;
}

std::string try_model(untrusted model, unsigned how) {
  return ending_of([&]() -> std::string {
    const scratch_folder& folder = model_folder();
    graph source = how & variant::mapped ? load_model(folder.write("model.onnx", std::string(text_of(model))))
                                         : load_model(model, folder.path());
    session_options options{.policy = placement_policy::round_robin, .fuse = !(how & variant::unfused)};
    options.precision = how & variant::half ? precision::fp16 : precision::fp32;
    if (how & variant::on_gpu)
      plan_on_gpu(source, options, how);
    inline_session s(std::move(source), options, how & variant::two_devices ? 2 : 1);
    s.run(make_up_inputs(s.inputs(), how >> variant::inputs_shift));
    return "result";
  });
}

namespace {

void check_same(const tensor& a, const tensor& b) {
  if (a.type() != b.type() || a.dims() != b.dims())
    throw defect("a tensor is not what was written");
}

/// A file that can be read can be written, and comes back.
void check_npy_header(const tensor& t) {
  const std::string header = make_npy_header(t.type(), t.dims());
  const npy_header again = parse_npy_header(std::as_bytes(std::span(header)));
  check_same(t, tensor(again.type, again.dims));
}

} // namespace

void try_tensor_file(untrusted bytes) {
  ending_of([&]() -> std::string {
    check_npy_header(parse_npy(bytes));
    return "npy";
  });
  ending_of([&]() -> std::string {
    for (const auto& [name, value] : parse_npz(bytes))
      check_npy_header(value);
    return "npz";
  });
  ending_of([&]() -> std::string {
    const named_tensor read = parse_pb(bytes);
    const std::string written = make_pb(read.name, read.value);
    check_same(read.value, parse_pb(std::as_bytes(std::span(written))).value);
    return "pb";
  });
}

void try_plan_file(untrusted bytes) {
  const std::vector<device_info> devices = plan_devices();
  for (const auto& program : plan_models())
    ending_of([&, &p = program]() -> std::string {
      const auto made = make_plan(p, devices, {.saved = parse_saved_plan(text_of(bytes), "a fuzzed plan")});
      if (made->program->inputs.empty())
        return "plan";
      bindings symbols;
      for (value_id v : made->program->inputs)
        for (const dim& d : *made->program->values[v].dims)
          symbols[d.symbol_name()] = 3;
      test::verify_memory(*bind_segment(made, 0, symbols));
      return "plan";
    });
  ending_of([&]() -> std::string {
    const kept_profiles read = read_profiles(text_of(bytes));
    for (const measured_profile& p : read.devices)
      merge(p, read.devices.front());
    read_profiles(write_profiles(read.devices, read.links));
    return "profiles";
  });
}

namespace {

std::string try_plan_message(std::span<const uint8_t> bytes) {
  const wire::decoded_plan made = wire::derive_plan(bytes);
  for (device_index d = 0; d < made.source->devices.size(); ++d)
    wire::leaves_needed(*made.source, d);
  bindings symbols;
  for (const std::string& name : symbols_of(*made.source, made.source->segment_count - 1))
    symbols[name] = 3;
  test::verify_memory(*bind_segment(made.source, 0, symbols));
  return "plan";
}

std::string try_binding_message(std::span<const uint8_t> bytes) {
  static const wire::decoded_plan made =
      wire::decode_plan(plan_message(*make_plan(plan_models()[0], plan_devices(), {})));
  wire::layout_table layouts;
  test::verify_memory(*wire::decode_binding(bytes, made, layouts).bound);
  return "binding";
}

/// A message that can be read can be written, and is the same then.
template <class T>
std::string try_value(std::span<const uint8_t> bytes) {
  const std::vector<uint8_t> written = wire::encode(wire::decode<T>(bytes));
  if (wire::encode(wire::decode<T>(written)) != written)
    throw defect("a message is not what was written");
  return "value";
}

/// Reads a message as a link brings it.
std::string try_frame(std::span<const uint8_t> bytes) {
  const remote::frame written = remote::encode(remote::decode(bytes));
  if (remote::encode(remote::decode(written)) != written)
    throw defect("a frame is not what was written");
  return "frame";
}

} // namespace

std::vector<uint8_t> plan_message(const plan& p) {
  return wire::encode_plan(p, [](const weight& leaf) { return content_hash(leaf.leaf); });
}

void try_message(untrusted bytes) {
  if (bytes.empty())
    return;
  const std::span<const uint8_t> rest(reinterpret_cast<const uint8_t*>(bytes.data()) + 1, bytes.size() - 1);
  ending_of([&]() -> std::string {
    switch (static_cast<uint8_t>(bytes[0]) % message_kind::kinds) {
      case message_kind::plan: return try_plan_message(rest);
      case message_kind::binding: return try_binding_message(rest);
      case message_kind::device: return try_value<device_info>(rest);
      case message_kind::result: return try_value<chunk_result>(rest);
      case message_kind::stats: return try_value<device_stats>(rest);
      case message_kind::tensor: return try_value<tensor>(rest);
      case message_kind::frame: return try_frame(rest);
      default: return try_value<attributes>(rest);
    }
  });
}

} // namespace troupe::test
