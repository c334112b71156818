#include "strategy/model_rows.hpp"

#include "base/error.hpp"

namespace troupe {
namespace {

/// Small shared inputs (a threshold, a scale) are compared by their bytes, large ones by where they are.
constexpr int64_t compared_bytes = 4096;

std::map<std::string, std::optional<size_t>> named(const graph& program, std::span<const value_id> values,
                                                   std::span<const std::optional<size_t>> where) {
  std::map<std::string, std::optional<size_t>> all;
  for (size_t i = 0; i < values.size(); ++i)
    all.emplace(program.values[values[i]].name, where[i]);
  return all;
}

std::vector<value_info> infos_of(const graph& program) {
  std::vector<value_info> infos;
  for (value_id v : program.inputs)
    infos.push_back({program.values[v].name, program.values[v].type, program.values[v].dims});
  return infos;
}

template <class T>
void add(std::string& key, T number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void add_shared(std::string& key, const tensor& t) {
  if (!holds_objects(t.type()) && t.bytes() <= compared_bytes)
    key.append(static_cast<const char*>(t.data()), static_cast<size_t>(t.bytes()));
  else
    add(key, reinterpret_cast<uintptr_t>(t.data()));
}

/// Inputs come in the order of the model's, so their names need not be said.
void add_facts(std::string& key, const tensor& t, std::optional<size_t> rows) {
  add(key, t.type());
  add(key, t.dims().size());
  for (size_t axis = 0; axis < t.dims().size(); ++axis)
    add(key, axis == rows ? int64_t{-1} : t.dims()[axis]);
}

} // namespace

model_rows::model_rows(const graph& program, const batch_rows& where)
    : symbol_(where.symbol), inputs_(named(program, program.inputs, where.inputs)),
      outputs_(named(program, program.outputs, where.outputs)), shared_(infos_of(program), {}) {}

request_rows model_rows::measure(const named_tensors& inputs) const {
  const request_rows whole;
  if (symbol_.empty() || inputs.size() != inputs_.size())
    return whole;
  std::optional<int64_t> rows;
  std::string key;
  for (const auto& [name, axis] : inputs_) {
    const auto given = inputs.find(name);
    if (given == inputs.end() || given->second.type() == dtype::undefined)
      return whole;
    const tensor& t = given->second;
    add_facts(key, t, axis);
    if (!axis) {
      add_shared(key, t);
      continue;
    }
    if (*axis >= t.dims().size() || (rows && *rows != t.dims()[*axis]))
      return whole;
    rows = t.dims()[*axis];
  }
  if (!rows || *rows < 1 || shared_.contradict(inputs))
    return whole;
  return {.rows = *rows, .key = std::move(key), .divisible = true};
}

named_tensors model_rows::join_inputs(std::span<const rows_in> parts, const tensor_maker& make) const {
  return join(parts, inputs_, make);
}

named_tensors model_rows::join(std::span<const rows_in> parts, const axes& where, const tensor_maker& make) {
  named_tensors all;
  std::vector<tensor> cut;
  for (const auto& [name, axis] : where) {
    cut.clear();
    for (const rows_in& part : parts) {
      const auto found = part.tensors->find(name);
      if (found == part.tensors->end())
        fail(errc::internal, "rows of '{}' are missing", name);
      cut.push_back(axis ? rows_of(found->second, *axis, part.first, part.rows) : found->second);
      if (!axis)
        break;
    }
    all.emplace(name, axis ? join_rows(cut, *axis, make) : cut.front());
  }
  return all;
}

void model_rows::place_outputs(named_tensors& all, int64_t rows, int64_t at, const rows_in& part,
                               const tensor_maker& make) const {
  const bool is_first = all.empty();
  for (const auto& [name, axis] : outputs_) {
    const auto found = part.tensors->find(name);
    if (found == part.tensors->end())
      fail(errc::internal, "rows of '{}' are missing", name);
    if (is_first && axis) {
      shape dims = found->second.dims();
      dims.at(*axis) = rows;
      all.emplace(name, make(found->second.type(), std::move(dims)));
    } else if (is_first) {
      all.emplace(name, found->second);
    }
    if (axis)
      put_rows(all.at(name), *axis, at, found->second, part.first, part.rows);
  }
}

} // namespace troupe
