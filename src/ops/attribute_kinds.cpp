// A name means the same to all operators, with few exceptions: so names are listed by kind, once, instead of with each
// operator. Kernels may read an attribute that inference has no use for; what is listed here was checked before, when
// its node was resolved.
#include "ops/attribute_kinds.hpp"

#include "graph/attribute_kind.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

namespace troupe {
namespace {

template <class T, size_t I = 0>
constexpr uint32_t kind_of() {
  if constexpr (std::is_same_v<T, std::variant_alternative_t<I, attribute>>)
    return uint32_t{1} << I;
  else
    return kind_of<T, I + 1>();
}

/// Names with blanks between them. Not here: what has several kinds, and whose operators all read it at inference.
constexpr auto names_by_kind = std::to_array<std::pair<uint32_t, std::string_view>>({
    {kind_of<int64_t>(),
     "align_corners allowzero antialias axis batch_axis batch_dims bits blk_quant_type block_size "
     "blocksize broadcast causal ceil_mode center_point_box channels_last char_embedding_size clear_after "
     "conv_window_size count_include_pad default_int64 detect_negative detect_positive dim do_rotary dtype "
     "embedding_size end eos_token_id exclude_outside exclusive expert_weight_bits fmod gather_axis group "
     "hidden_size ignore_index input_forget interleaved inverse is_bidirectional is_case_sensitive is_causal "
     "is_packed_batching is_test K k keepdims kv_cache_bit_width kv_num_heads largest layout "
     "linear_before_reset local_window_size mark max_distance max_gram_length max_map max_ngram_size max_skip_count "
     "maxsplit min_gram_length min_ngram_size mincharnum mrope_layout N n_head_per_ngram n_supports "
     "n_targets new_axis ngram_size noop_with_empty_axes normalize_routing_weights num_groups num_heads "
     "num_outputs num_scan_inputs offset_group one_class onesided opset output_datatype output_dtype "
     "output_height output_width p pad_id past_present_share_buffer periodic positive precision "
     "q_num_heads qk_matmul_output_mode qk_output quantize_axis quantized_state replaced_value_int64 "
     "reverse rotary_embedding_dim rotary_interleaved sample_size sampling_ratio saturate seed "
     "select_last_index size sliding_window_cache smooth_softmax softmax_precision sorted "
     "sparse_block_size spatial start stash_type step storage_order swiglu_fusion targets time_axis to "
     "training_mode transA transB transBatchA transBatchB type unidirectional upper value_int "
     "weights_prepacked zeros"},
    {kind_of<float>(),
     "alpha beta bias clip cubic_coeff_a default_float epsilon extrapolation_value gamma high lambd low "
     "mask_filter_value max mean min momentum qk_norm_epsilon replaced_value_float scale softcap "
     "spatial_scale swiglu_limit threshold value_float"},
    {kind_of<std::string>(),
     "activation activation_type approximate auto_pad case_change_action cast_to "
     "coordinate_transformation_mode default_string delimiter direction equation k_quant_type "
     "keep_aspect_ratio_policy kernel_type map_form metric mode nearest_mode norm pad_value padding_mode "
     "past_layout pattern pixel_format reduction round_mode tokenexp update_rule v_quant_type value_string"},
    {kind_of<tensor>(),
     "base_values_as_tensor class_weights_as_tensor default_tensor keys_tensor leaf_weights "
     "membership_values nodes_splits nodes_values_as_tensor target_weights_as_tensor value values_tensor"},
    {kind_of<std::vector<int64_t>>(),
     "axes border cats_int64s class_ids class_nodeids class_treeids classlabels_int64s classlabels_ints "
     "dilations directions ends imputed_value_int64s inputdimensions int64_vocabulary kernel_shape "
     "keys_int64s leaf_targetids mrope_section ngram_counts ngram_indexes nodes_falseleafs "
     "nodes_falsenodeids nodes_featureids nodes_missing_value_tracks_true nodes_nodeids nodes_treeids "
     "nodes_trueleafs nodes_truenodeids output_padding output_shape paddings pads perm pool_int64s "
     "pooled_shape qkv_hidden_sizes scan_input_axes scan_input_directions scan_output_axes "
     "scan_output_directions shape split starts strides target_ids target_nodeids target_treeids "
     "tree_roots value_ints values_int64s vectors_per_class"},
    {kind_of<std::vector<float>>(),
     "activation_params base_values class_weights coefficients imputed_value_floats intercepts "
     "kernel_params keys_floats nodes_values offset prob_a prob_b rho scales support_vectors "
     "target_weights value_floats values_floats weights"},
    {kind_of<std::vector<std::string>>(),
     "activations cats_strings classes_strings classlabels_strings keys_strings pool_strings separators "
     "stopwords string_vocabulary value_strings values_strings"},
});

/// An attribute that one operator gives another meaning.
struct special_attribute {
  std::string_view op_type, name;
  uint32_t kinds;
};

constexpr auto special_attributes = std::to_array<special_attribute>({
    {"Bernoulli", "seed", kind_of<float>()},
    {"Cast", "to", kind_of<int64_t>() | kind_of<std::string>()}, // until opset 5
    {"Crop", "scale", kind_of<std::vector<int64_t>>()},
    {"GlobalLpPool", "p", kind_of<int64_t>() | kind_of<float>()}, // until opset 1
    {"ImageScaler", "bias", kind_of<std::vector<float>>()},
    {"LpPool", "p", kind_of<int64_t>() | kind_of<float>()}, // until opset 1
    {"Multinomial", "seed", kind_of<float>()},
    {"Pad", "value", kind_of<float>()},
    {"RandomNormal", "seed", kind_of<float>()},
    {"RandomNormalLike", "seed", kind_of<float>()},
    {"RandomUniform", "seed", kind_of<float>()},
    {"RandomUniformLike", "seed", kind_of<float>()},
    {"Scaler", "scale", kind_of<std::vector<float>>()},
});

using kind_index = std::map<std::string_view, uint32_t>;

/// Never destroyed: engines in static objects run to the end of the process.
const kind_index& usual_kinds() {
  static const kind_index& built = *new kind_index([] {
    kind_index kinds;
    for (auto [kind, names] : names_by_kind)
      while (!names.empty()) {
        const size_t length = std::min(names.find(' '), names.size());
        kinds.emplace(names.substr(0, length), kind);
        names.remove_prefix(std::min(length + 1, names.size()));
      }
    return kinds;
  }());
  return built;
}

} // namespace

uint32_t attribute_kinds(std::string_view op_type, std::string_view name) {
  const auto* special = std::ranges::find_if(
      special_attributes, [&](const special_attribute& e) { return e.op_type == op_type && e.name == name; });
  if (special != special_attributes.end())
    return special->kinds;
  const auto usual = usual_kinds().find(name);
  return usual == usual_kinds().end() ? 0 : usual->second;
}

void check_attribute_kinds(const node& n) {
  if (n.domain == "troupe")
    return;
  for (const auto& [name, value] : n.attrs.all()) {
    const uint32_t kinds = attribute_kinds(n.op_type, name);
    if (kinds == 0 || (kinds >> value.index() & 1) != 0)
      continue;
    fail(errc::invalid_model, "{}: attribute '{}' is {}, but must be {}", describe(n), name,
         attribute_kind_names[value.index()], attribute_kind_names[std::countr_zero(kinds)]);
  }
}

} // namespace troupe
