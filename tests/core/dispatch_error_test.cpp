#include <doctest/doctest.h>
#include <zlink/dispatch_error.hpp>

#include <string>

namespace {

using zlink::dispatch_error;

TEST_CASE("X-162 a failure is told as one line: what happened, where, and why") {
  CHECK(zlink::to_string(dispatch_error{.reason = zlink::dispatch_reason::no_handler,
                                        .surface = "spot",
                                        .kind = "send",
                                        .mesh_name = "m",
                                        .spot_id = "cart/1",
                                        .subject = "cart.add",
                                        .text = "nobody serves it"})
        == "zlink: no_handler drop spot send mesh=m spot=cart/1 what=cart.add: nobody serves it");
  CHECK(zlink::to_string(dispatch_error{}) == "zlink: handler_exception drop");
}

TEST_CASE("X-162 names and causes from another node forge no second line and no control sequence") {
  const auto line = zlink::to_string(dispatch_error{
    .spot_id = "x\nzlink: all is well", .subject = "\x1b[2J\x7f", .text = std::string_view{"a\0b\r\n\xc3\xa4", 7}});
  CHECK(line
        == "zlink: handler_exception drop spot=x\\x0azlink: all is well what=\\x1b[2J\\x7f: a\\x00b\\x0d\\x0a\xc3\xa4");
}

TEST_CASE("X-162 what is no text is shown byte by byte") {
  CHECK(zlink::to_string(dispatch_error{.subject = "pr\xef.note \xc3\xa4"})
        == "zlink: handler_exception drop what=pr\\xef.note \\xc3\\xa4");
}

} // namespace
