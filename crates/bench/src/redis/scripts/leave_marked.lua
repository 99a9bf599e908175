-- The same as `leave.lua` where a line always puts its marker at the holder's key, so that there is no need to look for
-- the line. KEYS: the holder of each. ARGV: the first 36 bytes of the record and the token's number of each.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local left = {}
for at, holder in ipairs(KEYS) do
    if redis.pcall('GETRANGE', holder, 0, 35) == ARGV[2 * at - 1] and tonumber(ARGV[2 * at]) < now then
        left[at] = redis.call('DEL', holder)
    else
        left[at] = 0
    end
end
return left
