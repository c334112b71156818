// troupe.Projections, produced by fusion: products of the same rows by several constant matrices, perhaps normalised
// first.
//
//   A   = norm(X), or X
//   P_i = act_i(A · W_i + bias_i + residual_i)
//   Y_i = P_i, or, if `gated`, Y_0 = P_0 · P_1 element by element, or the heads of P_i rotated
//
// X [rows…, K] of rank ≥ 2. Inputs: X, scale and shift of the norm, then for each product weights, scales, zero points,
// bias, residual; what is not needed is absent. With scales the weights are codes, as of com.microsoft.MatMulNBits;
// else a matrix [K, N], [N, K] if transposed. Attributes: `products` (how many), `gated`, `norm` (LayerNormalization or
// RMSNormalization, over the last axis), and those of the parts with the part's name at the end: "epsilon.norm",
// "transB.0", "activation.1", "K.2" …
//
// With `rotary` (troupe's Rotary or ai.onnx's RotaryEmbedding) the results P_i that have `rotary_heads` (a number for
// each product) are the first operand [B, S, H · D] of that operator; X has rank 3. Cosines, sines and, of
// RotaryEmbedding, position_ids are the last inputs.
//
// With `last_norm` (as `norm`; attributes "epsilon.last_norm" …) there is one product: Y_0 = last_norm(P_0), and Y_1 =
// P_0, which may be absent. Scale and shift are the last inputs.
//
// With `wide` results are float32: logits, which a model of float16 hands out so.
//
// It is by definition what its parts are one after the other (`parts_of_projections`), each value between them in X's
// type; kernels may keep more digits.
#include "ops/composed/projections.hpp"

#include "ops/axes.hpp"
#include "ops/composed/fused_elementwise.hpp"
#include "ops/contrib/matmul_nbits.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"
#include "ops/registry.hpp"

namespace troupe {

projection_attributes::projection_attributes(const attributes& attrs)
    : gated(attrs.integer("gated", 0) != 0), wide(attrs.integer("wide", 0) != 0), norm(attrs.text("norm", "")),
      last_norm(attrs.text("last_norm", "")), rotary(attrs.text("rotary", "")),
      rotary_heads(attrs.integers("rotary_heads", {})) {
  const int64_t count = attrs.integer("products");
  if (count < 1 || count > most_projections || (gated && count != 2))
    fail(errc::invalid_model, "{} products, {}, are not those of projections", count, gated ? "gated" : "not gated");
  for (const std::string& name : {norm, last_norm})
    if (!name.empty() && name != "LayerNormalization" && name != "RMSNormalization")
      fail(errc::invalid_model, "'{}' is not a norm of projections", name);
  const bool rotates = rotary == "Rotary" || rotary == "RotaryEmbedding";
  if (!rotary.empty() && (!rotates || gated || std::ssize(rotary_heads) != count))
    fail(errc::invalid_model, "'{}' with {} numbers of heads does not rotate {} {}projections", rotary,
         rotary_heads.size(), count, gated ? "gated " : "");
  if (!last_norm.empty() && (count != 1 || wide || rotates))
    fail(errc::invalid_model, "a norm follows one product, whose type it has, and whose heads are not rotated");
  products = static_cast<size_t>(count);
}

namespace {

using projection::slot;

/// Takes a call apart.
class projection_splitter {
public:
  projection_splitter(const attributes& attrs, std::span<const operand> inputs, std::span<const operand> outputs)
      : attrs_(attrs), how_(attrs), inputs_(inputs), outputs_(outputs) {}

  call_parts split() {
    part_operand rows = input(projection::operand);
    if (!how_.norm.empty()) {
      const part_operand normed = between(inputs_[projection::operand]);
      add("", how_.norm, attributes_of_part(attrs_, "norm"),
          {rows, input(projection::norm_scale), input(projection::norm_shift)}, normed, normalising);
      rows = normed;
    }
    for (size_t p = 0; p < how_.products; ++p)
      multiply(p, rows);
    for (size_t p = 0; p < how_.products && !how_.gated; ++p)
      if (packed(p) && needs_end(p))
        end({p});
    if (how_.gated)
      end({0, 1});
    for (size_t p = 0; p < how_.products; ++p)
      if (how_.is_rotated(p))
        rotate(p);
    if (!how_.last_norm.empty())
      add("", how_.last_norm, attributes_of_part(attrs_, "last_norm"),
          {result(0), input(projection::last_scale), input(projection::last_shift)}, {part_operand::source::output, 0},
          finishing);
    for (size_t p = 0; p < outputs_.size() && is_cast(p); ++p)
      add("", "Cast", cast_to_float32(), {result(p)}, {part_operand::source::output, p}, finishing);
    return std::move(calls_);
  }

private:
  /// The steps of parts: the norm, the products, what is left to do with their results, and a norm or Cast of these.
  enum step : uint32_t { normalising, multiplying, ending, rotating, finishing };

  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].present(); }
  bool packed(size_t p) const { return has(projection::input(p, slot::scales)); }
  part_operand input(size_t i) const { return has(i) ? part_operand{part_operand::source::input, i} : part_operand{}; }
  part_operand input(size_t p, slot s) const { return input(projection::input(p, s)); }

