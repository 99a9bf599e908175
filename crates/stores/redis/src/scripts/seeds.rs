//! Where seeded bugs change the scripts: a piece of a file, and what stands there instead. They do in builds with the feature
//! `mutants` alone; that the pieces are there is tested always.

use lockkeeper_core::mutants::Mutant;

/// One change of one file.
struct Seed {
    mutant: Mutant,
    file: &'static str,
    piece: &'static str,
    instead: &'static str,
}

const SEEDS: &[Seed] = &[
    Seed {
        mutant: Mutant::BlindDelete,
        file: "release.lua",
        piece: "if try('GETRANGE', keys[i], '0', '35') == 'lk1:' .. id and #number",
        instead: "if #number",
    },
    Seed {
        mutant: Mutant::BlindDelete,
        file: "leave.lua",
        piece: "local number = 0",
        instead: "local number = 0
        if not own_claim then
            if sole ~= '' then gone = { sole } end
            answer = 'R'
        end",
    },
    Seed {
        mutant: Mutant::BlindRenew,
        file: "renew.lua",
        piece: "elseif string.sub(head, 1, 36) ~= 'lk1:' .. id then",
        instead: "elseif false then",
    },
    Seed {
        mutant: Mutant::BlindRenew,
        file: "prolong.lua",
        piece: "local answer = -1",
        instead: "local answer = -1
        if not own_claim then
            if not kind then kind, capacity, floor = 'mutex', 1, begin_line(floor) end
            own_claim = { 'in', 1, lease, told or 0, now, now, now + lease, '', 0, '', '' }
            if capacity > 1 then call('ZADD', inside, now + lease, own) else sole = own end
            in_count, used = in_count + 1, used + 1
            soonest, latest = min(soonest, now + lease), max(latest, now + lease)
        end",
    },
    Seed {
        mutant: Mutant::PlainCounterToken,
        file: "line.lua",
        piece: "math.max(now_us, last + 1, (floor or 0) + 1, known + 1, mark + 1)",
        instead: "redis.call('INCR', 'lockkeeper:count')",
    },
    Seed {
        mutant: Mutant::PlainCounterToken,
        file: "write.lua",
        piece: "local has_heir = ",
        instead: "local has_heir = false and ",
    },
    Seed {
        mutant: Mutant::SetThenExpire,
        file: "settle.lua",
        piece: "if left < 0 then left = tonumber(lease) end",
        instead: "if left < 0 then left = DAY_S * 1000 end",
    },
    Seed {
        mutant: Mutant::ReaderPastWriter,
        file: "enter.lua",
        piece: "(wait_count == 0 and ",
        instead: "((wait_count == 0 or weight == 1) and ",
    },
    Seed {
        mutant: Mutant::WakesNobody,
        file: "admit.lua",
        piece: "call('PUBLISH', claim[CHANNEL], format('lk1=%s:%.0f %.0f %.0f', id, number, until_ms, claim[QUESTION]))",
        instead: "",
    },
    Seed {
        mutant: Mutant::WakesNobody,
        file: "write.lua",
        piece: "local has_heir = ",
        instead: "local has_heir = false and ",
    },
    Seed {
        mutant: Mutant::DeadWaitersGranted,
        file: "line.lua",
        piece: "for nth = 1, #over do gone[#gone + 1] = over[nth] end",
        instead: "",
    },
    Seed {
        mutant: Mutant::DeadWaitersGranted,
        file: "admit.lua",
        piece: "local ends_at = claim[ENDS]",
        instead: "claim[ENDS] = now + claim[LEASE] local ends_at = claim[ENDS]",
    },
    Seed {
        mutant: Mutant::NoSweep,
        file: "line.lua",
        piece: "elseif now > soonest then",
        instead: "elseif false then",
    },
    Seed {
        mutant: Mutant::SwapIgnoresVersion,
        file: "cell_value.lua",
        piece: "if wanted ~= '' and wanted ~= (live and version or '0') then",
        instead: "if false then",
    },
];

/// The file as the chosen bug has it.
#[cfg(feature = "mutants")]
pub(super) fn planted(file: &str, text: &str) -> String {
    let chosen = SEEDS.iter().filter(|seed| seed.file == file && lockkeeper_core::mutants::on(seed.mutant));
    chosen.fold(text.to_owned(), |text, seed| plant(&text, seed))
}

/// A piece that is not there would make a run without its bug, which proves nothing.
fn plant(text: &str, seed: &Seed) -> String {
    let found = text.matches(seed.piece).count();
    assert!(found == 1, "the bug {} changes a piece of {} that is there {found} times", seed.mutant.name(), seed.file);
    text.replace(seed.piece, seed.instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_there_once() {
        for seed in SEEDS {
            let file = format!("{}/src/scripts/{}", env!("CARGO_MANIFEST_DIR"), seed.file);
            let text = std::fs::read_to_string(file).unwrap();
            assert_ne!(plant(&text, seed), text);
        }
    }
}
