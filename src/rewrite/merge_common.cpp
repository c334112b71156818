// Common subexpressions: of nodes that compute the same from the same, one stays. Constants of equal content become one
// value.
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

#include <unordered_map>

namespace troupe {
namespace {

/// Appends the bytes of a number to a key.
template <class T>
void append(std::string& key, T number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_text(std::string& key, std::string_view text) {
  append(key, text.size());
  key += text;
}

/// Appends an attribute; returns false for those that are not compared (graphs).
bool append_attribute(std::string& key, const attribute& a) {
  append(key, a.index());
  return std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::shared_ptr<const graph>>)
          return false;
        else if constexpr (std::is_arithmetic_v<T>)
          append(key, v);
        else if constexpr (std::is_same_v<T, std::string>)
          append_text(key, v);
        else if constexpr (std::is_same_v<T, tensor>) {
          const hash128 h = weight::from_tensor(v)->key;
          append(key, h.high);
          append(key, h.low);
        } else {
          append(key, v.size());
          for (const auto& element : v)
            if constexpr (std::is_arithmetic_v<typename T::value_type>)
              append(key, element);
            else
              append_text(key, element);
        }
        return true;
      },
      a);
}

/// Returns a text that is equal for nodes that compute the same; empty for nodes that must stay apart.
std::string key_of(const graph_editor& e, const node& n) {
  if (n.captures > 0 || defines_symbols(e.model(), n) || !is_repeatable(n))
    return "";
  std::string key;
  append(key, reinterpret_cast<uintptr_t>(n.def));
  append(key, n.outputs.size());
  append(key, n.inputs.size());
  for (value_id v : n.inputs)
    append(key, v);
  for (const auto& [name, a] : n.attrs.all()) {
    append_text(key, name);
    if (!append_attribute(key, a))
      return "";
  }
  return key;
}

bool merge_constants(graph_editor& e) {
  bool changed = false;
  std::unordered_map<hash128, value_id> first;
  for (value_id v = 0; v < static_cast<value_id>(e.model().values.size()); ++v) {
    if (!e.val(v).constant || e.uses(v) == 0)
      continue;
    const auto [it, inserted] = first.emplace(e.val(v).constant->key, v);
    if (inserted)
      continue;
    e.replace_uses(v, it->second);
    changed = true;
  }
  return changed;
}

/// Makes readers of `n` read `twin` instead; graph outputs keep their producer.
bool merge(graph_editor& e, node_id n, node_id twin) {
  bool changed = false;
  for (size_t i = 0; i < e.at(n).outputs.size(); ++i) {
    const value_id from = e.at(n).outputs[i], to = e.at(twin).outputs[i];
    if (from == no_value || to == no_value || !e.alive(n))
      continue;
    const uint32_t outside = e.is_output(from) ? 1 : 0;
    if (e.uses(from) > outside) {
      e.replace_uses(from, to);
      changed = true;
    }
  }
  return changed;
}

} // namespace

bool merge_common(graph_editor& e) {
  bool changed = merge_constants(e);
  std::unordered_map<std::string, node_id> first;
  changed |= each_node(e, [&](node_id n) {
    const std::string key = key_of(e, e.at(n));
    if (key.empty())
      return false;
    const auto [it, inserted] = first.emplace(key, n);
    return !inserted && merge(e, n, it->second);
  });
  return changed;
}

} // namespace troupe
