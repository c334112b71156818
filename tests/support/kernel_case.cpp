#include "support/kernel_case.hpp"

#include "launch/launch_table.hpp"
#include "measure/tuning.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "ops/type_rules.hpp"
#include "plan/estimate/gpu_support.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/graph_builder.hpp"
#include "support/run_inline.hpp"
#include "support/spirv.hpp"
#include "tensor/convert.hpp"
#include "vulkan/device_choice.hpp"
#include "vulkan/pipeline_file.hpp"

#include <cmath>

namespace troupe::test {
namespace {

/// The case as a model of one node; inputs that are not constants come from the caller.
struct one_node {
  std::shared_ptr<const graph> program;
  std::vector<tensor> given;

  explicit one_node(const kernel_case& c) {
    graph_builder b(c.opset);
    if (!c.domain.empty())
      b.g.opsets[c.domain] = 1;
    const op_def* def = find_op(c.domain, c.op, c.opset);
    std::vector<value_id> inputs;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      const tensor& t = c.inputs[i];
      const std::string name = fmt::format("in{}", i);
      const bool host = def && (def->host_inputs >> i & 1u);
      if (!t.defined()) {
        inputs.push_back(no_value);
      } else if (host || (c.constants >> i & 1u)) {
        inputs.push_back(b.constant(name, t));
      } else {
        inputs.push_back(b.input(name, to_symbolic(t.dims()), t.type()));
        given.push_back(t);
      }
    }
    std::vector<std::string> outputs;
    for (size_t o = 0; o < c.outputs; ++o)
      outputs.push_back(fmt::format("out{}", o));
    b.g.outputs = b.call(c.op, inputs, outputs, c.attrs, c.domain);
    program = inferred_program(std::move(b.g));
  }
};

/// Devices are kept: opening one costs more than a case. They stay open at exit: the validation layer is gone before
/// static objects are destroyed. `constants`: whether parameters are constants of kernels, as they are by default on
/// hardware; `factor`: of its quotients.
device& gpu_for(uint32_t alternative, bool plain, bool constants = false, float factor = 1) {
  static auto& open = *new std::map<std::tuple<uint32_t, bool, bool, float>, std::unique_ptr<device>>;
  auto& made = open[{alternative, plain, constants, factor}];
  if (!made) {
    vulkan::shader_filter alter;
    if (factor != 1)
      alter = [factor](std::span<const uint32_t> code) { return with_poor_division(code, factor); };
    made = open_gpu({.poison = true,
                     .alternative = alternative,
                     .prefer_plain = plain,
                     .constant_blocks = constants ? std::optional(true) : std::nullopt,
                     .alter_shader = alter});
  }
  return *made;
}

std::map<std::string, tie_record>& ties() {
  static std::map<std::string, tie_record> all;
  return all;
}

std::map<std::string, kernel_record>& records() {
  static std::map<std::string, kernel_record> all;
  return all;
}

/// Elements of a type that is not computed with: 8-bit floats, integers of 4 bits.
void check_bytes(const tensor& got, const tensor& wanted) {
  const auto *a = static_cast<const uint8_t*>(got.data()), *b = static_cast<const uint8_t*>(wanted.data());
  for (int64_t i = 0; i < got.bytes(); ++i)
    if (a[i] != b[i])
      FAIL("byte " << i << " is " << int{a[i]} << ", not " << int{b[i]});
}

void check_integers(const tensor& got, const tensor& wanted) {
  const auto a = to_int64(got.view()), b = to_int64(wanted.view());
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i])
      FAIL("element " << i << " is " << a[i] << ", not " << b[i]);
}

/// Returns the plan of a model on one GPU, and the launches that its operator offers.
struct planned {
  std::shared_ptr<const plan> made;
  launch_lists offered;

  planned(const kernel_case& c, const one_node& model, const device& gpu)
      : made(make_plan(model.program, {gpu.info()}, {})) {
    const bound_plan_ptr bound = bind_segment(made, 0, {});
    for (const node& n : made->program->nodes)
      if (n.op_type == c.op)
        offered = launches_of(*n.def, make_gpu_call(*bound, n, *gpu.info().gpu));
  }

  bool has_channels_last() const {
    return std::ranges::any_of(made->program->values, [](const auto& v) { return v.layout == layout::channels_last; });
  }
};

/// Runs a plan of the case by the kernel that the device takes, and notes that kernel's errors.
void run_kernel(const kernel_case& c, const one_node& model, const std::shared_ptr<const plan>& p, device& gpu,
                const std::string& kernel, std::span<const tensor> wanted, double rounding) {
  inline_runner runner(p, {&gpu});
  const std::vector<tensor> got = runner.run(model.given);
  REQUIRE(got.size() == wanted.size());
  kernel_record& record = records()[fmt::format("{}, {}, {}", c.op, kernel, to_string(wanted[0].type()))];
  ++record.calls;
  for (size_t o = 0; o < got.size(); ++o) {
    const kernel_record found = check_close(got[o], wanted[o], c.rtol + rounding, c.atol);
    record.worst_absolute = std::max(record.worst_absolute, found.worst_absolute);
    record.worst_in_tolerances = std::max(record.worst_in_tolerances, found.worst_in_tolerances);
  }
}

