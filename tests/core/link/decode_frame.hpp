// What a session would make of a frame.
#pragma once

#include "zlink/messaging/wire.hpp"

namespace zlink::test {

/// Throws `decode_error` or returns.
inline void decode_frame(const detail::frame& f) {
  using namespace detail;
  switch (f.type) {
    case frame_type::hello: decode_hello(f.body); break;
    case frame_type::hello_answer: decode_hello_answer(f.body); break;
    case frame_type::message: decode_message(f.body); break;
    case frame_type::reply: decode_reply_frame(f.body); break;
    case frame_type::control: decode_control(f.body); break;
    case frame_type::probe:
    case frame_type::probe_answer: decode_probe(f.body); break;
    case frame_type::credit: decode_credit(f.body); break;
    case frame_type::pressure: decode_pressure(f.body); break;
    case frame_type::goodbye: decode_goodbye(f.body); break;
    default: break;
  }
}

} // namespace zlink::test
