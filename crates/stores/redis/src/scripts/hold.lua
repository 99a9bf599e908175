-- What a claim that is in is told: its number, and what is left of it, which is never more than its lease, however far the
-- clock went back.

if not answer then
    answer = { 'H', own_claim[NUMBER], min(own_claim[ENDS] - now, own_claim[LEASE]) }
end
