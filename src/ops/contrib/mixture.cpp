// MoE and QMoE of com.microsoft: mixtures of experts.
//
// For each token the k experts of the largest router_probs are asked; y = Σ weight · expert(x). MoE's weights are the
// softmax of router_probs, divided by the sum of those asked if normalize_routing_weights is set; QMoE's are the
// softmax of those asked alone. With router_weights QMoE takes these, divided by their sum if normalize_routing_weights
// is set. Experts whose weight is not positive (QMoE: not above 1e-8) take no part. use_sparse_mixer changes nothing on
// ONNX Runtime's CPU, nor here. An expert is fc2 · act(fc1 · x + b1) + b2, a row of a weight for each result. gelu is
// that by tanh. SwiGLU takes two numbers, g and l: G · sigmoid(alpha G) · (L + beta), G = min(g, limit), L = clamp(l,
// ±limit); they are neighbours in fc1's results (swiglu_fusion 1), halves of them (2), or l is fc3's. With fc3 any
// other activation is multiplied by fc3's results. QMoE's weights are codes of 2, 4 or 8 bits, packed along a row, low
// bits first: (code − zero point) · scale, by row or by block of a row.
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"
#include "ops/quantization.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace troupe {
namespace {

// -- attributes

enum class expert_activation : uint8_t { relu, gelu, silu, swiglu, identity };

struct mixture_rule {
  bool coded; // QMoE
  expert_activation activation;
  int64_t chosen, fusion; // experts a token; swiglu_fusion
  bool normalise;
  float alpha, beta, limit;
  int64_t bits, block; // of QMoE; block 0: a row has one scale

  bool gated() const { return activation == expert_activation::swiglu; }
  /// Results of fc1 that make one number.
  int64_t width() const { return gated() && fusion != 0 ? 2 : 1; }
};

expert_activation parse_activation(const attributes& attrs) {
  return word_as<expert_activation>(attrs, "activation_type", "relu", {"relu", "gelu", "silu", "swiglu", "identity"});
}

mixture_rule parse_rule(const attributes& attrs, bool coded) {
  mixture_rule r{coded,
                 parse_activation(attrs),
                 attrs.integer("k", 1),
                 attrs.integer("swiglu_fusion", 0),
                 attrs.integer("normalize_routing_weights", 0) != 0,
                 attrs.real("activation_alpha", 1),
                 attrs.real("activation_beta", 0),
                 attrs.real("swiglu_limit", std::numeric_limits<float>::infinity()),
                 attrs.integer("expert_weight_bits", 4),
                 attrs.integer("block_size", 0)};
  if (const std::string type = attrs.text("quant_type", "int"); type != "int")
    fail(errc::unsupported, "experts quantised as '{}' are not supported", type);
  if (attrs.integer("weights_prepacked", 0) > 0)
    fail(errc::unsupported, "weights in another engine's layout (weights_prepacked) are not supported");
  if (r.fusion < 0 || r.fusion > 2)
    fail(errc::invalid_model, "attribute 'swiglu_fusion' is {}, not 0, 1 or 2", r.fusion);
  if (r.bits != 2 && r.bits != 4 && r.bits != 8)
    fail(errc::invalid_model, "attribute 'expert_weight_bits' is {}, not 2, 4 or 8", r.bits);
  if (r.block < 0)
    fail(errc::invalid_model, "attribute 'block_size' is {}", r.block);
  if (!(r.limit >= 0)) // or NaN
    fail(errc::invalid_model, "attribute 'swiglu_limit' is {}, not 0 or more", r.limit);
  return r;
}

/// Where the inputs of a layer are; `none` where an operator has no such input.
struct layer_places {
  size_t weights, scales, bias, zeros;
};
constexpr size_t none = 99;
constexpr size_t router_weights_input = 14; // of QMoE
constexpr std::array<layer_places, 3> real_layers{{{2, none, 3, none}, {4, none, 5, none}, {6, none, 7, none}}};
constexpr std::array<layer_places, 3> code_layers{{{2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}}};

// -- layers

/// One layer of all experts: weights [experts, results, operands].
class expert_layer {
public:
  expert_layer(const kernel_context& c, const layer_places& at, const mixture_rule& rule, const char* name)
      : bits_(at.scales == none ? 0 : rule.bits), weights_(c.input(at.weights)) {
    if (weights_.dims.size() != 3)
      fail(errc::invalid_input, "the weights of {} are {}, not [experts, results, operands]", name,
           to_string(weights_.dims));
    experts_ = weights_.dims[0];
    results_ = weights_.dims[1];
    operands_ = weights_.dims[2] * (bits_ ? 8 / bits_ : 1);
    if (c.has_input(at.bias)) {
      bias_ = converted<float>(c.input(at.bias));
      require(bias_.size(), experts_ * results_, name, "biases");
    }
    if (bits_ != 0 && !c.has_input(at.scales))
      fail(errc::invalid_input, "{} has no scales", name);
    if (bits_ != 0)
      require_bytes(weights_, name, "weights");
    if (bits_ == 0) {
      real_ = weights_.type == dtype::float32 ? tensor{} : converted<float>(weights_);
      return;
    }
    block_ = rule.block == 0 ? operands_ : rule.block;
    blocks_ = block_ == 0 ? 0 : operands_ / block_ + (operands_ % block_ != 0);
    const bool by_row = blocks_ <= 1;
    scales_ = converted<float>(c.input(at.scales));
    require(scales_.size(), experts_ * results_ * blocks_, name, "scales");
    if (c.has_input(at.zeros)) {
      zeros_ = c.input(at.zeros);
      require_bytes(zeros_, name, "zero points");
      zero_bytes_ = by_row ? 0 : (blocks_ * bits_ + 7) / 8;
      // Those of whole rows are packed along the results.
      require(zeros_.size(), experts_ * (by_row ? (results_ * bits_ + 7) / 8 : results_ * zero_bytes_), name,
              "bytes of zero points");
    }
  }

