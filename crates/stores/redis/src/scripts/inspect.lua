-- One line as it stands; changes nothing. Answers: now-ms, the holder key's value (or nothing), its ms left, kind, capacity,
-- then for each claim: id, state, weight, number, entered-ms, since-ms, left-ms, owner, note.

local holder, line, waiting, inside, ends = unpack(KEYS, 1, 5)
local clock = redis.call('TIME')
local now = math.floor((clock[1] * 1000000 + clock[2]) / 1000)
local held = redis.call('GET', holder)
local left = redis.call('PTTL', holder)

local function read(packed, last)
    local fine, values = pcall(cmsgpack.unpack, packed)
    if not fine or type(values) ~= 'table' or values[last] == nil then
        error('lockkeeper:foreign a record of the line cannot be read')
    end
    return values
end

local summary = redis.call('HGET', line, 'line')
if not summary then return { now, held, left, false, false, {} } end
summary = read(summary, 11)
local claims = {}

local function add(ids, ends_key)
    for _, id in ipairs(ids) do
        local until_ms = tonumber(redis.call('ZSCORE', ends_key, id)) or 0
        local packed = until_ms > now and redis.call('HGET', line, id)
        if packed then
            local state, weight, _, number, entered, since, _, _, _, owner, note = unpack(read(packed, 11), 1, 11)
            claims[#claims + 1] =
                { id, state, weight, string.format('%.0f', number), entered, since, until_ms - now, owner, note }
        end
    end
end

-- Nobody of the line is in without the marker.
if held == 'lk1=' then add(redis.call('ZRANGE', inside, 0, -1), inside) end
add(redis.call('ZRANGE', waiting, 0, -1), ends)
return { now, held, left, summary[1], summary[2], claims }
