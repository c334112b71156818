// Shared by mutations: chance, numbers and names to try, and the graphs of a model.
#pragma once

#include "fuzz/model_mutator.hpp"

#include <string>
#include <vector>

namespace troupe::test {

/// One model being changed.
class mutation {
public:
  mutation(onnx::ModelProto& m, mutation_random& random);

  /// A number below `count`, 0 if that is 0.
  size_t below(size_t count) { return count == 0 ? 0 : random_() % count; }
  bool once_in(size_t count) { return below(count) == 0; }
  /// An element of a repeated field, or null if it has none.
  template <class Field>
  auto* any_of(Field* field) {
    return field->empty() ? nullptr : field->Mutable(static_cast<int>(below(static_cast<size_t>(field->size()))));
  }
  template <class T>
  const T& any_of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

  /// An integer that is small, at a limit of some type, or anything.
  int64_t integer();
  /// A dim's size: small, rarely huge or negative.
  int64_t extent();
  float real();
  /// An element type: mostly a common one.
  int type();
  /// The name of a value of `g` or, rarely, of another graph; "" if there is none.
  std::string value_name(const onnx::GraphProto& g);
  std::string fresh_name();
  /// The name of an operator that troupe knows.
  std::string op();
  /// A location of external data: one that is there, written in several ways, or one that must be refused.
  std::string location();

  onnx::ModelProto& model() { return model_; }
  /// Any graph: the model's, or a body.
  onnx::GraphProto& graph() { return *any_of(graphs_); }
  /// Any node of the graph, null if it has none.
  onnx::NodeProto* node(onnx::GraphProto& g) { return any_of(g.mutable_node()); }

private:
  void collect(onnx::GraphProto& g, int depth);

  onnx::ModelProto& model_;
  mutation_random& random_;
  std::vector<onnx::GraphProto*> graphs_;
};

/// Mutations, each of one kind; they do nothing if the model has nothing of that kind.
namespace mutations {
// mutate_nodes.cpp
void change_op(mutation& m);
void rewire(mutation& m);
void insert_node(mutation& m);
void remove_node(mutation& m);
void repeat_node(mutation& m);
void change_arity(mutation& m);
void add_output(mutation& m);
void wrap_in_body(mutation& m);
void wrap_in_function(mutation& m);
void change_opset(mutation& m);
// mutate_values.cpp
void change_attribute(mutation& m);
void copy_attribute(mutation& m);
void remove_attribute(mutation& m);
void change_dim(mutation& m);
void change_type(mutation& m);
void change_elements(mutation& m);
void reshape_initializer(mutation& m);
void give_constant(mutation& m);
void move_outside(mutation& m);
void compute_constant(mutation& m);
void change_variant(mutation& m);
} // namespace mutations

/// Gives `t` dims of a few elements, and as many elements.
void fill_tensor(mutation& m, onnx::TensorProto& t, int type, const std::vector<int64_t>& dims);

} // namespace troupe::test
