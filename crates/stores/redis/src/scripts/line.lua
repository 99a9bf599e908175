-- The line of one lock: what stands, and whose time is over. The beginning of `enter`, `leave` and `prolong`, which are
-- each joined of blocks that share the locals named here: mod.rs says in which order.
--
-- Who is in: the claims in `:in`, but only while the holder key has our marker. The marker keeps every `SET NX` out, of
-- the fast lane and of other clients alike, for as long as any claim of the line lives. Those that wait are in `:wait`, in
-- order. Weights are at least 1, so those in are always the first of the line: nobody is in behind one that waits.
--
-- Surprises: numbers (tokens) are given when a claim comes in, not when it joins, because a fast-lane claim may have been
-- in between. No call looks at the whole line: what it needs to know of it stands in one summary. And what is done twice
-- is a block that is joined in twice, not a function: to make a function that shares locals costs the server as much as a
-- command does, in each call, whether the function is needed or not. Those that are here share none.

local max, min, format = math.max, math.min, string.format
local line, waiting, inside, ends, floor_key = keys[2], keys[3], keys[4], keys[5], keys[6]
-- What is only handed to commands is text: to write a number down takes longer.
local MARKER, FAST, DAY_S, SWEEP_MAX = 'lk1=', 'lk1:', '86400', '1000'
-- The marker is set a little longer than the longest claim, so that it need not be set again for each.
-- Moments in it have 13 digits.
local LINGER_MS, MARKER_MS, WIDEST_MS, FIELDS_MAX, NEVER = 60000, 500, 9e12, 1000, 9e15
-- Places in a claim: `NUMBER` is 0 while nobody here knows it, `SINCE` while its client was not told that it holds.
local STATE, WEIGHT, LEASE, NUMBER, ENTERED, SINCE, ENDS, CHANNEL, QUESTION, NOTE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 11
local SUMMARY_LAST = 13

local now_us = clock[1] * 1000000 + clock[2]
local now = (now_us - clock[2] % 1000) / 1000

local function read(packed, last)
    if not packed then return nil end
    local fine, values = pcall(cmsgpack.unpack, packed)
    if not fine or type(values) ~= 'table' or values[last] == nil then
        error('lockkeeper:foreign a record of the line cannot be read')
    end
    return values
end

-- Only the first number of a line has to be above the mark: holds ended as late as that, says the clock; should it be
-- behind that now, it went back. A mark that is not a string is not ours: it is as good as none.
local function next_number(now_us, last, floor, known)
    local mark = last == 0 and tonumber(redis.pcall('GET', KEYS[7])) or 0
    return math.max(now_us, last + 1, (floor or 0) + 1, known + 1, mark + 1)
end

-- Where no line stands, nothing of one does. Answers the floor, which was not looked at while an earlier line, which is
-- over, had a last number.
local function begin_line(floor)
    if redis.call('EXISTS', KEYS[3], KEYS[4], KEYS[5]) > 0 then
        -- What an earlier line left, should the server have dropped a part of it; or something that is not ours.
        for nth = 3, 5 do redis.call('ZRANGE', KEYS[nth], 0, 0) end
        redis.call('DEL', KEYS[3], KEYS[4], KEYS[5])
    end
    return floor or tonumber(redis.call('GET', KEYS[6])) or 0
end

-- A key of another type stops the script here, too; the sorted sets, which are empty as long as there is no line, when it
-- begins.
local stored = call('HMGET', line, 'line', 'eyes', own)
local eyes = stored[2]
local own_claim = read(stored[3], NOTE)

-- The summary; without a line there is no `kind`. `soonest` is no later than the end of any claim of it. `latest` is when
-- the last of those that are in ends, and `longest` no earlier than the last of those that wait, who have seconds at the
-- most. `till` is when the keys end by themselves, `marked` when the marker does. Where only one can be in, it is `sole`,
-- and `:in` is not used.
local kind, capacity, used, in_count, wait_count, last, order, soonest, latest, longest, till, marked, sole
local summary = read(stored[1], SUMMARY_LAST)
if summary then
    kind, capacity, used, in_count, wait_count, last, order, soonest, latest, longest, till, marked, sole =
        unpack(summary, 1, SUMMARY_LAST)
end
-- Numbers of a line go on above its last one; only the first of it has to be above the floor.
local floor
if not (kind and last > 0) then floor = tonumber(call('GET', floor_key)) or 0 end
-- The greatest number that has to outlive the line; looked at if it is at or ahead of the clock.
local known = 0

-- Claims that were changed; they are written at the end, together.
local unsaved = {}
-- What `admit` takes in first: a new claim that fits. And whether others may fit.
local newcomer
local may_fit = true
local changed, a_hold_ended, marks_clock = false, false, false
-- One of several that are in has gone, or goes sooner than it would have: who is the last of them has to be looked up.
local latest_is_stale = false
-- Somebody who is not in the line has the lock: another client, or a fast-lane claim of another kind than the line's.
local taken_by_another = false

-- The marker: alone; with who is in and who comes in next, or, once it came in, with its number (pass.lua).
local is_marked = held == MARKER
local heir
if held and not is_marked and sub(held, 1, 4) == MARKER then
    local id, number, rest = string.match(held, '^lk1=(%x+):(%d+)(.*)$')
    is_marked = id and #id == 32 and (rest == '' or #rest > 78)
    if is_marked and kind and rest ~= '' then
        heir = sub(rest, 20, 51)
    elseif is_marked and kind then
        -- It was passed on: the one that held it is gone, and its heir is in.
        local claim = own_claim
        if id ~= own then claim = read(call('HGET', line, id), NOTE) end
        call('HDEL', line, sole)
        if sole == own then own_claim = nil end
        sole, a_hold_ended, changed = id, true, true
        if claim then
            wait_count = wait_count - call('ZREM', waiting, id)
            call('ZREM', ends, id)
            number = tonumber(number)
            last, latest, claim[STATE], claim[NUMBER] = max(last, number), claim[ENDS], 'in', number
            unsaved[id] = claim
            if marked > longest + 2 * MARKER_MS then marked = longest + MARKER_MS end
        end
    end
end

-- A line in which nothing happened since the last call: everybody who fits is in, and nobody's time is over.
-- Moments are cut to whole milliseconds, so one that ends now may have a part of one left: it goes in the next.
local is_settled = kind and is_marked and now <= soonest and in_count > 0
-- Nobody of the line is in without the marker, whatever took it away.
local is_unmarked = kind and not is_marked and in_count > 0
-- Those who go: whoever comes by takes them out.
local gone
if kind and not is_settled then
    gone = {}
    local several = capacity > 1
    if is_unmarked then
        -- The first that waits may have been told that it is in: only the marker knew.
        gone = several and call('ZRANGE', inside, '0', '-1') or { sole, call('ZRANGE', waiting, '0', '0')[1] }
    elseif now > soonest then
        if several then
            gone = call('ZRANGEBYSCORE', inside, '-inf', now - 1, 'LIMIT', '0', SWEEP_MAX)
        elseif sole ~= '' and latest < now then
            gone = { sole }
        end
    end
    if now > soonest then
        local over = call('ZRANGEBYSCORE', ends, '-inf', now - 1, 'LIMIT', '0', SWEEP_MAX)
        for nth = 1, #over do gone[#gone + 1] = over[nth] end
    end
end