  int64_t experts() const { return experts_; }
  int64_t results() const { return results_; }
  int64_t operands() const { return operands_; }

  /// Returns a row of weights, perhaps in `scratch`.
  const float* row(int64_t expert, int64_t result, std::vector<float>& scratch) const {
    const int64_t at = expert * results_ + result;
    if (bits_ == 0)
      return (real_.defined() ? real_.data<float>() : weights_.as<float>()) + at * operands_;
    scratch.resize(static_cast<size_t>(operands_));
    const auto* codes = weights_.as<uint8_t>() + at * weights_.dims[2];
    for (int64_t b = 0; b < blocks_; ++b) {
      const float scale = scales_.data<float>()[at * blocks_ + b], zero = zero_of(expert, result, b);
      for (int64_t i = b * block_; i < std::min(operands_, (b + 1) * block_); ++i)
        scratch[static_cast<size_t>(i)] = (static_cast<float>(code(codes, i)) - zero) * scale;
    }
    return scratch.data();
  }

  float bias(int64_t expert, int64_t result) const {
    return bias_.defined() ? bias_.data<float>()[expert * results_ + result] : 0;
  }

private:
  static void require(int64_t found, int64_t wanted, const char* layer, const char* what) {
    if (found != wanted)
      fail(errc::invalid_input, "{} has {} {} instead of {}", layer, found, what, wanted);
  }

  static void require_bytes(const const_view& codes, const char* layer, const char* what) {
    if (codes.type != dtype::uint8)
      fail(errc::invalid_input, "{} has {} of {} instead of uint8", layer, what, to_string(codes.type));
  }

  int code(const uint8_t* packed, int64_t i) const {
    const int64_t in_byte = 8 / bits_;
    return packed[i / in_byte] >> (i % in_byte * bits_) & ((1 << bits_) - 1);
  }

  float zero_of(int64_t expert, int64_t result, int64_t block) const {
    if (zeros_.type == dtype::undefined)
      return static_cast<float>(1 << (bits_ - 1));
    const auto* all = zeros_.as<uint8_t>();
    return static_cast<float>(zero_bytes_ == 0 ? code(all + expert * ((results_ * bits_ + 7) / 8), result)
                                               : code(all + (expert * results_ + result) * zero_bytes_, block));
  }

