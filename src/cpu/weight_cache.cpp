#include "cpu/weight_cache.hpp"

#include "ops/evaluate.hpp"

namespace troupe {

weight_cache::handle weight_cache::hold(key k, tensor bytes) {
  auto h = std::make_shared<const tensor>(std::move(bytes));
  held_.add(std::move(k), h);
  return h;
}

weight_cache::handle weight_cache::plain(const weight_ptr& w) {
  key k{w->key, ""};
  if (handle h = held_.find(k))
    return h;
  handle h = hold(std::move(k), materialise(*w));
  if (w->step)
    release_mapped(*w);
  return h;
}

weight_cache::handle weight_cache::packed(const weight_ptr& w, const std::string& format,
                                          const std::function<tensor(const tensor&)>& pack) {
  key k{w->key, format};
  if (handle h = held_.find(k))
    return h;
  const handle source = held_.find({w->key, ""});
  handle h = hold(std::move(k), pack(source ? *source : materialise(*w)));
  if (!source)
    release_mapped(*w);
  return h;
}

int64_t weight_cache::bytes() const {
  int64_t sum = 0;
  held_.for_each([&](const tensor& t) { sum += t.bytes(); });
  return sum;
}

} // namespace troupe