/// Returns the number of alternatives that the operator offers for the planned node. `again`: all of them have run as
/// they run here, so this one runs only with parameters that are constants, if it is its turn.
size_t run_alternative(const kernel_case& c, const one_node& model, std::span<const tensor> wanted,
                       uint32_t alternative, bool plain, bool again, double rounding) {
  // Hardware has them always. A driver for a CPU takes long to compile: some cases must do.
  constexpr int cases_each = 16;
  static int cases = 0;
  static const bool emulated = !vulkan::is_hardware(gpus()->gpus()[0].snapshot);
  const bool constants = emulated && plain && cases++ % cases_each == 0;
  device& gpu = gpu_for(alternative, plain && (constants || !again), constants);
  const planned p(c, model, gpu);
  const size_t count = p.offered.size();
  if (again && !constants)
    return count;
  const std::string kernel = p.offered.at(std::min<size_t>(alternative, count - 1)).name;
  INFO("kernel " << kernel << (plain ? ", plain" : ""));
  run_kernel(c, model, p.made, gpu, kernel, wanted, rounding);
  return count;
}

} // namespace

kernel_record check_close(const tensor& got, const tensor& wanted, double rtol, double atol) {
  REQUIRE(got.type() == wanted.type());
  REQUIRE(got.dims() == wanted.dims());
  kernel_record record{.calls = 1};
  if ((types::float8 | set_of(dtype::uint4, dtype::int4)) & set_of(got.type())) {
    check_bytes(got, wanted);
    return record;
  }
  if (!(types::floats & set_of(got.type()))) {
    check_integers(got, wanted);
    return record;
  }
  const auto a = to_double(got.view()), b = to_double(wanted.view());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
      continue;
    const double off = std::abs(a[i] - b[i]), allowed = atol + rtol * std::abs(b[i]);
    if (!(off <= allowed))
      FAIL("element " << i << " of " << a.size() << " is " << a[i] << ", not " << b[i]);
    record.worst_absolute = std::max(record.worst_absolute, off);
    record.worst_in_tolerances = std::max(record.worst_in_tolerances, off / allowed);
  }
  return record;
}

tensor to_type(const tensor& t, dtype type) {
  tensor made(type, t.dims());
  convert(t.view(), made.mutable_ref());
  return made;
}

namespace {

/// The expected outputs: by the reference kernel, in float64 if the case asks for that.
std::vector<tensor> reference_outputs(const kernel_case& c, const node& n) {
  if (!c.in_double)
    return evaluate(*n.def, n.attrs, c.inputs, c.outputs);
  std::vector<tensor> inputs = c.inputs;
  const dtype type = inputs.at(0).type();
  for (tensor& t : inputs)
    if (t.defined() && t.type() == type)
      t = to_type(t, dtype::float64);
  std::vector<tensor> outputs = evaluate(*n.def, n.attrs, inputs, c.outputs);
  for (tensor& t : outputs)
    t = to_type(t, type);
  return outputs;
}

} // namespace

tensor to_half(const tensor& t) {
  return t.defined() && t.type() == dtype::float32 ? to_type(t, dtype::float16) : t;
}

namespace {

/// Two units in the last place of float16: results are rounded once on either side.
double rounding_of(bool half) {
  return half ? 0x1p-9 : 0;
}

kernel_case as_given(const kernel_case& given, bool half) {
  kernel_case c = given;
  const std::string_view letters = operand_letters(*find_op(c.domain, c.op, c.opset));
  for (size_t i = 0; half && i < c.inputs.size(); ++i)
    if (operand_letter(letters, i) != 'f') // which is float32 in models of any type
      c.inputs[i] = to_half(c.inputs[i]);
  return c;
}

std::string describe(const kernel_case& c) {
  std::string text = c.op;
  for (const tensor& t : c.inputs)
    text += t.defined() ? fmt::format(" {}{}", to_string(t.type()), to_string(t.dims())) : " -";
  return text;
}

} // namespace

void check_gpu_kernels(const kernel_case& given, bool half) {
  const kernel_case c = as_given(given, half);
  INFO(describe(c));
  const one_node model(c);
  const node& n = model.program->nodes.at(0);
  const std::vector<tensor> wanted = reference_outputs(c, n);
  REQUIRE(has_launch_rules(*n.def));
  // A device that prefers plain operands has the same plan as one that does not if no operand is channels-last.
  const bool takes_both = planned(c, model, gpu_for(0, false)).has_channels_last();
  for (bool plain : {false, true}) {
    size_t count = 1;
    for (uint32_t alternative = 0; alternative < count; ++alternative)
      count = run_alternative(c, model, wanted, alternative, plain, plain && !takes_both, rounding_of(half));
  }
  CHECK(new_gpu_messages() == "");
}

