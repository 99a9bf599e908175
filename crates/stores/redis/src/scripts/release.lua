-- The fast lane's release, for any number of locks at once: compare, then delete.
--
-- KEYS: the holder key of each lock, then the clock's mark. ARGV: id and number of each. Answers 1 for each that was
-- released, 0 for each that needs `leave`: it is in a line, not there, or its number is at or ahead of the clock and has to
-- be written down first.
-- Whoever waits for a fast-lane hold has taken it into the line before, so a record that is still here has nobody waiting.

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local answers = {}
-- A mark of another type is not ours to write over.
local mark = redis.pcall('GET', KEYS[#KEYS])
if type(mark) ~= 'table' and now_us > (tonumber(mark) or 0) then
    redis.call('SET', KEYS[#KEYS], string.format('%.0f', now_us), 'EX', 86400)
end
for i = 1, #KEYS - 1 do
    local released = 0
    if redis.pcall('GETRANGE', KEYS[i], 0, 35) == 'lk1:' .. ARGV[2 * i - 1] and tonumber(ARGV[2 * i]) < now_us then
        redis.call('DEL', KEYS[i])
        released = 1
    end
    answers[i] = released
end
return answers
