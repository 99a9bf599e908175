-- The line of one lock, and what all scripts that change it share. Joined in front of `enter`, `leave`, `prolong`.
--
-- Who is in: the claims in `:in`, but only while the holder key has our marker. The marker keeps every `SET NX` out, of
-- the fast lane and of other clients alike, for as long as any claim of the line lives. Those that wait are in `:wait`, in
-- order. Weights are at least 1, so those in are always the first of the line: nobody is in behind one that waits.
--
-- Surprises: numbers (tokens) are given when a claim comes in, not when it joins, because a fast-lane claim may have been
-- in between. And no call looks at the whole line: what it needs to know of it stands in one summary.

local holder, line, waiting, inside, ends, floor_key, clock_key = unpack(KEYS, 1, 7)
local own = ARGV[1]
local MARKER, FAST = 'lk1=', 'lk1:'
-- The marker is set a little longer than the longest claim, so that it need not be set again for each.
local DAY_S, LINGER_MS, MARKER_MS, SWEEP_MAX, FIELDS_MAX, NEVER = 86400, 60000, 500, 1000, 1000, 9e15
-- Names of places, in tables: as locals each of them would be searched for whenever a function below is made, in every call.
-- The summary of a line: `soonest` is no later than the end of any claim of it. `latest` is when the last of those that
-- are in ends, and `longest` no earlier than the last of those that wait, who have seconds at the most. `till` is when the
-- keys end by themselves, `marked` when the marker does. Where only one can be in, it is `sole`, and `:in` is not used.
local S = {
    KIND = 1, CAPACITY = 2, USED = 3, IN = 4, WAIT = 5, LAST = 6, ORDER = 7, SOONEST = 8, LATEST = 9, LONGEST = 10,
    TILL = 11, MARKED = 12, SOLE = 13,
}
-- A claim of a line: `number` is 0 while nobody here knows it, `since` while its client was not told that it holds.
local C = {
    STATE = 1, WEIGHT = 2, LEASE = 3, NUMBER = 4, ENTERED = 5, SINCE = 6, ENDS = 7, CHANNEL = 8, QUESTION = 9, OWNER = 10,
    NOTE = 11,
}

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

-- A key of another type stops the script here, before anything is written; the sorted sets, which are empty as long as
-- there is no line, when it begins.
local held = redis.call('GET', holder)
local stored = redis.call('HMGET', line, 'line', 'eyes', own)
local eyes = stored[2]
local a_hold_ended = false
-- One of several that are in has gone, or goes sooner than it would have: who is the last of them has to be looked up.
local latest_is_stale = false
-- Somebody who is not in the line has the lock: another client, or a fast-lane claim of another kind than the line's.
local taken_by_another = false
local changed = false

local function read(packed, last)
    if not packed then return nil end
    local fine, values = pcall(cmsgpack.unpack, packed)
    if not fine or type(values) ~= 'table' or values[last] == nil then
        error('lockkeeper:foreign a record of the line cannot be read')
    end
    return values
end

local summary = read(stored[1], S.SOLE)
local own_claim = read(stored[3], C.NOTE)
-- Numbers of a line go on above its last one; only the first of it has to be above the floor.
local floor
if not (summary and summary[S.LAST] > 0) then floor = tonumber(redis.call('GET', floor_key)) or 0 end

local function whole(number)
    return string.format('%.0f', number)
end

-- Claims that were changed; they are written at the end, together.
local unsaved = {}
local function load(id)
    if id == own then return own_claim end
    return unsaved[id] or read(redis.call('HGET', line, id), C.NOTE)
end

local function save(id, claim)
    if id == own then own_claim = claim end
    unsaved[id] = claim
end

