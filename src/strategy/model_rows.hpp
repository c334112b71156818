// A model's rows: which requests may be cut and joined, and how (row_proof.hpp says whether rows are independent).
#pragma once

#include "run/shared_dims.hpp"
#include "strategy/row_proof.hpp"
#include "strategy/row_tensors.hpp"

#include <map>

namespace troupe {

/// What a request's tensors say about it.
struct request_rows {
  int64_t rows = 1;
  std::string key;        // see `stream_request::key`
  bool divisible = false; // by rows
};

/// Some rows of a request, or of what a piece has computed.
struct rows_in {
  const named_tensors* tensors = nullptr;
  int64_t first = 0;
  int64_t rows = 0;
};

/// Immutable.
class model_rows {
public:
  /// Rows of which nothing is known: requests run whole.
  explicit model_rows(std::string whole_because) : whole_because_(std::move(whole_because)) {}
  /// Rows of a program as `prove_rows` found them.
  model_rows(const graph& program, const batch_rows& where);

  /// The dim that counts rows; empty if requests run whole.
  const std::string& symbol() const { return symbol_; }
  /// Why requests run whole; empty if they need not.
  const std::string& whole_because() const { return whole_because_; }

  /// Returns what a request is: not divisible if it is not what the model declares, which running it will say.
  request_rows measure(const named_tensors& inputs) const;
  /// Returns these rows as one request's inputs, in tensors from `make` if they are of several; what all rows share is
  /// the first's.
  named_tensors join_inputs(std::span<const rows_in> parts, const tensor_maker& make) const;
  /// Returns the outputs of these rows.
  named_tensors cut_outputs(const rows_in& part) const { return join({&part, 1}, outputs_, make_plain_tensor); }
  /// Copies a part of a request's outputs, which has `rows` in all, to row `at`; makes them if `all` is empty. What all
  /// rows share is the first part's.
  void place_outputs(named_tensors& all, int64_t rows, int64_t at, const rows_in& part, const tensor_maker& make) const;

private:
  using axes = std::map<std::string, std::optional<size_t>>; // by name; nullopt: shared by all rows
  static named_tensors join(std::span<const rows_in> parts, const axes& where, const tensor_maker& make);

  std::string symbol_, whole_because_;
  axes inputs_, outputs_;
  shared_dims shared_; // what was proved counts on dims of one name being equal
};

} // namespace troupe
