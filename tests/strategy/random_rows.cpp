#include "strategy/random_rows.hpp"

#include "ops/registry.hpp"
#include "support/run_graph.hpp"

namespace troupe::test {

namespace {

int64_t number(size_t axis) {
  return static_cast<int64_t>(axis);
}

} // namespace

random_rows::random_rows(uint32_t seed, bool mixes) : engine_(seed) {
  const dim batch = dim::symbol("batch");
  items_.push_back({b.input("x", {batch, 4, 6}), 0});
  items_.push_back({b.input("z", {3, batch}), 1});
  const size_t calls = 4 + draw(10), at = draw(calls);
  for (size_t i = 0; i < calls; ++i) {
    if (mixes && i == at) {
      items_.push_back(mixed(recent()));
      b.output(items_.back().v);
    }
    items_.push_back(independent(recent()));
  }
  b.output(items_.back().v);
  b.output(call("Neg", {recent().v}));
}

size_t random_rows::other_axis(const item& x) {
  const size_t axis = draw(rank(x) - 1);
  return axis < x.rows ? axis : axis + 1;
}

int64_t random_rows::row_elements(const item& x) const {
  int64_t elements = 1;
  for (size_t i = 0; i < rank(x); ++i)
    elements *= i == x.rows ? 1 : size(x, i);
  return elements;
}

/// Returns one of the last items, of rank 2 or more and not too large.
random_rows::item random_rows::recent() {
  for (;;) {
    const item x = items_[items_.size() - 1 - draw(std::min<size_t>(items_.size(), 3))];
    if (rank(x) >= 2 && rank(x) <= 4 && row_elements(x) <= 96)
      return x;
    items_.push_back(items_[draw(2)]);
  }
}

value_id random_rows::floats(shape dims) {
  return b.constant("c" + std::to_string(b.g.values.size()), random_tensor(std::move(dims), 5));
}

value_id random_rows::call(const std::string& op, std::vector<value_id> inputs,
                           std::initializer_list<std::pair<std::string, attribute>> attrs) {
  return b.inferred(op, std::move(inputs), attrs_of(attrs));
}

value_id random_rows::call_first(const std::string& op, std::vector<value_id> inputs, size_t outputs,
                                 std::initializer_list<std::pair<std::string, attribute>> attrs) {
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i)
    names.push_back("o" + std::to_string(b.g.values.size() + i));
  const value_id first = b.call(op, std::move(inputs), names, attrs_of(attrs))[0];
  resolve_node(b.g.nodes.back(), b.g.opsets);
  infer_node(b.g, b.g.nodes.back());
  return first;
}

/// The same as [batch, elements].
random_rows::item random_rows::flat(const item& x) {
  std::vector<int64_t> order{number(x.rows)};
  for (size_t i = 0; i < rank(x); ++i)
    if (i != x.rows)
      order.push_back(number(i));
  return {call("Flatten", {call("Transpose", {x.v}, {{"perm", order}})}), 0};
}

random_rows::item random_rows::independent(const item& x) {
  switch (draw(10)) {
    case 0:
    case 1: return elementwise(x);
    case 2:
    case 3: return along_an_axis(x);
    case 4: return moved(x);
    case 5: return reshaped(x);
    case 6: return product(x);
    case 7: return by_sizes(x);
    case 8: return as_image(x);
    default: return selected(x);
  }
}

random_rows::item random_rows::elementwise(const item& x) {
  const item y = recent();
  switch (draw(6)) {
    case 0: return {call("Tanh", {x.v}), x.rows};
    case 1: return {call("Mul", {x.v, b.scalar(0.5f)}), x.rows};
    case 2: { // a vector along the last axis, or one element a row
      const value_id v = x.rows + 1 == rank(x) ? floats({1}) : floats({size(x, rank(x) - 1)});
      return {call("Add", {v, x.v}), x.rows};
    }
    case 3: { // a mean of another value, broadcast
      const item f = flat(y);
      const value_id mean = call("ReduceMean", {f.v}, {{"axes", std::vector<int64_t>{1}}});
      return {call("Sub", {flat(x).v, mean}), 0};
    }
    case 4: return {call("Where", {call("Greater", {x.v, b.scalar(0)}), x.v, call("Sigmoid", {x.v})}), x.rows};
    default: return {call("Clip", {x.v, b.scalar(-1), b.scalar(1)}), x.rows};
  }
}

