-- The same as `leave.lua` for one lock, without a loop. KEYS: holder and line. ARGV: the first 36 bytes of the record and
-- the token's number.
local time = redis.call('TIME')
if redis.pcall('GETRANGE', KEYS[1], 0, 35) == ARGV[1]
    and redis.call('EXISTS', KEYS[2]) == 0
    and tonumber(ARGV[2]) < time[1] * 1000000 + time[2] then
    return redis.call('DEL', KEYS[1])
end
return 0
