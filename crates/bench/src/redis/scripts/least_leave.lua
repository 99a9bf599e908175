-- The least that leaves a line and lets the next one in: compared, in order, with a lease, a number and a word to it.
-- KEYS: holder, line, waiting, ends. ARGV: id, channel, lease-ms. Answers 1 if it was in.

local clock = redis.call('TIME')
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local next = redis.call('ZRANGE', KEYS[3], '0', '0')[1]
if not next then
    redis.call('DEL', KEYS[1])
    return 1
end
local channel = redis.call('HGET', KEYS[2], next)
redis.call('ZREM', KEYS[3], next)
redis.call('ZREM', KEYS[4], next)
redis.call('HDEL', KEYS[2], next)
redis.call('SET', KEYS[1], next, 'PX', ARGV[3])
redis.call('PUBLISH', channel, string.format('%s %.0f', next, clock[1] * 1000000 + clock[2]))
return 1
