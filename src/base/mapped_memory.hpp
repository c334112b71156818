// Which addresses are mapped, read-only files: only there may pages be given back to the system without losing bytes.
// A function that maps a file notes it here. Thread-safe.
#pragma once

#include <cstddef>

namespace troupe {

/// States that [begin, begin + size) is a private, read-only mapping of a file.
void note_mapped_file(const void* begin, size_t size);

/// States that the mapping at `begin` is about to end.
void forget_mapped_file(const void* begin);

/// Lets the system drop the whole pages inside [data, data + size) if they are in a noted mapping; reading them again
/// brings them back from the file. Does nothing for other memory.
void release_mapped_pages(const void* data, size_t size);

} // namespace troupe
