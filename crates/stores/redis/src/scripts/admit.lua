-- Everybody who fits comes in, in order; all but our own claim are told. A block of the line's scripts: see line.lua.

while newcomer or (may_fit and wait_count > 0 and used < capacity and not taken_by_another) do
    local id, claim = own, newcomer
    if not newcomer then
        id = call('ZRANGE', waiting, '0', '0')[1]
        claim = own_claim
        if id ~= own then claim = id and read(call('HGET', line, id), NOTE) end
        if not claim then
            -- The server dropped a part of the line: those who waited there ask again.
            call('DEL', waiting, ends)
            wait_count = 0
            break
        end
        if used + claim[WEIGHT] > capacity then break end
        call('ZREM', waiting, id)
        call('ZREM', ends, id)
        wait_count = wait_count - 1
    end
    newcomer = nil
    if id == heir then heir = nil end
    local ends_at = claim[ENDS]
    if capacity == 1 then
        sole = id
    else
        call('ZADD', inside, ends_at, id)
        -- A sorted set that was empty has come back without its end.
        if in_count == 0 and till > 0 then call('PEXPIREAT', inside, till) end
    end
    in_count, used = in_count + 1, used + claim[WEIGHT]
    if ends_at < soonest then soonest = ends_at end
    if ends_at > latest then latest = ends_at end
    local number = next_number(now_us, last, floor, known)
    if number > now_us then known, floor = number, floor or tonumber(call('GET', floor_key)) or 0 end
    last, claim[STATE], claim[NUMBER] = number, 'in', number
    unsaved[id] = claim
    changed = true
    if id ~= own and claim[CHANNEL] ~= '' then
        -- What is left of it, counted from its number, which may be ahead of the clock.
        local until_ms = (number - number % 1000) / 1000 + max(0, ends_at - now)
        call('PUBLISH', claim[CHANNEL], format('lk1=%s:%.0f %.0f %.0f', id, number, until_ms, claim[QUESTION]))
    end
end
may_fit = false
