-- In front of `leave`: the release of a fast-lane hold that nobody waits for, without looking at a line.

if ARGV[2] == 'none' and tonumber(ARGV[4]) and redis.call('EXISTS', KEYS[2]) == 0
    and redis.call('GETRANGE', KEYS[1], 0, 35) == 'lk1:' .. ARGV[1] then
    local time = redis.call('TIME')
    if tonumber(ARGV[4]) < time[1] * 1000000 + time[2] then
        redis.call('DEL', KEYS[1])
        return 'R'
    end
end
