-- Less than a release may do, to see what the rest costs: `leave_one.lua` without the line and the time.
if redis.pcall('GETRANGE', KEYS[1], 0, 35) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