random_rows::item random_rows::along_an_axis(const item& x) {
  const size_t axis = other_axis(x);
  const int64_t a = number(axis);
  const size_t less = axis < x.rows ? x.rows - 1 : x.rows;
  switch (draw(8)) {
    case 0: return {call("Softmax", {x.v}, {{"axis", a}}), x.rows};
    case 1: return {call("ReduceMax", {x.v}, {{"axes", std::vector<int64_t>{a}}}), x.rows};
    case 2: return {call("ReduceSum", {x.v, b.integers({a})}, {{"keepdims", int64_t{0}}}), less};
    case 3: return {call("CumSum", {x.v, b.integer(a)}, {{"reverse", int64_t{1}}}), x.rows};
    case 4: return {call("LpNormalization", {x.v}, {{"axis", a}}), x.rows};
    case 5: return {call_first("TopK", {x.v, b.integers({1})}, 2, {{"axis", a}}), x.rows};
    case 6: {
      const value_id best = call("ArgMax", {x.v}, {{"axis", a}, {"keepdims", int64_t{0}}});
      return {call("Cast", {best}, {{"to", int64_t{1}}}), less};
    }
    default: {
      if (x.rows + 1 == rank(x))
        return {call("LogSoftmax", {x.v}, {{"axis", a}}), x.rows};
      const int64_t last = size(x, rank(x) - 1);
      return {call("LayerNormalization", {x.v, floats({last}), floats({last})}), x.rows};
    }
  }
}

random_rows::item random_rows::moved(const item& x) {
  const size_t axis = other_axis(x);
  const int64_t a = number(axis), n = size(x, axis);
  switch (draw(6)) {
    case 0: {
      std::vector<int64_t> order(rank(x));
      for (size_t i = 0; i < order.size(); ++i)
        order[i] = number(i);
      std::shuffle(order.begin(), order.end(), engine_);
      const auto found = std::find(order.begin(), order.end(), number(x.rows));
      return {call("Transpose", {x.v}, {{"perm", order}}), static_cast<size_t>(found - order.begin())};
    }
    case 1: return {call("Concat", {x.v, call("Neg", {x.v})}, {{"axis", a}}), x.rows};
    case 2:
      return {call("Slice", {x.v, b.integers({n - 1}), b.integers({-n - 1}), b.integers({a}), b.integers({-1})}),
              x.rows};
    case 3: return {call_first("Split", {x.v, b.integers({1, n - 1})}, 2, {{"axis", a}}), x.rows};
    case 4: {
      std::vector<int64_t> pads(2 * rank(x)), repeats(rank(x), 1);
      pads[axis] = 1;
      repeats[axis] = 2;
      return draw(2) ? item{call("Pad", {x.v, b.integers(pads)}), x.rows}
                     : item{call("Tile", {x.v, b.integers(repeats)}), x.rows};
    }
    default: return {call("Gather", {x.v, b.integers({0, n - 1, 0})}, {{"axis", a}}), x.rows};
  }
}

random_rows::item random_rows::reshaped(const item& x) {
  switch (draw(4)) {
    case 0: // all axes after the rows become one
    {
      std::vector<int64_t> to;
      for (size_t i = 0; i < x.rows; ++i)
        to.push_back(size(x, i));
      int64_t behind = 1;
      for (size_t i = x.rows + 1; i < rank(x); ++i)
        behind *= size(x, i);
      to.insert(to.end(), {-1, behind});
      return {call("Reshape", {x.v, b.integers(to)}), x.rows};
    }
    case 1: {
      const int64_t at = number(draw(rank(x) + 1));
      return {call("Unsqueeze", {x.v, b.integers({at})}), x.rows + (static_cast<size_t>(at) <= x.rows ? 1 : 0)};
    }
    case 2: // all axes before the rows become one
    {
      std::vector<int64_t> to{1, -1};
      for (size_t i = 0; i < x.rows; ++i)
        to[0] *= size(x, i);
      for (size_t i = x.rows + 1; i < rank(x); ++i)
        to.push_back(size(x, i));
      return {call("Reshape", {x.v, b.integers(to)}), 1};
    }
    default: return flat(x);
  }
}

