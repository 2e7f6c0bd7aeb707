#include "adapters/location/redis_login.hpp"

#include <charconv>

namespace zlink::adapters {

namespace {

constexpr int oldest_major = 6; // SET with PXAT, and users
constexpr int oldest_minor = 2;

/// The value of "name:value" in what INFO answers; empty if it is not there.
std::string_view info_value(std::string_view info, std::string_view name) {
  for (std::size_t at = 0; (at = info.find(name, at)) != std::string_view::npos; at += name.size()) {
    const auto behind = at + name.size();
    if ((at == 0 || info[at - 1] == '\n') && behind < info.size() && info[behind] == ':')
      return info.substr(behind + 1, info.find_first_of("\r\n", behind) - behind - 1);
  }
  return {};
}

bool is_too_old(std::string_view version) noexcept {
  int major = 0;
  int minor = 0;
  const auto* end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  if (first.ec != std::errc{} || first.ptr == end)
    return false; // another server's way to count
  std::from_chars(first.ptr + 1, end, minor);
  return major < oldest_major || (major == oldest_major && minor < oldest_minor);
}

} // namespace

std::optional<redis_trouble> judge_role(const redisReply& reply) {
  const auto* role = part_of(reply, 0);
  if (role == nullptr || !is_string(*role) || text_of(*role) == "master")
    return std::nullopt; // a user without the right to ask is told by the first write
  return redis_trouble{"it is a replica, which must not be asked; give the primary", true};
}

redis_login::redis_login(const redis_address& address, const std::vector<const redis_script*>& scripts)
  : database_(address.database), has_password_(!address.password.empty()) {
  if (has_password_ && address.user.empty())
    say(step::authenticate, make_command("AUTH", address.password));
  else if (has_password_)
    say(step::authenticate, make_command("AUTH", address.user, address.password));
  if (database_ != 0)
    say(step::select, make_command("SELECT", std::to_string(database_)));
  say(step::role, make_command("ROLE"));
  say(step::info, make_command("INFO"));
  say(step::save, make_command("CONFIG", "GET", "save"));
  for (const auto* script : scripts)
    say(step::load, make_command("SCRIPT", "LOAD", script->text()));
}

void redis_login::say(step what, const std::string& command) {
  commands_ += command;
  open_.push_back(what);
}

std::optional<redis_trouble> redis_login::answered(const redisReply& reply) {
  const auto what = open_.front();
  open_.pop_front();
  if (is_error(reply))
    return judge_login_error(what, text_of(reply));
  switch (what) {
    case step::role: return judge_role(reply);
    case step::info: return judge_info(text_of(reply));
    case step::save:
      if (const auto* value = part_of(reply, 1))
        snapshots_ = !text_of(*value).empty();
      return std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<redis_trouble> redis_login::judge_login_error(step what, std::string_view error) const {
  const auto code = error_code(error);
  if (code == "NOAUTH")
    return redis_trouble{"it demands a password; put user and password into the URL", true};
  if (code == "DENIED")
    return redis_trouble{"it is in protected mode and takes no connections from other machines; set a password there",
                         true};
  if (code == "LOADING")
    return redis_trouble{"it still loads its data", false};
  if (error.find("max number of clients") != std::string_view::npos)
    return redis_trouble{"it has no room for another client; raise maxclients there", false};
  switch (what) {
    case step::authenticate: return redis_trouble{"it refuses the user or the password; correct the URL", true};
    case step::select:
      return redis_trouble{"it has no database " + std::to_string(database_) + "; choose another in the URL", true};
    case step::load: return redis_trouble{explain_refusal(error), code == "NOPERM"};
    default: return std::nullopt; // without the right to look at roles and settings one can do
  }
}

std::optional<redis_trouble> redis_login::judge_info(std::string_view info) {
  const auto version = info_value(info, "redis_version");
  if (is_too_old(version))
    return redis_trouble{"it is version " + std::string{version} + "; 6.2 or newer is needed", true};
  if (info_value(info, "maxmemory") != "0")
    eviction_ = info_value(info, "maxmemory_policy");
  append_only_ = info_value(info, "aof_enabled") != "0";
  return std::nullopt;
}

std::vector<std::string> redis_login::warnings() const {
  std::vector<std::string> all;
  if (!eviction_.empty() && eviction_ != "noeviction")
    all.push_back("its maxmemory-policy is " + eviction_
                  + ", so it may forget who owns what; set it to noeviction (S-143)");
  if (!append_only_ && !snapshots_)
    all.push_back(
      "it keeps nothing on disk, so that a restart forgets every Spot; switch on appendonly with appendfsync "
      "everysec or always (S-143)");
  return all;
}

} // namespace zlink::adapters
