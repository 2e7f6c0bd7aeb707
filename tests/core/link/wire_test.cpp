#include "zlink/codec.hpp"
#include "tests/core/link/decode_frame.hpp"
#include "zlink/messaging/wire.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <random>
#include <string>

using namespace zlink;
using namespace zlink::detail;

namespace {

bytes octets(std::initializer_list<int> values) {
  bytes all;
  for (int v : values)
    all.push_back(static_cast<std::byte>(v));
  return all;
}

std::string hex(byte_view from) {
  std::string text;
  for (auto b : from) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[static_cast<int>(b) >> 4];
    text += digits[static_cast<int>(b) & 15];
  }
  return text;
}

frame only(byte_view batch) {
  frame_reader in{batch};
  const auto f = in.next(1 << 20);
  CHECK(in.at_end());
  CHECK(f.size == batch.size());
  return f;
}

message_header full_header() {
  message_header h;
  h.target = target_kind::publish;
  h.target_id = "chat";
  h.topic = "news";
  h.operation = {0x1122334455667788, 0x99aabbccddeeff00};
  h.flow = "flow-1";
  h.fence = message_fence{{300}, {7}};
  h.instance_intent = true;
  h.activation = message_activation{"cart", "eu", {12}, {0xfeed}, "\x02n7\x03n-8"};
  h.reply_node = "n1";
  return h;
}

bytes full_message() {
  frame_buffer buffer;
  const auto metadata = octets({1, 1, 'k', 1, 'v'});
  begin_message(buffer, full_header(), {"cart.add", "text/x", metadata}, true, true);
  const auto payload = octets({0xde, 0xad});
  buffer.payload().insert(buffer.payload().end(), payload.begin(), payload.end());
  const auto frame = buffer.finish();
  set_message_times(frame, 0x0102030405060708, 2500);
  return {frame.begin(), frame.end()};
}

link_identity some_identity() {
  link_identity who;
  who.mesh = "eu";
  who.rid = "n1";
  who.lifecycle = {0xabc};
  who.revision = {9};
  who.role = object_role::server;
  who.channels = {{"chat", true, 10'000}, {"log", false, 0}};
  who.frame_limit = 1 << 20;
  who.window_bytes = 4'096'000;
  who.security_identity = "CN=n1";
  who.entry_spot_id = "n1-entry";
  return who;
}

/// Every kind of frame, each as a batch of its own.
std::vector<bytes> every_frame() {
  std::vector<bytes> all(12);
  append_hello(all[0], some_identity());
  append_hello_answer(all[1], {false, {3, true}, "no"});
  all[2] = full_message();
  append_reply(all[3], {.reply_route = 5, .kind = reply_kind::error,
                        .failure = error{error_kind::rejected, "why", {"errno", -2}},
                        .cause = failure_cause::reply_not_encodable});
  append_reply(all[4], {.reply_route = 5, .kind = reply_kind::cancelled});
  frame_buffer buffer;
  begin_reply(buffer, 6, "cart.view", json_content_type);
  buffer.payload().push_back(std::byte{1});
  const auto reply = buffer.finish();
  all[5].assign(reply.begin(), reply.end());
  append_control(all[6], 44, octets({1, 2, 3}));
  append_probe(all[7], 8, false);
  append_credit(all[8], {1 << 30, 5});
  append_credit_wanted(all[9]);
  append_pressure(all[10], {4, true});
  append_goodbye(all[11], "bye");
  return all;
}

/// Decodes what a session would decode. Throws `decode_error` or returns.
void decode_everything(byte_view batch) {
  frame_reader in{batch};
  while (!in.at_end())
    zlink::test::decode_frame(in.next(1 << 20));
}

} // namespace

TEST_CASE("L-182 D-15 a followed message says how often it was sent on, and nothing else does") {
  for (const auto target : {target_kind::spot, target_kind::actor})
    for (const std::uint8_t hops : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{8}}) {
      message_header header;
      header.target = target;
      header.target_id = "cart";
      header.operation = {1, 2};
      header.fence = message_fence{{300}, {7}, hops};
      frame_buffer buffer;
      begin_message(buffer, header, {"p", "text/x", {}}, false, false);
      const auto frame = buffer.finish();
      frame_reader reader{frame};
      const auto read = decode_message(reader.next(1000).body);
      CHECK(read.header == header);
    }
}

