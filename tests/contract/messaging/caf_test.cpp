// Spots and CAF: behaviours, promises, delegates, errors, and the actor that a Spot is to CAF (D-13, D-14, D-16).
#include "tests/contract/messaging/forged_peer.hpp"
#include "zlink/caf/caf_reply.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/response_promise.hpp>
#include <caf/send.hpp>
#include <caf/typed_response_promise.hpp>

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;
using add_atom = caf::atom_constant<caf::atom("add")>;
using pair_atom = caf::atom_constant<caf::atom("pair")>;

struct promise_me {
  int unused = 0;
};
struct keep_promise {
  int unused = 0;
};
struct delegate_me {
  std::string text;
};
struct refuse_me {
  int unused = 0;
};
struct promise_twice {
  int unused = 0;
};
ZLINK_PACKET(refuse_me, "probe.refuse_me", unused)
ZLINK_PACKET(promise_twice, "probe.promise_twice", unused)
ZLINK_PACKET(promise_me, "probe.promise_me", unused)
ZLINK_PACKET(keep_promise, "probe.keep_promise", unused)
ZLINK_PACKET(delegate_me, "probe.delegate_me", text)

/// A CAF actor turned Spot.
class legacy final : public instance_spot {
public:
  explicit legacy(instance_spot_context context) : instance_spot(std::move(context)) {}
  void configure() override { context().handlers().add_packet<&legacy::on_describe>(); }
  caf::behavior make_behavior() override {
    self();
    return {
      [](const ask& m) { return answer{m.text + "!"}; },
      [](const describe&) { return answer{"the behaviour"}; },
      [this](add_atom, int a, int b) {
        sum_ += a + b;
        return sum_;
      },
      [](pair_atom, const std::string& text) -> caf::result<int, std::string> { return {7, text}; },
      [](int) -> caf::result<int> { return caf::make_error(caf::sec::invalid_argument, std::string{"no number"}); },
      [](const refuse_me&) -> caf::result<answer> { return caf::make_error(caf::sec::bad_function_call); },
      [this](const promise_twice&) {
        auto promise = self()->make_response_promise();
        promise.deliver(answer{"first"});
        auto again = promise;
        again.deliver(answer{"second"});
        again.deliver(caf::make_error(caf::sec::bad_function_call));
        return promise;
      },
      [this](const promise_me&) {
        promise_ = self()->make_response_promise<answer>();
        return promise_;
      },
      [this](const keep_promise&) { promise_.deliver(answer{"kept"}); },
      [this](const delegate_me& m) {
        auto worker =
          self()->spawn([] { return caf::behavior{[](const ask& a) { return answer{"worker " + a.text}; }}; });
        return self()->delegate(worker, ask{m.text});
      },
      [](const fault&) -> answer { throw std::runtime_error{"a fault of the application"}; },
    };
  }

private:
  answer on_describe(const describe&, const message_context&) { return answer{"the handler"}; }
  int sum_ = 0;
  caf::typed_response_promise<answer> promise_;
};

void serve_legacy(host& started, std::size_t index) {
  auto& node = started.add_mesh("m");
  node.object_server().add_instance_spot_factory<legacy>("legacy", [](auto& factory) { factory.disable_relocation(); });
  if (index != 0)
    node.placement_weight(0);
}

template <class... R>
struct caf_end {
  std::optional<std::tuple<R...>> value;
  std::optional<caf::error> failure;
  bool ended() const { return value || failure; }
};

/// A CAF actor asks; the mesh runs until it has its answer.
template <class... R, class... Ts>
caf_end<R...> caf_ask(mesh& net, caf::actor target, Ts... values) {
  auto end = std::make_shared<caf_end<R...>>();
  net.system().spawn([=](caf::event_based_actor* self) {
    self->request(target, caf::infinite, values...)
      .then([end](const R&... r) { end->value.emplace(r...); }, [end](const caf::error& e) { end->failure = e; });
  });
  net.run_until([end] { return end->ended(); });
  return *end;
}

caf::actor handle_at(mesh& net, std::size_t from) {
  return net.host(from).spot_actor("c", {.instance_spot = "legacy"});
}

