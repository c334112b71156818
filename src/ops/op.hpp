// The operator interface: everything troupe knows about an operator is one `op_def` row.
//
// A file of src/ops/onnx, contrib, ml or composed has a constexpr table of rows; the build finds it (families.hpp). The
// newest row with `since` ≤ the model's opset for the row's domain is the one that is used. To add an operator, add its
// row. How devices run it fast is said elsewhere, by tables that rows are looked up in (implementation_table.hpp).
#pragma once

#include "graph/graph.hpp"

#include <array>

namespace troupe {

class call_axes;
class expansion;

/// What shape inference sees of one node, and where it writes what it finds. Works on symbolic dims, once for each
/// model. Errors are `errc::invalid_model` (the caller adds the node's name to the message).
class infer_context {
public:
  infer_context(graph& g, node& n) : graph_(g), node_(n) {}
  /// What is known of a call that has been inferred. Constant, since it is only read: what it refers to may be so.
  static const infer_context of(const graph& g, const node& n) { return {const_cast<graph&>(g), const_cast<node&>(n)}; }

  const node& call() const { return node_; }
  const attributes& attrs() const { return node_.attrs; }
  size_t input_count() const { return node_.inputs.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  /// Returns whether input `i` is there (optional inputs may be absent).
  bool has_input(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != no_value; }
  bool has_output(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != no_value; }

  dtype type(size_t i) const;
  /// Returns the dims of input `i`; throws `errc::unsupported` if not even its rank is known.
  const symbolic_shape& dims(size_t i) const;
  size_t rank(size_t i) const { return dims(i).size(); }
  bool has_rank(size_t i) const { return input(i).dims.has_value(); }

  /// Returns the elements of an integer input where they are known on the host (constants included), else nullopt.
  std::optional<std::vector<dim>> known(size_t i) const;
  /// Returns the elements of an integer input; throws `errc::unsupported` if the host does not know them.
  std::vector<dim> require_known(size_t i) const;
  /// Like `require_known`, for places that need plain numbers (axes, pads).
  std::vector<int64_t> require_constants(size_t i) const;
  /// Returns a constant input's tensor if it has at most `max_known_elements`, else an undefined one. For scales and
  /// such.
  tensor constant(size_t i) const;
  /// Returns whether input `i` is there and `all_equal` holds for it.
  bool is_filled(size_t i, double wanted) const;

  /// Returns whether the dims of output `i` are known: inferred, or stated by the model.
  bool has_output_dims(size_t i) const { return has_output(i) && graph_.values[node_.outputs[i]].dims; }
  /// Returns the dims that `set_output` gave to output `i`, which must be there.
  const symbolic_shape& output_dims(size_t i) const { return *graph_.values[node_.outputs.at(i)].dims; }
  /// Sets type and dims of output `i`, and what is known of its elements if these are tensors; ignored if that output
  /// is absent.
  void set_output(size_t i, dtype type, symbolic_shape dims, element_shapes elements = {});
  /// States that output `i` is a tensor of `type` out of a sequence or optional.
  void set_element(size_t i, dtype type, const element_shapes& elements);
  /// The same for an output whose rank only the run tells: branches of an If give different ranks.
  void set_output_of_any_rank(size_t i, dtype type);
  /// States the elements of integer output `i` (row-major); at most `max_known_elements`, more are not kept.
  void set_known(size_t i, std::vector<dim> elements);
  /// Returns a fresh symbol for a dim of output `i` that depends on data: the node ends a segment, and the symbol is
  /// bound when the node has run.
  dim data_dependent(size_t i, size_t axis) const;

  /// Returns input `i`, which must be there.
  const value& input(size_t i) const;

  /// Returns attribute `name` as an axis normalised to [0, rank); throws if it is out of range.
  size_t axis(std::string_view name, int64_t otherwise, size_t rank) const;

private:
  graph& graph_;
  node& node_;
};

/// Values with more elements than this are not tracked as host-known.
inline constexpr size_t max_known_elements = 1024;

/// Returns whether `v` is a constant of at most `max_known_elements` elements, each of them `wanted`.
bool all_equal(const value& v, double wanted);

/// Returns `axis` counted from the front; throws `errc::invalid_model` unless -rank ≤ axis < rank.
size_t normalize_axis(int64_t axis, size_t rank);

/// What a kernel gets: concrete operands. Outputs are allocated by the caller, except data-dependent ones.
class kernel_context {
public:
  kernel_context(const attributes& attrs, std::span<const const_view> inputs, std::span<mutable_view> outputs)
      : attrs_(attrs), inputs_(inputs), outputs_(outputs) {}

  const attributes& attrs() const { return attrs_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i].type != dtype::undefined; }
  bool has_output(size_t i) const { return i < outputs_.size() && outputs_[i].type != dtype::undefined; }

  const const_view& input(size_t i) const { return inputs_[i]; }
  const mutable_view& output(size_t i) const { return outputs_[i]; }