TEST_CASE("N-83 D-15 a message to one incarnation of an Actor says so, and needs the fence that names it") {
  message_header header;
  header.target = target_kind::actor;
  header.target_id = "ann";
  header.operation = {1, 2};
  header.fence = message_fence{{300}, {7}, 0, true};
  frame_buffer buffer;
  begin_message(buffer, header, {"p", "text/x", {}}, false, false);
  const auto frame = buffer.finish();
  frame_reader reader{frame};
  CHECK(decode_message(reader.next(1000).body).header == header);
  auto without = frame;
  without[3] = without[3] & std::byte{0xef}; // kind and flags; no fence
  frame_reader again{without};
  CHECK_THROWS_AS(decode_message(again.next(1000).body), decode_error);
}

TEST_CASE("D-15 the bytes of protocol version 1 do not change") {
  frame_buffer buffer;
  message_header h;
  h.target_id = "s";
  h.operation = {1, 2};
  begin_message(buffer, h, {"p", binary_content_type, {}}, false, false);
  buffer.payload().push_back(std::byte{0x2a});
  // length, type, flags | kind, id, operation | content type, packet name, payload
  CHECK(hex(buffer.finish()) == "19" "03" "00" "00" "0173" "0100000000000000" "0200000000000000" "01" "0170" "2a");
  CHECK(hex(full_message())
        == "68" "03" "07" "0807060504030201" "c4090000"
           "fc" "0463686174" "046e657773" "8877665544332211" "00ffeeddccbbaa99" "06666c6f772d31" "ac02" "07"
           "0463617274" "026575" "0c" "edfe000000000000" "07026e37036e2d38" "026e31"
           "00" "06746578742f78" "08636172742e616464" "05" "01016b0176" "dead");
  bytes probe;
  append_probe(probe, 258, true);
  CHECK(hex(probe) == "0907" "0201000000000000");
  bytes credit;
  append_credit(credit, {300, 1});
  CHECK(hex(credit) == "0408" "ac02" "01");
  bytes failure;
  append_reply(failure, {.reply_route = 1, .kind = reply_kind::error, .failure = error{error_kind::rejected, "no"}});
  CHECK(hex(failure) == "1004" "0100000000000000" "02" "04" "00" "026e6f" "00");
}

TEST_CASE("S-58 D-14 every frame comes back as it was") {
  const auto message = full_message();
  const auto m = decode_message(only(message).body);
  CHECK(m.header == full_header());
  CHECK(m.request);
  CHECK(m.reply_route == 0x0102030405060708);
  CHECK(m.remaining_ms == 2500u);
  CHECK(m.body.packet_name == "cart.add");
  CHECK(m.body.content_type == "text/x");
  CHECK(hex(m.body.metadata) == "01016b0176");
  CHECK(hex(m.payload) == "dead");

  const auto all = every_frame();
  CHECK(decode_hello(only(all[0]).body).identity == some_identity());
  const auto answer = decode_hello_answer(only(all[1]).body);
  CHECK_FALSE(answer.admitted);
  CHECK(answer.pressure.sequence == 3);
  CHECK(answer.pressure.paused);
  CHECK(answer.reason == "no");
  const auto failed = decode_reply_frame(only(all[3]).body);
  CHECK(failed.failure->kind() == error_kind::rejected);
  CHECK(failed.failure->code() == error::platform_code{"errno", -2});
  CHECK(failed.cause == failure_cause::reply_not_encodable);
  CHECK(decode_reply_frame(only(all[4]).body).kind == reply_kind::cancelled);
  const auto reply = decode_reply_frame(only(all[5]).body);
  CHECK(reply.packet_name == "cart.view");
  CHECK(reply.content_type == json_content_type);
  CHECK(reply.payload.size() == 1);
  CHECK(decode_control(only(all[6]).body).command == 44);
  CHECK(decode_control(only(all[6]).body).payload.size() == 3);
  CHECK(decode_probe(only(all[7]).body) == 8);
  CHECK(decode_credit(only(all[8]).body) == credit_frame{1 << 30, 5});
  CHECK(decode_pressure(only(all[10]).body).sequence == 4);
  CHECK(decode_goodbye(only(all[11]).body) == "bye");
}