  int64_t bits_; // 0: real numbers
  const_view weights_;
  int64_t experts_ = 0, results_ = 0, operands_ = 0, block_ = 0, blocks_ = 0, zero_bytes_ = 0;
  tensor real_, scales_, bias_;
  const_view zeros_;
};

/// y [rows, results] = x [rows, operands] · weightsᵀ + bias of one expert.
void apply(const expert_layer& layer, int64_t expert, const std::vector<float>& x, int64_t rows,
           std::vector<float>& y) {
  const int64_t k = layer.operands(), n = layer.results();
  y.resize(static_cast<size_t>(rows * n));
  parallel_for(n, std::max<int64_t>(1, 16 * 1024 / (k * rows + 1)), [&](int64_t begin, int64_t end) {
    std::vector<float> scratch;
    for (int64_t j = begin; j < end; ++j) {
      const float *weights = layer.row(expert, j, scratch), bias = layer.bias(expert, j);
      for (int64_t r = 0; r < rows; ++r) {
        float sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum += x[static_cast<size_t>(r * k + i)] * weights[i];
        y[static_cast<size_t>(r * n + j)] = sum + bias;
      }
    }
  });
}

// -- experts

float silu(float x, float alpha = 1) {
  return x / (1 + std::exp(-alpha * x));
}

float activated(float x, expert_activation how) {
  switch (how) {
    case expert_activation::relu: return std::max(x, 0.f);
    case expert_activation::gelu: return x * 0.5f * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
    case expert_activation::silu: return silu(x);
    default: return x;
  }
}

/// Returns the numbers between fc1 and fc2; `third` has fc3's results, or none.
std::vector<float> between(const mixture_rule& rule, const std::vector<float>& first, const std::vector<float>& third,
                           int64_t rows) {
  const int64_t results = std::ssize(first) / std::max<int64_t>(rows, 1), inner = results / rule.width();
  std::vector<float> made(static_cast<size_t>(rows * inner));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = static_cast<size_t>(r * inner + i);
      const int64_t g = r * results + (rule.fusion == 1 ? 2 * i : i), l = rule.fusion == 1 ? g + 1 : g + inner;
      if (!rule.gated()) {
        made[at] = activated(first[at], rule.activation) * (third.empty() ? 1 : third[at]);
        continue;
      }
      const float gate = std::min(first[static_cast<size_t>(rule.fusion == 0 ? r * inner + i : g)], rule.limit);
      const float linear = rule.fusion == 0 ? third[at] : first[static_cast<size_t>(l)];
      made[at] = silu(gate, rule.alpha) * (std::clamp(linear, -rule.limit, rule.limit) + rule.beta);
    }
  return made;
}

/// A token that an expert works on, and what its result counts.
struct routed {
  int64_t token;
  float weight;
};

/// What decides which experts are asked, and how much they count, [tokens, experts]; `weights` may be null.
struct routing {
  const float *probs, *weights;
};

/// Returns what each of the experts that are asked counts, before those that do not count are dropped.
std::vector<float> weights_of(const mixture_rule& rule, std::span<const float> scores, const float* weights,
                              std::span<const int64_t> asked) {
  std::vector<float> made;
  const float most = *std::max_element(scores.begin(), scores.end());
  for (const int64_t e : asked)
    made.push_back(weights ? weights[e] : std::exp(scores[static_cast<size_t>(e)] - most));
  float sum = 1;
  if (weights ? rule.normalise : rule.coded || rule.normalise)
    sum = std::accumulate(made.begin(), made.end(), 0.f);
  else if (!weights)
    sum = std::accumulate(scores.begin(), scores.end(), 0.f,
                          [&](float all, float x) { return all + std::exp(x - most); });
  for (float& x : made)
    x = sum == 0 ? 0 : x / sum;
  return made;
}

std::vector<std::vector<routed>> route(const mixture_rule& rule, const routing& router, int64_t tokens,
                                       int64_t experts) {
  std::vector<std::vector<routed>> work(static_cast<size_t>(experts));
  std::vector<int64_t> order(work.size());
  const float least = rule.coded ? 1e-8f : 0;
  for (int64_t t = 0; t < tokens; ++t) {
    const std::span scores(router.probs + t * experts, order.size());
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + rule.chosen, order.end(), [&](int64_t a, int64_t b) {
      const float x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
      return x > y || (x == y && a > b);
    });
    const auto asked = std::span<const int64_t>(order).first(static_cast<size_t>(rule.chosen));
    const auto weights = weights_of(rule, scores, router.weights ? router.weights + t * experts : nullptr, asked);
    for (size_t i = 0; i < asked.size(); ++i)
      if (weights[i] > least)
        work[static_cast<size_t>(asked[i])].push_back({t, weights[i]});
  }
  return work;
}

// -- operators

template <const std::array<layer_places, 3>& Layers>
constexpr bool is_coded = Layers[0].scales != none;

template <const std::array<layer_places, 3>& Layers>
void infer_mixture(infer_context& c) {
  parse_rule(c.attrs(), is_coded<Layers>);
  for (size_t layer = 0; layer < 2; ++layer)
    for (const size_t i : {Layers[layer].weights, Layers[layer].scales})
      if (i != none && !c.has_input(i))
        fail(errc::invalid_model, "input {}, weights or scales, is missing", i);
  if (c.rank(0) < 2 || c.rank(1) != 2)
    fail(errc::invalid_model, "tokens {} and router_probs {} are not [.., tokens, size] and [tokens, experts]",
         to_string(c.dims(0)), to_string(c.dims(1)));
  if (is_coded<Layers> && c.has_input(router_weights_input))
    require_same_dims(c.dims(router_weights_input), c.dims(1), "router_weights and router_probs");
  infer_same(c);
}

