// The questions of a session's process that a host has not answered yet. Thread-safe.
#pragma once

#include "remote/messages.hpp"

#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace troupe::remote {

template <class Question>
struct answer_of;
template <>
struct answer_of<ping> {
  using type = pong;
};
template <>
struct answer_of<fetch_kept> {
  using type = fetched;
};
template <>
struct answer_of<put_value> {
  using type = was_put;
};
template <>
struct answer_of<ask_stats> {
  using type = stats_told;
};
/// The message that answers one.
template <class Question>
using answer_to = typename answer_of<Question>::type;

/// See the top of this file.
class question_book {
public:
  /// Questions are sent over `to`.
  explicit question_book(link_ptr to) : link_(std::move(to)) {}

  /// Sends a question, whose number is made up, and returns the answer to come, or an `error` thrown. A host that
  /// answers by a message of another kind loses its link.
  template <class Question>
  std::future<answer_to<Question>> ask(Question question) {
    const auto promised = std::make_shared<std::promise<answer_to<Question>>>();
    ask(std::move(question), [promised](answer_to<Question>* told, const failure& why) {
      if (told)
        promised->set_value(std::move(*told));
      else
        promised->set_exception(std::make_exception_ptr(error(why.code, why.message)));
    });
    return promised->get_future();
  }
  /// The same with a callback, on the link's thread; `told` is null and `why` set if there is no answer.
  template <class Question, class Taken>
  void ask(Question question, Taken taken) {
    using answer = answer_to<Question>;
    question.request =
        expect({.fits = [](const message& m) { return std::holds_alternative<answer>(m); },
                .taken = [taken = std::move(taken)](
                             message* m, const failure& why) { taken(m ? &std::get<answer>(*m) : nullptr, why); }});
    link_->send(encode(std::move(question)));
  }

  /// Gives an answer to who waits for it, and passes over one to nothing. Throws `errc::invalid_input` if it is of
  /// another kind than the question wants.
  void answer(uint64_t request, message& m);
  /// Nothing is answered any more: `why` is told to all who wait, and to those who ask from now on.
  void end(const failure& why);

private:
  /// Who waits for an answer, and of what kind.
  struct asker {
    bool (*fits)(const message&) = nullptr;
    std::function<void(message*, const failure& why)> taken;
  };
  uint64_t expect(asker who);

  const link_ptr link_;
  std::mutex mutex_; // guards the rest; nothing is called under it
  std::optional<failure> ended_;
  uint64_t last_ = 0;
  std::unordered_map<uint64_t, asker> waiting_; // by number
};

} // namespace troupe::remote
