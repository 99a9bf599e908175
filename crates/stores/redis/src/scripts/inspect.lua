-- One line as it stands; changes nothing. Answers: now-ms, the holder key's value (or nothing), its ms left, kind, capacity,
-- then for each claim: id, state, weight, number, order, entered-ms, since-ms, left-ms, owner, note.

local holder, line, waiting, inside, ends = unpack(KEYS, 1, 5)
local clock = redis.call('TIME')
local now = math.floor((clock[1] * 1000000 + clock[2]) / 1000)
local held = redis.call('GET', holder)
local fields = redis.call('HMGET', line, 'kind', 'capacity')
local claims = {}

local function add(key, order_key)
    local all = redis.call('ZRANGE', order_key, 0, -1)
    for _, id in ipairs(all) do
        local until_ms = tonumber(redis.call('ZSCORE', key, id) or 0)
        local packed = redis.call('HGET', line, id)
        if packed and until_ms > now then
            local fine, claim = pcall(cmsgpack.unpack, packed)
            if not fine or type(claim) ~= 'table' or not claim.weight then
                error('lockkeeper:foreign a record of the line cannot be read')
            end
            claims[#claims + 1] = {
                id, claim.state, claim.weight, string.format('%.0f', claim.number), claim.order, claim.entered,
                claim.since, until_ms - now, claim.owner, claim.note,
            }
        end
    end
end

-- Nobody of the line is in without the marker.
if held == 'lk1=' then add(inside, inside) end
add(ends, waiting)
return { now, held, redis.call('PTTL', holder), fields[1], fields[2], claims }