random_rows::item random_rows::product(const item& x) {
  const item f = flat(x);
  const int64_t k = size(f, 1);
  switch (draw(5)) {
    case 0:
      if (x.rows + 1 != rank(x))
        return {call("MatMul", {x.v, floats({size(x, rank(x) - 1), 5})}), x.rows};
      return {call("MatMul", {floats({5, size(x, rank(x) - 2)}), x.v}), x.rows};
    case 1: return {call("Gemm", {f.v, floats({4, k}), floats({4})}, {{"transB", int64_t{1}}}), 0};
    case 2: { // rows are the columns of A
      const value_id turned = call("Transpose", {f.v});
      return {call("Gemm", {turned, floats({k, 4}), floats({4})}, {{"transA", int64_t{1}}}), 0};
    }
    case 3: { // each row by itself: [batch, 1, k] · [batch, k, 1]
      const value_id row = call("Unsqueeze", {f.v, b.integers({1})}),
                     column = call("Unsqueeze", {f.v, b.integers({2})});
      return {call("MatMul", {row, column}), 0};
    }
    default: return {call("Einsum", {f.v, floats({k, 3})}, {{"equation", std::string("bk,kn->nb")}}), 1};
  }
}

random_rows::item random_rows::by_sizes(const item& x) {
  const item f = flat(x);
  const value_id shape = call("Shape", {f.v});
  switch (draw(3)) {
    case 0: {
      const tensor half = tensor::of<float>({1}, std::vector<float>{0.5f});
      return {call("Add", {f.v, call("ConstantOfShape", {shape}, {{"value", half}})}), 0};
    }
    case 1: return {call("Mul", {f.v, call("Expand", {floats({1, size(f, 1)}), shape})}), 0};
    default: {
      const value_id to =
          call("Concat", {call("Gather", {shape, b.integers({0})}), b.integers({1, -1})}, {{"axis", int64_t{0}}});
      return {call("Reshape", {f.v, to}), 0};
    }
  }
}

random_rows::item random_rows::as_image(const item& x) {
  const item f = flat(x);
  const int64_t n = size(f, 1);
  const value_id image = call("Unsqueeze", {f.v, b.integers({1})});
  switch (draw(5)) {
    case 0: return {call("Conv", {image, floats({2, 1, 1}), floats({2})}), 0};
    case 1: return {call("MaxPool", {image}, {{"kernel_shape", std::vector<int64_t>{1}}}), 0};
    case 2: return {call("GlobalAveragePool", {image}), 0};
    case 3:
      return {call("BatchNormalization", {f.v, floats({n}), floats({n}), floats({n}), call("Abs", {floats({n})})}), 0};
    default: { // an LSTM has its rows in the middle
      const value_id steps = call("Transpose", {image}, {{"perm", std::vector<int64_t>{2, 0, 1}}});
      return {call("LSTM", {steps, floats({1, 8, 1}), floats({1, 8, 2})}, {{"hidden_size", int64_t{2}}}), 2};
    }
  }
}

random_rows::item random_rows::selected(const item& x) {
  const item f = flat(x);
  const value_id best = call("ArgMax", {f.v}, {{"axis", int64_t{1}}});
  switch (draw(5)) {
    case 4: return picked(f, size(f, 1), size(f, 1));
    case 0: // rows look up a table
      return {call("Gather", {floats({size(f, 1), 3}), best}), 0};
    case 1: return {call("GatherElements", {f.v, best}, {{"axis", int64_t{1}}}), 0};
    case 2:
      return {call("ScatterElements", {f.v, best, call("Cast", {best}, {{"to", int64_t{1}}})}, {{"axis", int64_t{1}}}),
              0};
    default: {
      const value_id q = call("QuantizeLinear", {f.v, b.scalar(0.1f)});
      return {call("DequantizeLinear", {q, b.scalar(0.1f)}), 0};
    }
  }
}

random_rows::item random_rows::picked(const item& x, int64_t step, int64_t columns) {
  const value_id count = call("Gather", {call("Shape", {x.v}), b.integer(0)});
  const value_id rows = call("Range", {b.integer(0), count, b.integer(1)});
  const value_id start = call("Mul", {call("Unsqueeze", {rows, b.integers({1})}), b.integer(step)});
  const value_id index = call("Add", {start, call("Range", {b.integer(0), b.integer(columns), b.integer(1)})});
  return {call("Gather", {call("Reshape", {x.v, b.integers({-1})}), index}), 0};
}

