-- A claim leaves: held or waiting, by its holder or broken by somebody else.
--
-- ARGV: id, keep (`none`, `for`, `lease`), keep-ms, number: the token's number if the caller knows it, `-` if nobody was
-- ever told it, `?` if somebody may have been. Answers R (it was there) or N.

local keep, keep_ms, told = ARGV[2], tonumber(ARGV[3]), ARGV[4]

begin()

local function leave()
    if taken_by_another and held and string.sub(held, 1, 36) == FAST .. own then
        -- A fast-lane hold in front of a line of another kind.
        redis.call('DEL', holder)
        taken_by_another, changed, a_hold_ended = false, true, true
        if tonumber(told) then raise_floor(tonumber(told)) end
        return 'R'
    end
    local claim = own_claim
    if not claim then return 'N' end
    local was_left, is_in = claim[C.STATE] == 'left', claim[C.STATE] ~= 'waiting'
    local until_ms = claim[C.ENDS]
    if is_in and not was_left and told ~= '-' then
        local known = tonumber(told) or claim[C.NUMBER]
        -- Nobody here knows what number its holder was told, but it was before its time was over.
        if known == 0 then known = until_ms * 1000 end
        raise_floor(known)
    end
    local kept_until = now
    if keep == 'for' then kept_until = now + keep_ms elseif keep == 'lease' then kept_until = until_ms end
    if kept_until <= now or not is_in then
        drop(own, claim)
    else
        if was_left then kept_until = math.min(until_ms, kept_until) end
        claim[C.STATE], claim[C.ENDS] = 'left', kept_until
        save(own, claim)
        if summary[S.CAPACITY] > 1 then redis.call('ZADD', inside, kept_until, own) end
        if summary[S.IN] == 1 then summary[S.LATEST] = 0 else ends_sooner() end
        ends_at(kept_until, S.LATEST)
        changed = true
    end
    return was_left and 'N' or 'R'
end

local answer = leave()
admit()
conclude()
return answer
