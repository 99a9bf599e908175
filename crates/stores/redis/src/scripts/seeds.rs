//! Where seeded bugs change the scripts: a piece of a file, and what stands there instead. Only in builds with the feature
//! `mutants`.

use lockkeeper_core::mutants::{self, Mutant};

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
        piece: "if redis.pcall('GETRANGE', KEYS[i], 0, 35) == 'lk1:' .. ARGV[2 * i - 1] and tonumber",
        instead: "if tonumber",
    },
    Seed {
        mutant: Mutant::BlindDelete,
        file: "leave.lua",
        piece: "if not claim then return 'N' end",
        instead: "if not claim then
            local other = summary and summary[S.SOLE] or ''
            if other ~= '' then drop(other, load(other) or { [C.WEIGHT] = 1 }) end
            return 'R'
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
        piece: "local left = -1",
        instead: "local left = -1
        if not own_claim then
            begin_line('mutex', 1)
            own_claim = { 'in', 1, lease, told or 0, now, now, now + lease, '', 0, '', '' }
            put_inside(own, own_claim)
        end",
    },
    Seed {
        mutant: Mutant::PlainCounterToken,
        file: "line.lua",
        piece: "math.max(now_us, summary[S.LAST] + 1, (floor or 0) + 1, (clock_mark or 0) + 1)",
        instead: "redis.call('INCR', 'lockkeeper:count')",
    },
    Seed {
        mutant: Mutant::SetThenExpire,
        file: "line.lua",
        piece: "if left < 0 then left = tonumber(lease) end",
        instead: "if left < 0 then left = DAY_S * 1000 end",
    },
    Seed {
        mutant: Mutant::ReaderPastWriter,
        file: "enter.lua",
        piece: "(summary[S.WAIT] == 0 and ",
        instead: "((summary[S.WAIT] == 0 or weight == 1) and ",
    },
    Seed {
        mutant: Mutant::WakesNobody,
        file: "line.lua",
        piece: "redis.call('PUBLISH', claim[C.CHANNEL], news)",
        instead: "",
    },
    Seed {
        mutant: Mutant::DeadWaitersGranted,
        file: "line.lua",
        piece: "drop_all(redis.call('ZRANGEBYSCORE', ends, '-inf', now - 1, 'LIMIT', 0, SWEEP_MAX))",
        instead: "",
    },
    Seed {
        mutant: Mutant::DeadWaitersGranted,
        file: "line.lua",
        piece: "put_inside(first, claim)",
        instead: "claim[C.ENDS] = now + claim[C.LEASE] put_inside(first, claim)",
    },
    Seed { mutant: Mutant::NoSweep, file: "line.lua", piece: "drop_all(inside_until(now - 1))", instead: "" },
    Seed {
        mutant: Mutant::SwapIgnoresVersion,
        file: "cell_value.lua",
        piece: "if wanted ~= '' and wanted ~= (live and version or '0') then",
        instead: "if false then",
    },
];

/// The file as the chosen bug has it.
pub(super) fn planted(file: &str, text: &str) -> String {
    let chosen = SEEDS.iter().filter(|seed| seed.file == file && mutants::on(seed.mutant));
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