TEST_CASE("D-13 a behaviour serves CAF callers and ZLink callers, near and far, one value or several") {
  mesh net{2};
  net.start(serve_legacy);
  int sum = 0;
  for (std::size_t from : {1, 0}) {
    const auto handle = handle_at(net, from);
    const auto asked = caf_ask<answer>(net, handle, ask{"caf"});
    REQUIRE(asked.value.has_value());
    CHECK(std::get<0>(*asked.value).text == "caf!");
    CHECK(net.run(net.host(from).spots().request_to_spot("c", ask{"zlink"}).submit<answer>()).text == "zlink!");
    const auto added = caf_ask<int>(net, handle, add_atom::value, 2, 3);
    sum += 5;
    REQUIRE(added.value.has_value());
    CHECK(std::get<0>(*added.value) == sum);
    const auto pair = caf_ask<int, std::string>(net, handle, pair_atom::value, std::string{"text"});
    REQUIRE(pair.value.has_value());
    CHECK(*pair.value == std::tuple{7, std::string{"text"}});
    caf::anon_send(handle, add_atom::value, 10, 0); // one-way
    net.run_until_idle();
    sum += 10;
    CHECK(std::get<0>(*caf_ask<int>(net, handle, add_atom::value, 0, 0).value) == sum);
  }
}

TEST_CASE("D-13 a CAF message of several values wakes a Spot, near and far") {
  for (std::size_t from : {1, 0}) {
    mesh net{2};
    net.start(serve_legacy);
    const auto added = caf_ask<int>(net, handle_at(net, from), add_atom::value, 2, 3);
    REQUIRE(added.value.has_value());
    CHECK(std::get<0>(*added.value) == 5);
  }
}

TEST_CASE("D-14 a caf::error reaches a CAF caller unchanged and a ZLink caller as internal_failure with its code") {
  mesh net{2};
  net.start(serve_legacy);
  for (std::size_t from : {1, 0}) {
    const auto refused = caf_ask<answer>(net, handle_at(net, from), refuse_me{});
    REQUIRE(refused.failure.has_value());
    CHECK(*refused.failure == caf::make_error(caf::sec::bad_function_call));
    const auto with_context = caf_ask<int>(net, handle_at(net, from), 5);
    REQUIRE(with_context.failure.has_value());
    CHECK(*with_context.failure == caf::sec::invalid_argument);
    REQUIRE(with_context.failure->context().match_elements<std::string>());
    CHECK(with_context.failure->context().get_as<std::string>(0) == "no number");
    const auto ended = net.run(as_result(net.host(from).spots().request_to_spot("c", refuse_me{}).submit<answer>()));
    REQUIRE(kind_of(ended) == error_kind::internal_failure);
    REQUIRE(ended.error().code().has_value());
    CHECK(ended.error().code()->category == "caf.system");
    CHECK(ended.error().code()->value == static_cast<int>(caf::sec::bad_function_call));
    const auto empty = net.run(as_result(net.host(from).spots().request_to_spot("c", refuse_me{}).submit<void>()));
    CHECK(kind_of(empty) == error_kind::internal_failure);
  }
}

TEST_CASE("M-140 a handler answers once: what a promise is told afterwards is refused here and sent nowhere") {
  mesh net{2};
  net.start(serve_legacy);
  for (std::size_t from : {1, 0}) {
    const auto spots = net.host(from).spots();
    int ends = 0;
    std::string text;
    spots.request_to_spot("c", promise_twice{}).instance_spot("legacy").submit<answer>().then([&](result<answer> end) {
      ++ends;
      text = end ? end->text : to_string(end.error().kind());
    });
    net.run_until_idle();
    CHECK(ends == 1);
    CHECK(text == "first");
    const auto asked = caf_ask<answer>(net, handle_at(net, from), promise_twice{});
    REQUIRE(asked.value.has_value());
    CHECK(std::get<0>(*asked.value).text == "first");
    for (std::size_t host : {0, 1})
      CHECK(dropped_at(net, host, detail::drop_reason::late_reply) == 0);
    const auto link = node_at(net, 1).links->ready_link(node_at(net, 0).rid());
    REQUIRE(link);
    CHECK(link->counters().unmatched_replies.load() == 0);
  }
}

