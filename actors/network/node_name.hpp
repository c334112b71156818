// How a node is named. A name that others can foresee could be taken before its owner comes; so it holds a number
// that no other member foresees, and a hash of that and of the owner's certificate, by which the called member sees
// that the name belongs to the certificate.
#pragma once

#include <caf/node_id.hpp>

#include <string>

namespace troupe::actors {

/// Returns a new name for the owner of a certificate, given by its hash (`channel::peer`); without TLS it is empty.
caf::node_id make_node_name(const std::string& certificate);

/// Whether a node of this name may belong to the owner of the certificate. Names of CAF's own making, which other
/// versions of troupe have, belong to the first node that uses them.
bool may_be_named(const caf::node_id& name, const std::string& certificate);

} // namespace troupe::actors