  /// Allocates output `i` of a node whose output shape depends on data; `output(i)` is valid afterwards.
  mutable_view& allocate(size_t i, shape dims);
  /// Hands on a tensor as output `i`: without a copy where the caller has not allocated it. Throws
  /// `errc::invalid_input` if it has, for other dims.
  void give(size_t i, const tensor& value);
  /// Returns the tensor that `allocate` or `give` made for output `i`; undefined if neither was called.
  const tensor& allocated(size_t i) const { return allocated_[i]; }

private:
  const attributes& attrs_;
  std::span<const const_view> inputs_;
  std::span<mutable_view> outputs_;
  std::array<tensor, 4> allocated_; // no data-dependent operator has more outputs (Unique has 4)
};

/// How an output relates to an input's storage.
enum class aliasing : uint8_t {
  none,     // its own storage
  view,     // output 0 is the same bytes as input 0 under another shape (Reshape, Squeeze, Identity …)
  in_place, // output 0 may overwrite an input of the same type and shape (elementwise)
};

/// Which layouts (see `layout` in graph.hpp) an operator's data operands may have. Reference kernels know only plain
/// rows unless the operator is elementwise; a device that prefers channels-last has fast kernels for the spatial
/// operators.
enum class layout_support : uint8_t {
  plain,        // plain operands only
  agnostic,     // elementwise: any layout, if every operand has the output's dims or is a single element
  broadcasting, // the same, and fast kernels take plain operands of other dims beside an output of any layout
  normalizing,  // by channel: input 0 and output 0 have any one layout; other operands are plain
  joining,      // along attribute `axis`: any layout if these are the channels, else plain
  spatial,      // gains: input 0, output 0 and a residual input may be channels-last; other operands are plain
  converting,   // input 0 and output 0 have different layouts
};

/// Returns whether each element of an operator's output is made of the elements at its place in the (broadcast)
/// operands.
constexpr bool is_elementwise(layout_support layouts) {
  return layouts == layout_support::agnostic || layouts == layout_support::broadcasting;
}

/// Work of one call, for the cost model.
struct op_cost {
  double flops = 0;
  double bytes = 0; // read and written
};

/// Concrete types and shapes of one call, for cost and kernel choice.
struct call_shapes {
  std::vector<dtype> input_types; // undefined if absent
  std::vector<shape> inputs;
  std::vector<dtype> output_types;
  std::vector<shape> outputs;
};

/// How many operands a call may have, from the first of them to the last one that is there.
struct operand_range {
  uint8_t min = 1;
  uint8_t max = 1; // 255: any number
};

/// One operator from one opset on. Rows are compile-time constants with designated initialisers.
struct op_def {
  std::string_view domain; // "" is ai.onnx
  std::string_view name;
  int64_t since;           // first opset of this row
  int64_t until = 1 << 30; // last opset of this row, for operators that were removed (Upsample)
  operand_range inputs;
  uint8_t max_outputs = 1;             // 255: any number
  dtype_set types = types::fixed_size; // of input 0 (of every output if there is no input)
  /// Bit i: the elements of input i must be known on the host when shapes are bound (Reshape's shape, Slice's starts).
  uint32_t host_inputs = 0;
  aliasing alias = aliasing::none;
  layout_support layouts = layout_support::plain;
  /// Whether output 0 may be left out.
  bool first_output_optional = false;
  /// Whether input 1 broadcasts by attributes `axis` and `broadcast` (ops/onnx/limited_broadcast.hpp): until opset 6.
  bool limited_broadcast = false;
  /// Whether knowing the inputs' elements never tells the outputs' before a run: these follow from the inputs' dims
  /// alone (Shape), or even the outputs' dims depend on data (NonZero).
  bool hides_elements = false;
  /// Whether each execution draws other random numbers, unless an attribute `seed` decides them: see `is_repeatable`.
  bool draws = false;
  /// Whether float operands or results need float32's range or digits: growth beyond 65504 (powers, long sums), and the
  /// scales of a quantisation.
  bool needs_float32 = false;
  /// Whether output 0 is input 0's elements in another type.
  bool converts = false;
  /// Whether output 0 is input 0, a cache, with the rows of input 1 after its own.
  bool appends = false;
  /// Whether absent inputs 1 and 2 mean the least and the largest number of input 0's type.
  bool bounded_by_type = false;
  /// Of spatial operators: the input that is added to the result. It has output 0's layout if it has its dims. 0: none.
  uint8_t residual_input = 0;
  /// Types and shapes of the outputs.
  void (*infer)(infer_context&);
  /// Plain loops: the oracle of every other kernel, and the constant folder. Null for control flow and compositions.
  void (*reference)(kernel_context&);
  /// Null: no flops, every operand read or written once.
  op_cost (*cost)(const attributes&, const call_shapes&) = nullptr;
  /// Returns the input that output 0 repeats bit for bit, provided that its type and dims are that input's; nullopt if
  /// it repeats none. Null: never, unless output 0 is a view.
  std::optional<size_t> (*repeats)(const infer_context&) = nullptr;
  /// A composition (ops/expansion.hpp): adds the calls that take its place. Null for all other operators.
  void (*expand)(expansion&) = nullptr;
  /// Adds the axes of a call (ops/axes.hpp). Null: those of broadcasting if `is_elementwise`, else none.
  void (*axes)(call_axes&) = nullptr;
  /// What a call does along a dim that is on no axis, before "axis 1": "sorts". If no call has axes, what it does
  /// instead: "draws one number after another".
  std::string_view mixes = {};
};

/// Returns whether a resolved node gives the same results from the same operands in every execution.
inline bool is_repeatable(const node& n) {
  return !n.def->draws || n.attrs.has("seed");
}

} // namespace troupe
