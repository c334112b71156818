// Runs single operators on the host through their reference kernels: constant folding, weight recipes, test oracles.
#pragma once

#include "ops/op.hpp"

#include <functional>

namespace troupe {

/// Runs `def`'s reference kernel on host tensors. `inputs` holds an undefined tensor if an input is absent;
/// `output_count` outputs are computed. Infers the output shapes first; throws what inference and kernel throw.
std::vector<tensor> evaluate(const op_def& def, const attributes& attrs, std::span<const tensor> inputs,
                             size_t output_count = 1);

/// Returns the tensor that a Constant node states; null if `n` is none, or states its value in another way.
const tensor* literal_of(const node& n);

/// Returns the bytes of a weight, running its recipe's steps if it has any.
tensor materialise(const weight& w);

/// Gives what a device has of a recipe's parts, else an undefined tensor.
using held_parts = std::function<tensor(const weight& part)>;

/// Returns the bytes of a weight for a device that keeps them. Parts that it holds are not computed again. The pages of
/// the file that steps have read are given back, so that memory does not double; they come again from the file if
/// anyone else reads them.
tensor materialise_for_device(const weight& w, const held_parts& held = {});

/// Returns how many outputs the step of a weight that has one computes; what some operators compute (Split) depends on
/// it.
uint32_t step_outputs(const weight& w);

/// Returns what materialising a weight takes: an operation for each flop and for each 4 bytes read or written, a step
/// that several others read counted for each. Nothing for a leaf.
double recipe_work(const weight& w);

/// Returns that for a call over constants whose outputs have these types and dims; types are undefined if the results
/// decide the dims. Infinite if the sizes cannot be counted.
double folding_work(const op_def& def, const attributes& attrs, std::span<const weight_ptr> inputs,
                    std::vector<dtype> types, std::vector<shape> dims);

/// Returns a weight that is the only output of `def` applied to other weights; nothing is computed yet. The result's
/// type and dims must be given (shape inference knows them).
weight_ptr make_step(const op_def& def, attributes attrs, std::vector<weight_ptr> inputs, dtype type, shape dims);

/// The same for output `output` of several, of which all types and dims are given; a type is undefined if nothing
/// reads that output.
weight_ptr make_step(const op_def& def, attributes attrs, std::vector<weight_ptr> inputs, uint32_t output,
                     const std::vector<dtype>& types, const std::vector<shape>& dims);

} // namespace troupe
