-- In front of `leave`: the release of a fast-lane hold that nobody waits for, without looking at a line. Whoever waits for
-- such a hold has taken it into the line before, so a record that is still here has nobody waiting.

local number = ARGV[2] == 'none' and tonumber(ARGV[4])
if number and redis.call('GETRANGE', KEYS[1], 0, 35) == 'lk1:' .. ARGV[1] then
    local time = redis.call('TIME')
    if number < time[1] * 1000000 + time[2] then
        redis.call('DEL', KEYS[1])
        return 'R'
    end
end