local function save_all()
    local fields = { 'line', cmsgpack.pack(summary) }
    for id, claim in pairs(unsaved) do
        fields[#fields + 1] = id
        fields[#fields + 1] = cmsgpack.pack(claim)
        if #fields >= FIELDS_MAX then
            redis.call('HSET', line, unpack(fields))
            fields = {}
        end
    end
    if #fields > 0 then redis.call('HSET', line, unpack(fields)) end
end

-- A sorted set that was empty has come back without its end.
local function lives_on(key)
    if summary[S.TILL] > 0 then redis.call('PEXPIREAT', key, whole(summary[S.TILL])) end
end

local function ends_at(until_ms, latest)
    summary[S.SOONEST] = math.min(summary[S.SOONEST], until_ms)
    summary[latest] = math.max(summary[latest], until_ms)
end

-- Somebody who is in, or was, may have been the last to end.
local function ends_sooner()
    if summary[S.IN] == 0 then summary[S.LATEST] = 0 else latest_is_stale = true end
end

local function begin_line(kind, capacity)
    if summary then return end
    if redis.call('EXISTS', waiting, inside, ends) > 0 then
        -- What an earlier line left, should the server have dropped a part of it; or something that is not ours.
        for _, key in ipairs({ waiting, inside, ends }) do redis.call('ZRANGE', key, 0, 0) end
        redis.call('DEL', waiting, inside, ends)
    end
    -- It was not looked at while an earlier line, which is over, had a last number.
    if not floor then floor = tonumber(redis.call('GET', floor_key)) or 0 end
    summary = { kind, capacity, 0, 0, 0, 0, 0, NEVER, 0, 0, 0, 0, '' }
end

local function put_inside(id, claim)
    if summary[S.CAPACITY] == 1 then
        summary[S.SOLE] = id
    else
        redis.call('ZADD', inside, claim[C.ENDS], id)
        if summary[S.IN] == 0 then lives_on(inside) end
    end
    summary[S.IN], summary[S.USED] = summary[S.IN] + 1, summary[S.USED] + claim[C.WEIGHT]
    ends_at(claim[C.ENDS], S.LATEST)
end

-- A hold stands until at least this.
local function prolong(claim, until_ms)
    if until_ms > claim[C.ENDS] then
        claim[C.ENDS] = until_ms
        if summary[S.CAPACITY] > 1 then redis.call('ZADD', inside, until_ms, own) end
        ends_at(until_ms, S.LATEST)
    end
end

-- Is it in? Not from here on.
local function take_from_inside(id)
    if summary[S.CAPACITY] > 1 then return redis.call('ZREM', inside, id) == 1 end
    if summary[S.SOLE] ~= id then return false end
    summary[S.SOLE] = ''
    return true
end

-- Those in whose time is over at a moment, some at a time.
local function inside_until(until_ms)
    if summary[S.CAPACITY] > 1 then
        return redis.call('ZRANGEBYSCORE', inside, '-inf', until_ms, 'LIMIT', 0, SWEEP_MAX)
    end
    return summary[S.SOLE] ~= '' and summary[S.LATEST] <= until_ms and { summary[S.SOLE] } or {}
end

-- When the first of those in ends.
local function inside_ends()
    if summary[S.CAPACITY] > 1 then return tonumber(redis.call('ZRANGE', inside, 0, 0, 'WITHSCORES')[2]) end
    return summary[S.SOLE] ~= '' and summary[S.LATEST] or nil
end

-- Takes a claim out, wherever it stands.
local function drop(id, claim)
    if take_from_inside(id) then
        summary[S.IN], summary[S.USED] = summary[S.IN] - 1, summary[S.USED] - claim[C.WEIGHT]
        a_hold_ended = true
        ends_sooner()
    else
        summary[S.WAIT] = summary[S.WAIT] - redis.call('ZREM', waiting, id)
        redis.call('ZREM', ends, id)
    end
    redis.call('HDEL', line, id)
    unsaved[id] = nil
    if id == own then own_claim = nil end
    changed = true
end

local function drop_all(ids)
    for _, id in ipairs(ids) do
        drop(id, load(id) or { [C.WEIGHT] = 0 })
    end
end

-- The floor outlives the line: a number at or ahead of the clock is written down for a day. A line that goes on does so
-- above it.
local function raise_floor(number)
    if number < now_us then return end
    if summary then summary[S.LAST] = math.max(summary[S.LAST], number) end
    if not floor then floor = tonumber(redis.call('GET', floor_key)) or 0 end
    if number > floor then
        floor = number
        redis.call('SET', floor_key, whole(number), 'EX', DAY_S)
    end
end

-- Holds ended as late as this, says the clock; should it be behind that now, it went back. A mark that is not a string is
-- not ours: it is as good as none, and not written over.
local clock_mark, mark_is_ours
local function look_at_mark()
    if clock_mark then return end
    local text = redis.pcall('GET', clock_key)
    mark_is_ours = type(text) ~= 'table'
    clock_mark = mark_is_ours and tonumber(text) or 0
end

local function next_number()
    if summary[S.LAST] == 0 then look_at_mark() end
    local number = math.max(now_us, summary[S.LAST] + 1, (floor or 0) + 1, (clock_mark or 0) + 1)
    summary[S.LAST] = number
    if number > now_us then raise_floor(number) end
    return number
end

-- What is left of a hold, as its holder is told: never more than its lease, however far the clock went back.
local function left_of(claim)
    return math.min(claim[C.ENDS] - now, claim[C.LEASE])
end

-- A fast-lane hold comes into the line as it is: same id, same time left.
local function import(record)
    local id, number, lease, length, owner_and_note = string.match(record, '^lk1:(%x+):([%d ]+):(%d+):(%d+):(.*)$')
    if not id or (summary and not (summary[S.KIND] == 'mutex' and summary[S.CAPACITY] == 1)) then
        taken_by_another = true
        return
    end
    local left = redis.call('PTTL', holder)
    if left < 0 then left = tonumber(lease) end
    number, length = tonumber(number) or 0, tonumber(length)
    local since = number > 0 and math.floor(number / 1000) or math.min(now, now + left - lease)
    begin_line('mutex', 1)
    local claim = {
        'in', 1, tonumber(lease), number, since, since, now + left, '', 0,
        string.sub(owner_and_note, 1, length), string.sub(owner_and_note, length + 1),
    }
    save(id, claim)
    put_inside(id, claim)
end

-- Everybody who fits comes in, in order; all but our own claim are told.
local function admit()
    while summary and summary[S.WAIT] > 0 and summary[S.USED] < summary[S.CAPACITY] and not taken_by_another do
        local first = redis.call('ZRANGE', waiting, 0, 0)[1]
        local claim = first and load(first)
        if not claim then
            -- The server dropped a part of the line: those who waited there ask again.
            redis.call('DEL', waiting, ends)
            summary[S.WAIT] = 0
            return
        end
        if summary[S.USED] + claim[C.WEIGHT] > summary[S.CAPACITY] then return end
        redis.call('ZREM', waiting, first)
        redis.call('ZREM', ends, first)
        summary[S.WAIT] = summary[S.WAIT] - 1
        put_inside(first, claim)
        claim[C.STATE], claim[C.NUMBER] = 'in', next_number()
        save(first, claim)
        changed = true
        if first ~= own and claim[C.CHANNEL] ~= '' then
            local left = math.max(0, claim[C.ENDS] - now)
            local news = table.concat({ first, whole(claim[C.NUMBER]), whole(left), claim[C.QUESTION] }, ' ')
            redis.call('PUBLISH', claim[C.CHANNEL], news)
        end
    end
end

-- Those whose time is over go: whoever comes by takes them out.
local function sweep()
    -- Moments are cut to whole milliseconds, so one that ends now may have a part of one left: it goes in the next.
    if not summary or now <= summary[S.SOONEST] then return end
    drop_all(inside_until(now - 1))
    drop_all(redis.call('ZRANGEBYSCORE', ends, '-inf', now - 1, 'LIMIT', 0, SWEEP_MAX))
    local first_waiting = tonumber(redis.call('ZRANGE', ends, 0, 0, 'WITHSCORES')[2])
    summary[S.SOONEST] = math.min(inside_ends() or NEVER, first_waiting or NEVER)
end

-- Finds out who is in, and takes out those whose time is over.
local function begin()
    if summary and held ~= MARKER and summary[S.IN] > 0 then
        -- Nobody of the line is in without the marker, whatever took it away.
        drop_all(summary[S.CAPACITY] > 1 and redis.call('ZRANGE', inside, 0, -1) or { summary[S.SOLE] })
        summary[S.IN], summary[S.USED], summary[S.LATEST] = 0, 0, 0
    end
    sweep()
    if summary and summary[S.IN] == 0 and summary[S.WAIT] == 0 then
        raise_floor(summary[S.LAST])
        summary = nil
    end
    if not summary then own_claim = nil end
    if held and held ~= MARKER then
        if string.sub(held, 1, 4) == FAST then import(held) else taken_by_another = true end
    end
    admit()
end

-- Those who observe the line are told that it changed.
local function tell_observers()
    local fine, watching = pcall(cmsgpack.unpack, eyes)
    if not fine or type(watching) ~= 'table' then return end
    for channel, until_ms in pairs(watching) do
        if until_ms > now then redis.call('PUBLISH', channel, '~' .. holder) end
    end
end

-- The next hold, of whomever, is to be numbered above those that ended, also when the clock goes back.
local function mark_clock()
    look_at_mark()
    if mark_is_ours and now_us > clock_mark then redis.call('SET', clock_key, whole(now_us), 'EX', DAY_S) end
end

-- Writes down what is left of the line, and sets the marker to live as long as it does.
local function conclude()
    if changed and eyes then tell_observers() end
    if not summary or (summary[S.IN] == 0 and summary[S.WAIT] == 0) then
        -- While there is a line, its last number stands in the summary.
        if a_hold_ended then mark_clock() end
        if summary then raise_floor(summary[S.LAST]) end
        if eyes then
            redis.call('HDEL', line, 'line')
        elseif stored[1] or summary then
            redis.call('DEL', line)
        end
        if (held or summary) and not taken_by_another then redis.call('DEL', holder) end
        return
    end
    if latest_is_stale and summary[S.IN] > 0 then
        summary[S.LATEST] = tonumber(redis.call('ZRANGE', inside, -1, -1, 'WITHSCORES')[2]) or summary[S.LATEST]
    end
    if summary[S.WAIT] == 0 then summary[S.LONGEST] = 0 end
    local lives_until = math.max(summary[S.LATEST], summary[S.LONGEST], now)
    local ends_later = lives_until > summary[S.TILL]
    if ends_later then summary[S.TILL] = lives_until + LINGER_MS end
    local still_marks = held == MARKER and lives_until <= summary[S.MARKED] and summary[S.MARKED] <= lives_until + 2 * MARKER_MS
    if not taken_by_another and not still_marks then
        summary[S.MARKED] = lives_until + MARKER_MS
        redis.call('SET', holder, MARKER, 'PXAT', whole(summary[S.MARKED]))
    end
    save_all()
    if ends_later then
        for _, key in ipairs({ line, waiting, inside, ends }) do lives_on(key) end
    end
end

-- When the line may move by itself: a claim that is in ends, or the first that waits does.
local function moves_in()
    local soonest = summary and inside_ends()
    -- One that waits for a mutex ahead of us makes no difference by ending.
    local first = summary and summary[S.CAPACITY] > 1 and redis.call('ZRANGE', waiting, 0, 0)[1]
    local head = first and first ~= own and load(first)
    if head and (not soonest or head[C.ENDS] < soonest) then soonest = head[C.ENDS] end
    if taken_by_another then
        local left = redis.call('PTTL', holder)
        if left >= 0 and (not soonest or now + left < soonest) then soonest = now + left end
    end
    return soonest and math.max(0, soonest - now) + 1 or -1
end
