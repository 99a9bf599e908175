-- Writes down what is left of the line, and sets the marker, with who comes in next, to live as long as it does. The end of
-- the line's scripts: see line.lua.

if changed and eyes then
    -- Those who observe the line are told that it changed.
    local fine, watching = pcall(cmsgpack.unpack, eyes)
    local is_observed = false
    for channel, until_ms in pairs(fine and type(watching) == 'table' and watching or {}) do
        if until_ms > now then
            call('PUBLISH', channel, '~' .. holder)
            is_observed = true
        end
    end
    if not is_observed then
        call('HDEL', line, 'eyes')
        eyes = nil
    end
end

local is_over = not kind or (in_count == 0 and wait_count == 0)
-- The floor outlives the line: a number at or ahead of the clock is written down for a day.
if is_over and kind then known = max(known, last) end
if known >= now_us and known > (floor or tonumber(call('GET', floor_key)) or 0) then
    call('SET', floor_key, known, 'EX', DAY_S)
end
-- The next hold, of whomever, is to be numbered above those that ended, also when the clock goes back. While there is a
-- line, its last number stands in the summary.
if marks_clock or (is_over and a_hold_ended) then
    -- A mark of another type is not ours to write over.
    local mark = redis.pcall('GET', keys[7])
    if type(mark) ~= 'table' and now_us > (tonumber(mark) or 0) then call('SET', keys[7], now_us, 'EX', DAY_S) end
end

if is_over then
    if eyes then
        call('HDEL', line, 'line')
    elseif summary or kind then
        call('DEL', line)
    end
    if (held or kind) and not taken_by_another then call('DEL', holder) end
    return answer
end

if latest_is_stale and in_count > 0 then
    latest = tonumber(call('ZRANGE', inside, '-1', '-1', 'WITHSCORES')[2]) or latest
end
if wait_count == 0 then longest = 0 end
local lives_until = max(latest, longest, now)
local ends_later = lives_until > till
if ends_later then till = lives_until + LINGER_MS end
local still_marks = is_marked and lives_until <= marked and marked <= lives_until + 2 * MARKER_MS
if not still_marks and not taken_by_another then marked = lives_until + MARKER_MS end
local mark = MARKER
-- Those who observe are told by this script alone.
local has_heir = capacity == 1 and sole ~= '' and wait_count > 0 and not eyes and lives_until < WIDEST_MS
if has_heir then
    local tail, heir_ends
    if heir and heir ~= own then
        tail, heir_ends = sub(held, 65), tonumber(sub(held, 104, 116)) or 0
    else
        local id, claim, first = own, own_claim, unsaved[sole] or (sole == own and own_claim)
        if heir ~= own and not (wait_count == 1 and claim and claim[STATE] == 'waiting') then
            id = call('ZRANGE', waiting, '0', '0')[1]
            if id ~= own then claim = id and read(call('HGET', line, id), NOTE) end
        end
        -- A name that is kept is not its holder's any more.
        first = first or read(call('HGET', line, sole), NOTE)
        if claim and first and first[STATE] == 'in' then
            heir_ends = claim[ENDS]
            tail = format(':lk1=%s: %013.0f %010.0f:', id, heir_ends, claim[QUESTION]) .. claim[CHANNEL]
        end
    end
    if tail then
        -- Without its holder the marker has to end when those who wait do.
        local ends_then = marked > longest + 2 * MARKER_MS and longest + MARKER_MS or 0
        mark = format('lk1=%s:%013.0f:%013.0f', sole, min(latest, heir_ends), ends_then) .. tail
    end
end
if not taken_by_another then
    if held ~= mark then
        call('SET', holder, mark, 'PXAT', marked)
    elseif not still_marks then
        call('PEXPIREAT', holder, marked)
    end
end
local pack = cmsgpack.pack
local fields = {
    'line',
    pack({ kind, capacity, used, in_count, wait_count, last, order, soonest, latest, longest, till, marked, sole }),
}
for id, claim in pairs(unsaved) do
    fields[#fields + 1] = id
    fields[#fields + 1] = pack(claim)
    if #fields >= FIELDS_MAX then
        call('HSET', line, unpack(fields))
        fields = {}
    end
end
if #fields > 0 then call('HSET', line, unpack(fields)) end
if ends_later then
    call('PEXPIREAT', line, till)
    if capacity > 1 then call('PEXPIREAT', inside, till) end
    if wait_count > 0 then
        call('PEXPIREAT', waiting, till)
        call('PEXPIREAT', ends, till)
    end
end
return answer
