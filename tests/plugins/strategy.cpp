// Strategy plug-ins for tests (tests/CMakeLists.txt): a library for each of these functions, chosen by `CHOOSE` and
// `SHARE`, and some whose description of themselves is wrong.
#include <troupe/strategy.hpp>

#include <stdexcept>

using namespace troupe;

namespace {

bool is_free(const strategy_replica& r) {
  return (r.flags & strategy_replica_free) != 0;
}

/// Pieces of at most two rows, to the last replica that is free.
[[maybe_unused]] int32_t last_free(void*, const strategy_stream* s, const strategy_offer* offer, strategy_answer* a) {
  for (uint32_t r = 0; r < s->replica_count; ++r)
    if (is_free(s->replicas[r]))
      a->replica = r;
  a->rows = offer->rows < 2 ? offer->rows : 2;
  return 0;
}

/// Counts its calls in the stream's state: every other time it wants to be asked again in a millisecond.
[[maybe_unused]] int32_t hesitates(void* state, const strategy_stream* s, const strategy_offer* o, strategy_answer* a) {
  auto& calls = *static_cast<int*>(state);
  if (++calls % 2 == 0)
    return last_free(state, s, o, a);
  a->wait_s = 1e-3;
  return 0;
}

[[maybe_unused]] int32_t throws(void*, const strategy_stream*, const strategy_offer*, strategy_answer*) {
  throw std::runtime_error("out of ideas");
}

[[maybe_unused]] int32_t reports(void*, const strategy_stream* s, const strategy_offer*, strategy_answer*) {
  s->report(s->context, "the moon is full");
  return 1;
}

[[maybe_unused]] int32_t gives_no_reason(void*, const strategy_stream*, const strategy_offer*, strategy_answer*) {
  return 7;
}

[[maybe_unused]] int32_t no_such_replica(void*, const strategy_stream* s, const strategy_offer*, strategy_answer* a) {
  a->replica = s->replica_count;
  return 0;
}

[[maybe_unused]] int32_t first_always(void*, const strategy_stream*, const strategy_offer*, strategy_answer* a) {
  a->replica = 0;
  return 0;
}

[[maybe_unused]] int32_t too_many_rows(void*, const strategy_stream*, const strategy_offer* o, strategy_answer* a) {
  a->replica = 0;
  a->rows = o->rows + 1;
  return 0;
}

[[maybe_unused]] int32_t never(void*, const strategy_stream*, const strategy_offer*, strategy_answer*) {
  return 0;
}

[[maybe_unused]] int32_t waits_backwards(void*, const strategy_stream*, const strategy_offer*, strategy_answer* a) {
  a->wait_s = -1;
  return 0;
}

/// All rows to the last replica that is there.
[[maybe_unused]] int32_t all_to_last(void*, const strategy_stream* s, int64_t rows, int64_t* shares) {
  for (uint32_t r = s->replica_count; r-- > 0;)
    if (s->replicas[r].flags & strategy_replica_living) {
      shares[r] = rows;
      return 0;
    }
  return 1;
}

[[maybe_unused]] int32_t forgets_one(void*, const strategy_stream*, int64_t rows, int64_t* shares) {
  shares[0] = rows - 1;
  return 0;
}

[[maybe_unused]] int32_t one_more(void*, const strategy_stream*, int64_t rows, int64_t* shares) {
  shares[0] = rows + 1;
  return 0;
}

[[maybe_unused]] int32_t all_to_first(void*, const strategy_stream*, int64_t rows, int64_t* shares) {
  shares[0] = rows;
  return 0;
}

void* open(uint32_t) {
  return new int(0);
}

void close(void* state) {
  delete static_cast<int*>(state);
}

} // namespace

extern "C" TROUPE_API const strategy_plugin* ENTRY() {
  static const strategy_plugin self{VERSION, CALLED, "for tests", open, close, CHOOSE, SHARE};
  return &self;
}
