-- A claim comes into the line, or asks again where it stands.
--
-- Answers: H number left-ms · W ahead moves-in-ms age-behind-another-ms · R retry-ms · M kind capacity · G weight.

local id, wanted_kind, weight, wanted_capacity = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local lease, waiting_lease, patience = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local channel, question, owner, note = ARGV[8], tonumber(ARGV[9]), ARGV[10], ARGV[11]
-- The number its holder was told already, if it was.
local told = tonumber(ARGV[12]) or 0

local function answer(...)
    conclude()
    return { ... }
end

begin()

if kind and (kind ~= wanted_kind or capacity ~= wanted_capacity) then return answer('M', kind, capacity) end

local claim = load(id)
if claim then
    if weight > claim.weight then return answer('G', claim.weight) end
    if claim.state == 'left' then
        return answer('R', math.max(0, tonumber(redis.call('ZSCORE', inside, id) or now) - now))
    end
    changed = changed or claim.weight ~= weight or claim.note ~= note
    if claim.state == 'in' then used = used - claim.weight + weight end
    claim.weight, claim.note = weight, note
    save(id, claim)
    admit(id)
    claim = load(id)
elseif patience == 'present' then
    return answer('R', -1)
else
    kind, capacity = wanted_kind, wanted_capacity
    claim = {
        state = 'waiting', weight = weight, lease = lease, number = 0, order = order + 1, entered = now, since = 0, channel = channel,
        question = question, owner = owner, note = note,
    }
    local fits = not taken_by_another and used + weight <= capacity and redis.call('EXISTS', waiting) == 0
    if fits then
        claim.state, claim.number = 'in', next_number()
        used = used + weight
        redis.call('ZADD', inside, now, id)
    elseif patience == 'now' then
        return answer('R', moves_in(id))
    else
        redis.call('ZADD', waiting, order + 1, id)
        redis.call('ZADD', ends, now, id)
    end
    order = order + 1
    changed = true
end

if claim.state == 'in' then
    if claim.number == 0 then claim.number = told > 0 and told or next_number() end
    claim.lease = math.max(claim.lease, lease)
    if claim.since == 0 then claim.since = now end
    local until_ms = math.max(tonumber(redis.call('ZSCORE', inside, id) or now), now + lease)
    redis.call('ZADD', inside, until_ms, id)
    save(id, claim)
    return answer('H', whole(claim.number), left_of(claim, until_ms))
end

if patience == 'now' then
    local retry = moves_in(id)
    drop(id, claim)
    admit(nil)
    return answer('R', retry)
end

local until_ms = math.max(tonumber(redis.call('ZSCORE', ends, id) or now), now + waiting_lease)
redis.call('ZADD', ends, until_ms, id)
claim.channel, claim.question = channel, question
save(id, claim)
local rank = redis.call('ZRANK', waiting, id)
local ahead = redis.call('ZCARD', inside) + rank + (taken_by_another and 1 or 0)
local age = (taken_by_another and rank == 0) and (now - claim.entered) or -1
return answer('W', ahead, moves_in(id), age)
