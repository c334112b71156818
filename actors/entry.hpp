// The one entry of messages into an actor: what a handler throws ends here. CAF would end the actor, and all its
// callers with it, for what one of them asked; so the actor's state is told of the message and of the failure
// (`failed(message, why)`), and answers that caller.
#pragma once

#include "run/request.hpp"

#include <type_traits>
#include <utility>

namespace troupe::actors {

/// Makes handlers that do not throw, for the actor with this state.
template <class State>
class entry {
public:
  explicit entry(State& state) : state_(&state) {}

  /// `handler` takes one message and returns nothing.
  template <class Handler>
  auto operator()(Handler handler) const {
    return wrap(std::move(handler), &Handler::operator());
  }

private:
  template <class Handler, class Class, class Message>
  auto wrap(Handler handler, void (Class::*)(Message) const) const {
    return [state = state_, handler = std::move(handler)](Message message) {
      if (const failure why = capture([&] { handler(message); }); why.failed())
        state->failed(std::as_const(message), why);
    };
  }

  State* state_;
};

} // namespace troupe::actors
