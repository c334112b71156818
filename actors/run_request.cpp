#include "actors/run_request.hpp"

namespace troupe::actors {
namespace {

uint64_t next_ticket() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

} // namespace

run_request::run_request(named_tensors in, const run_options& how)
    : ticket(next_ticket()), inputs(std::move(in)), options(how), started(std::chrono::steady_clock::now()) {}

} // namespace troupe::actors
