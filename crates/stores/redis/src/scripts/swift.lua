-- In front of `leave`: the release of a fast-lane hold that nobody waits for, without looking at a line. Whoever waits for
-- such a hold has taken it into the line before, so a record that is still here has nobody waiting. A number that nobody
-- was told (`-`) needs no floor.

local number = ARGV[4] == '-' and 0 or tonumber(ARGV[4])
if ARGV[2] == 'none' and number and redis.call('GETRANGE', KEYS[1], 0, 35) == 'lk1:' .. ARGV[1] then
    local time = redis.call('TIME')
    local time_us = time[1] * 1000000 + time[2]
    if number < time_us then
        -- A mark of another type is not ours to write over.
        local mark = redis.pcall('GET', KEYS[7])
        if type(mark) ~= 'table' and time_us > (tonumber(mark) or 0) then
            redis.call('SET', KEYS[7], string.format('%.0f', time_us), 'EX', 86400)
        end
        redis.call('DEL', KEYS[1])
        return 'R'
    end
end
