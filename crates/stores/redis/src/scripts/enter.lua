-- A claim comes into the line, or is told where it stands. What it asks was looked at in again.lua, which also says what
-- the answers mean; one that is in is answered after it, in hold.lua.

if not answer then
    local lease, waiting_ends, question = tonumber(ARGV[5]), now + ARGV[6], tonumber(ARGV[9])
    local is_new = not own_claim
    local rank = 0
    if is_new then
        local fits = not taken_by_another and (not kind or (wait_count == 0 and used + weight <= capacity))
        if fits or patience ~= 'now' then
            if not kind then kind, capacity, floor = ARGV[2], tonumber(ARGV[4]), begin_line(floor) end
            order = order + 1
            own_claim = { 'waiting', weight, lease, 0, now, 0, waiting_ends, ARGV[8], question, ARGV[10], note }
            changed = true
        end
        if fits then
            own_claim[SINCE], own_claim[ENDS] = now, now + lease
            newcomer = own_claim
        elseif own_claim then
            call('ZADD', waiting, order, own)
            rank, wait_count = wait_count, wait_count + 1
        end
    end

    if newcomer then
        -- It is admitted below.
    elseif own_claim and own_claim[STATE] == 'in' then
        if own_claim[NUMBER] == 0 then
            -- The number its holder was told already, if it was.
            local number = tonumber(ARGV[12]) or 0
            if number == 0 then
                number = next_number(now_us, last, floor, known)
                if number > now_us then known, floor = number, floor or tonumber(call('GET', floor_key)) or 0 end
                last = number
            end
            own_claim[NUMBER] = number
        end
        if own_claim[SINCE] == 0 then own_claim[SINCE] = now end
        own_claim[LEASE] = max(own_claim[LEASE], lease)
        -- A hold stands until at least this.
        if now + lease > own_claim[ENDS] then
            own_claim[ENDS] = now + lease
            if capacity > 1 then call('ZADD', inside, now + lease, own) end
            soonest, latest = min(soonest, now + lease), max(latest, now + lease)
        end
        unsaved[own] = own_claim
    else
        -- When the line may move by itself: a claim that is in ends, or the first that waits does.
        local moves = sole ~= '' and latest or NEVER
        if capacity and capacity > 1 then
            moves = tonumber(call('ZRANGE', inside, '0', '0', 'WITHSCORES')[2]) or NEVER
            -- One that waits for a mutex ahead of us makes no difference by ending.
            local first = call('ZRANGE', waiting, '0', '0')[1]
            local head = first and first ~= own and read(call('HGET', line, first), NOTE)
            if head then moves = min(moves, head[ENDS]) end
        end
        if taken_by_another then
            local left = call('PTTL', holder)
            if left >= 0 then moves = min(moves, now + left) end
        end
        local moves_in = moves < NEVER and max(0, moves - now) + 1 or -1
        if patience == 'now' then
            answer = { 'R', moves_in }
            if own_claim then gone = { own } end
        else
            if not is_new then rank = call('ZRANK', waiting, own) or 0 end
            waiting_ends = max(own_claim[ENDS], waiting_ends)
            call('ZADD', ends, waiting_ends, own)
            if is_new and wait_count == 1 and till > 0 then
                -- A sorted set that was empty has come back without its end.
                call('PEXPIREAT', waiting, till)
                call('PEXPIREAT', ends, till)
            end
            if waiting_ends < soonest then soonest = waiting_ends end
            if waiting_ends > longest then longest = waiting_ends end
            own_claim[ENDS], own_claim[CHANNEL], own_claim[QUESTION] = waiting_ends, ARGV[8], question
            unsaved[own] = own_claim
            local age = (taken_by_another and rank == 0) and (now - own_claim[ENTERED]) or -1
            answer = { 'W', in_count + rank + (taken_by_another and 1 or 0), moves_in, age }
        end
    end
end
