// Tensors as bytes on their way: within a message if they are short, else offered to be pulled.
#pragma once

#include "base/content_hasher.hpp"
#include "remote/messages.hpp"
#include "tensor/tensor_maker.hpp"

namespace troupe::remote {

/// Returns a tensor's bytes as a tensor of uint8; those of strings are counted strings, all others share memory with
/// `t`.
tensor to_blob(const tensor& t);

/// Returns the tensor that `to_blob` made a blob of; shares its memory, except for strings. Throws
/// `errc::invalid_input` if the bytes are not those of such a tensor.
tensor from_blob(dtype type, shape dims, const tensor& blob);

/// Makes keys that cannot be guessed. Thread-safe.
inline hash128 new_key() {
  return random_key();
}

/// Returns what shows for a challenge that has not been asked before that somebody has all bytes of a blob.
hash128 content_proof(const hash128& challenge, const tensor& blob);

/// Longest tensor that a message carries itself: no longer than the time of a piece.
inline constexpr int64_t message_bytes = int64_t{64} << 10;
/// Most bytes that the tensors of one message have together in it: half a frame, so that the rest fits, too.
inline constexpr int64_t inline_bytes = max_frame_bytes / 2;

/// Describes a tensor for the other end, which finds long ones in `offers` under `key`, and those for which the
/// message has no `room`.
sent_value describe(const tensor& t, const hash128& key, piece_source& offers, int64_t room = inline_bytes);

/// Fills a blob with the bytes that some other end offers under a key.
using pull_done = std::function<void(const failure&)>;
using puller_of = std::function<void(const hash128& key, tensor blob, pull_done done)>;
inline puller_of pulling_from(std::shared_ptr<piece_puller> puller) {
  return [p = std::move(puller)](const hash128& key, tensor blob, pull_done done) {
    p->pull(key, std::move(blob), std::move(done));
  };
}

/// Where the bytes of values come from, and who makes the memory that they come to.
struct value_source {
  puller_of pull;
  tensor_maker make = make_plain_tensor;
};

/// Pulls bytes and waits for them. Throws why they do not come.
void pull_and_wait(const puller_of& pull, const hash128& key, const tensor& to);

/// What a value must be; undefined and null for anything.
struct expected_value {
  dtype type = dtype::undefined;
  const shape* dims = nullptr;
};

/// Returns how many elements a value has. Throws `errc::invalid_input` unless its element type and dims are those that
/// are expected, and what `volume` throws.
int64_t checked_size(const sent_value& value, const expected_value& expected);

/// Makes the tensor that `value` describes and calls `done` with it, at once if it is in the message; else it is
/// pulled. Never throws: `done` is told what is wrong.
using value_taken = std::function<void(tensor, failure)>;
void take(sent_value value, const expected_value& expected, const value_source& from, const value_taken& done);

} // namespace troupe::remote
