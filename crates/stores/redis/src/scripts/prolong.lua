-- Renews one hold that is in a line. ARGV: id, lease-ms, number (or `?`). Answers what is left in ms, or -1: gone.

local lease, told = tonumber(ARGV[2]), tonumber(ARGV[3])

begin()

local left = -1
if own_claim and own_claim[STATE] == 'in' then
    prolong(own_claim, now + lease)
    own_claim[LEASE] = math.max(own_claim[LEASE], lease)
    if own_claim[NUMBER] == 0 and told then own_claim[NUMBER] = told end
    if own_claim[SINCE] == 0 then own_claim[SINCE] = now end
    save(own, own_claim)
    raise_floor(own_claim[NUMBER])
    mark_clock()
    left = left_of(own_claim)
end
conclude()
return left
