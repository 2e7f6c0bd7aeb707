// docs/guide/spots.md: the three kinds of Spots, and both ways to write their handlers.
#include <zlink/zlink.hpp>

#include <iostream>
#include <map>
#include <string>
#include <vector>

struct pin { std::string text; };
struct read_board {};
struct board_view { std::vector<std::string> notes; };
struct vote { std::string choice; };
struct votes { int count = 0; };
struct found_club { std::string name; };
struct club_answer { std::string text; };
struct ask_reception {};
struct reception_answer { std::string text; };

ZLINK_PACKET(pin, "town.pin", text)
ZLINK_PACKET(read_board, "town.read_board")
ZLINK_PACKET(board_view, "town.board_view", notes)
ZLINK_PACKET(vote, "town.vote", choice)
ZLINK_PACKET(votes, "town.votes", count)
ZLINK_PACKET(found_club, "town.found_club", name)
ZLINK_PACKET(club_answer, "town.club_answer", text)
ZLINK_PACKET(ask_reception, "town.ask_reception")
ZLINK_PACKET(reception_answer, "town.reception_answer", text)

// First form: member functions, registered in configure(). One that returns nothing serves sends, one that returns a
// packet serves requests.
class board final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;

  void configure() override { context().handlers().add_packet<&board::on_pin>().add_packet<&board::on_read>(); }

private:
  void on_pin(const pin& m, const zlink::message_context& info) {
    notes_.push_back(m.text + " (" + std::string{info.metadata("author")} + ')');
  }
  board_view on_read(const read_board&, const zlink::message_context&) const { return board_view{notes_}; }

  std::vector<std::string> notes_;
};

// Second form: a CAF behaviour. One lambda serves sends and requests.
class poll final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;

  caf::behavior make_behavior() override {
    return {[this](const vote& m) { return votes{++votes_[m.choice]}; }};
  }

private:
  std::map<std::string, int> votes_;
};

// A User Spot is made by order, and may decline.
class club final : public zlink::spot<> {
public:
  using spot::spot;

  zlink::task<zlink::spot_create_response> on_create(const zlink::message& request) override {
    const auto& plan = request.as<found_club>();
    if (plan.name.empty())
      co_return zlink::reject(club_answer{"a club needs a name"});
    co_return zlink::accept(club_answer{"welcome to the " + plan.name + " club"});
  }
};

// An Entry Spot is there as soon as its node is, once for each node.
class reception final : public zlink::entry_spot<> {
public:
  using entry_spot::entry_spot;

  void configure() override { context().handlers().add_packet<&reception::on_ask>(); }

private:
  reception_answer on_ask(const ask_reception&, const zlink::message_context&) const {
    return reception_answer{"this is the mesh " + context().mesh_name()};
  }
};

void open_town(zlink::host& host) {
  host.add_mesh("town")
    .object_server()
    .add_entry_spot<reception>()
    .add_spot_factory<club>("club", [](auto& factory) { factory.disable_relocation(); })
    .add_instance_spot_factory<board>("board", [](auto& factory) { factory.disable_relocation(); })
    .add_instance_spot_factory<poll>("poll", [](auto& factory) { factory.disable_relocation(); });
  host.start();
}

void use_instance_spots(zlink::host& host) {
  auto post = host.spots().send_to_spot("main-street", pin{"lost: one cat"});
  post.instance_spot("board").metadata("author", "Ada").submit();
  auto look = host.spots().request_to_spot("main-street", read_board{});
  auto view = zlink::sync_wait(look.instance_spot("board").submit<board_view>());
  std::cout << view.notes.at(0) << '\n';

  auto ballot = host.spots().request_to_spot("mayor", vote{"Grace"});
  auto count = zlink::sync_wait(ballot.instance_spot("poll").submit<votes>());
  std::cout << count.count << " vote\n";
}

void use_user_spots(zlink::host& host) {
  auto made = zlink::sync_wait(host.spots().get_or_create("chess", "club").request(found_club{"chess"}).submit());
  std::cout << zlink::to_string(made.state) << ": " << made.reply->as<club_answer>().text << '\n';
  auto again = zlink::sync_wait(host.spots().get_or_create("chess", "club").request(found_club{"chess"}).submit());
  std::cout << zlink::to_string(again.state) << '\n';
  auto refused = zlink::sync_wait(host.spots().create("club").request(found_club{}).submit());
  std::cout << zlink::to_string(refused.state) << ": " << refused.reply->as<club_answer>().text << '\n';
}

int main() {
  zlink::host host;
  open_town(host);
  use_instance_spots(host);
  use_user_spots(host);

  const auto entry = host.mesh("town").entry_spot_id();
  auto answer = zlink::sync_wait(host.spots().request_to_spot(entry, ask_reception{}).submit<reception_answer>());
  std::cout << answer.text << '\n';
}
