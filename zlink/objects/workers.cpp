#include "zlink/worker.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/call_start.hpp"

namespace zlink::detail {

namespace {

/// The end of a body, owed to the operation that waits for it: also if the body is dropped unrun. What an I/O body awaits
/// may end when the host has gone: then nobody waits any more.
class owed_report {
public:
  owed_report(reply_route route, std::shared_ptr<host_gate> host) noexcept : route_(route), host_(std::move(host)) {}
  owed_report(owed_report&& other) noexcept
    : route_(std::exchange(other.route_, reply_route{})), host_(std::move(other.host_)) {}
  owed_report& operator=(owed_report&&) = delete;
  ~owed_report() {
    if (route_.receiver == nullptr)
      return;
    payload dropped;
    dropped.emplace<error>(error_kind::shutting_down, "the worker never began");
    send(std::move(dropped));
  }
  void send(payload result) noexcept {
    auto route = std::exchange(route_, reply_route{});
    const inside_host inside{*host_};
    if (!inside) {
      route.receiver->unref_receiver();
      return;
    }
    auto* r = make_record(record_kind::completion);
    r->reply.id = route.id;
    r->body = std::move(result);
    route.receiver->receive_reply(r);
    route.receiver->unref_receiver();
  }

private:
  /// Keeps the host from ending while alive, if it has not.
  class inside_host {
  public:
    explicit inside_host(host_gate& gate) : gate_(gate), host_(gate.enter()) {}
    ~inside_host() {
      if (host_ != nullptr)
        gate_.leave();
    }
    inside_host(const inside_host&) = delete;
    inside_host& operator=(const inside_host&) = delete;
    explicit operator bool() const noexcept { return host_ != nullptr; }

  private:
    host_gate& gate_;
    host_runtime* host_;
  };

  reply_route route_;
  std::shared_ptr<host_gate> host_;
};

payload run_body(unique_function<void(std::stop_token, payload&)>& body, std::stop_token stop) {
  runtime_context_guard inside;
  payload result;
  try {
    body(std::move(stop), result);
  } catch (const std::exception& what) {
    result.emplace<error>(error_kind::internal_failure, what.what());
  } catch (...) {
    result.emplace<error>(error_kind::internal_failure, "the worker threw something that is no std::exception");
  }
  return result;
}

} // namespace

void start_worker(spot_object& object, worker_start start, turn_use use, std::stop_token cancel, bool used_before) {
  auto& host = *object.home_node().host;
  auto& operation = *start.operation;
  operation.verb = "worker call";
  std::optional<error> mistake;
  if (used_before)
    mistake = error{error_kind::invalid_operation, "this worker call was started before; make a new one"};
  else if (object.fenced())
    mistake = error{error_kind::unavailable, "the spot has closed"};
  call_start starting{host, operation, use, std::move(cancel)};
  if (!starting.allowed(std::move(mistake), false))
    return;
  owed_report owed{starting.enter_operation(start.timeout.value_or(object.home_node().request_timeout)), host.outside_users};
  operation.at_end([stop = start.stop]() mutable { stop.request_stop(); }); // by timeout, cancellation or shutdown
  if (start.begin) {
    starting.launch([&host, owed = std::move(owed), stop = start.stop.get_token(), begin = std::move(start.begin)]() mutable {
      host.dispatcher->post([owed = std::move(owed), stop = std::move(stop), begin = std::move(begin)]() mutable {
        if (stop.stop_requested())
          return; // its call has ended while it waited
        runtime_context_guard inside;
        begin(std::move(stop), [owed = std::move(owed)](payload result) mutable { owed.send(std::move(result)); });
      });
    });
    return;
  }
  starting.launch([&host, owed = std::move(owed), stop = start.stop.get_token(), body = std::move(start.body)]() mutable {
    host.workers->submit([owed = std::move(owed), stop = std::move(stop), body = std::move(body)]() mutable {
      if (!stop.stop_requested()) // else its call has ended while it waited
        owed.send(run_body(body, std::move(stop)));
    });
  });
}

} // namespace zlink::detail
