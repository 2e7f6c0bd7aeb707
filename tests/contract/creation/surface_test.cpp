// The declared surface: every class, context, manager and call has the members it must have, they do what they say, and
// those that must not be there are not.
#include "tests/contract/creation/scripted_spots.hpp"

#include <concepts>
#include <type_traits>

namespace creation_test {
namespace {

using namespace std::chrono;
using trace = std::vector<std::string>;

// -- classes ----------------------------------------------------------------------------------------------------------

/// A Spot of each kind that overrides nothing.
struct bare_spot final : zlink::spot<> {
  using spot::spot;
};
struct bare_cell final : zlink::instance_spot {
  using instance_spot::instance_spot;
};
struct bare_hall final : zlink::entry_spot<> {
  using entry_spot::entry_spot;
};

template <class T>
concept has_create = requires(T& spot, const zlink::message& m) {
  { spot.on_create(m) } -> std::same_as<zlink::task<zlink::spot_create_response>>;
};
template <class T>
concept has_readiness = requires(T& spot, const zlink::spot_relocation_ready_completion& c) {
  { spot.on_relocation_ready_completed(c) } -> std::same_as<zlink::task<void>>;
};
template <class T>
concept has_common_callbacks = requires(T& spot, const zlink::spot_closing_context& c, std::stop_token stop) {
  { spot.configure() } -> std::same_as<void>;
  { spot.on_initialize() } -> std::same_as<zlink::task<void>>;
  { spot.on_closing(c, stop) } -> std::same_as<zlink::task<void>>;
};
template <class T>
concept has_actor_callbacks = requires(T& spot) {
  &T::on_actor_join;
}
|| requires(T& spot) { &T::on_create_actor; };

static_assert(has_common_callbacks<bare_spot> && has_common_callbacks<bare_cell> && has_common_callbacks<bare_hall>);
static_assert(has_create<bare_spot> && !has_create<bare_cell> && !has_create<bare_hall>);
static_assert(has_readiness<bare_spot> && !has_readiness<bare_cell> && !has_readiness<bare_hall>);
static_assert(!has_actor_callbacks<bare_spot> && !has_actor_callbacks<bare_cell> && !has_actor_callbacks<bare_hall>);
static_assert(std::same_as<decltype(std::declval<const bare_spot&>().context()), const zlink::spot_context&>);
static_assert(std::same_as<decltype(std::declval<const bare_cell&>().context()), const zlink::instance_spot_context&>);
static_assert(std::same_as<decltype(std::declval<const bare_hall&>().context()), const zlink::entry_spot_context&>);

TEST_CASE("C-133 C-134 C-135 C-132 Spots that override nothing live, serve nothing and end") {
  mesh net{1};
  net.start([](zlink::host& host) {
    auto& node = host.add_mesh("m");
    node.instance_spot_idle_timeout(1s);
    node.object_server()
      .add_entry_spot<bare_hall>()
      .add_spot_factory<bare_spot>("spot", [](auto& factory) { factory.disable_relocation(); })
      .add_instance_spot_factory<bare_cell>("cell", [](auto& factory) { factory.disable_relocation(); });
  });
  auto spots = net.host(0).spots();
  const auto made = net.run(spots.create("spot").submit());
  CHECK(made.state == zlink::spot_create_state::created);
  CHECK_FALSE(made.reply);
  CHECK(failure(net, ask(net.host(0), made.spot.spot_id, "x")) == error_kind::not_found); // no handler
  CHECK(failure(net, rouse(net.host(0), "a", "x")) == error_kind::not_found);
  CHECK(failure(net, ask(net.host(0), net.host(0).mesh("m").entry_spot_id(), "x")) == error_kind::not_found);
  CHECK(row_of(net, "a"));
  net.advance(5s);
  CHECK_FALSE(row_of(net, "a"));
  CHECK(net.run(spots.close(made.spot)));
  CHECK_FALSE(row_of(net, made.spot.spot_id));
}

// -- contexts ---------------------------------------------------------------------------------------------------------

struct probe_stage {
  std::vector<std::string> said;
  std::uint64_t ticks = 0;
};

/// The same body for the three kinds.
template <class Base>
class common final : public Base {
public:
  template <class Context>
  common(Context context, probe_stage& on) : Base(std::move(context)), on_(on) {}
  void configure() override { this->context().handlers().template add_packet<&common::on_wake>(); }
  zlink::task<void> on_initialize() override {
    co_await this->context().template add_timer<&common::on_tick>("t", 10s);
  }

private:
  zlink::task<told> on_wake(const wake& m, const zlink::message_context&) {
    const auto& context = this->context();
    static_assert(std::same_as<decltype(context.mesh_name()), const std::string&>);
    static_assert(std::same_as<decltype(context.spot_id()), const std::string&>);
    static_assert(std::same_as<decltype(context.object_generation()), std::uint64_t>);
    static_assert(std::same_as<decltype(context.node_rid()), const std::string&>);
    static_assert(std::same_as<decltype(context.outbound()), zlink::spot_outbound>);
    auto cpu = context.run_cpu_worker([](std::stop_token) { return 20; });
    const int first = co_await cpu.submit();
    auto io = context.run_io_worker(
      [](std::stop_token) -> zlink::task<int> { return zlink::detail::make_ready_task(zlink::result<int>{22}); });
    const int second = co_await io.submit();
    on_.said.push_back(context.mesh_name() + ' ' + context.spot_id() + ' ' + std::to_string(first + second) + ' '
                       + m.word);
    auto note = context.outbound().send_to_spot("listener", hint{context.spot_id()});
    note.instance_spot("cell");
    co_await note.submit();
    told answer{m.word, context.object_generation(), context.node_rid()};
    co_return answer;
  }
  void on_tick(const zlink::timer_tick&) { ++on_.ticks; }