  part_operand between(const operand& like) {
    calls_.between.push_back({.type = like.type, .dims = like.dims});
    return {part_operand::source::between, calls_.between.size() - 1};
  }

  /// Whether result `p` is not made in its own type.
  bool is_cast(size_t p) const { return how_.wide && outputs_[p].type != inputs_[projection::operand].type; }
  static attributes cast_to_float32() {
    attributes attrs;
    attrs.set("to", static_cast<int64_t>(dtype::float32));
    return attrs;
  }
  /// Where result `p` is made: output `p`, or what is cast to that or normalised.
  part_operand result(size_t p) {
    const bool normalised = !how_.last_norm.empty();
    if (normalised && outputs_.size() > 1 && outputs_[1].present())
      return {part_operand::source::output, 1};
    if (!normalised && !is_cast(p))
      return {part_operand::source::output, p};
    made_.resize(outputs_.size());
    if (made_[p].from == part_operand::source::absent)
      made_[p] = between({.type = inputs_[projection::operand].type, .dims = outputs_[p].dims});
    return made_[p];
  }

  activation activation_of(size_t p) const { return parse_activation(attributes_of_part(attrs_, std::to_string(p))); }
  /// Whether a product of codes, whose operator ends with the bias, needs a further part.
  bool needs_end(size_t p) const {
    return has(projection::input(p, slot::residual)) || activation_of(p).code != scalar_code::same;
  }

  void multiply(size_t p, const part_operand& rows) {
    const bool last = !how_.gated && !(packed(p) && needs_end(p));
    const operand& out = outputs_[how_.gated ? 0 : p];
    const part_operand to = last ? result(p) : between({.type = inputs_[projection::operand].type, .dims = out.dims});
    results_.push_back(to);
    attributes own = attributes_of_part(attrs_, std::to_string(p));
    if (packed(p))
      add("com.microsoft", "MatMulNBits", std::move(own),
          {rows, input(p, slot::weights), input(p, slot::scales), input(p, slot::zeros), {}, input(p, slot::bias)}, to,
          multiplying);
    else
      add("troupe", "MatMul", std::move(own),
          {rows, input(p, slot::weights), input(p, slot::bias), input(p, slot::residual)}, to, multiplying);
  }

  /// Adds the elementwise part that makes output `products[0]`: the ends of packed products, and the product of two.
  void end(const std::vector<size_t>& products) {
    std::vector<part_operand> from;
    for (const size_t p : products) {
      from.push_back(results_[p]);
      if (packed(p) && has(projection::input(p, slot::residual)))
        from.push_back(input(p, slot::residual));
    }
    elementwise_program program;
    const auto inputs = static_cast<int32_t>(from.size());
    const auto step = [&](scalar_code code, int32_t a, int32_t b = 0, int32_t c = 0) {
      program.steps.push_back({code, a, b, c});
      return inputs + static_cast<int32_t>(program.steps.size()) - 1;
    };
    const auto number = [&](float x) {
      program.constants.push_back(x);
      return -static_cast<int32_t>(program.constants.size());
    };
    int32_t next = 0;
    std::vector<int32_t> ends;
    for (const size_t p : products) {
      int32_t at = next++;
      if (packed(p) && has(projection::input(p, slot::residual)))
        at = step(scalar_code::add, at, next++);
      if (const activation act = activation_of(p); packed(p) && act.code != scalar_code::same) {
        const int numbers = function_of(act.code).operands - 1;
        const int32_t alpha = numbers > 0 ? number(act.alpha) : 0, beta = numbers > 1 ? number(act.beta) : 0;
        at = step(act.code, at, alpha, beta);
      }
      ends.push_back(at);
    }
    if (ends.size() == 2)
      step(scalar_code::multiply, ends[0], ends[1]);
    add("troupe", "Elementwise", to_attributes(program), std::move(from), result(products[0]), ending);
  }

  /// Rotates the heads of output `p` where they are.
  void rotate(size_t p) {
    const part_operand heads = result(p);
    attributes own = attributes_of_part(attrs_, "rotary");
    own.set("num_heads", how_.rotary_heads[p]);
    const auto angle = [&](projection::angle a) { return input(projection::input(how_.products, a)); };
    add(how_.rotary_domain(), how_.rotary, std::move(own),
        {heads, angle(projection::cosines), angle(projection::sines), angle(projection::positions)}, heads, rotating);
  }

  void add(std::string_view domain, std::string_view op, attributes attrs, std::vector<part_operand> inputs,
           part_operand output, step s) {
    add_call(calls_, domain, op, std::move(attrs), std::move(inputs), std::move(output), s);
  }

  const attributes& attrs_;
  const projection_attributes how_;
  const std::span<const operand> inputs_, outputs_;
  call_parts calls_;
  std::vector<part_operand> results_; // of the products
  std::vector<part_operand> made_;    // by output, where that is made of another value
};

