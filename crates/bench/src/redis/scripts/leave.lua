-- Releases any number of locks. KEYS: holder and line of each. ARGV: the first 36 bytes of the record and the token's
-- number of each. Answers 1 for each that was released here, 0 for each that needs the longer way.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local left = {}
for at = 1, #KEYS, 2 do
    local released = 0
    -- `pcall`: a key of another type must not fail the others.
    if redis.pcall('GETRANGE', KEYS[at], 0, 35) == ARGV[at]
        and redis.call('EXISTS', KEYS[at + 1]) == 0
        and tonumber(ARGV[at + 1]) < now then
        released = redis.call('DEL', KEYS[at])
    end
    left[#left + 1] = released
end
return left
