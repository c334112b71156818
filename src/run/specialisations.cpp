#include "run/specialisations.hpp"

#include "base/find_from.hpp"
#include "graph/element_symbols.hpp"
#include "ops/graph_hash.hpp"
#include "rewrite/rewrite.hpp"
#include "run/container_inputs.hpp"

namespace troupe {
namespace {

/// Hashes type, dims and elements of a host input: two runs share a specialisation only if all are equal.
void add_content(hasher& h, const tensor& t) {
  h.add(t.type());
  h.add(std::span<const int64_t>(t.dims()));
  if (t.type() == dtype::string)
    for (const std::string& text : t.values<std::string>())
      h.add(text);
  else
    h.add_bytes(t.data(), static_cast<size_t>(t.bytes()));
}

/// Fresh symbols for an input whose rank the file does not state.
symbolic_shape open_dims(const std::string& input, size_t rank) {
  symbolic_shape dims;
  for (size_t axis = 0; axis < rank; ++axis)
    dims.push_back(stated_symbol(fmt::format("{}.{}", input, axis)));
  return dims;
}

} // namespace

specialisations::specialisations(model_ptr m)
    : model_(std::move(m)), shared_(model_->inputs, model_->options.dims), kept_(most) {
  for (size_t i = 0; i < model_->inputs.size(); ++i) {
    if (!model_->inputs[i].dims)
      of_any_rank_.push_back(i);
    if (has_open_elements(model_->source.values[model_->source.inputs[i]]))
      open_elements_.push_back(i);
  }
}

size_t specialisations::position_of(const std::string& input) const {
  return find_from(model_->inputs, 0, [&](const value_info& i) { return i.name == input; });
}

std::map<std::string, element_shapes> specialisations::open_elements(const given_inputs& inputs) const {
  std::map<std::string, element_shapes> found;
  for (const size_t i : open_elements_)
    found.emplace(model_->inputs[i].name, ranks_in(inputs.on_host(*model_, i)));
  return found;
}

shared_dims::dims_of specialisations::dims_in(const input_facts& given) {
  return [&given](size_t i) { return i < given.size() ? given[i].dims : nullptr; };
}

hash128 specialisations::key_of(const given_inputs& inputs, const input_facts& given) const {
  hasher h;
  const std::vector<std::string> contradicted = shared_.contradicted(dims_in(given));
  h.add(contradicted.size());
  for (const std::string& name : contradicted)
    h.add(name);
  for (const auto& [name, value] : given_defaults(*model_, inputs)) {
    h.add(name);
    add_content(h, value);
  }
  for (const size_t i : of_any_rank_)
    h.add(inputs.find(*model_, i)->dims->size());
  for (const auto& [name, ranks] : open_elements(inputs)) {
    h.add(ranks.empty);
    h.add(ranks.dims ? static_cast<int64_t>(ranks.dims->size()) : -1);
  }
  for (const std::string& name : model_->host_inputs)
    add_content(h, inputs.on_host(*model_, position_of(name)));
  return h.digest();
}

plan_job specialisations::job(const given_inputs& inputs, const input_facts& given, bool on_cpus, double& spent) {
  const session_options& how = model_->options;
  rewrite_options options{.fuse = how.fuse, .precision = how.precision, .outputs = how.outputs, .for_gpus = !on_cpus};
  for (const size_t i : of_any_rank_) {
    const std::string& input = model_->inputs[i].name;
    options.input_dims[input] = open_dims(input, inputs.find(*model_, i)->dims->size());
  }
  if (const std::vector<std::string> names = shared_.contradicted(dims_in(given)); !names.empty())
    for (size_t i = 0; i < model_->inputs.size(); ++i)
      if (model_->inputs[i].dims)
        options.input_dims[model_->inputs[i].name] = shared_.split(i, names);
  options.constant_inputs = given_defaults(*model_, inputs);
  options.input_elements = open_elements(inputs);
  for (const std::string& name : model_->host_inputs)
    options.constant_inputs[name] = inputs.on_host(*model_, position_of(name));
  return make_job(
      plan_level::program, spent,
      [model = model_, options = std::move(options)] {
        auto program = std::make_shared<const graph>(rewrite(model->source, options));
        const hash128 hash = hash_of(*program);
        return specialisation{.program = std::move(program), .hash = hash};
      },
      [this, key = key_of(inputs, given)](specialisation made) { keep(key, std::move(made)); });
}

void specialisations::keep(const given_inputs& inputs, specialisation made) {
  keep(key_of(inputs, {}), std::move(made));
}

void specialisations::keep(const hash128& key, specialisation made) {
  for (value_id v : made.program->inputs)
    made.inputs.push_back(find_from(model_->inputs, made.inputs.empty() ? 0 : made.inputs.back() + 1,
                                    [&](const value_info& i) { return i.name == made.program->values[v].name; }));
  made.program_input.assign(model_->inputs.size(), SIZE_MAX);
  for (size_t i = 0; i < made.inputs.size(); ++i)
    made.program_input[made.inputs[i]] = i;
  kept_.insert(key, std::move(made));
}

bindings specialisations::symbols(const specialisation& s, const input_facts& given) const {
  std::vector<const shape*> shapes;
  shapes.reserve(s.inputs.size());
  for (size_t i : s.inputs)
    shapes.push_back(given.at(i).dims);
  return s.symbols.bind(shapes, model_->options.dims);
}

} // namespace troupe
