-- Numbers a fast-lane hold whose clock reading does not stand above the floor. KEYS: holder, floor, the clock's mark. ARGV: id.
-- Answers the number, written down before it is said; nothing if the hold is no longer there.

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
if redis.call('GETRANGE', KEYS[1], 0, 35) ~= 'lk1:' .. ARGV[1] then return false end
local floor, mark = tonumber(redis.call('GET', KEYS[2])) or 0, redis.pcall('GET', KEYS[3])
-- A mark of another type is as good as none.
mark = type(mark) ~= 'table' and tonumber(mark) or 0
local number = math.max(now_us, floor + 1, mark + 1)
redis.call('SET', KEYS[2], string.format('%.0f', number), 'EX', 86400)
redis.call('SETRANGE', KEYS[1], 37, string.format('%016.0f', number))
return string.format('%.0f', number)
