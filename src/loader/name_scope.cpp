#include "loader/name_scope.hpp"

#include "base/limits.hpp"

namespace troupe {

std::string canvas::unique_name(const std::string& name) {
  std::string unique = name;
  for (int64_t i = 1; !taken.insert(unique).second; ++i)
    unique = name + "#" + std::to_string(i + static_cast<int64_t>(taken.size()));
  return unique;
}

value_id name_scope::declare(const std::string& name, value v) {
  if (name.empty())
    fail(errc::invalid_model, "an input or initializer has no name");
  if (name.size() > limits::longest_name)
    fail(errc::unsupported, "the name {} has {} characters; at most {} are supported", in_quotes(name), name.size(),
         limits::longest_name);
  const auto [it, fresh] = names.try_emplace(name, no_value);
  if (!fresh || maps.count(name))
    fail(errc::invalid_model, "the value name {} is defined twice", in_quotes(name));
  v.name = target.unique_name(prefix + name);
  return it->second = target.g.add_value(std::move(v));
}

bool name_scope::find(const std::string& name, value_id& found) {
  if (const auto it = names.find(name); it != names.end()) {
    found = it->second;
    return true;
  }
  if (maps.count(name))
    fail(errc::unsupported, "{} is a map, which only CastMap and DictVectorizer can take", in_quotes(name));
  value_id outer = no_value;
  if (!parent || !parent->find(name, outer))
    return false;
  if (outer == no_value) { // an absent optional input of the enclosing function
    found = names[name] = no_value;
    return true;
  }
  const value& source = parent->target.g.values[outer];
  graph& g = target.g;
  value v;
  v.name = target.unique_name(source.name);
  v.type = source.type;
  v.dims = source.dims;
  v.elements = source.elements;
  const bool constant = source.constant != nullptr && !parent->target.defaults.contains(outer);
  if (constant)
    v.constant = source.constant;
  found = names[name] = g.add_value(std::move(v));
  if (!constant) {
    g.captured.push_back(found);
    target.captured_from.push_back(outer);
  }
  return true;
}

value_id name_scope::lookup(const std::string& name, const std::string& reader) {
  value_id found = no_value;
  if (!find(name, found))
    fail(errc::invalid_model, "{} refers to {}, which nothing defines", reader, in_quotes(name));
  return found;
}

bool name_scope::is_map(const std::string& name) const {
  for (const name_scope* at = this; at; at = at->parent)
    if (at->names.count(name) || at->maps.count(name))
      return at->maps.count(name) != 0;
  return false;
}

} // namespace troupe
