// A node as an application would run it: serves ledgers until SIGTERM, and does what the driver asks meanwhile.
//   e2e_node NAME DIRECTORY REDIS-URL [client]
// A client hosts nothing: it only calls.
#include "tests/e2e/node/commands.hpp"
#include "tests/e2e/node/room.hpp"

#include "zlink/redis_store.hpp"

#include <iostream>
#include <string_view>

namespace {

using namespace zlink;
using namespace zlink::test;

redis_options options_for(const std::string& url, const char* prefix) {
  redis_options made;
  made.url = url;
  made.key_prefix = prefix;
  return made;
}

/// `make(context)` gives the object the log of this process.
template <class T, class Context>
auto logged(process_log& log) {
  return [&log](Context context) { return std::make_unique<T>(std::move(context), log); };
}

void host_objects(object_server_builder server, process_log& log) {
  server.add_entry_spot<desk>()
    .add_instance_spot_factory<ledger>(ledger_type, [&log](auto& factory) {
      factory.construct_with(logged<ledger, instance_spot_context>(log)).preserve_state_with(ledger_adapter{});
    })
    .add_spot_factory<room>(room_type, [&log](auto& factory) {
      factory.construct_with(logged<room, spot_context>(log)).preserve_state_with(room_adapter{});
    })
    .add_spot_factory<club>(club_type, [&log](auto& factory) {
      factory.construct_with(logged<club, spot_context>(log)).per_actor().recreate_on_relocation();
    })
    .add_actor_factory<walker>(walker_type, [&log](auto& factory) {
      factory.construct_with(logged<walker, actor_context>(log)).preserve_state_with(walker_adapter{});
    });
}

void serve(host& served, process_log& log, const std::string& url, bool client) {
  served.use_location_store(make_redis_location_store(options_for(url, "e2e:location")))
    .use_relocation_store(make_redis_relocation_store(options_for(url, "e2e:relocation")));
  auto& node = served.add_mesh(mesh_name).transport(mesh_transport::tcp).secret("known to all nodes of a test");
  if (client) {
    node.object_client();
    return;
  }
  const auto answer = [&node](const hail&, const message_context&) { return hailed{node.rid()}; };
  node.add_node_handler(answer);
  node.add_channel_server(channel_name).add_handler(answer);
  host_objects(node.object_server(), log);
}

} // namespace

int main(int argc, char** argv) {
  const bool client = argc == 5 && argv[4] == std::string_view{"client"};
  if (argc != 4 && !client) {
    std::cerr << "e2e_node NAME DIRECTORY REDIS-URL [client]\n";
    return 2;
  }
  process_log log{argv[1], argv[2]};
  load work{log};
  host served;
  serve(served, log, argv[3], client);
  commands told{log, work, served};
  told.begin();
  const int code = served.run();
  told.end();
  work.end();
  return code;
}
