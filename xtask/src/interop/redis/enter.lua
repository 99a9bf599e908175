-- A party says that it holds the lock KEYS[4] and goes in. ARGV: party, side.
-- Gives how many are inside with it, 1 if the lock came from the other side, and what it finds at the lock's key.
local now = redis.call('TIME')
local inside = redis.call('INCR', KEYS[1])
local side = redis.call('HGET', KEYS[2], 'side')
redis.call('HSET', KEYS[2], 'side', ARGV[2], 'party', ARGV[1])
redis.call('RPUSH', KEYS[3], string.format('%s%06d enter %s', now[1], now[2], ARGV[1]))
-- The first to come in has it from nobody.
return { inside, side and side ~= ARGV[2] and 1 or 0, redis.call('GET', KEYS[4]) }
