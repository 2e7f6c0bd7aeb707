#include "adapters/location/redis_location_scripts.hpp"

namespace zlink::adapters {

namespace {

/// The clock, and how values and versions look. Texts are compared for equality only: Lua's order depends on a locale.
constexpr const char* common = R"lua(
local meta, base = KEYS[1], string.sub(KEYS[1], 1, -2)
local values = base .. 'v:'
local call, sub = redis.call, string.sub
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local never, last_instant = '0000000000000000', 9007199254740991
local function digits(number) return string.format('%016.0f', number) end
local function alive(value, at)
  if not value or value == '' then return false end
  local expiry = sub(value, 33, 48)
  return expiry == never or tonumber(expiry) > at
end
)lua";

/// A snapshot copies nothing when it is made; what changes afterwards leaves its former state in each that covers it. A
/// value stays for `slack` behind its expiry, longer than any snapshot lives, so that this state is still there.
constexpr const char* snapshots = R"lua(
local slack_ms, life, idle, retained_most, live_most = 600000, 300000000, 60000000, 67108864, 16
local function snapshot_key(id) return base .. 's:' .. id end
local function drop_snapshot(id)
  call('UNLINK', snapshot_key(id), snapshot_key(id) .. ':k', snapshot_key(id) .. ':r')
end
local function load_snapshots(list)
  local live, lost = {}, false
  for id in string.gmatch(list, '%S+') do
    local s = call('HMGET', snapshot_key(id), 'prefix', 'fixed', 'used', 'bytes')
    if s[1] and now - s[2] <= life and now - s[3] <= idle and tonumber(s[4]) <= retained_most then
      live[#live + 1] = {id = id, prefix = s[1], bytes = 0}
    else
      drop_snapshot(id)
      lost = true
    end
  end
  return live, lost
end
local function store_snapshots(live)
  local ids = {}
  for _, s in ipairs(live) do ids[#ids + 1] = s.id end
  call('HSET', meta, 'snapshots', table.concat(ids, ' '))
end
)lua";

constexpr const char* write = R"lua(
local i = 3
for _ = 1, tonumber(ARGV[2]) do
  local what, key = ARGV[i], values .. ARGV[i + 1]
  if what == 'm' then
    if alive(call('GETRANGE', key, 0, 47), now) then return {0, now} end
    i = i + 2
  elseif what == 'v' then
    local header = call('GETRANGE', key, 0, 47)
    if sub(header, 1, 32) ~= ARGV[i + 2] or not alive(header, now) then return {0, now} end
    i = i + 3
  else
    local value = call('GET', key)
    if not alive(value, now) or sub(value, 49) ~= ARGV[i + 2] then return {0, now} end
    i = i + 3
  end
end

local state = call('HMGET', meta, 'epoch', 'last', 'snapshots')
local last = math.max(now, (tonumber(state[2] or 0)) + 1)
local version = (state[1] or ARGV[1]) .. digits(last)
call('HSET', meta, 'epoch', state[1] or ARGV[1], 'last', digits(last))
local live = {}
if state[3] and state[3] ~= '' then
  local lost
  live, lost = load_snapshots(state[3])
  if lost then store_snapshots(live) end
end
local function before_change(key)
  local former
  for _, s in ipairs(live) do
    if sub(key, 1, #s.prefix) == s.prefix and call('ZADD', snapshot_key(s.id) .. ':k', 'NX', 0, key) == 1 then
      former = former or call('GET', values .. key) or ''
      call('HSET', snapshot_key(s.id) .. ':r', key, former)
      s.bytes = s.bytes + #key + #former + 64
    end
  end
end

local index, expiring = base .. 'i', base .. 'x'
local count = #ARGV
while i <= count do
  local what, key = ARGV[i], ARGV[i + 1]
  if live[1] then before_change(key) end
  if what == 'd' then
    if call('DEL', values .. key) == 1 then call('ZREM', index, key) end
    i = i + 2
  elseif what == 'p' then
    call('SET', values .. key, version .. never .. ARGV[i + 2])
    call('ZADD', index, 0, key)
    i = i + 3
  else
    local expiry = math.min(now + ARGV[i + 3] * 1000, last_instant)
    call('SET', values .. key, version .. digits(expiry) .. ARGV[i + 2],
      'PXAT', string.format('%.0f', math.floor(expiry / 1000) + slack_ms))
    call('ZADD', index, 0, key)
    call('ZADD', expiring, string.format('%.0f', expiry), key)
    i = i + 4
  end
end

-- A few rows that have expired leave with each write.
for _, key in ipairs(call('ZRANGEBYSCORE', expiring, '-inf', string.format('%.0f', now), 'LIMIT', 0, 4)) do
  local header = call('GETRANGE', values .. key, 0, 47)
  if header ~= '' and alive(header, now) then
    local expiry = sub(header, 33, 48)
    if expiry == never then call('ZREM', expiring, key)
    else call('ZADD', expiring, string.format('%.0f', tonumber(expiry)), key) end
  else
    if header ~= '' then
      if live[1] then before_change(key) end
      call('DEL', values .. key)
    end
    call('ZREM', index, key)
    call('ZREM', expiring, key)
  end
end
for _, s in ipairs(live) do
  if s.bytes > 0 then
    call('HINCRBY', snapshot_key(s.id), 'bytes', s.bytes)
    call('PEXPIRE', snapshot_key(s.id) .. ':k', slack_ms)
    call('PEXPIRE', snapshot_key(s.id) .. ':r', slack_ms)
  end
end
return {1, now, version}
)lua";

constexpr const char* read = R"lua(
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
return {now, redis.call('GET', string.sub(KEYS[1], 1, -2) .. 'v:' .. ARGV[1]) or nil}
)lua";

/// Present rows and former states side by side in key order, a former state hiding the present one. A page looks at a
/// bounded number of keys and then ends, with fewer items if need be.
constexpr const char* scan = R"lua(
local prefix, id, after, limit = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local state = call('HMGET', meta, 'epoch', 'last', 'snapshots')
local fixed = now
if id ~= '' then
  local s = call('HMGET', snapshot_key(id), 'prefix', 'fixed', 'used', 'bytes')
  if s[1] ~= prefix or now - s[2] > life or now - s[3] > idle or tonumber(s[4]) > retained_most
    or not string.find(' ' .. (state[3] or '') .. ' ', ' ' .. id .. ' ', 1, true) then
    return {0, now}
  end
  fixed = tonumber(s[2])
end

local chunk = math.min(limit + 1, 256)
local function keys_of(set)
  local keys, at, from, more = {}, 1, after ~= '' and '(' .. after or '[' .. prefix, true
  return function()
    if at > #keys and more then
      keys, at = call('ZRANGEBYLEX', set, from, '+', 'LIMIT', 0, chunk), 1
      more = #keys == chunk
      if more then from = '(' .. keys[chunk] end
    end
    local key = keys[at]
    if key and sub(key, 1, #prefix) == prefix then return key end
  end, function() at = at + 1 end
end
local function before(a, b)
  for n = #prefix + 1, math.min(#a, #b) do
    local x, y = string.byte(a, n), string.byte(b, n)
    if x ~= y then return x < y end
  end
  return #a < #b
end
local present, skip_present = keys_of(base .. 'i')
local changed, skip_changed = function() end, function() end
if id ~= '' then changed, skip_changed = keys_of(snapshot_key(id) .. ':k') end

local page, items, bytes, looks = {1, now, '', ''}, 0, 0, limit * 2 + 256
local key, former
while true do
  key, former = present(), changed()
  if former and (not key or former == key or before(former, key)) then
    if former == key then skip_present() end
    key = former
  else
    former = nil
  end
  if not key or items == limit or looks == 0 then break end
  local value
  if former then value = call('HGET', snapshot_key(id) .. ':r', key) else value = call('GET', values .. key) end
  if alive(value, fixed) then
    bytes = bytes + #key + #value - 16
    if bytes > 4194304 and items > 0 then break end
    items = items + 1
    page[3 + 2 * items], page[4 + 2 * items] = key, value
  end
  looks = looks - 1
  after = key
  if former then skip_changed() else skip_present() end
end

local live = {}
if state[3] and state[3] ~= '' then live = load_snapshots(state[3]) end
if not key then -- nothing is left: the snapshot has served
  if id ~= '' then
    drop_snapshot(id)
    for n, s in ipairs(live) do if s.id == id then table.remove(live, n) break end end
    store_snapshots(live)
  end
  return page
end
if id == '' then
  local last = math.max(now, (tonumber(state[2] or 0)) + 1)
  id = (state[1] or ARGV[5]) .. digits(last)
  call('HSET', meta, 'epoch', state[1] or ARGV[5], 'last', digits(last))
  if #live == live_most then drop_snapshot(table.remove(live, 1).id) end
  call('HSET', snapshot_key(id), 'prefix', prefix, 'fixed', digits(now), 'bytes', 0)
else
  for n, s in ipairs(live) do if s.id == id then table.remove(live, n) break end end
end
call('HSET', snapshot_key(id), 'used', digits(now))
call('PEXPIRE', snapshot_key(id), slack_ms)
live[#live + 1] = {id = id}
store_snapshots(live)
page[3], page[4] = id, after
return page
)lua";

} // namespace

const redis_script& redis_write_script() {
  static const redis_script script{common, snapshots, write};
  return script;
}

const redis_script& redis_read_script() {
  static const redis_script script{read};
  return script;
}

const redis_script& redis_scan_script() {
  static const redis_script script{common, snapshots, scan};
  return script;
}

} // namespace zlink::adapters
