-- A claim leaves: held or waiting, by its holder or broken by somebody else.
--
-- ARGV: id, keep (`none`, `for`, `lease`), keep-ms, number: the token's number if the caller knows it, `-` if nobody was
-- ever told it, `?` if somebody may have been. Answers R (it was there) or N.

local id, keep, keep_ms, told = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

begin()

local function leave()
    if taken_by_another and held and string.sub(held, 1, 36) == FAST .. id then
        -- A fast-lane hold in front of a line of another kind.
        redis.call('DEL', holder)
        taken_by_another, changed = false, true
        return 'R'
    end
    local claim = load(id)
    if not claim then return 'N' end
    local was_left, is_in = claim.state == 'left', claim.state ~= 'waiting'
    local until_ms = is_in and tonumber(redis.call('ZSCORE', inside, id)) or now
    if is_in and not was_left and told ~= '-' then
        local known = tonumber(told) or claim.number
        -- Nobody here knows what number its holder was told, but it was before its time was over.
        if known == 0 then known = until_ms * 1000 end
        raise_floor(known)
    end
    local kept_until = now
    if keep == 'for' then kept_until = now + keep_ms elseif keep == 'lease' then kept_until = until_ms end
    if kept_until <= now or not is_in then
        drop(id, claim)
    else
        claim.state = 'left'
        save(id, claim)
        redis.call('ZADD', inside, was_left and math.min(until_ms, kept_until) or kept_until, id)
        changed = true
    end
    return was_left and 'N' or 'R'
end

local answer = leave()
admit(nil)
conclude()
return answer
