// A strategy of one's own: wakes as few devices as the load needs.
//
// Rows go to the first replica, in the order of the devices, that takes one more piece. The next one is asked only if
// all that waits would keep the ones before it busy for more than three times what these rows take alone. So a little
// load stays on the first device and the others stay cold; `--strategy work-stealing`, for comparison, keeps all
// devices busy whatever the load.
//
// It has no state: troupe tells it all that it needs to know of a stream.
#include <troupe/strategy.hpp>

using namespace troupe;

namespace {

constexpr double patience = 3;

double seconds(const strategy_replica& r, int64_t rows) {
  return r.fixed_s + static_cast<double>(rows) * r.row_s;
}

int32_t choose(void*, const strategy_stream* stream, const strategy_offer* offer, strategy_answer* answer) {
  for (uint32_t r = 0; r < stream->replica_count; ++r) {
    const strategy_replica& replica = stream->replicas[r];
    if (!(replica.flags & strategy_replica_living))
      continue;
    if (replica.flags & strategy_replica_free) {
      answer->replica = r;
      return 0;
    }
    const double all_done = replica.busy_s + seconds(replica, replica.own_rows + stream->waiting_rows);
    if (all_done <= patience * seconds(replica, offer->rows))
      return 0; // it is free again soon enough: the rows wait for it
  }
  return 0;
}

} // namespace

extern "C" TROUPE_API const strategy_plugin* troupe_strategy() {
  static const strategy_plugin self{.abi_version = strategy_abi_version,
                                    .name = "my-strategy",
                                    .what = "wakes as few devices as the load needs",
                                    .open = nullptr,
                                    .close = nullptr,
                                    .choose = choose,
                                    .share = nullptr};
  return &self;
}
