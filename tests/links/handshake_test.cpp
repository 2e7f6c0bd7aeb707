#include "adapters/tcp/handshake.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace zlink;
using namespace zlink::detail;

namespace {

using side = handshake::side;

handshake_nonce nonce_of(int number) {
  handshake_nonce made;
  made.fill(static_cast<std::byte>(number));
  return made;
}

handshake_settings settings_of(std::string mesh, std::string secret = {}) { return {std::move(mesh), std::move(secret)}; }

/// Both ends of a handshake, and the messages as they went.
struct pair {
  handshake_settings ours;
  handshake_settings theirs;
  handshake dialling{side::dialling, ours, nonce_of(1), {}};
  handshake listening{side::listening, theirs, nonce_of(2), {}};
  std::vector<bytes> sent{}; ///< from the dialling end: 0 and 2; from the listening one: 1 and 3
  handshake::step last{};    ///< of who had the last word
  handshake::step before{};

  void run() {
    sent.push_back(dialling.begin());
    for (bool to_listening = true; !sent.back().empty(); to_listening = !to_listening) {
      before = std::exchange(last, (to_listening ? listening : dialling).on_message(sent.back()));
      if (last.answer.empty())
        return;
      sent.push_back(last.answer);
    }
  }
  bool both_admitted() const { return before.admitted && last.admitted; }
};


const std::string secret = "the mesh's shared secret";

} // namespace

TEST_CASE("two ends of one mesh admit each other, with and without a secret") {
  for (const auto& known : {std::string{}, secret}) {
    pair made{settings_of("m", known), settings_of("m", known)};
    made.run();
    CHECK(made.both_admitted());
    CHECK(made.sent.size() == 4);
    for (const auto& message : made.sent)
      CHECK(message.size() <= handshake_message_limit);
  }
}

TEST_CASE("another mesh, and another or no secret, are refused by name at both ends") {
  const auto check = [](handshake_settings ours, handshake_settings theirs, refusal why) {
    pair made{std::move(ours), std::move(theirs)};
    made.run();
    CHECK(made.before.refused == why); // the listening end
    CHECK(made.last.refused == refusal::refused_here);
    CHECK(made.last.told == why);
    CHECK_FALSE(made.both_admitted());
  };
  check(settings_of("m", secret), settings_of("n", secret), refusal::mesh);
  check(settings_of("m", secret), settings_of("m", "another secret of the mesh"), refusal::secret);
  check(settings_of("m"), settings_of("m", secret), refusal::secret);
  check(settings_of("m", secret), settings_of("m"), refusal::secret);
}

TEST_CASE("another version is refused in words that every version understands") {
  const auto settings = settings_of("m", secret);
  handshake listening{side::listening, settings, nonce_of(2), {}};
  auto hello = handshake{side::dialling, settings, nonce_of(1), {}}.begin();
  hello[4] = std::byte{2};
  hello.resize(5); // the rest is that version's own matter
  const auto step = listening.on_message(hello);
  CHECK(step.refused == refusal::version);
  handshake dialling{side::dialling, settings, nonce_of(1), {}};
  dialling.begin();
  CHECK(dialling.on_message(step.answer).told == refusal::version);
}

TEST_CASE("an end without the secret gets nothing made with it") {
  const auto known = settings_of("m", secret);
  handshake listening{side::listening, known, nonce_of(2), {}};
  const auto hello = listening.on_message(handshake{side::dialling, known, nonce_of(1), {}}.begin());
  REQUIRE(hello.refused == refusal::none);
  for (const auto& guess : {bytes{}, bytes(33), hello.answer}) {
    handshake again{side::listening, known, nonce_of(2), {}};
    again.on_message(handshake{side::dialling, known, nonce_of(1), {}}.begin());
    CHECK(again.on_message(guess).answer.size() <= 2);
  }
}

TEST_CASE("a listening end that echoes what it hears is not believed") {
  const auto known = settings_of("m", secret);
  handshake dialling{side::dialling, known, nonce_of(1), {}};
  CHECK(dialling.on_message(dialling.begin()).refused == refusal::secret);
}

TEST_CASE("the proof belongs to the protected channel that it was made on") {
  const auto known = settings_of("m", secret);
  handshake_mac here{};
  here.fill(std::byte{1});
  handshake dialling{side::dialling, known, nonce_of(1), here};
  handshake listening{side::listening, known, nonce_of(2), {}};
  const auto proof = dialling.on_message(listening.on_message(dialling.begin()).answer);
  CHECK(listening.on_message(proof.answer).refused == refusal::secret);
}

TEST_CASE("every truncation and every changed bit of a recorded handshake is refused, by whoever notices") {
  for (const auto& known : {std::string{}, secret}) {
    pair recorded{settings_of("m", known), settings_of("m", known)};
    recorded.run();
    REQUIRE(recorded.sent.size() == 4);
    const auto replay = [&](std::size_t changed, const bytes& instead) {
      const auto settings = settings_of("m", known);
      handshake dialling{side::dialling, settings, nonce_of(1), {}};
      handshake listening{side::listening, settings, nonce_of(2), {}};
      dialling.begin();
      bool fine = true;
      bytes message = changed == 0 ? instead : recorded.sent[0];
      for (std::size_t i = 0; i < 4 && fine; ++i) {
        const auto step = (i % 2 == 0 ? listening : dialling).on_message(message);
        fine = step.refused == refusal::none;
        message = changed == i + 1 ? instead : step.answer;
      }
      return fine;
    };
    CHECK(replay(9, {}));
    for (std::size_t which = 0; which < 4; ++which) {
      const auto& whole = recorded.sent[which];
      for (std::size_t length = 0; length < whole.size(); ++length)
        CHECK_FALSE(replay(which, bytes{whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}));
      for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
        auto other = whole;
        other[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        const bool only_a_nonce = known.empty() && which < 2 && bit / 8 >= 6 && bit / 8 < 38; // nothing is proved with it
        CHECK(replay(which, other) == only_a_nonce);
      }
    }
  }
}
