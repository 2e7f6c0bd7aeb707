// Asking CAF actors from coroutine handlers.
#include <doctest/doctest.h>

#include <zlink/testing/mesh.hpp>
#include <zlink/zlink.hpp>

#include <caf/event_based_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <chrono>
#include <string>

namespace {

using namespace std::chrono_literals;

struct double_it {
  int n = 0;
};
struct doubled {
  int n = 0;
};
struct failure {
  std::string kind;
  std::string code;
};
struct fail_with {
  int how = 0;
};
ZLINK_PACKET(double_it, "ask.double_it", n)
ZLINK_PACKET(doubled, "ask.doubled", n)
ZLINK_PACKET(failure, "ask.failure", kind, code)
ZLINK_PACKET(fail_with, "ask.fail_with", how)

caf::behavior helper(caf::event_based_actor* self) {
  return {
    [](int n) { return 2 * n; },
    [](double) -> caf::result<int> { return caf::make_error(caf::sec::invalid_argument); },
    [self](const std::string&) -> caf::result<int> { return self->make_response_promise<int>(); }, // never answered
  };
}

caf::actor the_helper;

class asker final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&asker::on_double>().add_packet<&asker::on_fail>(); }

private:
  zlink::task<doubled> on_double(const double_it& m, const zlink::message_context&) {
    auto asking = context().ask<int>(the_helper, 2s, m.n);
    const int n = co_await std::move(asking);
    co_return doubled{n};
  }
  zlink::task<failure> on_fail(const fail_with& m, const zlink::message_context&) {
    auto asking = m.how == 0 ? context().ask<int>(the_helper, 2s, 1.0) : context().ask<int>(the_helper, 2s, std::string{});
    const auto answer = co_await zlink::as_result(std::move(asking));
    failure told;
    if (!answer) {
      told.kind = zlink::to_string(answer.error().kind());
      if (answer.error().code())
        told.code = answer.error().code()->category;
    }
    co_return told;
  }
};

void serve(zlink::host& host) {
  host.add_mesh("m").object_server().add_instance_spot_factory<asker>("asker", [](auto& f) { f.disable_relocation(); });
}

template <class Reply, class Question>
Reply call(zlink::testing::mesh& net, Question question) {
  return net.run(net.host(0).spots().request_to_spot("a", question).instance_spot("asker").template submit<Reply>());
}

} // namespace

TEST_CASE("a handler that keeps its turn gets the answer of a CAF actor, its error and its silence") {
  zlink::testing::mesh net{1};
  INFO("seed ", net.seed());
  net.start(serve);
  the_helper = net.system().spawn(helper);
  CHECK(call<doubled>(net, double_it{21}).n == 42);
  const auto refused = call<failure>(net, fail_with{0});
  CHECK(refused.kind == "internal_failure");
  CHECK(refused.code == "caf.system");
  CHECK(call<failure>(net, fail_with{1}).kind == "deadline_exceeded");
  caf::anon_send_exit(the_helper, caf::exit_reason::user_shutdown);
  net.run_until_idle();
  CHECK(call<failure>(net, fail_with{0}).kind == "unavailable");
  CHECK_THROWS_AS(call<doubled>(net, double_it{1}), zlink::operation_failed); // the Spot lives on, the helper does not
  the_helper = nullptr;
}
