#include "run/control_flow.hpp"

#include "ops/op.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

/// Returns the one element of a tensor of integers or booleans.
int64_t single_element(const tensor& t, std::string_view what) {
  if (t.size() != 1)
    fail(errc::invalid_input, "the {} has shape {}; it must be one element", what, to_string(t.dims()));
  return to_int64(t.view()).front();
}

/// A tensor as rows: `outer` of them, each of `count` elements along an axis, each element `inner` bytes (strings:
/// objects).
struct rows {
  int64_t outer = 1, count = 1, inner = 1;
};

rows rows_of(const shape& dims, size_t axis, dtype type) {
  rows r;
  for (size_t d = 0; d < dims.size(); ++d)
    (d < axis ? r.outer : d == axis ? r.count : r.inner) *= dims[d];
  // Rows are copied as whole bytes, but elements of 4 bits share them.
  if (type != dtype::string && bits_of(type) < 8)
    fail(errc::unsupported, "elements of type {} cannot be scanned", to_string(type));
  r.inner = type == dtype::string ? r.inner : bytes_of(type, r.inner);
  return r;
}

/// Copies a piece of `count` bytes, or strings.
void copy_piece(tensor& to, int64_t at, const tensor& from, int64_t from_at, int64_t count) {
  if (to.type() == dtype::string)
    std::copy_n(from.data<std::string>() + from_at, count, to.mutable_data<std::string>() + at);
  else if (count > 0)
    std::memcpy(to.mutable_data<char>() + at, from.data<char>() + from_at, static_cast<size_t>(count));
}

} // namespace

tensor slice_element(const tensor& whole, size_t axis, int64_t index) {
  const rows r = rows_of(whole.dims(), axis, whole.type());
  shape dims = whole.dims();
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  if (axis == 0) {
    const auto size = whole.type() == dtype::string ? static_cast<int64_t>(sizeof(std::string)) : 1;
    return {whole.type(), std::move(dims), std::make_shared<const tensor>(whole),
            whole.data<char>() + index * r.inner * size};
  }
  tensor element(whole.type(), std::move(dims));
  for (int64_t o = 0; o < r.outer; ++o)
    copy_piece(element, o * r.inner, whole, (o * r.count + index) * r.inner, r.inner);
  return element;
}

tensor stack_elements(std::span<const tensor> elements, size_t axis) {
  shape dims = elements.front().dims();
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), static_cast<int64_t>(elements.size()));
  tensor whole(elements.front().type(), dims);
  const rows r = rows_of(dims, axis, whole.type());
  for (int64_t i = 0; i < r.count; ++i)
    for (int64_t o = 0; o < r.outer; ++o)
      copy_piece(whole, (o * r.count + i) * r.inner, elements[static_cast<size_t>(i)], o * r.inner, r.inner);
  return whole;
}

control_flow::control_flow(const node& n, std::vector<tensor> inputs)
    : call_(parse_control(n)), inputs_(std::move(inputs)), scanned_(call_.scan_outputs.size()) {
  expects(inputs_.size() == n.inputs.size(), "control_flow: another number of inputs than the node has");
  if (call_.kind == control_kind::branch) {
    branch_ = single_element(inputs_[0], "condition") ? then_branch : else_branch;
    trips_ = 1;
    return;
  }
  if (call_.kind == control_kind::loop) {
    trips_ = inputs_[0].defined() ? single_element(inputs_[0], "trip count") : INT64_MAX;
    if (!inputs_[1].defined())
      inputs_[1] = tensor::scalar(true);
    condition_ = single_element(inputs_[1], "condition") != 0;
  }
  const auto first = inputs_.begin() + static_cast<ptrdiff_t>(call_.leading_inputs());
  carried_.assign(first, first + static_cast<ptrdiff_t>(call_.carried));
  if (call_.kind == control_kind::map)
    check_lengths(n.formal_inputs());
  for (size_t i = 0; i < call_.scan_inputs.size(); ++i) {
    const shape& dims = inputs_[call_.carried + i].dims();
    const int64_t length = dims.at(normalize_axis(call_.scan_inputs[i].axis, dims.size()));
    if (i > 0 && length != trips_)
      fail(errc::invalid_input, "scan input {} has {} elements, but the first has {}", i, length, trips_);
    trips_ = length;
  }
}

void control_flow::check_lengths(size_t formal) {
  trips_ = inputs_[0].size();
  for (size_t i = 1; i < formal; ++i)
    if (is_sequence(inputs_[i].type()) && inputs_[i].size() != trips_)
      fail(errc::invalid_input, "sequence {} has {} elements, but the first has {}", i, inputs_[i].size(), trips_);
}

