-- The fast lane's release, for any number of locks at once: compare, then delete.
--
-- KEYS: the holder key of each lock, then the clock's mark. ARGV: id and number of each. Answers 1 for each that was
-- released, 0 for each that needs `leave`: it is in a line, not there, or its number is at or ahead of the clock and has to
-- be written down first. One alone is answered without a list around it, which the server is quicker to send.
-- Whoever waits for a fast-lane hold has taken it into the line before, so a record that is still here has nobody waiting.

local call, try, keys = redis.call, redis.pcall, KEYS
local count = #keys - 1
local clock = call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
-- A mark of another type is not ours to write over.
local mark = try('GET', keys[count + 1])
if type(mark) ~= 'table' and now_us > (tonumber(mark) or 0) then call('SET', keys[count + 1], now_us, 'EX', '86400') end
local answers, released = {}, 0
for i = 1, count do
    released = 0
    if try('GETRANGE', keys[i], '0', '35') == 'lk1:' .. ARGV[2 * i - 1] and tonumber(ARGV[2 * i]) < now_us then
        call('DEL', keys[i])
        released = 1
    end
    answers[i] = released
end
return count == 1 and released or answers