TEST_CASE("D-15 a header encoded before gives the same frame, and payloads of any length fit the length prefix") {
  for (std::size_t size : {0u, 1u, 90u, 127u, 128u, 16'000u, 20'000u, 3'000'000u}) {
    frame_buffer one;
    frame_buffer two;
    begin_message(one, full_header(), {"p", "text/x", {}}, true, false);
    begin_message(two, byte_view{encode_message_header(full_header())}, {"p", "text/x", {}}, true, false);
    for (auto* buffer : {&one, &two})
      buffer->payload().resize(buffer->payload().size() + size, std::byte{7});
    const auto first = one.finish();
    const auto second = two.finish();
    set_message_times(first, 9, 0);
    set_message_times(second, 9, 0);
    CHECK(std::ranges::equal(first, second));
    frame_reader in{first};
    CHECK(decode_message(in.next(4'000'000).body).payload.size() == size);
    CHECK(in.at_end());
  }
}

TEST_CASE("D-15 many frames in one batch are cut apart, and one above the limit is not") {
  bytes batch;
  for (const auto& f : every_frame())
    batch.insert(batch.end(), f.begin(), f.end());
  frame_reader in{batch};
  for (int i = 0; i < 12; ++i)
    in.next(1 << 20);
  CHECK(in.at_end());
  frame_reader small{batch};
  CHECK_THROWS_AS(small.next(10), decode_error);
  for (const auto& bad :
       {octets({0}), octets({5, 1}), octets({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}),
        octets({0x80, 0x80, 0x80, 0x80, 0x10, 1, 2})}) {
    frame_reader broken{bad};
    CHECK_THROWS_AS(broken.next(~std::uint64_t{0}), decode_error);
  }
}

TEST_CASE("D-15 every truncation of every body is refused, except where a payload is just shorter") {
  for (const auto& whole : every_frame()) {
    const auto f = only(whole);
    for (std::size_t size = 0; size < f.body.size(); ++size) {
      const bytes copy{f.body.begin(), f.body.begin() + static_cast<std::ptrdiff_t>(size)}; // asan sees reads behind it
      const byte_view cut{copy};
      switch (f.type) {
        case frame_type::hello: CHECK_THROWS_AS(decode_hello(cut), decode_error); break;
        case frame_type::hello_answer: CHECK_THROWS_AS(decode_hello_answer(cut), decode_error); break;
        case frame_type::message:
          if (size + 2 < f.body.size())
            CHECK_THROWS_AS(decode_message(cut), decode_error);
          break;
        case frame_type::reply:
          if (size + 1 < f.body.size())
            CHECK_THROWS_AS(decode_reply_frame(cut), decode_error);
          break;
        case frame_type::control:
          if (size < 2)
            CHECK_THROWS_AS(decode_control(cut), decode_error);
          break;
        case frame_type::probe: CHECK_THROWS_AS(decode_probe(cut), decode_error); break;
        case frame_type::credit: CHECK_THROWS_AS(decode_credit(cut), decode_error); break;
        case frame_type::pressure: CHECK_THROWS_AS(decode_pressure(cut), decode_error); break;
        case frame_type::goodbye: CHECK_THROWS_AS(decode_goodbye(cut), decode_error); break;
        default: break;
      }
    }
  }
}

