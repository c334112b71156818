// Dropout: y = x as inference runs it, and a mask of what was kept: all.
//
// From opset 12 on input 2 can ask for training: each element is kept with probability 1 − ratio and divided by that,
// else it is 0. Which are kept is what ONNX's own cases expect of a seed: element i is if the i-th number in [0, 1)
// that the Mersenne Twister MT19937 gives from that seed, 53 bits of two draws, is at least the ratio. So each run
// drops the same elements. The specification leaves open what happens without a seed; that is refused, since a run must
// be repeatable here (a device may be lost in its middle).
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/elementwise.hpp"
#include "ops/operand.hpp"

#include <cstring>
#include <random>

namespace troupe {
namespace {

constexpr double default_ratio = 0.5;

/// Until opset 9 the mask has the operand's type.
void infer_dropout_1(infer_context& c) {
  infer_same(c);
  c.set_output(1, c.type(0), c.dims(0));
}

void infer_dropout_10(infer_context& c) {
  infer_same(c);
  c.set_output(1, dtype::boolean, c.dims(0));
}

/// Operands that are absent have an undefined type.
bool asks_to_train(const const_view& training) {
  if (training.type == dtype::undefined)
    return false;
  if (training.type != dtype::boolean || training.size() != 1)
    fail(errc::invalid_model, "whether to train (input 2) is {} elements of {} instead of one boolean", training.size(),
         to_string(training.type));
  return *training.as<uint8_t>() != 0;
}

/// Returns the ratio of a training run; 0 where nothing is dropped. Throws if it cannot be run.
double checked_ratio(const attributes& attrs, const const_view& ratio) {
  const bool stated = ratio.type != dtype::undefined;
  if (stated && ratio.size() != 1)
    fail(errc::invalid_model, "the ratio to drop (input 1) is {} numbers instead of one", ratio.size());
  const double dropped = stated ? to_double(ratio)[0] : default_ratio;
  if (!(dropped >= 0 && dropped < 1))
    fail(errc::invalid_model, "the ratio to drop (input 1) is {}, which is not in [0, 1)", dropped);
  if (dropped == 0)
    return 0;
  if (!attrs.has("seed"))
    fail(errc::unsupported, "training that drops elements needs a seed: set attribute 'seed'");
  if (const int64_t seed = attrs.integer("seed"); seed < 0 || seed > UINT32_MAX)
    fail(errc::invalid_model, "attribute 'seed' is {}, which is not in [0, 2^32)", seed);
  return dropped;
}

/// Returns an operand that decides what the operator does: a constant, or absent.
tensor decided(const infer_context& c, size_t i, const char* what) {
  if (!c.has_input(i))
    return {};
  tensor value = c.constant(i);
  if (!value.defined())
    fail(errc::unsupported, "{} (input {}) must be known before the run", what, i);
  return value;
}

void infer_dropout(infer_context& c) {
  infer_dropout_10(c);
  if (asks_to_train(decided(c, 2, "whether to train").view()))
    checked_ratio(c.attrs(), decided(c, 1, "the ratio to drop").view());
}

/// Hands the operand on; the mask is all true.
void keep_all(kernel_context& c) {
  if (c.output(0).data != c.input(0).data)
    convert(c.input(0), c.output(0));
  if (!c.has_output(1))
    return;
  const mutable_view& mask = c.output(1);
  if (mask.type == dtype::boolean)
    std::memset(mask.data, 1, static_cast<size_t>(mask.bytes()));
  else
    visit_float(mask.type, [&]<class T>(type_tag<T>) { std::fill_n(mask.as<T>(), mask.size(), T(1.f)); });
}

/// One thread: each number that is drawn depends on those before.
void drop(kernel_context& c, double ratio) {
  std::mt19937 engine(static_cast<uint32_t>(c.attrs().integer("seed")));
  uint8_t* mask = c.has_output(1) ? c.output(1).as<uint8_t>() : nullptr;
  visit_float(c.input(0).type, [&]<class T>(type_tag<T>) {
    const T* x = c.input(0).as<T>();
    T* y = c.output(0).as<T>();
    const auto scale = static_cast<compute_type<T>>(1 / (1 - ratio));
    for (int64_t i = 0; i < c.output(0).size(); ++i) {
      const double high = engine() >> 5, low = engine() >> 6;
      const bool kept = (high * (1 << 26) + low) / (int64_t{1} << 53) >= ratio;
      y[i] = kept ? static_cast<T>(static_cast<compute_type<T>>(x[i]) * scale) : T();
      if (mask)
        mask[i] = kept;
    }
  });
}

void dropout(kernel_context& c) {
  const double ratio = asks_to_train(optional_input(c, 2)) ? checked_ratio(c.attrs(), optional_input(c, 1)) : 0;
  if (ratio > 0)
    drop(c, ratio);
  else
    keep_all(c);
}

/// Inference has seen to it that a call which might train has constants there.
std::optional<size_t> repeats_undropped(const infer_context& c) {
  const bool drops = c.has_input(2) && !c.is_filled(2, 0) && !(c.has_input(1) && c.is_filled(1, 0));
  return drops ? std::nullopt : std::optional<size_t>(0);
}

void dropout_axes(call_axes& a) {
  if (!repeats_undropped(a.call()))
    a.refuse("drops elements by their position");
  axes::elements(a);
}

constexpr op_def dropout_row(int64_t since, void (*infer)(infer_context&)) {
  return op_row("Dropout", since, infer, keep_all,
                {.max_outputs = 2,
                 .types = types::floats,
                 .alias = aliasing::in_place,
                 .layouts = layout_support::agnostic,
                 .repeats = repeats_first});
}

constexpr auto dropout_rows = std::to_array<op_def>({
    dropout_row(1, infer_dropout_1),
    dropout_row(10, infer_dropout_10),
    // Plain operands: what a training run drops depends on where an element stands.
    op_row("Dropout", 12, infer_dropout, dropout,
           {.inputs = {1, 3},
            .max_outputs = 2,
            .types = types::floats,
            .host_inputs = 0b110,
            .alias = aliasing::in_place,
            .repeats = repeats_undropped,
            .axes = dropout_axes}),
});

} // namespace

extern constinit const op_table onnx_dropout_ops = dropout_rows;

} // namespace troupe
