// Memory that was freed, and that the C library keeps.
#pragma once

namespace troupe {

/// Gives free pages of the heap back to the system, wherever they are; does nothing if the C library cannot.
/// Thread-safe. For whoever has freed many large blocks: small ones that come between keep glibc from using them again
/// and from giving them back.
void trim_heap();

} // namespace troupe
