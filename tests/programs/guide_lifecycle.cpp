// docs/guide/lifecycle.md: how a Spot comes to life, is evicted, closes, and what it is told.
#include <zlink/zlink.hpp>

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

using namespace std::chrono_literals;

struct note { std::string text; };
struct pages { int count = 0; };
struct burn {};

ZLINK_PACKET(note, "diary.note", text)
ZLINK_PACKET(pages, "diary.pages", count)
ZLINK_PACKET(burn, "diary.burn")

// What outlives the Spots; used by all of them, so it locks.
class cellar {
public:
  int fetch(const std::string& id) {
    std::lock_guard guard{mutex_};
    return pages_[id];
  }
  void keep(const std::string& id, int pages, zlink::spot_close_reason why) {
    std::lock_guard guard{mutex_};
    pages_[id] = pages;
    std::cout << id << " closed: " << zlink::to_string(why) << '\n';
    ++closed_;
    changed_.notify_all();
  }
  void wait_until_closed(int times) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return closed_ >= times; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> pages_;
  int closed_ = 0;
};

class diary final : public zlink::instance_spot {
public:
  diary(zlink::instance_spot_context context, cellar& store) : instance_spot(std::move(context)), cellar_(store) {}

  void configure() override { context().handlers().add_packet<&diary::on_note>().add_packet<&diary::on_burn>(); }

  zlink::task<void> on_initialize() override { // no message runs before this has ended
    pages_ = cellar_.fetch(context().spot_id());
    co_return;
  }

  // The last callback of this incarnation.
  zlink::task<void> on_closing(const zlink::spot_closing_context& closing, std::stop_token) override {
    const bool burnt = closing.reason == zlink::spot_close_reason::explicit_close;
    cellar_.keep(context().spot_id(), burnt ? 0 : pages_, closing.reason);
    co_return;
  }

private:
  pages on_note(const note&, const zlink::message_context&) { return pages{++pages_}; }

  zlink::task<void> on_burn(const burn&, const zlink::message_context&) {
    co_await context().close(); // true once the close is decided; on_closing comes after this handler
  }

  cellar& cellar_;
  int pages_ = 0;
};

int write(zlink::host& host, const std::string& id) {
  auto call = host.spots().request_to_spot(id, note{"..."});
  call.instance_spot("diary");
  return zlink::sync_wait(call.submit<pages>()).count;
}

int main() {
  cellar store; // before the host, whose Spots use it to their end
  zlink::host host;
  auto& mesh = host.add_mesh("house");
  mesh.instance_spot_idle_timeout(500ms);
  mesh.object_server().add_instance_spot_factory<diary>("diary", [&store](auto& factory) {
    factory.construct_with(
      [&store](zlink::instance_spot_context context) { return std::make_unique<diary>(std::move(context), store); });
    factory.disable_relocation();
  });
  host.start();

  std::cout << "page " << write(host, "diary-1") << '\n';
  auto first = zlink::sync_wait(host.spots().find("diary-1"));
  store.wait_until_closed(1); // idle for longer than the timeout
  std::cout << "page " << write(host, "diary-1") << '\n';
  auto second = zlink::sync_wait(host.spots().find("diary-1"));
  const bool another = second->object_generation > first->object_generation;
  std::cout << (another ? "another incarnation\n" : "the same incarnation\n");

  host.spots().send_to_spot("diary-1", burn{}).submit();
  store.wait_until_closed(2);
  std::cout << "page " << write(host, "diary-1") << '\n';
} // the third close: host_shutdown
