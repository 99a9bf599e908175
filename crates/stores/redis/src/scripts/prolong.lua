-- Renews one hold that is in a line. ARGV: id, lease-ms, number (or `?`). Answers what is left in ms, or -1: gone.

local lease, told = tonumber(ARGV[2]), tonumber(ARGV[3])

begin()

local left = -1
if own_claim and own_claim[C.STATE] == 'in' then
    prolong(own_claim, now + lease)
    own_claim[C.LEASE] = math.max(own_claim[C.LEASE], lease)
    if own_claim[C.NUMBER] == 0 and told then own_claim[C.NUMBER] = told end
    if own_claim[C.SINCE] == 0 then own_claim[C.SINCE] = now end
    save(own, own_claim)
    raise_floor(own_claim[C.NUMBER])
    mark_clock()
    left = left_of(own_claim)
end
conclude()
return left
