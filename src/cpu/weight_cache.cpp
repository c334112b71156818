#include "cpu/weight_cache.hpp"

#include "ops/evaluate.hpp"

namespace troupe {

weight_cache::handle weight_cache::get(const weight_ptr& w) {
  if (handle h = held_.find(w->key))
    return h;
  const auto held = [&](const weight& part) {
    const handle h = held_.find(part.key);
    return h ? *h : tensor();
  };
  const auto made = std::make_shared<const tensor>(materialise_for_device(*w, held));
  held_.add(w->key, made);
  return made;
}

int64_t weight_cache::bytes() const {
  int64_t sum = 0;
  held_.for_each([&](const tensor& t) { sum += t.bytes(); });
  return sum;
}

} // namespace troupe
