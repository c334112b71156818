#include "run/specialisations.hpp"

#include "base/find_from.hpp"
#include "graph/element_symbols.hpp"
#include "ops/graph_hash.hpp"
#include "ops/onnx/nonempty_dims.hpp"
#include "rewrite/rewrite.hpp"
#include "rewrite/settled_by_dims.hpp"
#include "run/container_inputs.hpp"
#include "tensor/copy.hpp"

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

bool has_empty_dim(const std::vector<given_inputs::facts>& given) {
  return std::ranges::any_of(given, [](const given_inputs::facts& input) {
    return input.dims && std::ranges::find(*input.dims, 0) != input.dims->end();
  });
}

/// Rewrites a model. What is wrong with it for certain dims may be right for others.
specialisation specialise_model(const model& m, const rewrite_options& options, bool of_numbers) {
  try {
    const nonempty_dims taken;
    auto program = std::make_shared<const graph>(rewrite(m.source, options));
    const hash128 hash = hash_of(*program);
    return {.program = std::move(program), .hash = hash, .of_numbers = of_numbers, .nonnegative = taken.noted()};
  } catch (const error& e) {
    fail(of_numbers && e.code() == errc::invalid_model ? errc::invalid_input : e.code(), "{}", e.what());
  }
}

} // namespace

specialisations::specialisations(model_ptr m)
    : model_(std::move(m)), shared_(model_->inputs, model_->options.dims), kept_(most) {
  for (size_t i = 0; i < model_->inputs.size(); ++i) {
    if (!model_->inputs[i].dims)
      of_any_rank_.push_back(i);
    if (has_open_elements(model_->source.values[model_->source.inputs[i]]))
      open_elements_.push_back(i);
    has_symbols_ = has_symbols_ || !model_->inputs[i].dims || !is_constant(*model_->inputs[i].dims);
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

std::optional<specialisations::input_dims> specialisations::numbers_of(const input_facts& given) const {
  if (!has_symbols_)
    return std::nullopt;
  input_dims numbers;
  for (size_t i = 0; i < model_->inputs.size(); ++i) {
    const value_info& input = model_->inputs[i];
    symbolic_shape& dims = numbers[input.name];
    if (const shape* its = dims_in(given)(i)) {
      dims = to_symbolic(*its);
      continue;
    }
    if (!input.dims)
      return std::nullopt;
    for (const dim& d : *input.dims) {
      std::vector<std::string> names;
      d.collect_symbols(names);
      if (!std::ranges::all_of(names, [&](const std::string& n) { return model_->options.dims.contains(n); }))
        return std::nullopt;
      dims.emplace_back(d.evaluate(model_->options.dims));
    }
  }
  return numbers;
}

hash128 specialisations::key_of(const hash128& others, const input_dims& numbers) {
  hasher h;
  h.add(others);
  for (const auto& [name, dims] : numbers) {
    h.add(dims.size());
    for (const dim& d : dims)
      h.add(d.constant());
  }
  return h.digest();
}

specialisation* specialisations::find(const given_inputs& inputs, const input_facts& given) {
  const hash128 key = key_of(inputs, given);
  if (wants_numbers() || has_empty_dim(given))
    if (const auto numbers = numbers_of(given)) {
      specialisation* found = kept_.find(key_of(key, *numbers));
      if (found || takes_numbers(key, given))
        return found;
    }
  return kept_.find(key);
}

bool specialisations::takes_numbers(const hash128& key, const input_facts& given) {
  if (wants_numbers() && can_make_of_numbers())
    return true;
  const specialisation* s = has_empty_dim(given) ? kept_.find(key) : nullptr;
  if (!s || s->nonnegative.empty())
    return false;
  const bindings values = symbols(*s, given);
  return std::ranges::any_of(s->nonnegative, [&](const dim& x) {
    std::vector<std::string> names; // a body may have symbols of its own
    x.collect_symbols(names);
    return std::ranges::all_of(names, [&](const std::string& name) { return values.contains(name); }) &&
           x.evaluate(values) < 0;
  });
}

rewrite_options specialisations::options_for(const given_inputs& inputs, const input_facts& given, bool on_cpus) const {
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
  // The program outlasts the run, and the caller's memory may not.
  for (const auto& [name, value] : given_defaults(*model_, inputs))
    options.constant_inputs.emplace(name, copy_of(value));
  options.input_elements = open_elements(inputs);
  for (const std::string& name : model_->host_inputs)
    options.constant_inputs[name] = copy_of(inputs.on_host(*model_, position_of(name)));
  return options;
}

plan_job specialisations::job(const given_inputs& inputs, const input_facts& given, bool on_cpus, double& spent) {
  const rewrite_options of_symbols = options_for(inputs, given, on_cpus);
  const std::optional<input_dims> numbers = numbers_of(given);
  const hash128 key = key_of(inputs, given);
  const bool numbers_first = numbers && takes_numbers(key, given);
  const hash128 key_of_numbers = numbers ? key_of(key, *numbers) : key;
  std::optional<rewrite_options> of_numbers;
  if (numbers) {
    // In a program of numbers, dims that contradict the model's would not be noticed any more.
    check_symbols(of_symbols.input_dims, given);
    of_numbers.emplace(of_symbols).input_dims = *numbers;
  }
  return make_job(
      plan_level::program, spent,
      [model = model_, of_symbols, of_numbers, numbers_first] {
        if (!numbers_first)
          try {
            return specialise_model(*model, of_symbols, false);
          } catch (const error& e) {
            // Numbers are for what symbols cannot express; any other error is the model's own.
            if (e.code() != errc::unsupported || !of_numbers)
              throw;
          }
        specialisation made = specialise_model(*model, *of_numbers, true);
        made.has_symbolic_form = numbers_first;
        return made;
      },
      [this, key, key_of_numbers](specialisation made) {
        const hash128& its = made.of_numbers ? key_of_numbers : key;
        keep(its, std::move(made));
      });
}

void specialisations::check_symbols(const input_dims& declared, const input_facts& given) const {
  graph ends;
  std::vector<const shape*> shapes;
  for (size_t i = 0; i < given.size(); ++i) {
    const value_info& input = model_->inputs[i];
    if (!given[i].dims)
      continue;
    const auto instead = declared.find(input.name);
    const auto dims = instead != declared.end() ? std::optional(instead->second) : input.dims;
    ends.inputs.push_back(ends.add_value({.name = input.name, .type = input.type, .dims = dims}));
    shapes.push_back(given[i].dims);
  }
  input_symbols(ends).bind(shapes, model_->options.dims);
}

void specialisations::keep(const given_inputs& inputs, specialisation made) {
  keep(key_of(inputs, {}), std::move(made));
}

void specialisations::keep(const hash128& key, specialisation made) {
  if (made.of_numbers) {
    needs_numbers_ = needs_numbers_ || !made.has_symbolic_form;
    ++made_of_numbers_;
  } else if (has_symbols_) {
    wants_numbers_ = wants_numbers_ || has_calls_settled_by_dims(*made.program);
  }
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
