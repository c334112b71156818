#include "ops/graph_hash.hpp"

#include "graph/annotations.hpp"
#include "graph/dim_expression.hpp"
#include "ops/op.hpp"

namespace troupe {
namespace {

void add_dims(hasher& h, const std::vector<dim>& dims) {
  h.add(dims.size());
  for (const dim& d : dims) {
    h.add(d.is_constant());
    if (d.is_constant())
      h.add(d.constant());
    else
      h.add(canonical_text(d));
  }
}

void add_ids(hasher& h, const std::vector<value_id>& ids) {
  h.add(std::span<const value_id>(ids));
}

/// What of a graph counts.
enum class aspect : uint8_t {
  content,   // everything that results depend on
  structure, // nodes' names, but not the elements of weights
};

class graph_hasher {
public:
  graph_hasher(hasher& h, aspect what) : h_(h), what_(what) {}

  void add(const graph& g) {
    h_.add(g.values.size());
    for (const value& v : g.values)
      add(v);
    h_.add(g.nodes.size());
    for (const node& n : g.nodes)
      add(n);
    for (const auto* ids : {&g.inputs, &g.outputs, &g.captured}) {
      add_ids(h_, *ids);
      for (value_id v : *ids)
        h_.add(g.values[v].name);
    }
    if (what_ == aspect::content && g.asked)
      add(*g.asked);
    if (what_ == aspect::content && g.annotations)
      h_.add(g.annotations->key);
  }

  void add_operator(const node& n) {
    h_.add(n.domain);
    h_.add(n.op_type);
    h_.add(n.def ? n.def->since : int64_t{-1});
    h_.add(n.captures);
    add(n.attrs);
  }

  void add(const attributes& attrs) {
    h_.add(attrs.all().size());
    for (const auto& [name, value] : attrs.all()) {
      h_.add(name);
      add(value);
    }
  }

private:
  void add(const value& v) {
    h_.add(v.type);
    h_.add(v.layout);
    h_.add(v.dims.has_value());
    if (v.dims)
      add_dims(h_, *v.dims);
    h_.add(v.constant != nullptr);
    if (v.constant && what_ == aspect::content)
      h_.add(v.constant->key);
    h_.add(v.known.has_value());
    if (v.known)
      add_dims(h_, *v.known);
  }

  void add(const node& n) {
    if (what_ == aspect::structure)
      h_.add(n.name);
    add_operator(n);
    add_ids(h_, n.inputs);
    add_ids(h_, n.outputs);
  }

  void add(const attribute& value) {
    h_.add(value.index());
    const auto add_one = [&](const auto& v) {
      using T = std::decay_t<decltype(v)>;
      if constexpr (std::is_same_v<T, tensor>) {
        h_.add(weight::from_tensor(v)->key);
      } else if constexpr (std::is_same_v<T, std::shared_ptr<const graph>>) {
        add(*v);
      } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        h_.add(v.size());
        for (const std::string& text : v)
          h_.add(text);
      } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
        h_.add(v);
      } else {
        h_.add(std::span<const typename T::value_type>(v));
      }
    };
    std::visit(add_one, value);
  }

  hasher& h_;
  const aspect what_;
};

} // namespace

hash128 hash_of(const graph& g) {
  hasher h;
  graph_hasher(h, aspect::content).add(g);
  return h.digest();
}

hash128 structure_of(const graph& g) {
  hasher h;
  graph_hasher(h, aspect::structure).add(g);
  return h.digest();
}

void add_operator(hasher& h, const node& n) {
  graph_hasher(h, aspect::content).add_operator(n);
}

void add_attributes(hasher& h, const attributes& attrs) {
  graph_hasher(h, aspect::content).add(attrs);
}

} // namespace troupe
