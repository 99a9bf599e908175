-- One line as it stands; changes nothing. A long line is read in pieces, so that the server is not kept from its work.
--
-- ARGV: how many of those that are in were read already (`-` for all), and the last place that was read of those that wait.
-- Answers: now-ms, the holder key's value (or nothing), its ms left, kind, capacity, then for each claim: id, state, weight,
-- number, entered-ms, since-ms, left-ms, owner, note; and, if there may be more, what to ask with next.

local PIECE = 250
local holder, line, waiting, inside = unpack(KEYS, 1, 4)
local read_in, read_waiting = ARGV[1], ARGV[2]
local clock = redis.call('TIME')
local now = math.floor((clock[1] * 1000000 + clock[2]) / 1000)
local held = redis.call('GET', holder)
local left = redis.call('PTTL', holder)
-- The marker with more in it; it may say who is in since the line was last written (pass.lua).
local heir, number, rest
if held then heir, number, rest = string.match(held, '^lk1=(%x+):(%d+)(.*)$') end
if heir and #heir == 32 and (rest == '' or #rest > 78) then held = 'lk1=' end

local function read(packed, last)
    local fine, values = pcall(cmsgpack.unpack, packed)
    if not fine or type(values) ~= 'table' or values[last] == nil then
        error('lockkeeper:foreign a record of the line cannot be read')
    end
    return values
end

local summary = redis.call('HGET', line, 'line')
if not summary then return { now, held, left, false, false, {}, {} } end
summary = read(summary, 13)
local claims = {}

local function add(id, number_now)
    local packed = redis.call('HGET', line, id)
    if not packed then return end
    local state, weight, _, number, entered, since, until_ms, _, _, owner, note = unpack(read(packed, 11), 1, 11)
    if until_ms < now then return end
    if number_now then state, number = 'in', number_now end
    claims[#claims + 1] =
        { id, state, weight, string.format('%.0f', number), entered, since, until_ms - now, owner, note }
end

local room, next_piece = PIECE, {}
-- Nobody of the line is in without the marker.
if held == 'lk1=' and read_in ~= '-' then
    -- Where only one can be in, it stands in the summary; or in the marker, if it was passed on to it since.
    local ids, number_now = { summary[13] }, nil
    if summary[2] > 1 then
        ids = redis.call('ZRANGE', inside, read_in, read_in + PIECE - 1)
    elseif rest == '' then
        ids, number_now = { heir }, number
    end
    for _, id in ipairs(ids) do add(id, number_now) end
    room = PIECE - #ids
    if room == 0 then next_piece = { read_in + PIECE, read_waiting } end
end
if room > 0 then
    local found = redis.call('ZRANGEBYSCORE', waiting, '(' .. read_waiting, '+inf', 'WITHSCORES', 'LIMIT', 0, room)
    for i = 1, #found, 2 do add(found[i]) end
    if #found == 2 * room then next_piece = { '-', found[#found] } end
end
return { now, held, left, summary[1], summary[2], claims, next_piece }
