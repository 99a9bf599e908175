-- Renews one hold that is in a line. ARGV: id, lease-ms, number (or `?`). Answers what is left in ms, or -1: gone.

local lease, told = tonumber(ARGV[2]), tonumber(ARGV[3])
local answer = -1
if own_claim and own_claim[STATE] == 'in' then
    -- A hold stands until at least this.
    if now + lease > own_claim[ENDS] then
        own_claim[ENDS] = now + lease
        if capacity > 1 then call('ZADD', inside, now + lease, own) end
        soonest, latest = min(soonest, now + lease), max(latest, now + lease)
    end
    own_claim[LEASE] = max(own_claim[LEASE], lease)
    if own_claim[NUMBER] == 0 and told then own_claim[NUMBER] = told end
    if own_claim[SINCE] == 0 then own_claim[SINCE] = now end
    unsaved[own] = own_claim
    marks_clock = true
    local number = own_claim[NUMBER]
    if number >= now_us then known, last = max(known, number), max(last, number) end
    -- Never more than its lease, however far the clock went back.
    answer = min(own_claim[ENDS] - now, own_claim[LEASE])
end
