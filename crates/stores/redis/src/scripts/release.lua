-- The fast lane's release, for any number of locks at once: compare, then delete.
--
-- KEYS: the holder key of each lock, then the clock's mark. ARGV: id and number of each. Answers 1 for each that was
-- released, 0 for each that needs `leave`: it is in a line, not there, or its number is at or ahead of the clock and has to
-- be written down first. One alone is answered without a list around it, which the server is quicker to send.
-- Whoever waits for a fast-lane hold has taken it into the line before, so a record that is still here has nobody waiting.
--
-- Surprise: nothing is made a number, which takes the server longer than a command. Numbers are texts of digits without
-- zeros in front; of two of one length the greater one is greater as a text, too.

local call, try, keys, args = redis.call, redis.pcall, KEYS, ARGV
local count = #keys - 1
local clock = call('TIME')
local now_us = clock[1] .. string.sub('000000', #clock[2] + 1) .. clock[2]
-- A mark of another type is not ours to write over; one that is no number is no mark.
local mark = try('GET', keys[count + 1])
if type(mark) ~= 'table' and (not mark or #mark < #now_us or mark < now_us or not tonumber(mark)) then
    call('SET', keys[count + 1], now_us, 'EX', '86400')
end
local answers, released = {}, 0
for i = 1, count do
    local id, number = args[2 * i - 1], args[2 * i]
    released = 0
    if try('GETRANGE', keys[i], '0', '35') == 'lk1:' .. id and #number == #now_us and number < now_us then
        call('DEL', keys[i])
        released = 1
    end
    answers[i] = released
end
return count == 1 and released or answers
