#!lua name=lockkeeper_lanes
-- The same as `leave.lua`, as a function of the server.
redis.register_function('lanes_leave', function(keys, args)
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2]
    local left = {}
    for at = 1, #keys, 2 do
        local released = 0
        if redis.pcall('GETRANGE', keys[at], 0, 35) == args[at]
            and redis.call('EXISTS', keys[at + 1]) == 0
            and tonumber(args[at + 1]) < now then
            released = redis.call('DEL', keys[at])
        end
        left[#left + 1] = released
    end
    return left
end)
