// A node as an application would run it: serves ledgers until SIGTERM, and does what the driver asks meanwhile.
//   e2e_node NAME DIRECTORY REDIS-URL
#include "tests/e2e/node/commands.hpp"

#include "zlink/redis_store.hpp"

#include <iostream>

namespace {

using namespace zlink;
using namespace zlink::test;

redis_options options_for(const std::string& url, const char* prefix) {
  redis_options made;
  made.url = url;
  made.key_prefix = prefix;
  return made;
}

void serve(host& served, process_log& log, const std::string& url) {
  served.use_location_store(make_redis_location_store(options_for(url, "e2e:location")))
    .use_relocation_store(make_redis_relocation_store(options_for(url, "e2e:relocation")));
  auto& node = served.add_mesh(mesh_name);
  const auto answer = [&node](const hail&, const message_context&) { return hailed{node.rid()}; };
  node.transport(mesh_transport::tcp).secret("known to all nodes of a test").add_node_handler(answer);
  node.add_channel_server(channel_name).add_handler(answer);
  node.object_server().add_entry_spot<desk>().add_instance_spot_factory<ledger>(ledger_type, [&log](auto& factory) {
    factory.construct_with([&log](instance_spot_context context) { return std::make_unique<ledger>(std::move(context), log); })
      .disable_relocation();
  });
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "e2e_node NAME DIRECTORY REDIS-URL\n";
    return 2;
  }
  process_log log{argv[1], argv[2]};
  load work{log};
  host served;
  serve(served, log, argv[3]);
  commands told{log, work, served};
  told.begin();
  const int code = served.run();
  told.end();
  work.end();
  return code;
}
