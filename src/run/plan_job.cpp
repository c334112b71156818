#include "run/plan_job.hpp"

namespace troupe {

void plan_outcome::check() const {
  if (shortage)
    throw *shortage;
  if (why.failed())
    throw error(why.code, why.message);
}

void plan_outcome::add(const plan_job& job, const failure& made) {
  plan_made |= job.makes == plan_level::plan;
  bound_plan_made |= job.makes == plan_level::bound_plan;
  why = made;
  if (!why.failed())
    why = capture([&] {
      try {
        job.keep();
      } catch (const memory_shortage& e) {
        shortage = e;
      }
    });
}

} // namespace troupe
