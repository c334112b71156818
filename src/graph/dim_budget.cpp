#include "graph/dim_budget.hpp"

#include "base/error.hpp"

#include <utility>

namespace troupe {
namespace {

thread_local dim_budget* current = nullptr;

} // namespace

dim_budget::dim_budget(int64_t characters) : left_(characters), enclosing_(std::exchange(current, this)) {}

dim_budget::~dim_budget() {
  current = enclosing_;
}

void dim_budget::spend(int64_t characters) {
  if (current && (current->left_ -= characters) < 0)
    fail(errc::unsupported,
         "the model's symbolic dims are too large: their expressions take more than is allowed for a "
         "model of this size; give its inputs fixed dims");
}

} // namespace troupe
