-- The line of one lock, and what all scripts that change it share. Joined in front of `enter`, `leave`, `renew`, `observe`.
--
-- Who is in: the claims in `:in`, but only while the holder key has our marker. The marker keeps every `SET NX` out, of
-- the fast lane and of other clients alike, for as long as any claim of the line lives. Those that wait are in `:wait`, in
-- order. Weights are at least 1, so those in are always the first of the line: nobody is in behind one that waits.
--
-- Surprise: numbers (tokens) are given when a claim comes in, not when it joins, because a fast-lane claim may have been
-- in between.

local holder, line, waiting, inside, ends, floor_key = unpack(KEYS, 1, 6)
local MARKER, FAST = 'lk1=', 'lk1:'
local DAY_S, LINGER_MS, SWEEP_MAX = 86400, 60000, 1000

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

-- Everything is read before anything is written: a key of another type stops the script here.
local held = redis.call('GET', holder)
local fields = redis.call('HMGET', line, 'kind', 'capacity', 'used', 'last', 'order', 'till', 'eyes')
local floor = tonumber(redis.call('GET', floor_key)) or 0
local head = redis.call('ZRANGE', waiting, 0, 0)[1]
local over_in = redis.call('ZRANGEBYSCORE', inside, '-inf', now, 'LIMIT', 0, SWEEP_MAX)
local over_waiting = redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, SWEEP_MAX)

local kind, capacity = fields[1], tonumber(fields[2])
local used, last, order = tonumber(fields[3]) or 0, tonumber(fields[4]) or 0, tonumber(fields[5]) or 0
local till, eyes = tonumber(fields[6]) or 0, fields[7]
-- Somebody who is not in the line has the lock: another client, or a fast-lane claim of another kind than the line's.
local taken_by_another = false
local changed = false

local function whole(number)
    return string.format('%.0f', number)
end

local function damaged()
    error('lockkeeper:foreign a record of the line cannot be read')
end

local function load(id)
    local packed = redis.call('HGET', line, id)
    if not packed then return nil end
    local fine, claim = pcall(cmsgpack.unpack, packed)
    if not fine or type(claim) ~= 'table' or not claim.weight then damaged() end
    return claim
end

local function save(id, claim)
    redis.call('HSET', line, id, cmsgpack.pack(claim))
end

-- Takes a claim out, wherever it stands.
local function drop(id, claim)
    if redis.call('ZREM', inside, id) == 1 then
        used = used - claim.weight
    else
        redis.call('ZREM', waiting, id)
        redis.call('ZREM', ends, id)
    end
    redis.call('HDEL', line, id)
    changed = true
end

local function drop_all(ids)
    for _, id in ipairs(ids) do
        local claim = load(id)
        drop(id, claim or { weight = 0 })
    end
end

-- The floor outlives the line: a number at or ahead of the clock is written down for a day.
local function raise_floor(number)
    if number >= now_us and number > floor then
        floor = number
        redis.call('SET', floor_key, whole(number), 'EX', DAY_S)
    end
end

-- What is left of a hold, as its holder is told: never more than its lease, however far the clock went back.
local function left_of(claim, until_ms)
    return math.min(until_ms - now, claim.lease)
end

local function next_number()
    last = math.max(now_us, last + 1, floor + 1)
    if last > now_us then raise_floor(last) end
    return last
end

-- A fast-lane hold comes into the line as it is: same id, same time left.
local function import(record)
    local id, number, lease, length, owner_and_note = string.match(record, '^lk1:(%x+):([%d ]+):(%d+):(%d+):(.*)$')
    if not id then
        taken_by_another = true
        return
    end
    if kind and not (kind == 'mutex' and capacity == 1) then
        taken_by_another = true
        return
    end
    local left = redis.call('PTTL', holder)
    if left < 0 then left = tonumber(lease) end
    number, length = tonumber(number) or 0, tonumber(length)
    local since = number > 0 and math.floor(number / 1000) or math.min(now, now + left - lease)
    kind, capacity, used = 'mutex', 1, 1
    save(id, {
        state = 'in', weight = 1, lease = tonumber(lease), number = number, order = 0, entered = since, since = since, channel = '',
        question = 0, owner = string.sub(owner_and_note, 1, length), note = string.sub(owner_and_note, length + 1),
    })
    redis.call('ZADD', inside, now + left, id)
