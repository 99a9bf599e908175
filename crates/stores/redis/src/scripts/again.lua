-- A claim asks: what it changes of where it stands already, before anybody comes in. Then `enter` goes on.
--
-- Answers: H number left-ms · W ahead moves-in-ms age-behind-another-ms · R retry-ms · M kind capacity · G weight.

local weight, patience, note = tonumber(ARGV[3]), ARGV[7], ARGV[11]
local answer
if kind and (kind ~= ARGV[2] or capacity ~= tonumber(ARGV[4])) then
    answer = { 'M', kind, capacity }
elseif not own_claim then
    if patience == 'present' then answer = { 'R', -1 } end
elseif weight > own_claim[WEIGHT] then
    answer = { 'G', own_claim[WEIGHT] }
elseif own_claim[STATE] == 'left' then
    answer = { 'R', max(0, own_claim[ENDS] - now) + 1 }
else
    changed = changed or own_claim[WEIGHT] ~= weight or own_claim[NOTE] ~= note
    if own_claim[STATE] == 'in' then used = used - own_claim[WEIGHT] + weight end
    own_claim[WEIGHT], own_claim[NOTE] = weight, note
end
