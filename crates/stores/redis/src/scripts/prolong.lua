-- Renews one hold that is in a line. ARGV: id, lease-ms, number (or `?`). Answers what is left in ms, or -1: gone.

local id, lease, number = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

begin()

local claim = load(id)
local left = -1
if claim and claim.state == 'in' then
    local until_ms = math.max(tonumber(redis.call('ZSCORE', inside, id) or now), now + lease)
    redis.call('ZADD', inside, until_ms, id)
    claim.lease = math.max(claim.lease, lease)
    left = left_of(claim, until_ms)
    if claim.number == 0 and number then claim.number = number end
    if claim.since == 0 then claim.since = now end
    save(id, claim)
    raise_floor(claim.number)
end
conclude()
return left
