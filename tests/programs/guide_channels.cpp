// docs/guide/channels.md: one of several nodes by a name, and one event to many Spots.
#include <zlink/zlink.hpp>

#include <chrono>
#include <iostream>
#include <string>

using namespace std::chrono_literals;
using zlink::sync_wait;

struct print_job { std::string text; };
struct printed { std::string by; };
struct headline { std::string text; };
struct ask_board {};
struct board_text { std::string text; };

ZLINK_PACKET(print_job, "press.print_job", text)
ZLINK_PACKET(printed, "press.printed", by)
ZLINK_PACKET(headline, "press.headline", text)
ZLINK_PACKET(ask_board, "press.ask_board")
ZLINK_PACKET(board_text, "press.board_text", text)

class board final : public zlink::spot<> {
public:
  using spot::spot;

  void configure() override {
    context().handlers().add_packet<&board::on_ask>().add_subscribe<&board::on_headline>("news", "sport");
  }

private:
  void on_headline(const headline& m, const zlink::message_context& info) {
    text_ = std::string{info.topic()} + ": " + m.text;
  }
  board_text on_ask(const ask_board&, const zlink::message_context&) const { return board_text{text_}; }

  std::string text_;
};

void serve_printer(zlink::host& host, zlink::embedded_store& store, const std::string& name, std::uint32_t weight) {
  host.use_store(store);
  auto& node = host.add_mesh("town");
  node.rid_prefix(name);
  node.add_channel_server("printers")
    .weight(weight)
    .add_handler([name](const print_job&, const zlink::message_context&) { return printed{name}; });
  host.start();
}

int main() {
  zlink::embedded_store store;
  zlink::host slow;
  zlink::host fast;
  serve_printer(slow, store, "slow", 100);
  serve_printer(fast, store, "fast", 300);

  zlink::host office;
  office.use_store(store);
  auto& node = office.add_mesh("town");
  node.add_channel_client("printers");
  node.add_channel_server("news"); // takes what is published there
  node.object_server().add_spot_factory<board>("board", [](auto& factory) { factory.disable_relocation(); });
  office.start();
  sync_wait(node.until_peers_ready(2));
  sync_wait(node.until_channel_ready("printers"));

  int by_fast = 0;
  for (int i = 0; i < 8; ++i) {
    auto job = office.channels().request_to_channel("printers", print_job{"page"});
    by_fast += sync_wait(job.timeout(2s).submit<printed>()).by == "fast";
  }
  std::cout << by_fast << " of 8 by the fast printer\n";

  sync_wait(office.spots().get_or_create("hall", "board").submit());
  sync_wait(office.channels().publish("news", "sport", headline{"a goal"}).submit());
  sync_wait(office.channels().publish("news", "weather", headline{"rain"}).submit()); // nobody has subscribed to that
  std::cout << sync_wait(office.spots().request_to_spot("hall", ask_board{}).submit<board_text>()).text << '\n';
}
