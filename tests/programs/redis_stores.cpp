// A process of several: all that are given the same Redis URL share Spots. Serves until it is told to stop.
//   redis_stores redis://localhost
#include <zlink/redis_store.hpp>
#include <zlink/zlink.hpp>

#include <iostream>
#include <string>

struct knock { std::string who; };
struct welcome { std::string text; };
ZLINK_PACKET(knock, "door.knock", who)
ZLINK_PACKET(welcome, "door.welcome", text)

class door final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&door::on_knock>(); }

private:
  welcome on_knock(const knock& m, const zlink::message_context&) { return {"come in, " + m.who}; }
};

int main(int argc, char** argv) {
  try {
    const std::string url = argc > 1 ? argv[1] : "redis://localhost";
    zlink::host host;
    zlink::redis_options location;
    location.url = url;
    location.key_prefix = "plant:location";
    zlink::redis_options relocation;
    relocation.url = url;
    relocation.key_prefix = "plant:relocation";
    host.use_location_store(zlink::make_redis_location_store(location))
      .use_relocation_store(zlink::make_redis_relocation_store(relocation));
    host.add_mesh("plant").object_server().add_instance_spot_factory<door>(
      "door", [](auto& factory) { factory.recreate_on_relocation(); });
    return host.run();
  } catch (const zlink::configuration_error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