TEST_CASE("D-13 a packet that both serve goes to the handler of configure()") {
  mesh net{2};
  net.start(serve_legacy);
  for (std::size_t from : {1, 0}) {
    const auto asked = caf_ask<answer>(net, handle_at(net, from), describe{});
    REQUIRE(asked.value.has_value());
    CHECK(std::get<0>(*asked.value).text == "the handler");
  }
}

TEST_CASE("D-13 a response promise of self() answers later, a delegate by another actor") {
  mesh net{2};
  net.start(serve_legacy);
  for (std::size_t from : {1, 0}) {
    const auto spots = net.host(from).spots();
    auto promised = spots.request_to_spot("c", promise_me{}).instance_spot("legacy").submit<answer>();
    net.run_until_idle();
    CHECK_FALSE(promised.ready());
    CHECK(net.run(spots.request_to_spot("c", ask{"between"}).submit<answer>()).text == "between!");
    net.run(spots.send_to_spot("c", keep_promise{}).submit());
    CHECK(net.run(std::move(promised)).text == "kept");
    CHECK(net.run(spots.request_to_spot("c", delegate_me{"x"}).submit<answer>()).text == "worker x");
    const auto delegated = caf_ask<answer>(net, handle_at(net, from), delegate_me{"y"});
    REQUIRE(delegated.value.has_value());
    CHECK(std::get<0>(*delegated.value).text == "worker y");
  }
}

TEST_CASE("D-14 a failure of ours is an error of our category for CAF") {
  mesh net{2};
  net.start(serve_legacy);
  const auto code_of = [&net](caf::actor target, auto request) {
    const auto end = caf_ask<answer>(net, target, request);
    REQUIRE(end.failure.has_value());
    CHECK(end.failure->category() == caf_error_category);
    return static_cast<int>(end.failure->code()) - 1;
  };
  for (std::size_t from : {1, 0}) {
    CHECK(code_of(net.host(from).spot_actor("nobody"), ask{}) == static_cast<int>(error_kind::not_found));
    CHECK(code_of(handle_at(net, from), fault{}) == static_cast<int>(error_kind::internal_failure));
    CHECK(code_of(handle_at(net, from), unserved{}) == static_cast<int>(error_kind::not_found));
    CHECK(net.run(net.host(from).spots().request_to_spot("c", ask{"alive"}).submit<answer>()).text == "alive!");
  }
}

class talker final : public instance_spot {
public:
  using instance_spot::instance_spot;
  caf::behavior make_behavior() override {
    return {
      [this](const ask&) {
        self()->send(peer, std::string{"hello"});
        return answer{"said"};
      },
      [this](int heard) {
        heard_.push_back(heard);
        return static_cast<int>(heard_.size());
      },
    };
  }
  static inline caf::actor peer;

private:
  std::vector<int> heard_;
};

TEST_CASE("D-16 self() is the sender of what a Spot sends; answers to it run in the Spot; it ends with the Spot") {
  mesh net{1};
  net.start([](host& started) {
    auto& node = started.add_mesh("m");
    node.instance_spot_idle_timeout(5s);
    node.object_server().add_instance_spot_factory<talker>("talker",
                                                           [](auto& factory) { factory.disable_relocation(); });
  });
  struct seen {
    std::string greeting;
    int count = 0;
    bool down = false;
  };
  auto what = std::make_shared<seen>();
  talker::peer = net.system().spawn([what](caf::event_based_actor* self) -> caf::behavior {
    self->set_down_handler([what, self](const caf::down_msg&) {
      what->down = true;
      self->quit();
    });
    return {[what, self](const std::string& text) {
      what->greeting = text;
      auto spot = caf::actor_cast<caf::actor>(self->current_sender());
      self->monitor(spot);
      self->send(spot, 1);
      self->request(spot, caf::infinite, 2).then([what](int count) { what->count = count; });
    }};
  });
  net.run(net.host(0).spots().request_to_spot("t", ask{}).instance_spot("talker").submit<answer>());
  net.run_until_idle();
  CHECK(what->greeting == "hello");
  CHECK(what->count == 2);
  CHECK_FALSE(what->down);
  net.advance(20s); // evicted
  CHECK(what->down);
  talker::peer = nullptr;
}

} // namespace
} // namespace zlink::test::messaging
