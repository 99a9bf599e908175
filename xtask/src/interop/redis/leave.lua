-- A party goes out, and releases the lock KEYS[4] only afterwards. ARGV: party.
-- Gives how many were inside with it until now, who went in last, and what it finds at the lock's key.
local now = redis.call('TIME')
local left = redis.call('DECR', KEYS[1])
redis.call('RPUSH', KEYS[3], string.format('%s%06d leave %s', now[1], now[2], ARGV[1]))
return { left + 1, redis.call('HGET', KEYS[2], 'party'), redis.call('GET', KEYS[4]) }
