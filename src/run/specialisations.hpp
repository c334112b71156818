// A session's model, rewritten for what the file leaves open: the ranks of inputs whose shape it does not state, the
// values of inputs that decide shapes and of inputs that have a default, and which dims of one name differ. If
// inference with symbols cannot follow the model, it is rewritten for the numbers of its inputs' dims as well. Not
// thread-safe.
#pragma once

#include "plan/bind/bind_inputs.hpp"
#include "plan/plan_cache.hpp"
#include "rewrite/rewrite.hpp"
#include "run/model.hpp"
#include "run/plan_devices.hpp"
#include "run/plan_job.hpp"
#include "run/shared_dims.hpp"

#include <array>

namespace troupe {

/// A program, and what plans of it are made for.
struct specialisation {
  std::shared_ptr<const graph> program;
  hash128 hash; // of the program
  input_symbols symbols{*program};
  std::vector<size_t> inputs{};        // by input of the program: which of the model's it is
  std::vector<size_t> program_input{}; // by the model's input: which of the program's; SIZE_MAX: none
  bindings expected;             // that plans count on: the first run's, so that the key stays the same from run to run
  bool draft = true;             // `expected` are not a run's yet
  bool of_numbers = false;       // it is for inputs of certain dims
  bool has_symbolic_form = true; // else only programs of numbers can be made of the model
  std::vector<dim> nonnegative{}; // what its shapes take to be ≥ 0: see ops/onnx/nonempty_dims.hpp
  /// Of the plans on the devices as they are, by `plan_use::index`; nullopt until it is asked for.
  std::array<std::optional<hash128>, plan_use::count> keys;
};

class specialisations {
public:
  /// How many are kept.
  static constexpr size_t most = 8;
  /// How many are made for certain dims where symbols do as well, if with pauses in a run where shapes are decided: a
  /// caller whose dims differ from run to run is better off with these.
  static constexpr size_t most_of_numbers = most - 2;

  explicit specialisations(model_ptr m);
  specialisations(const specialisations&) = delete; // its jobs refer to it
  specialisations& operator=(const specialisations&) = delete;

  /// What `check_inputs` has returned.
  using input_facts = std::vector<given_inputs::facts>;

  /// Returns the one for inputs that have been checked; null if it is not there: see `job`. Valid until the next is
  /// kept.
  specialisation* find(const given_inputs& inputs, const input_facts& given);
  /// Returns the job that makes the one for these inputs, adding the milliseconds that it takes to `spent`. `on_cpus`:
  /// no device is a GPU.
  plan_job job(const given_inputs& inputs, const input_facts& given, bool on_cpus, double& spent);
  /// Keeps one that was made already, of the same model.
  void keep(const given_inputs& inputs, specialisation made);

  /// Returns the symbols' values that the inputs' dims, which `given` says for each of the model's, and the session's
  /// options state. Throws `errc::invalid_input` if they contradict each other.
  bindings symbols(const specialisation& s, const input_facts& given) const;
  /// Returns which dims of one name differ, in words; empty if none do.
  std::string contradiction(const input_facts& given) const { return shared_.describe(dims_in(given)); }

  /// Returns whether some input has symbolic dims.
  bool has_symbols() const { return has_symbols_; }

  template <class Visit>
  void for_each(Visit&& visit) {
    kept_.for_each(visit);
  }

private:
  using input_dims = std::map<std::string, symbolic_shape>;

  void keep(const hash128& key, specialisation made);
  hash128 key_of(const given_inputs& inputs, const input_facts& given) const;
  static hash128 key_of(const hash128& others, const input_dims& numbers);
  /// Returns the dims of all inputs in numbers, as given or as the session's options state; nullopt if they are not
  /// known or no input has symbolic ones.
  std::optional<input_dims> numbers_of(const input_facts& given) const;
  bool wants_numbers() const { return wants_numbers_ || needs_numbers_; }
  /// Returns whether inputs need a program of numbers, if that of symbols has `key`.
  bool takes_numbers(const hash128& key, const input_facts& given);
  bool can_make_of_numbers() const { return needs_numbers_ || made_of_numbers_ < most_of_numbers; }
  rewrite_options options_for(const given_inputs& inputs, const input_facts& given, bool on_cpus) const;
  /// Throws `errc::invalid_input` if the given dims contradict what is declared, `declared` or the model's.
  void check_symbols(const input_dims& declared, const input_facts& given) const;
  static shared_dims::dims_of dims_in(const input_facts& given);
  size_t position_of(const std::string& input) const;
  /// Returns the ranks of what is in the given sequences and optionals, by input, where the file does not state them.
  std::map<std::string, element_shapes> open_elements(const given_inputs& inputs) const;

  const model_ptr model_;
  std::vector<size_t> of_any_rank_;   // inputs whose shape the file does not state
  std::vector<size_t> open_elements_; // those that hold elements whose shape it does not state
  bool has_symbols_ = false;          // some input has dims that are symbols
  bool wants_numbers_ = false;        // a program of symbols decides shapes in a run that numbers would tell before
  bool needs_numbers_ = false;        // there is no program of symbols
  size_t made_of_numbers_ = 0;
  shared_dims shared_;
  plan_cache<specialisation> kept_;
};

} // namespace troupe
