-- The least that comes into a line: no leases that end, no floor of the tokens, no other kinds.
-- KEYS: holder, line, waiting, ends. ARGV: id, channel, lease-ms. Answers 1 if it is in, 0 if it waits to be told.

local clock = redis.call('TIME')
if not redis.call('GET', KEYS[1]) then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
    return 1
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[3], clock[1] * 1000000 + clock[2], ARGV[1])
redis.call('ZADD', KEYS[4], clock[1] * 1000 + ARGV[3], ARGV[1])
return 0
