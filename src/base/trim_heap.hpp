// Memory that was freed, and that the C library keeps.
#pragma once

namespace troupe {

/// Gives free pages of the heap back to the system, wherever they are; does nothing if the C library cannot.
/// Thread-safe. For callers that have freed many large blocks: small ones between them keep glibc from using them again
/// and from giving them back.
void trim_heap();

} // namespace troupe
