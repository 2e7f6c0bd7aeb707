// Whom a certificate is for.
#pragma once

#include <string>

struct x509_st;

namespace zlink::detail {

/// The subject alternative names of a certificate as one text, "DNS:a,IP:192.0.2.1,URI:b", in the order of the bytes; empty
/// without one. Names with anything but printable ASCII are left out, and so are other kinds.
std::string alternative_names(const x509_st* certificate);

} // namespace zlink::detail
