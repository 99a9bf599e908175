-- Renews fast-lane holds, any number at once. Never creates, never shortens.
--
-- KEYS: holder and floor of each, then the clock's mark. ARGV: id, lease-ms and number (`?` if it is not known) of each.
-- Answers for each what is left in ms, -1 if it is gone, -2 if it is in a line. The first renewal writes the number into the
-- record, for `show`.

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local answers = {}
-- A mark of another type is not ours to write over.
local mark = redis.pcall('GET', KEYS[#KEYS])
if type(mark) ~= 'table' and now_us > (tonumber(mark) or 0) then
    redis.call('SET', KEYS[#KEYS], string.format('%.0f', now_us), 'EX', 86400)
end
for i = 1, (#KEYS - 1) / 2 do
    local holder, floor_key = KEYS[2 * i - 1], KEYS[2 * i]
    local id, lease, number = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
    local head = redis.pcall('GETRANGE', holder, 0, 63)
    if type(head) ~= 'string' then
        answers[i] = -1
    elseif string.sub(head, 1, 4) == 'lk1=' then
        answers[i] = -2
    elseif string.sub(head, 1, 36) ~= 'lk1:' .. id then
        answers[i] = -1
    else
        local left = redis.call('PTTL', holder)
        if left < lease then
            redis.call('PEXPIRE', holder, lease)
            left = lease
        end
        if number then
            if string.sub(head, 38, 38) == ' ' then redis.call('SETRANGE', holder, 37, string.format('%016.0f', number)) end
            -- A floor of another type is not ours to write over.
            local floor = number >= now_us and redis.pcall('GET', floor_key) or {}
            if type(floor) ~= 'table' and number > (tonumber(floor) or 0) then
                redis.call('SET', floor_key, string.format('%.0f', number), 'EX', 86400)
            end
        end
        -- Never more than its lease, however far the clock went back.
        local longest = tonumber(string.sub(head, 55, 64)) or lease
        if lease > longest then
            redis.call('SETRANGE', holder, 54, string.format('%010.0f', lease))
            longest = lease
        end
        answers[i] = math.min(left, longest)
    end
end
return answers
