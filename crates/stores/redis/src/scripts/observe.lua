-- An observer wants to be told of changes for a while. ARGV: its channel, for how many ms.

local watching = {}
if eyes then
    local fine, known = pcall(cmsgpack.unpack, eyes)
    if fine and type(known) == 'table' then
        for channel, until_ms in pairs(known) do
            if until_ms > now then watching[channel] = until_ms end
        end
    end
end
watching[ARGV[1]] = now + tonumber(ARGV[2])
redis.call('HSET', line, 'eyes', cmsgpack.pack(watching))
if redis.call('PTTL', line) < tonumber(ARGV[2]) then redis.call('PEXPIRE', line, ARGV[2]) end
return 1