  probe_stage& on_;
};

TEST_CASE("C-137 what all three contexts have, by one body over the three kinds") {
  stage listeners;
  probe_stage on;
  mesh net{1};
  net.start([&](zlink::host& host) {
    auto server = host.add_mesh("m").object_server();
    add_cells(server, listeners);
    server
      .add_entry_spot<common<zlink::entry_spot<>>>([&on](zlink::entry_spot_context context) {
        return std::make_unique<common<zlink::entry_spot<>>>(std::move(context), on);
      })
      .add_spot_factory<common<zlink::spot<>>>(
        "u",
        [&on](auto& factory) {
          factory.disable_relocation().construct_with([&on](zlink::spot_context context) {
            return std::make_unique<common<zlink::spot<>>>(std::move(context), on);
          });
        })
      .template add_instance_spot_factory<common<zlink::instance_spot>>("i", [&on](auto& factory) {
        factory.disable_relocation().construct_with([&on](zlink::instance_spot_context context) {
          return std::make_unique<common<zlink::instance_spot>>(std::move(context), on);
        });
      });
  });
  auto& host = net.host(0);
  const auto rid = host.mesh("m").rid();
  net.run(host.spots().get_or_create("user", "u").submit());
  net.run(host.spots().send_to_spot("inst", hint{"up"}).instance_spot("i").submit());
  net.run_until_idle();
  const auto entry = host.mesh("m").entry_spot_id();
  std::uint64_t last = 0;
  for (const auto& id : {entry, std::string{"user"}, std::string{"inst"}}) {
    CAPTURE(id);
    const auto answer = net.run(ask(host, id, "x"));
    CHECK(answer.rid == rid);
    CHECK(answer.generation > last);
    last = answer.generation;
    CHECK(on.said.back() == "m " + id + " 42 x");
  }
  net.run_until_idle();
  CHECK(listeners.count("handle listener") == 3);
  net.advance(10s);
  CHECK(on.ticks == 3);
}

template <class T>
concept can_close = requires(const T& context, std::stop_token stop) {
  { context.close() } -> std::same_as<zlink::task<bool>>;
  { context.close(stop) } -> std::same_as<zlink::task<bool>>;
};
template <class T>
concept can_signal = requires(const T& context) {
  context.relocation_ready();
};
template <class T>
concept has_packets = requires(const T& context) {
  context.handlers().template add_packet<&bare_cell::configure>;
};
template <class T>
concept takes_more_than_packets = requires(const T& r) {
  r.template add_actor_handler<&bare_cell::configure>();
}
|| requires(const T& r) { r.template add_subscription<&bare_cell::configure>("t"); }
|| requires(const T& r) { r.template add_handler<&bare_cell::configure>(); };
template <class T>
concept can_leave = requires(const T& context) {
  context.leave_actor;
};
template <class T>
concept can_destroy = requires(const T& context) {
  context.destroy_actor;
};

TEST_CASE("C-138 C-139 C-31 C-84 what each context adds, and what it must not have") {
  static_assert(
    can_close<zlink::spot_context> && can_close<zlink::instance_spot_context> && !can_close<zlink::entry_spot_context>);
  static_assert(
    can_signal<
      zlink::spot_context> && !can_signal<zlink::instance_spot_context> && !can_signal<zlink::entry_spot_context>);
  static_assert(!can_leave<zlink::instance_spot_context> && !can_leave<zlink::entry_spot_context>);
  static_assert(!can_destroy<zlink::spot_context> && !can_destroy<zlink::instance_spot_context>);
  static_assert(
    std::same_as<decltype(std::declval<const zlink::spot_context&>().handlers()), zlink::spot_handler_registry>);
  static_assert(
    std::same_as<decltype(std::declval<const zlink::entry_spot_context&>().handlers()), zlink::spot_handler_registry>);
  static_assert(std::same_as<decltype(std::declval<const zlink::instance_spot_context&>().handlers()),
                             zlink::instance_spot_handler_registry>);
  using call = decltype(std::declval<const zlink::spot_context&>().relocation_ready());
  static_assert(std::same_as<decltype(std::declval<call&>().defer()), void>);
  // An Instance Spot's registry takes packets, and nothing of Actors, channels or topics.
  static_assert(!takes_more_than_packets<zlink::instance_spot_handler_registry>);
  static_assert(!std::convertible_to<zlink::instance_spot_handler_registry, zlink::spot_handler_registry>);
  // Contexts come from the layer, and move only.
  const auto move_only = []<class T>(std::type_identity<T>) {
    return !std::is_default_constructible_v<
             T> && !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> && std::is_move_constructible_v<T> && !std::is_constructible_v<T, zlink::detail::counted_ptr<zlink::detail::spot_object>>;
  };
  static_assert(move_only(std::type_identity<zlink::spot_context>{}));
  static_assert(move_only(std::type_identity<zlink::instance_spot_context>{}));
  static_assert(move_only(std::type_identity<zlink::entry_spot_context>{}));
}

/// Registers a handler when it is too late for that.
class late final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  zlink::task<void> on_initialize() override {
    context().handlers().add_packet<&late::on_wake>();
    co_return;
  }
  told on_wake(const wake&, const zlink::message_context&) { return {}; }
};

TEST_CASE("C-31 a registration that gets past the type system fails the activation, once, and runs nothing") {
  mesh net{1};
  net.start([](zlink::host& host) {
    host.add_mesh("m").object_server().add_instance_spot_factory<late>(
      "cell", [](auto& factory) { factory.disable_relocation(); });
  });
  CHECK(failure(net, rouse(net.host(0), "a", "x")) == error_kind::internal_failure);
  net.run_until_idle();
  CHECK_FALSE(row_of(net, "a"));
}

// -- manager and calls ------------------------------------------------------------------------------------------------

template <class Call>
concept creates = requires(Call call, std::string name, hint request, milliseconds limit, std::stop_token stop) {
  { call.in_mesh(name) } -> std::same_as<Call&>;
  { call.request(request) } -> std::same_as<Call&>;
  { call.timeout(limit) } -> std::same_as<Call&>;
  { std::move(call).in_mesh(name).request(request).timeout(limit) } -> std::same_as<Call&&>;
  { call.submit() } -> std::same_as<zlink::task<zlink::spot_create_result>>;
  { call.submit(stop) } -> std::same_as<zlink::task<zlink::spot_create_result>>;
  { call.yield() } -> std::same_as<zlink::task<zlink::spot_create_result>>;
  { call.yield(stop) } -> std::same_as<zlink::task<zlink::spot_create_result>>;
};
template <class Call>
concept says_more = requires(Call call) {
  call.metadata("k", "v");
}
|| requires(Call call) { call.instance_spot("t"); }
|| requires(Call call) { call.on_node("rid"); }
|| requires(Call call) { call.target("rid"); }
|| requires(Call call) { call.endpoint("e"); };

template <class T>
concept reaches_too_far = requires(const T& m) {
  m.create("t", "a node");
}
|| requires(const T& m) { m.get_or_create("i", "t", "a node"); }
|| requires(const T& m) { m.create_instance("i", "t"); }
|| requires(const T& m) { m.close("an id"); }
|| requires(const T& m) { m.send_to_spot(zlink::spot_ref{}, hint{"x"}); };

TEST_CASE("C-140 C-141 C-43 C-58 the manager, and create calls that name a mesh but never a node") {
  using manager = const zlink::spot_manager&;
  static_assert(std::same_as<decltype(std::declval<manager>().create("t")), zlink::spot_create_call>);
  static_assert(
    std::same_as<decltype(std::declval<manager>().get_or_create("i", "t")), zlink::spot_get_or_create_call>);
  static_assert(std::same_as<decltype(std::declval<manager>().find("i")), zlink::task<std::optional<zlink::spot_ref>>>);
  static_assert(std::same_as<decltype(std::declval<manager>().find("i", std::stop_token{})),
                             zlink::task<std::optional<zlink::spot_ref>>>);
  static_assert(std::same_as<decltype(std::declval<manager>().close(zlink::spot_ref{})), zlink::task<bool>>);
  static_assert(
    std::same_as<decltype(std::declval<manager>().close(zlink::spot_ref{}, std::stop_token{})), zlink::task<bool>>);
  static_assert(!reaches_too_far<zlink::spot_manager>);
  static_assert(creates<zlink::spot_create_call> && creates<zlink::spot_get_or_create_call>);
  static_assert(!says_more<zlink::spot_create_call> && !says_more<zlink::spot_get_or_create_call>);
  stage on;
  mesh net{1};
  net.start(serve(on));
  auto once = net.host(0).spots().create("room");
  once.in_mesh("m").request(order{"x"}).timeout(2s);
  CHECK(net.run(once.submit()).state == zlink::spot_create_state::created);
  CHECK(failure(net, once.submit()) == error_kind::invalid_operation);
  const auto twice = [&](auto set) {
    auto call = net.host(0).spots().create("room");
    set(call);
    set(call);
    return failure(net, call.submit());
  };
  CHECK(twice([](auto& call) { call.in_mesh("m"); }) == error_kind::invalid_operation);
  CHECK(twice([](auto& call) { call.request(order{"x"}); }) == error_kind::invalid_operation);
  CHECK(twice([](auto& call) { call.timeout(2s); }) == error_kind::invalid_operation);
  CHECK(failure(net, net.host(0).spots().create("room").yield()) == error_kind::invalid_operation);
  CHECK(on.count("factory") == 1);
}

TEST_CASE("C-143 O-10 accepted and reply are set independently, and a refusal is an answer") {
  static_assert(std::same_as<zlink::spot_create_response, zlink::accept_reject_response>);
  static_assert(std::same_as<decltype(zlink::spot_create_response{}.accepted), bool>);
  static_assert(std::same_as<decltype(zlink::spot_create_response{}.reply), std::optional<zlink::message>>);
  for (const bool far : {false, true})
    for (const bool accepted : {true, false})
      for (const bool with_reply : {true, false}) {
        CAPTURE(far);
        CAPTURE(accepted);
        CAPTURE(with_reply);
        stage on;
        on.answer = [&](const std::string&) {
          const told reply{"said", 1, {}};
          return accepted ? (with_reply ? zlink::accept(reply) : zlink::accept())
                          : (with_reply ? zlink::reject(reply) : zlink::reject());
        };
        mesh net{2};
        net.start(serve_beside_client(on));
        const auto made = net.run(open_room(net.host(far ? 0 : 1), "a"));
        CHECK(made.state == (accepted ? zlink::spot_create_state::created : zlink::spot_create_state::rejected));
        CHECK(made.reply.has_value() == with_reply);
        if (with_reply)
          CHECK(made.reply->as<told>().word == "said");
        CHECK(made.spot.spot_id == "a");
        CHECK(row_of(net, "a").has_value() == accepted);
        CHECK(on.count("initialize") == (accepted ? 1 : 0));
        CHECK(spots_on(net, 1) == zlink::placement::slot_bucket{accepted ? 1U : 0U, 0});
      }
}

TEST_CASE("C-144 O-128 close reasons and readiness outcomes have these values and no other members") {
  using reason = zlink::spot_close_reason;
  static_assert(reason::explicit_close == reason{0} && reason::host_shutdown == reason{1});
  static_assert(reason::relocation_out == reason{2} && reason::idle_evicted == reason{3});
  using outcome = zlink::spot_relocation_ready_outcome;
  static_assert(outcome::continued == outcome{0} && outcome::relocated == outcome{1});
  static_assert(std::is_aggregate_v<zlink::spot_relocation_ready_completion>);
  static_assert(sizeof(zlink::spot_relocation_ready_completion) == sizeof(outcome));
  static_assert(std::same_as<decltype(zlink::spot_closing_context{}.reason), reason>);
  static_assert(std::same_as<decltype(zlink::spot_closing_context{}.deadline), system_clock::time_point>);
  CHECK(std::string{to_string(reason::explicit_close)} == "explicit_close");
  CHECK(std::string{to_string(reason::host_shutdown)} == "host_shutdown");
  CHECK(std::string{to_string(reason::relocation_out)} == "relocation_out");
  CHECK(std::string{to_string(reason::idle_evicted)} == "idle_evicted");
  CHECK(std::string{to_string(outcome::continued)} == "continued");
  CHECK(std::string{to_string(outcome::relocated)} == "relocated");
}

template <class TSpot>
concept is_entry = requires(zlink::object_server_builder server) {
  server.template add_entry_spot<TSpot>();
};
const auto any_settings = [](auto& factory) { factory.disable_relocation(); };
template <class TSpot>
concept is_user = requires(zlink::object_server_builder server) {
  server.template add_spot_factory<TSpot>("t", any_settings);
};
template <class TSpot>
concept is_instance = requires(zlink::object_server_builder server) {
  server.template add_instance_spot_factory<TSpot>("t", any_settings);
};

TEST_CASE("C-145 three registrations, each for its kind, each to be chained") {
  static_assert(is_entry<bare_hall> && !is_entry<bare_spot> && !is_entry<bare_cell> && !is_entry<int>);
  static_assert(!is_user<bare_hall> && is_user<bare_spot> && !is_user<bare_cell> && !is_user<int>);
  static_assert(!is_instance<bare_hall> && !is_instance<bare_spot> && is_instance<bare_cell> && !is_instance<int>);
  mesh net{1};
  net.start([](zlink::host& host) {
    zlink::object_server_builder server = host.add_mesh("m").object_server();
    zlink::object_server_builder& same = server.add_entry_spot<bare_hall>()
                                           .add_spot_factory<bare_spot>("u", any_settings)
                                           .add_instance_spot_factory<bare_cell>("i", any_settings);
    CHECK(&same == &server);
  });
  const auto published = descriptor_of(net, net.host(0).mesh("m").rid())->capabilities;
  REQUIRE(published.size() == 2);
  CHECK(published[0].kind == zlink::placement::object_kind::user_spot);
  CHECK(published[0].stable_type == "u");
  CHECK(published[1].kind == zlink::placement::object_kind::instance_spot);
  CHECK(published[1].stable_type == "i");
}

TEST_CASE("C-52 C-56 kinds are closed, and a ref is a value that stays what it was") {
  static_assert(zlink::spot_kind::invalid == zlink::spot_kind{0} && zlink::spot_kind::entry == zlink::spot_kind{1});
  static_assert(zlink::spot_kind::user == zlink::spot_kind{2} && zlink::spot_kind::instance == zlink::spot_kind{3});
  static_assert(std::is_copy_constructible_v<
                  zlink::spot_ref> && std::is_same_v<decltype(zlink::spot_ref{}.object_generation), std::uint64_t>);
  static_assert(!reaches_too_far<zlink::spot_manager>); // a ref is no target
  for (const auto kind :
       {zlink::spot_kind::invalid, zlink::spot_kind::entry, zlink::spot_kind::user, zlink::spot_kind::instance})
    CHECK(zlink::parse_spot_kind(zlink::to_string(kind)) == kind);
  CHECK_FALSE(zlink::parse_spot_kind("actor"));
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto made = net.run(open_room(net.host(0), "a")).spot;
  CHECK(made.mesh_name == "m");
  CHECK(made.node_rid == net.host(1).mesh("m").rid());
  CHECK(made.object_generation >= 1);
  CHECK(*net.run(net.host(1).spots().find("a")) == made);
  const auto kept = made;
  CHECK(net.run(net.host(0).spots().close(made)));
  const auto again = net.run(open_room(net.host(0), "a")).spot;
  CHECK(made == kept); // the old ref names the old incarnation
  CHECK(again.object_generation > made.object_generation);
  CHECK(net.run(ask(net.host(0), made.spot_id, "by id")).generation == again.object_generation);
}

TEST_CASE("C-120 every incarnation of an id has a larger generation, and control of an old one never touches it") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  std::vector<zlink::spot_ref> refs;
  for (int i = 0; i < 100; ++i) {
    refs.push_back(net.run(open_room(net.host(0), "a")).spot);
    if (i > 0) {
      CHECK(refs[i].object_generation > refs[i - 1].object_generation);
      CHECK(failure(net, net.host(0).spots().close(refs[i - 1])) == error_kind::invalid_operation);
    }
    CHECK(net.run(ask(net.host(0), "a", "x")).generation == refs[i].object_generation);
    CHECK(net.run(net.host(0).spots().close(refs[i])));
  }
  CHECK(on.count("closing a explicit_close") == 100);
  CHECK_FALSE(net.run(net.host(0).spots().close(refs.back()))); // gone: false, no error
}

TEST_CASE("O-138 closing by ref touches that incarnation only") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto first = net.run(open_room(net.host(0), "a")).spot;
  CHECK(net.run(net.host(0).spots().close(first)));
  CHECK_FALSE(net.run(net.host(0).spots().close(first))); // absent
  net.run(open_room(net.host(0), "a"));
  CHECK(failure(net, net.host(0).spots().close(first)) == error_kind::invalid_operation); // another generation
  CHECK(net.run(ask(net.host(0), "a", "alive")).word == "alive");
  CHECK(on.count("closing") == 1);
}

} // namespace
} // namespace creation_test
