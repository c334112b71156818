#include "recording/record_reader.hpp"

#include "wire/facts.hpp"

namespace troupe::recording {

record record_reader::take() {
  record taken = std::move(next_).value();
  read();
  return taken;
}

void record_reader::read() {
  next_.reset();
  ++number_;
  if (in_.left() > 0)
    get(in_, next_.emplace());
}

failure fields::why() {
  failure f{.code = static_cast<errc>(number()), .message = {}};
  if (!wire::is_enumerator(f.code))
    malformed();
  if (has_texts())
    f.message = text();
  return f;
}

void fields::malformed() const {
  fail(errc::invalid_input, "the record '{}' is malformed", to_text(r_));
}

} // namespace troupe::recording
