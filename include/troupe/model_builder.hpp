// Models built in code, layer by layer, instead of read from a file.
//
//   model_builder m("classifier");
//   auto x = m.input("image", dtype::float32, {dim::symbol("batch"), 3, 32, 32});
//   auto y = m.relu(m.conv(x, weights, bias, {.pads = {1, 1, 1, 1}}));
//   m.output("scores", m.softmax(m.linear(m.flatten(y), w, b)));
//   auto session = engine.load(m.build());
//
// Every call infers types and shapes at once: a call that does not fit throws there, naming the call, and leaves the
// model as it was. `call` takes any operator of the table (`troupe operators`); the named layers are the common ones.
// `build` checks the whole and returns what the loader would return for the same model as a file.
//
// A `variable` is a handle that belongs to its builder; it is valid as long as that lives and stays where it is. Not
// thread-safe.
#pragma once

#include "troupe/attribute.hpp"
#include "troupe/built_model.hpp"
#include "troupe/dim.hpp"

namespace troupe {

class model_builder;
class variable;
struct value;

/// An operand of a layer: a variable, or a tensor, which becomes a constant of the model.
using argument = std::variant<variable, tensor>;

/// A value of a model under construction. Default-made: an absent optional input.
class TROUPE_API variable {
public:
  variable() = default;

  const std::string& name() const;
  dtype type() const;
  const symbolic_shape& dims() const;
  /// Returns whether it refers to a value.
  explicit operator bool() const { return owner_ != nullptr; }

private:
  friend class model_builder;
  friend TROUPE_API variable operator+(const variable& a, const argument& b);
  friend TROUPE_API variable operator-(const variable& a, const argument& b);
  friend TROUPE_API variable operator*(const variable& a, const argument& b);
  friend TROUPE_API variable operator/(const variable& a, const argument& b);
  variable(model_builder& owner, int32_t id) : owner_(&owner), id_(id) {}
  const value& info() const;
  model_builder& owner() const;

  model_builder* owner_ = nullptr;
  int32_t id_ = -1; // of the value in the graph
};

/// What a convolution or pooling may say; empty lists are the operator's defaults. `pads` are all begins, then all
/// ends.
struct window_options {
  std::vector<int64_t> strides = {}, pads = {}, dilations = {};
  int64_t group = 1; // convolutions only
};

/// How a call is made, beyond operator, inputs and attributes.
struct call_options {
  std::string domain = {}; // "" is ai.onnx
  std::string name = {};   // of the node; made up if empty
  size_t outputs = 1;
};

/// Builds a model (see the top of this file). All members throw `errc::invalid_argument` for handles of another builder
/// and for names that are taken, `errc::invalid_model` and `errc::unsupported` if an operator does not take what it is
/// given.
class TROUPE_API model_builder {
public:
  /// `opset` is ai.onnx's version; 0 is the newest that troupe knows.
  explicit model_builder(std::string name = "model", int64_t opset = 0);
  ~model_builder();
  model_builder(const model_builder&) = delete;
  model_builder& operator=(const model_builder&) = delete;

  /// Declares a model input; its dims may be symbolic.
  variable input(const std::string& name, dtype type, symbolic_shape dims);
  /// Adds a constant; its name is made up if empty.
  variable constant(tensor bytes, const std::string& name = "");
  /// Declares a model output called `name` (the variable's own name if empty). A variable may be several outputs.
  void output(const std::string& name, const variable& v);

  /// Calls an operator that has one output.
  variable call(const std::string& op_type, const std::vector<argument>& inputs,
                const std::map<std::string, attribute>& attributes = {}, const call_options& options = {});
  /// Calls an operator; returns `options.outputs` variables.
  std::vector<variable> call_all(const std::string& op_type, const std::vector<argument>& inputs,
                                 const std::map<std::string, attribute>& attributes, const call_options& options);

  // -- elementwise, with broadcasting
  variable add(const argument& a, const argument& b) { return call("Add", {a, b}); }
  variable sub(const argument& a, const argument& b) { return call("Sub", {a, b}); }
  variable mul(const argument& a, const argument& b) { return call("Mul", {a, b}); }
  variable div(const argument& a, const argument& b) { return call("Div", {a, b}); }
  variable relu(const argument& x) { return call("Relu", {x}); }
  variable sigmoid(const argument& x) { return call("Sigmoid", {x}); }
  variable tanh(const argument& x) { return call("Tanh", {x}); }
  variable gelu(const argument& x) { return call("Gelu", {x}); }
  variable cast(const argument& x, dtype to) { return call("Cast", {x}, {{"to", static_cast<int64_t>(to)}}); }

  // -- products
  variable matmul(const argument& a, const argument& b) { return call("MatMul", {a, b}); }
  /// x · weight + bias; `weight` is [inputs, outputs], `bias` [outputs] or absent.
  variable linear(const argument& x, const argument& weight, const argument& bias = variable());
  /// `weight` is [outputs, inputs / group, window…], `bias` [outputs] or absent.
  variable conv(const argument& x, const argument& weight, const argument& bias = variable(),
                const window_options& options = {});
  /// Softmax(query · keyᵀ / √size) · value by heads; all three are [batch, sequence, heads · size]. `causal`: a query
  /// sees no later key.
  variable attention(const argument& query, const argument& key, const argument& value, int64_t heads, bool causal);

  // -- windows, normalisation, reduction
  variable max_pool(const argument& x, std::vector<int64_t> window, const window_options& options = {});
  variable average_pool(const argument& x, std::vector<int64_t> window, const window_options& options = {});
  variable global_average_pool(const argument& x) { return call("GlobalAveragePool", {x}); }
  variable softmax(const argument& x, int64_t axis = -1) { return call("Softmax", {x}, {{"axis", axis}}); }
  /// Over the last axis; `scale` and `bias` (or absent) have its size.
  variable layer_norm(const argument& x, const argument& scale, const argument& bias = variable(),
                      float epsilon = 1e-5f);
  variable rms_norm(const argument& x, const argument& scale, float epsilon = 1e-5f);
  variable batch_norm(const argument& x, const argument& scale, const argument& bias, const argument& mean,
                      const argument& variance, float epsilon = 1e-5f);
  variable mean(const argument& x, std::vector<int64_t> axes, bool keep_dims = true);

  // -- movement
  /// Rows of `table` by the integers in `ids`.
  variable embedding(const argument& ids, const argument& table) { return call("Gather", {table, ids}); }
  /// The dims may be symbolic; their product must be x's.
  variable reshape(const argument& x, const symbolic_shape& dims);
  variable flatten(const argument& x, int64_t axis = 1) { return call("Flatten", {x}, {{"axis", axis}}); }
  variable transpose(const argument& x, std::vector<int64_t> order);
  variable concat(const std::vector<argument>& parts, int64_t axis) { return call("Concat", parts, {{"axis", axis}}); }

  /// Returns the model. Throws `errc::invalid_model` if it has no output, or an input or a call that no output depends
  /// on.
  built_model build() const;

private:
  friend class variable;

  variable pool(const char* op_type, const argument& x, std::vector<int64_t> window, const window_options& options);

  struct state;
  std::unique_ptr<state> state_;
};

} // namespace troupe
