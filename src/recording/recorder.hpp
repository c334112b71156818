// What happens to a session, as records. The session's shell tells it each event before the session machine hears of
// it, and each command. Not thread-safe.
#pragma once

#include "recording/record_file.hpp"
#include "run/session_machine.hpp"

namespace troupe::recording {

/// What a chunk is usually said to have made: a value of the binding's type and dims, where the plan wants it.
enum class made_form : uint8_t { on_host, on_device, on_both, otherwise };
/// A value's position among its chunk's downloads and its form, as one number of a record. Only values that are not on
/// the host alone are listed; `otherwise` has facts.
inline int64_t made_number(uint32_t position, made_form form) {
  return int64_t{position} * 4 + static_cast<int64_t>(form);
}
/// Returns what the number says, of any that is not negative.
inline std::pair<uint32_t, made_form> made_of(size_t number) {
  return {static_cast<uint32_t>(number / 4), static_cast<made_form>(number % 4)};
}

class recorder {
public:
  /// Of a session with these plans; file and memory as `record_writer` has them.
  recorder(std::filesystem::path file, const session_facts& session, size_t memory,
           std::shared_ptr<const session_plans> plans)
      : out_(std::move(file), session, memory), plans_(std::move(plans)) {}

  /// Returns accounts that answer as `accounts` do, and note what is unusual.
  ledger_accounts watch(ledger_accounts accounts);

  // -- events, before the machine hears of them
  void add(kind what, std::initializer_list<name> names, std::initializer_list<int64_t> numbers,
           std::initializer_list<std::string_view> texts = {});
  /// An event that may be a failure: its code is the last number.
  void add(kind what, std::initializer_list<name> names, std::initializer_list<int64_t> numbers, const failure& why);
  void add(const run_request_ptr& started);
  void add(const session_machine& of, const chunk_begun& begun);
  void add(const session_machine& of, const chunk_ended& ended);
  void add(const tensor_fetched& fetched);
  void add(uint64_t query, const named_tensors& inputs);
  void add(const device_info& joined);
  /// The session has thrown.
  void add_end(const failure& why);

  /// What the session asked for.
  void add(const std::vector<command>& asked);

private:
  class watched_account;

  /// A ledger has answered; `usual`: as it mostly does.
  void note_answer(bool usual, int64_t answer);
  void add_carried(const carried_values& carried);
  /// Adds inputs, whose names are the record's next texts. Returns how many.
  int64_t add_inputs(const named_tensors& inputs);
  void add_made(const session_machine& of, const chunk_place& place, const std::vector<uint32_t>* only);
  /// Ends the recording if a value cannot be told by facts; returns whether it goes on.
  bool goes_on_with(dtype type);
  void write();

  record_writer out_;
  const std::shared_ptr<const session_plans> plans_;
  record next_; // whose lists keep their memory
  bool over_ = false;
  uint32_t usual_answers_ = 0; // of ledgers since the last unusual one
  std::vector<std::shared_ptr<const std::vector<carried_pair>>> pairs_;
  std::map<uint64_t, run_request_ptr> runs_;                                              // not answered, by ticket
  std::deque<std::pair<uint64_t, std::weak_ptr<const std::vector<carried_value>>>> made_; // by the last runs that ended
};

} // namespace troupe::recording