void check_layers(const mixture_rule& rule, const expert_layer& first, const expert_layer& second,
                  const expert_layer* third, int64_t hidden, int64_t experts) {
  const int64_t inner = first.results() / rule.width();
  const bool fit = first.experts() == experts && second.experts() == experts && first.operands() == hidden &&
                   second.results() == hidden && second.operands() == inner && first.results() % rule.width() == 0;
  if (!fit || (third && (third->experts() != experts || third->operands() != hidden || third->results() != inner)))
    fail(errc::invalid_input, "weights of {} x {} and {} x {} are not an expert for tokens of {}", first.results(),
         first.operands(), second.results(), second.operands(), hidden);
  if (rule.gated() && (rule.fusion == 0) == (third == nullptr))
    fail(errc::invalid_input, "swiglu takes its second number from fc3 if swiglu_fusion is 0, and only then");
  if (rule.chosen < 1 || rule.chosen > experts)
    fail(errc::invalid_input, "{} of {} experts cannot be asked", rule.chosen, experts);
}

template <const std::array<layer_places, 3>& Layers>
void mixture(kernel_context& c) {
  const mixture_rule rule = parse_rule(c.attrs(), is_coded<Layers>);
  const int64_t hidden = c.input(0).dims.back(), experts = c.input(1).dims[1], tokens = c.input(1).dims[0];
  if (c.input(0).size() != tokens * hidden)
    fail(errc::invalid_input, "{} rows of router_probs are not for tokens {}", tokens, to_string(c.input(0).dims));
  const expert_layer first(c, Layers[0], rule, "fc1"), second(c, Layers[1], rule, "fc2");
  std::optional<expert_layer> third;
  if (c.has_input(Layers[2].weights))
    third.emplace(c, Layers[2], rule, "fc3");
  check_layers(rule, first, second, third ? &*third : nullptr, hidden, experts);
  const read_as<float> x(c.input(0)), router(c.input(1)),
      weights(is_coded<Layers> ? optional_input(c, router_weights_input) : const_view{});
  if (weights && !std::ranges::equal(c.input(router_weights_input).dims, c.input(1).dims))
    fail(errc::invalid_input, "router_weights {} and router_probs {} differ in dims",
         to_string(c.input(router_weights_input).dims), to_string(c.input(1).dims));
  write_as<float> y(c.output(0));
  std::fill_n(y.data(), c.output(0).size(), 0.f);
  const auto work = route(rule, {router.data(), weights ? weights.data() : nullptr}, tokens, experts);
  for (int64_t e = 0; e < experts; ++e) {
    const auto& mine = work[static_cast<size_t>(e)];
    const auto rows = std::ssize(mine);
    if (rows == 0)
      continue;
    std::vector<float> taken, one, three, made;
    for (const routed& r : mine)
      taken.insert(taken.end(), x.data() + r.token * hidden, x.data() + (r.token + 1) * hidden);
    apply(first, e, taken, rows, one);
    if (third)
      apply(*third, e, taken, rows, three);
    apply(second, e, between(rule, one, three, rows), rows, made);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < hidden; ++i)
        y[mine[static_cast<size_t>(r)].token * hidden + i] +=
            mine[static_cast<size_t>(r)].weight * made[static_cast<size_t>(r * hidden + i)];
  }
  y.commit();
}

/// Tokens [n, width], and what the router says of each: its choice, and QMoE's weights beside it.
void mixture_axes(call_axes& a) {
  if (a.call().rank(0) != 2)
    a.refuse("lists the tokens of all batches for the router");
  a.batches({1, router_weights_input});
}

constexpr auto mixture_rows = std::to_array<op_def>({
    op_row("MoE", 1, infer_mixture<real_layers>, mixture<real_layers>,
           {.domain = microsoft, .inputs = {3, 8}, .types = types::floats, .axes = mixture_axes}),
    op_row("QMoE", 1, infer_mixture<code_layers>, mixture<code_layers>,
           {.domain = microsoft, .inputs = {3, 15}, .types = types::floats, .axes = mixture_axes}),
});

} // namespace

extern constinit const op_table contrib_mixture_ops = mixture_rows;

} // namespace troupe