end

-- Everybody who fits comes in, in order; all but `own` are told.
local function admit(own)
    while not taken_by_another do
        local first = redis.call('ZRANGE', waiting, 0, 0)[1]
        if not first then return end
        local claim = load(first)
        if not claim then damaged() end
        if used + claim.weight > capacity then return end
        local until_ms = tonumber(redis.call('ZSCORE', ends, first)) or now
        redis.call('ZREM', waiting, first)
        redis.call('ZREM', ends, first)
        redis.call('ZADD', inside, until_ms, first)
        used = used + claim.weight
        claim.state, claim.number = 'in', next_number()
        save(first, claim)
        changed = true
        if first ~= own and claim.channel ~= '' then
            local left = math.max(0, until_ms - now)
            local news = table.concat({ first, whole(claim.number), whole(left), claim.question }, ' ')
            redis.call('PUBLISH', claim.channel, news)
        end
    end
end

-- Finds out who is in, and takes out those whose time is over.
local function begin()
    if held ~= MARKER then
        -- Nobody of the line is in without the marker, whatever took it away.
        over_in = redis.call('ZRANGE', inside, 0, -1)
    end
    drop_all(over_in)
    drop_all(over_waiting)
    if redis.call('EXISTS', inside, waiting) == 0 then
        kind, capacity, used = nil, nil, 0
    end
    if held and held ~= MARKER then
        if string.sub(held, 1, 4) == FAST then import(held) else taken_by_another = true end
    end
    if head then admit(nil) end
end

local function largest(key)
    return tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]) or 0
end

-- Those who observe the line are told that it changed.
local function tell_observers()
    local fine, watching = pcall(cmsgpack.unpack, eyes)
    if not fine or type(watching) ~= 'table' then return end
    for channel, until_ms in pairs(watching) do
        if until_ms > now then redis.call('PUBLISH', channel, '~' .. holder) end
    end
end

-- Writes down what is left of the line, and sets the marker to live as long as it does.
local function conclude()
    if changed and eyes then tell_observers() end
    if redis.call('EXISTS', inside, waiting) == 0 then
        raise_floor(last)
        if eyes then
            redis.call('HDEL', line, 'kind', 'capacity', 'used', 'last', 'order')
        else
            redis.call('DEL', line)
        end
        if not taken_by_another then redis.call('DEL', holder) end
        return
    end
    redis.call('HSET', line, 'kind', kind, 'capacity', capacity, 'used', used, 'last', whole(last), 'order', order)
    local lives_until = math.max(largest(inside), largest(ends))
    if lives_until > till then
        till = lives_until + LINGER_MS
        redis.call('HSET', line, 'till', whole(till))
        for _, key in ipairs({ line, waiting, inside, ends }) do redis.call('PEXPIREAT', key, whole(till)) end
    else
        -- A sorted set that was empty has come back without its end.
        for _, key in ipairs({ waiting, inside, ends }) do
            if redis.call('PTTL', key) == -1 then redis.call('PEXPIREAT', key, whole(till)) end
        end
    end
    if not taken_by_another then
        redis.call('SET', holder, MARKER, 'PXAT', whole(math.max(lives_until, now + 1)))
    end
end

-- When the line may move by itself: a claim that is in ends, or the first that waits does.
local function moves_in(own)
    local soonest = tonumber(redis.call('ZRANGE', inside, 0, 0, 'WITHSCORES')[2])
    local first = redis.call('ZRANGE', waiting, 0, 0)[1]
    if first and first ~= own then
        local first_ends = tonumber(redis.call('ZSCORE', ends, first))
        if first_ends and (not soonest or first_ends < soonest) then soonest = first_ends end
    end
    if taken_by_another then
        local left = redis.call('PTTL', holder)
        if left >= 0 and (not soonest or now + left < soonest) then soonest = now + left end
    end
    return soonest and math.max(0, soonest - now) or -1
end