std::set<std::string> check_gpu_ways(const kernel_case& given, std::string_view kernels, bool half) {
  static auto& choices =
      *new auto(std::make_shared<kernel_choices>(vulkan::shader_revisions_of(gpus()->gpus()[0].snapshot)));
  static auto& gpu = *new auto(open_gpu({.poison = true, .measured = choices}));
  const kernel_case c = as_given(given, half);
  INFO(describe(c));
  const one_node model(c);
  const std::vector<tensor> wanted = reference_outputs(c, model.program->nodes.at(0));
  const auto p = make_plan(model.program, {gpu->info()}, {});
  std::set<std::string> names;
  for (const tunable_call& call : tunable_calls(*bind_segment(p, 0, {}), 0, choices->revision()))
    for (const kernel_way& way : call.ways) {
      if (!way.name.starts_with(kernels))
        continue;
      INFO("kernel " << way.name);
      choices->set({{call.key, way.kernel}});
      run_kernel(c, model, p, *gpu, way.name, wanted, rounding_of(half));
      names.insert(way.name);
    }
  choices->set({});
  CHECK(new_gpu_messages() == "");
  return names;
}

namespace {

/// Elements that differ in a bit; any NaN equals any other.
int64_t different_elements(const tensor& got, const tensor& wanted) {
  REQUIRE(got.type() == wanted.type());
  REQUIRE(got.dims() == wanted.dims());
  int64_t different = 0;
  const auto count = [&](const auto& a, const auto& b) {
    for (size_t i = 0; i < a.size(); ++i)
      different += a[i] != b[i] || std::signbit(a[i]) != std::signbit(b[i]);
  };
  if (types::floats & set_of(got.type())) {
    auto a = to_double(got.view()), b = to_double(wanted.view());
    for (size_t i = 0; i < a.size(); ++i)
      if (std::isnan(a[i]) && std::isnan(b[i]))
        a[i] = b[i] = 0;
    count(a, b);
  } else {
    count(to_int64(got.view()), to_int64(wanted.view()));
  }
  return different;
}

/// Whether GPU 0 takes subnormal numbers for zeros: found out by a product.
bool gpu_flushes_subnormals() {
  static const bool flushes = [] {
    const kernel_case c{.op = "Mul", .inputs = {random_floats({4}, 1, 1e-39f, 2e-39f), random_floats({4}, 2, 1, 2)}};
    const one_node model(c);
    device& gpu = gpu_for(0, true);
    const tensor got = inline_runner(planned(c, model, gpu).made, {&gpu}).run(model.given).at(0);
    return got.data<float>()[0] == 0;
  }();
  return flushes;
}

/// Factors of quotients: a GPU in hardware has its own errors, one in software also takes the place of GPUs that divide
/// worse.
std::span<const float> quotient_factors() {
  static constexpr float factors[] = {1.f, 1 + 0x1p-23f, 1 - 0x1p-23f};
  return std::span(factors).first(vulkan::is_hardware(gpus()->gpus().at(0).snapshot) ? 1 : 3);
}

} // namespace

bool has_gpu_kernel(const kernel_case& c) {
  const one_node model(c);
  return gpu_support(*model.program).obstacle(0, *gpu_for(0, true).info().gpu) == gpu_obstacle::none;
}

void check_gpu_bits(const std::string& name, const kernel_case& c, bool subnormal) {
  INFO(name);
  const one_node model(c);
  const std::vector<tensor> wanted = reference_outputs(c, model.program->nodes.at(0));
  for (const float factor : quotient_factors()) {
    size_t offered = 1;
    for (uint32_t alternative = 0; alternative < offered; ++alternative) {
      device& gpu = gpu_for(alternative, true, false, factor);
      const planned p(c, model, gpu);
      offered = p.offered.size();
      REQUIRE(offered > 0);
      const std::vector<tensor> got = inline_runner(p.made, {&gpu}).run(model.given);
      int64_t values = 0, different = 0;
      for (size_t o = 0; o < wanted.size(); ++o) {
        values += wanted[o].size();
        different += different_elements(got.at(o), wanted[o]);
      }
      if (factor == 1) {
        tie_record& record = ties()[name];
        (subnormal ? record.subnormals : record.values) += values;
        (subnormal ? record.different_subnormals : record.different) += different;
      }
      INFO("quotients times 1 + " << (factor - 1) * 0x1p23 << " units, alternative " << alternative << ", of "
                                  << values);
      if (!subnormal || !gpu_flushes_subnormals())
        CHECK(different == 0);
    }
  }
  CHECK(new_gpu_messages() == "");
}

const std::map<std::string, kernel_record>& kernel_records() {
  return records();
}

const std::map<std::string, tie_record>& tie_records() {
  return ties();
}

tensor random_floats(shape dims, uint64_t seed, float low, float high) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> value(low, high);
  tensor t(dtype::float32, std::move(dims));
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = value(random);
  return t;
}

tensor random_integers(dtype type, shape dims, uint64_t seed, int64_t low, int64_t high) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> value(low, high - 1);
  tensor t(type, std::move(dims));
  const auto fill = [&]<class E>(type_tag<E>) {
    for (int64_t i = 0; i < t.size(); ++i)
      t.mutable_data<E>()[i] = static_cast<E>(value(random));
  };
  if (type == dtype::boolean)
    fill(type_tag<bool>{});
  else
    visit_integer(type, fill);
  return t;
}

} // namespace troupe::test
