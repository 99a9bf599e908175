-- Takes any number of free locks. KEYS: holder and `last` of each. ARGV: the lease in milliseconds, then the record of
-- each. Answers the seconds and microseconds of the server, then for each 0 (taken by somebody), or its `last`, '' if
-- there is none.
local answer = { '', '' }
for at = 1, #KEYS, 2 do
    if redis.call('SET', KEYS[at], ARGV[(at + 1) / 2 + 1], 'NX', 'PX', ARGV[1]) then
        answer[#answer + 1] = redis.call('GET', KEYS[at + 1]) or ''
    else
        answer[#answer + 1] = 0
    end
end
local time = redis.call('TIME')
answer[1], answer[2] = time[1], time[2]
return answer
