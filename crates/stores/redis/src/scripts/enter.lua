-- A claim comes into the line, or asks again where it stands.
--
-- Answers: H number left-ms · W ahead moves-in-ms age-behind-another-ms · R retry-ms · M kind capacity · G weight.

local kind, weight, capacity = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local lease, waiting_lease, patience = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local channel, question, owner, note = ARGV[8], tonumber(ARGV[9]), ARGV[10], ARGV[11]
-- The number its holder was told already, if it was.
local told = tonumber(ARGV[12]) or 0

local function answer(...)
    conclude()
    return { ... }
end

begin()

if summary and (summary[S.KIND] ~= kind or summary[S.CAPACITY] ~= capacity) then
    return answer('M', summary[S.KIND], summary[S.CAPACITY])
end

local is_new = not own_claim
local rank = 0
if own_claim then
    if weight > own_claim[C.WEIGHT] then return answer('G', own_claim[C.WEIGHT]) end
    if own_claim[C.STATE] == 'left' then
        return answer('R', math.max(0, own_claim[C.ENDS] - now) + 1)
    end
    changed = changed or own_claim[C.WEIGHT] ~= weight or own_claim[C.NOTE] ~= note
    if own_claim[C.STATE] == 'in' then summary[S.USED] = summary[S.USED] - own_claim[C.WEIGHT] + weight end
    own_claim[C.WEIGHT], own_claim[C.NOTE] = weight, note
    admit()
elseif patience == 'present' then
    return answer('R', -1)
else
    local fits = not taken_by_another and (not summary or (summary[S.WAIT] == 0 and summary[S.USED] + weight <= capacity))
    if not fits and patience == 'now' then return answer('R', moves_in()) end
    begin_line(kind, capacity)
    summary[S.ORDER] = summary[S.ORDER] + 1
    own_claim = { 'waiting', weight, lease, 0, now, 0, now + waiting_lease, channel, question, owner, note }
    changed = true
    if fits then
        own_claim[C.STATE], own_claim[C.NUMBER], own_claim[C.ENDS] = 'in', next_number(), now + lease
        put_inside(own, own_claim)
    else
        redis.call('ZADD', waiting, summary[S.ORDER], own)
        rank, summary[S.WAIT] = summary[S.WAIT], summary[S.WAIT] + 1
    end
end

if own_claim[C.STATE] == 'in' then
    if own_claim[C.NUMBER] == 0 then own_claim[C.NUMBER] = told > 0 and told or next_number() end
    if own_claim[C.SINCE] == 0 then own_claim[C.SINCE] = now end
    own_claim[C.LEASE] = math.max(own_claim[C.LEASE], lease)
    prolong(own_claim, now + lease)
    save(own, own_claim)
    return answer('H', whole(own_claim[C.NUMBER]), left_of(own_claim))
end

if patience == 'now' then
    local retry = moves_in()
    drop(own, own_claim)
    admit()
    return answer('R', retry)
end

if not is_new then rank = redis.call('ZRANK', waiting, own) or 0 end
own_claim[C.ENDS] = math.max(own_claim[C.ENDS], now + waiting_lease)
redis.call('ZADD', ends, own_claim[C.ENDS], own)
if is_new and summary[S.WAIT] == 1 then
    lives_on(waiting)
    lives_on(ends)
end
ends_at(own_claim[C.ENDS], S.LONGEST)
own_claim[C.CHANNEL], own_claim[C.QUESTION] = channel, question
save(own, own_claim)
local ahead = summary[S.IN] + rank + (taken_by_another and 1 or 0)
local age = (taken_by_another and rank == 0) and (now - own_claim[C.ENTERED]) or -1
return answer('W', ahead, moves_in(), age)
