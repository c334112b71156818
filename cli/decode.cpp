#include "cli/decode.hpp"

#include "base/elapsed.hpp"
#include "base/printable.hpp"
#include "cli/progress.hpp"

#include <fmt/format.h>

namespace troupe::cli {

decoder::decoder(const session& model, const model_options& args, const decode_options& options)
    : model_(model), args_(args), pairs_(read_bindings(options.bind, model.outputs())),
      bound_(model.bind(pairs_, {.checkpoint = options.checkpoint})), given_(given_inputs(model, args)),
      growth_(read_sizes(options.grow, "--grow")), dims_{args.dim_values()} {
  check_dims(growth_, model.inputs(), "--grow");
  check_dims(dims_[0], model.inputs(), "--dim");
}

named_tensors decoder::next_inputs() const {
  const uint64_t taken = steps_taken();
  named_tensors given = given_;
  std::vector<value_info> declared;
  for (const value_info& input : model_.inputs())
    if (taken > 0 && find_pair(&output_binding::input, input.name))
      given.erase(input.name);
    else
      declared.push_back(input);
  bindings dims = dims_.at(taken);
  for (const auto& [name, more] : growth_) {
    const auto first = dims_[0].find(name);
    dims[name] = (first == dims_[0].end() ? 1 : first->second) + more * static_cast<int64_t>(taken);
  }
  return complete_inputs(declared, std::move(given), std::move(dims), args_.seed + taken);
}

run_result decoder::step(named_tensors inputs, run_options how) {
  for (const output_binding& pair : pairs_)
    how.keep.push_back(pair.output);
  run_result result = bound_.run(std::move(inputs), how);
  bindings dims = dims_[0];
  for (const auto& [output, value] : result.kept)
    add_dims(*value, find_pair(&output_binding::output, output)->input, dims);
  dims_.resize(bound_.step());
  dims_.push_back(std::move(dims));
  result.kept.clear();
  return result;
}

run_result decoder::even_step(named_tensors inputs, const run_options& how) {
  expects(dims_.size() > 2, "no two steps have been taken from which growth could be seen");
  run_result result = bound_.run(std::move(inputs), how);
  const bindings &last = dims_.back(), &before = dims_[dims_.size() - 2];
  bindings dims = last;
  for (auto& [name, size] : dims)
    if (const auto earlier = before.find(name); earlier != before.end())
      size += size - earlier->second;
  dims_.push_back(std::move(dims));
  return result;
}

void decoder::fetch_bound(named_tensors& outputs) const {
  for (const output_binding& pair : pairs_)
    outputs[pair.output] = bound_.fetch(pair.output);
}

const output_binding* decoder::find_pair(std::string output_binding::*end, const std::string& name) const {
  for (const output_binding& pair : pairs_)
    if (pair.*end == name)
      return &pair;
  return nullptr;
}

void decoder::add_dims(const resident& value, const std::string& input, bindings& dims) const {
  for (const value_info& declared : model_.inputs())
    if (declared.name == input && declared.dims && declared.dims->size() == value.dims().size())
      for (size_t i = 0; i < value.dims().size(); ++i)
        if (const std::string symbol = (*declared.dims)[i].symbol_name(); !symbol.empty())
          dims[symbol] = value.dims()[i];
}

std::vector<output_binding> read_bindings(const std::vector<std::string>& specs,
                                          const std::vector<value_info>& outputs) {
  std::vector<output_binding> pairs;
  for (const std::string& spec : specs) {
    const size_t equals = spec.find('=');
    if (equals == std::string::npos)
      fail(errc::invalid_argument, "--bind '{}': OUTPUT=INPUT is expected, e.g. 'present.*=past.*'", spec);
    const std::string output = spec.substr(0, equals), input = spec.substr(equals + 1);
    const size_t star = output.find('*'), input_star = input.find('*');
    if ((star == std::string::npos) != (input_star == std::string::npos))
      fail(errc::invalid_argument, "--bind '{}': a '*' must be on both sides", spec);
    if (star == std::string::npos) {
      pairs.push_back({output, input});
      continue;
    }
    const std::string head = output.substr(0, star), tail = output.substr(star + 1);
    const size_t before = pairs.size();
    for (const value_info& o : outputs)
      if (o.name.size() >= head.size() + tail.size() && o.name.starts_with(head) && o.name.ends_with(tail)) {
        const std::string middle = o.name.substr(star, o.name.size() - head.size() - tail.size());
        pairs.push_back({o.name, input.substr(0, input_star) + middle + input.substr(input_star + 1)});
      }
    if (pairs.size() == before)
      fail(errc::invalid_argument, "--bind '{}': the model has no output '{}'", spec, output);
  }
  return pairs;
}

void add_decode_options(CLI::App& command, decode_options& options) {
  command.option_defaults()->group("Steps");
  CLI::Option* bind =
      command
          .add_option("--bind", options.bind,
                      "OUTPUT=INPUT: an output that is the next step's input, and stays on its device between, e.g. "
                      "'present.*=past.*'")
          ->type_name("OUTPUT=INPUT")
          ->allow_extra_args(false);
  command.add_option("--steps", options.steps, "Steps to run (default 1)")->needs(bind)->check(CLI::PositiveNumber);
  command
      .add_option("--grow", options.grow,
                  "DIM=SIZE: a symbolic dim of other inputs that is by so much larger in each step, e.g. total=1")
      ->type_name("NAME=SIZE")
      ->needs(bind)
      ->allow_extra_args(false);
  command
      .add_option("--checkpoint", options.checkpoint,
                  "Copy bound values to the host each time after N steps; if they are lost with a device, the steps "
                  "since are repeated (default 0: copy them only when the inputs of past steps take 64 MiB)")
      ->needs(bind);
}

decoded decode(const engine& devices, const session& model, const model_options& args, const decode_options& options,
               const run_options& how) {
  decoder d(model, args, options);
  progress line("run", args.shows_progress());
  line.watch(loads_of(devices));
  decoded all;
  for (;;)
    try {
      const uint64_t taken = d.steps_taken();
      if (taken == options.steps) {
        d.fetch_bound(all.last.outputs);
        return all;
      }
      named_tensors inputs = d.next_inputs();
      if (taken == 0)
        all.first_inputs = inputs;
      run_options this_step = how;
      this_step.trace = how.trace && taken + 1 == options.steps;
      all.last = d.step(std::move(inputs), std::move(this_step));
      all.step_ms.push_back(all.last.stats.total_ms);
      if (const uint64_t repeated = all.last.stats.repeated_steps; repeated > 0) {
        line.clear();
        fmt::print(stderr, "troupe: bound values were on a device that is lost: {} steps were taken again\n", repeated);
        all.repeated_steps += repeated;
      }
      line.show(static_cast<double>(d.steps_taken()), static_cast<double>(options.steps), "steps");
    } catch (const state_rolled_back& lost) {
      line.clear();
      fmt::print(stderr, "troupe: {}, which is done now\n", printable(lost.what()));
      all.repeated_from.push_back(lost.repeat_from());
    }
}

} // namespace troupe::cli