/// A value of x's rank in which rows depend on others.
random_rows::item random_rows::mixed(const item& x) {
  return draw(2) ? mixed_by_position(x) : mixed_by_sum(x);
}

random_rows::item random_rows::mixed_by_position(const item& x) {
  const int64_t rows = number(x.rows);
  const item f = flat(x);
  switch (draw(7)) {
    case 6: // [batch, n + 1] by steps of n
      mixer_ = "rows picked by numbers of another step";
      return picked(
          {call("Concat", {f.v, call("ReduceMax", {f.v}, {{"axes", std::vector<int64_t>{1}}})}, {{"axis", int64_t{1}}}),
           0},
          size(f, 1), size(f, 1));
    case 0:
      mixer_ = "reversed rows";
      return {call("Slice", {x.v, b.integers({-1}), b.integers({INT64_MIN}), b.integers({rows}), b.integers({-1})}),
              x.rows};
    case 1:
      mixer_ = "the first row";
      return {call("Sub", {x.v, call("Gather", {x.v, b.integers({0})}, {{"axis", rows}})}), x.rows};
    case 2: {
      mixer_ = "rows and an axis exchanged by Reshape";
      const value_id wide = call("Concat", {f.v, f.v}, {{"axis", int64_t{1}}});
      return {call("Reshape", {wide, b.integers({2, -1, size(f, 1)})}), 1};
    }
    case 3: {
      mixer_ = "the number of rows";
      const value_id count = call("Gather", {call("Shape", {x.v}), b.integer(rows)});
      return {call("Mul", {x.v, call("Cast", {count}, {{"to", int64_t{1}}})}), x.rows};
    }
    case 4: {
      mixer_ = "the position of the row";
      const value_id count = call("Gather", {call("Shape", {f.v}), b.integer(0)});
      const value_id positions = call("Range", {b.integer(0), count, b.integer(1)});
      const value_id column = call("Unsqueeze", {call("Cast", {positions}, {{"to", int64_t{1}}}), b.integers({1})});
      return {call("Add", {f.v, column}), 0};
    }
    default: {
      mixer_ = "the next row";
      const auto part = [&](int64_t from, int64_t to) {
        return call("Slice", {x.v, b.integers({from}), b.integers({to}), b.integers({rows})});
      };
      return {call("Concat", {part(1, INT64_MAX), part(0, 1)}, {{"axis", rows}}), x.rows};
    }
  }
}

random_rows::item random_rows::mixed_by_sum(const item& x) {
  const int64_t rows = number(x.rows);
  const item f = flat(x);
  switch (draw(8)) {
    case 0: mixer_ = "Softmax over the rows"; return {call("Softmax", {x.v}, {{"axis", rows}}), x.rows};
    case 1:
      mixer_ = "the mean of the rows";
      return {call("Sub", {x.v, call("ReduceMean", {x.v}, {{"axes", std::vector<int64_t>{rows}}})}), x.rows};
    case 2: mixer_ = "CumSum over the rows"; return {call("CumSum", {x.v, b.integer(rows)}), x.rows};
    case 3: {
      mixer_ = "Gemm with transA";
      const value_id moments = call("Gemm", {f.v, f.v}, {{"transA", int64_t{1}}});
      return {call("MatMul", {f.v, moments}), 0};
    }
    case 4: {
      mixer_ = "all rows times all rows";
      const value_id all = call("MatMul", {f.v, call("Transpose", {f.v})});
      return {call("MatMul", {all, f.v}), 0};
    }
    case 5: {
      mixer_ = "DynamicQuantizeLinear";
      const value_id q = call_first("DynamicQuantizeLinear", {x.v}, 3);
      return {call("DequantizeLinear", {q, q + 1, q + 2}), x.rows};
    }
    case 6: mixer_ = "LpNormalization over the rows"; return {call("LpNormalization", {x.v}, {{"axis", rows}}), x.rows};
    default: {
      mixer_ = "Softmax before opset 13 in disguise: all axes from the rows on";
      const value_id one = call("Reshape", {x.v, b.integers({-1})});
      return {call("Reshape", {call("Softmax", {one}), call("Shape", {x.v})}), x.rows};
    }
  }
}

} // namespace troupe::test