TEST_CASE("D-15 C-41 a damaged list of nodes without room is refused") {
  for (const std::string_view list : {"\x02n", "n7", "\x02n7\x01", "\x02\xff\xfe"}) {
    auto header = full_header();
    header.activation->refused = list;
    frame_buffer buffer;
    begin_message(buffer, header, {"p", "text/x", {}}, false, false);
    const auto made = buffer.finish();
    CHECK_THROWS_AS(decode_message(only(made).body), decode_error);
  }
}

TEST_CASE("D-15 M-132 values that no encoder writes are refused") {
  auto message = full_message();
  const auto refused = [&](std::size_t at, int value) {
    auto changed = message;
    changed[at] = static_cast<std::byte>(value);
    CHECK_THROWS_AS(decode_message(byte_view{changed}.subspan(2)), decode_error);
  };
  refused(2, 0x0f);  // unknown flag
  refused(15, 0xfd); // followed, and by nobody
  refused(16, 0);    // empty target id
  refused(17, 0xff); // not UTF-8
  auto zero_route = message;
  std::fill_n(zero_route.begin() + 3, 8, std::byte{0});
  CHECK_THROWS_AS(decode_message(byte_view{zero_route}.subspan(2)), decode_error);
  auto zero_operation = message;
  std::fill_n(zero_operation.begin() + 26, 16, std::byte{0});
  CHECK_THROWS_AS(decode_message(byte_view{zero_operation}.subspan(2)), decode_error);
  bytes probe;
  append_probe(probe, 0, false);
  CHECK_THROWS_AS(decode_probe(only(probe).body), decode_error);
  bytes weight;
  auto who = some_identity();
  who.channels[0].weight = 10'001;
  append_hello(weight, who);
  CHECK_THROWS_AS(decode_hello(only(weight).body), decode_error);
}

TEST_CASE("D-14 texts of errors and reasons are cut at a character, not inside one") {
  bytes reply;
  std::string text(65'535, 'x');
  text += "\xc3\xa9\xc3\xa9";
  append_reply(reply, {.reply_route = 1, .kind = reply_kind::error, .failure = error{error_kind::rejected, text}});
  CHECK(decode_reply_frame(only(reply).body).failure->message() == std::string(65'535, 'x'));
  bytes goodbye;
  std::string farewell(1023, 'x');
  farewell += "\xc3\xa9";
  append_goodbye(goodbye, farewell);
  CHECK(decode_goodbye(only(goodbye).body).size() == 1023);
}

TEST_CASE("D-15 200,000 mutated batches end in a value or in decode_error") {
  std::mt19937_64 random{7};
  const auto all = every_frame();
  int refused = 0;
  for (int round = 0; round < 200'000; ++round) {
    bytes batch = all[random() % all.size()];
    if (random() % 2 == 0) {
      const auto& second = all[random() % all.size()];
      batch.insert(batch.end(), second.begin(), second.end());
    }
    for (auto changes = 1 + random() % 4; changes != 0; --changes) {
      const auto at = random() % batch.size();
      switch (random() % 4) {
        case 0: batch[at] = static_cast<std::byte>(random()); break;
        case 1: batch[at] ^= static_cast<std::byte>(1 << random() % 8); break;
        case 2: batch.erase(batch.begin() + static_cast<std::ptrdiff_t>(at)); break;
        default: batch.insert(batch.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::byte>(random())); break;
      }
      if (batch.empty())
        batch.push_back(std::byte{0});
    }
    batch.shrink_to_fit();
    try {
      decode_everything(batch);
    } catch (const decode_error&) {
      ++refused;
    }
  }
  CHECK(refused > 50'000);
  CHECK(refused < 200'000);
}