control_flow::body_call control_flow::make_call(size_t body, std::vector<tensor> formal) const {
  const node_body& b = call_.bodies[body];
  const auto first = inputs_.begin() + static_cast<ptrdiff_t>(b.first_capture);
  formal.insert(formal.end(), first, first + static_cast<ptrdiff_t>(b.program->captured.size()));
  return {body, std::move(formal)};
}

tensor control_flow::scanned(size_t i) const {
  const tensor& whole = inputs_[call_.carried + i];
  const scan_walk& walk = call_.scan_inputs[i];
  return slice_element(whole, normalize_axis(walk.axis, whole.dims().size()),
                       walk.reverse ? trips_ - 1 - executed_ : executed_);
}

std::optional<control_flow::body_call> control_flow::next() {
  if (executed_ >= trips_ || !condition_)
    return std::nullopt;
  if (call_.kind == control_kind::branch) {
    if (const std::string& why = call_.refusals[branch_]; !why.empty())
      fail(errc::invalid_input, "{} cannot be executed: {}", call_.bodies[branch_].name, why);
    return make_call(branch_, {});
  }
  std::vector<tensor> formal;
  if (call_.kind == control_kind::loop)
    formal = {tensor::scalar(executed_).reshaped(iteration_dims(*call_.bodies[0].program)), inputs_[1]};
  formal.insert(formal.end(), carried_.begin(), carried_.end());
  for (size_t i = 0; i < call_.scan_inputs.size(); ++i)
    formal.push_back(scanned(i));
  if (call_.kind == control_kind::map)
    for (size_t i = 0; i < call_.bodies[0].formal_inputs(); ++i)
      formal.push_back(is_sequence(inputs_[i].type()) ? inputs_[i].data<tensor>()[executed_] : inputs_[i]);
  return make_call(0, std::move(formal));
}

void control_flow::take(std::vector<tensor> outputs) {
  if (call_.kind == control_kind::branch) {
    carried_ = std::move(outputs);
    ++executed_;
    return;
  }
  if (call_.kind == control_kind::loop) {
    condition_ = single_element(outputs.at(0), "condition") != 0;
    inputs_[1] = outputs[0].reshaped(inputs_[1].dims()); // as planned: a scalar, or one element
  }
  const auto first = outputs.begin() + static_cast<ptrdiff_t>(call_.leading_outputs());
  const auto scanned = first + static_cast<ptrdiff_t>(call_.carried);
  carried_.assign(first, scanned);
  const graph& body = *call_.bodies.front().program;
  for (size_t i = 0; i < carried_.size(); ++i)
    if (carried_[i].type() != body.values[body.inputs[call_.leading_inputs() + i]].type)
      carried_[i] = tensor::optional(carried_[i].type(), carried_[i]);
  for (size_t i = 0; i < scanned_.size(); ++i) {
    tensor& element = scanned[static_cast<ptrdiff_t>(i)];
    if (call_.kind != control_kind::map && executed_ > 0 && element.dims() != scanned_[i].front().dims())
      fail(errc::invalid_input, "scan output {} has shape {}, but {} in the iterations before", i,
           to_string(element.dims()), to_string(scanned_[i].front().dims()));
    scanned_[i].push_back(std::move(element));
  }
  ++executed_;
}

std::vector<tensor> control_flow::results(std::span<const shape> empty) const {
  std::vector<tensor> all = carried_;
  const graph& body = *call_.bodies.front().program;
  for (size_t i = 0; i < call_.carried; ++i) {
    if (all[i].type() == body.values[body.outputs[call_.leading_outputs() + i]].type)
      continue;
    if (all[i].size() == 0)
      fail(errc::invalid_input, "carried value {} is an empty optional, and no iteration has made what it holds", i);
    all[i] = tensor(all[i].data<tensor>()[0]);
  }
  for (size_t i = 0; i < scanned_.size(); ++i) {
    const value& element = body.values[body.outputs[call_.leading_outputs() + call_.carried + i]];
    if (call_.kind == control_kind::map) {
      all.push_back(tensor::sequence(element.type, scanned_[i]));
      continue;
    }
    if (scanned_[i].empty()) {
      all.emplace_back(element.type, empty[i]);
      continue;
    }
    std::vector<tensor> elements = scanned_[i];
    if (call_.scan_outputs[i].reverse)
      std::reverse(elements.begin(), elements.end());
    all.push_back(stack_elements(elements, normalize_axis(call_.scan_outputs[i].axis, elements[0].dims().size() + 1)));
  }
  return all;
}

std::string control_flow::position() const {
  return call_.kind == control_kind::branch ? call_.bodies[branch_].name : fmt::format("iteration {}", executed_);
}

} // namespace troupe
