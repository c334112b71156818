// Quantities with units, as SimGrid's platforms have them: "98.095Mf", "1.25GBps", "500us".
#pragma once

#include "schedules/xml_elements.hpp"

namespace troupe::sim {

// Each reads an attribute and throws `errc::invalid_argument`, naming the element, for what is no number, has another
// unit, or is too large. Without a unit it is the one that the comment says.

/// Operations a second (f), above 0. Of several, which are the processor's states, the one of number `state` counts.
double read_speed(const xml_element& e, std::string_view attribute, size_t state = 0);
/// Bytes a second (Bps), above 0.
double read_bandwidth(const xml_element& e, std::string_view attribute);
/// Seconds (s), at least 0; 0 if the attribute is not there.
double read_seconds(const xml_element& e, std::string_view attribute);

/// Returns the numbers of "0-3,7", in this order. Throws for more than `most`.
std::vector<int64_t> read_radical(const xml_element& e, std::string_view attribute, size_t most);

/// Returns a whole number from `least` to `most`, or `otherwise` if the attribute is not there.
int64_t read_count(const xml_element& e, std::string_view attribute, int64_t otherwise, int64_t least, int64_t most);

} // namespace troupe::sim