/// Returns the columns of product `p`, whose weights are there.
dim columns_of(const infer_context& c, size_t p) {
  const attributes own = attributes_of_part(c.attrs(), std::to_string(p));
  const size_t weights = projection::input(p, slot::weights);
  if (c.has_input(projection::input(p, slot::scales)))
    return parse_nbits(own).n;
  if (c.rank(weights) != 2)
    fail(errc::invalid_model, "weights of projections have two dims, not {}", to_string(c.dims(weights)));
  return c.dims(weights)[own.integer("transB", 0) != 0 ? 0 : 1];
}

void infer_projections(infer_context& c) {
  const projection_attributes how(c.attrs());
  symbolic_shape dims = c.dims(projection::operand);
  if (dims.size() < 2)
    fail(errc::invalid_model, "projections take an operand of rank 2 or more");
  if (!how.norm.empty() && !c.has_input(projection::norm_scale))
    fail(errc::invalid_model, "the norm of projections needs a scale");
  if (!how.last_norm.empty() && !c.has_input(projection::last_scale))
    fail(errc::invalid_model, "the norm after a product needs a scale");
  for (size_t p = 0; p < how.products; ++p) {
    if (!c.has_input(projection::input(p, slot::weights)))
      fail(errc::invalid_model, "product {} of projections has no weights", p);
    parse_activation(attributes_of_part(c.attrs(), std::to_string(p)));
    const dim columns = columns_of(c, p);
    if (how.gated && p == 1 && columns.is_constant() && dims.back().is_constant() && !(columns == dims.back()))
      fail(errc::invalid_model, "gated products have {} and {} columns", dims.back().to_string(), columns.to_string());
    if (how.is_rotated(p) && (dims.size() != 3 || !c.has_input(projection::input(how.products, projection::sines)) ||
                              (columns.is_constant() && columns.constant() % how.rotary_heads[p] != 0)))
      fail(errc::invalid_model, "{} rotated heads do not fit {} columns of {} dims", how.rotary_heads[p],
           columns.to_string(), dims.size());
    dims.back() = columns;
    if (!how.gated || p == 0)
      c.set_output(p, how.wide ? dtype::float32 : c.type(projection::operand), dims);
  }
  if (!how.last_norm.empty() && c.output_count() > 1)
    c.set_output(1, c.type(projection::operand), dims);
  infer_parts(c, how.wide ? dtype::float32 : c.type(projection::operand), parts_of_projections);
}

void projections_reference(kernel_context& c) {
  run_parts(c, parts_of_projections);
}

/// The dims may be guesses that do not fit each other: nothing of them is checked.
op_cost projections_cost(const attributes& attrs, const call_shapes& s) {
  op_cost cost{.bytes = operand_bytes(s)};
  const shape& x = s.inputs.at(projection::operand);
  const double depth = x.empty() ? 1 : static_cast<double>(x.back());
  const double products = attrs.integer("gated", 0) != 0 ? 2 : 1; // that an output is made of
  for (size_t i = 0; i < s.outputs.size(); ++i)
    if (i == 0 || !attrs.has("last_norm"))
      cost.flops += products * 2 * depth * static_cast<double>(volume(s.outputs[i]));
  return cost;
}

/// Puts the angles of a rotary embedding on dim `axis`, batches or positions: each row has its own, all share them, or
/// its position looks them up in tables.
void join_angles(call_axes& a, call_axis& rows, size_t axis, const projection_attributes& how) {
  const auto angle = [&](projection::angle which) { return projection::input(how.products, which); };
  const bool by_position = a.call().has_input(angle(projection::positions));
  for (const auto which : {projection::cosines, projection::sines})
    if (!by_position)
      a.join(rows, how.rotary == "Rotary" ? a.fit(angle(which), axis, 3) : call_axes::place{angle(which), axis});
  a.join(rows, {angle(projection::positions), axis});
}

/// The dims before the last, along which products sum.
void projection_axes(call_axes& a) {
  const projection_attributes how(a.call().attrs());
  const size_t rank = a.call().rank(0);
  for (size_t axis = 0; axis + 1 < rank; ++axis) {
    call_axis& made = a.map({{0, axis}}, axis);
    for (size_t p = 0; p < how.products; ++p)
      a.join(made, a.fit(projection::input(p, projection::residual), axis, rank));
    if (!how.rotary.empty())
      join_angles(a, made, axis, how);
  }
}

constexpr uint8_t most_inputs = projection::input(most_projections, projection::cosines) + projection::angles;

constexpr auto projection_rows = std::to_array<op_def>({
    op_row("Projections", 1, infer_projections, projections_reference,
           {.domain = "troupe",
            .inputs = {1, most_inputs},
            .max_outputs = most_projections,
            .types = types::floats,
            .cost = projections_cost,
            .axes = projection_axes,
            .mixes = "combines what is along"}),
});

} // namespace

call_parts parts_of_projections(const attributes& attrs, std::span<const operand> inputs,
                                std::span<const operand> outputs) {
  return projection_splitter(attrs, inputs, outputs).split();
}

extern constinit const op_table composed_projections_ops = projection_rows;

} // namespace troupe
