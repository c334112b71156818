// A language model of one transformer block, built layer by layer; its weights are random, the same each time.
#pragma once

#include <troupe/model_builder.hpp>

#include <random>

namespace troupe::examples {

/// Makes weights: normally distributed, small enough for activations to stay near 1.
class weight_maker {
public:
  tensor operator()(shape dims) {
    tensor t(dtype::float32, std::move(dims));
    std::normal_distribution<float> normal(0, 0.1f);
    for (int64_t i = 0; i < t.size(); ++i)
      t.mutable_data<float>()[i] = normal(random_);
    return t;
  }

private:
  std::mt19937 random_{1};
};

/// tokens [batch, seq] (int64, each below `words`) → probabilities [batch, seq, words] of the next token.
inline built_model tiny_transformer(int64_t words, int64_t size, int64_t heads) {
  model_builder m("tiny_transformer");
  weight_maker weights;
  const variable tokens = m.input("tokens", dtype::int64, {dim::symbol("batch"), dim::symbol("seq")});
  const variable table = m.constant(weights({words, size}), "words");
  variable x = m.embedding(tokens, table);

  const variable normed = m.layer_norm(x, weights({size}), weights({size}));
  const variable attended =
      m.attention(m.linear(normed, weights({size, size})), m.linear(normed, weights({size, size})),
                  m.linear(normed, weights({size, size})), heads, true);
  x = x + m.linear(attended, weights({size, size}), weights({size}));

  const variable hidden =
      m.gelu(m.linear(m.rms_norm(x, weights({size})), weights({size, 4 * size}), weights({4 * size})));
  x = x + m.linear(hidden, weights({4 * size, size}), weights({size}));

  m.output("probabilities", m.softmax(m.matmul(x, m.transpose(table, {1, 0}))));
  return m.build();
}

} // namespace troupe::examples
