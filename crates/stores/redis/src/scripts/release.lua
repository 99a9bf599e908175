-- The fast lane's release, for any number of locks at once: compare, then delete.
--
-- KEYS: holder and line of each lock. ARGV: id and number of each. Answers 1 for each that was released, 0 for each that
-- needs `leave`: it is not alone, not there, or its number is at or ahead of the clock and has to be written down.

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local answers = {}
for i = 1, #KEYS, 2 do
    local at = (i + 1) / 2
    local released = 0
    local head = redis.pcall('GETRANGE', KEYS[i], 0, 35)
    if head == 'lk1:' .. ARGV[i] and redis.call('EXISTS', KEYS[i + 1]) == 0 and tonumber(ARGV[i + 1]) < now_us then
        redis.call('DEL', KEYS[i])
        released = 1
    end
    answers[at] = released
end
return answers
